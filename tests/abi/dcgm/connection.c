/* Starting and ending: the library, connections to the hostengine, the embedded one; and what every call does first. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 256, DEFAULT_TIMEOUT_MS = 5000 };

struct connection {
    dcgmHandle_t handle; /* never given out again */
    bool open, persist;
    struct engine *engine;
    size_t epoch;
};

pthread_mutex_t player_lock = PTHREAD_MUTEX_INITIALIZER;
struct scenario *scenario;

static bool initialized, embedded_started;
static struct engine remote, embedded = {.embedded = true};
static struct connection connections[CONNECTIONS], embedded_connection;
static dcgmHandle_t last_handle;

/* ---- the life of an engine ---- */

static void engine_begin(struct engine *engine, usec born) {
    engine_clear(engine);
    engine->born = born;
    engine->due = 0;
}

/* Follows the scenario: a hostengine that was killed since has forgotten everything. False: it is not there now. */
static bool engine_lives(struct engine *engine, usec now) {
    if (engine->embedded) return embedded_started;
    size_t deaths = 0;
    usec born = -(NEVER / 4);
    for (size_t i = 0; i < scenario->gone.count; i++) {
        if (scenario->gone.items[i].from > now) continue;
        deaths++;
        if (scenario->gone.items[i].until > born) born = scenario->gone.items[i].until;
    }
    if (deaths != engine->epoch) {
        engine_begin(engine, born);
        engine->epoch = deaths;
    }
    return !in_windows(&scenario->gone, now);
}

/* ---- what every call does first ---- */

static struct connection *connection_of(dcgmHandle_t handle) {
    if (handle == EMBEDDED_HANDLE) return embedded_started ? &embedded_connection : NULL;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (connections[i].open && connections[i].handle == handle) return &connections[i];
    return NULL;
}

/* With the lock; it is given away while a stopped hostengine lets the caller wait. */
static dcgmReturn_t await_answer(const struct engine *engine, usec now) {
    if (engine->embedded) return ST_OK;
    for (size_t i = 0; i < scenario->stopped.count; i++) {
        struct window window = scenario->stopped.items[i];
        if (now < window.from || now >= window.until) continue;
        double patience = scenario->request_timeout;
        pthread_mutex_unlock(&player_lock);
        report_add(HANGING, 1);
        bool answered = clock_wait(window.until, patience);
        report_add(HANGING, -1);
        pthread_mutex_lock(&player_lock);
        return answered ? ST_OK : ST_TIMEOUT;
    }
    return ST_OK;
}

dcgmReturn_t call_plain(struct call_counter *counter, usec *now) {
    report_call(counter);
    return call_faults(counter->name, -1, now);
}

static dcgmReturn_t begin_with_lock(dcgmHandle_t handle, struct call *call) {
    if (!initialized) return ST_UNINITIALIZED;
    struct connection *connection = connection_of(handle);
    if (connection == NULL) return handle == EMBEDDED_HANDLE ? ST_UNINITIALIZED : ST_CONNECTION_NOT_VALID;
    struct engine *engine = connection->engine;
    if (!engine_lives(engine, clock_now()) || connection->epoch != engine->epoch) return ST_CONNECTION_NOT_VALID;
    dcgmReturn_t answered = await_answer(engine, clock_now());
    if (answered != ST_OK) return answered;
    if (!initialized || connection_of(handle) != connection) return ST_CONNECTION_NOT_VALID; /* closed meanwhile */
    call->now = clock_now();
    if (!engine_lives(engine, call->now) || connection->epoch != engine->epoch) return ST_CONNECTION_NOT_VALID;
    call->engine = engine;
    call->connection = (unsigned int)handle;
    engine_advance(engine, call->now);
    return ST_OK;
}

dcgmReturn_t call_begin(struct call_counter *counter, dcgmHandle_t handle, long gpu, enum requests requests,
                        struct call *call) {
    report_call(counter);
    usec now;
    pthread_mutex_lock(&player_lock);
    bool ready = initialized;
    pthread_mutex_unlock(&player_lock);
    if (!ready) return ST_UNINITIALIZED;
    if (requests != REQUEST_NONE) report_request(counter);
    dcgmReturn_t code = call_faults(counter->name, gpu, &now);
    if (code != ST_OK) return code;
    if (requests == REQUEST_SMALL) trip(handle, TRIP_SMALL, 0);
    call->counter = counter;
    call->handle = handle;
    pthread_mutex_lock(&player_lock);
    code = begin_with_lock(handle, call);
    if (code != ST_OK) pthread_mutex_unlock(&player_lock);
    return code;
}

dcgmReturn_t call_end(dcgmReturn_t code) {
    pthread_mutex_unlock(&player_lock);
    return code;
}

/* ---- the library ---- */

static void begin_scenario(void) {
    static struct scenario *last;
    clock_open();
    report_open();
    struct scenario *fresh = scenario_read();
    fresh->before = last;
    scenario = last = fresh;
}

DCGM_API dcgmReturn_t dcgmInit(void) {
    static struct call_counter counter = {"dcgmInit", 0, NULL};
    usec now;
    pthread_mutex_lock(&player_lock);
    if (scenario == NULL) begin_scenario();
    pthread_mutex_unlock(&player_lock);
    dcgmReturn_t code = call_plain(&counter, &now);
    if (code != ST_OK) return code;
    pthread_mutex_lock(&player_lock);
    if (!initialized) {
        remote.epoch = 0;
        engine_begin(&remote, -(NEVER / 4));
        initialized = true;
    }
    return call_end(ST_OK);
}

static void close_connection(struct connection *connection) {
    if (!connection->open) return;
    bool same_life = connection->epoch == connection->engine->epoch;
    if (same_life && !connection->persist) {
        watches_forget(connection->engine, (unsigned int)connection->handle);
        groups_forget(connection->engine, false, (unsigned int)connection->handle);
    }
    connection->open = false;
    report_add(OPEN_HANDLES, -1);
}

static void stop_embedded(void) {
    if (!embedded_started) return;
    embedded_connection.open = false;
    report_add(OPEN_HANDLES, -1);
    engine_clear(&embedded);
    embedded_started = false;
}

/* The next dcgmInit reads the scenario again. */
DCGM_API dcgmReturn_t dcgmShutdown(void) {
    static struct call_counter counter = {"dcgmShutdown", 0, NULL};
    usec now;
    dcgmReturn_t code = call_plain(&counter, &now);
    if (code != ST_OK) return code;
    pthread_mutex_lock(&player_lock);
    if (initialized) {
        for (size_t i = 0; i < CONNECTIONS; i++) close_connection(&connections[i]);
        stop_embedded();
        engine_clear(&remote);
        scenario = NULL;
        initialized = false;
    }
    pthread_mutex_unlock(&player_lock);
    trip_close();
    return ST_OK;
}

/* ---- embedded ---- */

DCGM_API dcgmReturn_t dcgmStartEmbedded(int mode, dcgmHandle_t *handle) {
    static struct call_counter counter = {"dcgmStartEmbedded", 0, NULL};
    usec now;
    (void)mode;
    dcgmReturn_t code = call_plain(&counter, &now);
    if (code != ST_OK) return code;
    if (handle == NULL) return ST_BADPARAM;
    pthread_mutex_lock(&player_lock);
    if (!initialized) return call_end(ST_UNINITIALIZED);
    *handle = 0; /* a second start is no error, and gives no handle */
    if (!embedded_started) {
        embedded_started = true;
        engine_begin(&embedded, now);
        embedded_connection = (struct connection){.handle = EMBEDDED_HANDLE, .open = true, .engine = &embedded};
        report_add(OPEN_HANDLES, 1);
        *handle = EMBEDDED_HANDLE;
    }
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmStopEmbedded(dcgmHandle_t handle) {
    ENTER_AS(dcgmStopEmbedded, handle, -1, REQUEST_NONE);
    if (!call.engine->embedded) return call_end(ST_BADPARAM);
    stop_embedded();
    return call_end(ST_OK);
}

/* ---- connections ---- */

static bool address_answers(const char *address) {
    static const char *const schemes[] = {"tcp://", "unix://", "vsock://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (strncmp(address, schemes[i], strlen(schemes[i])) == 0) address += strlen(schemes[i]);
    if (*scenario->address == '\0') return true;
    size_t length = strlen(scenario->address);
    if (strncmp(address, scenario->address, length) != 0) return false;
    return address[length] == '\0' || strcmp(address + length, ":5555") == 0;
}

static dcgmReturn_t open_connection(bool persist, dcgmHandle_t *handle) {
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (connections[i].open) continue;
        *handle = ++last_handle;
        connections[i] = (struct connection){*handle, true, persist, &remote, remote.epoch};
        report_add(OPEN_HANDLES, 1);
        return ST_OK;
    }
    return ST_MAX_LIMIT;
}

/* With the lock. Refused connections are tried again until the time-out. */
static dcgmReturn_t await_engine(const char *address, unsigned int timeout_ms) {
    double patience = (timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : timeout_ms) / 1000.0;
    usec begun = clock_now(), begun_real = real_now();
    while (!engine_lives(&remote, clock_now()) || !address_answers(address)) {
        pthread_mutex_unlock(&player_lock);
        real_sleep(0.002);
        pthread_mutex_lock(&player_lock);
        if (!initialized) return ST_UNINITIALIZED;
        if ((double)(clock_now() - begun) >= patience * 1e6 || (double)(real_now() - begun_real) >= patience * 1e6)
            return ST_CONNECTION_NOT_VALID;
    }
    return ST_OK;
}

static dcgmReturn_t connect_to(struct call_counter *counter, const char *address, unsigned int timeout_ms, bool persist,
                               dcgmHandle_t *handle) {
    usec now;
    dcgmReturn_t code = call_plain(counter, &now);
    if (code != ST_OK) return code;
    pthread_mutex_lock(&player_lock);
    if (!initialized) return call_end(ST_UNINITIALIZED);
    code = await_engine(address, timeout_ms);
    /* A stopped hostengine accepts, and two silent requests later the handle looks as good as any. */
    for (int request = 0; code == ST_OK && request < 2; request++) {
        report_request(counter); /* its version, and the login */
        await_answer(&remote, clock_now());
        if (!initialized) code = ST_UNINITIALIZED;
    }
    if (code == ST_OK && !engine_lives(&remote, clock_now())) code = ST_CONNECTION_NOT_VALID;
    code = call_end(code == ST_OK ? open_connection(persist, handle) : code);
    if (code != ST_OK) return code;
    trip_open();
    for (int request = 0; request < 2; request++) trip(*handle, TRIP_SMALL, 0);
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmConnect_v2(const char *address, dcgmConnectV2Params_v2 *params, dcgmHandle_t *handle) {
    static struct call_counter counter = {"dcgmConnect_v2", 0, NULL};
    if (address == NULL || *address == '\0' || params == NULL || handle == NULL) return ST_BADPARAM;
    bool first = params->version == VERSION_OF(dcgmConnectV2Params_v1, 1);
    if (!first && params->version != VERSION_OF(dcgmConnectV2Params_v2, 2)) return ST_VER_MISMATCH;
    unsigned int timeout_ms = first ? 0 : params->timeoutMs;
    return connect_to(&counter, address, timeout_ms, params->persistAfterDisconnect != 0, handle);
}

DCGM_API dcgmReturn_t dcgmConnect_v3(const char *address, dcgmConnectV3Params_v1 *params, dcgmHandle_t *handle) {
    static struct call_counter counter = {"dcgmConnect_v3", 0, NULL};
    if (address == NULL || *address == '\0' || params == NULL || handle == NULL) return ST_BADPARAM;
    if (params->version != VERSION_OF(dcgmConnectV3Params_v1, 1)) return ST_VER_MISMATCH;
    return connect_to(&counter, address, params->timeoutMs, params->persistAfterDisconnect != 0, handle);
}

DCGM_API dcgmReturn_t dcgmConnect(const char *address, dcgmHandle_t *handle) {
    static struct call_counter counter = {"dcgmConnect", 0, NULL};
    if (address == NULL || *address == '\0' || handle == NULL) return ST_BADPARAM;
    return connect_to(&counter, address, 0, false, handle);
}

/* Also of a dead hostengine: then there is nothing to tell it. */
DCGM_API dcgmReturn_t dcgmDisconnect(dcgmHandle_t handle) {
    static struct call_counter counter = {"dcgmDisconnect", 0, NULL};
    usec now;
    dcgmReturn_t code = call_plain(&counter, &now);
    if (code != ST_OK) return code;
    pthread_mutex_lock(&player_lock);
    if (!initialized) return call_end(ST_UNINITIALIZED);
    struct connection *connection = connection_of(handle);
    if (handle == EMBEDDED_HANDLE) return call_end(ST_OK);
    if (connection == NULL) return call_end(ST_BADPARAM);
    if (engine_lives(connection->engine, now)) engine_advance(connection->engine, now);
    close_connection(connection);
    return call_end(ST_OK);
}

/* ---- what is open, for a test in the same process ---- */

DCGM_API long long honest_test_open_handles(void) { return report_gauge(OPEN_HANDLES); }
DCGM_API long long honest_test_open_groups(void) { return report_gauge(OPEN_GROUPS); }
DCGM_API long long honest_test_open_field_groups(void) { return report_gauge(OPEN_FIELD_GROUPS); }
DCGM_API long long honest_test_open_watches(void) { return report_gauge(OPEN_WATCHES); }
DCGM_API long long honest_test_kept_samples(void) { return report_gauge(KEPT_SAMPLES); }

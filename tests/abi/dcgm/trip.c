/*
 * What a request to a hostengine costs (HONEST_TEST_DCGM_REQUEST_COST=socket; else nothing): a round trip over TCP on
 * loopback to a second process, in the steps that libdcgm takes. The caller zeroes a message (4 MiB where values may
 * come back) and copies its head; a thread that owns the socket sends it and reads the answer; a third one hands it to
 * the caller. The other process (standin/hostengine.c) does the like; the first connection starts it, and it ends with
 * its socket.
 *
 * Calibrated on 8 GPUs x 27 fields, two cores, warm, three runs, milliseconds; the hostengine is DCGM 4.6.0 over TCP:
 *                            this                        a hostengine
 *   values since, 216 (+ 2)  155 to 162                  155 to 168
 *     CPU here, there        65 to 70, 81 to 84          70, 80
 *   latest values, 1         0.8 (first 0.9 to 1.0)      0.45 (first 0.95)
 * After half a second without a call the latter takes 1.8 here (cold caches); that was not measured on a hostengine.
 */
#define _GNU_SOURCE /* dladdr */

#include "player.h"
#include "wire.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

enum { THEIR_SOCKET = 3 };

enum stage { IDLE, ASKED, SENT, RECEIVED, ANSWERED, CLOSING };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* one request at a time; guards what is open */
static bool is_open;
static int connection, wake;
static pid_t process;
static pthread_t loop_thread, worker_thread;

static pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pthread_cond_t stage_changed = PTHREAD_COND_INITIALIZER;
static enum stage stage;
static struct head head;
static char *outgoing, *incoming;

static void failed(const char *what) {
    player_fails("the process that stands in for a hostengine: %s", what);
}

/* ---- the three threads ---- */

static void move_to(enum stage next) {
    pthread_mutex_lock(&stage_lock);
    if (stage != CLOSING) stage = next;
    pthread_cond_broadcast(&stage_changed);
    pthread_mutex_unlock(&stage_lock);
}

/* False: everything ends. */
static bool await_stage(enum stage wanted) {
    pthread_mutex_lock(&stage_lock);
    while (stage < wanted) pthread_cond_wait(&stage_changed, &stage_lock);
    bool goes_on = stage != CLOSING;
    pthread_mutex_unlock(&stage_lock);
    return goes_on;
}

static void *zeroed(size_t size) {
    void *made = malloc(size);
    if (made == NULL) abort();
    __asm__ volatile("" : "+r"(made)); /* else both calls become calloc, which may leave the pages untouched */
    return memset(made, 0, size);
}

static void *loop(void *unused) {
    for (;;) {
        struct pollfd watched[] = {{.fd = connection, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
        if (poll(watched, 2, -1) < 0) continue;
        uint64_t count;
        if (watched[1].revents != 0) {
            if (read(wake, &count, sizeof(count)) != sizeof(count)) abort();
            if (!await_stage(ASKED)) return unused;
            if (!send_all(connection, &head, sizeof(head)) || !send_all(connection, outgoing, head.size))
                failed("it is gone");
            move_to(SENT);
        }
        if (watched[0].revents != 0) {
            if (!receive_all(connection, &head, sizeof(head))) failed("it is gone");
            incoming = zeroed(head.size);
            if (!receive_all(connection, incoming, head.size)) failed("it is gone");
            move_to(RECEIVED);
        }
    }
}

static void *worker(void *unused) {
    while (await_stage(RECEIVED)) {
        move_to(ANSWERED);
        pthread_mutex_lock(&stage_lock);
        while (stage == ANSWERED) pthread_cond_wait(&stage_changed, &stage_lock);
        pthread_mutex_unlock(&stage_lock);
    }
    return unused;
}

static void wake_loop(void) {
    uint64_t one = 1;
    if (write(wake, &one, sizeof(one)) != sizeof(one)) abort();
}

static void exchange(struct head request) {
    char *message = zeroed(request.room);
    head = request;
    outgoing = zeroed(request.size);
    memcpy(outgoing, message, request.size);
    move_to(ASKED);
    wake_loop();
    await_stage(SENT);
    await_stage(ANSWERED);
    memcpy(message, incoming, head.size);
    free(outgoing);
    free(incoming);
    free(message);
    move_to(IDLE);
}

void trip(dcgmHandle_t handle, enum trip_kind kind, size_t values) {
    static const struct head heads[] = {
        [TRIP_SMALL] = {.size = SMALL_SIZE, .room = SMALL_SIZE, .answer = SMALL_SIZE},
        [TRIP_SINCE] = {.size = SINCE_HEAD, .room = MESSAGE_SIZE, .answer = SINCE_HEAD},
        [TRIP_LATEST] = {.size = LATEST_HEAD, .room = MESSAGE_SIZE, .answer = LATEST_HEAD},
    };
    if (handle == EMBEDDED_HANDLE) return;
    pthread_mutex_lock(&turn);
    if (is_open) {
        struct head request = heads[kind];
        size_t answer = request.answer + values * VALUE_SIZE;
        request.answer = (uint32_t)(answer < request.room ? answer : request.room);
        exchange(request);
    }
    pthread_mutex_unlock(&turn);
}

/* ---- beginning and end ---- */

static void open_sockets(int *ours, int *theirs) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    *ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listening < 0 || *ours < 0 || bind(listening, (struct sockaddr *)&address, size) != 0 ||
        listen(listening, 1) != 0 || getsockname(listening, (struct sockaddr *)&address, &size) != 0 ||
        connect(*ours, (struct sockaddr *)&address, size) != 0)
        failed("no connection");
    *theirs = accept(listening, NULL, NULL);
    if (*theirs < 0 || fcntl(*theirs, F_SETFD, FD_CLOEXEC) != 0) failed("no connection");
    setsockopt(*ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(*theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    close(listening);
}

/* The program lies beside the library. */
static void path_of_program(char *to, size_t room) {
    Dl_info info;
    if (dladdr((void *)(intptr_t)trip_open, &info) == 0) failed("the library's folder is not known");
    snprintf(to, room, "%s", info.dli_fname);
    char *slash = strrchr(to, '/');
    snprintf(slash == NULL ? to : slash + 1, room - (slash == NULL ? 0 : (size_t)(slash + 1 - to)), "%s",
             "honest-test-hostengine");
}

static void start_process(int theirs) {
    char path[4096];
    char *arguments[] = {path, NULL}, *nothing[] = {NULL};
    path_of_program(path, sizeof(path));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    for (int file = 0; file < THEIR_SOCKET; file++)
        posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs, THEIR_SOCKET);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    if (posix_spawn(&process, path, &actions, &attributes, arguments, nothing) != 0) failed("it does not start");
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
}

/* The process's signals are not theirs. */
static void start_threads(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&loop_thread, NULL, loop, NULL) != 0 || pthread_create(&worker_thread, NULL, worker, NULL) != 0)
        failed("no threads");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void trip_open(void) {
    const char *cost = getenv("HONEST_TEST_DCGM_REQUEST_COST");
    if (cost == NULL || *cost == '\0') return;
    if (strcmp(cost, "socket") != 0) failed("HONEST_TEST_DCGM_REQUEST_COST is neither empty nor socket");
    pthread_mutex_lock(&turn);
    if (!is_open) {
        int theirs;
        open_sockets(&connection, &theirs);
        start_process(theirs);
        close(theirs);
        wake = eventfd(0, EFD_CLOEXEC);
        if (wake < 0) failed("no eventfd");
        stage = IDLE;
        start_threads();
        is_open = true;
    }
    pthread_mutex_unlock(&turn);
}

void trip_close(void) {
    pthread_mutex_lock(&turn);
    if (is_open) {
        move_to(CLOSING);
        wake_loop();
        pthread_join(loop_thread, NULL);
        pthread_join(worker_thread, NULL);
        close(connection);
        close(wake);
        waitpid(process, NULL, 0);
        is_open = false;
    }
    pthread_mutex_unlock(&turn);
}

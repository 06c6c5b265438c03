/* Whether profiling is paused lies beside the report: it is a state of the hostengine, whoever asks for it. */
#include "player.h"

enum { PAUSE_MAX = 256 };

struct pauses {
    unsigned long long count;
    struct {
        usec time;
        int embedded, paused;
    } items[PAUSE_MAX];
};
static_assert(sizeof(struct pauses) <= SHARED_SIZE, "pauses");

void pause_note(bool embedded, bool paused, usec time) {
    struct pauses *pauses = report_shared();
    unsigned long long index = __atomic_fetch_add(&pauses->count, 1, __ATOMIC_ACQ_REL) % PAUSE_MAX;
    pauses->items[index].time = time;
    pauses->items[index].embedded = embedded;
    __atomic_store_n(&pauses->items[index].paused, paused, __ATOMIC_RELEASE);
}

/* Walks backwards: the newest one that counts. `wanted` -1: a pause or a resume. */
static int find(bool embedded, usec from, usec until, int wanted, usec *at) {
    struct pauses *pauses = report_shared();
    unsigned long long count = __atomic_load_n(&pauses->count, __ATOMIC_ACQUIRE);
    for (unsigned long long i = count; i > 0 && i + PAUSE_MAX > count; i--) {
        unsigned long long index = (i - 1) % PAUSE_MAX;
        int paused = pauses->items[index].paused;
        usec time = pauses->items[index].time;
        if ((bool)pauses->items[index].embedded != embedded || time < from || time > until) continue;
        if (wanted >= 0 && paused != wanted) continue;
        *at = time;
        return paused;
    }
    return -1;
}

int pause_last(bool embedded, usec from, usec until, usec *at) { return find(embedded, from, until, -1, at); }

bool pause_resumed(bool embedded, usec from, usec until) {
    usec at;
    return find(embedded, from, until, 0, &at) == 0;
}

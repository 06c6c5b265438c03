/*
 * The process that stands in for a hostengine where requests shall cost something (trip.c starts it and says how it is
 * calibrated). It knows no values: it does with each message what a hostengine does, and answers with as many bytes.
 * One thread owns the socket, another one works, as in a hostengine. Its socket is descriptor 3; it ends when that
 * closes.
 */
#include "../wire.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

enum { SOCKET = 3, WORK_NS = 130000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static bool waiting; /* a message is in `message`, and the worker has it next */
static struct head head;
static char *message; /* kept and used again, as a hostengine keeps it */
static int answered;

/* In place of what is not done here (dispatch, locks, looking samples up): a constant that calibration gave. */
static void work(void) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000000LL + now.tv_nsec - begun.tv_nsec < WORK_NS);
}

static void *worker(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!waiting) pthread_cond_wait(&arrived, &lock);
        waiting = false;
        pthread_mutex_unlock(&lock);
        memset(message + head.size, 0, head.room - head.size);
        work();
        uint64_t one = 1;
        if (write(answered, &one, sizeof(one)) != sizeof(one)) abort();
    }
    return NULL;
}

static void take(void) {
    if (!receive_all(SOCKET, &head, sizeof(head))) exit(0);
    if (head.room > MESSAGE_SIZE || head.size > head.room || head.answer > head.room) abort();
    memset(message, 0, head.size);
    if (!receive_all(SOCKET, message, head.size)) exit(0);
    pthread_mutex_lock(&lock);
    waiting = true;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
}

static void answer(void) {
    uint64_t count;
    if (read(answered, &count, sizeof(count)) != sizeof(count)) abort();
    head.size = head.answer;
    if (!send_all(SOCKET, &head, sizeof(head)) || !send_all(SOCKET, message, head.size)) exit(0);
}

int main(void) {
    pthread_t thread;
    message = malloc(MESSAGE_SIZE);
    answered = eventfd(0, EFD_CLOEXEC);
    if (message == NULL || answered < 0 || pthread_create(&thread, NULL, worker, NULL) != 0) return 1;
    for (;;) {
        struct pollfd watched[] = {{.fd = SOCKET, .events = POLLIN}, {.fd = answered, .events = POLLIN}};
        if (poll(watched, 2, -1) < 0) continue;
        if (watched[1].revents != 0) answer();
        if (watched[0].revents != 0) take();
    }
}

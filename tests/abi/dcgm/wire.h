/* What passes between the library and the process that stands in for a hostengine (trip.c, standin/hostengine.c). */
#ifndef HONEST_TEST_DCGM_WIRE_H
#define HONEST_TEST_DCGM_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MESSAGE_SIZE = 4 << 20, /* of messages that have room for values; only their used part is sent */
    SMALL_SIZE = 1024,      /* of the other ones, sent whole */
    SINCE_HEAD = 64,        /* sent for the history of one field of one entity */
    LATEST_HEAD = 9 << 10,  /* sent for latest values: 1024 entities and 128 fields have room in it */
    VALUE_SIZE = 40,        /* on average: 32 for a number, more for a text */
};

struct head {
    uint32_t size;   /* of what follows */
    uint32_t room;   /* of the message on either side */
    uint32_t answer; /* size of what follows the answer's head */
};

/* False: the other side closed. */
static inline bool send_all(int socket, const void *from, size_t size) {
    for (const char *at = from; size > 0;) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline bool receive_all(int socket, void *to, size_t size) {
    for (char *at = to; size > 0;) {
        ssize_t got = recv(socket, at, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

#endif

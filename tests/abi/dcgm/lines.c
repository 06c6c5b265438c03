/*
 * The scenario file as lines: a keyword, then words `key=text`, separated by spaces; texts are percent-encoded, `#`
 * begins a comment. Whatever is not understood ends the process: a test must not run on half a scenario.
 */
#include "player.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void line_bad(const struct line *line, const char *what) {
    fprintf(stderr, "DCGM player: scenario line %zu (%s): %s\n", line->number, line->keyword, what);
    abort();
}

static int hex(char digit) {
    const char *digits = "0123456789ABCDEF", *found = digit ? strchr(digits, digit) : NULL;
    return found == NULL ? -1 : (int)(found - digits);
}

static void decode(const struct line *line, char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0) line_bad(line, "a bad percent-encoding");
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
}

static const char *find(const struct line *line, const char *key) {
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->words[i].key, key) == 0) return line->words[i].text;
    return NULL;
}

const char *line_text(const struct line *line, const char *key) {
    const char *text = find(line, key);
    if (text == NULL) line_bad(line, key);
    return text;
}

double number_of(const char *text, const char *from_whom) {
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || isnan(number)) {
        fprintf(stderr, "DCGM player: not a number in the scenario: %s=%s\n", from_whom, text);
        abort();
    }
    return number;
}

/* The ends of time are far from overflow, so that differences stay in range. */
usec time_of(const char *text, const char *from_whom) {
    double seconds = number_of(text, from_whom);
    if (seconds > 1e12) return NEVER / 4;
    if (seconds < -1e12) return -(NEVER / 4);
    return llround(seconds * 1e6);
}

double line_number(const struct line *line, const char *key) { return number_of(line_text(line, key), key); }

double line_number_or(const struct line *line, const char *key, double otherwise) {
    return find(line, key) == NULL ? otherwise : line_number(line, key);
}

usec line_time(const struct line *line, const char *key) { return time_of(line_text(line, key), key); }

struct window line_window(const struct line *line) {
    return (struct window){line_time(line, "from"), line_time(line, "until")};
}

size_t line_items(const struct line *line, const char *key, void (*each)(const char *item, size_t index, void *to),
                  void *to) {
    char *copy = strdup(line_text(line, key)), *rest = copy;
    size_t count = 0;
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ","))
        if (*item != '\0') each(item, count++, to);
    free(copy);
    return count;
}

static void parse(char *text, size_t number, void (*each)(const struct line *line)) {
    struct line line = {.number = number};
    char *rest = text;
    for (char *word = strsep(&rest, " \r"); word != NULL; word = strsep(&rest, " \r")) {
        if (*word == '\0') continue;
        if (*word == '#') break;
        if (line.keyword == NULL) {
            line.keyword = word;
            continue;
        }
        char *equals = strchr(word, '=');
        if (equals == NULL) line_bad(&line, word);
        if (line.count == sizeof(line.words) / sizeof(*line.words)) line_bad(&line, "too many words");
        *equals = '\0';
        decode(&line, equals + 1);
        line.words[line.count].key = word;
        line.words[line.count++].text = equals + 1;
    }
    if (line.keyword != NULL) each(&line);
}

void lines_read(const char *path, void (*each)(const struct line *line)) {
    FILE *file = path == NULL || *path == '\0' ? NULL : fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "DCGM player: no scenario (HONEST_TEST_DCGM_SCENARIO=%s)\n", path == NULL ? "" : path);
        abort();
    }
    char *text = NULL;
    size_t room = 0, number = 0;
    for (ssize_t length = getline(&text, &room, file); length >= 0; length = getline(&text, &room, file)) {
        if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
        parse(text, ++number, each);
    }
    free(text);
    fclose(file);
}

/* Capacity is the next power of two, so that the count alone tells when to grow. */
void *grown(void **items, size_t *count, size_t size) {
    if ((*count & (*count - 1)) == 0) {
        void *larger = realloc(*items, (*count == 0 ? 1 : 2 * *count) * size);
        if (larger == NULL) abort();
        *items = larger;
    }
    void *item = (char *)*items + *count * size;
    memset(item, 0, size);
    ++*count;
    return item;
}

/*
 * The scenario file as lines: a keyword, then words `key=text`, separated by spaces; texts are percent-encoded, `#`
 * begins a comment. Whatever is not understood ends the process: a test must not run on half a scenario.
 */
#include "player.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void player_fails(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(PLAYER " player: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

_Noreturn void line_bad(const struct line *line, const char *what) {
    player_fails("scenario line %zu (%s): %s", line->number, line->keyword, what);
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

bool line_has(const struct line *line, const char *key) { return find(line, key) != NULL; }

const char *line_text(const struct line *line, const char *key) {
    const char *text = find(line, key);
    if (text == NULL) player_fails("scenario line %zu (%s): %s is missing", line->number, line->keyword, key);
    return text;
}

double line_item_number(const struct line *line, const char *item) {
    char *end;
    double number = strtod(item, &end);
    if (end == item || *end != '\0')
        player_fails("scenario line %zu (%s): not a number: %s", line->number, line->keyword, item);
    return number;
}

double line_number(const struct line *line, const char *key) { return line_item_number(line, line_text(line, key)); }

double line_number_or(const struct line *line, const char *key, double otherwise) {
    return line_has(line, key) ? line_number(line, key) : otherwise;
}

unsigned int line_whole(const struct line *line, const char *key) {
    double number = line_number(line, key);
    if (number != rint(number) || number < 0 || number > UINT32_MAX) line_bad(line, "not a whole number");
    return (unsigned int)number;
}

unsigned int line_whole_or(const struct line *line, const char *key, unsigned int otherwise) {
    return line_has(line, key) ? line_whole(line, key) : otherwise;
}

/* A value may be NaN (a driver's metric can); a time may not. */
static usec item_time(const struct line *line, const char *item) {
    double seconds = line_item_number(line, item);
    if (isnan(seconds)) line_bad(line, "not a time");
    return usec_of(seconds);
}

usec line_time(const struct line *line, const char *key) { return item_time(line, line_text(line, key)); }

struct window line_window(const struct line *line) {
    return (struct window){line_time(line, "from"), line_time(line, "until")};
}

void line_items(const struct line *line, const char *key,
                void (*each)(const struct line *line, const char *item, size_t index, void *to), void *to) {
    char *copy = copied(line_text(line, key)), *rest = copy;
    size_t count = 0;
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ","))
        if (*item != '\0') each(line, item, count++, to);
    free(copy);
}

/* ---- values ---- */

/* TIME:NUMBER, or TIME:!NUMBER where there is no value, and why */
static void add_point(const struct line *line, const char *item, size_t index, void *to) {
    struct value *value = to;
    struct point *point = grown((void **)&value->points, &value->count, sizeof(*point));
    char *copy = copied(item), *colon = strchr(copy, ':');
    if (colon == NULL) line_bad(line, "a point is TIME:VALUE");
    *colon = '\0';
    point->from = item_time(line, copy);
    point->absence = colon[1] == '!' ? (int)line_item_number(line, colon + 2) : PRESENT;
    if (point->absence == PRESENT) point->value = line_item_number(line, colon + 1);
    free(copy);
    if (index == 0) return;
    const struct point *before = point - 1;
    if (before->from >= point->from) line_bad(line, "points must go forward in time");
    double seconds = before->absence == PRESENT ? seconds_of(point->from - before->from) : 0.0;
    point->integral = before->integral + before->value * seconds;
}

static void add_reset(const struct line *line, const char *item, size_t index, void *to) {
    (void)index;
    struct value *value = to;
    usec *reset = grown((void **)&value->resets, &value->reset_count, sizeof(*reset));
    *reset = item_time(line, item);
}

void line_value(const struct line *line, struct value *value) {
    static const char *const kinds[] = {"steps", "counter", "events", "text"};
    const char *kind = line_text(line, "kind");
    while (value->kind <= VALUE_TEXT && strcmp(kinds[value->kind], kind) != 0) value->kind++;
    if (value->kind > VALUE_TEXT) line_bad(line, "no such kind of value");
    if (value->kind == VALUE_TEXT) {
        value->text = copied(line_text(line, "text"));
        return;
    }
    line_items(line, "points", add_point, value);
    if (value->count == 0 && value->kind != VALUE_EVENTS) line_bad(line, "no points");
    if (value->kind != VALUE_COUNTER) return;
    value->start = line_number(line, "start");
    line_items(line, "resets", add_reset, value);
}

/* ---- the file ---- */

static void dispatch(const struct line *line, const struct line_reader *readers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(readers[i].keyword, line->keyword) != 0) continue;
        readers[i].read(line);
        return;
    }
    line_bad(line, "no such keyword");
}

static void parse(char *text, size_t number, const struct line_reader *readers, size_t count) {
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
    if (line.keyword != NULL) dispatch(&line, readers, count);
}

void lines_read(const struct line_reader *readers, size_t count) {
    const char *path = getenv(PLAYER_VARIABLE("SCENARIO"));
    FILE *file = path == NULL || *path == '\0' ? NULL : fopen(path, "re");
    if (file == NULL) player_fails("no scenario (%s=%s)", PLAYER_VARIABLE("SCENARIO"), path == NULL ? "" : path);
    char *text = NULL;
    size_t room = 0, number = 0;
    for (ssize_t length = getline(&text, &room, file); length >= 0; length = getline(&text, &room, file)) {
        if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
        parse(text, ++number, readers, count);
    }
    free(text);
    fclose(file);
}

/* ---- memory ---- */

char *copied(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) abort();
    return copy;
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

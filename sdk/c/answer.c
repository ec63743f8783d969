/* Finds the answer in a response: see gavel.h. Every SDK has these functions
 * with the same results. */

#include "gavel.h"
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char at(gavel_text text, size_t index) {
    return index < text.len ? text.ptr[index] : 0;
}

static size_t digits(gavel_text text, size_t from) {
    size_t count = 0;
    while (is_digit(at(text, from + count))) count++;
    return count;
}

/* The bytes of a minus, `-` or U+2212, or 0. */
static size_t minus(gavel_text text, size_t from) {
    if (at(text, from) == '-') return 1;
    return from + 3 <= text.len && memcmp(text.ptr + from, "\xe2\x88\x92", 3) == 0 ? 3 : 0;
}

/* The end of the longest number that begins at `start`, or 0. */
static size_t number_end(gavel_text text, size_t start) {
    char before = start ? text.ptr[start - 1] : 0;
    bool may_be_signed = !is_alphanumeric(before) && !(before && strchr(")]}", before));
    size_t sign = may_be_signed ? minus(text, start) : 0;
    size_t end = start + sign;
    if (sign && at(text, end) == '$') end++;
    size_t whole = digits(text, end);
    bool may_begin_with_point = sign || !(is_alphanumeric(before) || before == '.');
    if (!whole && !(may_begin_with_point && at(text, end) == '.' && is_digit(at(text, end + 1)))) return 0;
    end += whole;
    if (whole >= 1 && whole <= 3) {
        while (at(text, end) == ',' && digits(text, end + 1) == 3) end += 4;
    }
    if (at(text, end) == '.' && is_digit(at(text, end + 1))) end += 1 + digits(text, end + 1);
    if (at(text, end) == 'e' || at(text, end) == 'E') {
        size_t exponent_sign = at(text, end + 1) == '+' || at(text, end + 1) == '-';
        size_t exponent = digits(text, end + 1 + exponent_sign);
        if (exponent) end += 1 + exponent_sign + exponent;
    }
    return end;
}

bool gavel_last_number(gavel_text text, double *number) {
    gavel_text last = {NULL, 0};
    for (size_t i = 0; i < text.len;) {
        size_t end = number_end(text, i);
        if (end) last = (gavel_text){text.ptr + i, end - i};
        i = end ? end : i + 1;
    }
    if (!last.ptr) return false;
    char *plain = gavel_alloc(last.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < last.len;) {
        size_t sign = minus(last, i);
        if (sign) {
            plain[len++] = '-';
        } else if (last.ptr[i] != ',' && last.ptr[i] != '$') {
            plain[len++] = last.ptr[i];
        }
        i += sign ? sign : 1;
    }
    return gavel_number((gavel_text){plain, len}, number);
}

typedef struct {
    /* Behind the brace. */
    size_t start;
    bool boxed;
} brace;

bool gavel_last_boxed(gavel_text text, gavel_text *contents) {
    static const char command[] = "\\boxed";
    brace *open = NULL;
    size_t depth = 0, capacity = 0, found = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\\') {
            /* The character behind it may have several bytes; none of them is a brace or a backslash. */
            i++;
        } else if (text.ptr[i] == '{') {
            if (depth == capacity) {
                size_t grown = capacity ? 2 * capacity : 16;
                brace *larger = gavel_alloc(grown * sizeof *larger);
                if (depth) memcpy(larger, open, depth * sizeof *larger);
                open = larger;
                capacity = grown;
            }
            gavel_text head = gavel_trim_end((gavel_text){text.ptr, i});
            size_t name = sizeof command - 1;
            bool boxed = head.len >= name && memcmp(head.ptr + head.len - name, command, name) == 0;
            open[depth++] = (brace){i + 1, boxed};
        } else if (text.ptr[i] == '}' && depth) {
            brace closed = open[--depth];
            if (closed.boxed && closed.start > found) {
                found = closed.start;
                *contents = gavel_trim((gavel_text){text.ptr + found, i - found});
            }
        }
    }
    return found != 0;
}

/* The last occurrence of `needle` that ends at or before `end`; false if there is none. */
static bool find_last(gavel_text text, size_t end, gavel_text needle, size_t *found) {
    if (!needle.len || needle.len > end) return false;
    for (size_t i = end - needle.len + 1; i-- > 0;) {
        if (memcmp(text.ptr + i, needle.ptr, needle.len) == 0) {
            *found = i;
            return true;
        }
    }
    return false;
}

bool gavel_last_tag(gavel_text text, const char *name, gavel_text *contents) {
    if (!*name) return false;
    gavel_text opening = gavel_str(gavel_concat("<", name, ">", NULL));
    gavel_text closing = gavel_str(gavel_concat("</", name, ">", NULL));
    size_t end, start;
    if (!find_last(text, text.len, closing, &end) || !find_last(text, end, opening, &start)) return false;
    start += opening.len;
    /* The first end behind it; there is one, at `end` at the latest. */
    size_t first = start;
    while (memcmp(text.ptr + first, closing.ptr, closing.len) != 0) first++;
    *contents = gavel_trim((gavel_text){text.ptr + start, first - start});
    return true;
}

bool gavel_after_last(gavel_text text, const char *prefix, gavel_text *rest) {
    gavel_text needle = gavel_str(prefix);
    size_t start;
    if (!find_last(text, text.len, needle, &start)) return false;
    start += needle.len;
    const char *line_end = memchr(text.ptr + start, '\n', text.len - start);
    size_t end = line_end ? (size_t)(line_end - text.ptr) : text.len;
    *rest = gavel_trim((gavel_text){text.ptr + start, end - start});
    return true;
}

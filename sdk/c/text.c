/* Text: see gavel.h. */

#include "gavel.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

gavel_text gavel_str(const char *text) {
    return (gavel_text){text, strlen(text)};
}

const char *gavel_concat(const char *first, ...) {
    va_list parts;
    size_t len = 0;
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *)) len += strlen(part);
    va_end(parts);
    char *joined = gavel_alloc(len + 1);
    char *end = joined;
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *)) {
        size_t part_len = strlen(part);
        memcpy(end, part, part_len);
        end += part_len;
    }
    va_end(parts);
    *end = 0;
    return joined;
}

const char *gavel_integer(int64_t number) {
    char *end = (char *)gavel_alloc(21) + 20, *digit = end;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *end = 0;
    do *--digit = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--digit = '-';
    return digit;
}

const char *gavel_c_str(gavel_text text) {
    char *copy = gavel_alloc(text.len + 1);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return copy;
}

bool gavel_equal(gavel_text a, gavel_text b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* The bytes of the white space (Unicode's White_Space) at the start of `text`, or 0. */
static size_t space_at_start(gavel_text text) {
    const unsigned char *p = (const unsigned char *)text.ptr;
    if (text.len >= 1 && ((p[0] >= 0x09 && p[0] <= 0x0d) || p[0] == 0x20)) return 1;
    if (text.len >= 2 && p[0] == 0xc2 && (p[1] == 0x85 || p[1] == 0xa0)) return 2;
    if (text.len < 3) return 0;
    uint32_t three = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    bool space = three == 0xe19a80 || (three >= 0xe28080 && three <= 0xe2808a) || three == 0xe280a8 ||
                 three == 0xe280a9 || three == 0xe280af || three == 0xe2819f || three == 0xe38080;
    return space ? 3 : 0;
}

gavel_text gavel_trim_end(gavel_text text) {
    while (text.len) {
        /* Where its last character begins. */
        size_t start = text.len - 1;
        while (start && ((unsigned char)text.ptr[start] & 0xc0) == 0x80) start--;
        if (space_at_start((gavel_text){text.ptr + start, text.len - start}) != text.len - start) break;
        text.len = start;
    }
    return text;
}

gavel_text gavel_trim(gavel_text text) {
    text = gavel_trim_end(text);
    for (size_t space; (space = space_at_start(text));) {
        text.ptr += space;
        text.len -= space;
    }
    return text;
}

bool gavel_number(gavel_text text, double *number) {
    text = gavel_trim(text);
    /* strtod also takes `inf`, `nan` and hexadecimal numbers, which are refused. */
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr("0123456789+-.eE", text.ptr[i]) || !text.ptr[i]) return false;
    }
    const char *copy = gavel_c_str(text);
    char *end;
    *number = strtod(copy, &end);
    /* A number that is too large is infinite: its difference to itself is NaN. */
    return text.len && end == copy + text.len && *number - *number == 0;
}

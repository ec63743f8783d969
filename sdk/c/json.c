/* Reads JSON in place: see gavel.h. */

#include "gavel.h"
#include <stdlib.h>
#include <string.h>

/* Deeper values are refused: reading one uses the stack. */
enum { DEEPEST = 128 };

/* Reads from `p`, never past `end`; a function returns NULL if the text is not JSON. */
static const char *value(const char *p, const char *end, int depth);

static const char *space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

static int hex(const char *p, const char *end) {
    int code = 0;
    for (int i = 0; i < 4; i++, p++) {
        if (p == end) return -1;
        char c = *p;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

static const char *string(const char *p, const char *end) {
    if (p == end || *p != '"') return NULL;
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) return NULL;
        if (*p != '\\') continue;
        if (++p == end || !*p || !strchr("\"\\/bfnrtu", *p)) return NULL;
        if (*p == 'u') {
            if (hex(p + 1, end) < 0) return NULL;
            p += 4;
        }
    }
    return p < end ? p + 1 : NULL;
}

static const char *some_digits(const char *p, const char *end) {
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p > start ? p : NULL;
}

static const char *number(const char *p, const char *end) {
    if (p < end && *p == '-') p++;
    p = p < end && *p == '0' ? p + 1 : some_digits(p, end);
    if (p && p < end && *p == '.') p = some_digits(p + 1, end);
    if (p && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        p = some_digits(p, end);
    }
    return p;
}

static const char *word(const char *p, const char *end, const char *expected) {
    size_t len = strlen(expected);
    return (size_t)(end - p) >= len && memcmp(p, expected, len) == 0 ? p + len : NULL;
}

/* One element of an array or an object: where its key (of an object) and its
 * value begin, and where the value ends. */
typedef struct {
    const char *key, *key_end, *value, *value_end;
} element;

/* Steps to the next element of the container that `*p` is in, past its bracket
 * or past the element before. False at its end, and also if it is not JSON:
 * then `*p` is NULL. */
static bool next(const char **p, const char *end, bool object, bool first, int depth, element *found) {
    const char *at = space(*p, end);
    *p = NULL;
    if (at == end) return false;
    if (*at == (object ? '}' : ']')) {
        *p = at + 1;
        return false;
    }
    if (!first) {
        if (*at != ',') return false;
        at = space(at + 1, end);
    }
    if (object) {
        found->key = at;
        found->key_end = at = string(at, end);
        if (!at) return false;
        at = space(at, end);
        if (at == end || *at != ':') return false;
        at = space(at + 1, end);
    }
    found->value = at;
    found->value_end = *p = value(at, end, depth + 1);
    return *p != NULL;
}

static const char *value(const char *p, const char *end, int depth) {
    if (p == end || depth > DEEPEST) return NULL;
    switch (*p) {
    case '"': return string(p, end);
    case 't': return word(p, end, "true");
    case 'f': return word(p, end, "false");
    case 'n': return word(p, end, "null");
    case '{':
    case '[': {
        bool object = *p++ == '{';
        element ignored;
        for (bool first = true; next(&p, end, object, first, depth, &ignored);) first = false;
        return p;
    }
    default: return number(p, end);
    }
}

static gavel_text between(const char *start, const char *end) {
    return (gavel_text){start, (size_t)(end - start)};
}

/* The value without white space around it; false if it is not a whole value. */
static bool whole(gavel_text json, gavel_text *found) {
    const char *end = json.ptr + json.len;
    const char *start = space(json.ptr, end);
    const char *stop = value(start, end, 0);
    if (!stop || space(stop, end) != end) return false;
    *found = between(start, stop);
    return true;
}

/* Walks over the elements of a container. Gives their number, and the one at
 * `index` in `found`. */
static bool walk(gavel_text json, char bracket, size_t index, size_t *count, element *found) {
    gavel_text container;
    if (!whole(json, &container) || *container.ptr != bracket) return false;
    const char *p = container.ptr + 1, *end = container.ptr + container.len;
    element one;
    *count = 0;
    for (bool first = true; next(&p, end, bracket == '{', first, 0, &one); first = false) {
        if ((*count)++ == index) *found = one;
    }
    return true;
}

bool gavel_json_valid(gavel_text json) {
    gavel_text found;
    return whole(json, &found);
}

bool gavel_json_count(gavel_text json, size_t *count) {
    element ignored;
    return walk(json, '{', SIZE_MAX, count, &ignored) || walk(json, '[', SIZE_MAX, count, &ignored);
}

bool gavel_json_item(gavel_text array, size_t index, gavel_text *found) {
    size_t count;
    element one;
    if (!walk(array, '[', index, &count, &one) || index >= count) return false;
    *found = between(one.value, one.value_end);
    return true;
}

bool gavel_json_key(gavel_text object, size_t index, gavel_text *key) {
    size_t count;
    element one;
    if (!walk(object, '{', index, &count, &one) || index >= count) return false;
    return gavel_json_string(between(one.key, one.key_end), key);
}

bool gavel_json_get(gavel_text object, const char *key, gavel_text *found) {
    gavel_text container;
    if (!whole(object, &container) || *container.ptr != '{') return false;
    const char *p = container.ptr + 1, *end = container.ptr + container.len;
    gavel_text wanted = gavel_str(key);
    bool there = false;
    element one;
    /* Of two members with the same key, the later one counts. */
    for (bool first = true; next(&p, end, true, first, 0, &one); first = false) {
        gavel_text name;
        if (gavel_json_string(between(one.key, one.key_end), &name) && gavel_equal(name, wanted)) {
            *found = between(one.value, one.value_end);
            there = true;
        }
    }
    return there;
}

bool gavel_json_bool(gavel_text json, bool *found) {
    gavel_text one;
    if (!whole(json, &one) || (*one.ptr != 't' && *one.ptr != 'f')) return false;
    *found = *one.ptr == 't';
    return true;
}

bool gavel_json_number(gavel_text json, double *found) {
    gavel_text one;
    if (!whole(json, &one) || (*one.ptr != '-' && (*one.ptr < '0' || *one.ptr > '9'))) return false;
    return gavel_number(one, found);
}

static char *utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

bool gavel_json_string(gavel_text json, gavel_text *text) {
    gavel_text one;
    if (!whole(json, &one) || *one.ptr != '"') return false;
    /* An escape is never shorter than its character. */
    char *decoded = gavel_alloc(one.len), *out = decoded;
    const char *end = one.ptr + one.len - 1;
    for (const char *p = one.ptr + 1; p < end; p++) {
        if (*p != '\\') {
            *out++ = *p;
            continue;
        }
        switch (*++p) {
        case 'b': *out++ = '\b'; break;
        case 'f': *out++ = '\f'; break;
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        case 'u': {
            uint32_t code = (uint32_t)hex(p + 1, end);
            p += 4;
            if (code >= 0xd800 && code < 0xdc00 && end - p > 6 && p[1] == '\\' && p[2] == 'u') {
                uint32_t low = (uint32_t)hex(p + 3, end);
                if (low >= 0xdc00 && low < 0xe000) {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    p += 6;
                }
            }
            /* Half of a surrogate pair is not a character. */
            out = utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
            break;
        }
        default: *out++ = *p;
        }
    }
    *out = 0;
    *text = between(decoded, out);
    return true;
}

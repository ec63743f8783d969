/* The exports of a taskset: see gavel.h. */

#ifdef GAVEL_EXPORT_TASKSET

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

struct gavel_row {
    /* The columns so far, as the inside of a JSON object. */
    char *json;
    size_t len, capacity;
    /* Why there is no row. */
    bool failed;
    uint8_t failure;
    char *why;
};

static void add(gavel_row *row, const char *bytes, size_t len) {
    if (row->len + len > row->capacity) {
        row->capacity = 2 * (row->len + len);
        row->json = realloc(row->json, row->capacity);
        if (!row->json) abort();
    }
    memcpy(row->json + row->len, bytes, len);
    row->len += len;
}

static void add_quoted(gavel_row *row, const char *text) {
    static const char hex[] = "0123456789abcdef";
    add(row, "\"", 1);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20) {
            const char escape[] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
            add(row, escape, sizeof escape);
        } else {
            if (byte == '"' || byte == '\\') add(row, "\\", 1);
            add(row, text, 1);
        }
    }
    add(row, "\"", 1);
}

static void add_name(gavel_row *row, const char *column) {
    if (row->len) add(row, ",", 1);
    add_quoted(row, column);
    add(row, ":", 1);
}

static void fail(gavel_row *row, uint8_t failure, const char *what) {
    if (row->failed) return;
    row->failed = true;
    row->failure = failure;
    row->why = strdup(what);
    if (!row->why) abort();
}

void gavel_row_text(gavel_row *row, const char *column, const char *text) {
    add_name(row, column);
    add_quoted(row, text);
}

void gavel_row_json(gavel_row *row, const char *column, const char *json) {
    if (!gavel_json_valid(gavel_str(json))) {
        fail(row, GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL, gavel_concat("the column `", column, "` is not JSON: ", json, NULL));
        return;
    }
    add_name(row, column);
    add(row, json, strlen(json));
}

void gavel_no_row(gavel_row *row, const char *what) {
    fail(row, GAVEL_PLUGIN_TYPES_FAILURE_INVALID_INPUT, what);
}

bool exports_gavel_plugin_taskset_len(uint64_t *ret) {
    bool ends = plugin_len(ret);
    gavel_free_call();
    return ends;
}

bool exports_gavel_plugin_taskset_get(uint64_t index, uint64_t seed, plugin_string_t *ret,
                                      exports_gavel_plugin_taskset_failure_t *err) {
    gavel_row row = {0};
    plugin_get(index, seed, &row);
    if (!row.len) fail(&row, GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL, "the plugin gave no column");
    gavel_free_call();
    if (row.failed) {
        free(row.json);
        err->tag = row.failure;
        /* The text lies at the same place in each case; the host frees it. */
        plugin_string_dup(&err->val.internal, row.why);
        free(row.why);
        return false;
    }
    plugin_string_t json = {malloc(row.len + 2), row.len + 2};
    if (!json.ptr) abort();
    json.ptr[0] = '{';
    memcpy(json.ptr + 1, row.json, row.len);
    json.ptr[row.len + 1] = '}';
    free(row.json);
    *ret = json;
    return true;
}

#endif

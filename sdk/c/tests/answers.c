/* Runs the lines of `testdata/answers.jsonl`, which it reads from standard
 * input, and reports those that fail. Needs no WebAssembly. */

#include "../gavel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *gavel_alloc(size_t size) {
    return malloc(size ? size : 1);
}

static bool run(gavel_text row) {
    gavel_text json, function, text, argument = {"", 0}, expect, found;
    double number, expected_number;
    if (!gavel_json_get(row, "function", &json) || !gavel_json_string(json, &function)) return false;
    if (!gavel_json_get(row, "text", &json) || !gavel_json_string(json, &text)) return false;
    if (gavel_json_get(row, "argument", &json)) gavel_json_string(json, &argument);
    if (!gavel_json_get(row, "expect", &expect)) return false;
    bool nothing = gavel_equal(expect, gavel_str("null"));

    if (gavel_equal(function, gavel_str("last_number"))) {
        if (!gavel_last_number(text, &number)) return nothing;
        return gavel_json_number(expect, &expected_number) && number == expected_number;
    }
    bool there = gavel_equal(function, gavel_str("last_boxed"))   ? gavel_last_boxed(text, &found)
                 : gavel_equal(function, gavel_str("last_tag"))   ? gavel_last_tag(text, argument.ptr, &found)
                 : gavel_equal(function, gavel_str("after_last")) ? gavel_after_last(text, argument.ptr, &found)
                                                                  : (abort(), false);
    gavel_text expected;
    return there ? gavel_json_string(expect, &expected) && gavel_equal(found, expected) : nothing;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0, failed = 0, rows = 0;
    for (ssize_t len; (len = getline(&line, &capacity, stdin)) > 0; rows++) {
        gavel_text row = {line, (size_t)len};
        if (!run(row)) {
            failed++;
            printf("%s", line);
        }
    }
    printf("%zu of %zu rows failed\n", failed, rows);
    return failed || rows < 40;
}

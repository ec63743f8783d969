/* Reads valid and invalid JSON. Needs no WebAssembly. */

#include "../gavel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *gavel_alloc(size_t size) {
    return malloc(size ? size : 1);
}

static int failed;

static void check(bool right, const char *what) {
    if (right) return;
    failed++;
    printf("%s\n", what);
}

/* A copy of the exact size: reading past its end is an error that a sanitizer sees. */
static gavel_text exact(const char *text) {
    gavel_text copy = {malloc(strlen(text)), strlen(text)};
    memcpy((char *)copy.ptr, text, copy.len);
    return copy;
}

int main(void) {
    static const char *const right[] = {
        "{}", "[]", " [1, -2.5e+3, 0] ", "\"a\\u00e9\\n\"", "true", "null", "-0.1E5", "{\"a\": {\"b\": [true, {}]}, \"c\": \"\"}",
    };
    static const char *const wrong[] = {
        "", " ", "{", "[", "]", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1",
        "-", "1e", "tru", "nul", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12", "\"a\nb\"", "1 1", "{} {}", "'a'", "NaN",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) check(gavel_json_valid(exact(right[i])), right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) check(!gavel_json_valid(exact(wrong[i])), wrong[i]);
    char deep[4096];
    memset(deep, '[', sizeof deep);
    check(!gavel_json_valid((gavel_text){deep, sizeof deep}), "endless brackets");

    gavel_text object = exact("{\"a\": 1, \"b\": [\"x\", -2.5, false], \"\\u0061b\": \"\\ud83d\\ude00\\ud800!\", \"a\": 3}");
    gavel_text found, item, text;
    double number;
    bool value = true;
    size_t count;
    check(gavel_json_get(object, "a", &found) && gavel_json_number(found, &number) && number == 3, "the later of two");
    check(gavel_json_get(object, "b", &found) && gavel_json_count(found, &count) && count == 3, "count");
    check(gavel_json_item(found, 0, &item) && gavel_json_string(item, &text) && gavel_equal(text, gavel_str("x")), "item 0");
    check(gavel_json_item(found, 1, &item) && gavel_json_number(item, &number) && number == -2.5, "item 1");
    check(gavel_json_item(found, 2, &item) && gavel_json_bool(item, &value) && !value, "item 2");
    check(!gavel_json_item(found, 3, &item), "no item 3");
    check(gavel_json_get(object, "ab", &found) && gavel_json_string(found, &text) &&
              gavel_equal(text, gavel_str("\xf0\x9f\x98\x80\xef\xbf\xbd!")),
          "escapes");
    check(!gavel_json_get(object, "c", &found), "no member");
    check(gavel_json_key(object, 2, &text) && gavel_equal(text, gavel_str("ab")), "key");
    check(!gavel_json_number(exact("\"1\""), &number) && !gavel_json_string(exact("1"), &text), "types");
    check(!gavel_json_bool(exact("null"), &value) && !gavel_json_number(exact("1e999"), &number), "no such value");
    check(!gavel_json_get(exact("[1]"), "a", &found) && !gavel_json_item(exact("{}"), 0, &found), "containers");
    printf("%d failed\n", failed);
    return failed != 0;
}

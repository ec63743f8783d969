/* The answers of a tool and of an agent: see gavel.h. */

#include "call.h"

#if defined(GAVEL_EXPORT_TOOL) || defined(GAVEL_EXPORT_AGENT)

void gavel_answer_text(gavel_answer *answer, const char *text) {
    answer->state = GAVEL_ANSWERED;
    answer->text = gavel_concat(text, NULL);
}

void gavel_answer_extra(gavel_answer *answer, const char *json) {
    answer->extra = gavel_concat(json, NULL);
}

static void fail(gavel_answer *answer, uint8_t failure, const char *what) {
    answer->state = GAVEL_FAILED;
    answer->failure = failure;
    answer->text = gavel_concat(what, NULL);
}

void gavel_answer_invalid_input(gavel_answer *answer, const char *what) {
    fail(answer, GAVEL_PLUGIN_TYPES_FAILURE_INVALID_INPUT, what);
}

void gavel_answer_unavailable(gavel_answer *answer, const char *what) {
    fail(answer, GAVEL_PLUGIN_TYPES_FAILURE_UNAVAILABLE, what);
}

void gavel_answer_internal(gavel_answer *answer, const char *what) {
    fail(answer, GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL, what);
}

bool gavel_end_answered(gavel_answer *answer, plugin_string_t *ret, gavel_plugin_types_failure_t *err) {
    if (answer->state == GAVEL_UNANSWERED) gavel_answer_internal(answer, "the plugin gave no answer");
    bool answered = answer->state == GAVEL_ANSWERED;
    if (!answered) err->tag = answer->failure;
    /* The text of a failure lies at the same place in each case; the host frees it. */
    plugin_string_dup(answered ? ret : &err->val.internal, answer->text);
    gavel_free_call();
    return answered;
}

#endif

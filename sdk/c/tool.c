/* The exports of a tool: see gavel.h. */

#ifdef GAVEL_EXPORT_TOOL

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

struct gavel_functions {
    exports_gavel_plugin_tool_list_tool_spec_t list;
};

struct gavel_answer {
    enum { UNSET, ANSWERED, FAILED } state;
    uint8_t failure;
    const char *text;
};

/* The state of a trajectory. */
struct exports_gavel_plugin_tool_session_t {
    void *state;
};

/* Text of the host with a NUL behind it, which lives until the call ends. */
static gavel_text kept(plugin_string_t *text) {
    char *block = gavel_alloc(text->len + 1);
    memcpy(block, text->ptr, text->len);
    block[text->len] = 0;
    gavel_text copy = {block, text->len};
    plugin_string_free(text);
    return copy;
}

void gavel_function(gavel_functions *functions, const char *name, const char *description, const char *parameters) {
    size_t count = functions->list.len;
    functions->list.ptr = realloc(functions->list.ptr, (count + 1) * sizeof *functions->list.ptr);
    if (!functions->list.ptr) abort();
    plugin_string_dup(&functions->list.ptr[count].name, name);
    plugin_string_dup(&functions->list.ptr[count].description, description);
    plugin_string_dup(&functions->list.ptr[count].parameters, parameters);
    functions->list.len++;
}

void gavel_answer_text(gavel_answer *answer, const char *text) {
    answer->state = ANSWERED;
    answer->text = gavel_concat(text, NULL);
}

static void fail(gavel_answer *answer, uint8_t failure, const char *what) {
    answer->state = FAILED;
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

/* Gives the failure to the host. */
static bool refuse(const gavel_answer *answer, exports_gavel_plugin_tool_failure_t *err) {
    err->tag = answer->failure;
    /* The text lies at the same place in each case; the host frees it. */
    plugin_string_dup(&err->val.internal, answer->text);
    gavel_free_call();
    return false;
}

void exports_gavel_plugin_tool_specs(exports_gavel_plugin_tool_list_tool_spec_t *ret) {
    gavel_functions functions = {0};
    plugin_functions(&functions);
    gavel_free_call();
    *ret = functions.list;
}

bool exports_gavel_plugin_tool_static_session_open(plugin_string_t *settings,
                                                   exports_gavel_plugin_tool_own_session_t *ret,
                                                   exports_gavel_plugin_tool_failure_t *err) {
    gavel_answer answer = {0};
    void *state = plugin_open(kept(settings), &answer);
    if (answer.state == FAILED) {
        free(state);
        return refuse(&answer, err);
    }
    gavel_free_call();
    exports_gavel_plugin_tool_session_t *session = malloc(sizeof *session);
    if (!session) abort();
    session->state = state;
    *ret = exports_gavel_plugin_tool_session_new(session);
    return true;
}

bool exports_gavel_plugin_tool_method_session_call(exports_gavel_plugin_tool_borrow_session_t self,
                                                   plugin_string_t *name, plugin_string_t *arguments,
                                                   plugin_string_t *ret, exports_gavel_plugin_tool_failure_t *err) {
    gavel_answer answer = {0};
    gavel_text function = kept(name);
    plugin_call(self->state, function.ptr, kept(arguments), &answer);
    if (answer.state == UNSET) gavel_answer_internal(&answer, "the plugin gave no answer");
    if (answer.state == FAILED) return refuse(&answer, err);
    plugin_string_dup(ret, answer.text);
    gavel_free_call();
    return true;
}

void exports_gavel_plugin_tool_session_destructor(exports_gavel_plugin_tool_session_t *session) {
    free(session->state);
    free(session);
}

#endif

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

/* The state of a trajectory. */
struct exports_gavel_plugin_tool_session_t {
    void *state;
};

void gavel_function(gavel_functions *functions, const char *name, const char *description, const char *parameters) {
    size_t count = functions->list.len;
    functions->list.ptr = realloc(functions->list.ptr, (count + 1) * sizeof *functions->list.ptr);
    if (!functions->list.ptr) abort();
    plugin_string_dup(&functions->list.ptr[count].name, name);
    plugin_string_dup(&functions->list.ptr[count].description, description);
    plugin_string_dup(&functions->list.ptr[count].parameters, parameters);
    functions->list.len++;
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
    void *state = plugin_open(gavel_kept(*settings), &answer);
    if (answer.state == GAVEL_FAILED) {
        free(state);
        return gavel_end_answered(&answer, NULL, err);
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
    gavel_text function = gavel_kept(*name);
    plugin_call(self->state, function.ptr, gavel_kept(*arguments), &answer);
    return gavel_end_answered(&answer, ret, err);
}

/* A tool without a state to report does not define it. */
__attribute__((weak)) void plugin_finish(void *state, gavel_answer *answer);

bool exports_gavel_plugin_tool_method_session_finish(exports_gavel_plugin_tool_borrow_session_t self,
                                                     plugin_option_string_t *ret,
                                                     exports_gavel_plugin_tool_failure_t *err) {
    gavel_answer answer = {0};
    if (plugin_finish) plugin_finish(self->state, &answer);
    ret->is_some = answer.state == GAVEL_ANSWERED;
    if (answer.state != GAVEL_UNANSWERED) return gavel_end_answered(&answer, &ret->val, err);
    gavel_free_call();
    return true;
}

void exports_gavel_plugin_tool_session_destructor(exports_gavel_plugin_tool_session_t *session) {
    free(session->state);
    free(session);
}

#endif

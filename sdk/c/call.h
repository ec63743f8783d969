/* Declarations that the files of the SDK share; not for plugins. */

#ifndef GAVEL_CALL_H
#define GAVEL_CALL_H

#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>

/* Frees what the call has allocated. */
void gavel_free_call(void);

/* Text of the host with a NUL behind it, which lives until the call ends. */
gavel_text gavel_kept(plugin_string_t text);

/* Text that the host reads during a call of it. */
plugin_string_t gavel_lent(gavel_text text);

/* Memory that the host frees with an answer. */
static inline void *gavel_given(size_t size) {
    void *block = malloc(size ? size : 1);
    if (!block) abort();
    return block;
}

#if defined(GAVEL_EXPORT_TOOL) || defined(GAVEL_EXPORT_AGENT)

struct gavel_answer {
    enum { GAVEL_UNANSWERED, GAVEL_ANSWERED, GAVEL_FAILED } state;
    uint8_t failure;
    const char *text;
    /* The JSON object beside the answer of an agent, if there is one. */
    const char *extra;
};

/* Ends the call: gives the answer to the host in `ret`, or false and the failure in `err`. */
bool gavel_end_answered(gavel_answer *answer, plugin_string_t *ret, gavel_plugin_types_failure_t *err);

#endif

#if defined(GAVEL_EXPORT_REWARD) || defined(GAVEL_EXPORT_JUDGER) || defined(GAVEL_EXPORT_AGENT)
/* Joins the texts of a message and frees it. */
gavel_message gavel_joined(gavel_plugin_types_message_t *message);

/* The messages of a list, which is freed. */
const gavel_message *gavel_all_joined(gavel_plugin_types_message_t *messages, size_t count);

/* The functions of a list, which is freed. */
const gavel_tool_function *gavel_all_kept(gavel_plugin_types_tool_spec_t *specs, size_t count);
#endif

#endif

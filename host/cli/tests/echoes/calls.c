/* An agent that calls `add` itself, and returns an object beside its answer. */

#include "gavel.h"

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "agent-c", .version = "0.1.0"};
    return true;
}

void plugin_run(gavel_task task, gavel_answer *answer) {
    gavel_conversation conversation;
    gavel_opening opening = {.task = &task};
    if (!gavel_conversation_open(&opening, &conversation, answer)) return;
    gavel_generate(conversation, NULL);
    gavel_tool_call calls[2] = {
        {gavel_str("1"), gavel_str("add"), gavel_str("{\"by\": 2}")},
        {gavel_str("2"), gavel_str("add"), gavel_str("{\"by\": 3}")},
    };
    gavel_tool_answer answers[2];
    gavel_call_tools(calls, 2, answers);
    gavel_answer_text(answer, answers[1].text.ptr);
    gavel_answer_extra(answer, "{\"plan\": [1.5, null]}");
}

/* An agent that answers, checks its answer, and answers again where it was wrong. */

#include "gavel.h"

/* How often the policy checks its answer, at most. */
static int checks;

/* Once, before any attempt; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    double given = gavel_param_number(params, "checks", 1);
    if (!(given >= 0 && given <= 10)) return gavel_refuse(params, "`checks` must be from 0 to 10");
    checks = (int)given;
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true};
    return true;
}

/* What the policy says, after the calls of tools that it asks for; false if it cannot. */
static bool say(gavel_conversation conversation, gavel_text *said, gavel_answer *answer) {
    for (;;) {
        gavel_turn turn = gavel_generate(conversation, NULL);
        *said = turn.text;
        if (turn.status != GAVEL_TURN) {
            gavel_answer_internal(answer, turn.text.ptr);
            return false;
        }
        if (turn.calls_count + turn.malformed_count == 0) return true;
        if (!gavel_conversation_answer(conversation, turn, answer)) return false;
    }
}

/* Once an attempt. The answer is the response that rewards read. */
void plugin_run(gavel_task task, gavel_answer *answer) {
    gavel_opening opening = {.task = &task};
    opening.functions = gavel_tools(&opening.functions_count);
    gavel_conversation conversation;
    gavel_text said, checked;
    if (!gavel_conversation_open(&opening, &conversation, answer)) return;
    if (!say(conversation, &said, answer)) return;
    gavel_message check = {
        GAVEL_USER,
        gavel_str("Check your answer. If it is right, say RIGHT, and nothing else. If not, answer again."),
    };
    for (int i = 0; i < checks; i++) {
        if (!gavel_conversation_append(conversation, &check, 1, answer)) return;
        if (!say(conversation, &checked, answer)) return;
        if (gavel_equal(gavel_trim(checked), gavel_str("RIGHT"))) break;
        said = checked;
    }
    gavel_answer_text(answer, said.ptr);
}

/* An agent that asks for everything that an agent in C can ask for, and repeats what it was answered. */

#include "gavel.h"

static const char *said = "";

/* Adds to what it was answered. */
static void say(gavel_text text) {
    said = gavel_concat(said, *said ? " | " : "", gavel_c_str(text), NULL);
}

static void say_number(int64_t number) {
    say(gavel_str(gavel_integer(number)));
}

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "agent-c", .version = "0.1.0", .pure = true};
    return true;
}

void plugin_run(gavel_task task, gavel_answer *answer) {
    said = "";
    gavel_text source = gavel_str("none");
    gavel_agent_data_source(task, &source);
    size_t count;
    const gavel_message *prompt = gavel_agent_prompt(task, &count);
    say(gavel_agent_task_id(task)), say(source), say(gavel_agent_settings(task)), say(prompt[count - 1].text);
    say_number(gavel_agent_group_index(task));

    /* A function that no policy can call. */
    gavel_tool_function odd = {gavel_str("a b"), gavel_str(""), gavel_str("{}")};
    gavel_conversation first, second;
    gavel_opening opening = {.task = &task, .functions = &odd, .functions_count = 1, .speaker = "first"};
    say_number(gavel_conversation_open(&opening, &first, answer));
    opening.functions = gavel_tools(&opening.functions_count);
    gavel_message more = {GAVEL_USER, gavel_str("And?")};
    opening.messages = &more, opening.count = 1;
    if (!gavel_conversation_open(&opening, &first, answer)) return;

    gavel_turn turn = gavel_generate(first, "{\"stop\": [\"!\"], \"max_tokens\": 20}");
    say(turn.text), say_number(turn.tokens), say_number(turn.finish_reason == GAVEL_STOP);
    say_number(gavel_tokens_left(first));
    gavel_turn again = gavel_generate(first, NULL);
    say_number(again.status == GAVEL_TURN_INVALID), say(again.text);
    gavel_tool_answer answers[2];
    gavel_call_tools(turn.calls, turn.calls_count, answers);
    for (size_t i = 0; i < turn.calls_count; i++) say(answers[i].name), say(answers[i].text);
    if (!gavel_conversation_append_answers(first, answers, turn.calls_count, answer)) return;
    if (!gavel_conversation_fork(first, "second", &second, answer)) return;
    if (!gavel_conversation_append(second, &more, 1, answer)) return;
    gavel_turn turns[2];
    gavel_generate_all((gavel_conversation[]){first, second}, 2, NULL, turns);
    for (size_t i = 0; i < 2; i++) say_number(turns[i].status), say(turns[i].text);
    gavel_answer_text(answer, said);
}

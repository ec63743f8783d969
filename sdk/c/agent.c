/* The export of an agent, its policy and its tools: see gavel.h. */

#ifdef GAVEL_EXPORT_AGENT

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

/* ---- The task ---- */

static gavel_plugin_tasks_borrow_task_t of(gavel_task task) {
    return (gavel_plugin_tasks_borrow_task_t){task.handle};
}

gavel_text gavel_agent_task_id(gavel_task task) {
    plugin_string_t text;
    gavel_plugin_tasks_method_task_id(of(task), &text);
    return gavel_kept(text);
}

bool gavel_agent_data_source(gavel_task task, gavel_text *source) {
    plugin_string_t text;
    if (!gavel_plugin_tasks_method_task_data_source(of(task), &text)) return false;
    *source = gavel_kept(text);
    return true;
}

uint32_t gavel_agent_group_index(gavel_task task) {
    return gavel_plugin_tasks_method_task_group_index(of(task));
}

const gavel_message *gavel_agent_prompt(gavel_task task, size_t *count) {
    gavel_plugin_tasks_list_message_t list;
    gavel_plugin_tasks_method_task_prompt(of(task), &list);
    *count = list.len;
    return gavel_all_joined(list.ptr, list.len);
}

gavel_text gavel_agent_settings(gavel_task task) {
    plugin_string_t text;
    gavel_plugin_tasks_method_task_settings(of(task), &text);
    return gavel_kept(text);
}

/* ---- Conversations ---- */

static gavel_plugin_policy_own_conversation_t *conversations;
static size_t conversations_count;

static gavel_plugin_policy_borrow_conversation_t of_conversation(gavel_conversation conversation) {
    return (gavel_plugin_policy_borrow_conversation_t){conversation.handle};
}

/* Keeps a conversation until the call ends. */
static gavel_conversation keep(gavel_plugin_policy_own_conversation_t own) {
    conversations = realloc(conversations, (conversations_count + 1) * sizeof *conversations);
    if (!conversations) abort();
    conversations[conversations_count++] = own;
    return (gavel_conversation){gavel_plugin_policy_borrow_conversation(own).__handle};
}

static bool refused(gavel_plugin_policy_error_t *error, gavel_answer *answer) {
    /* The text lies at the same place in each case. */
    gavel_answer_internal(answer, gavel_kept(error->val.exhausted).ptr);
    return false;
}

/* A message of text alone, whose part is at `part`. */
static gavel_plugin_types_message_t lend(gavel_role role, gavel_text text, gavel_plugin_types_content_part_t *part) {
    gavel_plugin_types_message_t message = {.role = (gavel_plugin_types_role_t)role};
    part->tag = GAVEL_PLUGIN_TYPES_CONTENT_PART_TEXT;
    part->val.text = gavel_lent(text);
    message.content.ptr = part;
    message.content.len = 1;
    return message;
}

static gavel_plugin_policy_list_message_t lend_all(const gavel_message *messages, size_t count) {
    gavel_plugin_policy_list_message_t list = {gavel_alloc(count * sizeof *list.ptr), count};
    gavel_plugin_types_content_part_t *parts = gavel_alloc(count * sizeof *parts);
    for (size_t i = 0; i < count; i++) list.ptr[i] = lend(messages[i].role, messages[i].text, &parts[i]);
    return list;
}

bool gavel_conversation_open(const gavel_opening *opening, gavel_conversation *conversation, gavel_answer *answer) {
    gavel_plugin_tasks_list_message_t prompt = {NULL, 0};
    if (opening->task) gavel_plugin_tasks_method_task_prompt(of(*opening->task), &prompt);
    gavel_plugin_policy_list_message_t more = lend_all(opening->messages, opening->count), all;
    all.len = prompt.len + more.len;
    all.ptr = gavel_alloc(all.len * sizeof *all.ptr);
    if (prompt.len) memcpy(all.ptr, prompt.ptr, prompt.len * sizeof *prompt.ptr);
    if (more.len) memcpy(all.ptr + prompt.len, more.ptr, more.len * sizeof *more.ptr);
    size_t count = opening->functions_count;
    gavel_plugin_policy_list_tool_spec_t functions = {gavel_alloc(count * sizeof *functions.ptr), count};
    for (size_t i = 0; i < count; i++) {
        const gavel_tool_function *function = &opening->functions[i];
        functions.ptr[i].name = gavel_lent(function->name);
        functions.ptr[i].description = gavel_lent(function->description);
        functions.ptr[i].parameters = gavel_lent(function->parameters);
    }
    plugin_string_t speaker = gavel_lent(gavel_str(opening->speaker ? opening->speaker : ""));
    gavel_plugin_policy_own_conversation_t own;
    gavel_plugin_policy_error_t error;
    bool opened = gavel_plugin_policy_static_conversation_open(&speaker, &all, &functions, &own, &error);
    gavel_plugin_tasks_list_message_free(&prompt);
    if (!opened) return refused(&error, answer);
    *conversation = keep(own);
    return true;
}

static bool append(gavel_conversation conversation, gavel_plugin_policy_list_message_t list, gavel_answer *answer) {
    gavel_plugin_policy_error_t error;
    if (gavel_plugin_policy_method_conversation_append(of_conversation(conversation), &list, &error)) return true;
    return refused(&error, answer);
}

bool gavel_conversation_append(gavel_conversation conversation, const gavel_message *messages, size_t count,
                               gavel_answer *answer) {
    return append(conversation, lend_all(messages, count), answer);
}

bool gavel_conversation_append_answers(gavel_conversation conversation, const gavel_tool_answer *answers, size_t count,
                                       gavel_answer *answer) {
    gavel_plugin_policy_list_message_t list = {gavel_alloc(count * sizeof *list.ptr), count};
    gavel_plugin_types_content_part_t *parts = gavel_alloc(count * sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        list.ptr[i] = lend(GAVEL_TOOL, answers[i].text, &parts[i]);
        list.ptr[i].tool_call_id.is_some = list.ptr[i].name.is_some = true;
        list.ptr[i].tool_call_id.val = gavel_lent(answers[i].id);
        list.ptr[i].name.val = gavel_lent(answers[i].name);
    }
    return append(conversation, list, answer);
}

bool gavel_conversation_fork(gavel_conversation conversation, const char *speaker, gavel_conversation *fork,
                             gavel_answer *answer) {
    plugin_string_t given = gavel_lent(gavel_str(speaker));
    gavel_plugin_policy_own_conversation_t own;
    gavel_plugin_policy_error_t error;
    if (!gavel_plugin_policy_method_conversation_fork(of_conversation(conversation), &given, &own, &error)) {
        return refused(&error, answer);
    }
    *fork = keep(own);
    return true;
}

uint32_t gavel_tokens_left(gavel_conversation conversation) {
    return gavel_plugin_policy_method_conversation_tokens_left(of_conversation(conversation));
}

/* ---- Turns ---- */

/* Takes the calls out of a message. */
static const gavel_tool_call *take_calls(gavel_plugin_types_message_t *message, size_t *count) {
    *count = message->tool_calls.len;
    gavel_tool_call *calls = gavel_alloc(*count * sizeof *calls);
    for (size_t i = 0; i < *count; i++) {
        gavel_plugin_types_tool_call_t *call = &message->tool_calls.ptr[i];
        calls[i] = (gavel_tool_call){gavel_kept(call->id), gavel_kept(call->name), gavel_kept(call->arguments)};
    }
    if (*count) free(message->tool_calls.ptr);
    message->tool_calls.len = 0;
    return calls;
}

static gavel_turn read(gavel_plugin_policy_own_turn_t own) {
    gavel_plugin_policy_borrow_turn_t turn = gavel_plugin_policy_borrow_turn(own);
    gavel_turn read = {
        .status = GAVEL_TURN,
        .finish_reason = (gavel_finish_reason)gavel_plugin_policy_method_turn_finish_reason(turn),
        .tokens = gavel_plugin_policy_method_turn_tokens(turn),
    };
    gavel_plugin_types_message_t message;
    gavel_plugin_policy_method_turn_message(turn, &message);
    read.calls = take_calls(&message, &read.calls_count);
    read.text = gavel_joined(&message).text;
    plugin_list_string_t malformed;
    gavel_plugin_policy_method_turn_malformed_calls(turn, &malformed);
    gavel_text *what = gavel_alloc(malformed.len * sizeof *what);
    for (size_t i = 0; i < malformed.len; i++) what[i] = gavel_kept(malformed.ptr[i]);
    if (malformed.len) free(malformed.ptr);
    read.malformed = what;
    read.malformed_count = malformed.len;
    gavel_plugin_policy_turn_drop_own(own);
    return read;
}

void gavel_generate_all(const gavel_conversation *all, size_t count, const char *options, gavel_turn *turns) {
    gavel_plugin_policy_list_borrow_conversation_t asked = {gavel_alloc(count * sizeof *asked.ptr), count};
    for (size_t i = 0; i < count; i++) asked.ptr[i] = of_conversation(all[i]);
    plugin_string_t given = gavel_lent(gavel_str(options ? options : ""));
    gavel_plugin_policy_list_result_own_turn_error_t received;
    gavel_plugin_policy_generate(&asked, &given, &received);
    for (size_t i = 0; i < count; i++) {
        if (i >= received.len) {
            turns[i] = (gavel_turn){.status = GAVEL_TURN_INVALID, .text = gavel_str("the host gave no answer")};
        } else if (received.ptr[i].is_err) {
            gavel_plugin_policy_error_t error = received.ptr[i].val.err;
            bool exhausted = error.tag == GAVEL_PLUGIN_POLICY_ERROR_EXHAUSTED;
            gavel_turn_status status = exhausted ? GAVEL_TURN_EXHAUSTED : GAVEL_TURN_INVALID;
            turns[i] = (gavel_turn){.status = status, .text = gavel_kept(error.val.exhausted)};
        } else {
            turns[i] = read(received.ptr[i].val.ok);
        }
    }
    if (received.len) free(received.ptr);
}

gavel_turn gavel_generate(gavel_conversation conversation, const char *options) {
    gavel_turn turn;
    gavel_generate_all(&conversation, 1, options, &turn);
    return turn;
}

/* ---- Tools ---- */

const gavel_tool_function *gavel_tools(size_t *count) {
    gavel_plugin_tools_list_tool_spec_t list;
    gavel_plugin_tools_specs(&list);
    *count = list.len;
    return gavel_all_kept(list.ptr, list.len);
}

void gavel_call_tools(const gavel_tool_call *calls, size_t count, gavel_tool_answer *answers) {
    gavel_plugin_tools_list_tool_call_t asked = {gavel_alloc(count * sizeof *asked.ptr), count};
    for (size_t i = 0; i < count; i++) {
        asked.ptr[i].id = gavel_lent(calls[i].id);
        asked.ptr[i].name = gavel_lent(calls[i].name);
        asked.ptr[i].arguments = gavel_lent(calls[i].arguments);
    }
    gavel_plugin_tools_list_message_t received;
    gavel_plugin_tools_call(&asked, &received);
    for (size_t i = 0; i < count; i++) answers[i] = (gavel_tool_answer){calls[i].id, calls[i].name, {"", 0}};
    for (size_t i = 0; i < received.len; i++) {
        gavel_text text = gavel_joined(&received.ptr[i]).text;
        if (i < count) answers[i].text = text;
    }
    if (received.len) free(received.ptr);
}

bool gavel_conversation_answer(gavel_conversation conversation, gavel_turn turn, gavel_answer *answer) {
    if (turn.calls_count) {
        gavel_tool_answer *answers = gavel_alloc(turn.calls_count * sizeof *answers);
        gavel_call_tools(turn.calls, turn.calls_count, answers);
        if (!gavel_conversation_append_answers(conversation, answers, turn.calls_count, answer)) return false;
    }
    if (!turn.malformed_count) return true;
    gavel_message *messages = gavel_alloc(turn.malformed_count * sizeof *messages);
    for (size_t i = 0; i < turn.malformed_count; i++) {
        const char *what = gavel_c_str(turn.malformed[i]);
        gavel_text text = gavel_str(gavel_concat("error: the call cannot be read: ", what, NULL));
        messages[i] = (gavel_message){.role = GAVEL_TOOL, .text = text};
    }
    return gavel_conversation_append(conversation, messages, turn.malformed_count, answer);
}

/* ---- The export ---- */

bool exports_gavel_plugin_agent_run(exports_gavel_plugin_agent_borrow_task_t task, exports_gavel_plugin_agent_answer_t *ret,
                                    exports_gavel_plugin_agent_failure_t *err) {
    gavel_answer answer = {0};
    plugin_run((gavel_task){task.__handle}, &answer);
    for (size_t i = 0; i < conversations_count; i++) gavel_plugin_policy_conversation_drop_own(conversations[i]);
    conversations_count = 0;
    gavel_plugin_tasks_task_drop_borrow(task);
    ret->extra.is_some = answer.extra && answer.state == GAVEL_ANSWERED;
    if (ret->extra.is_some) plugin_string_dup(&ret->extra.val, answer.extra);
    return gavel_end_answered(&answer, &ret->response, err);
}

#endif

// An agent that answers, checks its answer, and answers again where it was wrong.

#include "gavel.h"
#include <optional>
#include <string>
#include <string_view>

namespace {

// How often the policy checks its answer, at most.
int checks;

constexpr const char *CHECK =
    "Check your answer. If it is right, say RIGHT, and nothing else. If not, answer again.";

// What the policy says, after the calls of tools that it asks for; nothing if it cannot.
std::optional<std::string> say(gavel_conversation conversation, gavel_answer *answer) {
    for (;;) {
        const gavel_turn turn = gavel_generate(conversation, nullptr);
        if (turn.status != GAVEL_TURN) {
            gavel_answer_internal(answer, turn.text.ptr);
            return std::nullopt;
        }
        if (turn.calls_count + turn.malformed_count == 0) return std::string(turn.text.ptr, turn.text.len);
        if (!gavel_conversation_answer(conversation, turn, answer)) return std::nullopt;
    }
}

bool is_right(const std::string &checked) {
    const gavel_text trimmed = gavel_trim({checked.data(), checked.size()});
    return std::string_view(trimmed.ptr, trimmed.len) == "RIGHT";
}

}  // namespace

// Once, before any attempt; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    const double given = gavel_param_number(params, "checks", 1);
    if (!(given >= 0 && given <= 10)) return gavel_refuse(params, "`checks` must be from 0 to 10");
    checks = static_cast<int>(given);
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 0};
    return true;
}

// Once an attempt. The answer is the response that rewards read.
void plugin_run(gavel_task task, gavel_answer *answer) {
    gavel_opening opening{};
    opening.task = &task;
    opening.functions = gavel_tools(&opening.functions_count);
    gavel_conversation conversation;
    if (!gavel_conversation_open(&opening, &conversation, answer)) return;
    std::optional<std::string> said = say(conversation, answer);
    if (!said) return;
    const gavel_message check = {GAVEL_USER, gavel_str(CHECK)};
    for (int i = 0; i < checks; i++) {
        if (!gavel_conversation_append(conversation, &check, 1, answer)) return;
        std::optional<std::string> checked = say(conversation, answer);
        if (!checked) return;
        if (is_right(*checked)) break;
        said = std::move(checked);
    }
    gavel_answer_text(answer, said->c_str());
}

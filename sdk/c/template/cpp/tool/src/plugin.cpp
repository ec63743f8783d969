// A tool with which the policy guesses a number that the row sets.

#include "gavel.h"
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

namespace {

// How many guesses the policy has.
int guesses;

// What the calls of a trajectory share. It is freed, not destroyed, so it has only plain values.
struct Game {
    double number;
    int left;

    void guess(double guess, gavel_answer *answer) {
        if (left == 0) return gavel_answer_invalid_input(answer, "no guess is left");
        left--;
        gavel_answer_text(answer, guess == number ? "right" : guess < number ? "higher" : "lower");
    }
};

constexpr const char *GUESS = R"({
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 100, "description": "The guess."}},
    "required": ["number"],
    "additionalProperties": false
})";
constexpr const char *NOTHING = R"({"type": "object", "additionalProperties": false})";

}  // namespace

// Once, before any trajectory; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    const double given = gavel_param_number(params, "guesses", 10);
    if (!(given >= 1 && given <= 1e6)) return gavel_refuse(params, "`guesses` must be 1 or more");
    guesses = static_cast<int>(given);
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = false, .min = 0, .max = 0};
    return true;
}

void plugin_functions(gavel_functions *functions) {
    gavel_function(functions, "guess",
                   "Guesses the number. Returns \"right\", or whether the number is \"higher\" or \"lower\".", GUESS);
    gavel_function(functions, "guesses_left", "Returns how many guesses are left.", NOTHING);
}

// Once a trajectory. The policy does not see the settings.
void *plugin_open(gavel_text settings, gavel_answer *answer) {
    gavel_text json;
    double number;
    if (!gavel_json_get(settings, "number", &json) || !gavel_json_number(json, &number)) {
        gavel_answer_invalid_input(answer, "the row sets no `number`");
        return nullptr;
    }
    void *room = std::malloc(sizeof(Game));
    if (!room) std::abort();
    return new (room) Game{number, guesses};
}

// Once a call. The arguments fit the function's schema.
void plugin_call(void *state, const char *function, gavel_text arguments, gavel_answer *answer) {
    auto &game = *static_cast<Game *>(state);
    if (std::string_view(function) == "guess") {
        gavel_text json;
        double number = 0;
        if (gavel_json_get(arguments, "number", &json)) gavel_json_number(json, &number);
        game.guess(number, answer);
    } else {
        gavel_answer_text(answer, std::to_string(game.left).c_str());
    }
}

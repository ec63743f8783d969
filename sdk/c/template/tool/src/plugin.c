/* A tool with which the policy guesses a number that the row sets. */

#include "gavel.h"
#include <stdlib.h>
#include <string.h>

/* How many guesses the policy has. */
static int guesses;

/* What the calls of a trajectory share. */
typedef struct {
    double number;
    int left;
} game;

/* Once, before any trajectory; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    double given = gavel_param_number(params, "guesses", 10);
    if (!(given >= 1 && given <= 1e6)) return gavel_refuse(params, "`guesses` must be 1 or more");
    guesses = (int)given;
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0"};
    return true;
}

void plugin_functions(gavel_functions *functions) {
    gavel_function(functions, "guess",
                   "Guesses the number. Returns \"right\", or whether the number is \"higher\" or \"lower\".",
                   "{\"type\": \"object\", \"properties\": {\"number\": {\"type\": \"integer\", \"minimum\": 1, "
                   "\"maximum\": 100, \"description\": \"The guess.\"}}, \"required\": [\"number\"], "
                   "\"additionalProperties\": false}");
    gavel_function(functions, "guesses_left", "Returns how many guesses are left.",
                   "{\"type\": \"object\", \"additionalProperties\": false}");
}

/* Once a trajectory. The policy does not see the settings. */
void *plugin_open(gavel_text settings, gavel_answer *answer) {
    gavel_text json;
    double number;
    if (!gavel_json_get(settings, "number", &json) || !gavel_json_number(json, &number)) {
        gavel_answer_invalid_input(answer, "the row sets no `number`");
        return NULL;
    }
    game *state = malloc(sizeof *state);
    if (!state) abort();
    *state = (game){number, guesses};
    return state;
}

static void guess(game *state, double number, gavel_answer *answer) {
    if (state->left == 0) {
        gavel_answer_invalid_input(answer, "no guess is left");
        return;
    }
    state->left--;
    gavel_answer_text(answer, number == state->number ? "right" : number < state->number ? "higher" : "lower");
}

/* Once a call. The arguments fit the function's schema. */
void plugin_call(void *state, const char *function, gavel_text arguments, gavel_answer *answer) {
    gavel_text json;
    double number = 0;
    if (strcmp(function, "guess") == 0) {
        if (gavel_json_get(arguments, "number", &json)) gavel_json_number(json, &number);
        guess(state, number, answer);
    } else {
        gavel_answer_text(answer, gavel_integer(((const game *)state)->left));
    }
}

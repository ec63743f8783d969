/* A tool that adds, and reports the sum in which it ended. */

#include "gavel.h"
#include <stdlib.h>

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "tool-c", .version = "0.1.0"};
    return true;
}

void plugin_functions(gavel_functions *functions) {
    gavel_function(functions, "add", "Adds.",
                   "{\"type\": \"object\", \"properties\": {\"by\": {\"type\": \"integer\"}}, \"required\": [\"by\"]}");
}

void *plugin_open(gavel_text settings, gavel_answer *answer) {
    (void)settings, (void)answer;
    return calloc(1, sizeof(double));
}

void plugin_call(void *state, const char *function, gavel_text arguments, gavel_answer *answer) {
    (void)function;
    double by = 0, *sum = state;
    gavel_text json;
    if (gavel_json_get(arguments, "by", &json)) gavel_json_number(json, &by);
    *sum += by;
    gavel_answer_text(answer, gavel_integer((int64_t)*sum));
}

void plugin_finish(void *state, gavel_answer *answer) {
    gavel_answer_text(answer, gavel_concat("{\"sum\": ", gavel_integer((int64_t) * (double *)state), "}", NULL));
}

/* Gives two reasons to draw nothing, each in the same buffer. */

#include "gavel.h"
#include <string.h>

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "refuses", .version = "1", .pure = true};
    return true;
}

void plugin_sample(const gavel_draw_request *request, gavel_draws *draws) {
    (void)request;
    char why[32];
    strcpy(why, "the first reason");
    gavel_no_draws(draws, why);
    strcpy(why, "another reason");
    gavel_no_draws(draws, why);
}

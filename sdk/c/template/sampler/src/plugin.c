/* Draws the rows in order and leaves out those that were solved when they were
 * last drawn, whose groups it refuses. */

#include "gavel.h"
#include <string.h>

/* What the state has for a row. */
#define SOLVED '1'
#define UNSOLVED '0'

/* The mean reward from which a group has solved its task. */
static double solving;

/* Once, before any step; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    solving = gavel_param_number(params, "solved", 1);
    if (!(solving > 0)) return gavel_refuse(params, "`solved` must be above 0");
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true};
    return true;
}

/* For the next tasks of a run, and for groups that ended, before they are trained on. */
void plugin_sample(const gavel_draw_request *request, gavel_draws *draws) {
    size_t rows = (size_t)request->rows;
    char *solved = gavel_alloc(rows);
    memset(solved, UNSOLVED, rows);
    memcpy(solved, request->state.ptr, request->state.len < rows ? request->state.len : rows);
    for (size_t i = 0; i < request->ended_count; i++) {
        const gavel_ended_group *group = &request->ended[i];
        double reward;
        if (!gavel_mean_reward(group, &reward)) continue;
        solved[group->row] = reward >= solving ? SOLVED : UNSOLVED;
        if (reward >= solving) gavel_refuse_group(draws, group->draw, "solved");
    }
    /* The rows that are not solved; all rows once there are none. */
    size_t *left = gavel_alloc(rows * sizeof *left), count = 0;
    for (size_t row = 0; row < rows; row++) {
        if (solved[row] != SOLVED) left[count++] = row;
    }
    for (size_t row = 0; !count && row < rows; row++) left[row] = row;
    if (!count) count = rows;
    for (uint32_t i = 0; i < request->wanted; i++) gavel_draw(draws, left[(request->next_draw + i) % count]);
    gavel_next_state(draws, solved, rows);
}

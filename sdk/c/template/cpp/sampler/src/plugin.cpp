// Draws the rows in order and leaves out those that were solved when they were
// last drawn, whose groups it refuses.

#include "gavel.h"
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

// What the state has for a row.
constexpr char is_solved = '1', is_unsolved = '0';

// The mean reward from which a group has solved its task.
double solving;

// The rows that are not solved; all rows once there are none.
std::vector<uint64_t> unsolved(const std::string &solved) {
    std::vector<uint64_t> rows(solved.size());
    std::iota(rows.begin(), rows.end(), 0);
    auto left = rows;
    std::erase_if(left, [&](uint64_t row) { return solved[row] == is_solved; });
    return left.empty() ? rows : left;
}

}  // namespace

// Once, before any step; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    solving = gavel_param_number(params, "solved", 1);
    if (!(solving > 0)) return gavel_refuse(params, "`solved` must be above 0");
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 0};
    return true;
}

// For the next tasks of a run, and for groups that ended, before they are trained on.
void plugin_sample(const gavel_draw_request *request, gavel_draws *draws) {
    std::string solved(request->state.ptr, request->state.len);
    solved.resize(request->rows, is_unsolved);
    for (const auto &group : std::span(request->ended, request->ended_count)) {
        double reward;
        if (!gavel_mean_reward(&group, &reward)) continue;
        solved[group.row] = reward >= solving ? is_solved : is_unsolved;
        if (reward >= solving) gavel_refuse_group(draws, group.draw, "solved");
    }
    const auto left = unsolved(solved);
    for (uint32_t i = 0; i < request->wanted; i++) gavel_draw(draws, left[(request->next_draw + i) % left.size()]);
    gavel_next_state(draws, solved.data(), solved.size());
}

#pragma once

// What operations on the rows of tensors have in common.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "vectors.h"

#include <algorithm>
#include <cstdint>

inline int64_t rows_worth_a_thread(int64_t width) {
  return std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, width));
}

// Runs `body` over rows of `width` numbers, on as many threads as they are
// worth.
template <typename Body> void each_row(int64_t rows, int64_t width, const Body &body) {
  at::parallel_for(0, rows, rows_worth_a_thread(width), [&](int64_t start, int64_t end) {
    for (auto row = start; row < end; ++row) body(row);
  });
}

inline bool wants_gradient(const at::Tensor &x) { return at::GradMode::is_enabled() && x.requires_grad(); }

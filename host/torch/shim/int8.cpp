// Products with matrices of 8 bits, without gradients. A row of a matrix has one
// scale; numbers that are multiplied with it, and sums, have 32 bits.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "guarded.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// The rows of a matrix that lie beside each other, a number of each after
// another, so that one vector has numbers of different rows.
constexpr int64_t PANEL = 32;
// The rows of the other factor that a weight is multiplied with once it is read.
constexpr int64_t MOST_ROWS = 12;
// The products that are worth a thread.
constexpr int64_t PRODUCTS = 4 * GRAIN;

// A vector may lie anywhere.
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef int8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));

// Fills one panel: the rows from `rows` on, of which there are `count`, and 0.
PORTABLE void pack_panel(const float *rows, int64_t count, int64_t width, int8_t *packed, float *scales,
                         int8_t *row_of_panel) {
  for (int64_t lane = 0; lane < PANEL; ++lane) {
    float largest = 0;
    const float *row = rows + std::min(lane, count - 1) * width;
#pragma omp simd reduction(max : largest)
    for (int64_t k = 0; k < width; ++k) largest = std::fabs(row[k]) > largest ? std::fabs(row[k]) : largest;
    // A number that is not finite makes all products of its row so.
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < width; ++k) sum += row[k] * 0.0f;
    const bool is_padding = lane >= count;
    scales[lane] = is_padding ? 0.0f : largest / 127.0f + sum;
    const float factor = is_padding || largest == 0.0f ? 0.0f : 127.0f / largest;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      // Adding 1.5 · 2^23 rounds to an integer.
      const float rounded = (row[k] * factor + 12582912.0f) - 12582912.0f;
      const float bounded = rounded > -127.0f ? rounded : -127.0f;
      row_of_panel[k] = static_cast<int8_t>(static_cast<int32_t>(bounded < 127.0f ? bounded : 127.0f));
    }
    for (int64_t k = 0; k < width; ++k) packed[k * PANEL + lane] = row_of_panel[k];
  }
}

// A panel times `ROWS` rows of `x`, with `added`, of which the next row begins
// after `next_added` numbers, if there is any.
template <int64_t ROWS>
INLINE void multiply_rows(const float *x, int64_t width, const int8_t *panel, const float *scales, const float *added,
                          int64_t next_added, float *out, int64_t outs, int64_t lanes) {
  Floats sums[ROWS][2];
  for (int64_t row = 0; row < ROWS; ++row) sums[row][0] = sums[row][1] = Floats{};
  for (int64_t k = 0; k < width; ++k) {
    const Bytes *bytes = reinterpret_cast<const Bytes *>(panel + k * PANEL);
    const Floats first = __builtin_convertvector(__builtin_convertvector(bytes[0], Ints), Floats);
    const Floats second = __builtin_convertvector(__builtin_convertvector(bytes[1], Ints), Floats);
#pragma GCC unroll 12
    for (int64_t row = 0; row < ROWS; ++row) {
      const float factor = x[row * width + k];
      sums[row][0] += first * factor;
      sums[row][1] += second * factor;
    }
  }
  const Floats *scale = reinterpret_cast<const Floats *>(scales);
  for (int64_t row = 0; row < ROWS; ++row) {
    float numbers[PANEL];
    Floats *at = reinterpret_cast<Floats *>(numbers);
    at[0] = sums[row][0] * scale[0];
    at[1] = sums[row][1] * scale[1];
    float *to = out + row * outs;
    if (added) {
      const float *other = added + row * next_added;
      for (int64_t lane = 0; lane < lanes; ++lane) to[lane] = numbers[lane] + other[lane];
    } else {
      std::copy_n(numbers, lanes, to);
    }
  }
}

PORTABLE void multiply(const float *x, int64_t rows, int64_t width, const int8_t *panel, const float *scales,
                       const float *added, int64_t next_added, float *out, int64_t outs, int64_t lanes) {
#define ROWS_AT_ONCE(N)                                                                                                \
  for (; rows >= N; rows -= N, x += N * width, out += N * outs, added = added ? added + N * next_added : nullptr)      \
  multiply_rows<N>(x, width, panel, scales, added, next_added, out, outs, lanes)
  ROWS_AT_ONCE(12);
  ROWS_AT_ONCE(8);
  ROWS_AT_ONCE(4);
  ROWS_AT_ONCE(2);
  ROWS_AT_ONCE(1);
#undef ROWS_AT_ONCE
}

} // namespace

extern "C" {

// `weight` is `[outs, width]`. `out` gets `[panels, width, PANEL]` of 8 bits,
// and the scales, `[panels * PANEL]`.
char *gavel_int8_pack(const at::Tensor *weight, at::Tensor **out) {
  return guarded([&] {
    const auto outs = weight->size(0), width = weight->size(1), panels = (outs + PANEL - 1) / PANEL;
    const auto is_float = weight->scalar_type() == at::kFloat && weight->is_contiguous();
    auto packed = at::empty({panels, width, PANEL}, weight->options().dtype(at::kChar).requires_grad(false));
    auto scales = at::empty({panels * PANEL}, weight->options().dtype(at::kFloat).requires_grad(false));
    auto *to = packed.mutable_data_ptr<int8_t>();
    auto *to_scales = scales.mutable_data_ptr<float>();
    at::parallel_for(0, panels, std::max<int64_t>(1, GRAIN / (PANEL * width)), [&](int64_t start, int64_t end) {
      at::NoGradGuard guard;
      std::vector<int8_t> row_of_panel(width);
      for (auto panel = start; panel < end; ++panel) {
        const auto first = panel * PANEL, count = std::min(PANEL, outs - first);
        auto rows = weight->narrow(0, first, count);
        if (!is_float) rows = rows.to(at::kFloat).contiguous();
        pack_panel(rows.const_data_ptr<float>(), count, width, to + first * width, to_scales + first,
                   row_of_panel.data());
      }
    });
    out[0] = new at::Tensor(packed);
    out[1] = new at::Tensor(scales);
  });
}

// `x`, `[rows, width]`, times a packed matrix, plus `added`, `[outs]` or `[rows,
// outs]`, if it is not null. All have 32 bits, and numbers lie in order.
char *gavel_int8_product(const at::Tensor *x, const at::Tensor *packed, const at::Tensor *scales, int64_t outs,
                         const at::Tensor *added, at::Tensor **out) {
  return guarded([&] {
    const auto rows = x->size(0), width = x->size(1), panels = packed->size(0);
    auto product = at::empty({rows, outs}, x->options().requires_grad(false));
    const auto *from = x->const_data_ptr<float>(), *factors = scales->const_data_ptr<float>();
    const auto *numbers = packed->const_data_ptr<int8_t>();
    const auto *others = added ? added->const_data_ptr<float>() : nullptr;
    const auto next = added && added->dim() == 2 ? outs : 0;
    auto *to = product.mutable_data_ptr<float>();
    const auto of_thread = std::max<int64_t>(1, PRODUCTS / std::max<int64_t>(1, rows * width * PANEL));
    at::parallel_for(0, panels, of_thread, [&](int64_t start, int64_t end) {
      for (auto panel = start; panel < end; ++panel) {
        const auto first = panel * PANEL;
        multiply(from, rows, width, numbers + first * width, factors + first, others ? others + first : nullptr, next,
                 to + first, outs, std::min(PANEL, outs - first));
      }
    });
    *out = new at::Tensor(product);
  });
}
}

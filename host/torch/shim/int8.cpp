// Products with matrices of 8 bits, without gradients. A row of a matrix has one
// scale; numbers that are multiplied with it, and sums, have 32 bits.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "guarded.h"
#include "vectors.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WITH_AVX512 __attribute__((target("avx512f")))
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

// The rows of a matrix that lie beside each other, a number of each after
// another, so that one vector has numbers of different rows.
constexpr int64_t PANEL = 32;
// The products that are worth a thread.
constexpr int64_t PRODUCTS = 4 * GRAIN;

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

// Writes the sums of a row times their scales, with `added`, if there is any.
INLINE void finish_row(const float *sums, const float *scales, const float *added, float *out, int64_t lanes) {
  if (added) {
    for (int64_t lane = 0; lane < lanes; ++lane) out[lane] = sums[lane] * scales[lane] + added[lane];
  } else {
    for (int64_t lane = 0; lane < lanes; ++lane) out[lane] = sums[lane] * scales[lane];
  }
}

// A panel times the rows of `x`, with `added`, of which the next row begins
// after `next` numbers.
PORTABLE void multiply(const float *x, int64_t rows, int64_t width, const int8_t *panel, const float *scales,
                       const float *added, int64_t next, float *out, int64_t outs, int64_t lanes) {
  for (int64_t row = 0; row < rows; ++row) {
    float sums[PANEL] = {};
    for (int64_t k = 0; k < width; ++k) {
      const float factor = x[row * width + k];
#pragma omp simd
      for (int64_t lane = 0; lane < PANEL; ++lane) sums[lane] += factor * static_cast<float>(panel[k * PANEL + lane]);
    }
    finish_row(sums, scales, added ? added + row * next : nullptr, out + row * outs, lanes);
  }
}

#ifdef WITH_AVX512
// The same with registers of 512 bits, which GCC's vectoriser does not use for
// conversions. The sums of several rows stay in registers, so that a weight is
// read and converted once for all of them.
template <int64_t... ROW>
WITH_AVX512 INLINE void multiply_rows(std::integer_sequence<int64_t, ROW...>, const float *x, int64_t width,
                                      const int8_t *panel, const float *scales, const float *added, int64_t next,
                                      float *out, int64_t outs, int64_t lanes) {
  __m512 first[sizeof...(ROW)] = {}, second[sizeof...(ROW)] = {};
  for (int64_t k = 0; k < width; ++k) {
    const auto *bytes = reinterpret_cast<const __m128i *>(panel + k * PANEL);
    const __m512 weights = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
    const __m512 others = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes + 1)));
    ((first[ROW] += weights * x[ROW * width + k], second[ROW] += others * x[ROW * width + k]), ...);
  }
  float sums[PANEL];
  ((_mm512_storeu_ps(sums, first[ROW]), _mm512_storeu_ps(sums + 16, second[ROW]),
    finish_row(sums, scales, added ? added + ROW * next : nullptr, out + ROW * outs, lanes)),
   ...);
}

WITH_AVX512 void multiply_wide(const float *x, int64_t rows, int64_t width, const int8_t *panel, const float *scales,
                               const float *added, int64_t next, float *out, int64_t outs, int64_t lanes) {
#define ROWS_AT_ONCE(N)                                                                                                \
  for (; rows >= N; rows -= N, x += N * width, out += N * outs, added = added ? added + N * next : nullptr)            \
  multiply_rows(std::make_integer_sequence<int64_t, N>(), x, width, panel, scales, added, next, out, outs, lanes)
  ROWS_AT_ONCE(12);
  ROWS_AT_ONCE(8);
  ROWS_AT_ONCE(4);
  ROWS_AT_ONCE(2);
  ROWS_AT_ONCE(1);
#undef ROWS_AT_ONCE
}
#endif

// The version for this processor.
decltype(&multiply) chosen() {
#ifdef WITH_AVX512
  if (__builtin_cpu_supports("avx512f")) return multiply_wide;
#endif
  return multiply;
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
    static const auto multiply_panel = chosen();
    at::parallel_for(0, panels, of_thread, [&](int64_t start, int64_t end) {
      for (auto panel = start; panel < end; ++panel) {
        const auto first = panel * PANEL;
        multiply_panel(from, rows, width, numbers + first * width, factors + first, others ? others + first : nullptr, next,
                 to + first, outs, std::min(PANEL, outs - first));
      }
    });
    *out = new at::Tensor(product);
  });
}
}

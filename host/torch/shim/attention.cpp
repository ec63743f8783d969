// Attention of one query a row to the keys and values of the row's tokens in a cache, each row with its own length. The
// Rust side ensures shapes, strides and kinds.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "guarded.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

// Tokens that are read together.
constexpr int64_t BLOCK = 4;

INLINE float power_of_e(float x) { return exponential(x); }
INLINE double power_of_e(double x) { return std::exp(x); }

// The keys or values of `BLOCK` tokens in the kind of sums, in `space` unless they have it.
template <typename T, typename Sum>
INLINE void widened(const T *from, int64_t stride, int64_t width, int64_t count, Sum *space, const Sum *(&rows)[BLOCK]) {
  for (int64_t j = 0; j < BLOCK; ++j) {
    // Beyond the last token the block repeats it, and nothing uses it.
    const T *row = from + std::min(j, count - 1) * stride;
    if constexpr (std::is_same_v<T, Sum>) {
      rows[j] = row;
    } else {
      Sum *to = space + j * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = static_cast<Sum>(row[i]);
      rows[j] = to;
    }
  }
}

// A head of keys and values, which `group` query heads share: `length` tokens that are `stride` numbers apart. `space`
// has room for `group * (length + 2 * width) + BLOCK * width` numbers.
template <typename T, typename Sum>
INLINE void attend_head(const T *query, const T *keys, const T *values, int64_t length, int64_t stride, int64_t group,
                        int64_t width, Sum scale, Sum *space, T *out) {
  Sum *const scores = space, *const scaled = scores + group * length, *const sums = scaled + group * width,
             *const wide = sums + group * width;
  for (int64_t i = 0; i < group * width; ++i) {
    scaled[i] = static_cast<Sum>(query[i]) * scale;
    sums[i] = 0;
  }
  const Sum *rows[BLOCK];
  for (int64_t t = 0; t < length; t += BLOCK) {
    const int64_t count = std::min(BLOCK, length - t);
    widened(keys + t * stride, stride, width, count, wide, rows);
    for (int64_t g = 0; g < group; ++g) {
      const Sum *q = scaled + g * width, *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
      Sum products[BLOCK] = {0, 0, 0, 0};
      Sum first = 0, second = 0, third = 0, fourth = 0;
#pragma omp simd reduction(+ : first, second, third, fourth)
      for (int64_t i = 0; i < width; ++i) {
        first += q[i] * a[i];
        second += q[i] * b[i];
        third += q[i] * c[i];
        fourth += q[i] * d[i];
      }
      products[0] = first, products[1] = second, products[2] = third, products[3] = fourth;
      for (int64_t j = 0; j < count; ++j) scores[g * length + t + j] = products[j];
    }
  }
  for (int64_t g = 0; g < group; ++g) {
    Sum *const own = scores + g * length;
    Sum largest = own[0], total = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t t = 0; t < length; ++t) largest = std::max(largest, own[t]);
#pragma omp simd reduction(+ : total)
    for (int64_t t = 0; t < length; ++t) {
      own[t] = power_of_e(own[t] - largest);
      total += own[t];
    }
    const Sum share = Sum(1) / total;
#pragma omp simd
    for (int64_t t = 0; t < length; ++t) own[t] *= share;
  }
  for (int64_t t = 0; t < length; t += BLOCK) {
    const int64_t count = std::min(BLOCK, length - t);
    widened(values + t * stride, stride, width, count, wide, rows);
    for (int64_t g = 0; g < group; ++g) {
      const Sum *own = scores + g * length + t, *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
      Sum *sum = sums + g * width;
      const Sum first = own[0], second = count > 1 ? own[1] : 0, third = count > 2 ? own[2] : 0,
                fourth = count > 3 ? own[3] : 0;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) sum[i] += first * a[i] + second * b[i] + third * c[i] + fourth * d[i];
    }
  }
  for (int64_t i = 0; i < group * width; ++i) out[i] = static_cast<T>(sums[i]);
}

PORTABLE void attend_one(const float *query, const float *keys, const float *values, int64_t length, int64_t stride,
                         int64_t group, int64_t width, float scale, float *space, float *out) {
  attend_head(query, keys, values, length, stride, group, width, scale, space, out);
}

PORTABLE void attend_one(const double *query, const double *keys, const double *values, int64_t length, int64_t stride,
                         int64_t group, int64_t width, double scale, double *space, double *out) {
  attend_head(query, keys, values, length, stride, group, width, scale, space, out);
}

PORTABLE void attend_one(const at::BFloat16 *query, const at::BFloat16 *keys, const at::BFloat16 *values,
                         int64_t length, int64_t stride, int64_t group, int64_t width, float scale, float *space,
                         at::BFloat16 *out) {
  attend_head(query, keys, values, length, stride, group, width, scale, space, out);
}

PORTABLE void attend_one(const at::Half *query, const at::Half *keys, const at::Half *values, int64_t length,
                         int64_t stride, int64_t group, int64_t width, float scale, float *space, at::Half *out) {
  attend_head(query, keys, values, length, stride, group, width, scale, space, out);
}

// A row's tokens in the cache; the last is the query's own.
struct Row {
  int64_t start, length, first;

  Row(int64_t start, int64_t length, int64_t window)
      : start(start), length(length), first(window > 0 ? std::max<int64_t>(0, length - window) : 0) {}
};

template <typename T, typename Sum>
void attend(const at::Tensor &query, const at::Tensor &keys, const at::Tensor &values, const at::Tensor &starts,
            const at::Tensor &lengths, int64_t window, double scale, at::Tensor &out) {
  const auto rows = query.size(0), heads = query.size(1), width = query.size(2), kv_heads = keys.size(1);
  const auto group = heads / kv_heads, stride = kv_heads * width;
  const auto *from = query.const_data_ptr<T>(), *key = keys.const_data_ptr<T>(), *value = values.const_data_ptr<T>();
  const auto *start = starts.const_data_ptr<int64_t>(), *length = lengths.const_data_ptr<int64_t>();
  auto *to = out.mutable_data_ptr<T>();
  // The tokens that are read before each row, by which rows are divided among threads.
  std::vector<int64_t> before(rows + 1, 0);
  int64_t longest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const Row own(start[row], length[row], window);
    before[row + 1] = before[row] + own.length - own.first;
    longest = std::max(longest, own.length - own.first);
  }
  const int64_t total = before[rows] * kv_heads;
  const int64_t numbers = total * group * width;
  const int64_t threads = std::clamp<int64_t>(numbers / GRAIN, 1, at::get_num_threads());
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    std::vector<Sum> space(group * (longest + 2 * width) + BLOCK * width);
    const int64_t from_token = total * begin / threads, to_token = total * end / threads;
    for (int64_t row = 0; row < rows; ++row) {
      const Row own(start[row], length[row], window);
      const auto tokens = own.length - own.first;
      for (int64_t head = 0; head < kv_heads; ++head) {
        // Each head of a row belongs to the thread in whose part it begins.
        const auto at = before[row] * kv_heads + head * tokens;
        if (at < from_token || at >= to_token) continue;
        const auto place = (own.start + own.first) * stride + head * width;
        const auto query_head = row * heads * width + head * group * width;
        attend_one(from + query_head, key + place, value + place, tokens, stride, group, width,
                   static_cast<Sum>(scale), space.data(), to + query_head);
      }
    }
  });
}

} // namespace

extern "C" {

// `query` is `[rows, heads, width]`, `keys` and `values` are `[places, kv_heads, width]`, `starts` and `lengths` are
// `[rows]`, all contiguous. A window of 0 is none.
char *gavel_attend_last(const at::Tensor *query, const at::Tensor *keys, const at::Tensor *values,
                        const at::Tensor *starts, const at::Tensor *lengths, int64_t window, double scale,
                        at::Tensor **result) {
  return guarded([&] {
    auto out = at::empty_like(*query);
    switch (query->scalar_type()) {
    case at::kDouble:
      attend<double, double>(*query, *keys, *values, *starts, *lengths, window, scale, out);
      break;
    case at::kBFloat16:
      attend<at::BFloat16, float>(*query, *keys, *values, *starts, *lengths, window, scale, out);
      break;
    case at::kHalf:
      attend<at::Half, float>(*query, *keys, *values, *starts, *lengths, window, scale, out);
      break;
    default:
      attend<float, float>(*query, *keys, *values, *starts, *lengths, window, scale, out);
    }
    *result = new at::Tensor(out);
  });
}

// Flash attention on a GPU, in 16 bits. `query` is `[queries, heads, width]`, the queries of row after row; `keys` and
// `values` are `[places, kv_heads, width]`. In 32-bit integers: `first_queries`, `[rows + 1]`, has the number of queries
// before each row and the number of all; `starts`, `[rows + 1]`, the place of each row's first key, and a last number;
// `lengths`, `[rows]`, the keys of each row. Without `lengths`, a row's keys end where those of the next begin, and
// gradients flow. The last query of a row sees all of them, the one before it all but the last, and so on.
char *gavel_flash_attention(const at::Tensor *query, const at::Tensor *keys, const at::Tensor *values,
                            const at::Tensor *first_queries, const at::Tensor *starts, const at::Tensor *lengths,
                            int64_t most_queries, int64_t most_keys, int64_t window, double scale,
                            at::Tensor **result) {
  return guarded([&] {
    std::optional<c10::SymInt> left, right;
    if (window > 0) left = c10::SymInt(window - 1), right = c10::SymInt(0);
    const auto used = lengths ? std::optional<at::Tensor>(*lengths) : std::nullopt;
    const auto found = at::_flash_attention_forward_symint(*query, *keys, *values, *first_queries, *starts, most_queries,
                                                           most_keys, 0.0, true, false, scale, left, right, used,
                                                           std::nullopt);
    *result = new at::Tensor(std::get<0>(found));
  });
}
}

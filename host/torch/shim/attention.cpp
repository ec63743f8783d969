// Attention of rows of different lengths: on the CPU of one query a row to the keys and values of the row's tokens in a
// cache, where the Rust side ensures shapes, strides and kinds; and flash attention on a GPU.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "guarded.h"
#include "rows.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Tokens that are read together.
constexpr int64_t TOKEN_BLOCK = 4;

INLINE float power_of_e(float x) { return exponential(x); }
INLINE double power_of_e(double x) { return std::exp(x); }

// The keys or values of `TOKEN_BLOCK` tokens in the kind of sums, in `space` unless they have it.
template <typename T, typename Sum>
INLINE void widened(const T *from, int64_t stride, int64_t width, int64_t count, Sum *space,
                    const Sum *(&rows)[TOKEN_BLOCK]) {
  for (int64_t j = 0; j < TOKEN_BLOCK; ++j) {
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
// has room for `group * (length + 2 * width) + TOKEN_BLOCK * width` numbers.
template <typename T, typename Sum>
INLINE void attend_head(const T *query, const T *keys, const T *values, int64_t length, int64_t stride, int64_t group,
                        int64_t width, Sum scale, Sum *space, T *out) {
  Sum *const scores = space, *const scaled = scores + group * length, *const sums = scaled + group * width,
             *const wide = sums + group * width;
  for (int64_t i = 0; i < group * width; ++i) {
    scaled[i] = static_cast<Sum>(query[i]) * scale;
    sums[i] = 0;
  }
  const Sum *rows[TOKEN_BLOCK];
  for (int64_t t = 0; t < length; t += TOKEN_BLOCK) {
    const int64_t count = std::min(TOKEN_BLOCK, length - t);
    widened(keys + t * stride, stride, width, count, wide, rows);
    for (int64_t g = 0; g < group; ++g) {
      const Sum *q = scaled + g * width, *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
      Sum products[TOKEN_BLOCK] = {0, 0, 0, 0};
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
  for (int64_t t = 0; t < length; t += TOKEN_BLOCK) {
    const int64_t count = std::min(TOKEN_BLOCK, length - t);
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
    std::vector<Sum> space(group * (longest + 2 * width) + TOKEN_BLOCK * width);
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

// Rows of queries and the keys that each attends to: all, or, if it is causal, as many as its place in a row.
struct Part {
  // 32-bit integers, `[rows + 1]`: the number of queries or keys before each row, and of all.
  at::Tensor first_queries, first_keys;
  int64_t most_queries, most_keys;
  bool is_causal;
  double scale;

  int64_t rows() const { return first_queries.size(0) - 1; }
};

// `out` is `[queries, heads, width]`, `lse`, the logarithms of the sums of e to the scores, `[heads, queries]`. Without
// dropout nothing reads the others, which flash attention passes on to its gradient.
struct Attended {
  at::Tensor out, lse, state, unused;
};

// Of queries, keys and values.
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// What a row has of `x`.
at::Tensor of_row(const at::Tensor &x, const at::Tensor &first, int64_t row) {
  const auto *firsts = first.const_data_ptr<int32_t>();
  return x.narrow(0, firsts[row], firsts[row + 1] - firsts[row]);
}

at::Tensor for_each_head(const at::Tensor &x, int64_t heads) { return x.repeat_interleave(heads / x.size(1), 1); }

// `[heads, queries, keys]` of `[queries, heads, width]` and `[keys, heads, width]`.
at::Tensor scores_of(const at::Tensor &query, const at::Tensor &keys, const Part &part) {
  auto scores = query.transpose(0, 1).matmul(keys.permute({1, 2, 0})).mul_(part.scale);
  if (part.is_causal) {
    const auto later = at::ones({query.size(0), keys.size(0)}, query.options().dtype(at::kBool)).triu(1);
    scores.masked_fill_(later, -std::numeric_limits<double>::infinity());
  }
  return scores;
}

Attended attend_by_definition(const at::Tensor &query, const at::Tensor &keys, const at::Tensor &values,
                              const Part &part) {
  const auto heads = query.size(1);
  const auto all_keys = for_each_head(keys, heads), all_values = for_each_head(values, heads);
  Attended found;
  found.out = at::empty(query.sizes(), query.options());
  found.lse = at::empty({heads, query.size(0)}, query.options());
  for (int64_t row = 0; row < part.rows(); ++row) {
    const auto scores =
        scores_of(of_row(query, part.first_queries, row), of_row(all_keys, part.first_keys, row), part);
    const auto lse = scores.logsumexp(-1);
    const auto value = of_row(all_values, part.first_keys, row).transpose(0, 1);
    const auto out = scores.sub(lse.unsqueeze(-1)).exp_().matmul(value);
    of_row(found.out, part.first_queries, row).copy_(out.transpose(0, 1));
    of_row(found.lse.t(), part.first_queries, row).copy_(lse.t());
  }
  return found;
}

Gradients go_back_by_definition(const at::Tensor &gradient, const at::Tensor &query, const at::Tensor &keys,
                                const at::Tensor &values, const Attended &found, const Part &part) {
  const auto heads = query.size(1);
  const auto all_keys = for_each_head(keys, heads), all_values = for_each_head(values, heads);
  const auto sums = gradient.mul(found.out).sum(-1);
  const auto for_query = at::zeros(query.sizes(), query.options());
  const auto for_keys = at::zeros(all_keys.sizes(), keys.options());
  const auto for_values = at::zeros(all_values.sizes(), values.options());
  for (int64_t row = 0; row < part.rows(); ++row) {
    const auto of_queries = [&](const at::Tensor &x) { return of_row(x, part.first_queries, row).transpose(0, 1); };
    const auto of_keys = [&](const at::Tensor &x) { return of_row(x, part.first_keys, row).transpose(0, 1); };
    const auto scores =
        scores_of(of_row(query, part.first_queries, row), of_row(all_keys, part.first_keys, row), part);
    const auto probabilities = scores.sub(of_queries(found.lse.t()).unsqueeze(-1)).exp_();
    const auto for_out = of_queries(gradient);
    const auto for_scores = for_out.matmul(of_keys(all_values).transpose(1, 2))
                                .sub_(of_queries(sums).unsqueeze(-1))
                                .mul_(probabilities)
                                .mul_(part.scale);
    of_queries(for_query).copy_(for_scores.matmul(of_keys(all_keys)));
    of_keys(for_keys).copy_(for_scores.transpose(1, 2).matmul(of_queries(query)));
    of_keys(for_values).copy_(probabilities.transpose(1, 2).matmul(for_out));
  }
  const auto of_keys = [&](const at::Tensor &x) {
    return x.view({x.size(0), keys.size(1), heads / keys.size(1), x.size(2)}).sum(2);
  };
  return {for_query, of_keys(for_keys), of_keys(for_values)};
}

// On the CPU by definition: libtorch has no flash attention of such rows there, and tests need none.
Attended attend_part(const at::Tensor &query, const at::Tensor &keys, const at::Tensor &values, const Part &part) {
  if (query.is_cpu()) return attend_by_definition(query, keys, values, part);
  const auto found =
      at::_flash_attention_forward(query, keys, values, part.first_queries, part.first_keys, part.most_queries,
                                   part.most_keys, 0.0, part.is_causal, false, part.scale);
  return {std::get<0>(found), std::get<1>(found), std::get<2>(found), std::get<3>(found)};
}

// `found` may be what the queries found in this part and others: the probabilities of keys, e to the score less the
// log-sum-exp, and the products of outputs and their gradients are then those of the whole.
Gradients go_back(const at::Tensor &gradient, const at::Tensor &query, const at::Tensor &keys,
                  const at::Tensor &values, const Attended &found, const Part &part) {
  if (query.is_cpu()) return go_back_by_definition(gradient, query, keys, values, found, part);
  return at::_flash_attention_backward(gradient, query, keys, values, found.out, found.lse, part.first_queries,
                                       part.first_keys, part.most_queries, part.most_keys, 0.0, part.is_causal,
                                       found.state, found.unused, part.scale);
}

// Adds what the same queries found in other keys, in place; in the kind of log-sum-exps, 32 bits on a GPU.
void merge(const at::Tensor &out, const at::Tensor &lse, const Attended &other) {
  const auto both = at::logaddexp(lse, other.lse);
  const auto weight = [&](const at::Tensor &of) { return of.sub(both).exp_().t().unsqueeze(-1); };
  out.copy_(other.out.mul(weight(other.lse)).addcmul_(out, weight(lse)));
  lse.copy_(both);
}

// Rows of which some follow a prompt. The first `keys` tokens are the prompts that are followed, the last `queries` the
// rows that follow: all after the first prompt, then all after the second, and so on.
struct SharedRows {
  // `[rows + 1]`, as in `Part`.
  at::Tensor starts;
  // `[prompts + 1]`, as in `Part`.
  at::Tensor first_queries, first_keys;
  int64_t longest, most_queries, most_keys, queries, keys;
  double scale;

  // Each row by itself.
  Part own() const { return {starts, starts, at_least_two(longest), longest, true, scale}; }

  // All rows that follow a prompt, as one row, and the prompt.
  Part prompts() const { return {first_queries, first_keys, at_least_two(most_queries), most_keys, false, scale}; }

  at::Tensor of_followers(const at::Tensor &x, int64_t dim = 0) const {
    return x.narrow(dim, x.size(dim) - queries, queries);
  }

  at::Tensor of_prompts(const at::Tensor &x) const { return x.narrow(0, 0, keys); }

  // For one query a row, libtorch takes a way that is meant for decoding.
  static int64_t at_least_two(int64_t most) { return std::max<int64_t>(most, 2); }
};

// Attention of each row to itself and to the prompt that it follows. There are no second derivatives.
struct SharedAttention : Function<SharedAttention> {
  static Attended compute(const at::Tensor &query, const at::Tensor &keys, const at::Tensor &values,
                          const SharedRows &rows) {
    const auto found = attend_part(query, keys, values, rows.own());
    const auto in_prompts =
        attend_part(rows.of_followers(query), rows.of_prompts(keys), rows.of_prompts(values), rows.prompts());
    merge(rows.of_followers(found.out), rows.of_followers(found.lse, 1), in_prompts);
    return found;
  }

  static at::Tensor forward(AutogradContext *ctx, const at::Tensor &query, const at::Tensor &keys,
                            const at::Tensor &values, const SharedRows &rows) {
    const auto found = compute(query, keys, values, rows);
    ctx->save_for_backward({query, keys, values, found.out, found.lse, found.state, found.unused, rows.starts,
                            rows.first_queries, rows.first_keys});
    ctx->saved_data["counts"] =
        std::vector<int64_t>{rows.longest, rows.most_queries, rows.most_keys, rows.queries, rows.keys};
    ctx->saved_data["scale"] = rows.scale;
    return found.out;
  }

  static variable_list backward(AutogradContext *ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto counts = ctx->saved_data["counts"].toIntVector();
    const SharedRows rows{saved[7],  saved[8],  saved[9],  counts[0], counts[1],
                          counts[2], counts[3], counts[4], ctx->saved_data["scale"].toDouble()};
    const auto &query = saved[0], &keys = saved[1], &values = saved[2];
    const Attended found{saved[3], saved[4], saved[5], saved[6]};
    const Attended of_followers{rows.of_followers(found.out), rows.of_followers(found.lse, 1).contiguous(),
                                found.state, found.unused};
    const auto gradient = gradients[0].contiguous();
    const auto [for_query, for_keys, for_values] = go_back(gradient, query, keys, values, found, rows.own());
    const auto [more_for_query, more_for_keys, more_for_values] =
        go_back(rows.of_followers(gradient), rows.of_followers(query), rows.of_prompts(keys), rows.of_prompts(values),
                of_followers, rows.prompts());
    rows.of_followers(for_query).add_(more_for_query);
    rows.of_prompts(for_keys).add_(more_for_keys);
    rows.of_prompts(for_values).add_(more_for_values);
    return {for_query, for_keys, for_values, at::Tensor()};
  }
};

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

// Flash attention on a GPU, in 16 bits, of rows of which some follow a prompt. `query` is `[tokens, heads, width]`,
// `keys` and `values` are `[tokens, kv_heads, width]`, in the order of `SharedRows`. Each query sees the tokens of its
// row up to its own, and before them the prompt that the row follows. Gradients flow.
char *gavel_flash_attention_shared(const at::Tensor *query, const at::Tensor *keys, const at::Tensor *values,
                                   const at::Tensor *starts, const at::Tensor *first_queries,
                                   const at::Tensor *first_keys, int64_t longest, int64_t most_queries,
                                   int64_t most_keys, int64_t followers, int64_t prompts, double scale,
                                   at::Tensor **result) {
  return guarded([&] {
    const SharedRows rows{*starts,   *first_queries, *first_keys, longest, most_queries,
                          most_keys, followers,      prompts,     scale};
    const auto is_kept = wants_gradient(*query) || wants_gradient(*keys) || wants_gradient(*values);
    *result = new at::Tensor(is_kept ? SharedAttention::apply(*query, *keys, *values, rows)
                                     : SharedAttention::compute(*query, *keys, *values, rows).out);
  });
}
}

// The log-probabilities of given tokens, from hidden states and the head of a language model, as one operation. The
// backward pass turns the logits into their gradient in place, but for kernels, whose gradient has 16 bits. On the CPU
// both are one pass over rows of 32 bits. There are no second derivatives. The Rust side ensures shapes, kinds and
// devices.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "guarded.h"
#include "rows.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// What is computed beside log-probabilities, with the numbers of the Rust side.
enum Beside : int64_t { NOTHING, ENTROPIES, SQUARES, ARE_MOST_PROBABLE };

// The logit of a token that cannot be drawn: its probability is 0 in 32 and in 64 bits at any temperature. An infinite one
// would make products that are no number.
constexpr double IMPOSSIBLE = -1e20;
// Terms that are added up in 32 bits: the sums of blocks are added up in 64.
constexpr int64_t VOCABULARY_BLOCK = 512;
// Rows whose probabilities, or changes, exist at a time beside their logits.
constexpr int64_t ROWS = 256;
// Smaller terms of a sum whose largest is 1 are 0: they would not change it, and their squares would be subnormal.
constexpr float SMALLEST_LOGARITHM = -40.0f;

// A row of logits over the temperature: the largest, and sums over the others less that, x: of e^x, x · e^x and e^2x.
struct Sums {
  float largest;
  double exponentials, products, squares;

  double logarithm() const { return std::log(exponentials); }
  // The mean of x, by probability.
  double mean() const { return products / exponentials; }
};

// The logit over the temperature less the largest. An infinite one would make products that are no number.
INLINE float shifted(float z, float largest, float scale) {
  const float x = (z - largest) * scale;
  return x < -80.0f ? -80.0f : x;
}

INLINE float term(float x) {
  const float e = exponential(x);
  return x < SMALLEST_LOGARITHM ? 0.0f : e;
}

PORTABLE void sum_row(const float *z, int64_t width, float scale, Sums &sums) {
  float largest = z[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < width; ++i) largest = std::max(largest, z[i]);
  sums = {largest, 0, 0, 0};
  for (int64_t start = 0; start < width; start += VOCABULARY_BLOCK) {
    const int64_t end = std::min(start + VOCABULARY_BLOCK, width);
    float exponentials = 0, products = 0, squares = 0;
#pragma omp simd reduction(+ : exponentials, products, squares)
    for (int64_t i = start; i < end; ++i) {
      const float x = shifted(z[i], largest, scale), e = term(x);
      exponentials += e;
      products += e * x;
      squares += e * e;
    }
    sums.exponentials += exponentials;
    sums.products += products;
    sums.squares += squares;
  }
}

// Replaces each logit by e^x · (constant + slope · x).
PORTABLE void turn_row(float *z, int64_t width, float largest, float scale, float constant, float slope) {
  if (slope == 0.0f) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) z[i] = term(shifted(z[i], largest, scale)) * constant;
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float x = shifted(z[i], largest, scale);
      z[i] = term(x) * (constant + slope * x);
    }
  }
}

bool is_most_probable(const float *z, int64_t target, float largest) {
  return z[target] == largest && std::find(z, z + target, largest) == z + target;
}

// How logits are computed and normalised, with the numbers of the Rust side: in the kind of the hidden states; in 32 bits
// where hidden states have 16; or in 32 bits by kernels of a GPU.
enum How : int64_t { NARROW, WIDE, BY_KERNELS };

// Kernels that `shim/cuda` gives, once it is loaded.
struct Kernels {
  char *(*sum_rows)(const at::Tensor *, const at::Tensor *, double, const at::Tensor *, const at::Tensor *,
                    const at::Tensor *, const at::Tensor *);
  char *(*turn_rows)(const at::Tensor *, const at::Tensor *, const at::Tensor *, double, const at::Tensor *,
                     const at::Tensor *, const at::Tensor *);
} kernels;

// Throws the message of a function of the shim.
void checked(char *message) {
  if (!message) return;
  const std::string text(message);
  std::free(message);
  TORCH_CHECK(false, text);
}

// In which logits of this kind are normalised.
at::ScalarType wide(at::ScalarType kind) { return kind == at::kDouble ? at::kDouble : at::kFloat; }

bool is_by_rows(const at::Tensor &hidden) { return hidden.is_cpu() && hidden.scalar_type() != at::kDouble; }

// Changes of logits, in the order in which they are made. A place is row · vocabulary + token. Places of earlier rows come
// first, no place is twice in a tensor, and tensors are undefined if they would be empty.
struct Changes {
  // Places, and what is added there.
  at::Tensor biased, biases;
  // Places, and the numbers by which positive logits are divided and others multiplied.
  at::Tensor penalised, penalties;
  // Rows with places that alone can be drawn, and those places.
  at::Tensor limited, kept;
  // Places that cannot be drawn.
  at::Tensor banned;

  bool any() const { return biased.defined() || penalised.defined() || limited.defined() || banned.defined(); }
};

// Where numbers follow each other in a tensor.
struct Range {
  int64_t start, count;

  at::Tensor of(const at::Tensor &x, const at::Device &device) const { return x.narrow(0, start, count).to(device); }
};

// Where the places from `start` to before `end` are in a tensor of places.
Range range_of(const at::Tensor &places, int64_t start, int64_t end) {
  if (!places.defined()) return {0, 0};
  const auto *all = places.const_data_ptr<int64_t>(), *last = all + places.numel();
  const auto *from = std::lower_bound(all, last, start);
  return {from - all, std::lower_bound(from, last, end) - from};
}

// The places of penalised logits, and the derivative of each by what it was. Undefined if there are none.
struct Penalised {
  at::Tensor places, slopes;
};

// Changes logits, `[tokens, vocab]` and in at least 32 bits. The changes are in the memory of the host, and the first token
// is token `first` of them. Beside what is returned, only ROWS tokens have places on the device at a time.
Penalised change(at::Tensor &logits, const Changes &by, int64_t first) {
  if (!by.any()) return {};
  const auto count = logits.size(0), vocab = logits.size(1);
  const auto device = logits.device();
  const auto kind = logits.scalar_type();
  auto all = logits.view(-1);
  const auto places_of = [&](const at::Tensor &places, const Range &range, int64_t before) {
    const auto found = range.of(places, device);
    return before > 0 ? found.sub(before) : found;
  };
  Penalised penalised;
  const auto own = range_of(by.penalised, first * vocab, (first + count) * vocab);
  if (own.count > 0) {
    penalised.places = places_of(by.penalised, own, first * vocab);
    penalised.slopes = at::empty({own.count}, logits.options());
  }
  for (int64_t start = 0; start < count; start += ROWS) {
    const auto from = first + start, to = first + std::min(start + ROWS, count);
    const auto find = [&](const at::Tensor &places) { return range_of(places, from * vocab, to * vocab); };
    if (const auto range = find(by.biased); range.count > 0) {
      all.index_add_(0, places_of(by.biased, range, first * vocab), range.of(by.biases, device).to(kind));
    }
    if (const auto range = find(by.penalised); range.count > 0) {
      const auto part = [&](const at::Tensor &x) { return x.narrow(0, range.start - own.start, range.count); };
      const auto places = part(penalised.places);
      const auto before = all.index_select(0, places), penalties = range.of(by.penalties, device).to(kind);
      const auto is_positive = before.gt(0);
      part(penalised.slopes).copy_(at::where(is_positive, penalties.reciprocal(), penalties));
      all.index_copy_(0, places, at::where(is_positive, before.div(penalties), before.mul(penalties)));
    }
    if (const auto rows = range_of(by.limited, from, to); rows.count > 0) {
      const auto places = places_of(by.kept, find(by.kept), first * vocab);
      const auto kept = all.index_select(0, places);
      logits.index_fill_(0, places_of(by.limited, rows, first), IMPOSSIBLE);
      all.index_copy_(0, places, kept);
    }
    if (const auto range = find(by.banned); range.count > 0) {
      all.index_fill_(0, places_of(by.banned, range, first * vocab), IMPOSSIBLE);
    }
  }
  return penalised;
}

// Turns the gradient of changed logits into the gradient of what they were, in place.
void unchange(at::Tensor &gradient, const at::Tensor &penalised, const at::Tensor &slopes) {
  if (!slopes.defined()) return;
  auto all = gradient.view(-1);
  all.index_copy_(0, penalised, all.index_select(0, penalised).mul(slopes).to(all.scalar_type()));
}

struct Found {
  at::Tensor logprobs, beside;
  // What `change` returned.
  Penalised penalised;
  // What the backward pass needs: by rows and by kernels, the logits and `Sums` as 32-bit numbers, largest,
  // 1 / exponentials and mean. Otherwise all log-probabilities and the entropies, if these are wanted.
  at::Tensor matrix, rows;
};

Found compute_by_rows(const at::Tensor &hidden, const at::Tensor &head, const at::Tensor &targets, double temperature,
                      int64_t beside, const Changes &changes, int64_t first) {
  Found found;
  found.matrix = at::linear(hidden, head).to(at::kFloat);
  found.penalised = change(found.matrix, changes, first);
  const auto count = targets.size(0), width = head.size(0);
  const auto options = found.matrix.options();
  found.logprobs = at::empty({count}, options);
  found.rows = at::empty({count, 3}, options);
  if (beside != NOTHING) {
    found.beside = at::empty({count}, options.dtype(beside == ARE_MOST_PROBABLE ? at::kBool : at::kFloat));
  }
  const auto *logits = found.matrix.const_data_ptr<float>();
  const auto *target = targets.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < count; ++row) {
    TORCH_CHECK_INDEX(target[row] >= 0 && target[row] < width, "token ", target[row], " is outside of ", width);
  }
  auto *logprobs = found.logprobs.mutable_data_ptr<float>(), *rows = found.rows.mutable_data_ptr<float>();
  auto *numbers = beside == ENTROPIES || beside == SQUARES ? found.beside.mutable_data_ptr<float>() : nullptr;
  auto *truths = beside == ARE_MOST_PROBABLE ? found.beside.mutable_data_ptr<bool>() : nullptr;
  const auto scale = static_cast<float>(1 / temperature);
  each_row(count, width, [&](int64_t row) {
    const auto *z = logits + row * width;
    Sums sums;
    sum_row(z, width, scale, sums);
    const auto own = (static_cast<double>(z[target[row]]) - sums.largest) / temperature;
    logprobs[row] = static_cast<float>(own - sums.logarithm());
    rows[3 * row] = sums.largest;
    rows[3 * row + 1] = static_cast<float>(1 / sums.exponentials);
    rows[3 * row + 2] = static_cast<float>(sums.mean());
    if (beside == ENTROPIES) numbers[row] = static_cast<float>(sums.logarithm() - sums.mean());
    if (beside == SQUARES) numbers[row] = static_cast<float>(sums.squares / (sums.exponentials * sums.exponentials));
    if (truths) truths[row] = is_most_probable(z, target[row], sums.largest);
  });
  return found;
}

// The gradient of the logits by that of each log-probability, and of each entropy if there is one, in their memory.
void turn_by_rows(at::Tensor &logits, const at::Tensor &rows, const at::Tensor &targets, double temperature,
                  const at::Tensor &for_logprobs, const at::Tensor &for_entropies) {
  const auto width = logits.size(1);
  auto *all = logits.mutable_data_ptr<float>();
  const auto *kept = rows.const_data_ptr<float>(), *logprobs = for_logprobs.const_data_ptr<float>();
  const auto *entropies = for_entropies.defined() ? for_entropies.const_data_ptr<float>() : nullptr;
  const auto *target = targets.const_data_ptr<int64_t>();
  const auto scale = static_cast<float>(1 / temperature);
  each_row(logits.size(0), width, [&](int64_t row) {
    auto *z = all + row * width;
    const auto *sums = kept + 3 * row;
    const auto logprob = logprobs[row] * scale, entropy = entropies ? entropies[row] * scale : 0.0f;
    // -p · logprob - p · (log p + H) · entropy, where log p + H = x - mean.
    turn_row(z, width, sums[0], scale, sums[1] * (entropy * sums[2] - logprob), -sums[1] * entropy);
    z[target[row]] += logprob;
  });
}

// A number of each row of log-probabilities. `number` computes it from some of them, of which it makes one copy.
template <typename Number> at::Tensor by_pieces(const at::Tensor &logprobs, const Number &number) {
  std::vector<at::Tensor> found;
  for (const auto &piece : logprobs.split(ROWS)) found.push_back(number(piece));
  return at::cat(found);
}

Found compute_by_kernels(const at::Tensor &hidden, const at::Tensor &head, const at::Tensor &targets,
                         double temperature, int64_t beside, const Changes &changes, int64_t first) {
  Found found;
  found.matrix = at::mm(hidden, head.t(), at::kFloat);
  found.penalised = change(found.matrix, changes, first);
  const auto count = targets.size(0);
  found.logprobs = at::empty({count}, found.matrix.options());
  found.rows = at::empty({count, 3}, found.matrix.options());
  if (beside != NOTHING) found.beside = at::empty({count}, found.matrix.options());
  checked(kernels.sum_rows(&found.matrix, &targets, temperature, &found.logprobs, &found.rows,
                           beside == ENTROPIES ? &found.beside : nullptr, beside == SQUARES ? &found.beside : nullptr));
  if (beside == ARE_MOST_PROBABLE) found.beside = found.matrix.argmax(-1).eq(targets);
  return found;
}

Found compute_by_operations(const at::Tensor &hidden, const at::Tensor &head, const at::Tensor &targets,
                            double temperature, int64_t beside, const Changes &changes, int64_t first, bool is_wide) {
  Found found;
  auto logits = is_wide ? at::mm(hidden, head.t(), at::kFloat) : at::linear(hidden, head);
  if (changes.any()) {
    logits = logits.to(wide(logits.scalar_type()));
    found.penalised = change(logits, changes, first);
  }
  if (beside == ARE_MOST_PROBABLE) found.beside = logits.argmax(-1).eq(targets);
  const auto kind = wide(logits.scalar_type());
  if (temperature == 1 && logits.scalar_type() != kind) {
    found.matrix = at::log_softmax(logits, -1, kind);
  } else {
    logits = logits.to(kind);
    if (temperature != 1) logits.div_(temperature);
    for (const auto &piece : logits.split(ROWS)) piece.copy_(piece.log_softmax(-1));
    found.matrix = logits;
  }
  found.logprobs = found.matrix.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  if (beside == ENTROPIES) {
    const auto entropies = [](const at::Tensor &piece) { return piece.exp().mul_(piece).sum(-1).neg_(); };
    found.beside = by_pieces(found.matrix, entropies);
    found.rows = found.beside;
  }
  if (beside == SQUARES) {
    found.beside = by_pieces(found.matrix, [](const at::Tensor &piece) { return piece.exp().square_().sum(-1); });
  }
  return found;
}

// As `turn_by_rows`, with log-probabilities in place of logits and the entropies in place of sums.
void turn_by_operations(at::Tensor &all, const at::Tensor &entropies, const at::Tensor &targets, double temperature,
                        const at::Tensor &for_logprobs, const at::Tensor &for_entropies) {
  const auto logprob = for_logprobs.div(temperature).unsqueeze(-1);
  if (for_entropies.defined()) {
    const auto entropy = for_entropies.div(temperature).unsqueeze(-1);
    for (int64_t start = 0; start < all.size(0); start += ROWS) {
      const auto of = [&](const at::Tensor &x) { return x.narrow(0, start, std::min(ROWS, x.size(0) - start)); };
      const auto piece = of(all);
      const auto factors = piece.add(of(entropies).unsqueeze(-1)).mul_(of(entropy)).add_(of(logprob)).neg_();
      piece.exp_().mul_(factors);
    }
  } else {
    all.exp_().mul_(logprob.neg());
  }
  all.scatter_add_(-1, targets.unsqueeze(-1), logprob);
}

struct TokenLogprobs : Function<TokenLogprobs> {
  // `first` is the number of the first of the tokens in `changes`.
  static Found compute(const at::Tensor &hidden, const at::Tensor &head, const at::Tensor &targets, double temperature,
                       int64_t beside, int64_t how, const Changes &changes, int64_t first) {
    if (is_by_rows(hidden)) return compute_by_rows(hidden, head, targets, temperature, beside, changes, first);
    if (how == BY_KERNELS) return compute_by_kernels(hidden, head, targets, temperature, beside, changes, first);
    return compute_by_operations(hidden, head, targets, temperature, beside, changes, first, how == WIDE);
  }

  static variable_list forward(AutogradContext *ctx, const at::Tensor &hidden, const at::Tensor &head,
                               const at::Tensor &targets, double temperature, int64_t beside, int64_t how,
                               const Changes &changes) {
    const auto found = compute(hidden, head, targets, temperature, beside, how, changes, 0);
    const auto &[places, slopes] = found.penalised;
    ctx->save_for_backward({hidden, head, targets, found.matrix, found.rows, places, slopes});
    ctx->saved_data["temperature"] = temperature;
    ctx->saved_data["how"] = how;
    ctx->set_materialize_grads(false);
    if (beside == NOTHING) return {found.logprobs};
    if (beside != ENTROPIES) ctx->mark_non_differentiable({found.beside});
    return {found.logprobs, found.beside};
  }

  static variable_list backward(AutogradContext *ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto &hidden = saved[0], &targets = saved[2], &rows = saved[4], &penalised = saved[5], &slopes = saved[6];
    auto head = saved[1], matrix = saved[3];
    const auto temperature = ctx->saved_data["temperature"].toDouble();
    auto for_logprobs = gradients[0], for_entropies = gradients.size() > 1 ? gradients[1] : at::Tensor();
    for_logprobs = for_logprobs.defined() ? for_logprobs.contiguous() : at::zeros(targets.sizes(), matrix.options());
    if (for_entropies.defined()) for_entropies = for_entropies.contiguous();
    at::Tensor gradient;
    if (ctx->saved_data["how"].toInt() == BY_KERNELS && !is_by_rows(hidden)) {
      gradient = at::empty_like(matrix, matrix.options().dtype(hidden.scalar_type()));
      checked(kernels.turn_rows(&matrix, &rows, &targets, temperature, &for_logprobs,
                                for_entropies.defined() ? &for_entropies : nullptr, &gradient));
      unchange(gradient, penalised, slopes);
    } else {
      const auto turn = is_by_rows(hidden) ? turn_by_rows : turn_by_operations;
      // A second backward pass would take the gradient for logits.
      matrix.unsafeGetTensorImpl()->bump_version();
      turn(matrix, rows, targets, temperature, for_logprobs, for_entropies);
      unchange(matrix, penalised, slopes);
      gradient = matrix.to(hidden.scalar_type());
    }
    at::Tensor for_hidden, for_head;
    if (ctx->needs_input_grad(0)) for_hidden = gradient.mm(head);
    if (ctx->needs_input_grad(1)) {
      // Another matrix as large as the head, for each part of the tokens, would be made to be added.
      if (head.is_leaf() && head.grad().defined()) {
        head.mutable_grad().addmm_(gradient.t(), hidden);
      } else {
        for_head = gradient.t().mm(hidden);
      }
    }
    return {for_hidden, for_head, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

} // namespace

extern "C" {

// Takes the kernels, whose signatures are those of `Kernels`.
void gavel_take_head_kernels(void *sum_rows, void *turn_rows) {
  kernels.sum_rows = reinterpret_cast<decltype(kernels.sum_rows)>(sum_rows);
  kernels.turn_rows = reinterpret_cast<decltype(kernels.turn_rows)>(turn_rows);
}

// `hidden` is `[tokens, width]`, `head` is `[vocab, width]`, `targets` is `[tokens]` and contiguous. `out` gets the
// log-probabilities and what is computed beside them, both `[tokens]`. Without gradients, the logits of only `rows`
// tokens exist at a time. On a GPU, wide logits of 16-bit numbers have 32; kernels are for bfloat16, and for a vocabulary
// that is a multiple of 4. `changes` are the seven tensors of `Changes` in their order, in the memory of the host: places
// and rows in 64 bits, numbers in 32; null for one that is undefined.
char *gavel_token_logprobs(const at::Tensor *hidden, const at::Tensor *head, const at::Tensor *targets,
                           double temperature, int64_t beside, int64_t how, int64_t rows,
                           const at::Tensor *const *changes, at::Tensor **out) {
  return guarded([&] {
    const auto given = [&](int index) { return changes[index] ? *changes[index] : at::Tensor(); };
    const Changes all_changes{given(0), given(1), given(2), given(3), given(4), given(5), given(6)};
    at::Tensor logprobs, other;
    if (wants_gradient(*hidden) || wants_gradient(*head)) {
      const auto found = TokenLogprobs::apply(*hidden, *head, *targets, temperature, beside, how, all_changes);
      logprobs = found[0];
      if (beside != NOTHING) other = found[1];
    } else {
      std::vector<at::Tensor> all, others;
      const auto parts = hidden->split(rows), ids = targets->split(rows);
      for (size_t part = 0; part < parts.size(); ++part) {
        const auto found = TokenLogprobs::compute(parts[part], *head, ids[part], temperature, beside, how, all_changes,
                                                  static_cast<int64_t>(part) * rows);
        all.push_back(found.logprobs);
        if (beside != NOTHING) others.push_back(found.beside);
      }
      logprobs = at::cat(all);
      if (beside != NOTHING) other = at::cat(others);
    }
    out[0] = new at::Tensor(logprobs);
    out[1] = new at::Tensor(other);
  });
}
}

// Parts of a transformer layer, each as one pass over memory, forward and
// backward. libtorch on the CPU makes a pass for every operation. There are no
// second derivatives. The Rust side ensures that numbers have 32 bits and rows
// are contiguous.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "guarded.h"
#include "rows.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// Gives 1 / root mean square of the row.
PORTABLE float norm_row(const float *x, const float *weight, float *out, int64_t width, float eps) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < width; ++i) squares += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) out[i] = x[i] * scale * weight[i];
  return scale;
}

// `out` is the gradient of `x`.
PORTABLE void norm_row_back(const float *gradient, const float *x, const float *weight, float scale, float *out,
                            int64_t width) {
  float along = 0;
#pragma omp simd reduction(+ : along)
  for (int64_t i = 0; i < width; ++i) along += gradient[i] * weight[i] * x[i];
  const float back = along * scale * scale / static_cast<float>(width);
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) out[i] = scale * (gradient[i] * weight[i] - x[i] * back);
}

// Adds the gradient of the weight to `sum`.
PORTABLE void norm_row_back_weight(const float *gradient, const float *x, float scale, float *sum, int64_t width) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) sum[i] += gradient[i] * x[i] * scale;
}

PORTABLE void silu_product_row(const float *gate, const float *up, float *out, int64_t width) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

PORTABLE void silu_product_row_back(const float *gradient, const float *gate, const float *up, float *gate_out,
                                    float *up_out, int64_t width) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float s = sigmoid(gate[i]);
    gate_out[i] = gradient[i] * up[i] * s * (1.0f + gate[i] * (1.0f - s));
    up_out[i] = gradient[i] * gate[i] * s;
  }
}

// `sin` has the factors with which each half enters the other.
PORTABLE void rotate_row(const float *x, const float *cos, const float *const sin[2], float *out, int64_t half) {
  const float *first = sin[0], *second = sin[1];
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    out[i] = x[i] * cos[i] + x[half + i] * first[i];
    out[half + i] = x[half + i] * cos[i] + x[i] * second[i];
  }
}

// `x` is `[rows, width]`.
struct RmsNorm : Function<RmsNorm> {
  // Also gives the scale of each row, if it is wanted.
  static at::Tensor compute(const at::Tensor &x, const at::Tensor &weight, double eps, float *scales) {
    const auto rows = x.size(0), width = x.size(1);
    auto out = at::empty_like(x);
    const auto *from = x.const_data_ptr<float>(), *weights = weight.const_data_ptr<float>();
    auto *to = out.mutable_data_ptr<float>();
    each_row(rows, width, [&](int64_t row) {
      const auto at = row * width;
      const auto scale = norm_row(from + at, weights, to + at, width, static_cast<float>(eps));
      if (scales) scales[row] = scale;
    });
    return out;
  }

  static at::Tensor forward(AutogradContext *ctx, const at::Tensor &x, const at::Tensor &weight, double eps) {
    auto scales = at::empty({x.size(0)}, x.options());
    auto out = compute(x, weight, eps, scales.mutable_data_ptr<float>());
    ctx->save_for_backward({x, weight, scales});
    return out;
  }

  static variable_list backward(AutogradContext *ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto gradient = gradients[0].contiguous();
    const auto rows = gradient.size(0), width = gradient.size(1);
    const auto *grad = gradient.const_data_ptr<float>(), *x = saved[0].const_data_ptr<float>(),
               *weight = saved[1].const_data_ptr<float>(), *scales = saved[2].const_data_ptr<float>();
    at::Tensor for_x, for_weight;
    if (ctx->needs_input_grad(0)) {
      for_x = at::empty_like(gradient);
      auto *out = for_x.mutable_data_ptr<float>();
      each_row(rows, width, [&](int64_t row) {
        const auto at = row * width;
        norm_row_back(grad + at, x + at, weight, scales[row], out + at, width);
      });
    }
    if (ctx->needs_input_grad(1)) {
      // Sums over parts, whose number does not depend on the number of threads.
      const auto parts = std::clamp<int64_t>(rows / rows_worth_a_thread(width), 1, 64);
      auto sums = at::zeros({parts, width}, gradient.options());
      auto *out = sums.mutable_data_ptr<float>();
      at::parallel_for(0, parts, 1, [&](int64_t start, int64_t end) {
        for (auto part = start; part < end; ++part) {
          for (auto row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
            const auto at = row * width;
            norm_row_back_weight(grad + at, x + at, scales[row], out + part * width, width);
          }
        }
      });
      for_weight = sums.sum(0);
    }
    return {for_x, for_weight, at::Tensor()};
  }
};

// `x` is `[rows, 2 * width]`: gates, and the values that they multiply.
struct SiluProduct : Function<SiluProduct> {
  static at::Tensor compute(const at::Tensor &x) {
    const auto rows = x.size(0), width = x.size(1) / 2;
    auto out = at::empty({rows, width}, x.options());
    const auto *from = x.const_data_ptr<float>();
    auto *to = out.mutable_data_ptr<float>();
    each_row(rows, width, [&](int64_t row) {
      const auto *gate = from + 2 * row * width;
      silu_product_row(gate, gate + width, to + row * width, width);
    });
    return out;
  }

  static at::Tensor forward(AutogradContext *ctx, const at::Tensor &x) {
    ctx->save_for_backward({x});
    return compute(x);
  }

  static variable_list backward(AutogradContext *ctx, variable_list gradients) {
    const auto x = ctx->get_saved_variables()[0];
    const auto gradient = gradients[0].contiguous();
    const auto rows = gradient.size(0), width = gradient.size(1);
    auto out = at::empty_like(x);
    const auto *grad = gradient.const_data_ptr<float>(), *from = x.const_data_ptr<float>();
    auto *to = out.mutable_data_ptr<float>();
    each_row(rows, width, [&](int64_t row) {
      const auto at = 2 * row * width;
      silu_product_row_back(grad + row * width, from + at, from + at + width, to + at, to + at + width, width);
    });
    return {out};
  }
};

// `x` is `[tokens, heads, 2 * half]`, its first heads queries and the others
// keys; `cos` holds `half` numbers a token and `sin` two times as many.
struct Rotate : Function<Rotate> {
  // Rotates some of the heads from one tensor to another, in which a token
  // begins every `stride` numbers.
  static void turn(const at::Tensor &x, const at::Tensor &cos, const at::Tensor &sin, bool back, float *out,
                   int64_t stride) {
    const auto tokens = x.size(0), heads = x.size(1), half = x.size(2) / 2;
    const auto *from = x.const_data_ptr<float>(), *cosines = cos.const_data_ptr<float>(),
               *sines = sin.const_data_ptr<float>();
    const auto token_stride = x.stride(0), head_stride = x.stride(1);
    each_row(tokens, heads * 2 * half, [&](int64_t token) {
      const auto *sine = sines + token * 2 * half;
      // The gradient turns back: the matrix is transposed.
      const float *const pair[2] = {back ? sine + half : sine, back ? sine : sine + half};
      for (int64_t head = 0; head < heads; ++head) {
        rotate_row(from + token * token_stride + head * head_stride, cosines + token * half, pair,
                   out + token * stride + head * 2 * half, half);
      }
    });
  }

  static variable_list compute(const at::Tensor &x, const at::Tensor &cos, const at::Tensor &sin, int64_t queries) {
    variable_list out;
    for (const auto &part : x.split_with_sizes({queries, x.size(1) - queries}, 1)) {
      out.push_back(at::empty(part.sizes(), x.options()));
      turn(part, cos, sin, false, out.back().mutable_data_ptr<float>(), part.size(1) * part.size(2));
    }
    return out;
  }

  static variable_list forward(AutogradContext *ctx, const at::Tensor &x, const at::Tensor &cos, const at::Tensor &sin,
                               int64_t queries) {
    ctx->save_for_backward({cos, sin});
    return compute(x, cos, sin, queries);
  }

  static variable_list backward(AutogradContext *ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto heads = gradients[0].size(1) + gradients[1].size(1), width = gradients[0].size(2);
    auto out = at::empty({gradients[0].size(0), heads, width}, gradients[0].options());
    auto *to = out.mutable_data_ptr<float>();
    for (const auto &gradient : gradients) {
      const auto part = gradient.stride(2) == 1 ? gradient : gradient.contiguous();
      turn(part, saved[0], saved[1], true, to, heads * width);
      to += part.size(1) * width;
    }
    return {out, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

} // namespace

extern "C" {

char *gavel_rms_norm(const at::Tensor *x, const at::Tensor *weight, double eps, at::Tensor **out) {
  return guarded([&] {
    const auto graph = wants_gradient(*x) || wants_gradient(*weight);
    *out = new at::Tensor(graph ? RmsNorm::apply(*x, *weight, eps) : RmsNorm::compute(*x, *weight, eps, nullptr));
  });
}

char *gavel_silu_product(const at::Tensor *x, at::Tensor **out) {
  return guarded([&] {
    *out = new at::Tensor(wants_gradient(*x) ? SiluProduct::apply(*x) : SiluProduct::compute(*x));
  });
}

char *gavel_rotate(const at::Tensor *x, const at::Tensor *cos, const at::Tensor *sin, int64_t queries,
                   at::Tensor **out) {
  return guarded([&] {
    const auto graph = wants_gradient(*x);
    const auto pair = graph ? Rotate::apply(*x, *cos, *sin, queries) : Rotate::compute(*x, *cos, *sin, queries);
    out[0] = new at::Tensor(pair[0]);
    out[1] = new at::Tensor(pair[1]);
  });
}
}

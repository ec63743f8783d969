// AdamW whose running means have 8 bits (Dettmers et al., "8-bit optimizers via block-wise quantization",
// arXiv:2110.02861), with the operations of torchao's AdamW8bit.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "guarded.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// The numbers that share a scale, the largest magnitude among them.
constexpr int64_t STATE_BLOCK = 256;
// The numbers that are in 32 bits at a time, in whole blocks (CHUNK of src/optimizer.rs).
constexpr int64_t CHUNK = 1 << 23;

// The numbers that the 256 codes stand for, from -1 or 0 to 1, in order: as a number falls, more bits have its exponent
// and fewer its fraction (Dettmers, "8-bit approximations for parallelism in deep learning", arXiv:1511.04561).
at::Tensor dynamic_map(bool is_signed) {
  const int exponents = 7;
  std::vector<at::Tensor> parts;
  for (int exponent = 0; exponent < exponents; ++exponent) {
    const int64_t fractions = int64_t(1) << (exponent + (is_signed ? 0 : 1));
    auto bounds = at::linspace(0.1, 1.0, fractions + 1, at::kFloat);
    auto means = (bounds.slice(0, 0, fractions) + bounds.slice(0, 1, fractions + 1)) / 2.0;
    means = means * std::pow(10.0, exponent - (exponents - 1));
    parts.push_back(means);
    if (is_signed) parts.push_back(-means);
  }
  parts.push_back(at::tensor({0.0, 1.0}, at::kFloat));
  return std::get<0>(at::cat(parts).sort());
}

// The map, which is made once and never freed: libtorch may be gone when statics are.
const at::Tensor &shared_map(bool is_signed) {
  static const auto *maps = new at::Tensor[2]{dynamic_map(false), dynamic_map(true)};
  return maps[is_signed];
}

// A running mean: its codes, and the scales of their blocks.
struct Quantised {
  at::Tensor codes, scales, map;

  at::Tensor numbers() const {
    auto shares = map.index_select(0, codes.to(at::kInt));
    return shares.view({-1, STATE_BLOCK}).mul_(scales.unsqueeze(1)).view({-1});
  }

  void set(const at::Tensor &numbers) {
    auto blocks = numbers.view({-1, STATE_BLOCK});
    auto largest = blocks.abs().amax(-1).clamp_min_(1e-12);
    auto shares = blocks.div(largest.unsqueeze(1)).view({-1});
    auto below = at::bucketize(shares, map, /*out_int32=*/true, /*right=*/true).sub_(1).clamp_min_(0);
    auto above = below.add(1).clamp_max_(255);
    auto lower = map.index_select(0, below);
    auto is_nearer_above = shares.sub_(lower).ge(map.index_select(0, above).sub_(lower).mul_(0.5));
    codes.copy_(at::where(is_nearer_above, above, below));
    scales.copy_(largest);
  }
};

} // namespace

extern "C" {

// One step with the stored gradient; the parameter has whole blocks. `step` is the number of this step, from 1.
char *gavel_adamw_8bit_step(at::Tensor *parameter, at::Tensor *exp_avg, at::Tensor *exp_avg_scale,
                            at::Tensor *exp_avg_sq, at::Tensor *exp_avg_sq_scale, double step, double lr, double beta1,
                            double beta2, double weight_decay, double eps) {
  return guarded([&] {
    c10::NoGradGuard no_grad;
    auto all = parameter->detach().view({-1});
    auto gradients = parameter->grad().reshape({-1});
    auto [codes, codes_sq] = std::make_pair(exp_avg->view({-1}), exp_avg_sq->view({-1}));
    auto signed_map = shared_map(true).to(all.options()), unsigned_map = shared_map(false).to(all.options());
    const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
    for (int64_t start = 0; start < all.numel(); start += CHUNK) {
      const int64_t length = std::min(CHUNK, all.numel() - start);
      const int64_t block = start / STATE_BLOCK, blocks = length / STATE_BLOCK;
      auto part = [&](const at::Tensor &whole) { return whole.narrow(0, start, length); };
      Quantised first{part(codes), exp_avg_scale->narrow(0, block, blocks), signed_map};
      Quantised second{part(codes_sq), exp_avg_sq_scale->narrow(0, block, blocks), unsigned_map};
      auto values = part(all), gradient = part(gradients);
      auto mean = first.numbers().lerp_(gradient, 1 - beta1);
      auto mean_sq = second.numbers().lerp_(gradient.square(), 1 - beta2);
      first.set(mean);
      second.set(mean_sq);
      auto denominator = mean_sq.sqrt_().div_(std::sqrt(correction2)).add_(eps);
      values.mul_(1 - lr * weight_decay).addcdiv_(mean, denominator, -lr / correction1);
    }
  });
}
}

// Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024), with the operations of
// torch.optim.Muon in PyTorch 2.11.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "guarded.h"

#include <algorithm>
#include <cmath>

namespace {

// About the matrix with the same singular vectors whose singular values are 1: Newton and Schulz's iteration, of degree 5.
at::Tensor orthogonalised(const at::Tensor &matrix, int64_t steps) {
  const double a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  auto x = matrix.to(at::kBFloat16);
  if (is_tall) x = x.t();
  x = x.div(x.norm().clamp_min(eps));
  for (int64_t step = 0; step < steps; ++step) {
    auto gram = x.matmul(x.t());
    auto update = at::addmm(gram, gram, gram, b, c);
    x = at::addmm(x, update, x, a, 1);
  }
  return is_tall ? x.t() : x;
}

} // namespace

extern "C" {

// One step with the stored gradient, for each of the matrices that lie one below the other in the parameter and have
// these numbers of rows. The learning rate of a matrix is multiplied by 0.2 · √(its longer side) with `as_adamw`,
// otherwise by √(rows / columns) where it has more rows than columns.
char *gavel_muon_step(at::Tensor *parameter, at::Tensor *momentum_buffer, const int64_t *rows, size_t count, double lr,
                      double momentum, bool nesterov, int64_t newton_schulz_steps, bool as_adamw,
                      double weight_decay) {
  return guarded([&] {
    c10::NoGradGuard no_grad;
    auto all = parameter->detach();
    int64_t start = 0;
    for (size_t i = 0; i < count; ++i) {
      auto part = [&](const at::Tensor &whole) { return whole.narrow(0, start, rows[i]); };
      auto values = part(all), gradient = part(parameter->grad()), mean = part(*momentum_buffer);
      mean.lerp_(gradient, 1 - momentum);
      auto update = orthogonalised(nesterov ? gradient.lerp(mean, momentum) : mean, newton_schulz_steps);
      const double height = rows[i], width = values.size(1);
      const double ratio = as_adamw ? 0.2 * std::sqrt(std::max(height, width)) : std::sqrt(std::max(1.0, height / width));
      values.mul_(1 - lr * weight_decay);
      values.add_(update, -lr * ratio);
      start += rows[i];
    }
  });
}
}

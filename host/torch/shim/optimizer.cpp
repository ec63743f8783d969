// The parts of an optimiser that tch does not offer: gradients as a list,
// gradients handed over during the backward pass, and the fused AdamW step.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "guarded.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace {

std::vector<at::Tensor> list(at::Tensor *const *tensors, size_t count) {
  std::vector<at::Tensor> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(*tensors[i]);
  return out;
}

std::vector<at::Tensor> gradients(at::Tensor *const *parameters, size_t count) {
  std::vector<at::Tensor> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(parameters[i]->grad());
  return out;
}

// Adds each gradient of a parameter to that of its master, in the master's
// kind, and drops it. Once the master is gone, gradients stay where they are.
struct HandOver : torch::autograd::PostAccumulateGradHook {
  explicit HandOver(const at::Tensor &master) : master(master.getIntrusivePtr()) {}

  void operator()(const torch::autograd::Variable &parameter) override {
    at::Tensor target(master.lock());
    if (!target.defined()) return;
    c10::NoGradGuard no_grad;
    auto &sum = target.mutable_grad();
    auto &gradient = parameter.mutable_grad();
    if (sum.defined()) {
      sum.add_(gradient);
    } else {
      sum = gradient.to(target.scalar_type());
    }
    gradient.reset();
  }

  c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl> master;
};

} // namespace

extern "C" {

void gavel_free(char *message) { std::free(message); }

// Makes every gradient undefined, so that the next backward pass stores
// instead of adding to zeros.
char *gavel_reset_gradients(at::Tensor *const *parameters, size_t count) {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) parameters[i]->mutable_grad().reset();
  });
}

// From now on each parameter hands its gradient to its master as soon as a
// backward pass has computed it, so that never all gradients exist twice.
char *gavel_hand_over_gradients(at::Tensor *const *parameters, at::Tensor *const *masters, size_t count) {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) {
      torch::autograd::impl::set_post_acc_grad_hooks(*parameters[i], std::make_unique<HandOver>(*masters[i]));
    }
  });
}

// Moves the gradients into one tensor, `flat`, of which they become views; one that is undefined becomes 0. The
// parameters are of one kind and device, and at least one.
char *gavel_bucket_gradients(at::Tensor *const *parameters, size_t count, at::Tensor **flat) {
  return guarded([&] {
    c10::NoGradGuard no_grad;
    int64_t length = 0;
    for (size_t i = 0; i < count; ++i) length += parameters[i]->numel();
    auto bucket = at::empty({length}, parameters[0]->options().requires_grad(false));
    int64_t start = 0;
    for (size_t i = 0; i < count; ++i) {
      auto view = bucket.narrow(0, start, parameters[i]->numel()).view(parameters[i]->sizes());
      auto &gradient = parameters[i]->mutable_grad();
      if (gradient.defined()) {
        view.copy_(gradient);
      } else {
        view.zero_();
      }
      gradient = view;
      start += parameters[i]->numel();
    }
    *flat = new at::Tensor(bucket);
  });
}

// Rounds each master into its parameter.
char *gavel_round(at::Tensor *const *parameters, at::Tensor *const *masters, size_t count) {
  return guarded([&] {
    if (count == 0) return;
    c10::NoGradGuard no_grad;
    at::_foreach_copy_(list(parameters, count), list(masters, count));
  });
}

// The 2-norm of all gradients together. `missing` is the index of the first
// parameter without a gradient, or -1.
char *gavel_gradient_norm(at::Tensor *const *parameters, size_t count, double *norm, int64_t *missing) {
  return guarded([&] {
    c10::NoGradGuard no_grad;
    *missing = -1;
    for (size_t i = 0; i < count; ++i) {
      if (!parameters[i]->grad().defined()) {
        *missing = static_cast<int64_t>(i);
        return;
      }
    }
    auto norms = at::stack(at::_foreach_norm(gradients(parameters, count), 2));
    *norm = at::linalg_vector_norm(norms, 2, std::nullopt, false, at::kDouble).item<double>();
  });
}

char *gavel_scale_gradients(at::Tensor *const *parameters, size_t count, double factor) {
  return guarded([&] {
    if (count == 0) return;
    c10::NoGradGuard no_grad;
    at::_foreach_mul_(gradients(parameters, count), factor);
  });
}

// One AdamW step (Loshchilov and Hutter, 2019) with the stored gradients.
// `step` is the number of this step, from 1.
char *gavel_adamw_step(at::Tensor *const *parameters, at::Tensor *const *exp_avgs, at::Tensor *const *exp_avg_sqs,
                       size_t count, double step, double lr, double beta1, double beta2, double weight_decay,
                       double eps) {
  return guarded([&] {
    if (count == 0) return;
    c10::NoGradGuard no_grad;
    // The kernel wants one counter a parameter and only reads it here, so that all share one.
    auto counter = at::full({}, step, parameters[0]->options().dtype(at::kFloat).requires_grad(false));
    std::vector<at::Tensor> steps(count, counter);
    auto values = list(parameters, count);
    auto grads = gradients(parameters, count);
    auto first = list(exp_avgs, count);
    auto second = list(exp_avg_sqs, count);
    at::_fused_adamw_(values, grads, first, second, {}, steps, lr, beta1, beta2, weight_decay, eps,
                      /*amsgrad=*/false, /*maximize=*/false);
  });
}
}

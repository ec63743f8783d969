// The backward pass from a tensor whose gradient is known, which tch only offers for a loss.
#include <ATen/ATen.h>

#include "guarded.h"

extern "C" {

char *gavel_backward(at::Tensor *output, at::Tensor *gradient) {
  return guarded([&] { output->backward(*gradient); });
}
}

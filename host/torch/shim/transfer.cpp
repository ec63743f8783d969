// Transfers to a GPU that the host does not wait for.
#include <ATen/ATen.h>

#include "guarded.h"

extern "C" {

// libtorch keeps the pinned copy until the device has read it.
char *gavel_send(const at::Tensor *host, int device, at::Tensor **out) {
  return guarded([&] {
    const at::Device gpu(at::kCUDA, static_cast<at::DeviceIndex>(device));
    *out = new at::Tensor(host->pin_memory().to(gpu, /*non_blocking=*/true));
  });
}
}

// The operations that connect the GPUs of a run's ranks: c10d's process group over NCCL. Its class has other sizes and
// offsets with other options of libtorch's build; these are those of PyTorch's wheel.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "../group.h"
#include "../guarded.h"

#include <chrono>
#include <string>

extern "C" {

// The version of NCCL that libtorch has loaded, which the caller frees with `gavel_free`.
char *gavel_cuda_nccl_version() { return strdup(c10d::getNcclVersion().c_str()); }

// NCCL connects with the other ranks at the first operation.
char *gavel_cuda_group_join(Store *store, const char *prefix, int rank, int size, int64_t timeout_ms, Group **out) {
  return guarded([&] {
    using Nccl = c10d::ProcessGroupNCCL;
    auto options = Nccl::Options::create();
    options->timeout = std::chrono::milliseconds(timeout_ms);
    auto keys = c10::make_intrusive<c10d::PrefixStore>(prefix, *store);
    *out = new Group(c10::make_intrusive<Nccl>(std::move(keys), rank, size, std::move(options)));
  });
}
}

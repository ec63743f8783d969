// Copies of a GPU's numbers on the host that the host does not wait for.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../guarded.h"

#include <memory>

extern "C" {

// The copy of a tensor without gaps, which is complete after the event. libtorch's own copies to the host make it record
// an event when their memory is freed, which aborts the process if the device has failed.
char *gavel_cuda_receive(const at::Tensor *from, at::cuda::CUDAEvent **event, at::Tensor **out) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(from->device());
    auto copy = std::make_unique<at::Tensor>(
        at::empty(from->sizes(), from->options().device(at::kCPU).pinned_memory(true)));
    auto after = std::make_unique<at::cuda::CUDAEvent>();
    const auto stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(cudaMemcpyAsync(copy->mutable_data_ptr(), from->const_data_ptr(), from->nbytes(),
                                   cudaMemcpyDeviceToHost, stream));
    after->record(stream);
    *out = copy.release();
    *event = after.release();
  });
}

char *gavel_cuda_event_wait(const at::cuda::CUDAEvent *event) {
  return guarded([&] { event->synchronize(); });
}

void gavel_cuda_event_free(at::cuda::CUDAEvent *event) { delete event; }
}

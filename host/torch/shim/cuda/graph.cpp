// CUDA graphs: operations that are recorded once and launched together from then on.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "../guarded.h"

#include <cstdlib>
#include <memory>

namespace {

// Where graphs are recorded: a stream of their own, as the default one cannot be recorded, and memory that they share.
// They are launched one after another, and each one's results are copied before the next is launched.
struct Recorder {
  c10::cuda::CUDAStream own;
  c10::cuda::CUDAStream before;
  at::cuda::MempoolId_t memory;
};

// Ends a recording that failed: libtorch would go on giving all memory from the recorder's, and never give it back.
void abandon(const Recorder &recorder) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  const auto device = recorder.own.device_index();
  // It fails where the recording had not begun, or where libtorch has done both.
  auto *message = guarded([&] { allocator::endAllocateToPool(device, recorder.memory); });
  if (!message) message = guarded([&] { allocator::releasePool(device, recorder.memory); });
  std::free(message);
}

// The message of what fails in a recording, which ends with it.
template <typename Body> char *recording(const Recorder &recorder, const Body &body) {
  auto *message = guarded(body);
  if (message) abandon(recorder);
  return message;
}

} // namespace

extern "C" {

char *gavel_cuda_recorder(int device, Recorder **out) {
  return guarded([&] {
    const auto index = static_cast<c10::DeviceIndex>(device);
    *out = new Recorder{c10::cuda::getStreamFromPool(false, index), c10::cuda::getCurrentCUDAStream(index),
                        at::cuda::graph_pool_handle()};
  });
}

void gavel_cuda_recorder_free(Recorder *recorder) { delete recorder; }

// Makes the recorder's stream the current one of this thread, after all that was launched before.
char *gavel_cuda_recorder_enter(Recorder *recorder) {
  return guarded([&] {
    recorder->before = c10::cuda::getCurrentCUDAStream(recorder->own.device_index());
    recorder->before.synchronize();
    c10::cuda::setCurrentCUDAStream(recorder->own);
  });
}

// Makes the stream from before `enter` the current one, after all that was launched since.
char *gavel_cuda_recorder_leave(Recorder *recorder) {
  return guarded([&] {
    c10::cuda::setCurrentCUDAStream(recorder->before);
    recorder->own.synchronize();
  });
}

// Other memory for the graphs that follow, once there are none: libtorch does not take up a memory that no graph uses.
// The old memory goes back to the driver.
char *gavel_cuda_recorder_renew(Recorder *recorder) {
  return guarded([&] {
    recorder->memory = at::cuda::graph_pool_handle();
    c10::cuda::CUDACachingAllocator::emptyCache();
  });
}

// From now on this thread's operations are recorded instead of run. Other threads may use the device meanwhile.
char *gavel_cuda_graph_begin(Recorder *recorder, at::cuda::CUDAGraph **out) {
  return recording(*recorder, [&] {
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    graph->capture_begin(recorder->memory, cudaStreamCaptureModeThreadLocal);
    *out = graph.release();
  });
}

char *gavel_cuda_graph_end(Recorder *recorder, at::cuda::CUDAGraph *graph) {
  return recording(*recorder, [&] { graph->capture_end(); });
}

// Launches what was recorded on the current stream.
char *gavel_cuda_graph_launch(at::cuda::CUDAGraph *graph) {
  return guarded([&] { graph->replay(); });
}

void gavel_cuda_graph_free(at::cuda::CUDAGraph *graph) { delete graph; }
}

// The memory that libtorch's allocator holds on GPUs.
#include <c10/cuda/CUDACachingAllocator.h>

#include "../guarded.h"

extern "C" {

// The most bytes that tensors had, and that the allocator held for them, since the start or the last reset.
char *gavel_cuda_memory_peaks(int device, uint64_t *out) {
  return guarded([&] {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    out[0] = static_cast<uint64_t>(stats.allocated_bytes[all].peak);
    out[1] = static_cast<uint64_t>(stats.reserved_bytes[all].peak);
  });
}

char *gavel_cuda_reset_memory_peaks(int device) {
  return guarded([&] { c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(device)); });
}


// Gives the memory that no tensor uses back to the driver.
char *gavel_cuda_empty_cache() {
  return guarded([] { c10::cuda::CUDACachingAllocator::emptyCache(); });
}
}

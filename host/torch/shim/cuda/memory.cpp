// The memory that libtorch's allocator holds on GPUs.
#include <c10/cuda/CUDACachingAllocator.h>

#include "../guarded.h"

extern "C" {

// Gives the memory that no tensor uses back to the driver.
char *gavel_cuda_empty_cache() {
  return guarded([] { c10::cuda::CUDACachingAllocator::emptyCache(); });
}
}

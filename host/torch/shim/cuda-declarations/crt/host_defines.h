// See `nccl.h`. What CUDA's headers write before types and functions means nothing to a compiler for the host.
#pragma once

#define CUDARTAPI
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __cudart_builtin__
#define __device__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __forceinline__ inline __attribute__((always_inline))
#define __host__
#define __specialization_static

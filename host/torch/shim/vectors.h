#pragma once

// Loops over rows of numbers that compilers vectorise.

#include <cstdint>
#include <cstring>

// Versions of loops for several processors. The program chooses at its start by the processor's features; with `arch=`,
// GCC would choose by its model.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define PORTABLE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PORTABLE
#endif
// Inlined into each of these versions, however large it is.
#define INLINE inline __attribute__((always_inline))

// The numbers that are worth a thread, as in libtorch.
constexpr int64_t GRAIN = 32768;

// e^x (the polynomial of Cephes' expf) without calls and branches, so that
// compilers vectorise it. It is clamped well before results or their factors
// become subnormal: a subnormal number costs a processor a hundred cycles, even
// if it is not selected in the end.
INLINE float exponential(float x) {
  x = x < -80.0f ? -80.0f : x;
  x = x > 80.0f ? 80.0f : x;
  // Adding 1.5 · 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  uint32_t power, bits;
  std::memcpy(&power, &shifted, sizeof power);
  std::memcpy(&bits, &y, sizeof bits);
  bits += power << 23;
  std::memcpy(&y, &bits, sizeof y);
  return y;
}

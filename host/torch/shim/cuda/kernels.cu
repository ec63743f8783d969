// Parts of a transformer layer, each as one pass over memory, for numbers of 16 bits (bfloat16). The driver's compiler
// translates this text when a process first uses it, so that building needs no compiler for GPUs. A thread reads and
// writes eight numbers at a time; sums have 32 bits.

typedef unsigned short bf16;

struct alignas(16) Eight {
  bf16 at[8];
};

__device__ float number(bf16 x) { return __uint_as_float(static_cast<unsigned>(x) << 16); }

__device__ bf16 rounded(float x) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

// The sum of a number of each thread of the block, in all of them.
__device__ float sum_of_block(float x) {
  __shared__ float of_warps[32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < (blockDim.x + 31) / 32 ? of_warps[threadIdx.x % 32] : 0.0f;
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  return x;
}

// Rotates eight pairs of numbers. `sign` is -1 for the way back.
__device__ void turn(Eight &first, Eight &second, const float *cos, const float *sin, float sign) {
  for (int i = 0; i < 8; ++i) {
    const float a = number(first.at[i]), b = number(second.at[i]), s = sign * sin[i];
    first.at[i] = rounded(a * cos[i] - b * s);
    second.at[i] = rounded(b * cos[i] + a * s);
  }
}

extern "C" {

// `x` and `out` are `[rows, width]`, of 8 · `width`; a block is a row.
__global__ void rms_norm(const Eight *x, const Eight *weight, Eight *out, int width, float eps) {
  x += static_cast<long long>(blockIdx.x) * width;
  out += static_cast<long long>(blockIdx.x) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const Eight piece = x[i];
    for (int j = 0; j < 8; ++j) squares += number(piece.at[j]) * number(piece.at[j]);
  }
  const float scale = rsqrtf(sum_of_block(squares) / (8.0f * width) + eps);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const Eight piece = x[i], factor = weight[i];
    Eight result;
    for (int j = 0; j < 8; ++j) result.at[j] = rounded(number(piece.at[j]) * scale * number(factor.at[j]));
    out[i] = result;
  }
}

// `gate_up` is `[rows, 2, width]`, `out` `[rows, width]`, of 8 · `width`.
__global__ void silu_product(const Eight *gate_up, Eight *out, int width, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    const Eight gate = gate_up[2 * row * width + i], up = gate_up[(2 * row + 1) * width + i];
    Eight result;
    for (int j = 0; j < 8; ++j) {
      const float g = number(gate.at[j]);
      result.at[j] = rounded(g * sigmoid(g) * number(up.at[j]));
    }
    out[row * width + i] = result;
  }
}

// `out` is the gradient of `gate_up`.
__global__ void silu_product_back(const Eight *gradient, const Eight *gate_up, Eight *out, int width, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    const Eight back = gradient[row * width + i];
    const Eight gate = gate_up[2 * row * width + i], up = gate_up[(2 * row + 1) * width + i];
    Eight of_gate, of_up;
    for (int j = 0; j < 8; ++j) {
      const float d = number(back.at[j]), g = number(gate.at[j]), s = sigmoid(g);
      of_gate.at[j] = rounded(d * number(up.at[j]) * s * (1.0f + g * (1.0f - s)));
      of_up.at[j] = rounded(d * g * s);
    }
    out[2 * row * width + i] = of_gate;
    out[(2 * row + 1) * width + i] = of_up;
  }
}

// Rotates `x`, `[tokens, heads, 2, half]` of 8 · `half` and `stride` between tokens, and gives its first `queries` heads
// and the others. `cos` is `[tokens, half]`, `sin` `[tokens, 2, half]`, of which the second is read.
__global__ void rotate(const Eight *x, long long stride, const float *cos, const float *sin, Eight *query, Eight *key,
                       int heads, int queries, int half, int tokens) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, head = i / half, at = i % half;
  if (head >= heads) return;
  for (long long token = blockIdx.y; token < tokens; token += gridDim.y) {
    const Eight *from = x + token * stride + 2 * head * half;
    Eight first = from[at], second = from[half + at];
    turn(first, second, cos + 8 * (token * half + at), sin + 8 * ((2 * token + 1) * half + at), 1.0f);
    Eight *to = head < queries ? query + 2 * (token * queries + head) * half
                               : key + 2 * (token * (heads - queries) + head - queries) * half;
    to[at] = first;
    to[half + at] = second;
  }
}

// `out` is the gradient of `x`, without gaps between tokens.
__global__ void rotate_back(const Eight *query, const Eight *key, const float *cos, const float *sin, Eight *out,
                            int heads, int queries, int half, int tokens) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, head = i / half, at = i % half;
  if (head >= heads) return;
  for (long long token = blockIdx.y; token < tokens; token += gridDim.y) {
    const Eight *from = head < queries ? query + 2 * (token * queries + head) * half
                                       : key + 2 * (token * (heads - queries) + head - queries) * half;
    Eight first = from[at], second = from[half + at];
    turn(first, second, cos + 8 * (token * half + at), sin + 8 * ((2 * token + 1) * half + at), -1.0f);
    Eight *to = out + 2 * (token * heads + head) * half;
    to[at] = first;
    to[half + at] = second;
  }
}

// Rotates as `rotate`, and writes keys and values to their places in a cache, `[places, heads, 2, half]`. `value` has as
// many heads as there are keys, and `value_stride` between tokens.
__global__ void rotate_and_store(const Eight *x, long long stride, const Eight *value, long long value_stride,
                                 const float *cos, const float *sin, const long long *places, Eight *query, Eight *keys,
                                 Eight *values, int heads, int queries, int half, int tokens) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, head = i / half, at = i % half, stored = heads - queries;
  if (head >= heads + stored) return;
  for (long long token = blockIdx.y; token < tokens; token += gridDim.y) {
    if (head >= heads) {
      const Eight *from = value + token * value_stride + 2 * (head - heads) * half;
      Eight *to = values + 2 * (places[token] * stored + head - heads) * half;
      to[at] = from[at];
      to[half + at] = from[half + at];
      continue;
    }
    const Eight *from = x + token * stride + 2 * head * half;
    Eight first = from[at], second = from[half + at];
    turn(first, second, cos + 8 * (token * half + at), sin + 8 * ((2 * token + 1) * half + at), 1.0f);
    Eight *to = head < queries ? query + 2 * (token * queries + head) * half
                               : keys + 2 * (places[token] * stored + head - queries) * half;
    to[at] = first;
    to[half + at] = second;
  }
}
}

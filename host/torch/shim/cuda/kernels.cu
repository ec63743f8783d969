// Parts of a transformer, each as one pass over memory, for numbers of 16 bits (bfloat16). NVRTC compiles this text when
// a process first uses it, so that building needs no compiler for GPUs. A thread reads and writes eight numbers of 16
// bits at a time, or four of 32; sums have 32 bits.

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

// Smaller terms of a sum whose largest is 1 are 0, as on the CPU.
constexpr float SMALLEST_LOGARITHM = -40.0f;

// The logit over the temperature less the largest. An infinite one would make products that are no number.
__device__ float shifted(float z, float largest, float scale) {
  const float x = (z - largest) * scale;
  return x < -80.0f ? -80.0f : x;
}

__device__ float term(float x) { return x < SMALLEST_LOGARITHM ? 0.0f : __expf(x); }

// Of logits over the temperature: the largest, and sums over the others less that, x: of e^x, x · e^x and e^2x.
struct Sums {
  float largest, exponentials, products, squares;

  // The same less another largest, which is not below.
  __device__ void shift(float to, float scale) {
    const float least = -1e30f, x = (largest - to) * scale, by = x < least ? least : x, factor = __expf(by);
    products = (products + by * exponentials) * factor;
    exponentials *= factor;
    squares *= factor * factor;
    largest = to;
  }

  __device__ void add(float z, float scale) {
    const float x = shifted(z, largest, scale), e = term(x);
    exponentials += e;
    products += e * x;
    squares += e * e;
  }

  __device__ void add(Sums other, float scale) {
    const float most = other.largest > largest ? other.largest : largest;
    shift(most, scale);
    other.shift(most, scale);
    exponentials += other.exponentials;
    products += other.products;
    squares += other.squares;
  }
};

__device__ Sums of_lane(const Sums &own, int step) {
  return {__shfl_xor_sync(0xffffffff, own.largest, step), __shfl_xor_sync(0xffffffff, own.exponentials, step),
          __shfl_xor_sync(0xffffffff, own.products, step), __shfl_xor_sync(0xffffffff, own.squares, step)};
}

constexpr float LOWEST = -3e38f;

// A part of a row is this many times four logits. It has a sixteenth for each group of 16 threads.
constexpr int PART = 1024;
constexpr int THREADS_OF_PART = 256;
constexpr int GROUP = 16;

// Of a part's logits over the temperature: the largest, its index in the row, and the sum of e^x of each less that, x.
struct alignas(16) Part {
  float largest;
  int index;
  double sum;
};

// Whether a logit is before another of the same size or smaller.
__device__ bool is_before(float z, int index, float other, int other_index) {
  return z > other || (z == other && index < other_index);
}

// The first place of `weights` at which their sum, with `sum` before it, exceeds `target`. Where rounding leaves it below,
// the last place; never one whose weight is 0, if others are not. `sum` is then the sum before that place.
__device__ int place_of(const double *weights, int count, double target, double &sum) {
  int found = 0;
  double with = sum;
  for (int at = 0; at < count && !(with > target); ++at) {
    if (weights[at] == 0) continue;
    found = at;
    sum = with;
    with += weights[at];
  }
  return found;
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

// Of each row of `logits`, `[rows, width]` of 4 · `width`: the log-probability of its target, what the way back needs
// (the largest, 1 / exponentials and the mean by probability, `[rows, 3]`), and the entropy and the sum of squared
// probabilities where they are wanted. A block is a row; its threads are whole warps.
__global__ void sum_rows(const float4 *logits, const long long *targets, float scale, float *logprobs, float *kept,
                         float *entropies, float *squares, int width) {
  const long long row = blockIdx.x;
  const float4 *z = logits + row * width;
  Sums own = {LOWEST, 0, 0, 0};
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float4 four = z[i];
    const float most = fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
    if (most > own.largest) own.shift(most, scale);
    own.add(four.x, scale);
    own.add(four.y, scale);
    own.add(four.z, scale);
    own.add(four.w, scale);
  }
  __shared__ Sums of_warps[32];
  for (int step = 16; step > 0; step /= 2) own.add(of_lane(own, step), scale);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  own = {LOWEST, 0, 0, 0};
  if (threadIdx.x < blockDim.x / 32) own = of_warps[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) own.add(of_lane(own, step), scale);
  if (threadIdx.x > 0) return;
  const long long target = targets[row];
  const bool is_inside = target >= 0 && target < 4LL * width;
  const float z_of = is_inside ? reinterpret_cast<const float *>(z)[target] : __uint_as_float(0x7fc00000);
  const float logarithm = logf(own.exponentials), mean = own.products / own.exponentials;
  logprobs[row] = (z_of - own.largest) * scale - logarithm;
  kept[3 * row] = own.largest;
  kept[3 * row + 1] = 1.0f / own.exponentials;
  kept[3 * row + 2] = mean;
  if (entropies) entropies[row] = logarithm - mean;
  if (squares) squares[row] = own.squares / (own.exponentials * own.exponentials);
}

// The gradient of the logits, by the gradients of log-probabilities and of entropies, if there are any: -p · logprob
// - p · (log p + H) · entropy, where log p + H = x - mean, and logprob at the target.
__global__ void turn_rows(const float4 *logits, const float *kept, const long long *targets, float scale,
                          const float *for_logprobs, const float *for_entropies, ushort4 *out, int width) {
  const long long row = blockIdx.x;
  const float largest = kept[3 * row], inverse = kept[3 * row + 1], mean = kept[3 * row + 2];
  const float logprob = for_logprobs[row] * scale, entropy = for_entropies ? for_entropies[row] * scale : 0.0f;
  const float constant = inverse * (entropy * mean - logprob), slope = -inverse * entropy;
  const long long target = targets[row];
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float4 four = logits[row * width + i];
    const float z[4] = {four.x, four.y, four.z, four.w};
    bf16 result[4];
    for (int j = 0; j < 4; ++j) {
      const float x = shifted(z[j], largest, scale);
      const float back = term(x) * (constant + slope * x);
      result[j] = rounded(4LL * i + j == target ? back + logprob : back);
    }
    out[row * width + i] = make_ushort4(result[0], result[1], result[2], result[3]);
  }
}

// Of each part of each row of `logits`, `[rows, width]` of 4 · `width`: a block is a part.
__global__ void sum_parts(const float4 *logits, const double *temperatures, Part *parts, int width) {
  __shared__ float largest_of[THREADS_OF_PART];
  __shared__ int index_of[THREADS_OF_PART];
  __shared__ double sum_of[THREADS_OF_PART];
  const long long row = blockIdx.y;
  const int thread = threadIdx.x, from = blockIdx.x * PART, to = from + PART < width ? from + PART : width;
  const float scale = static_cast<float>(1.0 / temperatures[row]);
  float largest = LOWEST;
  int index = 4 * from;
  for (int i = from + thread; i < to; i += THREADS_OF_PART) {
    const float4 four = logits[row * width + i];
    const float z[4] = {four.x * scale, four.y * scale, four.z * scale, four.w * scale};
    for (int j = 0; j < 4; ++j) {
      if (z[j] > largest) {
        largest = z[j];
        index = 4 * i + j;
      }
    }
  }
  largest_of[thread] = largest;
  index_of[thread] = index;
  for (int step = THREADS_OF_PART / 2; step > 0; step /= 2) {
    __syncthreads();
    const int other = thread + step;
    if (thread < step && is_before(largest_of[other], index_of[other], largest_of[thread], index_of[thread])) {
      largest_of[thread] = largest_of[other];
      index_of[thread] = index_of[other];
    }
  }
  __syncthreads();
  largest = largest_of[0];
  float sum = 0;
  for (int i = from + thread; i < to; i += THREADS_OF_PART) {
    const float4 four = logits[row * width + i];
    const float z[4] = {four.x * scale, four.y * scale, four.z * scale, four.w * scale};
    for (int j = 0; j < 4; ++j) sum += expf(z[j] - largest);
  }
  sum_of[thread] = sum;
  for (int step = THREADS_OF_PART / 2; step > 0; step /= 2) {
    __syncthreads();
    if (thread < step) sum_of[thread] += sum_of[thread + step];
  }
  if (thread == 0) parts[row * gridDim.x + blockIdx.x] = {largest, index_of[0], sum_of[0]};
}

// Draws a token for each row, which is a block: the first at which the sum of probabilities exceeds the share `uniforms`
// of their total or, where `greedy` is not 0, the most probable one, of several the first. A row has at most
// `THREADS_OF_PART` parts. `pairs` is `[rows, 2]`: the token and its log-probability.
__global__ void draw(const float4 *logits, const Part *parts, const double *temperatures, const double *uniforms,
                     const long long *greedy, long long *tokens, double *pairs, int width, int count) {
  __shared__ double weights[THREADS_OF_PART];
  __shared__ double groups[THREADS_OF_PART / GROUP];
  const long long row = blockIdx.x;
  const int thread = threadIdx.x;
  parts += row * count;
  float largest = LOWEST;
  int best = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].largest > largest) {
      largest = parts[i].largest;
      best = parts[i].index;
    }
  }
  if (thread < count) weights[thread] = parts[thread].sum * expf(parts[thread].largest - largest);
  __syncthreads();
  double total = 0;
  for (int i = 0; i < count; ++i) total += weights[i];
  double before = 0;
  const double target = uniforms[row] * total;
  const int part = place_of(weights, count, target, before);
  const double share = (target - before) / weights[part];
  __syncthreads();

  const float scale = static_cast<float>(1.0 / temperatures[row]), most = parts[part].largest;
  const int first = part * PART + thread * (PART / THREADS_OF_PART);
  float z[PART / THREADS_OF_PART * 4];
  double own[PART / THREADS_OF_PART * 4], sum = 0;
  for (int i = 0; i < PART / THREADS_OF_PART; ++i) {
    const bool is_inside = first + i < width;
    const float4 four = is_inside ? logits[row * width + first + i] : make_float4(0, 0, 0, 0);
    const float of[4] = {four.x, four.y, four.z, four.w};
    for (int j = 0; j < 4; ++j) {
      z[4 * i + j] = of[j] * scale;
      own[4 * i + j] = is_inside ? expf(z[4 * i + j] - most) : 0.0f;
      sum += own[4 * i + j];
    }
  }
  weights[thread] = sum;
  __syncthreads();
  if (thread < THREADS_OF_PART / GROUP) {
    double of_group = 0;
    for (int i = 0; i < GROUP; ++i) of_group += weights[thread * GROUP + i];
    groups[thread] = of_group;
  }
  __syncthreads();
  double whole = 0;
  for (int i = 0; i < THREADS_OF_PART / GROUP; ++i) whole += groups[i];
  before = 0;
  const int group = place_of(groups, THREADS_OF_PART / GROUP, share * whole, before);
  const int owner = group * GROUP + place_of(weights + group * GROUP, GROUP, share * whole, before);
  if (thread != owner) return;
  const int at = place_of(own, PART / THREADS_OF_PART * 4, share * whole, before);
  const bool is_greedy = greedy[row] != 0;
  const int drawn = 4 * first + at < 4 * width ? 4 * first + at : 4 * width - 1;
  tokens[row] = is_greedy ? best : drawn;
  const double logarithm = log(total);
  pairs[2 * row] = is_greedy ? best : drawn;
  pairs[2 * row + 1] = (is_greedy ? 0.0 : static_cast<double>(z[at]) - largest) - logarithm;
}
}

// Parts of a transformer on a GPU, as kernels of our own (`kernels.cu`), with gradients. There are no second
// derivatives. The Rust side ensures that numbers are of bfloat16 and widths multiples of what a thread reads.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <torch/csrc/autograd/custom_function.h>

#include "../guarded.h"
#include "kernels.inc"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// What NVRTC declares in its header, which does not come with libtorch.
using Program = struct _nvrtcProgram *;

// The functions of NVRTC and of the driver, from the libraries that libtorch loads for its own kernels.
struct Compiler {
  int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(Program, int, const char *const *);
  int (*size)(Program, size_t *);
  int (*code)(Program, char *);
  int (*log_size)(Program, size_t *);
  int (*log)(Program, char *);
  int (*destroy)(Program *);
  CUresult (*load)(CUmodule *, const void *);
  CUresult (*function)(CUfunction *, CUmodule, const char *);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                     void **);

  Compiler() {
    // It lies beside libtorch's CUDA part, and knows where NVRTC is.
    Dl_info torch;
    TORCH_CHECK(dladdr(reinterpret_cast<void *>(&at::cuda::getCurrentDeviceProperties), &torch), "libtorch has no path");
    const std::string path(torch.dli_fname);
    const auto name = path.substr(0, path.rfind('/') + 1) + "libcaffe2_nvrtc.so";
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(library, "NVRTC cannot be loaded: ", dlerror());
    const auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      TORCH_CHECK(function, name, " is missing");
    };
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(size, "nvrtcGetCUBINSize");
    find(code, "nvrtcGetCUBIN");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(destroy, "nvrtcDestroyProgram");
    find(load, "cuModuleLoadData");
    find(function, "cuModuleGetFunction");
    find(launch, "cuLaunchKernel");
  }

  // The code of the kernels for a GPU.
  std::string compiled(const cudaDeviceProp &device) const {
    Program program;
    TORCH_CHECK(create(&program, KERNELS, "kernels.cu", 0, nullptr, nullptr) == 0, "a program cannot be created");
    const auto architecture = "--gpu-architecture=sm_" + std::to_string(device.major * 10 + device.minor);
    const char *options[] = {architecture.c_str()};
    const int status = compile(program, 1, options);
    size_t length = 0;
    std::string result;
    (status ? log_size : size)(program, &length);
    result.resize(length);
    (status ? log : code)(program, result.data());
    destroy(&program);
    TORCH_CHECK(status == 0, "kernels do not compile for ", architecture, ": ", result);
    return result;
  }
};

const Compiler &compiler() {
  static const Compiler compiler;
  return compiler;
}

// A kernel on the current device, which is compiled at its first use there.
CUfunction kernel(const char *name) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, CUmodule> modules;
  static std::map<std::pair<c10::DeviceIndex, std::string>, CUfunction> kernels;
  const std::lock_guard<std::mutex> guard(mutex);
  const auto device = c10::cuda::current_device();
  auto &found = kernels[{device, name}];
  if (found) return found;
  auto &module = modules[device];
  if (!module) {
    const auto code = compiler().compiled(*at::cuda::getCurrentDeviceProperties());
    TORCH_CHECK(compiler().load(&module, code.data()) == CUDA_SUCCESS, "kernels cannot be loaded");
  }
  TORCH_CHECK(compiler().function(&found, module, name) == CUDA_SUCCESS, "there is no kernel ", name);
  return found;
}

// Launches a kernel with these arguments.
template <typename... Arguments>
void launch(const char *name, std::array<unsigned, 2> blocks, unsigned threads, Arguments... arguments) {
  void *pointers[] = {&arguments...};
  const auto status = compiler().launch(kernel(name), blocks[0], blocks[1], 1, threads, 1, 1, 0,
                                        c10::cuda::getCurrentCUDAStream(), pointers, nullptr);
  TORCH_CHECK(status == CUDA_SUCCESS, name, " cannot be launched: ", static_cast<int>(status));
}

// Numbers that a thread reads at a time.
constexpr int64_t EIGHT = 8;
constexpr int64_t FOUR = 4;
constexpr unsigned THREADS = 128;
constexpr unsigned THREADS_OF_ROW = 512;
// As in the kernels that draw: the numbers of four in a part of a row, its threads, and the bytes that are kept of it.
constexpr int64_t PART = 1024;
constexpr unsigned THREADS_OF_PART = 256;
constexpr int64_t BYTES_OF_PART = 16;
// The most blocks in the second dimension.
constexpr int64_t MOST_BLOCKS = 65535;

// Blocks whose threads are `width` numbers of eight, for each of `rows`.
std::array<unsigned, 2> blocks(int64_t width, int64_t rows) {
  return {static_cast<unsigned>((width + THREADS - 1) / THREADS), static_cast<unsigned>(std::min(rows, MOST_BLOCKS))};
}

// Where eight numbers at a time can be read.
const void *read(const at::Tensor &x) {
  const void *data = x.const_data_ptr();
  TORCH_CHECK(reinterpret_cast<uintptr_t>(data) % 16 == 0 && x.stride(-1) == 1, "numbers are not aligned");
  return data;
}

int int_of(int64_t x) {
  TORCH_CHECK(x >= 0 && x < (int64_t{1} << 30), "a size of ", x, " is too large");
  return static_cast<int>(x);
}

// The numbers of eight between two tokens of `[tokens, heads, width]`, whose heads are neighbours.
long long stride_of(const at::Tensor &x) {
  TORCH_CHECK(x.stride(0) % EIGHT == 0 && x.stride(1) == x.size(2), "heads are not neighbours");
  return x.stride(0) / EIGHT;
}

struct SiluProduct : Function<SiluProduct> {
  static at::Tensor compute(const at::Tensor &gate_up) {
    const auto rows = gate_up.size(0), width = gate_up.size(1) / 2;
    auto out = at::empty({rows, width}, gate_up.options());
    if (out.numel() == 0) return out;
    launch("silu_product", blocks(width / EIGHT, rows), THREADS, read(gate_up), out.mutable_data_ptr(),
           int_of(width / EIGHT), int_of(rows));
    return out;
  }

  static at::Tensor forward(AutogradContext *context, const at::Tensor &gate_up) {
    context->save_for_backward({gate_up});
    return compute(gate_up);
  }

  static variable_list backward(AutogradContext *context, variable_list gradients) {
    const auto gate_up = context->get_saved_variables()[0];
    const c10::cuda::CUDAGuard guard(gate_up.device());
    const auto gradient = gradients[0].contiguous();
    auto out = at::empty_like(gate_up);
    const auto rows = gate_up.size(0), width = gate_up.size(1) / 2 / EIGHT;
    if (out.numel() > 0) {
      launch("silu_product_back", blocks(width, rows), THREADS, read(gradient), read(gate_up), out.mutable_data_ptr(),
             int_of(width), int_of(rows));
    }
    return {out};
  }
};

// The sizes of a rotation.
struct Sizes {
  int heads, queries, half, tokens;

  Sizes(const at::Tensor &x, int64_t queries)
      : heads(int_of(x.size(1))), queries(int_of(queries)), half(int_of(x.size(2) / 2 / EIGHT)),
        tokens(int_of(x.size(0))) {}
};

struct Rotate : Function<Rotate> {
  static variable_list compute(const at::Tensor &x, const at::Tensor &cos, const at::Tensor &sin, int64_t queries) {
    const Sizes of(x, queries);
    auto query = at::empty({x.size(0), queries, x.size(2)}, x.options());
    auto key = at::empty({x.size(0), x.size(1) - queries, x.size(2)}, x.options());
    if (x.numel() > 0) {
      launch("rotate", blocks(int64_t{of.heads} * of.half, of.tokens), THREADS, read(x), stride_of(x),
             cos.const_data_ptr(), sin.const_data_ptr(), query.mutable_data_ptr(), key.mutable_data_ptr(), of.heads,
             of.queries, of.half, of.tokens);
    }
    return {query, key};
  }

  static variable_list forward(AutogradContext *context, const at::Tensor &x, const at::Tensor &cos,
                               const at::Tensor &sin, int64_t queries) {
    context->save_for_backward({cos, sin});
    context->saved_data["heads"] = x.size(1);
    return compute(x, cos, sin, queries);
  }

  static variable_list backward(AutogradContext *context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const c10::cuda::CUDAGuard guard(saved[0].device());
    const auto query = gradients[0].contiguous(), key = gradients[1].contiguous();
    auto out = at::empty({query.size(0), context->saved_data["heads"].toInt(), query.size(2)}, query.options());
    const Sizes of(out, query.size(1));
    if (out.numel() > 0) {
      launch("rotate_back", blocks(int64_t{of.heads} * of.half, of.tokens), THREADS, read(query), read(key),
             saved[0].const_data_ptr(), saved[1].const_data_ptr(), out.mutable_data_ptr(), of.heads, of.queries,
             of.half, of.tokens);
    }
    return {out, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

bool needs_gradient(const at::Tensor &x) { return at::GradMode::is_enabled() && x.requires_grad(); }

} // namespace

extern "C" {

// `x` is `[…, width]` without gaps, `weight` `[width]`. With a gradient it is libtorch's operation, which is one pass.
char *gavel_cuda_rms_norm(const at::Tensor *x, const at::Tensor *weight, double eps, at::Tensor **result) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(x->device());
    if (needs_gradient(*x) || needs_gradient(*weight)) {
      *result = new at::Tensor(at::rms_norm(*x, weight->sizes(), *weight, eps));
      return;
    }
    const auto width = x->size(-1) / EIGHT, rows = x->numel() / x->size(-1);
    auto out = at::empty_like(*x);
    if (rows > 0) {
      const auto threads = static_cast<unsigned>(std::min<int64_t>((width + 31) / 32 * 32, 512));
      launch("rms_norm", {static_cast<unsigned>(int_of(rows)), 1}, threads, read(*x), read(*weight),
             out.mutable_data_ptr(), int_of(width), static_cast<float>(eps));
    }
    *result = new at::Tensor(out);
  });
}

// `gate_up` is `[rows, 2 * width]` without gaps.
char *gavel_cuda_silu_product(const at::Tensor *gate_up, at::Tensor **result) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(gate_up->device());
    *result = new at::Tensor(needs_gradient(*gate_up) ? SiluProduct::apply(*gate_up) : SiluProduct::compute(*gate_up));
  });
}

// As `gavel_rotate`.
char *gavel_cuda_rotate(const at::Tensor *x, const at::Tensor *cos, const at::Tensor *sin, int64_t queries,
                        at::Tensor **result) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(x->device());
    const auto found =
        needs_gradient(*x) ? Rotate::apply(*x, *cos, *sin, queries) : Rotate::compute(*x, *cos, *sin, queries);
    result[0] = new at::Tensor(found[0]);
    result[1] = new at::Tensor(found[1]);
  });
}

// Without a gradient: gives the queries, and writes keys and values, `[places, heads, width]` without gaps.
char *gavel_cuda_rotate_and_store(const at::Tensor *x, const at::Tensor *value, const at::Tensor *cos,
                                  const at::Tensor *sin, const at::Tensor *places, const at::Tensor *keys,
                                  const at::Tensor *values, int64_t queries, at::Tensor **result) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(x->device());
    const Sizes of(*x, queries);
    auto query = at::empty({x->size(0), queries, x->size(2)}, x->options());
    if (of.tokens > 0) {
      const int64_t heads = 2 * of.heads - of.queries;
      launch("rotate_and_store", blocks(heads * of.half, of.tokens), THREADS, read(*x), stride_of(*x), read(*value),
             stride_of(*value), cos->const_data_ptr(), sin->const_data_ptr(), places->const_data_ptr(),
             query.mutable_data_ptr(), keys->mutable_data_ptr(), values->mutable_data_ptr(), of.heads, of.queries,
             of.half, of.tokens);
    }
    *result = new at::Tensor(query);
  });
}

// Of each row of `logits`, `[rows, width]` of 32 bits, as `compute_by_rows` (`shim/head.cpp`) gives them. `entropies` and
// `squares` may be null.
char *gavel_cuda_sum_rows(const at::Tensor *logits, const at::Tensor *targets, double temperature,
                          const at::Tensor *logprobs, const at::Tensor *kept, const at::Tensor *entropies,
                          const at::Tensor *squares) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(logits->device());
    if (logits->size(0) == 0) return;
    launch("sum_rows", {static_cast<unsigned>(int_of(logits->size(0))), 1}, THREADS_OF_ROW, read(*logits),
           targets->const_data_ptr(), static_cast<float>(1 / temperature), logprobs->mutable_data_ptr(),
           kept->mutable_data_ptr(), entropies ? entropies->mutable_data_ptr() : nullptr,
           squares ? squares->mutable_data_ptr() : nullptr, int_of(logits->size(1) / FOUR));
  });
}

// The gradient of `logits` in bfloat16, as `turn_by_rows` gives it. `for_entropies` may be null.
char *gavel_cuda_turn_rows(const at::Tensor *logits, const at::Tensor *kept, const at::Tensor *targets,
                           double temperature, const at::Tensor *for_logprobs, const at::Tensor *for_entropies,
                           const at::Tensor *gradient) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(logits->device());
    if (logits->size(0) == 0) return;
    launch("turn_rows", {static_cast<unsigned>(int_of(logits->size(0))), 1}, THREADS_OF_ROW, read(*logits),
           kept->const_data_ptr(), targets->const_data_ptr(), static_cast<float>(1 / temperature),
           for_logprobs->const_data_ptr(), for_entropies ? for_entropies->const_data_ptr() : nullptr,
           gradient->mutable_data_ptr(), int_of(logits->size(1) / FOUR));
  });
}

// Tokens, `[rows, 1]`, and the pairs of each and its log-probability, `[rows, 1, 2]`, from `logits`, `[rows, width]` of 32
// bits without gaps, whose width is a multiple of four and has at most as many parts as a part has threads. Temperatures
// and uniform numbers have 64 bits; where `greedy` is not 0, the token is the most probable one. Each is `[rows]`.
char *gavel_cuda_draw(const at::Tensor *logits, const at::Tensor *temperatures, const at::Tensor *uniforms,
                      const at::Tensor *greedy, at::Tensor **result) {
  return guarded([&] {
    const c10::cuda::CUDAGuard guard(logits->device());
    const auto rows = logits->size(0), width = logits->size(1) / FOUR, parts = (width + PART - 1) / PART;
    auto kept = at::empty({rows, parts, BYTES_OF_PART}, logits->options().dtype(at::kByte));
    auto tokens = at::empty({rows, 1}, logits->options().dtype(at::kLong));
    auto pairs = at::empty({rows, 1, 2}, logits->options().dtype(at::kDouble));
    if (rows > 0) {
      const auto all = static_cast<unsigned>(int_of(rows));
      launch("sum_parts", {static_cast<unsigned>(parts), all}, THREADS_OF_PART, read(*logits),
             temperatures->const_data_ptr(), kept.mutable_data_ptr(), int_of(width));
      launch("draw", {all, 1}, THREADS_OF_PART, read(*logits), kept.const_data_ptr(), temperatures->const_data_ptr(),
             uniforms->const_data_ptr(), greedy->const_data_ptr(), tokens.mutable_data_ptr(), pairs.mutable_data_ptr(),
             int_of(width), int_of(parts));
    }
    result[0] = new at::Tensor(tokens);
    result[1] = new at::Tensor(pairs);
  });
}
}

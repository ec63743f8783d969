// Settings that libtorch has once for the whole process. None of them asks about CUDA.
#include <ATen/Context.h>

extern "C" {

void gavel_context_for_gpus() {
  auto &context = at::globalContext();
  // cuDNN builds a plan for each shape of attention, and shapes hardly ever repeat here. Flash attention needs none.
  context.setSDPUseCuDNN(false);
  // Parts of a product over 16 bits are added up in 32. They may be parts of its sums, too: cuBLAS, which is libtorch's
  // default, cannot refuse that.
  context.setAllowBF16ReductionCuBLAS(false, true);
  context.setAllowFP16ReductionCuBLAS(false, true);
}

bool gavel_context_has_cudnn_attention() { return at::globalContext().userEnabledCuDNNSDP(); }

bool gavel_context_is_deterministic() { return at::globalContext().deterministicAlgorithms(); }

void gavel_context_set_deterministic(bool on) { at::globalContext().setDeterministicAlgorithms(on, false); }
}

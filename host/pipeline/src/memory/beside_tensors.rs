//! The memory that a process takes on a GPU beside the tensors of its models. It depends on the driver and on the GPU.

use tch::Device;

const MIB: u64 = 1 << 20;

/// A context of CUDA with the kernels that are loaded into it: 722 MiB on an H200 with its driver 580 and CUDA 13, in a
/// process that decodes.
const CONTEXT: u64 = 768 * MIB;

/// A workspace of cuBLAS: libtorch 2.11 takes 32 MiB on an H100 or H200, 8.1 MiB on other GPUs, for each thread and
/// stream that multiplies (`at::cuda::getChosenWorkspaceSize`). cuBLASLt uses the same
/// (`TORCH_CUBLASLT_UNIFIED_WORKSPACE`, which is on). `CUBLAS_WORKSPACE_CONFIG=:4096:8`, of `resources.deterministic`,
/// means 32 MiB too.
const WORKSPACE: u64 = 32 * MIB;

/// The threads and streams of a device that multiply: the thread of the device, the one of autograd, and the stream on
/// which graphs are recorded.
const STREAMS: u64 = 3;

/// NCCL's connections of a rank, an estimate: buffers of 4 MiB (`NCCL_BUFFSIZE`), and smaller ones of its other two protocols, for
/// each of up to 32 channels with both neighbours of a ring, and of a tree.
const CONNECTIONS: u64 = 512 * MIB;

/// The memory of a process that computes on a device, beside tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BesideTensors {
    /// The context, which is there once the device was asked for its memory.
    pub(super) context: u64,
    /// Workspaces of products.
    pub(super) workspaces: u64,
    /// The connections with other ranks.
    pub(super) connections: u64,
}

impl BesideTensors {
    /// On `device`, of one of `ranks` ranks. Nothing on the CPU.
    pub(super) fn on(device: Device, ranks: usize) -> Self {
        match device {
            Device::Cuda(_) => Self {
                context: CONTEXT,
                workspaces: STREAMS * WORKSPACE,
                connections: if ranks > 1 { CONNECTIONS } else { 0 },
            },
            _ => Self { context: 0, workspaces: 0, connections: 0 },
        }
    }

    /// All of it.
    pub(super) fn total(&self) -> u64 {
        self.context + self.workspaces + self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gpus_have_it_and_only_ranks_are_connected() {
        let of = |device, ranks| BesideTensors::on(device, ranks).total() / MIB;
        assert_eq!((of(Device::Cpu, 1), of(Device::Cpu, 8)), (0, 0));
        assert_eq!((of(Device::Cuda(1), 1), of(Device::Cuda(1), 8)), (768 + 96, 768 + 96 + 512));
    }
}

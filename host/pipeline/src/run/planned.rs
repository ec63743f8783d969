//! What a dry run plans for: a number of ranks, and a GPU that need not be there.

use bytesize::ByteSize;
use gavel_policy::{Device, PolicyError, device};
use std::str::FromStr;

const MIB: u64 = 1 << 20;

/// The memory of GPUs in MiB, as CUDA reports it: half a GiB to a GiB less than `nvidia-smi` prints. The least of what
/// errors of PyTorch reported ("GPU 0 has a total capacity of 79.11 GiB"), rounded down: vllm-project/vllm#27508 (H100),
/// ali-vilab/VACE#56 (H100 NVL), QwenLM/Qwen3-VL#2097 (L40), pytorch/torchchat#1341 (RTX 4090), zai-org/CogVLM#236 (A10).
/// The others are 3 % less than the memory that `nvidia-smi` prints (modal-labs/modal-client#2797).
const GPUS: [(&str, u64); 11] = [
    ("H200", 139_000),
    ("H100-NVL", 95_200),
    ("H100", 81_000),
    ("A100-80GB", 79_400),
    ("A100-40GB", 39_700),
    ("L40S", 45_400),
    ("L40", 45_400),
    ("RTX4090", 24_000),
    ("A10", 22_500),
    ("L4", 22_300),
    ("T4", 14_800),
];

/// What a dry run plans for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The ranks of the run.
    pub ranks: usize,
    /// The GPU of each rank, in place of the devices of this machine.
    pub gpu: Option<PlannedGpu>,
}

/// A GPU that need not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGpu {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its memory, in bytes.
    pub(crate) memory: u64,
}

impl From<usize> for Planned {
    fn from(ranks: usize) -> Self {
        Self { ranks, gpu: None }
    }
}

impl PlannedGpu {
    /// The GPU that the name `device` of a configuration stands for where such GPUs are.
    fn device(name: &str) -> Option<Device> {
        match name {
            "auto" | "cuda" => Some(Device::Cuda(0)),
            _ => name.strip_prefix("cuda:")?.parse().ok().map(Device::Cuda),
        }
    }
}

/// The device of this name, which need not be there if a GPU is planned for.
pub(crate) fn select(gpu: Option<&PlannedGpu>, name: &str) -> Result<Device, PolicyError> {
    gpu.and_then(|_| PlannedGpu::device(name)).map_or_else(|| device::select(name), Ok)
}

/// The name of a GPU, or the size of its memory.
impl FromStr for PlannedGpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |name: &str| name.to_ascii_uppercase().replace(['-', ' ', '_'], "");
        if let Some((name, memory)) = GPUS.iter().find(|(name, _)| plain(name) == plain(text)) {
            return Ok(Self { name: (*name).to_owned(), memory: memory * MIB });
        }
        match text.parse::<ByteSize>() {
            Ok(ByteSize(memory)) if memory > 0 => Ok(Self { name: "the GPU".into(), memory }),
            _ => {
                let known = GPUS.map(|(name, _)| name).join(", ");
                Err(format!("neither a size, such as 80GiB, nor a GPU that gavel knows: {known}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_named_or_have_a_size() {
        let gpu = |text: &str| text.parse::<PlannedGpu>().map(|gpu| (gpu.name, gpu.memory / MIB));
        assert_eq!(gpu("80GiB"), Ok(("the GPU".into(), 80 * 1024)));
        assert_eq!(gpu("h100"), Ok(("H100".into(), 81_000)));
        assert_eq!(gpu("a100 80gb"), Ok(("A100-80GB".into(), 79_400)));
        for wrong in ["H1000", "0", "much"] {
            let error = gpu(wrong).unwrap_err();
            assert!(error.starts_with("neither a size, such as 80GiB, nor a GPU that gavel knows: H200, "), "{error}");
        }
    }

    #[test]
    fn a_planned_gpu_need_not_be_there() {
        let gpu = PlannedGpu { name: "H100".into(), memory: 1 };
        let devices = ["auto", "cuda", "cuda:4096", "cpu"].map(|name| select(Some(&gpu), name).unwrap());
        assert_eq!(devices, [Device::Cuda(0), Device::Cuda(0), Device::Cuda(4096), Device::Cpu]);
        assert!(select(Some(&gpu), "cdua").is_err());
    }
}

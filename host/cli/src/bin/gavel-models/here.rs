//! The reward models and the devices of this process.

use crate::{libtorch, reward_models};
use anyhow::Result;
use bytesize::ByteSize;
use gavel::doctor::Finding;
use gavel::models::Models;
use gavel_plugin::{Limits, RewardModel};
use gavel_policy::device::{DeviceMemory, memory, select, why_no_gpu};
use gavel_scoring::WeightedPlugin;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Has libtorch.
pub struct Here;

impl Models for Here {
    fn reward_models(
        given: Vec<(String, String)>,
        plugins: &mut Vec<WeightedPlugin>,
        limits: Limits,
    ) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
        reward_models::load(given, plugins, limits)
    }

    fn findings() -> Result<Vec<(&'static str, Finding)>> {
        // Without it, the process would not have started.
        let loaded = libtorch::loaded().unwrap_or_else(|| "linked".into());
        let gpu = match (why_no_gpu(), select("cuda:0").and_then(memory)) {
            (Some(why), _) => Finding::Missing(
                why,
                "models are trained on the processor; for a GPU, install its driver and a PyTorch with CUDA, and set LD_LIBRARY_PATH to its folder torch/lib or build gavel with it"
                    .into(),
            ),
            (None, Ok(DeviceMemory { total, free })) => {
                let nccl = match gavel_torch::cuda::nccl_version() {
                    Ok(version) => format!("several connected by NCCL {version}"),
                    Err(why) => format!("not several, because {why}"),
                };
                Finding::Ok(format!("cuda:0, {} of {} free; {nccl}", ByteSize(free), ByteSize(total)))
            }
            (None, Err(error)) => Finding::Missing(error.to_string(), "check the driver with `nvidia-smi`".into()),
        };
        let host = match select("cpu").and_then(memory) {
            Ok(DeviceMemory { total, free }) if free < 1 << 30 => Finding::Missing(
                format!("{} of {} free", ByteSize(free), ByteSize(total)),
                "end other programs; `gavel train --dry-run` prints what a run needs".into(),
            ),
            Ok(DeviceMemory { total, free }) => Finding::Ok(format!("{} of {} free", ByteSize(free), ByteSize(total))),
            Err(error) => {
                Finding::Missing(error.to_string(), "runs start without a check that the memory is enough".into())
            }
        };
        Ok(vec![("libtorch", Finding::Ok(loaded)), ("memory", host), ("GPU", gpu)])
    }
}

//! The memory that a run will need on its device, predicted before it starts, and the memory that there is.

mod beside_tensors;
mod plan;
mod prediction;

pub use prediction::{Part, Prediction};

use crate::error::{PipelineError, Result};
use crate::rows::{Prompts, SftRows};
use crate::run::{Setup, select};
use bytesize::ByteSize;
use gavel_config::{Config, LearningConfig, ReferenceTable, RlTable, SftTable, TrainTable};
use gavel_policy::device::{DeviceMemory, memory};
use gavel_policy::{Device, ModelConfig};
use gavel_train::memory::{ChangedLogits, SharedBy};
use gavel_train::{Parameters, Taught};
use plan::{CriticPlan, MiniBatch, Plan};
use std::collections::BTreeSet;

/// What each of `ranks` ranks of `gavel train` needs with these prompts.
pub(crate) fn predict_train(
    config: &Config<RlTable>,
    setup: &Setup,
    prompts: &Prompts,
    ranks: usize,
) -> Result<Prediction> {
    let (table, group, ranks) = (&config.train, config.rollout.group_size as u64, shared(config, ranks));
    let responses = group * config.rollout.max_tokens as u64;
    let (shortest, longest) = (prompts.lengths.0 as u64, prompts.lengths.1 as u64);
    let batch = MiniBatch {
        rows: (table.mini_batch() as u64 * group).div_ceil(ranks.ranks as u64),
        group,
        prompt: longest,
        response: config.rollout.max_tokens as u64,
        learned: responses as f64 / (shortest + responses) as f64,
    };
    // Ranks with a reward model draw nothing.
    let placed: BTreeSet<usize> = config.reward_model.values().flat_map(|model| model.ranks.iter().copied()).collect();
    let prompts = table.prompts_per_step.div_ceil(ranks.ranks.saturating_sub(placed.len()).max(1));
    let prompts = config.ranks.groups_at_once.unwrap_or(prompts).max(prompts) as u64;
    let drawn = prompts * (group + u64::from(table.algorithm().needs_greedy()));
    let mut plan = Plan::new(config, setup, batch, drawn, batch.prompt, ranks)?;
    plan.has_reference = table.needs_reference() && table.reference.as_ref().is_none_or(ReferenceTable::is_of_policy);
    plan.idle_penalty = table.idle_penalty();
    let others = table.reference.iter().flat_map(|table| table.path.as_deref().into_iter().chain(table.of_sources()));
    plan.other_references = others.map(ModelConfig::load).collect::<std::result::Result<_, _>>()?;
    if let Some(distillation) = &table.loss.distillation {
        let top_k = (distillation.top_k as u64).min(setup.sizes.vocab_size as u64);
        let rows = (table.prompts_per_step as u64 * group).div_ceil(ranks.ranks as u64);
        let bytes = (rows * batch.response).saturating_mul(Taught::bytes_of_token(top_k));
        if setup.planned.is_none() {
            check_taught(top_k, bytes, memory(Device::Cpu).ok())?;
        }
        plan.taught = Some(bytes);
    }
    if let Some(critic) = &table.critic
        && select(setup.planned.as_ref(), critic.device.as_ref().unwrap_or(&config.model.device))? == plan.device()
    {
        let sizes = crate::run::critic::sizes(critic, &setup.sizes)?;
        plan.critic = Some(CriticPlan {
            sizes,
            dtype: critic.dtype.unwrap_or(config.model.dtype),
            lora: critic.lora.clone(),
            optimizer: critic.optimizer.beside(&table.optimizer).kind,
        });
    }
    plan.keeps_before_step =
        config.schedule.stream && table.loss().needs_proximal() && table.mini_batch() < table.prompts_per_step;
    plan.optimizer = table.optimizer.kind;
    plan.gradient_checkpointing = table.gradient_checkpointing;
    plan.max_tokens_per_micro_batch = table.max_tokens_per_micro_batch as u64;
    if table.records_masks(&config.rollout) {
        let sampling = config.rollout.sampling(Vec::new());
        let vocabulary = setup.sizes.vocab_size as u64;
        // A mask has the tokens that can be drawn or the others, whichever are fewer.
        let kept = sampling.top_k.map_or(vocabulary, |most| most as u64).min(vocabulary / 2);
        let kept = if sampling.is_truncated() || config.rollout.grammar.is_some() { kept } else { 0 };
        let whole = (batch.prompt + batch.response).min(vocabulary);
        let penalised = if sampling.repetition_penalty == 1.0 { 0 } else { whole };
        plan.changed_logits = ChangedLogits { kept, penalised };
    }
    plan.predict_with_advice()
}

/// Refuses a run for which the host does not have the memory that is kept of references between its updates.
fn check_taught(top_k: u64, bytes: u64, host: Option<DeviceMemory>) -> Result<()> {
    match host {
        Some(host) if bytes > host.total => Err(PipelineError::Stopped(format!(
            "train.loss.distillation.top_k: the {top_k} most probable tokens in each place of a step take up to {} of memory, and the host has {}\nhint: set a smaller top_k, such as 64, or a smaller prompts_per_step",
            ByteSize(bytes),
            ByteSize(host.total)
        ))),
        _ => Ok(()),
    }
}

/// What each of `ranks` ranks of `gavel sft` needs with these rows.
pub(crate) fn predict_sft(
    config: &Config<SftTable>,
    setup: &Setup,
    rows: &SftRows,
    ranks: usize,
) -> Result<Prediction> {
    let batch = MiniBatch {
        rows: config.train.batch_size.div_ceil(ranks) as u64,
        group: 1,
        prompt: rows.longest.0 as u64,
        response: rows.longest.1 as u64,
        learned: rows.learned,
    };
    let mut plan = Plan::new(config, setup, batch, 0, 0, shared(config, ranks))?;
    plan.optimizer = config.train.optimizer.kind;
    plan.gradient_checkpointing = config.train.gradient_checkpointing;
    plan.max_tokens_per_micro_batch = config.train.max_tokens_per_micro_batch as u64;
    plan.predict_with_advice()
}

fn shared<T>(config: &Config<T>, ranks: usize) -> SharedBy {
    SharedBy { ranks, by_layer: config.ranks.parameters == Parameters::ByLayer }
}

/// What each of `ranks` ranks of a run that learns from `batch_size` pairs a step needs. The longest pair has `common`
/// tokens in common, and then `rest` tokens on each side.
pub(crate) fn predict_pairs<T>(
    config: &Config<T>,
    setup: &Setup,
    learning: &LearningConfig,
    (common, rest): (usize, usize),
    batch_size: usize,
    has_reference: bool,
    ranks: usize,
) -> Result<Prediction> {
    let (prompt, response) = (common as u64, rest as u64);
    // A reward model has one output for each row; a policy has logits for each token of a response.
    let learned = match setup.sizes.head.labels() {
        Some(_) => 0.0,
        None => (2 * response) as f64 / (prompt + 2 * response).max(1) as f64,
    };
    let batch = MiniBatch { rows: 2 * batch_size.div_ceil(ranks) as u64, group: 2, prompt, response, learned };
    let mut plan = Plan::new(config, setup, batch, 0, 0, shared(config, ranks))?;
    plan.has_reference = has_reference;
    plan.optimizer = learning.optimizer.kind;
    plan.gradient_checkpointing = learning.gradient_checkpointing;
    plan.max_tokens_per_micro_batch = learning.max_tokens_per_micro_batch as u64;
    plan.predict_with_advice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_references_say_of_a_step_must_fit_into_the_host() {
        let host = Some(DeviceMemory { total: 64 << 30, free: 1 });
        // 64 responses of 1024 tokens.
        let check = |top_k| check_taught(top_k, 65_536 * Taught::bytes_of_token(top_k), host);
        assert!(check(64).is_ok());
        let error = check(151_936).unwrap_err().to_string();
        let says = "train.loss.distillation.top_k: the 151936 most probable tokens in each place of a step take up to ";
        assert!(
            error.starts_with(says) && error.contains("and the host has 64.0 GiB\nhint: set a smaller top_k"),
            "{error}"
        );
        assert!(check_taught(1, u64::MAX, None).is_ok());
    }
}

//! What a run will need of its device's memory, before it starts, and what
//! there is.

use crate::config::{Config, GrpoTable, SftTable};
use crate::error::Result;
use crate::prompts::Prompt;
use crate::setup::Setup;
use bytesize::ByteSize;
use gavel_policy::device::{self, DeviceMemory};
use gavel_policy::memory::{Footprint, PassShape};
use gavel_policy::{Device, Dtype, EngineConfig, ModelConfig};
use gavel_train::{LOGIT_BYTES, SftRow};
use std::fmt;

/// Tokens by which the engine's room for keys and values grows.
const CACHE_CHUNK: u64 = 64;

/// What a run needs at its most, in bytes, and what its device has.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// What is there all the time: weights, reference, optimiser, keys and values.
    pub kept: Vec<Part>,
    /// What comes on top of it in an update.
    pub update: Vec<Part>,
    /// What comes on top of it in rollout.
    pub rollout: Vec<Part>,
    /// The device.
    pub device: String,
    /// What it has.
    pub memory: DeviceMemory,
    /// The setting that saves most, with its value, and how much it saves.
    pub advice: Option<(String, u64)>,
}

/// A part of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What takes it.
    pub what: String,
    /// How much.
    pub bytes: u64,
}

fn sum(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.bytes).sum()
}

impl Prediction {
    /// All of it: update and rollout take turns.
    pub fn total(&self) -> u64 {
        sum(&self.kept) + sum(&self.update).max(sum(&self.rollout))
    }

    /// What to say if the device does not have that much.
    pub fn warning(&self) -> Option<String> {
        if self.total() <= self.memory.free {
            return None;
        }
        let needs = ByteSize(self.total());
        let free = ByteSize(self.memory.free);
        let hint = match &self.advice {
            Some((setting, saved)) => format!("{setting} would save {}", ByteSize(*saved)),
            None => "use a smaller model, or a device with more memory".into(),
        };
        Some(format!("the run may need {needs} of memory, and {} has {free} free\nhint: {hint}", self.device))
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (when, parts) in [("always", &self.kept), ("in an update", &self.update), ("in rollout", &self.rollout)] {
            for Part { what, bytes } in parts {
                writeln!(f, "{when}: {what}: {}", ByteSize(*bytes))?;
            }
        }
        let [total, all, free] = [self.total(), self.memory.total, self.memory.free].map(ByteSize);
        write!(f, "at most: {total}; {} has {all}, of which {free} are free", self.device)
    }
}

/// What decides how much memory a run takes.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    sizes: &'a ModelConfig,
    dtype: Dtype,
    device: Device,
    has_reference: bool,
    max_tokens_per_micro_batch: u64,
    batch: MiniBatch,
    rollout: Rollout,
    cache_memory: Option<u64>,
}

/// What an optimiser step learns from.
#[derive(Debug, Clone, Copy)]
struct MiniBatch {
    /// Responses.
    rows: u64,
    /// Responses to each prompt.
    group: u64,
    /// Tokens of the longest prompt.
    prompt: u64,
    /// Tokens of the longest response.
    response: u64,
    /// How much of the tokens may be responses, at most.
    learned: f64,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
struct Rollout {
    /// Responses that are drawn together.
    rows: u64,
    prompt: u64,
    response: u64,
    truncated: bool,
}

fn longest(prompts: &[Prompt]) -> u64 {
    prompts.iter().map(|prompt| prompt.ids.len() as u64).max().unwrap_or(0)
}

/// What `gavel train` needs with these prompts.
pub(crate) fn predict_train(config: &Config<GrpoTable>, setup: &Setup, prompts: &[Prompt]) -> Result<Prediction> {
    let (table, group) = (&config.train, config.rollout.group_size as u64);
    let responses = group * config.rollout.max_tokens as u64;
    let shortest = prompts.iter().map(|prompt| prompt.ids.len() as u64).min().unwrap_or(0);
    let batch = MiniBatch {
        rows: table.mini_batch() as u64 * group,
        group,
        prompt: longest(prompts),
        response: config.rollout.max_tokens as u64,
        learned: responses as f64 / (shortest + responses) as f64,
    };
    let drawn = table.prompts_per_step as u64 * group;
    let plan = Plan {
        has_reference: table.loss.kl.is_some(),
        max_tokens_per_micro_batch: table.max_tokens_per_micro_batch as u64,
        ..Plan::new(config, setup, batch, drawn, batch.prompt)?
    };
    plan.predict_with_advice()
}

/// What `gavel sft` needs with these rows.
pub(crate) fn predict_sft(config: &Config<SftTable>, setup: &Setup, rows: &[SftRow]) -> Result<Prediction> {
    let longest = rows.iter().max_by_key(|row| row.prompt.len() + row.response.len());
    let learned = |row: &SftRow| row.response.len() as f64 / (row.prompt.len() + row.response.len()) as f64;
    let batch = MiniBatch {
        rows: config.train.batch_size as u64,
        group: 1,
        prompt: longest.map_or(0, |row| row.prompt.len() as u64),
        response: longest.map_or(0, |row| row.response.len() as u64),
        learned: rows.iter().map(learned).fold(0.0, f64::max),
    };
    let plan = Plan {
        max_tokens_per_micro_batch: config.train.max_tokens_per_micro_batch as u64,
        ..Plan::new(config, setup, batch, 0, 0)?
    };
    plan.predict_with_advice()
}

impl<'a> Plan<'a> {
    /// The plan of a run that draws `drawn` responses a step, to prompts of at
    /// most `prompt` tokens, beside those of validation.
    fn new<T>(config: &Config<T>, setup: &'a Setup, batch: MiniBatch, drawn: u64, prompt: u64) -> Result<Self> {
        let rollout = &config.rollout;
        let most = drawn.max(setup.validation.len() as u64);
        Ok(Self {
            sizes: &setup.sizes,
            dtype: config.model.dtype,
            device: device::select(&config.model.device)?,
            has_reference: false,
            max_tokens_per_micro_batch: 0,
            batch,
            rollout: Rollout {
                rows: most.min(rollout.max_batch as u64),
                prompt: prompt.max(longest(&setup.validation)),
                response: rollout.max_tokens as u64,
                truncated: rollout.top_k.is_some() || rollout.top_p < 1.0 || rollout.min_p > 0.0,
            },
            cache_memory: rollout.cache_memory.map(|size| size.0),
        })
    }

    fn predict_with_advice(&self) -> Result<Prediction> {
        let advice = self.advice()?;
        Ok(Prediction { advice, ..self.predict()? })
    }

    fn predict(&self) -> Result<Prediction> {
        let footprint = Footprint::new(self.sizes, self.dtype.kind(), self.device);
        let part = |what: String, bytes: u64| Part { what, bytes };
        let mut kept = vec![part("weights".into(), footprint.weights())];
        if self.has_reference {
            kept.push(part("reference of the kl penalty".into(), footprint.weights()));
        }
        kept.push(part("optimiser".into(), footprint.optimizer()));
        if self.rollout.rows > 0 {
            let (rows, tokens) = (self.rollout.rows, self.rollout.prompt + self.rollout.response);
            kept.push(part(format!("keys and values of {rows} × {tokens} tokens"), self.cache(footprint)));
        }
        let shape = self.micro_batch();
        let learned = (shape.tokens as f64 * self.batch.learned).ceil() as u64;
        let chunk = learned.min(LOGIT_BYTES as u64 / (4 * self.sizes.vocab_size as u64).max(1)).max(1);
        let activations = format!("activations of a micro-batch of {} tokens", shape.tokens);
        let backward = format!("logits of {chunk} tokens, or gradients inside a layer");
        let update = vec![
            part("gradients".into(), footprint.gradients()),
            part(activations, footprint.activations(shape, false)),
            part(backward, footprint.logits(chunk).max(footprint.layer_backward(shape))),
        ];
        let prompts = (self.rollout.rows * self.rollout.prompt).min(EngineConfig::default().prefill_tokens as u64);
        let prefill = footprint.layer(PassShape::unshared(prompts));
        let sampling = footprint.sampling(self.rollout.rows, self.rollout.truncated);
        let rollout = vec![part("prompts, or logits and their sums".into(), prefill.max(sampling))];
        let device = match self.device {
            Device::Cuda(index) => format!("cuda:{index}"),
            _ => "the cpu".into(),
        };
        Ok(Prediction { kept, update, rollout, device, memory: device::memory(self.device)?, advice: None })
    }

    /// Keys and values at their most: room for every row grows by half at a
    /// time, from the longest prompt on.
    fn cache(&self, footprint: Footprint<'_>) -> u64 {
        let mut tokens = self.rollout.prompt.next_multiple_of(CACHE_CHUNK).max(CACHE_CHUNK);
        while tokens < self.rollout.prompt + self.rollout.response {
            tokens = (tokens * 3 / 2).next_multiple_of(CACHE_CHUNK);
        }
        let most = self.rollout.rows * tokens * footprint.cache_per_token();
        self.cache_memory.map_or(most, |budget| most.min(budget))
    }

    /// The largest micro-batch: as many of the longest rows as fit, whose
    /// prompts are computed once for all responses to them.
    fn micro_batch(&self) -> PassShape {
        let MiniBatch { rows, group, prompt, response } = self.batch;
        let all = rows.div_ceil(group) * prompt + rows * response;
        let tokens = all.min(self.max_tokens_per_micro_batch.max(prompt + response));
        let shared = group.min(tokens.saturating_sub(prompt) / response.max(1)).max(1);
        let window = self.sizes.windows.iter().flatten().any(|&window| (window as u64) < prompt + response);
        if shared == 1 {
            let mask = if window { (prompt + response).pow(2) } else { 0 };
            return PassShape { mask, ..PassShape::unshared(tokens) };
        }
        let responses = (tokens * shared).div_ceil(prompt + shared * response);
        let keys = responses * (prompt + response);
        PassShape { tokens, keys: keys + responses.div_ceil(shared) * prompt, mask: keys * response }
    }

    /// Of the settings that save memory, the one that saves most.
    fn advice(&self) -> Result<Option<(String, u64)>> {
        let mut changes = Vec::new();
        let tokens = self.micro_batch().tokens / 2;
        if tokens >= self.batch.prompt + self.batch.response {
            let setting = format!("train.max_tokens_per_micro_batch = {tokens}");
            changes.push((setting, Self { max_tokens_per_micro_batch: tokens, ..self.clone() }));
        }
        if self.rollout.rows > 1 {
            let rows = self.rollout.rows / 2;
            let rollout = Rollout { rows, ..self.rollout };
            changes.push((format!("rollout.max_batch = {rows}"), Self { rollout, ..self.clone() }));
            let footprint = Footprint::new(self.sizes, self.dtype.kind(), self.device);
            // A quarter still has room for some rows, and for one at least.
            let one = (self.rollout.prompt + self.rollout.response + CACHE_CHUNK) * footprint.cache_per_token();
            let budget = (self.cache(footprint) / 4).max(one);
            let setting = format!("rollout.cache_memory = \"{}MiB\"", budget.div_ceil(1 << 20));
            changes.push((setting, Self { cache_memory: Some(budget), ..self.clone() }));
        }
        if self.dtype == Dtype::Float32 {
            changes.push(("model.dtype = \"bfloat16\"".into(), Self { dtype: Dtype::Bfloat16, ..self.clone() }));
        }
        let now = self.predict()?.total();
        let saved = |(setting, plan): (String, Self)| Ok((setting, now.saturating_sub(plan.predict()?.total())));
        let saved = changes.into_iter().map(saved).collect::<Result<Vec<_>>>()?;
        Ok(saved.into_iter().max_by_key(|(_, saved)| *saved).filter(|(_, saved)| *saved > 0))
    }
}

//! The settings and sizes that decide how much memory a run takes, and the prediction from them.

use super::beside_tensors::BesideTensors;
use super::prediction::{Part, Prediction};
use crate::error::{PipelineError, Result};
use crate::rows::Prompt;
use crate::run::{PlannedGpu, Setup, select};
use bytesize::ByteSize;
use gavel_config::{Config, ModelTable};
use gavel_policy::device::{self, DeviceMemory};
use gavel_policy::engine::kv_cache_growth::{CHUNK, final_room, room_for};
use gavel_policy::memory::{Footprint, PassShape};
use gavel_policy::{
    Device, Dtype, EngineConfig, LoraConfig, ModelConfig, ModelFolder, Quantization, adapter_parameters,
};
use gavel_rollout::RewardModelFootprint;
use gavel_torch::head::TOKENS_AT_A_TIME;
use gavel_train::memory::{ChangedLogits, SharedBy, TrainingFootprint};
use gavel_train::{LongestRows, OptimizerKind};

/// What sampling changed of the logits, which training changes again.
const CHANGES: &str = "biases, penalties and masks of logits";

/// The distributions that are compared with a reference's.
const DISTRIBUTIONS: &str = "whole distributions";

/// The settings and sizes that decide how much memory a run takes.
#[derive(Debug, Clone)]
pub(super) struct Plan<'a> {
    sizes: &'a ModelConfig,
    dtype: Dtype,
    device: Device,
    /// The ranks that train the model.
    ranks: SharedBy,
    pub(super) optimizer: OptimizerKind,
    /// The parameters of the adapters, if these are trained.
    adapters: Option<u64>,
    /// Whether there is a checkpoint, and no adapters beside it.
    may_adapt: bool,
    /// Whether a reference is the policy that the run starts from, or follows the policy.
    pub(super) has_reference: bool,
    /// The penalties for which there is a reference, if their weight is 0.
    pub(super) idle_penalty: Option<&'static str>,
    /// The sizes of the references that are other models.
    pub(super) other_references: Vec<ModelConfig>,
    /// What references say of the tokens of a step, in the memory of the host, if whole distributions are compared.
    pub(super) taught: Option<u64>,
    /// The critic, if it is on the same device.
    pub(super) critic: Option<CriticPlan>,
    /// Whether the policy before each step is kept while its mini-batches are learned from.
    pub(super) keeps_before_step: bool,
    pub(super) gradient_checkpointing: bool,
    pub(super) max_tokens_per_micro_batch: u64,
    /// How the logits of each token are changed in an update.
    pub(super) changed_logits: ChangedLogits,
    batch: MiniBatch,
    rollout: Rollout,
    cache_memory: Option<u64>,
    /// Whether responses are drawn on this device, too.
    draws_here: bool,
    /// The copy of the weights that they are drawn with, if there is one.
    quantization: Option<Quantization>,
    /// The reward models on the same device.
    reward_models: Vec<(String, RewardModelFootprint)>,
    /// The GPU that is planned for, in place of a device of this machine.
    gpu: Option<PlannedGpu>,
}

/// What decides how much memory a critic takes.
#[derive(Debug, Clone)]
pub(super) struct CriticPlan {
    pub(super) sizes: ModelConfig,
    pub(super) dtype: Dtype,
    /// Its adapters, if only these are trained.
    pub(super) lora: Option<LoraConfig>,
    pub(super) optimizer: OptimizerKind,
}

/// Reward models by name.
type RewardModels<'a> = Vec<&'a (String, RewardModelFootprint)>;

/// The rows of an optimiser step.
#[derive(Debug, Clone, Copy)]
pub(super) struct MiniBatch {
    /// Responses.
    pub(super) rows: u64,
    /// Responses to each prompt.
    pub(super) group: u64,
    /// Tokens of the longest prompt.
    pub(super) prompt: u64,
    /// Tokens of the longest response.
    pub(super) response: u64,
    /// The largest share of the tokens that may be responses.
    pub(super) learned: f64,
}

/// The responses that are drawn.
#[derive(Debug, Clone, Copy)]
struct Rollout {
    /// Responses that are drawn together.
    rows: u64,
    /// The most responses for which tokens are proposed, and the most tokens of each.
    proposing: [u64; 2],
    prompt: u64,
    response: u64,
    truncated: bool,
    /// Whether conversations keep their keys and values between turns.
    has_turns: bool,
}

impl Rollout {
    /// Tokens that a step draws at most: one a response, and proposed ones.
    fn draws(&self) -> u64 {
        let [responses, tokens] = self.proposing;
        self.rows.max(self.rows.min(responses).saturating_mul(tokens.saturating_add(1)))
    }
}

/// Tokens of the longest of these prompts.
fn longest(prompts: &[Prompt]) -> u64 {
    prompts.iter().map(|prompt| prompt.ids.len() as u64).max().unwrap_or(0)
}

/// How many parameters the adapters have that a run trains: new adapters, or those in the folder `model.path`.
fn adapters(model: &ModelTable, sizes: &ModelConfig) -> Result<Option<u64>> {
    if let Some(lora) = &model.lora {
        return Ok(Some(Footprint::new(sizes, model.dtype.kind(), Device::Cpu).adapters(lora)));
    }
    let Some(path) = &model.path else { return Ok(None) };
    let Some(folder) = ModelFolder::open(path)?.adapter else { return Ok(None) };
    Ok(Some(adapter_parameters(&folder)?))
}

fn part(what: impl Into<String>, bytes: u64) -> Part {
    Part { what: what.into(), bytes }
}

/// What a model whose layers are shared by ranks has on its device between its updates.
fn between_updates(trained: TrainingFootprint<'_>, of: &str) -> Vec<Part> {
    let whole = trained.is_by_layer().then(|| part(format!("weights{of}"), trained.model.weights()));
    whole.into_iter().collect()
}

/// The same in its updates, without gradients.
fn in_update(trained: TrainingFootprint<'_>, of: &str) -> Vec<Part> {
    let what = format!("weights{of}: outside of layers, a rank's share of the layers, and a layer");
    let share = trained.is_by_layer().then(|| part(what, trained.weights_in_update()));
    let state = trained.optimizer_waits().then(|| part(format!("optimiser{of}"), trained.optimizer()));
    share.into_iter().chain(state).collect()
}

/// What the passes of an update take or, where that is more, the optimiser's step after them.
fn or_step(passes: Vec<Part>, trained: TrainingFootprint<'_>, of: &str) -> Vec<Part> {
    let step = part(format!("a step of the optimiser{of}"), trained.step());
    if step.bytes > passes.iter().map(|part| part.bytes).sum::<u64>() { vec![step] } else { passes }
}

/// The reward models on the device of the policy.
fn footprints<T>(config: &Config<T>, setup: &Setup, device: Device) -> Result<Vec<(String, RewardModelFootprint)>> {
    let Some(gpu) = &setup.planned else { return Ok(setup.reward_models.footprints(device)) };
    // They were loaded on the CPU.
    let mut footprints = setup.reward_models.footprints(Device::Cpu);
    for (name, footprint) in &mut footprints {
        footprint.device =
            config.reward_model.get(name).map_or(Ok(device), |table| select(Some(gpu), &table.device))?;
    }
    footprints.retain(|(_, footprint)| footprint.device == device);
    Ok(footprints)
}

impl<'a> Plan<'a> {
    /// The plan of one of `ranks`. Beside the responses of validation, it draws `drawn` responses a step, to prompts of
    /// at most `prompt` tokens.
    pub(super) fn new<T>(
        config: &Config<T>,
        setup: &'a Setup,
        batch: MiniBatch,
        drawn: u64,
        prompt: u64,
        ranks: SharedBy,
    ) -> Result<Self> {
        let rollout = &config.rollout;
        let answers = config.data.validation_samples * setup.validation.len();
        let most = drawn.max(answers.div_ceil(ranks.ranks) as u64);
        let training = rollout.sampling(Vec::new());
        let validation = config.validation.sampling(training.clone(), config.data.validation_samples);
        let drawing = if answers > 0 { vec![training, validation] } else { vec![training] };
        let rows = most.min(rollout.max_batch as u64);
        let proposing = rollout
            .speculative_config
            .as_ref()
            .map_or([0; 2], |of| [of.disable_by_batch_size, of.num_speculative_tokens].map(|number| number as u64));
        let adapters = adapters(&config.model, &setup.sizes)?;
        let device = select(setup.planned.as_ref(), &config.model.device)?;
        let plan = Self {
            sizes: &setup.sizes,
            dtype: config.model.dtype,
            device,
            ranks,
            optimizer: OptimizerKind::default(),
            adapters,
            may_adapt: config.model.path.is_some() && adapters.is_none(),
            has_reference: false,
            idle_penalty: None,
            other_references: Vec::new(),
            taught: None,
            critic: None,
            keeps_before_step: false,
            gradient_checkpointing: false,
            max_tokens_per_micro_batch: 0,
            changed_logits: ChangedLogits::default(),
            batch,
            rollout: Rollout {
                rows,
                proposing,
                prompt: prompt.max(longest(&setup.validation)),
                response: drawing.iter().map(|sampling| sampling.max_tokens).max().unwrap_or_default() as u64,
                // A grammar's masks take no more than sorting.
                truncated: rollout.grammar.is_some()
                    || drawing.iter().any(|sampling| !sampling.is_greedy() && sampling.is_truncated()),
                has_turns: config.agent.have_turns(),
            },
            cache_memory: rollout.cache_memory.map(|size| size.0),
            draws_here: !rollout.draws_elsewhere(),
            quantization: rollout.quantization.filter(|_| rows > 0 && !rollout.draws_elsewhere()),
            reward_models: footprints(config, setup, device)?,
            gpu: setup.planned.clone().filter(|_| device.is_cuda()),
        };
        plan.check_cache()?;
        Ok(plan)
    }

    /// Refuses a budget in which the longest response would have no room.
    fn check_cache(&self) -> Result<()> {
        let Rollout { rows, prompt, response, .. } = self.rollout;
        let needs = room_for((prompt + response) as usize) as u64 * self.model().cache_per_token();
        match self.cache_memory {
            Some(budget) if rows > 0 && budget < needs => Err(PipelineError::Stopped(format!(
                "rollout.cache_memory {} has no room for the longest prompt, {prompt} tokens, with a response of {response}\nhint: give at least {}MiB",
                ByteSize(budget),
                needs.div_ceil(1 << 20)
            ))),
            _ => Ok(()),
        }
    }

    /// What the run needs, with the setting that saves most of it.
    pub(super) fn predict_with_advice(&self) -> Result<Prediction> {
        let advice = self.advice()?;
        Ok(Prediction { advice, ..self.predict()? })
    }

    fn predict(&self) -> Result<Prediction> {
        let there = |parts: Vec<Part>| parts.into_iter().filter(|part| part.bytes > 0).collect();
        let (awake, _) = self.reward_models_by_sleep();
        let weights: u64 = awake.iter().map(|(_, footprint)| footprint.weights).sum();
        Ok(Prediction {
            kept: self.kept(),
            cache: self.cache_part(),
            may_release_cache: self.draws_here,
            update: there(self.update()),
            rollout: there(self.drawing()),
            scoring: there(self.scoring()),
            loaded: if self.gpu.is_some() { 0 } else { weights + self.beside_tensors().context },
            device: self.gpu.as_ref().map_or_else(|| device::name(self.device), |gpu| gpu.name.clone()),
            memory: match &self.gpu {
                Some(gpu) => Some(DeviceMemory { total: gpu.memory, free: gpu.memory }),
                None => device::memory(self.device).ok(),
            },
            is_planned: self.gpu.is_some(),
            advice: None,
        })
    }

    /// What is there all the time.
    fn kept(&self) -> Vec<Part> {
        let (model, trained) = (self.model(), self.trained());
        let mut kept = Vec::new();
        if !trained.is_by_layer() {
            kept.push(part("weights", model.weights()));
        }
        let weights = |sizes| Footprint::new(sizes, self.dtype.kind(), self.device).weights();
        kept.extend(self.other_references.iter().map(|sizes| part("reference", weights(sizes))));
        // With adapters, this reference shares the policy's weights.
        if self.has_reference && self.adapters.is_none() {
            kept.push(part("reference", model.weights()));
        }
        if self.keeps_before_step {
            kept.push(part("policy before the step", trained.copy_of_trained()));
        }
        if !trained.optimizer_waits() {
            kept.push(part("optimiser", trained.optimizer()));
        }
        if let Some(critic) = self.critic_trained() {
            if !critic.is_by_layer() {
                kept.push(part("weights of the critic", critic.model.weights()));
            }
            if !critic.optimizer_waits() {
                kept.push(part("optimiser of the critic", critic.optimizer()));
            }
        }
        let (awake, _) = self.reward_models_by_sleep();
        kept.extend(
            awake.iter().map(|(name, model)| part(format!("weights of the reward model {name}"), model.weights)),
        );
        let beside = self.beside_tensors();
        if beside.total() > 0 {
            let ranks = if beside.connections > 0 { ", and connections of ranks" } else { "" };
            kept.push(part(format!("CUDA's context, workspaces of products{ranks}"), beside.total()));
        }
        kept
    }

    /// Keys and values.
    fn cache_part(&self) -> Option<Part> {
        let Rollout { rows, prompt, response, has_turns, .. } = self.rollout;
        let waiting = if has_turns { ", and of conversations between turns" } else { "" };
        let what = format!("keys and values of {rows} × {} tokens{waiting}", prompt + response);
        (rows > 0).then(|| part(what, self.cache(self.model())))
    }

    /// The larger of the updates of the policy and of the critic, which take turns.
    fn update(&self) -> Vec<Part> {
        let bytes = |parts: &Vec<Part>| parts.iter().map(|part| part.bytes).sum::<u64>();
        let updates = self.critic_update().into_iter().chain([self.policy_update()]);
        updates.max_by_key(bytes).unwrap_or_default()
    }

    fn policy_update(&self) -> Vec<Part> {
        let (trained, shape) = (self.trained(), self.micro_batch());
        let learned = self.learned_tokens(shape);
        let activations = format!("activations of a micro-batch of {} tokens", shape.tokens);
        let backward = format!("logits of {} tokens, or gradients inside a layer", trained.tokens_at_a_time(learned));
        let checkpointing = self.gradient_checkpointing || trained.is_by_layer();
        let passes = vec![
            part(activations, trained.model.activations(shape, checkpointing)),
            part(CHANGES, self.changed_logits.bytes(trained.tokens_at_a_time(learned))),
            part(DISTRIBUTIONS, self.taught.map_or(0, |_| trained.distributions(learned))),
            part(backward, trained.backward(shape, learned)),
        ];
        let said = self.taught.filter(|_| !self.device.is_cuda()).unwrap_or_default();
        let gradients = vec![part("gradients", trained.gradients()), part("what references say of tokens", said)];
        [in_update(trained, ""), self.critic_at_rest(), gradients, or_step(passes, trained, "")].concat()
    }

    fn critic_update(&self) -> Option<Vec<Part>> {
        let (critic, shape) = (self.critic_trained()?, self.micro_batch());
        let checkpointing = self.gradient_checkpointing || critic.is_by_layer();
        let passes = vec![
            part("activations of the critic", critic.model.activations(shape, checkpointing)),
            part("gradients inside a layer of the critic", critic.model.layer_backward(shape)),
        ];
        let (of, gradients) = (" of the critic", vec![part("gradients of the critic", critic.gradients())]);
        let weights = [between_updates(self.trained(), ""), in_update(critic, of)].concat();
        Some([weights, gradients, or_step(passes, critic, of)].concat())
    }

    /// What responses take while they are drawn, beside keys and values.
    fn drawing(&self) -> Vec<Part> {
        let (model, shape) = (self.model(), self.micro_batch());
        let prompts = (self.rollout.rows * self.rollout.prompt).min(EngineConfig::default().prefill_tokens as u64);
        let prefill = model.layer(PassShape::unshared(prompts));
        let sampling = model.sampling(self.rollout.draws(), self.rollout.truncated);
        let copy = |quantization| part(format!("weights in {quantization}"), model.quantized(quantization));
        let copy: Vec<Part> = self.quantization.map(copy).into_iter().collect();
        let at_rest = self.at_rest();
        if at_rest.is_empty() {
            return [vec![part("prompts, or logits and their sums", prefill.max(sampling))], copy].concat();
        }
        // The forward passes before an update have whole weights too.
        let pass = model.layer(shape) + model.logits(self.learned_tokens(shape).min(TOKENS_AT_A_TIME as u64));
        let own = part("prompts, logits and their sums, or a forward pass", prefill.max(sampling).max(pass));
        [vec![own], copy, at_rest].concat()
    }

    /// What reward models take while they compute, of which only one does so at a time.
    fn scoring(&self) -> Vec<Part> {
        let (awake, asleep) = self.reward_models_by_sleep();
        let needs = |model: &RewardModelFootprint| model.batch + if model.sleeps { model.weights } else { 0 };
        let largest = awake.iter().chain(&asleep).max_by_key(|(_, model)| needs(model));
        let Some((name, model)) = largest else { return Vec::new() };
        let weights = model.sleeps.then(|| part(format!("weights of the reward model {name}"), model.weights));
        let batch = part(format!("a batch of the reward model {name}"), model.batch);
        weights.into_iter().chain([batch]).chain(self.at_rest()).collect()
    }

    /// The weights of models whose layers are shared by ranks, between their updates.
    fn at_rest(&self) -> Vec<Part> {
        [between_updates(self.trained(), ""), self.critic_at_rest()].concat()
    }

    fn critic_at_rest(&self) -> Vec<Part> {
        self.critic_trained().map(|critic| between_updates(critic, " of the critic")).unwrap_or_default()
    }

    /// Tokens of a micro-batch that are learned from.
    fn learned_tokens(&self, shape: PassShape) -> u64 {
        (shape.tokens as f64 * self.batch.learned).ceil() as u64
    }

    /// The reward models whose weights stay on the device, and those that leave it for updates.
    fn reward_models_by_sleep(&self) -> (RewardModels<'_>, RewardModels<'_>) {
        self.reward_models.iter().partition(|(_, footprint)| !footprint.sleeps)
    }

    fn beside_tensors(&self) -> BesideTensors {
        BesideTensors::on(self.device, self.ranks.ranks)
    }

    fn critic_trained(&self) -> Option<TrainingFootprint<'_>> {
        let CriticPlan { sizes, dtype, lora, optimizer } = self.critic.as_ref()?;
        let model = Footprint::new(sizes, dtype.kind(), self.device);
        let model = lora.as_ref().map_or(model, |lora| model.with_adapters(model.adapters(lora)));
        Some(TrainingFootprint { model, ranks: self.ranks, optimizer: *optimizer })
    }

    /// The device of the policy.
    pub(super) fn device(&self) -> Device {
        self.device
    }

    fn model(&self) -> Footprint<'a> {
        let model = Footprint::new(self.sizes, self.dtype.kind(), self.device);
        self.adapters.map_or(model, |adapters| model.with_adapters(adapters))
    }

    fn trained(&self) -> TrainingFootprint<'a> {
        TrainingFootprint { model: self.model(), ranks: self.ranks, optimizer: self.optimizer }
    }

    /// Keys and values at their most. Conversations that wait for a turn may take as much as the rows under way.
    fn cache(&self, model: Footprint<'_>) -> u64 {
        let Rollout { rows, prompt, response, has_turns, .. } = self.rollout;
        let tokens = final_room((prompt + response) as usize) as u64;
        let most = rows * tokens * model.cache_per_token() * (1 + u64::from(has_turns));
        self.cache_memory.map_or(most, |budget| most.min(budget))
    }

    /// The largest micro-batch.
    fn micro_batch(&self) -> PassShape {
        let MiniBatch { rows, group, prompt, response, .. } = self.batch;
        LongestRows { rows, group, prompt, response }.largest_micro_batch(self.max_tokens_per_micro_batch, self.sizes)
    }

    /// The setting to change, and how much it saves. Settings that avoid what the run need not have come first; of
    /// several, the largest saving counts.
    fn advice(&self) -> Result<Option<(String, u64)>> {
        match self.saves_most(self.avoidable())? {
            Some(avoidable) => Ok(Some(avoidable)),
            None => self.saves_most(self.changes()),
        }
    }

    /// Settings without which the same is learned.
    fn avoidable(&self) -> Vec<(String, Self)> {
        let mut changes = Vec::new();
        if self.keeps_before_step {
            changes.push(("schedule.stream = false".to_owned(), Self { keeps_before_step: false, ..self.clone() }));
        }
        let has_reference = self.has_reference || !self.other_references.is_empty();
        if let (true, Some(penalty)) = (has_reference, self.idle_penalty) {
            let setting = format!("a run without {penalty}, whose coefficient is 0,");
            let plan = Self { has_reference: false, other_references: Vec::new(), ..self.clone() };
            changes.push((setting, plan));
        }
        changes
    }

    /// Settings with which a run needs less.
    fn changes(&self) -> Vec<(String, Self)> {
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
            let model = self.model();
            // A quarter of the memory still has room for some rows, and for at least one.
            let one = (self.rollout.prompt + self.rollout.response + CHUNK as u64) * model.cache_per_token();
            let budget = (self.cache(model) / 4).max(one);
            let setting = format!("rollout.cache_memory = \"{}MiB\"", budget.div_ceil(1 << 20));
            changes.push((setting, Self { cache_memory: Some(budget), ..self.clone() }));
        }
        if !self.trained().is_by_layer() {
            let ranks = SharedBy { by_layer: true, ..self.ranks };
            changes.push(("ranks.parameters = \"by_layer\"".into(), Self { ranks, ..self.clone() }));
        }
        if !self.gradient_checkpointing && !self.trained().is_by_layer() {
            let plan = Self { gradient_checkpointing: true, ..self.clone() };
            changes.push(("train.gradient_checkpointing = true".into(), plan));
        }
        if self.may_adapt {
            let lora = LoraConfig::default();
            let adapters = Some(self.model().adapters(&lora));
            changes.push((format!("model.lora.rank = {}", lora.rank), Self { adapters, ..self.clone() }));
        }
        if self.dtype == Dtype::Float32 {
            changes.push(("model.dtype = \"bfloat16\"".into(), Self { dtype: Dtype::Bfloat16, ..self.clone() }));
        }
        changes
    }

    /// The change that saves most, and how much.
    fn saves_most(&self, changes: Vec<(String, Self)>) -> Result<Option<(String, u64)>> {
        let now = self.predict()?.total();
        let saved = |(setting, plan): (String, Self)| Ok((setting, now.saturating_sub(plan.predict()?.total())));
        let saved = changes.into_iter().map(saved).collect::<Result<Vec<_>>>()?;
        Ok(saved.into_iter().max_by_key(|(_, saved)| *saved).filter(|(_, saved)| *saved > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a GPU of 80 GB.
    const GPU: u64 = 80_000_000_000;

    /// Qwen2.5 of these sizes.
    fn qwen(hidden: usize, intermediate: usize, layers: usize, heads: [usize; 2]) -> ModelConfig {
        let [heads, kv_heads] = heads;
        let json = format!(
            r#"{{"model_type":"qwen2","vocab_size":152064,"max_position_embeddings":32768,"hidden_size":{hidden},
            "intermediate_size":{intermediate},"num_hidden_layers":{layers},"num_attention_heads":{heads},
            "num_key_value_heads":{kv_heads},"tie_word_embeddings":false}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    /// The plan of a rank that draws and learns from 64 responses of 2048 tokens to prompts of 512, in groups of 8, with
    /// 8 GiB of keys and values and micro-batches of 8192 tokens.
    fn plan(sizes: &ModelConfig, ranks: usize, by_layer: bool) -> Plan<'_> {
        let batch = MiniBatch { rows: 64, group: 8, prompt: 512, response: 2048, learned: 1.0 };
        Plan {
            sizes,
            dtype: Dtype::Bfloat16,
            device: Device::Cuda(0),
            ranks: SharedBy { ranks, by_layer },
            optimizer: OptimizerKind::Adamw,
            adapters: None,
            may_adapt: true,
            has_reference: false,
            idle_penalty: None,
            other_references: Vec::new(),
            taught: None,
            critic: None,
            keeps_before_step: false,
            gradient_checkpointing: true,
            max_tokens_per_micro_batch: 8192,
            changed_logits: ChangedLogits::default(),
            batch,
            rollout: Rollout {
                rows: 64,
                proposing: [0; 2],
                prompt: 512,
                response: 2048,
                truncated: false,
                has_turns: false,
            },
            cache_memory: Some(8 << 30),
            draws_here: true,
            quantization: None,
            reward_models: Vec::new(),
            gpu: None,
        }
    }

    #[test]
    fn large_models_fit_into_gpus_of_80_gb() {
        let (small, large) = (qwen(3584, 18944, 28, [28, 4]), qwen(5120, 27648, 64, [40, 8]));
        for (sizes, parameters) in [(&small, 7_615_616_512), (&large, 32_763_876_352)] {
            assert_eq!(Footprint::new(sizes, Dtype::Bfloat16.kind(), Device::Cuda(0)).parameters(), parameters);
        }
        let needs = |sizes, ranks, by_layer| plan(sizes, ranks, by_layer).predict().unwrap().total();
        assert!(needs(&small, 1, false) > GPU);
        assert!(needs(&small, 8, false) < GPU);
        assert!(needs(&small, 8, true) < 38 << 30);
        assert!(needs(&large, 16, false) > GPU);
        assert!(needs(&large, 16, true) < GPU);
    }

    #[test]
    fn changes_of_logits_count_for_the_tokens_whose_logits_exist() {
        let sizes = qwen(896, 4864, 24, [14, 2]);
        let changes = |kept, penalised| {
            let changed_logits = ChangedLogits { kept, penalised };
            let prediction = Plan { changed_logits, ..plan(&sizes, 1, false) }.predict().unwrap();
            prediction.update.into_iter().find(|part| part.what == CHANGES).map(|part| part.bytes)
        };
        assert_eq!(changes(0, 0), None);
        // 1 GiB of logits of 152064 tokens has 1765 rows, of which 256 are changed at a time.
        assert_eq!(changes(50, 0), Some(256 * 50 * 12));
        assert_eq!(changes(0, 50), Some(1765 * 50 * (12 + 8)));
        assert_eq!(changes(1000, 50), Some(1765 * 50 * 12 + 256 * 1000 * 12));
    }

    #[test]
    fn proposed_tokens_are_drawn_for_few_responses() {
        let draws =
            |rows, proposing| Rollout { rows, proposing, ..plan(&qwen(64, 64, 1, [2, 2]), 1, false).rollout }.draws();
        assert_eq!([64, 32, 8].map(|rows| draws(rows, [16, 7])), [128, 128, 64]);
        assert_eq!((draws(64, [0; 2]), draws(64, [4, 3])), (64, 64));
    }

    #[test]
    fn a_copy_in_8_bits_counts_while_responses_are_drawn() {
        let sizes = qwen(896, 4864, 24, [14, 2]);
        let copy = |quantization| {
            let plan = Plan { quantization, ..plan(&sizes, 1, false) };
            let copies =
                plan.predict().unwrap().rollout.into_iter().filter(|part| part.what.starts_with("weights in "));
            copies.map(|part| (part.what, part.bytes)).collect::<Vec<_>>()
        };
        // Of each layer 1152 × 896, 896 × 896, 9728 × 896 and 896 × 4864 numbers, and the head: a byte each, and a scale
        // of four bytes for each row.
        let layer = 1152 * 900 + 896 * 900 + 9728 * 900 + 896 * 4868;
        assert!(copy(None).is_empty());
        assert_eq!(copy(Some(Quantization::Int8)), [("weights in int8".to_owned(), 24 * layer + 152_064 * 900)]);
        // A head of fp8 would round the logits.
        assert_eq!(copy(Some(Quantization::Fp8)), [("weights in fp8".to_owned(), 24 * layer)]);
    }

    #[test]
    fn what_a_gpu_has_beside_tensors_is_counted() {
        let sizes = qwen(896, 4864, 24, [14, 2]);
        let says = |plan: &Plan<'_>| {
            let prediction = plan.predict().unwrap();
            let of_cuda = |part: &&Part| part.what.starts_with("CUDA's context");
            (prediction.kept.iter().find(of_cuda).map(|part| (part.what.clone(), part.bytes >> 20)), prediction.loaded)
        };
        let one = (Some(("CUDA's context, workspaces of products".into(), 864)), 768 << 20);
        assert_eq!(says(&plan(&sizes, 1, false)), one);
        let eight =
            (Some(("CUDA's context, workspaces of products, and connections of ranks".into(), 1376)), 768 << 20);
        assert_eq!(says(&plan(&sizes, 8, false)), eight);
        assert_eq!(says(&Plan { device: Device::Cpu, ..plan(&sizes, 8, false) }), (None, 0));
    }

    #[test]
    fn a_step_of_the_optimiser_counts_where_it_takes_more_than_the_passes() {
        let sizes = qwen(3584, 18944, 28, [28, 4]);
        let update = |optimizer, max_tokens_per_micro_batch| {
            let batch = MiniBatch { rows: 1, group: 1, prompt: 4, response: 4, learned: 1.0 };
            let plan = Plan { optimizer, max_tokens_per_micro_batch, batch, ..plan(&sizes, 1, false) };
            plan.update().last().map(|part| (part.what.clone(), part.bytes >> 20))
        };
        assert!(update(OptimizerKind::Adamw, 8).is_some_and(|(what, _)| what.starts_with("logits of ")));
        let step = |mebibytes| Some(("a step of the optimiser".to_owned(), mebibytes));
        assert_eq!(update(OptimizerKind::Adamw8Bit, 8), step(232));
        assert_eq!(update(OptimizerKind::Muon, 8), step(567));
    }

    #[test]
    fn layers_that_are_shared_are_advised_where_they_save_most() {
        let sizes = qwen(5120, 27648, 64, [40, 8]);
        let (setting, saved) = plan(&sizes, 16, false).advice().unwrap().unwrap();
        assert!(setting == "ranks.parameters = \"by_layer\"" && saved > GPU, "{setting} saves {saved}");
        let advice = plan(&sizes, 1, false).advice().unwrap();
        assert!(advice.is_some_and(|(setting, _)| !setting.contains("by_layer")));
    }

    #[test]
    fn what_a_run_need_not_have_is_advised_against_first() {
        let sizes = qwen(3584, 18944, 28, [28, 4]);
        let advice = |plan: Plan<'_>| plan.advice().unwrap().map(|(setting, saved)| (setting, saved >> 20));
        let streamed = Plan { keeps_before_step: true, ..plan(&sizes, 8, false) };
        assert_eq!(advice(streamed.clone()), Some(("schedule.stream = false".into(), 14_525)));
        let penalised = Plan { has_reference: true, idle_penalty: Some("train.loss.kl"), ..plan(&sizes, 8, false) };
        let without = "a run without train.loss.kl, whose coefficient is 0,".to_owned();
        assert_eq!(advice(penalised.clone()), Some((without, 14_525)));
        // The larger one.
        let smaller = vec![qwen(896, 4864, 24, [14, 2])];
        let both =
            Plan { keeps_before_step: true, has_reference: false, other_references: smaller, ..penalised.clone() };
        assert_eq!(advice(both).map(|(setting, _)| setting), Some("schedule.stream = false".into()));
        // A penalty that counts is not avoidable, and adapters share the weights of the reference.
        assert!(
            advice(Plan { idle_penalty: None, ..penalised.clone() })
                .is_some_and(|(setting, _)| setting.contains("lora"))
        );
        assert!(
            advice(Plan { adapters: Some(1), ..penalised }).is_some_and(|(setting, _)| !setting.contains("loss.kl"))
        );
    }

    #[test]
    fn a_gpu_that_is_planned_for_has_its_memory() {
        let sizes = qwen(3584, 18944, 28, [28, 4]);
        let text = |gpu: &str| {
            let plan = Plan { gpu: Some(gpu.parse().unwrap()), ..plan(&sizes, 8, false) };
            let prediction = plan.predict_with_advice().unwrap();
            (prediction.to_string().lines().last().unwrap().to_owned(), prediction.warning())
        };
        let (fits, warning) = text("H100");
        assert!(fits.contains("; H100 has 79.1 GiB, and the run fits") && warning.is_none(), "{fits}: {warning:?}");
        let (full, warning) = text("24GiB");
        assert!(full.contains("; the GPU has 24.0 GiB, and the run does not fit"), "{full}");
        assert!(warning.is_some_and(|warning| warning.contains(", and the GPU has 24.0 GiB free\nhint: ")));
    }
}

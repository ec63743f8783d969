//! The tables that every command has, each with its defaults and its ranges.

use crate::checks::{at_least_one, bytes, check_threads};
use crate::datasets::Datasets;
use crate::error::ConfigError;
use crate::grammar::GrammarTable;
use crate::loading_table::LoadingTable;
use crate::plugin::PluginName;
use crate::served::ServedTable;
use crate::speculative::SpeculativeTable;
use bytesize::ByteSize;
use gavel_data::{ColumnNames, check_template_kwargs};
use gavel_plugin::{CallLog, SandboxConfig};
use gavel_policy::{CudaFastPaths, Dtype, EngineConfig, LoraConfig, ModelConfig, Quantization, Sampling};
use gavel_runs::{FolderConfig, Retention};
use gavel_torch::peers::Rendezvous;
use gavel_tracking::{MetricsListener, TrackerTable, check_trackers};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `[model]`: a checkpoint, or the sizes of a random one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// A folder with `config.json`, `model.safetensors` and `tokenizer.json`.
    pub path: Option<PathBuf>,
    /// The sizes of a random model with a byte-level tokenizer.
    #[serde(default, deserialize_with = "known")]
    pub init: Option<ModelConfig>,
    /// With this table, the run trains adapters and leaves the weights of the checkpoint unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
    /// `auto`, `cpu` or `cuda:N`; `auto` by default.
    #[serde(default = "auto")]
    pub device: String,
    /// The dtype of the weights, in rollout and in training; `float32` by default.
    #[serde(default)]
    pub dtype: Dtype,
    /// A file with the chat template, in place of the checkpoint's template. Checkpoints of the run keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_template: Option<PathBuf>,
    /// Variables of the chat template, such as `enable_thinking`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub chat_template_kwargs: Map<String, Value>,
}

fn auto() -> String {
    "auto".into()
}

fn known<'de, D: Deserializer<'de>>(value: D) -> Result<Option<ModelConfig>, D::Error> {
    ModelConfig::deserialize_known(value).map(Some)
}

impl ModelTable {
    /// Refuses values that are not valid, naming the key.
    ///
    /// # Errors
    /// The first of them.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_template_kwargs(&self.chat_template_kwargs)
            .map_err(|what| ConfigError::of("model.chat_template_kwargs", what))?;
        if let Some(lora) = &self.lora {
            lora.validate().map_err(|error| ConfigError::about("model.lora", "model.lora", error))?;
            if self.path.is_none() {
                return Err(ConfigError::invalid(
                    "model.lora",
                    "[model.lora] needs `model.path`: an adapter is for a checkpoint",
                ));
            }
        }
        match (&self.path, &self.init) {
            (Some(_), None) => Ok(()),
            (None, Some(sizes)) => {
                sizes.validate().map_err(|error| ConfigError::about("model.init", "model.init", error))
            }
            _ => Err(ConfigError::invalid("model", "[model] needs either `path` (a checkpoint) or `init` (sizes)")),
        }
    }

    /// Replaces the name of a model on the hub by its local folder.
    pub fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        if let Some(path) = &mut self.path {
            let found = gavel_hub::model(path);
            *path = found.map_err(|error| ConfigError::of("model.path", error))?.into_owned();
        }
        Ok(())
    }
}

/// What to do with a prompt that is longer than `max_prompt_tokens`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overlong {
    /// The run does not start.
    #[default]
    Error,
    /// The row is left out.
    Drop,
    /// The prompt loses its beginning.
    Truncate,
}

/// `[data]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataTable {
    /// The datasets to learn from: `.jsonl` and `.parquet` files, or tasksets.
    pub train: Datasets,
    /// The datasets to validate with.
    pub validation: Option<Datasets>,
    /// The names of Gavel's columns in the datasets.
    #[serde(default, skip_serializing_if = "ColumnNames::is_empty")]
    pub columns: ColumnNames,
    /// Whether each epoch draws the rows of `train` in another order, which follows from the seed; yes by default.
    #[serde(default = "yes")]
    pub shuffle: bool,
    /// The plugin that draws the rows of `train` in place of epochs: `plugin:NAME` for the component of `[plugin.NAME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler: Option<PluginName>,
    /// The longest prompt, in tokens; by default what the model has room for beside a response.
    pub max_prompt_tokens: Option<usize>,
    /// What to do with a longer prompt; `error` by default.
    #[serde(default)]
    pub overlong_prompts: Overlong,
    /// The reward that decides which answers are right, for `val/accuracy`: an answer is right if its score is at least
    /// 1. The first by default.
    pub accuracy: Option<String>,
    /// Answers to each row in validation; 1 by default. `[validation]` sets how they are drawn.
    #[serde(default = "one_sample", skip_serializing_if = "is_one_sample")]
    #[schemars(extend("default" = 1))]
    pub validation_samples: usize,
}

fn yes() -> bool {
    true
}

fn one_sample() -> usize {
    1
}

/// As for [`is_one`].
fn is_one_sample(value: &usize) -> bool {
    *value == 1
}

impl DataTable {
    pub(super) fn validate(&self, learns: bool) -> Result<(), ConfigError> {
        if learns || !self.train.0.is_empty() {
            self.train.validate("data.train")?;
        }
        self.validation.iter().try_for_each(|datasets| datasets.validate_without_weights("data.validation"))?;
        if self.sampler.is_some() && !self.shuffle {
            return Err(ConfigError::of(
                "data.sampler",
                "data.shuffle = false sets the order of rows, and a sampler draws them\nhint: leave one of them out",
            ));
        }
        at_least_one("data.validation_samples", self.validation_samples)?;
        at_least_one("data.max_prompt_tokens", self.max_prompt_tokens.unwrap_or(1))
    }
}

/// `[rollout]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutTable {
    /// Samples of each prompt; 8 by default.
    #[serde(default = "eight")]
    pub group_size: usize,
    /// The longest response, in tokens.
    pub max_tokens: usize,
    /// The sampling temperature in training; 1 by default.
    #[serde(default = "one")]
    pub temperature: f32,
    /// Only the k most probable tokens; all by default.
    pub top_k: Option<usize>,
    /// Only the most probable tokens that together reach this probability; 1 by default.
    #[serde(default = "one")]
    pub top_p: f32,
    /// Only tokens with at least this share of the most probable token's probability; 0 by default.
    #[serde(default)]
    pub min_p: f32,
    /// For tokens that are in the prompt or the response, positive logits are divided by it and negative logits
    /// multiplied; 1 by default.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(extend("default" = 1.0))]
    pub repetition_penalty: f32,
    /// Added to the logits of the tokens with these ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logit_bias: BTreeMap<String, f32>,
    /// Texts that end a response. The response includes the stop text, and the whole token that completes it: the
    /// policy learns from what was drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The grammar that responses are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<GrammarTable>,
    /// Tokens that end a response, in addition to the tokenizer's stop tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_token_ids: Vec<u32>,
    /// The device of rollout, if training has another device: `cpu` or `cuda:N`. Weights are copied over after each
    /// step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Responses are drawn with a copy of the weights in fewer bits: `int8` on the CPU, `fp8` on a GPU. Training, which
    /// keeps all bits, must then correct for the difference: `[train.off_policy]`. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
    /// Servers that draw in place of an engine of the run. They get the weights after each step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<ServedTable>,
    /// Responses that are decoded together; 256 by default.
    #[serde(default = "batch")]
    pub max_batch: usize,
    /// The most memory that keys and values take; no limit by default. Responses that do not fit wait.
    #[schemars(with = "Option<gavel_data::SizeForm>")]
    pub cache_memory: Option<ByteSize>,
    /// Tokens are proposed before they are drawn; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speculative_config: Option<SpeculativeTable>,
}

fn eight() -> usize {
    8
}

fn one() -> f32 {
    1.0
}

/// Newer keys are written down only if they change something, so that older runs can be resumed.
fn is_one(value: &f32) -> bool {
    *value == 1.0
}

fn batch() -> usize {
    256
}

impl RolloutTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one("rollout.max_batch", self.max_batch)?;
        at_least_one("rollout.cache_memory", self.cache_memory.map_or(1, bytes))?;
        if self.temperature == 0.0 {
            return Err(ConfigError::value(
                "rollout.temperature",
                "above 0 (validation.temperature sets it for validation)",
                0,
            ));
        }
        if self.stop.iter().any(String::is_empty) {
            return Err(ConfigError::value("rollout.stop", "texts that are not empty", format!("{:?}", self.stop)));
        }
        if let Some(token) = self.logit_bias.keys().find(|token| token.parse::<u32>().is_err()) {
            return Err(ConfigError::value("rollout.logit_bias", "keyed by token ids", format!("{token:?}")));
        }
        self.grammar.as_ref().map_or(Ok(()), GrammarTable::validate)?;
        self.check_engine()?;
        self.speculative_config.as_ref().map_or(Ok(()), SpeculativeTable::validate)?;
        self.sampling(Vec::new()).validate().map_err(|error| ConfigError::about("rollout", "rollout", error))
    }

    /// Refuses what servers that draw cannot do.
    fn check_engine(&self) -> Result<(), ConfigError> {
        let Some(engine) = &self.engine else { return Ok(()) };
        engine.validate()?;
        let wrong = |what: &str| Err(ConfigError::of("rollout.engine", what));
        let written = [
            ("rollout.device", self.device.is_some()),
            ("rollout.max_batch", self.max_batch != batch()),
            ("rollout.cache_memory", self.cache_memory.is_some()),
            ("rollout.quantization", self.quantization.is_some()),
            ("rollout.speculative_config", self.speculative_config.is_some()),
        ];
        if let Some((key, _)) = written.into_iter().find(|(_, is_written)| *is_written) {
            return wrong(&format!("{key} is for an engine of the run\nhint: leave one of them out"));
        }
        if self.grammar.is_some() {
            return wrong(
                "rollout.grammar is for an engine of the run, not yet for servers\nhint: leave one of them out",
            );
        }
        Ok(())
    }

    /// Whether responses are drawn elsewhere than on the device that trains.
    pub fn draws_elsewhere(&self) -> bool {
        self.device.is_some() || self.engine.is_some()
    }

    /// Checks the tokens that it names against the size of the vocabulary.
    pub fn check_tokens(&self, vocabulary: i64) -> Result<(), ConfigError> {
        let sampling = self.sampling(Vec::new());
        let biased = sampling.logit_bias.iter().map(|(token, _)| ("rollout.logit_bias", token));
        let stops = sampling.stop_ids.iter().map(|token| ("rollout.stop_token_ids", token));
        match biased.chain(stops).find(|(_, token)| i64::from(**token) >= vocabulary) {
            Some((key, token)) => Err(ConfigError::value(key, &format!("below the vocabulary of {vocabulary}"), token)),
            None => Ok(()),
        }
    }

    /// Whether tokens are drawn from another distribution than the softmax of the logits over the temperature.
    pub fn changes_distribution(&self) -> bool {
        let sampling = self.sampling(Vec::new());
        let has_bias = sampling.logit_bias.iter().any(|(_, bias)| *bias != 0.0);
        sampling.is_truncated() || self.grammar.is_some() || sampling.repetition_penalty != 1.0 || has_bias
    }

    /// The engine's configuration for a run that never draws more than `responses` responses at once. The engine keeps
    /// no room for more.
    pub fn engine(&self, responses: usize) -> EngineConfig {
        let max_batch = self.max_batch.min(responses.max(1));
        let lookup = self.speculative_config.as_ref().map(SpeculativeTable::lookup);
        let (cache_bytes, quantization) = (self.cache_memory.map(bytes), self.quantization);
        EngineConfig { max_batch, cache_bytes, lookup, quantization, ..EngineConfig::default() }
    }

    /// How responses are drawn in training. They end at one of `stop_ids`, the tokenizer's stop tokens, or at one of
    /// the configured tokens. The texts of [`stop`](Self::stop) and the [`grammar`](Self::grammar) are not part of this.
    pub fn sampling(&self, mut stop_ids: Vec<u32>) -> Sampling {
        stop_ids.extend(&self.stop_token_ids);
        // `validate` refuses a key that is not an id.
        let bias = |(token, bias): (&String, &f32)| Some((token.parse::<u32>().ok()?, *bias));
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            logit_bias: self.logit_bias.iter().filter_map(bias).collect(),
            ..Sampling::new(self.max_tokens, stop_ids)
        }
    }
}

/// `[checkpoint]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointTable {
    /// Steps between checkpoints; 20 by default. The last step has one too.
    pub every: u64,
    /// How many of the newest are kept; 2 by default.
    pub keep_last: usize,
    /// Whether the one with the best `val/accuracy` is kept; yes by default.
    pub keep_best: bool,
}

impl Default for CheckpointTable {
    fn default() -> Self {
        Self { every: 20, keep_last: 2, keep_best: true }
    }
}

impl CheckpointTable {
    /// Which checkpoints stay when a new one is made.
    pub fn retention(&self) -> Retention {
        Retention { last: self.keep_last, best: self.keep_best }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one("checkpoint.every", self.every as usize)?;
        at_least_one("checkpoint.keep_last", self.keep_last)
    }
}

/// What is written down of the requests that plugins make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallsLog {
    /// Nothing.
    Off,
    /// Their endpoints, times, sizes and ends.
    #[default]
    Sizes,
    /// Questions and answers, too.
    Text,
}

impl CallsLog {
    /// A log that keeps this.
    pub fn open(self) -> Option<CallLog> {
        match self {
            Self::Off => None,
            Self::Sizes => Some(CallLog::new(false)),
            Self::Text => Some(CallLog::new(true)),
        }
    }
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogTable {
    /// The folder of all runs; `runs` by default.
    pub dir: PathBuf,
    /// The folder of this run in `dir`; `run` by default. If it exists already, the run adds a number.
    pub name: String,
    /// Whether every trajectory is written down; yes by default.
    pub trajectories: bool,
    /// Whether a trajectory's line has its token ids, too; no by default.
    pub token_ids: bool,
    /// What is written down of the requests that plugins make; `sizes` by default.
    pub calls: CallsLog,
    /// Whether TensorBoard event files are written; yes by default.
    pub tensorboard: bool,
    /// The trackers that the run is sent to; none by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trackers: Vec<TrackerTable>,
    /// The command line of this process, without secrets. It is no key.
    #[serde(skip)]
    pub command: Option<String>,
    /// Where this process shows the run's numbers to Prometheus. It is no key.
    #[serde(skip)]
    pub metrics: Option<MetricsListener>,
}

impl Default for LogTable {
    fn default() -> Self {
        Self {
            dir: "runs".into(),
            name: "run".into(),
            trajectories: true,
            token_ids: false,
            calls: CallsLog::default(),
            tensorboard: true,
            trackers: Vec::new(),
            command: None,
            metrics: None,
        }
    }
}

impl LogTable {
    /// The folder of the run.
    pub fn folder(&self) -> FolderConfig {
        let Self { dir, name, tensorboard, token_ids, command, .. } = self.clone();
        FolderConfig { dir, name, tensorboard, token_ids, command }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() || self.name.starts_with('.') || self.name.contains('/') {
            return Err(ConfigError::value("log.name", "the name of a folder", &self.name));
        }
        check_trackers(&self.trackers).map_err(|(number, key, what)| {
            let name = self.trackers.get(number).map_or("", TrackerTable::name);
            ConfigError::invalid("log.trackers", format!("log.trackers: `{name}`: {key}: {what}"))
        })
    }
}

/// `[resources]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourcesTable {
    /// Threads of libtorch; by default one for each core, which the ranks of a machine share.
    #[schemars(extend("default" = null))]
    pub torch_threads: usize,
    /// Threads of plugins, at a lower priority; as many by default. However busy they are, libtorch keeps at
    /// least `torch_threads / (torch_threads + plugin_threads)` of the speed that it has alone.
    #[schemars(extend("default" = null))]
    pub plugin_threads: usize,
    /// The memory of all plugins together; by default half of the machine's, which its ranks share.
    #[schemars(with = "gavel_data::SizeForm", extend("default" = null))]
    pub plugin_memory: ByteSize,
    /// Whether training gives the same bits each time on a GPU too, or fails where libtorch cannot; false by default. On
    /// the CPU it always does.
    pub deterministic: bool,
    /// Whether faster operations are used on a GPU once a check has found them equal to the plain ones: `auto` or `off`.
    pub cuda_fast_paths: CudaFastPaths,
    /// What loading a plugin or a program may use.
    pub loading: LoadingTable,
}

impl Default for ResourcesTable {
    fn default() -> Self {
        let ranks = Rendezvous::local_size();
        let cores = (std::thread::available_parallelism().map_or(1, usize::from) / ranks).max(1);
        let threads = NonZeroUsize::new(cores).unwrap_or(NonZeroUsize::MIN);
        let plugin_memory = ByteSize((SandboxConfig::with_threads(threads).memory / ranks) as u64);
        let loading = LoadingTable::default();
        Self {
            torch_threads: cores,
            plugin_threads: cores,
            plugin_memory,
            deterministic: false,
            cuda_fast_paths: CudaFastPaths::default(),
            loading,
        }
    }
}

impl ResourcesTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_threads("resources.torch_threads", self.torch_threads)?;
        check_threads("resources.plugin_threads", self.plugin_threads)?;
        at_least_one("resources.plugin_memory", bytes(self.plugin_memory))?;
        self.loading.validate()
    }

    /// The same, with half of libtorch's threads if both devices are the CPU.
    pub fn half(&self, first: &str, second: &str) -> Self {
        let is_cpu =
            |device: &str| device == "cpu" || (device == "auto" && gavel_policy::device::why_no_gpu().is_some());
        let share = if is_cpu(first) && is_cpu(second) { 2 } else { 1 };
        Self { torch_threads: (self.torch_threads / share).max(1), ..self.clone() }
    }

    /// The sandbox that plugins share.
    pub fn sandbox(&self) -> SandboxConfig {
        let threads = NonZeroUsize::new(self.plugin_threads).unwrap_or(NonZeroUsize::MIN);
        let (memory, loading) = (bytes(self.plugin_memory), self.loading.limits());
        SandboxConfig { beside_model: true, memory, loading, ..SandboxConfig::with_threads(threads) }
    }
}

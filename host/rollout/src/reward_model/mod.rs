//! A reward model: a thread that owns it, and the handle that everyone asks. The conversations of all callers are
//! batched without padding, so that the rest of a batch changes a score only in its last bits.

mod config;
mod error;
mod reader;
mod steps;
mod usage;
mod waiting;
mod worker;

pub use config::{Reading, RewardModelConfig};
pub use error::{Part, RewardModelError};
pub use steps::{Each, StepsConfig, StepsScore};
pub use usage::RewardModelUsage;

use crate::device_turns::DeviceTurns;
use crate::thread_end::{ThreadEnd, ThreadWatch, use_here};
use gavel_data::{ConversationScore, Message, StepValue};
use gavel_policy::memory::{Footprint, PassShape};
use gavel_policy::{Device, HostWeights, Model, device};
use gavel_text::TextModel;
use reader::{ReadConversation, Reader};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use usage::Counters;
use waiting::{Request, Values};
use worker::Worker;

/// The result of a conversation.
type Answer = oneshot::Receiver<Result<Values, RewardModelError>>;

/// A reward model. Clones are the same model, whose thread ends with the last of them.
#[derive(Clone)]
pub struct RewardModel(Arc<Handle>);

struct Handle {
    reader: Reader,
    steps: Option<StepsConfig>,
    footprint: RewardModelFootprint,
    counters: Arc<Counters>,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    watch: ThreadWatch,
}

/// The memory that a reward model takes on its device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewardModelFootprint {
    /// The device.
    pub device: Device,
    /// The weights.
    pub weights: u64,
    /// A batch, beside the weights.
    pub batch: u64,
    /// Whether the weights are there only while conversations are scored.
    pub sleeps: bool,
}

impl RewardModel {
    /// Starts the thread of a model, with its tokenizer and chat template. It computes only when it has its turn among
    /// `turns`, the turns of its device.
    ///
    /// # Errors
    /// The model does not fit `config` or the tokenizer, or its chat template cannot render a conversation.
    pub fn start(
        model: Model,
        text: TextModel,
        config: RewardModelConfig,
        turns: Arc<DeviceTurns>,
    ) -> Result<Self, RewardModelError> {
        let output = config.output(&model, &text.tokenizer)?;
        let RewardModelConfig { steps, max_tokens_per_batch, max_wait, sleep, .. } = config;
        model
            .config()
            .check_vocabulary(text.tokenizer.vocab_size())
            .map_err(|error| RewardModelError::Unfit { part: Part::Vocabulary, what: error.to_string() })?;
        let reader = Reader::new(text, output, model.config(), steps.clone())?;
        let footprint = footprint(&model, max_tokens_per_batch, sleep);
        let host = sleep.then(|| HostWeights::of(&model)).transpose()?;
        if let Some(host) = &host {
            host.release(&model)?;
        }
        let (requests, received) = channel();
        let counters = Arc::new(Counters::default());
        let (known, counted) = (HashMap::new(), counters.clone());
        let (end, watch) = ThreadEnd::new(device::probe);
        let mut worker =
            Worker { model, host, turns, output, max_tokens_per_batch, max_wait, known, counters: counted, end };
        let thread = std::thread::Builder::new().name("gavel-reward-model".into());
        let work = move || {
            use_here(worker.model.device());
            worker.run(&received);
            // Before the worker, so that nobody who sees the end can still send a request.
            drop(received);
        };
        let thread = thread.spawn(work).map_err(RewardModelError::Thread)?;
        let (requests, thread) = (Some(requests), Some(thread));
        Ok(Self(Arc::new(Handle { reader, steps, footprint, counters, requests, thread, watch })))
    }

    /// The score of a conversation, whose last message is what is scored. Its text is made and tokenised before this
    /// returns; the future waits for the model.
    ///
    /// # Errors
    /// It is too long or cannot be rendered, or the model failed.
    pub fn score(
        &self,
        conversation: &[Message],
    ) -> impl Future<Output = Result<ConversationScore, RewardModelError>> + Send + use<> {
        let asked = self.0.reader.read(conversation, &Map::new()).and_then(|read| {
            let steps = read.steps.clone();
            Ok((self.ask(read)?, steps))
        });
        let how = self.0.steps.as_ref().map(|steps| steps.score);
        let watch = self.0.watch.clone();
        async move {
            let (answer, steps) = asked?;
            let values = answer.await.map_err(|_| watch.cause())??;
            Ok(match how {
                None => ConversationScore::whole(values.first().copied().unwrap_or(f64::NAN)),
                Some(how) => ConversationScore { score: how.of(&values), steps: of_steps(steps, &values) },
            })
        }
    }

    /// The scores of all labels for a conversation, as `transformers` gives them before a softmax. `variables` are
    /// additional variables of the chat template.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn labels(
        &self,
        conversation: &[Message],
        variables: &Map<String, Value>,
    ) -> impl Future<Output = Result<Labels, RewardModelError>> + Send + use<> {
        self.labels_of(self.0.reader.read(conversation, variables))
    }

    /// The same for a text. With `add_special`, the tokenizer adds its special tokens.
    ///
    /// # Errors
    /// As for [`score`](Self::score).
    pub fn labels_of_text(
        &self,
        text: &str,
        add_special: bool,
    ) -> impl Future<Output = Result<Labels, RewardModelError>> + Send + use<> {
        self.labels_of(self.0.reader.read_text(text, add_special))
    }

    fn labels_of(
        &self,
        read: Result<ReadConversation, RewardModelError>,
    ) -> impl Future<Output = Result<Labels, RewardModelError>> + Send + use<> {
        let asked = read.and_then(|read| {
            let tokens = read.tokens.len();
            Ok((self.ask(read)?, tokens))
        });
        let watch = self.0.watch.clone();
        async move {
            let (answer, tokens) = asked?;
            let scores = answer.await.map_err(|_| watch.cause())??;
            Ok(Labels { scores: scores.to_vec(), tokens })
        }
    }

    fn ask(&self, ReadConversation { tokens, places, .. }: ReadConversation) -> Result<Answer, RewardModelError> {
        let mut hasher = blake3::Hasher::new();
        tokens.iter().for_each(|token| {
            hasher.update(&token.to_le_bytes());
        });
        // Where the tokens end and the places begin.
        hasher.update(&(tokens.len() as u64).to_le_bytes());
        places.iter().for_each(|place| {
            hasher.update(&(*place as u64).to_le_bytes());
        });
        let (reply, values) = oneshot::channel();
        let request = Request { key: *hasher.finalize().as_bytes(), tokens, places, reply };
        let requests = self.0.requests.as_ref().ok_or(RewardModelError::Stopped)?;
        requests.send(request).map_err(|_| self.0.watch.cause())?;
        Ok(values)
    }

    /// What it has done so far.
    pub fn usage(&self) -> RewardModelUsage {
        self.0.counters.usage()
    }

    /// The memory that it takes.
    pub fn footprint(&self) -> RewardModelFootprint {
        self.0.footprint
    }

    /// Whether the thread still works.
    ///
    /// # Errors
    /// It has ended, for this reason.
    pub fn check(&self) -> Result<(), RewardModelError> {
        if self.0.watch.is_alive() { Ok(()) } else { Err(self.0.watch.cause().into()) }
    }

    /// Waits until the thread ends because it cannot continue, and gives the reason.
    pub async fn ended(&self) -> RewardModelError {
        self.0.watch.ended().await.into()
    }
}

/// The scores of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// One for each label of the model.
    pub scores: Vec<f64>,
    /// The tokens of the text.
    pub tokens: usize,
}

fn of_steps(steps: Vec<Range<usize>>, values: &[f64]) -> Vec<StepValue> {
    // Texts of the contract have fewer than 4 GiB.
    let byte = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
    let step =
        |(step, value): (Range<usize>, &f64)| StepValue { start: byte(step.start), end: byte(step.end), value: *value };
    steps.into_iter().zip(values).map(step).collect()
}

fn footprint(model: &Model, max_tokens_per_batch: usize, sleeps: bool) -> RewardModelFootprint {
    let footprint = Footprint::new(model.config(), model.kind(), model.device());
    let tokens = max_tokens_per_batch as u64;
    let batch = footprint.layer(PassShape::unshared(tokens));
    RewardModelFootprint { device: model.device(), weights: footprint.weights(), batch, sleeps }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed when it came.
            let _ = thread.join();
        }
    }
}

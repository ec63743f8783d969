//! A reward model: a thread that owns it, and the handle that everyone asks. Conversations of all who ask are batched
//! without padding, so that what else is in a batch changes a score only in its last bits.

mod config;
mod error;
mod usage;
mod waiting;
mod worker;

pub use config::{Reading, RewardModelConfig};
pub use error::RewardModelError;
pub use usage::RewardModelUsage;

use config::Output;
use gavel_data::{Message, Role};
use gavel_policy::Model;
use gavel_text::{RenderOptions, TextModel};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use usage::Counters;
use waiting::Request;
use worker::Worker;

/// Few tokens have as many bytes, and megabytes take seconds to tokenise.
const BYTES_PER_TOKEN: usize = 64;

/// What comes of a conversation.
type Answer = oneshot::Receiver<Result<f64, RewardModelError>>;

/// A reward model. Clones are the same model, whose thread ends with the last of them.
#[derive(Clone)]
pub struct RewardModel(Arc<Handle>);

struct Handle {
    text: TextModel,
    output: Output,
    positions: usize,
    counters: Arc<Counters>,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl RewardModel {
    /// Starts the thread of a model, with its tokenizer and chat template.
    ///
    /// # Errors
    /// The model does not fit `config` or the tokenizer, or its chat template cannot make a text of a conversation.
    pub fn start(model: Model, text: TextModel, config: RewardModelConfig) -> Result<Self, RewardModelError> {
        let RewardModelConfig { reading, max_tokens_per_batch, max_wait } = config;
        let output = reading.output(&model, &text.tokenizer)?;
        model
            .config()
            .check_vocabulary(text.tokenizer.vocab_size())
            .map_err(|error| RewardModelError::Unfit(error.to_string()))?;
        let positions = usize::try_from(model.config().positions()).unwrap_or_default();
        let (requests, received) = channel();
        let counters = Arc::new(Counters::default());
        let worker =
            Worker { model, output, max_tokens_per_batch, max_wait, known: HashMap::new(), counters: counters.clone() };
        let mut handle = Handle { text, output, positions, counters, requests: Some(requests), thread: None };
        handle.ids(&[Message::new(Role::User, "a"), Message::new(Role::Assistant, "b")])?;
        let thread = std::thread::Builder::new().name("gavel-reward-model".into());
        let thread = thread.spawn(move || worker.run(&received)).map_err(RewardModelError::Thread)?;
        handle.thread = Some(thread);
        Ok(Self(Arc::new(handle)))
    }

    /// The score of a conversation, whose last message is what is scored. Its text is made and tokenised before this
    /// returns; the future waits for the model.
    ///
    /// # Errors
    /// It is too long or cannot be rendered, or the model failed.
    pub fn score(
        &self,
        conversation: &[Message],
    ) -> impl Future<Output = Result<f64, RewardModelError>> + Send + use<> {
        let asked = self.ask(conversation);
        async move { asked?.await.map_err(|_| RewardModelError::Stopped)? }
    }

    fn ask(&self, conversation: &[Message]) -> Result<Answer, RewardModelError> {
        let positions = self.0.positions;
        let bytes: usize = conversation.iter().map(|message| message.text().len()).sum();
        if bytes / BYTES_PER_TOKEN > positions {
            return Err(RewardModelError::TooManyBytes { bytes, positions });
        }
        let tokens = self.0.ids(conversation)?;
        if tokens.len() > positions {
            return Err(RewardModelError::TooLong { tokens: tokens.len(), positions });
        }
        let mut hasher = blake3::Hasher::new();
        tokens.iter().for_each(|token| {
            hasher.update(&token.to_le_bytes());
        });
        let (reply, score) = oneshot::channel();
        let request = Request { key: *hasher.finalize().as_bytes(), tokens, reply };
        let requests = self.0.requests.as_ref().ok_or(RewardModelError::Stopped)?;
        requests.send(request).map_err(|_| RewardModelError::Stopped)?;
        Ok(score)
    }

    /// What it has done so far.
    pub fn usage(&self) -> RewardModelUsage {
        self.0.counters.usage()
    }
}

impl Handle {
    /// The tokens of a conversation. A classifier reads the whole of it; a language model goes on after it.
    fn ids(&self, conversation: &[Message]) -> Result<Vec<u32>, RewardModelError> {
        let add_generation_prompt = self.output != Output::Score;
        let options = RenderOptions { add_generation_prompt, ..RenderOptions::default() };
        let ids = self.text.prompt_ids_with(conversation, &options)?;
        match ids.is_empty() {
            true => Err(RewardModelError::Unfit("the chat template makes an empty text of a conversation".into())),
            false => Ok(ids),
        }
    }
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

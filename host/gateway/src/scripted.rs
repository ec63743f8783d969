//! A policy for tests: it notes what it is asked and what it writes.

use futures::FutureExt;
use gavel_agent::{ConversationKey, PendingTurn, Policy, Turn, TurnRequest};
use gavel_data::{FinishReason, SamplingMasks};
use gavel_text::TextModel;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// Bytes as tokens, with the chat template of Qwen2.5, which shows how to call tools.
pub(crate) fn with_tools() -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(folder.path()).unwrap();
    let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/parity/chat_templates/qwen2_5.jinja");
    std::fs::copy(templates, folder.path().join("chat_template.jinja")).unwrap();
    TextModel::load(folder.path()).unwrap()
}

/// A turn that the policy wrote.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) prompt: Vec<u32>,
    pub(crate) ids: Vec<u32>,
    pub(crate) logprobs: Vec<f32>,
}

pub(crate) struct Scripted {
    pub(crate) text: TextModel,
    /// What it writes for a seed.
    reply: Box<dyn Fn(u64) -> String + Send + Sync>,
    pub(crate) written: Arc<Mutex<Vec<Written>>>,
    /// It writes once this is true.
    pub(crate) may_write: watch::Sender<bool>,
    /// Notified when it is asked, and when a turn is cancelled.
    pub(crate) asked: Notify,
    pub(crate) cancelled: Arc<Notify>,
    conversations: AtomicU64,
}

impl Scripted {
    pub(crate) fn new(reply: impl Fn(u64) -> String + Send + Sync + 'static) -> Self {
        Self::with(TextModel::byte_level(), reply)
    }

    pub(crate) fn with(text: TextModel, reply: impl Fn(u64) -> String + Send + Sync + 'static) -> Self {
        Self {
            text,
            reply: Box::new(reply),
            written: Arc::default(),
            may_write: watch::channel(true).0,
            asked: Notify::new(),
            cancelled: Arc::default(),
            conversations: AtomicU64::new(0),
        }
    }

    pub(crate) fn written(&self) -> Vec<Written> {
        self.written.lock().unwrap().clone()
    }
}

/// Notifies when it is dropped before its turn was written.
struct Unwritten(Arc<Notify>, bool);

impl Unwritten {
    fn end(mut self) {
        self.1 = true;
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if !self.1 {
            self.0.notify_one();
        }
    }
}

impl Policy for Scripted {
    type Error = Infallible;

    fn text(&self) -> &TextModel {
        &self.text
    }

    fn conversation(&self) -> Option<ConversationKey> {
        Some(ConversationKey::new(self.conversations.fetch_add(1, Ordering::Relaxed), |_| {}))
    }

    async fn generate(&self, requests: Vec<TurnRequest>) -> Result<Vec<PendingTurn<Infallible>>, Infallible> {
        let turn = |request: TurnRequest| {
            let mut ids = self.text.tokenizer.encode(&(self.reply)(request.seed)).unwrap();
            ids.push(self.text.tokenizer.eos());
            let finish_reason = if ids.len() > request.max_tokens { FinishReason::Length } else { FinishReason::Stop };
            ids.truncate(request.max_tokens);
            let logprobs: Vec<f32> =
                (0..ids.len()).map(|at| -((request.seed % 97) as f32) / 97.0 - at as f32 / 1024.0).collect();
            let (written, mut may_write) = (self.written.clone(), self.may_write.subscribe());
            let unwritten = Unwritten(self.cancelled.clone(), false);
            async move {
                may_write.wait_for(|may| *may).await.unwrap();
                // Other requests get their turn.
                for _ in 0..request.seed % 3 {
                    tokio::task::yield_now().await;
                }
                unwritten.end();
                let prompt = request.prompt;
                written.lock().unwrap().push(Written { prompt, ids: ids.clone(), logprobs: logprobs.clone() });
                let versions = vec![3; ids.len()];
                Ok(Turn { ids, logprobs, versions, masks: SamplingMasks::new(), finish_reason })
            }
            .boxed()
        };
        let turns = requests.into_iter().map(turn).collect();
        self.asked.notify_one();
        Ok(turns)
    }
}

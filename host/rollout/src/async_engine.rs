//! The handle of a model on its device.

use crate::completion::Completion;
use crate::device_thread::{CacheDuring, DeviceThread, Order, QueueTurn, Queued, Reply, UnderWay, Weights};
use crate::device_turns::DeviceTurns;
use crate::error::RolloutError;
use crate::observer::Observer;
use crate::request::{GenerateRequest, Response};
use crate::stop_reader::StopReader;
use gavel_policy::{EngineConfig, Model, ModelConfig, Request, device};
use gavel_text::TextModel;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// The handle of a model on its device, for many callers at once. Clones share one thread; it ends when the last is
/// dropped.
#[derive(Clone)]
pub struct AsyncEngine {
    text: Arc<TextModel>,
    model: Arc<ModelConfig>,
    thread: Arc<DeviceThread>,
    next_id: Arc<AtomicU64>,
    next_conversation: Arc<AtomicU64>,
    longest: usize,
}

impl AsyncEngine {
    /// Starts the thread for `model`.
    ///
    /// # Errors
    /// The model or `config` cannot be used for decoding.
    pub fn start(
        model: Model,
        text: TextModel,
        config: EngineConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, RolloutError> {
        Self::start_sharing(model, text, config, observer, Arc::default())
    }

    /// Starts the thread for `model` on a device that reward models with the same `turns` share: they compute while
    /// the thread has nothing to do.
    ///
    /// # Errors
    /// The model or `config` cannot be used for decoding.
    pub fn start_sharing(
        model: Model,
        text: TextModel,
        config: EngineConfig,
        observer: Arc<dyn Observer>,
        turns: Arc<DeviceTurns>,
    ) -> Result<Self, RolloutError> {
        let sizes = Arc::new(model.config().clone());
        let (thread, longest) = DeviceThread::start(model, config, observer, turns, device::probe)?;
        let (text, thread) = (Arc::new(text), Arc::new(thread));
        Ok(Self { text, model: sizes, thread, next_id: Arc::default(), next_conversation: Arc::default(), longest })
    }

    /// Its tokenizer and chat template.
    pub fn text(&self) -> &TextModel {
        &self.text
    }

    /// The same, for another holder.
    pub fn shared_text(&self) -> Arc<TextModel> {
        self.text.clone()
    }

    /// Its sizes.
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// How many tokens may follow a prompt of `prompt` tokens; 0 if the prompt is itself too long.
    pub fn room(&self, prompt: usize) -> usize {
        self.longest.saturating_sub(prompt)
    }

    /// Whether the thread still works.
    ///
    /// # Errors
    /// It has ended, for this reason.
    pub fn check(&self) -> Result<(), RolloutError> {
        if self.thread.is_alive() { Ok(()) } else { Err(self.thread.stopped()) }
    }

    /// Waits until the thread ends because it cannot continue, and gives the reason.
    pub async fn ended(&self) -> RolloutError {
        self.thread.ended().await
    }

    /// Asks for these responses. All of them are submitted before the next step, in this order.
    ///
    /// # Errors
    /// One of the requests cannot be served; the others are then cancelled.
    pub async fn generate(&self, requests: Vec<GenerateRequest>) -> Result<Vec<Response>, RolloutError> {
        self.generate_at(QueueTurn::Last, requests).await
    }

    /// Asks for these responses as [`generate`](Self::generate) does, before all that wait for their turn.
    ///
    /// # Errors
    /// As there.
    pub async fn generate_first(&self, requests: Vec<GenerateRequest>) -> Result<Vec<Response>, RolloutError> {
        self.generate_at(QueueTurn::First, requests).await
    }

    async fn generate_at(
        &self,
        turn: QueueTurn,
        requests: Vec<GenerateRequest>,
    ) -> Result<Vec<Response>, RolloutError> {
        let (mut queued, mut responses) = (Vec::new(), Vec::new());
        for request in requests {
            let (reply, response) = oneshot::channel();
            // Without a stop text, nothing needs to be decoded.
            let reader = (!request.stop.is_empty()).then(|| self.reader(&request));
            queued.push(self.queued(request, reader, Reply::Whole(reply)));
            responses.push(Response(response));
        }
        self.submit(queued, turn).await?;
        Ok(responses)
    }

    /// Asks for these responses, each of which comes piece by piece. All of them are submitted before the next step, in
    /// this order.
    ///
    /// # Errors
    /// One of the requests cannot be served; the others are then cancelled.
    pub async fn stream(&self, requests: Vec<GenerateRequest>) -> Result<Vec<Completion>, RolloutError> {
        let (mut queued, mut completions) = (Vec::new(), Vec::new());
        for request in requests {
            let (events, receiver) = mpsc::unbounded_channel();
            let reader = Some(self.reader(&request));
            queued.push(self.queued(request, reader, Reply::Stream(events)));
            completions.push(Completion::new(receiver));
        }
        self.submit(queued, QueueTurn::Last).await?;
        Ok(completions)
    }

    /// Does `work` with the model on the device's thread, between two steps of decoding.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Model) -> R + Send + 'static,
    ) -> Result<R, RolloutError> {
        self.run_with(CacheDuring::Kept, work).await
    }

    /// Does `work` as [`run`](Self::run) does, with or without the engine's keys and values beside it.
    ///
    /// # Errors
    /// The thread has ended, or the keys and values cannot be freed.
    pub async fn run_with<R: Send + 'static>(
        &self,
        cache: CacheDuring,
        work: impl FnOnce(&Model) -> R + Send + 'static,
    ) -> Result<R, RolloutError> {
        self.change(cache, Weights::Unchanged, work).await
    }

    /// Does `work`, which may change the weights, as [`run_with`](Self::run_with) does. No token is drawn between the
    /// change and its declaration, `after`.
    ///
    /// # Errors
    /// As there.
    pub async fn change<R: Send + 'static>(
        &self,
        cache: CacheDuring,
        after: Weights,
        work: impl FnOnce(&Model) -> R + Send + 'static,
    ) -> Result<R, RolloutError> {
        let (done, result) = oneshot::channel();
        let work = move |model: Result<&Model, RolloutError>| {
            // The caller may have stopped waiting.
            let _ = done.send(model.map(work));
        };
        self.thread.send(Order::Run { cache, after, work: Box::new(work) })?;
        result.await.map_err(|_| self.thread.stopped())?
    }

    /// Does `work` as [`change`](Self::change) does, and blocks the calling thread until it is done.
    ///
    /// # Errors
    /// As there.
    pub fn run_blocking<R: Send + 'static>(
        &self,
        cache: CacheDuring,
        after: Weights,
        work: impl FnOnce(&Model) -> R + Send + 'static,
    ) -> Result<R, RolloutError> {
        let (done, result) = std::sync::mpsc::channel();
        let work = move |model: Result<&Model, RolloutError>| {
            // The caller waits, unless the process ends.
            let _ = done.send(model.map(work));
        };
        self.thread.send(Order::Run { cache, after, work: Box::new(work) })?;
        result.recv().map_err(|_| self.thread.stopped())?
    }

    /// The number of a conversation that begins. It is [forgotten](Self::forget) when it has no further turn.
    pub fn conversation(&self) -> u64 {
        self.next_conversation.fetch_add(1, Ordering::Relaxed)
    }

    /// Frees the part of the cache that a conversation holds.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn forget(&self, conversation: u64) -> Result<(), RolloutError> {
        self.thread.send(Order::Forget(conversation))
    }

    /// Declares that the weights have the version `version`, for everything that is drawn from now on. Work that
    /// changes the weights declares their version [itself](Self::change).
    ///
    /// # Errors
    /// The thread has ended.
    pub fn set_version(&self, version: u64) -> Result<(), RolloutError> {
        self.thread.send(Order::SetVersion(version))
    }

    /// Draws nothing until [`resume`](Self::resume), once responses under way are as `under_way` says. Requests wait
    /// meanwhile, and other work is done. The thread has the order when this returns, before it is awaited.
    ///
    /// # Errors
    /// The thread has ended, or was resumed before the pause began.
    pub fn pause(&self, under_way: UnderWay) -> impl Future<Output = Result<(), RolloutError>> + Send + use<> {
        let (paused, waits) = oneshot::channel();
        let (sent, thread) = (self.thread.send(Order::Pause { under_way, paused }), self.thread.clone());
        async move {
            sent?;
            waits.await.map_err(|_| if thread.is_alive() { RolloutError::Resumed } else { thread.stopped() })
        }
    }

    /// Draws again after a [pause](Self::pause).
    ///
    /// # Errors
    /// The thread has ended.
    pub fn resume(&self) -> Result<(), RolloutError> {
        self.thread.send(Order::Resume)
    }

    fn reader(&self, request: &GenerateRequest) -> StopReader {
        let decoder = self.text.tokenizer.stream(true);
        let decoder = if request.continues_prompt { decoder.after(&request.prompt) } else { decoder };
        StopReader::new(decoder, request.stop.clone(), request.sampling.clone())
    }

    fn queued(&self, request: GenerateRequest, reader: Option<StopReader>, reply: Reply) -> Queued {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let GenerateRequest { prompt, sampling, seed, top_logprobs, conversation, .. } = request;
        let request = Request { top_logprobs, conversation, ..Request::new(id, prompt, sampling, seed) };
        Queued { request, reader, reply }
    }

    async fn submit(&self, queued: Vec<Queued>, turn: QueueTurn) -> Result<(), RolloutError> {
        let (accepted, answer) = oneshot::channel();
        self.thread.send(Order::Generate { queued, turn, accepted })?;
        Ok(answer.await.map_err(|_| self.thread.stopped())??)
    }
}

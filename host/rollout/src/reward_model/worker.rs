//! The thread that owns a reward model.

use super::config::Output;
use super::error::RewardModelError;
use super::usage::Counters;
use super::waiting::{AskedConversation, Key, Request, Values, Waiting};
use crate::device_turns::DeviceTurns;
use crate::thread_end::ThreadEnd;
use gavel_policy::device::DeviceFailure;
use gavel_policy::{HostWeights, Kind, Model, Packed, PackedRow, PolicyError, Tensor};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What the thread owns.
pub(super) struct Worker {
    pub(super) model: Model,
    /// The weights, where the model sleeps between its turns.
    pub(super) host: Option<HostWeights>,
    /// Whose turn it is on the device.
    pub(super) turns: Arc<DeviceTurns>,
    pub(super) output: Output,
    pub(super) max_tokens_per_batch: usize,
    pub(super) max_wait: Duration,
    /// The values so far, so that no conversation is computed twice.
    pub(super) known: HashMap<Key, Values>,
    pub(super) counters: Arc<Counters>,
    pub(super) end: ThreadEnd,
}

impl Worker {
    /// Works until the last handle is gone, or the device fails. A caller that waits then learns it from the handle.
    pub(super) fn run(&mut self, requests: &Receiver<Request>) {
        let mut waiting = Waiting::default();
        loop {
            if waiting.is_empty() {
                match requests.recv() {
                    Ok(request) => self.add(request, &mut waiting),
                    Err(_) => return,
                }
            }
            self.gather(requests, &mut waiting);
            if !waiting.is_empty() && self.take_turn(requests, &mut waiting).is_err() {
                return;
            }
        }
    }

    /// Waits for more, until a batch is full or the wait has been long enough.
    fn gather(&mut self, requests: &Receiver<Request>, waiting: &mut Waiting) {
        let end = Instant::now() + self.max_wait;
        while !waiting.is_empty() && waiting.tokens() < self.max_tokens_per_batch {
            match requests.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(request) => self.add(request, waiting),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Scores one batch after another, until nothing waits or the policy wants its device back.
    ///
    /// # Errors
    /// The device has failed.
    fn take_turn(&mut self, requests: &Receiver<Request>, waiting: &mut Waiting) -> Result<(), Arc<DeviceFailure>> {
        let turns = self.turns.clone();
        let began = Instant::now();
        let turn = turns.borrow();
        self.counters.add_waiting(began.elapsed());
        let woken = self.move_weights(HostWeights::restore);
        loop {
            while let Ok(request) = requests.try_recv() {
                self.add(request, waiting);
            }
            let batch = waiting.take(self.max_tokens_per_batch);
            match &woken {
                _ if batch.is_empty() => break,
                Ok(()) => self.score(batch)?,
                Err(error) => self.fail(batch.into_iter().flat_map(|asked| asked.replies), error)?,
            }
            if turn.is_wanted() {
                break;
            }
        }
        if woken.is_ok()
            && let Err(error) = self.move_weights(HostWeights::release)
        {
            tracing::warn!("the weights of a reward model stay on its device: {error}");
        }
        Ok(())
    }

    fn move_weights(
        &self,
        to: impl FnOnce(&HostWeights, &Model) -> Result<(), PolicyError>,
    ) -> Result<(), Arc<PolicyError>> {
        let Some(host) = &self.host else { return Ok(()) };
        let began = Instant::now();
        let moved = to(host, &self.model).map_err(Arc::new);
        self.counters.add_moving(began.elapsed());
        moved
    }

    /// Answers a request whose values are known, and lets others wait.
    fn add(&self, request: Request, waiting: &mut Waiting) {
        match self.known.get(&request.key) {
            Some(values) => {
                self.counters.reuse(1);
                // The caller may have stopped waiting.
                let _ = request.reply.send(Ok(values.clone()));
            }
            None => waiting.push(request),
        }
    }

    fn score(&mut self, batch: Vec<AskedConversation>) -> Result<(), Arc<DeviceFailure>> {
        let (mut rows, mut places, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for AskedConversation { key, tokens, places: of_row, replies } in batch {
            rows.push(PackedRow { after: None, tokens });
            places.push(of_row);
            asked.push((key, replies));
        }
        self.counters.compute(&rows);
        let began = Instant::now();
        let computed = self.compute(&rows, &places);
        self.counters.add_computing(began.elapsed());
        let values = match computed {
            Ok(values) => values,
            Err(error) => return self.fail(asked.into_iter().flat_map(|(_, replies)| replies), &Arc::new(error)),
        };
        for ((key, replies), values) in asked.into_iter().zip(values) {
            self.counters.reuse(replies.len() as u64 - 1);
            let broken = values.iter().copied().find(|value| !value.is_finite());
            if broken.is_none() {
                self.known.insert(key, values.clone());
            }
            for reply in replies {
                let found = broken.map_or_else(|| Ok(values.clone()), |value| Err(RewardModelError::NotFinite(value)));
                let _ = reply.send(found);
            }
        }
        Ok(())
    }

    /// Sends the error to all callers that wait for these replies.
    fn fail(
        &self,
        replies: impl Iterator<Item = super::waiting::Reply>,
        error: &Arc<PolicyError>,
    ) -> Result<(), Arc<DeviceFailure>> {
        let failure = self.end.failure(error, "conversations were scored", self.model.device());
        for reply in replies {
            let failed = || RewardModelError::Failed(error.clone());
            let _ = reply.send(Err(failure.clone().map_or_else(failed, RewardModelError::Device)));
        }
        failure.map_or(Ok(()), Err)
    }

    /// The values of each row, at its places.
    fn compute(&self, rows: &[PackedRow], places: &[Vec<usize>]) -> Result<Vec<Values>, PolicyError> {
        let _guard = tch::no_grad_guard();
        let packed = Packed::new(rows, self.model.device())?;
        let hidden = self.model.hidden_at(&packed, places)?;
        let values = match self.output {
            Output::Scores => self.model.scores_of_last(&hidden)?,
            Output::YesNo(tokens) => {
                let tokens = Tensor::f_from_slice(&tokens.map(i64::from))?.f_to_device(self.model.device())?;
                let logits = self.model.logits(&hidden)?.f_index_select(1, &tokens)?;
                logits.f_softmax(1, Kind::Float)?.f_narrow(1, 0, 1)?
            }
            Output::Value => self.model.values(&hidden)?,
            Output::SecondLabel => self.model.values(&hidden)?.f_softmax(1, Kind::Float)?.f_narrow(1, 1, 1)?,
        };
        let labels = usize::try_from(values.size()[1]).unwrap_or_default();
        let all = Vec::<f64>::try_from(&values.f_to_kind(Kind::Double)?.f_contiguous()?.f_view(-1)?)?;
        let mut rest = all.as_slice();
        let of_row = |places: &Vec<usize>| {
            let (own, others) = rest.split_at((places.len() * labels).min(rest.len()));
            rest = others;
            Values::from(own)
        };
        Ok(places.iter().map(of_row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_end::{Probe, ThreadWatch};
    use gavel_policy::{Device, ModelConfig, device};
    use std::sync::mpsc::channel;
    use tokio::sync::oneshot;

    /// A worker whose weights do not fit together, and who looks at it.
    fn broken(probe: Probe) -> (Worker, ThreadWatch) {
        let sizes = r#"{"architectures":["Qwen2ForSequenceClassification"],"num_labels":1,"vocab_size":50,"hidden_size":16,"intermediate_size":16,"num_hidden_layers":2,"num_attention_heads":2}"#;
        let config: ModelConfig = serde_json::from_str(sizes).unwrap();
        let model = Model::random(config, 3, Device::Cpu).unwrap();
        let (_, mut norm) = model.parameters().into_iter().find(|(name, _)| name == "model.norm.weight").unwrap();
        norm.set_data(&Tensor::ones([15], (norm.kind(), norm.device())));
        let (end, watch) = ThreadEnd::new(probe);
        let worker = Worker {
            model,
            host: None,
            turns: Arc::default(),
            output: Output::Scores,
            max_tokens_per_batch: 4,
            max_wait: Duration::ZERO,
            known: HashMap::new(),
            counters: Arc::default(),
            end,
        };
        (worker, watch)
    }

    #[test]
    fn only_a_device_that_failed_ends_the_thread() {
        for fails in [false, true] {
            let (mut worker, watch) =
                broken(if fails { |_| Err(PolicyError::Torch("CUDA error".into())) } else { device::probe });
            let (sender, requests) = channel();
            // Each is a batch of its own.
            let asked = [0, 1].map(|key| {
                let (reply, answer) = oneshot::channel();
                sender.send(Request { key: [key; 32], tokens: vec![1, 2, 3], places: vec![2], reply }).unwrap();
                answer
            });
            drop(sender);
            worker.run(&requests);
            drop(worker);
            let [first, second] = asked.map(oneshot::Receiver::blocking_recv);
            match (fails, first.unwrap().unwrap_err()) {
                (false, RewardModelError::Failed(_)) => {
                    assert!(matches!(second, Ok(Err(RewardModelError::Failed(_)))) && watch.cause().is_none());
                }
                (true, RewardModelError::Device(failure)) => {
                    assert!(second.is_err(), "nobody works any more");
                    assert!(failure.to_string().starts_with("cpu failed while conversations were scored"), "{failure}");
                    assert_eq!(watch.cause().unwrap().to_string(), failure.to_string());
                }
                (_, error) => panic!("{error}"),
            }
        }
    }
}

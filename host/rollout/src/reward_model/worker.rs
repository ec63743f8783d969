//! The thread that owns a reward model.

use super::config::Output;
use super::error::RewardModelError;
use super::usage::Counters;
use super::waiting::{Asked, Key, Request, Values, Waiting};
use crate::device_turns::DeviceTurns;
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
}

impl Worker {
    /// Works until the last handle is gone.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        let mut waiting = Waiting::default();
        loop {
            if waiting.is_empty() {
                match requests.recv() {
                    Ok(request) => self.add(request, &mut waiting),
                    Err(_) => return,
                }
            }
            self.gather(requests, &mut waiting);
            if !waiting.is_empty() {
                self.take_turn(requests, &mut waiting);
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
    fn take_turn(&mut self, requests: &Receiver<Request>, waiting: &mut Waiting) {
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
                Ok(()) => self.score(batch),
                Err(error) => fail(batch.into_iter().flat_map(|asked| asked.replies), error),
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
                // Whoever asked may have stopped waiting.
                let _ = request.reply.send(Ok(values.clone()));
            }
            None => waiting.push(request),
        }
    }

    fn score(&mut self, batch: Vec<Asked>) {
        let (mut rows, mut places, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for Asked { key, tokens, places: of_row, replies } in batch {
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
            Err(error) => return fail(asked.into_iter().flat_map(|(_, replies)| replies), &Arc::new(error)),
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

fn fail(replies: impl Iterator<Item = super::waiting::Reply>, error: &Arc<PolicyError>) {
    for reply in replies {
        let _ = reply.send(Err(RewardModelError::Failed(error.clone())));
    }
}

//! The thread that owns a reward model.

use super::config::Output;
use super::error::RewardModelError;
use super::usage::Counters;
use super::waiting::{Asked, Key, Request, Waiting};
use gavel_policy::{Kind, Model, Packed, PackedRow, PolicyError, Tensor};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What the thread owns.
pub(super) struct Worker {
    pub(super) model: Model,
    pub(super) output: Output,
    pub(super) max_tokens_per_batch: usize,
    pub(super) max_wait: Duration,
    /// The scores so far: no conversation is computed twice.
    pub(super) known: HashMap<Key, f64>,
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
            let batch = waiting.take(self.max_tokens_per_batch);
            if !batch.is_empty() {
                self.score(batch);
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

    /// Answers what is known, and lets the rest wait.
    fn add(&self, request: Request, waiting: &mut Waiting) {
        match self.known.get(&request.key) {
            Some(score) => {
                self.counters.reuse(1);
                // Whoever asked may have stopped waiting.
                let _ = request.reply.send(Ok(*score));
            }
            None => waiting.push(request),
        }
    }

    fn score(&mut self, batch: Vec<Asked>) {
        let (mut rows, mut asked) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for Asked { key, tokens, replies } in batch {
            rows.push(PackedRow { after: None, tokens });
            asked.push((key, replies));
        }
        self.counters.compute(&rows);
        let scores = match self.compute(&rows) {
            Ok(scores) => scores,
            Err(error) => {
                let error = Arc::new(error);
                for reply in asked.into_iter().flat_map(|(_, replies)| replies) {
                    let _ = reply.send(Err(RewardModelError::Failed(error.clone())));
                }
                return;
            }
        };
        for ((key, replies), score) in asked.into_iter().zip(scores) {
            self.counters.reuse(replies.len() as u64 - 1);
            if score.is_finite() {
                self.known.insert(key, score);
            }
            for reply in replies {
                let found = if score.is_finite() { Ok(score) } else { Err(RewardModelError::NotFinite(score)) };
                let _ = reply.send(found);
            }
        }
    }

    /// The scores of these rows.
    fn compute(&self, rows: &[PackedRow]) -> Result<Vec<f64>, PolicyError> {
        let _guard = tch::no_grad_guard();
        let lengths: Vec<usize> = rows.iter().map(|row| row.tokens.len()).collect();
        let packed = Packed::new(rows, self.model.device())?;
        let scores = match self.output {
            Output::Score => self.model.scores_packed(&packed, &lengths)?.f_squeeze_dim(1)?,
            Output::YesNo(tokens) => {
                let tokens = Tensor::f_from_slice(&tokens.map(i64::from))?.f_to_device(self.model.device())?;
                let logits = self.model.next_logits_packed(&packed, &lengths)?.f_index_select(1, &tokens)?;
                logits.f_softmax(1, Kind::Float)?.f_select(1, 0)?
            }
        };
        Ok(Vec::<f64>::try_from(&scores.f_to_kind(Kind::Double)?)?)
    }
}

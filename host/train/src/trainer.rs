//! One optimiser step over a mini-batch of experiences.

use crate::batch::{Chunk, Columns, MicroBatch, micro_batches};
use crate::config::check;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::logit_changes::logit_changes;
use crate::logprobs::{gradient_norms, log_probs, token_values};
use crate::loss::{LossConfig, OldLogProbs, Targets, objective};
use crate::off_policy::{Correction, Ratios};
use crate::optimizer::{Optimizer, OptimizerConfig, Parameters};
use crate::ranks::gather_results;
use crate::statistics::{ChunkSums, Statistics, Sums};
use crate::taught::Taught;
use crate::teacher::{Asked, distance, taught};
use gavel_policy::{Model, Phase, TrainingPass};
use gavel_torch::context::Deterministic;
use gavel_torch::head::{Beside, LogitChanges};
use gavel_torch::peers::Peers;
use std::path::Path;
use tch::Tensor;

mod context;
mod ranks;

/// The result of an update.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStats {
    /// How many tokens were learned from.
    pub tokens: usize,
    /// The numbers of the update by name, such as `loss`, `entropy`, and `grad_norm`, the 2-norm of the gradient before
    /// clipping.
    pub statistics: Statistics,
}

/// What an optimiser step learns from, and how.
#[derive(Clone, Copy)]
pub struct PolicyUpdate<'a> {
    /// The policy, whose parameters change.
    pub model: &'a Model,
    /// Needed, and used, only with a KL penalty.
    pub reference: Option<&'a Model>,
    /// The rows.
    pub mini_batch: &'a [Experience],
    /// The loss to minimise.
    pub loss: &'a LossConfig,
    /// The temperature of the rollout, or 1 if the rollout was greedy.
    pub temperature: f64,
    /// The learning rate of this step.
    pub learning_rate: f64,
}

/// Changes a model's parameters, one optimiser step a call.
///
/// With several ranks ([`with_peers`](Self::with_peers)), each calls the same steps with its share of the rows, which
/// may be empty. A step has the gradient and the statistics of one process with all rows, to rounding. If a rank fails,
/// all do.
pub struct Trainer {
    pub(crate) optimizer: Optimizer,
    pub(crate) max_tokens: usize,
    checkpointing: bool,
    is_deterministic: bool,
    pub(crate) peers: Peers,
}

impl Trainer {
    /// A trainer of `model`, whose parameters it shares. A mini-batch is computed in micro-batches of at most
    /// `max_tokens_per_micro_batch` tokens; a longer row gets one by itself. A prompt that several rows of a
    /// micro-batch share is computed once. The split changes memory and speed, not the result.
    pub fn new(model: &Model, config: OptimizerConfig, max_tokens_per_micro_batch: usize) -> Result<Self> {
        Self::with_peers(model, config, max_tokens_per_micro_batch, Peers::alone(), Parameters::Whole)
    }

    /// A trainer that takes every step together with the other ranks, which all call this. The parameters become the
    /// parameters of rank 0, and each rank keeps a share of the optimiser's state. `held` sets which weights a rank has
    /// during an update. By layer, the backward pass computes each layer again, as with
    /// [`gradient_checkpointing`](Self::gradient_checkpointing): inner values would keep the weights.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a rank is gone.
    pub fn with_peers(
        model: &Model,
        config: OptimizerConfig,
        max_tokens_per_micro_batch: usize,
        peers: Peers,
        held: Parameters,
    ) -> Result<Self> {
        config.validate()?;
        let rows = |name: &str, parameter: &Tensor| {
            let parts = model.parts(name, &parameter.f_detach()?)?;
            Ok(parts.iter().map(|(_, part)| part.size()[0]).collect())
        };
        let optimizer = Optimizer::of_ranks(model.parameters(), rows, config, peers.clone(), held)
            .map_err(|error| error.during(Phase::Optimizer))?;
        let max_tokens = max_tokens_per_micro_batch;
        Ok(Self { optimizer, max_tokens, checkpointing: false, is_deterministic: false, peers })
    }

    /// Whether the backward pass computes each layer again instead of keeping
    /// its inner values. This takes less memory for about a third more work.
    /// Off by default.
    pub fn gradient_checkpointing(mut self, on: bool) -> Self {
        self.checkpointing = on;
        self
    }

    /// Whether updates give the same bits each time on a GPU too, or fail where libtorch has no such operation. Off by
    /// default.
    pub fn deterministic(mut self, on: bool) -> Self {
        self.is_deterministic = on;
        self
    }

    /// How many optimiser steps were taken.
    pub fn steps(&self) -> u64 {
        self.optimizer.steps()
    }

    /// Writes the optimiser's state to the safetensors file `path`, atomically. All ranks have to call it; rank 0 writes.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.optimizer.save(path)
    }

    /// Restores the state that [`save`](Self::save) wrote, with any number of ranks. The following steps are the same as
    /// without a stop, bit for bit if the ranks are as many.
    pub fn load(&mut self, path: &Path) -> Result<()> {
        Ok(self.optimizer.load(path)?)
    }

    /// Sets the proximal log-probabilities of a mini-batch's rows: those under
    /// `model` as it is now. Call it for each mini-batch of a step before the
    /// first update. The rows are batched as in the update.
    ///
    /// # Errors
    /// The temperature is not positive, a row is malformed, or the model fails.
    pub fn set_proximal(&self, model: &Model, mini_batch: &mut [Experience], temperature: f64) -> Result<()> {
        let tokens = self.max_tokens;
        let found = log_probs(model, mini_batch, temperature, tokens)
            .map_err(|error| error.during(Phase::MicroBatch { tokens }))?;
        mini_batch.iter_mut().zip(found).for_each(|(row, proximal)| row.proximal = proximal);
        Ok(())
    }

    /// For each response token of the rows, the squared norm of the gradient of its log-probability by the logits under
    /// `model` as it is now; 0 for tokens that the loss mask excludes.
    ///
    /// # Errors
    /// The temperature is not positive, a row is malformed, or the model fails.
    pub fn gradient_norms(&self, model: &Model, rows: &[Experience], temperature: f64) -> Result<Vec<Vec<f64>>> {
        token_values(model, rows, temperature, self.max_tokens, Beside::SquaredProbabilities, gradient_norms)
    }

    /// For each response token of the rows, its log-probability under `model`; 0 for tokens that the loss mask excludes.
    ///
    /// # Errors
    /// As [`gradient_norms`](Self::gradient_norms).
    pub fn log_probs(&self, model: &Model, rows: &[Experience], temperature: f64) -> Result<Vec<Vec<f32>>> {
        log_probs(model, rows, temperature, self.max_tokens)
    }

    /// What `teacher` says of the tokens of the rows, which are batched as in the update.
    ///
    /// # Errors
    /// The temperature is not positive, a row is malformed, or the model fails.
    pub fn taught(&self, teacher: &Model, rows: &[Experience], asked: Asked) -> Result<Vec<Taught>> {
        check("temperature", asked.temperature, "a number above 0", |value| value > 0.0)?;
        let tokens = self.max_tokens;
        taught(teacher, rows, asked, tokens).map_err(|error| error.during(Phase::MicroBatch { tokens }))
    }

    /// One optimiser step.
    ///
    /// # Errors
    /// A row is malformed, there is nothing to learn from, or the loss or its
    /// gradient is not finite. The parameters are then unchanged.
    pub fn update(
        &mut self,
        PolicyUpdate { model, reference, mini_batch, loss: config, temperature, learning_rate }: PolicyUpdate<'_>,
    ) -> Result<UpdateStats> {
        let sequences: Vec<_> = mini_batch.iter().map(Experience::sequence).collect();
        let checked = || -> Result<_> {
            config.validate()?;
            check("temperature", temperature, "a number above 0", |value| value > 0.0)?;
            let reference = match config.kl {
                Some(_) => Some(reference.ok_or(TrainError::NoReference)?),
                None => None,
            };
            for (index, experience) in mini_batch.iter().enumerate() {
                experience.check(index, config.needs_proximal())?;
            }
            Ok((reference, micro_batches(&sequences, self.max_tokens, model)?))
        };
        let rows = mini_batch.iter().zip(&sequences).map(|(row, sequence)| (row.sample, sequence.trained()));
        let ((reference, batches), weights) =
            self.weighted(checked(), rows, config.aggregation, config.norm_tokens.unwrap_or(1))?;
        let (corrections, correction_statistics) = match &config.off_policy {
            Some(off_policy) if config.needs_proximal() => {
                let ratios = |_: &()| mini_batch.iter().map(Ratios::of).collect();
                let correction = |rows: &[Ratios]| {
                    let Correction { weights, statistics } = Correction::new(off_policy, rows);
                    (weights, statistics)
                };
                let ((), weights, statistics) = self.over_all(Ok(()), ratios, correction)?;
                (Some(weights), statistics)
            }
            _ => (None, Vec::new()),
        };

        let context = self.context(model, mini_batch, config, temperature)?;
        let mut columns = Columns::default();
        let rollout = columns.add(|row, at| f64::from(mini_batch[row].logprobs[at]));
        let old = match config.old_logprobs() {
            OldLogProbs::Rollout => Some(rollout),
            OldLogProbs::Proximal => Some(columns.add(|row, at| f64::from(mini_batch[row].proximal[at]))),
            OldLogProbs::Current => None,
        };
        let advantages = columns.add(|row, at| f64::from(mini_batch[row].advantages[at]));
        let token_weights = columns.add(|row, _| weights[row]);
        let corrections = corrections.as_ref().map(|corrections| columns.add(|row, at| corrections[row][at]));
        let context =
            context.as_ref().map(|context| [0, 1].map(|which| columns.add(move |row, at| context[row][at][which])));
        let (mut statistics, tokens) =
            self.accumulate(model, reference, &batches, mini_batch.len(), |batch, states| {
                let values = batch.values(&columns, states.policy)?;
                batch.backward(model, |chunk| {
                    let of = |column| values.of(column, chunk);
                    let changes = |model: &Model| logit_changes(mini_batch, chunk.tokens, model.config().vocab_size);
                    let targets = Targets {
                        rollout: of(rollout)?,
                        old: old.map(of).transpose()?,
                        // Before the policy's, so that the logits of both do not exist together.
                        reference: match (reference, &states.reference) {
                            (Some(reference), Some(hidden)) => {
                                Some(frozen_logprobs(reference, hidden, chunk, temperature, &changes(reference)?)?)
                            }
                            _ => None,
                        },
                        advantages: of(advantages)?,
                        weights: of(token_weights)?,
                        correction: corrections.map(of).transpose()?,
                        context: match context {
                            Some([first, second]) => Some([of(first)?, of(second)?]),
                            None => None,
                        },
                    };
                    let changes = changes(model)?;
                    let policy =
                        chunk.changed_logprobs(model, states.policy, temperature, Beside::Entropies, &changes)?;
                    let distance = config.distillation.map(|distillation| {
                        distance(&distillation, mini_batch, chunk, (model, states.policy), temperature)
                    });
                    objective(&policy, distance.transpose()?.as_ref(), &targets, config)
                })
            })?;
        let grad_norm = self.finish(statistics.loss(), learning_rate)?;
        // The place that it has in a run's metrics.
        statistics.insert_before("logprob_mismatch", "grad_norm", grad_norm);
        statistics.extend(correction_statistics);
        Ok(UpdateStats { tokens, statistics })
    }

    /// Clears the gradients, then runs the backward pass of each micro-batch. `backward` runs the one from the losses to
    /// the hidden states, and returns the sums of its parts. Returns the statistics from these sums, and how many tokens
    /// were learned from, of all ranks.
    pub(crate) fn accumulate(
        &mut self,
        model: &Model,
        reference: Option<&Model>,
        batches: &[MicroBatch],
        rows: usize,
        backward: impl FnMut(&MicroBatch, &States) -> Result<Vec<ChunkSums>>,
    ) -> Result<(Statistics, usize)> {
        let deterministic = self.is_deterministic.then(Deterministic::begin);
        let begun = self.optimizer.begin_update(batches.len());
        let learned = begun.and_then(|()| self.learn(model, reference, batches, backward));
        drop(deterministic);
        // The others wait for the sums of a rank without rows too, and of one that failed.
        if let Err(error) = self.optimizer.finish_update() {
            return Err(learned.err().unwrap_or(error));
        }
        let learned = gather_results(&self.peers, learned, |sums| (rows, sums.clone())).and_then(|(_, parts)| {
            let rows = parts.iter().map(|(rows, _)| rows).sum();
            let sums: Vec<Sums> = parts.into_iter().map(|(_, sums)| sums).collect();
            let tokens: usize = sums.iter().map(|sums| sums.tokens).sum();
            if tokens == 0 { Err(TrainError::NoTokens { rows }) } else { Ok((Statistics::of_sums(&sums), tokens)) }
        });
        self.restored_unless(learned)
    }

    /// The result of a part of an update, which is the same kind on all ranks. If it failed, the model has all weights
    /// again.
    fn restored_unless<T>(&mut self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            // Where this fails too, a rank is gone, and the first error is the one to report.
            let _ = self.optimizer.restore();
        }
        done
    }

    /// The part of this rank: every parameter gets its gradient, unless there is nothing to learn from. Gradients are
    /// summed over the ranks as soon as they are complete: gradients of whole parameters in the last backward pass,
    /// gradients of layers in each backward pass.
    fn learn(
        &mut self,
        model: &Model,
        reference: Option<&Model>,
        batches: &[MicroBatch],
        mut backward: impl FnMut(&MicroBatch, &States) -> Result<Vec<ChunkSums>>,
    ) -> Result<Sums> {
        self.optimizer.zero_grad()?;
        let checkpointing = self.checkpointing || self.optimizer.is_by_layer();
        let mut chunks = Vec::new();
        let mut learn = |batch: &MicroBatch, is_last: bool| {
            let frozen = reference.map(|reference| frozen_hidden(reference, batch)).transpose()?;
            let pass =
                TrainingPass::in_stages(model, &batch.packed, checkpointing, |moment| self.optimizer.forward(moment))?;
            chunks.extend(backward(batch, &States { policy: pass.hidden(), reference: frozen })?);
            pass.backward_in_stages(|moment| self.optimizer.backward(moment, is_last))
        };
        for (index, batch) in batches.iter().enumerate() {
            let (tokens, is_last) = (batch.packed.tokens() as usize, index + 1 == batches.len());
            learn(batch, is_last).map_err(|error: TrainError| error.during(Phase::MicroBatch { tokens }))?;
        }
        Sums::of_chunks(&chunks, batches.iter().map(|batch| batch.tokens.len()).sum())
    }

    /// Takes the step and returns the gradient's norm.
    pub(crate) fn finish(&mut self, loss: f64, lr: f64) -> Result<f64> {
        let stepped = match loss.is_finite() {
            true => self.optimizer.step(lr).map_err(|error| error.during(Phase::Optimizer)),
            false => Err(TrainError::NonFinite { step: self.steps(), quantity: "loss", value: loss }),
        };
        let norm = self.restored_unless(stepped)?;
        // Gradients are as large as the model: rollout, which follows, can use the memory.
        self.optimizer.zero_grad()?;
        Ok(norm)
    }
}

impl MicroBatch {
    /// Runs the backward pass from the losses that `objective` gives, chunk by chunk, and returns its sums.
    pub(crate) fn backward(
        &self,
        model: &Model,
        mut objective: impl FnMut(&Chunk) -> Result<(Tensor, ChunkSums)>,
    ) -> Result<Vec<ChunkSums>> {
        let mut sums = Vec::new();
        for chunk in self.chunks(model)? {
            let (loss, chunk_sums) = objective(&chunk)?;
            loss.f_backward()?;
            sums.push(chunk_sums);
        }
        Ok(sums)
    }
}

/// The hidden states of a micro-batch, `[tokens, hidden]`.
pub(crate) struct States<'a> {
    pub policy: &'a Tensor,
    pub reference: Option<Tensor>,
}

/// The hidden states of a model that is not trained.
pub(crate) fn frozen_hidden(reference: &Model, batch: &MicroBatch) -> Result<Tensor> {
    let _guard = tch::no_grad_guard();
    Ok(reference.hidden_packed(&batch.packed)?)
}

/// The log-probabilities of a chunk's tokens of logits after `changes`, without gradients.
pub(crate) fn frozen_logprobs(
    model: &Model,
    hidden: &Tensor,
    chunk: &Chunk,
    temperature: f64,
    changes: &LogitChanges,
) -> Result<Tensor> {
    let _guard = tch::no_grad_guard();
    Ok(chunk.changed_logprobs(model, hidden, temperature, Beside::Nothing, changes)?.logprobs)
}

#[cfg(test)]
mod tests;

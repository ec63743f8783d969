//! Whole distributions: those of a teacher before an update, and the policy's distance from them in it. Of each, the
//! teacher's most probable tokens count by themselves, and all others together as one outcome (TRL's `loss_add_tail`): it
//! is a distribution too, so that the distance is 0 only where both agree.

use crate::batch::{Chunk, micro_batches};
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::loss::DistillationConfig;
use crate::taught::{Taught, TopLogprobs};
use gavel_policy::Model;
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, TchError, Tensor};

/// Which distributions a teacher is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// How many of its most probable tokens are kept at each place.
    pub top_k: usize,
    /// How many tokens of the vocabulary all models have: a model may have logits beyond its tokens.
    pub vocabulary: i64,
    /// The temperature of the rollout, or 1 if the rollout was greedy.
    pub temperature: f64,
}

/// What `teacher` says of the rows, in micro-batches of at most `max_tokens` tokens. No gradient is kept.
pub(crate) fn taught(teacher: &Model, rows: &[Experience], asked: Asked, max_tokens: usize) -> Result<Vec<Taught>> {
    let Asked { top_k, vocabulary, temperature } = asked;
    let _guard = tch::no_grad_guard();
    let sequences: Vec<_> = rows.iter().map(Experience::sequence).collect();
    let nothing = |row: &Experience| Taught { vocabulary, tokens: vec![TopLogprobs::default(); row.response.len()] };
    let mut taught: Vec<Taught> = rows.iter().map(nothing).collect();
    for batch in micro_batches(&sequences, max_tokens, teacher)? {
        let hidden = teacher.hidden_packed(&batch.packed)?;
        for chunk in batch.chunks(teacher)? {
            let all = chunk.all_logprobs(teacher, &hidden, temperature, vocabulary)?;
            let (_, ids) = all.f_topk(vocabulary.min(top_k.max(1) as i64), -1, true, true)?;
            let logprobs = outcomes(&all, &ids)?.f_to_kind(Kind::Float)?;
            let [of_ids, of_logprobs] = [&ids, &logprobs].map(|tensor| tensor.size()[1] as usize);
            let ids = Vec::<i64>::try_from(ids.f_flatten(0, -1)?)?;
            let logprobs = Vec::<f32>::try_from(logprobs.f_flatten(0, -1)?)?;
            let said = ids.chunks(of_ids).zip(logprobs.chunks(of_logprobs));
            for (&(row, at), (ids, logprobs)) in chunk.tokens.iter().zip(said) {
                let ids = ids.iter().map(|id| *id as u32).collect();
                taught[row].tokens[at] = TopLogprobs { ids, logprobs: logprobs.to_vec() };
            }
        }
    }
    Ok(taught)
}

/// How far the policy's distributions at a chunk's tokens are from what a teacher said of the rows, `[tokens]`. Gradients
/// flow through the policy's.
///
/// # Errors
/// A row was not taught, or not as the others.
pub(crate) fn distance(
    config: &DistillationConfig,
    rows: &[Experience],
    chunk: &Chunk,
    (model, hidden): (&Model, &Tensor),
    temperature: f64,
) -> Result<Tensor> {
    let (mut ids, mut logprobs, mut shape) = (Vec::new(), Vec::new(), None);
    for &(row, at) in chunk.tokens {
        let wrong = |what: &str| TrainError::Row { index: row, what: what.into() };
        let taught = rows[row].taught.as_ref().ok_or_else(|| wrong("has no log-probabilities of a teacher"))?;
        let said = taught.tokens.get(at).filter(|said| !said.ids.is_empty());
        let said = said.ok_or_else(|| wrong("has fewer log-probabilities of a teacher than tokens"))?;
        let own = (taught.vocabulary, said.ids.len(), said.logprobs.len());
        if *shape.get_or_insert(own) != own {
            return Err(wrong("has log-probabilities of a teacher over other tokens than the rows before"));
        }
        ids.extend(said.ids.iter().map(|id| i64::from(*id)));
        logprobs.extend_from_slice(&said.logprobs);
    }
    let (vocabulary, of_ids, of_logprobs) = shape.unwrap_or_default();
    let all = chunk.all_logprobs(model, hidden, temperature, vocabulary)?;
    let table = |tensor: Tensor, width: usize| {
        tensor.f_view([chunk.tokens.len() as i64, width as i64])?.f_to_device(all.device())
    };
    let ids = table(Tensor::f_from_slice(&ids)?, of_ids)?;
    let teacher = table(Tensor::f_from_slice(&logprobs)?, of_logprobs)?.f_to_kind(all.f_kind()?)?;
    Ok(config.divergence(&outcomes(&all, &ids)?, &teacher)?)
}

/// Of the log-probabilities `all`, `[tokens, vocabulary]`, those of the tokens `ids`, `[tokens, k]`, and of all others
/// together, `[tokens, k + 1]`; `[tokens, k]` where there are no others.
fn outcomes(all: &Tensor, ids: &Tensor) -> std::result::Result<Tensor, TchError> {
    let own = all.f_gather(-1, ids, false)?;
    if ids.size() == all.size() {
        return Ok(own);
    }
    let mut none = own.f_detach()?.f_empty_like()?;
    none.try_fill_(f64::NEG_INFINITY)?;
    let others = all.f_scatter(-1, ids, &none)?.f_logsumexp([-1i64].as_slice(), true)?;
    Tensor::f_cat(&[own, others], -1)
}

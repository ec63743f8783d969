//! Draws one token a row from logits, on the device: the inverse of the
//! cumulative distribution at a given uniform number.

use super::could_draw::CouldDraw;
use super::draw_kernels::draw_by_kernels;
use super::drawn::{Draw, Drawn, Pick, numbers, pairs, side_by_side};
use super::inputs::StepInputs;
use super::row::Row;
use super::search::invert;
use super::seen::Seen;
use super::truncation::{Depth, truncate};
use crate::error::Result;
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// Draws for the rows of an engine.
pub(super) struct Sampler {
    vocab: i64,
    seen: Seen,
}

/// What a batch of rows asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Form {
    greedy: Greedy,
    is_tempered: bool,
    is_penalised: bool,
    /// Tokens are cut off before the draw; at least this many are sorted.
    truncated: Option<i64>,
    /// Whether something is added to single logits, tokens are excluded, or the most probable tokens are wanted.
    has_extras: bool,
}

/// Which rows are greedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Greedy {
    None,
    Some,
    All,
}

impl Form {
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a Row> + Clone, vocab: i64) -> Self {
        let settings = || rows.clone().map(|row| &row.request.sampling);
        let drawn = || settings().filter(|of| !of.is_greedy());
        let top_k = drawn().filter_map(|of| of.top_k).map(|k| (k as i64).min(vocab));
        Self {
            greedy: match (settings().any(|of| of.is_greedy()), drawn().next().is_some()) {
                (false, _) => Greedy::None,
                (true, true) => Greedy::Some,
                (true, false) => Greedy::All,
            },
            is_tempered: drawn().any(|of| of.temperature != 1.0),
            is_penalised: settings().any(|of| of.repetition_penalty != 1.0),
            truncated: drawn().any(|of| of.is_truncated()).then(|| top_k.max().unwrap_or(0)),
            has_extras: rows.clone().any(|row| row.request.top_logprobs > 0)
                || settings()
                    .any(|of| !of.logit_bias.is_empty() || of.constraint.is_some() || of.has_added_penalties()),
        }
    }

    /// Whether tokens are drawn from logits and the temperature alone.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_penalised && self.truncated.is_none() && !self.has_extras
    }
}

impl Sampler {
    pub(super) fn new(vocab: i64) -> Self {
        Self { vocab, seen: Seen::default() }
    }

    /// Forgets what rows have drawn in the last step, as they will draw it again.
    pub(super) fn forget_draws(&mut self) {
        self.seen = Seen::default();
    }

    /// Draws for `rows`, of which some may be one row after several tokens, from `logits`, `[rows, vocab]`, of which the
    /// last may be padding, with one transfer to the host. Where a row asks for them, there is one more for the most
    /// probable tokens, and one for the tokens that could be drawn.
    pub(super) fn sample(
        &mut self,
        rows: &[&Row],
        logits: &Tensor,
        inputs: &StepInputs,
        form: Form,
    ) -> Result<Vec<Pick>> {
        // In vLLM's order, as the names of the settings are vLLM's.
        let mut logits = logits.f_to_kind(Kind::Float)?;
        logits = with(logits, inputs.biases()?)?;
        if form.is_penalised {
            let seen = self.seen.of(rows, &inputs.slots()?, self.vocab)?;
            let factor = inputs.penalties()?.f_to_kind(Kind::Float)?;
            let less = logits.f_div(&factor)?.f_where_self(&logits.try_gt(0)?, &logits.f_mul(&factor)?)?;
            logits = less.f_where_self(&seen, &logits)?;
        }
        logits = with(logits, inputs.repeated()?)?;
        let logits = tempered(&logits, inputs, form)?;
        let probs = logits.f_softmax(-1, None)?;
        let (draw, picks) = match form.truncated.filter(|_| form.greedy != Greedy::All) {
            None => whole(rows, &probs, inputs, form)?,
            Some(least) => self.truncated(rows, &probs, inputs, form, Depth::at_least(least, self.vocab))?,
        };
        if form.is_penalised {
            // Without padding, which has the slot of a row.
            let own = |x: Tensor| x.f_narrow(0, 0, rows.len() as i64);
            self.seen.add(&own(inputs.slots()?)?, &own(draw.tokens.f_squeeze_dim(1)?)?)?;
        }
        let mut top = most_probable(rows, &logits)?.into_iter();
        let all = picks.into_iter().take(rows.len());
        Ok(all.map(|pick| Pick { top: top.next().unwrap_or_default(), ..pick }).collect())
    }

    /// Draws from `probs` without the tokens that are cut off. Most often it is enough to sort the most probable tokens;
    /// if not, it sorts all.
    fn truncated(
        &self,
        rows: &[&Row],
        probs: &Tensor,
        inputs: &StepInputs,
        form: Form,
        depth: Depth,
    ) -> Result<(Draw, Vec<Pick>)> {
        let (kept, is_enough) = truncate(probs, inputs, depth)?;
        let draw = draw_from(probs, &kept, inputs, form)?;
        let could_draw = CouldDraw::of(rows, &kept, &draw.tokens)?;
        match picks(&draw, is_enough.as_ref(), could_draw.as_ref())? {
            Some(picks) => Ok((draw, picks)),
            None => self.truncated(rows, probs, inputs, form, Depth::All),
        }
    }
}

/// The logits with what is added to single ones: row, token and value of each.
fn with(logits: Tensor, added: Option<[Tensor; 3]>) -> Result<Tensor> {
    let Some([rows, tokens, values]) = added else { return Ok(logits) };
    Ok(logits.f_index_put(&[Some(rows), Some(tokens)], &values.f_to_kind(Kind::Float)?, true)?)
}

/// Draws from `probs`, where constraints alone exclude tokens.
fn whole(rows: &[&Row], probs: &Tensor, inputs: &StepInputs, form: Form) -> Result<(Draw, Vec<Pick>)> {
    let draw = draw_from(probs, probs, inputs, form)?;
    let could_draw = CouldDraw::of(rows, probs, &draw.tokens)?;
    let picks = picks(&draw, None, could_draw.as_ref())?.unwrap_or_default();
    Ok((draw, picks))
}

/// What was drawn, as the host reads it; `None` if not `is_enough` for all rows, `[rows, 1]`, where it is given.
fn picks(draw: &Draw, is_enough: Option<&Tensor>, could_draw: Option<&CouldDraw>) -> Result<Option<Vec<Pick>>> {
    let mut columns = vec![&draw.tokens, &draw.logprobs];
    columns.extend(is_enough);
    columns.extend(could_draw.into_iter().flat_map(CouldDraw::columns));
    let found = numbers(&side_by_side(&columns)?)?;
    let found: Vec<&[f64]> = found.chunks(columns.len()).collect();
    if is_enough.is_some() && found.iter().any(|row| row[2] == 0.0) {
        return Ok(None);
    }
    let mut picks: Vec<Pick> = found.iter().map(|row| Pick::new((row[0] as u32, row[1] as f32))).collect();
    if let Some(could_draw) = could_draw {
        could_draw.add_to(&mut picks, &found)?;
    }
    Ok(Some(picks))
}

/// Draws for rows of a [plain](Form::is_plain) form. Nothing of it comes from the host, so that its operations can be
/// recorded.
pub(super) fn draw_plain(logits: &Tensor, inputs: &StepInputs, form: Form, by_kernels: bool) -> Result<Drawn> {
    let logits = logits.f_to_kind(Kind::Float)?;
    if by_kernels {
        return draw_by_kernels(&logits, inputs);
    }
    let probs = tempered(&logits, inputs, form)?.f_softmax(-1, None)?;
    let draw = draw_from(&probs, &probs, inputs, form)?;
    let pairs = draw.side_by_side()?;
    Ok(Drawn { tokens: draw.tokens, pairs })
}

/// The logits, in 32 bits, over the temperature.
fn tempered(logits: &Tensor, inputs: &StepInputs, form: Form) -> Result<Tensor> {
    Ok(match form.is_tempered {
        true => logits.f_div(&inputs.temperatures()?.f_to_kind(Kind::Float)?)?,
        false => logits.shallow_clone(),
    })
}

/// Draws from `kept`, a part of the probabilities `probs`, both `[rows, vocab]`.
fn draw_from(probs: &Tensor, kept: &Tensor, inputs: &StepInputs, form: Form) -> Result<Draw> {
    let tokens = match form.greedy {
        Greedy::None => invert(kept, &inputs.uniforms()?)?,
        Greedy::All => probs.f_argmax(-1, true)?,
        Greedy::Some => {
            let drawn = invert(kept, &inputs.uniforms()?)?;
            probs.f_argmax(-1, true)?.f_where_self(&inputs.greedy()?.f_to_kind(Kind::Bool)?.f_unsqueeze(1)?, &drawn)?
        }
    };
    Draw::of(probs, tokens)
}

/// For each row, the most probable tokens that it asks for, as far as they are possible; empty if no row asks. They are
/// computed from logits, as a probability that is 0 in 32 bits still has a log-probability.
fn most_probable(rows: &[&Row], logits: &Tensor) -> Result<Vec<Vec<(u32, f32)>>> {
    let wanted = || rows.iter().map(|row| row.request.top_logprobs);
    let Some(most) = wanted().max().filter(|most| *most > 0) else { return Ok(Vec::new()) };
    let (values, tokens) = logits.f_log_softmax(-1, None)?.f_topk(most as i64, -1, true, true)?;
    let all = pairs(&side_by_side(&[&tokens, &values])?)?;
    Ok(all.chunks(most).zip(wanted()).map(|(row, wanted)| possible(&row[..wanted])).collect())
}

/// Without the tokens that a constraint excludes.
fn possible(tokens: &[(u32, f32)]) -> Vec<(u32, f32)> {
    tokens.iter().copied().filter(|(_, logprob)| *logprob != f32::NEG_INFINITY).collect()
}

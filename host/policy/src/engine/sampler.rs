//! Draws one token a row from logits, on the device: the inverse of the
//! cumulative distribution at a given uniform number.

use super::inputs::{BELOW_ONE, StepInputs};
use super::row::Row;
use super::truncation::{Depth, truncate};
use crate::error::Result;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// Tokens whose probabilities are summed up together, so that a search adds up such sums and then the probabilities of
/// one of them, instead of those of the whole vocabulary.
const BLOCK: i64 = 512;

/// Draws for the rows of an engine.
pub(super) struct Sampler {
    vocab: i64,
    device: Device,
    seen: Option<Seen>,
}

/// What a batch of rows asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Form {
    greedy: Greedy,
    is_tempered: bool,
    is_penalised: bool,
    /// Tokens are cut off before the draw; at least so many must be sorted.
    truncated: Option<i64>,
    /// Whether something is added to single logits, or the most probable tokens are wanted.
    has_extras: bool,
}

/// Which rows are greedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Greedy {
    None,
    Some,
    All,
}

/// The tokens that each row with a repetition penalty has in its prompt and response.
struct Seen {
    /// `[slots, vocab]`, true for tokens that are there.
    tokens: Tensor,
    /// The row that each slot was filled for, by its arrival.
    rows: Vec<Option<u64>>,
}

/// A token for each row, on the device.
pub(super) struct Draw {
    /// `[rows, 1]`
    pub(super) tokens: Tensor,
    /// `[rows, 1]`: the log-probability under the tempered distribution, before truncation; not finite where the logits
    /// were not.
    pub(super) logprobs: Tensor,
}

/// The token that was drawn for a row.
pub(super) struct Pick {
    pub(super) token: u32,
    /// As in [`Draw`].
    pub(super) logprob: f32,
    /// The most probable tokens, as many as the row asks for.
    pub(super) top: Vec<(u32, f32)>,
}

impl Form {
    pub(super) fn of(rows: &[Row], vocab: i64) -> Self {
        let settings = || rows.iter().map(|row| &row.request.sampling);
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
            has_extras: rows.iter().any(|row| row.request.top_logprobs > 0)
                || settings().any(|of| !of.logit_bias.is_empty()),
        }
    }

    /// Whether tokens are drawn from logits and the temperature alone.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_penalised && self.truncated.is_none() && !self.has_extras
    }
}

impl Sampler {
    pub(super) fn new(vocab: i64, device: Device) -> Self {
        Self { vocab, device, seen: None }
    }

    /// Draws from `logits`, `[rows, vocab]`, of which the last may be padding, with one transfer to the host, and one for
    /// the most probable tokens.
    pub(super) fn sample(
        &mut self,
        rows: &[Row],
        logits: &Tensor,
        inputs: &StepInputs,
        form: Form,
    ) -> Result<Vec<Pick>> {
        let mut logits = logits.f_to_kind(Kind::Float)?;
        if form.is_penalised {
            let seen = self.seen(rows)?.tokens.f_index_select(0, &inputs.slots()?)?;
            let factor = inputs.penalties()?.f_to_kind(Kind::Float)?;
            let less = logits.f_div(&factor)?.f_where_self(&logits.try_gt(0)?, &logits.f_mul(&factor)?)?;
            logits = less.f_where_self(&seen, &logits)?;
        }
        if let Some([rows, tokens, values]) = inputs.biases()? {
            let places = [Some(rows), Some(tokens)];
            logits = logits.f_index_put(&places, &values.f_to_kind(Kind::Float)?, true)?;
        }
        let logits = tempered(&logits, inputs, form)?;
        let probs = logits.f_softmax(-1, None)?;
        let (draw, picks) = match form.truncated.filter(|_| form.greedy != Greedy::All) {
            None => {
                let draw = draw_from(&probs, &probs, inputs, form)?;
                let picks = picks(&draw)?;
                (draw, picks)
            }
            Some(least) => self.truncated(&probs, inputs, form, Depth::at_least(least, self.vocab))?,
        };
        if let Some(seen) = self.seen.as_mut().filter(|_| form.is_penalised) {
            // Without padding, which has the slot of a row.
            let own = |x: Tensor| x.f_narrow(0, 0, rows.len() as i64);
            let places = [Some(own(inputs.slots()?)?), Some(own(draw.tokens.f_squeeze_dim(1)?)?)];
            let is_there = Tensor::f_ones([], (Kind::Bool, self.device))?;
            let _ = seen.tokens.f_index_put_(&places, &is_there, false)?;
        }
        let mut top = most_probable(rows, &logits)?.into_iter();
        let all = picks.into_iter().take(rows.len());
        Ok(all.map(|(token, logprob)| Pick { token, logprob, top: top.next().unwrap_or_default() }).collect())
    }

    /// Draws from `probs` without the tokens that are cut off. Most often it is enough to sort the most probable tokens;
    /// if not, it sorts all.
    fn truncated(
        &self,
        probs: &Tensor,
        inputs: &StepInputs,
        form: Form,
        depth: Depth,
    ) -> Result<(Draw, Vec<(u32, f32)>)> {
        let (kept, is_enough) = truncate(probs, inputs, depth)?;
        let draw = draw_from(probs, &kept, inputs, form)?;
        let Some(is_enough) = is_enough else {
            let picks = picks(&draw)?;
            return Ok((draw, picks));
        };
        let found = columns(&[&draw.tokens, &draw.logprobs, &is_enough])?;
        if found.iter().any(|row| row[2] == 0.0) {
            return self.truncated(probs, inputs, form, Depth::All);
        }
        Ok((draw, found.into_iter().map(|row| (row[0] as u32, row[1] as f32)).collect()))
    }

    /// The tokens that rows have seen, with those of all `rows` that have a penalty.
    fn seen(&mut self, rows: &[Row]) -> Result<&mut Seen> {
        let slots = rows.iter().filter_map(|row| row.slot).max().map_or(0, |last| last + 1);
        let seen = match self.seen.take().filter(|seen| seen.rows.len() >= slots) {
            Some(seen) => seen,
            None => Seen::new(slots.next_power_of_two(), self.vocab, self.device)?,
        };
        let seen = self.seen.insert(seen);
        let penalised = rows.iter().filter(|row| row.request.sampling.repetition_penalty != 1.0);
        let placed = penalised.filter_map(|row| Some((row, row.slot?)));
        seen.fill(&placed.filter(|(row, slot)| seen.rows[*slot] != Some(row.arrival)).collect::<Vec<_>>())?;
        Ok(seen)
    }
}

impl Seen {
    fn new(slots: usize, vocab: i64, device: Device) -> Result<Self> {
        let tokens = Tensor::f_zeros([slots as i64, vocab], (Kind::Bool, device))?;
        Ok(Self { tokens, rows: vec![None; slots] })
    }

    /// Writes down what these rows, with their slots, have seen.
    fn fill(&mut self, rows: &[(&Row, usize)]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let vocab = self.tokens.size()[1];
        let device = self.tokens.device();
        let longs = |numbers: Vec<i64>| Tensor::f_from_slice(&numbers)?.f_to_device(device);
        let slots = longs(rows.iter().map(|(_, slot)| *slot as i64).collect())?;
        let places = rows.iter().flat_map(|(row, slot)| {
            let tokens = row.request.prompt.iter().chain(&row.response);
            tokens.map(|token| *slot as i64 * vocab + i64::from(*token))
        });
        let places = longs(places.collect())?;
        let _ = self.tokens.f_index_fill_(0, &slots, 0)?;
        let _ = self.tokens.f_view(-1)?.f_index_fill_(0, &places, 1)?;
        rows.iter().for_each(|(row, slot)| self.rows[*slot] = Some(row.arrival));
        Ok(())
    }
}

/// Draws for rows of a [plain](Form::is_plain) form. Nothing of it comes from the host, so that its operations can be
/// recorded.
pub(super) fn draw_plain(logits: &Tensor, inputs: &StepInputs, form: Form) -> Result<Draw> {
    let probs = tempered(&logits.f_to_kind(Kind::Float)?, inputs, form)?.f_softmax(-1, None)?;
    draw_from(&probs, &probs, inputs, form)
}

/// Tokens and their log-probabilities, row by row, in one transfer to the host.
pub(super) fn picks(draw: &Draw) -> Result<Vec<(u32, f32)>> {
    pairs(&draw.tokens, &draw.logprobs)
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
            probs.f_argmax(-1, true)?.f_where_self(&inputs.greedy()?.f_unsqueeze(1)?, &drawn)?
        }
    };
    // Only the drawn token's logarithm is needed; a probability that was drawn is never 0.
    let logprobs = probs.f_gather(1, &tokens, false)?.f_log()?;
    Ok(Draw { tokens, logprobs })
}

/// The first index, `[rows, 1]`, at which the cumulative sum of `weights`, `[rows, vocab]`, exceeds the share
/// `uniforms`, `[rows, 1]`, of their total. Where a row is NaN it is some index in range.
fn invert(weights: &Tensor, uniforms: &Tensor) -> Result<Tensor> {
    let vocab = weights.size()[1];
    if vocab <= 2 * BLOCK {
        return Search::new(weights, uniforms)?.found();
    }
    let whole = vocab / BLOCK * BLOCK;
    let sum = |x: &Tensor| x.f_sum_dim_intlist([-1i64].as_slice(), false, None);
    let mut sums = vec![sum(&weights.f_narrow(1, 0, whole)?.f_unflatten(1, [-1, BLOCK])?)?];
    if whole < vocab {
        sums.push(sum(&weights.f_narrow(1, whole, vocab - whole)?)?.f_unsqueeze(1)?);
    }
    let blocks = Search::new(&Tensor::f_cat(&sums, 1)?, uniforms)?;
    let block = blocks.found()?;
    let first = block.try_mul(BLOCK)?;
    let places = first.f_add(&arange(0, BLOCK, 1, weights.device())?)?;
    // The last block may be shorter.
    let inside = weights.f_gather(1, &places.try_clamp_max(vocab - 1)?, false)?;
    let inside = inside.f_mul(&places.try_lt(vocab)?)?;
    let found = Search::new(&inside, &blocks.share(&block)?)?.found()?;
    Ok(first.f_add(&found)?.try_clamp_max(vocab - 1)?)
}

/// A search in `[rows, n]` weights for the point that has a share of the total below it.
struct Search {
    weights: Tensor,
    sums: Tensor,
    /// `[rows, 1]`: the weight below the point.
    target: Tensor,
}

impl Search {
    fn new(weights: &Tensor, shares: &Tensor) -> Result<Self> {
        let weights = weights.f_to_kind(Kind::Double)?;
        let sums = weights.f_cumsum(-1, None)?;
        let target = sums.f_narrow(1, sums.size()[1] - 1, 1)?.f_mul(shares)?;
        Ok(Self { weights, sums, target })
    }

    /// The index at the point, `[rows, 1]`. Its weight is not 0.
    fn found(&self) -> Result<Tensor> {
        let last = self.sums.size()[1] - 1;
        let found = self.target.f_searchsorted(&self.sums, false, true, "right", None::<&Tensor>)?;
        Ok(found.try_clamp_max(last)?)
    }

    /// The share of the weight at `found` that is below the point: `[rows, 1]`.
    fn share(&self, found: &Tensor) -> Result<Tensor> {
        let own = self.weights.f_gather(1, found, false)?;
        let before = self.sums.f_gather(1, found, false)?.f_sub(&own)?;
        Ok(self.target.f_sub(&before)?.f_div(&own)?.try_clamp(0.0, BELOW_ONE)?)
    }
}

/// For each row, the most probable tokens that it asks for; empty if no row asks. They are computed from logits, as a
/// probability that is 0 in 32 bits still has a log-probability.
fn most_probable(rows: &[Row], logits: &Tensor) -> Result<Vec<Vec<(u32, f32)>>> {
    let wanted = || rows.iter().map(|row| row.request.top_logprobs);
    let Some(most) = wanted().max().filter(|most| *most > 0) else { return Ok(Vec::new()) };
    let (values, tokens) = logits.f_log_softmax(-1, None)?.f_topk(most as i64, -1, true, true)?;
    let all = pairs(&tokens, &values)?;
    Ok(all.chunks(most).zip(wanted()).map(|(row, wanted)| row[..wanted].to_vec()).collect())
}

/// Tokens and their log-probabilities, one after another, in one transfer to the host.
fn pairs(tokens: &Tensor, logprobs: &Tensor) -> Result<Vec<(u32, f32)>> {
    Ok(columns(&[tokens, logprobs])?.into_iter().map(|row| (row[0] as u32, row[1] as f32)).collect())
}

/// The elements of tensors of one shape, side by side.
fn columns(tensors: &[&Tensor]) -> Result<Vec<Vec<f64>>> {
    // Doubles hold every token id exactly.
    let doubles: Vec<Tensor> =
        tensors.iter().map(|x| x.f_to_kind(Kind::Double)).collect::<std::result::Result<_, _>>()?;
    let all = Tensor::f_stack(&doubles, -1)?.f_to_device(Device::Cpu)?;
    let all = Vec::<f64>::try_from(&all.f_flatten(0, -1)?)?;
    Ok(all.chunks(tensors.len()).map(<[f64]>::to_vec).collect())
}

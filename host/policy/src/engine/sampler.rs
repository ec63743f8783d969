//! Draws one token a row from logits, on the device: the inverse of the
//! cumulative distribution at a given uniform number.

use super::row::Row;
use crate::error::Result;
use crate::sampling::Sampling;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// Draws for the rows of an engine.
pub(super) struct Sampler {
    vocab: i64,
    device: Device,
    /// The rows that `settings` belong to, by their arrival.
    rows: Vec<u64>,
    settings: BatchSettings,
}

/// The settings of a batch of rows, laid out for the device.
#[derive(Default)]
struct BatchSettings {
    penalty: Option<Penalty>,
    bias: Option<Bias>,
    /// `[rows, 1]`, 1 for greedy rows; `None` if all are 1.
    temperature: Option<Tensor>,
    /// `[rows]`; `None` if no row is greedy.
    greedy: Option<Tensor>,
    /// Every row is greedy: nothing is drawn.
    all_greedy: bool,
    truncation: Option<Truncation>,
    /// Of each row.
    top: Vec<usize>,
}

/// The repetition penalties, and the tokens that each row has in its prompt and
/// response.
struct Penalty {
    /// `[rows, 1]`, 1 for rows without.
    factor: Tensor,
    /// `[rows, vocab]`, true for tokens that are there.
    seen: Tensor,
}

/// The values that are added to single logits.
struct Bias {
    /// Row and token of each, `[n]`.
    places: [Tensor; 2],
    /// `[n]`
    values: Tensor,
}

/// Limits of each row, `[rows, 1]`; a row without a limit has one that never binds.
struct Truncation {
    /// The largest top-k if every row has one: only that many tokens need
    /// sorting.
    deepest: Option<i64>,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
}

/// The token that was drawn for a row.
pub(super) struct Pick {
    pub(super) token: u32,
    /// The log-probability under the tempered distribution, before truncation;
    /// not finite where the logits were not.
    pub(super) logprob: f32,
    /// The most probable tokens, as many as the row asks for.
    pub(super) top: Vec<(u32, f32)>,
}

impl Sampler {
    pub(super) fn new(vocab: i64, device: Device) -> Self {
        Self { vocab, device, rows: Vec::new(), settings: BatchSettings::default() }
    }

    /// Draws from `logits`, `[rows, vocab]`, with one transfer to the host, and
    /// one for the most probable tokens.
    pub(super) fn sample(&mut self, rows: &[Row], logits: &Tensor) -> Result<Vec<Pick>> {
        if !rows.iter().map(|row| row.arrival).eq(self.rows.iter().copied()) {
            self.settings = BatchSettings::new(rows, self.vocab, self.device)?;
            self.rows = rows.iter().map(|row| row.arrival).collect();
        }
        self.settings.sample(logits, &rows.iter().map(Row::uniform).collect::<Vec<_>>())
    }
}

impl BatchSettings {
    fn new(rows: &[Row], vocab: i64, device: Device) -> Result<Self> {
        let settings: Vec<&Sampling> = rows.iter().map(|row| &row.request.sampling).collect();
        let floats = |value: &dyn Fn(&Sampling) -> f64| -> Result<Tensor> {
            let values: Vec<f64> = settings.iter().map(|row| value(row)).collect();
            Ok(Tensor::f_from_slice(&values)?.f_to_device(device)?.f_unsqueeze(1)?)
        };
        let tempered = settings.iter().any(|row| !row.is_greedy() && row.temperature != 1.0);
        let temperature = |row: &Sampling| if row.is_greedy() { 1.0 } else { f64::from(row.temperature) };
        let greedy: Vec<bool> = settings.iter().map(|row| row.is_greedy()).collect();
        let truncated = settings.iter().any(|row| !row.is_greedy() && row.is_truncated());
        let top_k = |row: &Sampling| row.top_k.map_or(vocab, |k| (k as i64).min(vocab));
        let truncation = if truncated {
            let bounded = settings.iter().all(|row| row.is_greedy() || row.top_k.is_some());
            Some(Truncation {
                deepest: if bounded {
                    settings.iter().filter(|row| !row.is_greedy()).map(|row| top_k(row)).max()
                } else {
                    None
                },
                top_k: floats(&|row| top_k(row) as f64)?,
                top_p: floats(&|row| if row.top_p < 1.0 { f64::from(row.top_p) } else { f64::INFINITY })?,
                min_p: floats(&|row| f64::from(row.min_p))?,
            })
        } else {
            None
        };
        let penalised = settings.iter().any(|row| row.repetition_penalty != 1.0);
        let penalty = if penalised {
            let factor = floats(&|row| f64::from(row.repetition_penalty))?.f_to_kind(Kind::Float)?;
            Some(Penalty { factor, seen: seen(rows, vocab, device)? })
        } else {
            None
        };
        Ok(Self {
            penalty,
            bias: Bias::new(&settings, device)?,
            temperature: if tempered { Some(floats(&temperature)?.f_to_kind(Kind::Float)?) } else { None },
            greedy: match greedy.contains(&true) {
                true => Some(Tensor::f_from_slice(&greedy)?.f_to_device(device)?),
                false => None,
            },
            all_greedy: !greedy.contains(&false),
            truncation,
            top: rows.iter().map(|row| row.request.top_logprobs).collect(),
        })
    }

    /// Draws from `logits`, `[rows, vocab]`, at `uniforms`, one in `[0, 1)` a row.
    fn sample(&mut self, logits: &Tensor, uniforms: &[f64]) -> Result<Vec<Pick>> {
        let mut logits = logits.f_to_kind(Kind::Float)?;
        if let Some(Penalty { factor, seen }) = &self.penalty {
            let less = logits.f_div(factor)?.f_where_self(&logits.try_gt(0)?, &logits.f_mul(factor)?)?;
            logits = less.f_where_self(seen, &logits)?;
        }
        if let Some(Bias { places: [rows, tokens], values }) = &self.bias {
            logits = logits.f_index_put(&[Some(rows), Some(tokens)], values, true)?;
        }
        if let Some(temperature) = &self.temperature {
            logits = logits.f_div(temperature)?;
        }
        let probs = logits.f_softmax(-1, None)?;
        let mut token = if self.all_greedy {
            probs.f_argmax(-1, true)?
        } else {
            // Below 1 even after rounding in the product with the total, so that the search ends inside.
            let below_one: Vec<f64> = uniforms.iter().map(|u| u.min(1.0 - 2f64.powi(-50))).collect();
            let uniforms = Tensor::f_from_slice(&below_one)?.f_to_device(probs.device())?.f_unsqueeze(1)?;
            let sums = match &self.truncation {
                None => probs.f_cumsum(-1, Kind::Double)?,
                Some(truncation) => truncation.apply(&probs)?.f_cumsum(-1, None)?,
            };
            invert(&sums, &uniforms)?
        };
        if let (Some(greedy), false) = (&self.greedy, self.all_greedy) {
            token = probs.f_argmax(-1, true)?.f_where_self(&greedy.f_unsqueeze(1)?, &token)?;
        }
        if let Some(Penalty { seen, .. }) = &mut self.penalty {
            let _ = seen.f_scatter_value_(1, &token, 1)?;
        }
        // Only the drawn token's logarithm is needed; a probability that was drawn is never 0.
        let logprob = probs.f_gather(1, &token, false)?.f_log()?;
        let mut top = self.most_probable(&logits)?.into_iter();
        let picks = pairs(&token, &logprob)?;
        Ok(picks.map(|(token, logprob)| Pick { token, logprob, top: top.next().unwrap_or_default() }).collect())
    }

    /// For each row, the most probable tokens that it asks for; empty if no row asks. They are computed from logits, as
    /// a probability that is 0 in 32 bits still has a log-probability.
    fn most_probable(&self, logits: &Tensor) -> Result<Vec<Vec<(u32, f32)>>> {
        let Some(most) = self.top.iter().copied().max().filter(|most| *most > 0) else { return Ok(Vec::new()) };
        let (values, tokens) = logits.f_log_softmax(-1, None)?.f_topk(most as i64, -1, true, true)?;
        let all: Vec<(u32, f32)> = pairs(&tokens, &values)?.collect();
        Ok(all.chunks(most).zip(&self.top).map(|(row, &wanted)| row[..wanted].to_vec()).collect())
    }
}

/// Tokens and their log-probabilities, row by row, in one transfer to the host.
fn pairs(tokens: &Tensor, logprobs: &Tensor) -> Result<impl Iterator<Item = (u32, f32)>> {
    // Doubles hold every token id exactly.
    let both = Tensor::f_stack(&[tokens.f_to_kind(Kind::Double)?, logprobs.f_to_kind(Kind::Double)?], -1)?;
    let both = Vec::<f64>::try_from(&both.f_to_device(Device::Cpu)?.f_flatten(0, -1)?)?;
    Ok((0..both.len() / 2).map(move |index| (both[2 * index] as u32, both[2 * index + 1] as f32)))
}

/// `[rows, vocab]`: true for the tokens of each row.
fn seen(rows: &[Row], vocab: i64, device: Device) -> Result<Tensor> {
    let mut seen = vec![false; rows.len() * vocab as usize];
    for (row, seen) in rows.iter().zip(seen.chunks_mut(vocab as usize)) {
        let tokens = row.request.prompt.iter().chain(&row.response);
        tokens.for_each(|&token| seen[token as usize] = true);
    }
    Ok(Tensor::f_from_slice(&seen)?.f_view([rows.len() as i64, vocab])?.f_to_device(device)?)
}

impl Bias {
    fn new(rows: &[&Sampling], device: Device) -> Result<Option<Self>> {
        let all = || rows.iter().enumerate().flat_map(|(row, of)| of.logit_bias.iter().map(move |bias| (row, bias)));
        if all().next().is_none() {
            return Ok(None);
        }
        let longs = |values: Vec<i64>| Tensor::f_from_slice(&values)?.f_to_device(device);
        let values: Vec<f32> = all().map(|(_, (_, bias))| *bias).collect();
        Ok(Some(Self {
            places: [
                longs(all().map(|(row, _)| row as i64).collect())?,
                longs(all().map(|(_, (token, _))| i64::from(*token)).collect())?,
            ],
            values: Tensor::f_from_slice(&values)?.f_to_device(device)?,
        }))
    }
}

impl Truncation {
    /// `probs`, `[rows, vocab]`, as doubles, with 0 for tokens that are cut
    /// off. The order of the vocabulary is kept, so that a row without a limit
    /// draws the same token whether or not a neighbour has one. Tokens as
    /// probable as the last that stays are kept too: their order depends on how
    /// many are sorted for the neighbours.
    fn apply(&self, probs: &Tensor) -> Result<Tensor> {
        let (sorted, _) = match self.deepest {
            Some(k) => probs.f_topk(k, -1, true, true)?,
            None => probs.f_sort(-1, true)?,
        };
        let sorted = sorted.f_to_kind(Kind::Double)?;
        let rank = arange(0, sorted.size()[1], 1, sorted.device())?.f_to_kind(Kind::Double)?;
        let kept = sorted.f_mul(&rank.f_lt_tensor(&self.top_k)?)?;
        let sums = kept.f_cumsum(-1, None)?;
        // A token stays while those before it have not reached top-p of what top-k left.
        let before = sums.f_sub(&kept)?;
        let total = sums.f_narrow(1, sums.size()[1] - 1, 1)?;
        let in_nucleus = before.f_lt_tensor(&total.f_mul(&self.top_p)?)?;
        let probable = kept.f_ge_tensor(&kept.f_narrow(1, 0, 1)?.f_mul(&self.min_p)?)?;
        let kept = kept.f_mul(&in_nucleus.f_logical_and(&probable)?)?;
        let least = sorted.try_masked_fill(&kept.try_le(0)?, f64::INFINITY)?.f_amin(&[1][..], true)?;
        let probs = probs.f_to_kind(Kind::Double)?;
        Ok(probs.f_mul(&probs.f_ge_tensor(&least)?)?)
    }
}

/// The first index, `[rows, 1]`, whose cumulative sum exceeds the share
/// `uniforms` of the total. Where a row is NaN it is some index in range.
fn invert(sums: &Tensor, uniforms: &Tensor) -> Result<Tensor> {
    let last = sums.size()[1] - 1;
    let target = sums.f_narrow(1, last, 1)?.f_mul(uniforms)?;
    Ok(target.f_searchsorted(sums, false, true, "right", None::<&Tensor>)?.try_clamp_max(last)?)
}

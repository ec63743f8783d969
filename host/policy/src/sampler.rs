//! Draws one token a row from logits, on the device: the inverse of the
//! cumulative distribution at a given uniform number.

use crate::error::Result;
use crate::sampling::Sampling;
use tch::{Device, Kind, Tensor};

/// The settings of a batch of rows, laid out for the device.
pub(crate) struct Sampler {
    /// `[rows, 1]`, 1 for greedy rows; absent where all are 1.
    temperature: Option<Tensor>,
    /// `[rows]`; absent where no row is greedy.
    greedy: Option<Tensor>,
    /// Every row is greedy: nothing is drawn.
    all_greedy: bool,
    truncation: Option<Truncation>,
}

/// Limits of each row, `[rows, 1]`; a row without a limit has one that never binds.
struct Truncation {
    /// The largest top-k if every row has one: only so many tokens need sorting.
    deepest: Option<i64>,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
}

/// What was drawn.
pub(crate) struct Picks {
    pub(crate) tokens: Vec<u32>,
    /// The log-probability under the tempered distribution, before truncation;
    /// not finite where the logits were not.
    pub(crate) logprobs: Vec<f32>,
}

impl Sampler {
    pub(crate) fn new(rows: &[&Sampling], vocab: i64, device: Device) -> Result<Self> {
        let floats = |value: &dyn Fn(&Sampling) -> f64| -> Result<Tensor> {
            let values: Vec<f64> = rows.iter().map(|row| value(row)).collect();
            Ok(Tensor::f_from_slice(&values)?.f_to_device(device)?.f_unsqueeze(1)?)
        };
        let tempered = rows.iter().any(|row| !row.is_greedy() && row.temperature != 1.0);
        let temperature = |row: &Sampling| if row.is_greedy() { 1.0 } else { f64::from(row.temperature) };
        let greedy: Vec<bool> = rows.iter().map(|row| row.is_greedy()).collect();
        let truncated = rows.iter().any(|row| !row.is_greedy() && row.is_truncated());
        let top_k = |row: &Sampling| row.top_k.map_or(vocab, |k| (k as i64).min(vocab));
        let truncation = if truncated {
            let bounded = rows.iter().all(|row| row.is_greedy() || row.top_k.is_some());
            Some(Truncation {
                deepest: if bounded {
                    rows.iter().filter(|row| !row.is_greedy()).map(|row| top_k(row)).max()
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
        Ok(Self {
            temperature: if tempered { Some(floats(&temperature)?.f_to_kind(Kind::Float)?) } else { None },
            greedy: match greedy.contains(&true) {
                true => Some(Tensor::f_from_slice(&greedy)?.f_to_device(device)?),
                false => None,
            },
            all_greedy: !greedy.contains(&false),
            truncation,
        })
    }

    /// Draws from `logits`, `[rows, vocab]`, at `uniforms`, one in `[0, 1)` a
    /// row. One transfer to the host.
    pub(crate) fn sample(&self, logits: &Tensor, uniforms: &[f64]) -> Result<Picks> {
        let mut logits = logits.f_to_kind(Kind::Float)?;
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
        // Only the drawn token's logarithm is needed; a probability that was drawn is never 0.
        let logprob = probs.f_gather(1, &token, false)?.f_log()?;
        // Doubles hold every token id exactly.
        let both = Tensor::f_cat(&[token.f_to_kind(Kind::Double)?, logprob.f_to_kind(Kind::Double)?], 1)?;
        let both = Vec::<f64>::try_from(&both.f_to_device(Device::Cpu)?.f_flatten(0, 1)?)?;
        Ok(Picks {
            tokens: both.iter().step_by(2).map(|&token| token as u32).collect(),
            logprobs: both.iter().skip(1).step_by(2).map(|&logprob| logprob as f32).collect(),
        })
    }
}

impl Truncation {
    /// `probs`, `[rows, vocab]`, as doubles, with 0 for what is cut off. The
    /// order of the vocabulary is kept, so that a row without a limit draws
    /// the same token whether or not a neighbour has one.
    fn apply(&self, probs: &Tensor) -> Result<Tensor> {
        let (sorted, order) = match self.deepest {
            Some(k) => probs.f_topk(k, -1, true, true)?,
            None => probs.f_sort_stable(true, -1, true)?,
        };
        let sorted = sorted.f_to_kind(Kind::Double)?;
        let rank = Tensor::f_arange(sorted.size()[1], (Kind::Double, sorted.device()))?;
        let kept = sorted.f_mul(&rank.f_lt_tensor(&self.top_k)?)?;
        let sums = kept.f_cumsum(-1, None)?;
        // A token stays while those before it have not reached top-p of what top-k left.
        let before = sums.f_sub(&kept)?;
        let total = sums.f_narrow(1, sums.size()[1] - 1, 1)?;
        let in_nucleus = before.f_lt_tensor(&total.f_mul(&self.top_p)?)?;
        let probable = kept.f_ge_tensor(&kept.f_narrow(1, 0, 1)?.f_mul(&self.min_p)?)?;
        let kept = kept.f_mul(&in_nucleus.f_logical_and(&probable)?)?;
        Ok(Tensor::f_zeros(probs.size(), (Kind::Double, probs.device()))?.f_scatter(1, &order, &kept)?)
    }
}

/// The first index, `[rows, 1]`, whose cumulative sum exceeds the share
/// `uniforms` of the total. Where a row is NaN it is some index in range.
fn invert(sums: &Tensor, uniforms: &Tensor) -> Result<Tensor> {
    let last = sums.size()[1] - 1;
    let target = sums.f_narrow(1, last, 1)?.f_mul(uniforms)?;
    Ok(target.f_searchsorted(sums, false, true, "right", None::<&Tensor>)?.f_clamp_max(last)?)
}

//! Attention of the rows that decode: one query each, to as many keys as the row has.

use super::inputs::StepInputs;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, has_flash_kernels, is_usable, random_like};
use crate::mask::StepMasks;
use crate::model::Model;
use gavel_torch::attention::{FlashRows, Scoring, Stored, attend_last, flash};
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// The next token of each row, whose keys and values are stored.
pub(super) enum NextTokens {
    /// On the CPU.
    Own {
        /// `[rows]`: the place of each row's first key.
        starts: Tensor,
        /// `[rows]`: how many it has.
        lengths: Tensor,
    },
    /// On a GPU, where flash attention can be used.
    Flash(FlashRows),
    /// Elsewhere: by masks over as many keys as the longest row has.
    Masked {
        /// `[rows * longest]`: the place of each key.
        places: Tensor,
        masks: StepMasks,
    },
}

impl NextTokens {
    pub(super) fn new(model: &Model, inputs: &StepInputs) -> Result<Self> {
        let (starts, lengths) = (inputs.starts()?, inputs.lengths()?);
        if model.device() == Device::Cpu {
            return Ok(Self::Own { starts, lengths });
        }
        if can_flash(model.config(), model.kind(), model.device()) {
            return Self::flash(&starts, &lengths, inputs.longest);
        }
        Self::masked(model.config(), [&starts, &lengths], inputs.longest, model.kind())
    }

    fn flash(starts: &Tensor, lengths: &Tensor, longest: i64) -> Result<Self> {
        let rows = starts.size()[0];
        let int = |x: &Tensor| x.f_to_kind(Kind::Int);
        Ok(Self::Flash(FlashRows {
            first_queries: int(&arange(0, rows + 1, 1, starts.device())?)?,
            starts: int(&Tensor::f_cat(&[starts, &starts.f_narrow(0, 0, 1)?], 0)?)?,
            lengths: Some(int(lengths)?),
            most_queries: 1,
            most_keys: longest,
        }))
    }

    fn masked(config: &ModelConfig, [starts, lengths]: [&Tensor; 2], longest: i64, kind: Kind) -> Result<Self> {
        // After a short row come the places of others, whose numbers may not be finite: 0 times NaN is NaN. So its last
        // place stands for them.
        let column = arange(0, longest, 1, starts.device())?.f_minimum(&lengths.try_sub(1)?.f_unsqueeze(1)?)?;
        let places = starts.f_unsqueeze(1)?.f_add(&column)?.f_flatten(0, 1)?;
        Ok(Self::Masked { places, masks: StepMasks::new(config, lengths, longest, kind)? })
    }

    /// Attends to all keys of each row; gives `[rows, query_width]`. `query` is `[rows, heads, head_dim]`.
    pub(super) fn attend(&self, config: &ModelConfig, stored: Stored, layer: usize, query: &Tensor) -> Result<Tensor> {
        let scoring = Scoring { scale: (config.head_dim as f64).sqrt().recip(), window: config.window(layer) };
        let attended = match self {
            Self::Own { starts, lengths } => attend_last(query, stored, [starts, lengths], scoring)?,
            Self::Flash(rows) => flash(query, stored, rows, scoring)?,
            Self::Masked { places, masks } => {
                let part = |x: &Tensor| -> Result<Tensor> {
                    Ok(x.f_index_select(0, places)?.f_unflatten(0, [query.size()[0], -1])?.f_transpose(1, 2)?)
                };
                let (keys, values, scale) = (part(stored.keys)?, part(stored.values)?, Some(scoring.scale));
                // The query heads that share keys are the queries of one head.
                let query = query.f_unflatten(1, [config.num_key_value_heads, -1])?;
                let mask = Some(masks.of(config, layer));
                Tensor::f_scaled_dot_product_attention(&query, &keys, &values, mask, 0.0, false, scale, false)?
            }
        };
        Ok(attended.f_flatten(1, -1)?)
    }
}

/// Whether flash attention gives what attention with masks gives on this device.
fn can_flash(config: &ModelConfig, kind: Kind, device: Device) -> bool {
    let (heads, kv_heads, width) = (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
    let shapes = [heads, kv_heads, width, config.window_size().unwrap_or(0)];
    let flash = |[starts, lengths]: [&Tensor; 2], longest| NextTokens::flash(starts, lengths, longest);
    has_flash_kernels(kind, width)
        && is_usable(FastPath::FlashDecoding, device, kind, &shapes, || compared(config, kind, device, flash))
}

/// The results of a form of attention and of masks, for rows that are not neighbours, in a layer without a window and in
/// one with it, as far as there are. `fast` makes the form from the rows' starts and lengths, and a number of keys that
/// no row exceeds.
fn compared(
    config: &ModelConfig,
    kind: Kind,
    device: Device,
    fast: impl Fn([&Tensor; 2], i64) -> Result<NextTokens>,
) -> Result<Vec<Results>> {
    let (heads, kv_heads, width) = (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
    // The longest row has keys outside of the window; one has a single key.
    let longest = 700.max(config.window_size().unwrap_or(0) + 70);
    let (starts, lengths) = ([300i64, 5, 0], [longest, 129, 1]);
    let places = 300 + longest + 100;
    let random = |shape: &[i64], seed| random_like(shape, seed, kind, device);
    let (keys, values) = (random(&[places, kv_heads, width], 1)?, random(&[places, kv_heads, width], 2)?);
    for (start, length) in starts.into_iter().zip(lengths) {
        // A key too few or too many changes the result by more than rounding.
        values.f_get(start + length - 1)?.try_fill_(20)?;
        values.f_get(start + length)?.try_fill_(100)?;
    }
    let on_device = |numbers: &[i64]| Tensor::f_from_slice(numbers)?.f_to_device(device);
    let (starts, lengths) = (on_device(&starts)?, on_device(&lengths)?);
    let (query, stored) = (random(&[3, heads, width], 3)?, Stored { keys: &keys, values: &values });
    let masked = NextTokens::masked(config, [&starts, &lengths], longest, kind)?;
    let fast = fast([&starts, &lengths], longest + 100)?;
    let layers = config.a_layer_of_each_window();
    let attended = |how: &NextTokens| -> Result<Tensor> {
        let each = layers.iter().map(|&layer| how.attend(config, stored, layer, &query));
        Ok(Tensor::f_cat(&each.collect::<Result<Vec<_>>>()?, 0)?)
    };
    Ok(vec![Results { fast: attended(&fast)?, plain: attended(&masked)?, rows: vec![1; 3 * layers.len()] }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_paths::differing;

    #[test]
    fn a_key_too_few_or_too_many_is_a_difference() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"use_sliding_window":true,"sliding_window":800,"max_window_layers":1}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        for (more, is_equal) in [(0, true), (1, false), (-1, false)] {
            let own = |[starts, lengths]: [&Tensor; 2], _| {
                let lengths = lengths.try_add(more)?.try_clamp(1, i64::MAX)?;
                Ok(NextTokens::Own { starts: starts.shallow_clone(), lengths })
            };
            let results = compared(&config, Kind::BFloat16, Device::Cpu, own).unwrap();
            assert_eq!(differing(&results, Kind::BFloat16).unwrap().is_none(), is_equal, "{more} more keys");
        }
    }

    #[test]
    fn masks_and_lengths_give_the_same_attention() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"use_sliding_window":true,"sliding_window":5,"max_window_layers":1}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        assert_eq!([config.window(0), config.window(1)], [None, Some(5)]);
        let [starts, lengths] = [[20i64, 0, 64, 99], [9, 1, 30, 1]].map(|numbers| Tensor::from_slice(&numbers));
        for (kind, tolerance) in [(Kind::Float, 2e-6), (Kind::BFloat16, 1e-2)] {
            let random = |shape: &[i64], seed| random_like(shape, seed, kind, Device::Cpu).unwrap();
            let (keys, values) = (random(&[100, 2, 8], 1), random(&[100, 2, 8], 2));
            let (query, stored) = (random(&[4, 4, 8], 3), Stored { keys: &keys, values: &values });
            let own = NextTokens::Own { starts: starts.shallow_clone(), lengths: lengths.shallow_clone() };
            let masked = NextTokens::masked(&config, [&starts, &lengths], 30, kind).unwrap();
            for layer in 0..2 {
                let [own, masked] = [&own, &masked].map(|how| how.attend(&config, stored, layer, &query).unwrap());
                assert_eq!((own.size(), masked.size()), (vec![4, 32], vec![4, 32]));
                let difference = (own - masked).abs().max().double_value(&[]);
                assert!(difference < tolerance, "{kind:?}, layer {layer}: {difference}");
            }
            // Numbers that are not finite reach no row but their own.
            let before = masked.attend(&config, stored, 0, &query).unwrap();
            for (start, length) in [(1, 19), (29, 35), (94, 6)] {
                values.narrow(0, start, length).try_fill_(f64::NAN).unwrap();
            }
            let after = masked.attend(&config, Stored { keys: &keys, values: &values }, 0, &query).unwrap();
            assert!(
                after.narrow(0, 0, 3).equal(&before.narrow(0, 0, 3))
                    && after.get(3).isnan().all().int64_value(&[]) == 1
            );
        }
    }
}

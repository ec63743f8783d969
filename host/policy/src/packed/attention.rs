//! How the rows of a pack attend.

use super::{Order, Packed, PackedRow};
use crate::attention::with_gradients;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, has_flash_kernels, is_usable};
use crate::layer::Projected;
use crate::mask::Masks;
use gavel_torch::attention::{FlashRows, Scoring, SharedRows, Stored, flash, flash_shared};
use tch::{Device, Kind, Tensor};

/// Attention of every token of a pack to the tokens before it in its row and in the row that its row follows.
pub(crate) enum PackedAttention {
    /// Bucket by bucket, each with its masks.
    Buckets(Vec<Masks>),
    /// All rows at once, on a GPU, if none follows another.
    Flash(FlashRows),
    /// All rows at once, and all rows after a prompt to it at once, on a GPU, if no layer has a window.
    Shared(SharedRows),
}

impl PackedAttention {
    pub(crate) fn new(packed: &Packed, config: &ModelConfig, kind: Kind) -> Result<Self> {
        let device = packed.device();
        let how = match packed.has_shared_prompts() {
            false if can_flash(config, kind, device) => Some(Self::Flash(packed.flash_rows()?)),
            true if can_flash_shared(config, kind, device) => packed.shared_rows()?.map(Self::Shared),
            _ => None,
        };
        match how {
            Some(how) => Ok(how),
            None => Self::by_bucket(packed, config, kind),
        }
    }

    fn by_bucket(packed: &Packed, config: &ModelConfig, kind: Kind) -> Result<Self> {
        let masks = packed.buckets.iter().map(|bucket| bucket.masks(config, packed.device())?.added(kind));
        Ok(Self::Buckets(masks.collect::<Result<_>>()?))
    }

    /// Gives `[tokens, heads * head_dim]`.
    pub(crate) fn attend(
        &self,
        packed: &Packed,
        config: &ModelConfig,
        layer: usize,
        projected: &Projected,
    ) -> Result<Tensor> {
        let stored = Stored { keys: &projected.key, values: &projected.value };
        let scale = (config.head_dim as f64).sqrt().recip();
        let out = match self {
            Self::Buckets(masks) => return packed.attend(config, layer, projected, masks),
            Self::Flash(rows) => {
                flash(&projected.query, stored, rows, Scoring { scale, window: config.window(layer) })?
            }
            Self::Shared(rows) => flash_shared(&projected.query, stored, rows, scale)?,
        };
        Ok(out.f_flatten(1, 2)?)
    }
}

/// Whether attention of all rows at once gives the results and gradients that attention of buckets gives.
fn can_flash(config: &ModelConfig, kind: Kind, device: Device) -> bool {
    let (heads, kv_heads, width) = (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
    let shapes = [heads, kv_heads, width, config.window_size().unwrap_or(0)];
    has_flash_kernels(kind, width)
        && is_usable(FastPath::FlashPacked, device, kind, &shapes, || compared(config, kind, device))
}

/// The same where rows follow shared prompts.
fn can_flash_shared(config: &ModelConfig, kind: Kind, device: Device) -> bool {
    let shapes = [config.num_attention_heads, config.num_key_value_heads, config.head_dim];
    config.window_size().is_none()
        && has_flash_kernels(kind, config.head_dim)
        && is_usable(FastPath::FlashShared, device, kind, &shapes, || compared_shared(config, kind, device))
}

/// The results of flash attention and of buckets for rows of different lengths, in a layer without a window and in one
/// with it, as far as there are.
fn compared(config: &ModelConfig, kind: Kind, device: Device) -> Result<Vec<Results>> {
    // The longest has keys outside of the window.
    let lengths = [1, 37, 130, 700.max(config.window_size().unwrap_or(0) + 70)];
    let rows = lengths.map(|length| PackedRow { after: None, tokens: vec![0; length as usize] });
    let packed = Packed::new(&rows, device)?;
    let fast = PackedAttention::Flash(packed.flash_rows()?);
    compared_with_buckets(&packed, &fast, config, kind)
}

/// The same for prompts of different lengths with one, two and three rows after them, and for a row alone.
fn compared_shared(config: &ModelConfig, kind: Kind, device: Device) -> Result<Vec<Results>> {
    let prompts = [130, 1, 400, 37].map(|length| (None, length));
    let followers = [(2, 1), (0, 150), (2, 300), (1, 37), (0, 20), (2, 140)];
    let followers = followers.map(|(prompt, length)| (Some(prompt), length));
    let row = |(after, length)| PackedRow { after, tokens: vec![0; length] };
    let rows: Vec<PackedRow> = prompts.into_iter().chain(followers).map(row).collect();
    let packed = Packed::arranged(&rows, Order::ByPrompt, device)?;
    let Some(shared) = packed.shared_rows()? else { return Ok(Vec::new()) };
    compared_with_buckets(&packed, &PackedAttention::Shared(shared), config, kind)
}

/// The results of a fast attention of a pack and of buckets.
fn compared_with_buckets(
    packed: &Packed,
    fast: &PackedAttention,
    config: &ModelConfig,
    kind: Kind,
) -> Result<Vec<Results>> {
    let plain = PackedAttention::by_bucket(packed, config, kind)?;
    let mut places: Vec<(usize, usize)> = packed.starts.iter().copied().zip(packed.lengths.iter().copied()).collect();
    places.sort_unstable();
    let lengths: Vec<i64> = places.into_iter().map(|(_, length)| length as i64).collect();
    let shapes = [config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads]
        .map(|heads| vec![packed.tokens(), heads, config.head_dim]);
    let layers = config.a_layer_of_each_window();
    with_gradients(&shapes, [&lengths.repeat(layers.len()), &lengths], kind, packed.device(), |inputs, is_fast| {
        let [query, key, value] = inputs.map(Tensor::shallow_clone);
        let (projected, how) = (Projected { query, key, value }, if is_fast { fast } else { &plain });
        let of_each = layers.iter().map(|&layer| how.attend(packed, config, layer, &projected));
        Ok(Tensor::f_cat(&of_each.collect::<Result<Vec<_>>>()?, 0)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_paths::differing;

    const SIZES: &str = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;

    fn row(after: Option<usize>, length: usize) -> PackedRow {
        PackedRow { after, tokens: vec![1; length] }
    }

    fn numbers(of: [&Tensor; 2]) -> [Vec<i32>; 2] {
        of.map(|x| Vec::<i32>::try_from(x).unwrap())
    }

    #[test]
    fn rows_alone_attend_at_once() {
        let packed = Packed::new(&[row(None, 5), row(None, 2), row(None, 9)], Device::Cpu).unwrap();
        let rows = packed.flash_rows().unwrap();
        // In the order of the pack, the shortest first.
        let starts = numbers([&rows.starts, &rows.first_queries]);
        assert_eq!((starts, rows.most_queries, rows.most_keys), ([vec![0, 2, 7, 16], vec![0, 2, 7, 16]], 9, 9));
        assert!(!packed.has_shared_prompts());
    }

    #[test]
    fn rows_attend_at_once_to_the_prompt_that_they_follow() {
        let rows = [
            row(None, 9),
            row(None, 3),
            row(None, 6),
            row(Some(0), 4),
            row(Some(2), 7),
            row(Some(0), 1),
            row(Some(2), 2),
            row(Some(2), 5),
        ];
        let packed = Packed::arranged(&rows, Order::ByPrompt, Device::Cpu).unwrap();
        // The shorter prompt, the longer one, the row alone, and the rows after the prompts, the shortest first.
        assert_eq!([2, 0, 1, 6, 7, 4, 5, 3].map(|row| packed.start(row)), [0, 6, 15, 18, 20, 25, 32, 33]);
        let shared = packed.shared_rows().unwrap().unwrap();
        let prompts = &shared.prompts;
        assert_eq!(
            numbers([&shared.starts, &prompts.starts]),
            [vec![0, 6, 15, 18, 20, 25, 32, 33, 37], vec![0, 6, 15]]
        );
        assert_eq!(numbers([&prompts.first_queries, &prompts.starts]), [vec![0, 14, 19], vec![0, 6, 15]]);
        assert_eq!((shared.longest, prompts.most_queries, prompts.most_keys), (9, 14, 9));
        assert_eq!((shared.prompt_tokens, shared.follower_tokens, packed.tokens()), (15, 19, 37));
        assert!(packed.has_shared_prompts());
        // The CPU has another order.
        assert!(Packed::new(&rows, Device::Cpu).unwrap().shared_rows().unwrap().is_none());
    }

    #[test]
    fn attention_with_shared_prompts_is_that_of_buckets() {
        let config: ModelConfig = serde_json::from_str(SIZES).unwrap();
        let results = compared_shared(&config, Kind::Double, Device::Cpu).unwrap();
        assert_eq!(results.len(), 4);
        assert!(results.iter().all(|of| of.rows == [1, 130, 400, 37, 37, 20, 150, 1, 140, 300]));
        assert_eq!(differing(&results, Kind::Float).unwrap(), None);
    }

    #[test]
    fn without_a_gpu_rows_attend_by_bucket_and_the_comparison_fails() {
        let config: ModelConfig = serde_json::from_str(SIZES).unwrap();
        let packed = Packed::new(&[row(None, 4)], Device::Cpu).unwrap();
        let how = PackedAttention::new(&packed, &config, Kind::BFloat16).unwrap();
        assert!(matches!(how, PackedAttention::Buckets(_)));
        let error = compared(&config, Kind::BFloat16, Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("_flash_attention_forward"), "{error}");
    }
}

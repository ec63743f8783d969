//! How the rows of a pack attend.

use super::{Packed, PackedRow};
use crate::attention::with_gradients;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, has_flash_kernels, is_usable};
use crate::layer::Projected;
use crate::mask::Masks;
use gavel_torch::attention::{FlashRows, Scoring, Stored, flash};
use tch::{Device, Kind, Tensor};

/// Attention of every token of a pack to the tokens before it in its row and in the row that its row follows.
pub(crate) enum PackedAttention {
    /// Bucket by bucket, each with its masks.
    Buckets(Vec<Masks>),
    /// All rows at once, on a GPU, if none follows another.
    Flash(FlashRows),
}

impl PackedAttention {
    pub(crate) fn new(packed: &Packed, config: &ModelConfig, kind: Kind) -> Result<Self> {
        let rows = if can_flash(config, kind, packed.device()) { packed.flash_rows()? } else { None };
        match rows {
            Some(rows) => Ok(Self::Flash(rows)),
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
        match self {
            Self::Buckets(masks) => packed.attend(config, layer, projected, masks),
            Self::Flash(rows) => {
                let stored = Stored { keys: &projected.key, values: &projected.value };
                let scale = (config.head_dim as f64).sqrt().recip();
                let scoring = Scoring { scale, window: config.window(layer) };
                Ok(flash(&projected.query, stored, rows, scoring)?.f_flatten(1, 2)?)
            }
        }
    }
}

/// Whether attention of all rows at once gives the results and gradients that attention of buckets gives.
fn can_flash(config: &ModelConfig, kind: Kind, device: Device) -> bool {
    let (heads, kv_heads, width) = (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
    let shapes = [heads, kv_heads, width, config.window_size().unwrap_or(0)];
    has_flash_kernels(kind, width)
        && is_usable(FastPath::FlashPacked, device, kind, &shapes, || compared(config, kind, device))
}

/// The results of flash attention and of buckets for rows of different lengths, in a layer without a window and in one
/// with it, as far as there are.
fn compared(config: &ModelConfig, kind: Kind, device: Device) -> Result<Vec<Results>> {
    // In the order of a pack, the shortest first; the longest has keys outside of the window.
    let lengths = [1, 37, 130, 700.max(config.window_size().unwrap_or(0) + 70)];
    let rows = lengths.map(|length| PackedRow { after: None, tokens: vec![0; length as usize] });
    let packed = Packed::new(&rows, device)?;
    let how = |is_fast: bool| match packed.flash_rows()?.filter(|_| is_fast) {
        Some(rows) => Ok(PackedAttention::Flash(rows)),
        None => PackedAttention::by_bucket(&packed, config, kind),
    };
    let shapes = [config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads]
        .map(|heads| vec![lengths.iter().sum(), heads, config.head_dim]);
    let layers = config.a_layer_of_each_window();
    with_gradients(&shapes, [&lengths.repeat(layers.len()), &lengths], kind, device, |inputs, is_fast| {
        let [query, key, value] = inputs.map(Tensor::shallow_clone);
        let (projected, how) = (Projected { query, key, value }, how(is_fast)?);
        let of_each = layers.iter().map(|&layer| how.attend(&packed, config, layer, &projected));
        Ok(Tensor::f_cat(&of_each.collect::<Result<Vec<_>>>()?, 0)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_follow_others_do_not_attend_at_once() {
        let row = |after, length| PackedRow { after, tokens: vec![1; length] };
        let packed = |rows: &[PackedRow]| Packed::new(rows, Device::Cpu).unwrap();
        let rows = packed(&[row(None, 5), row(None, 2), row(None, 9)]).flash_rows().unwrap().unwrap();
        // In the order of the pack, the shortest first.
        let starts = [&rows.starts, &rows.first_queries].map(|x| Vec::<i32>::try_from(x).unwrap());
        assert_eq!((starts, rows.most_queries, rows.most_keys), ([vec![0, 2, 7, 16], vec![0, 2, 7, 16]], 9, 9));
        assert!(packed(&[row(None, 5), row(Some(0), 2)]).flash_rows().unwrap().is_none());
    }

    #[test]
    fn without_a_gpu_rows_attend_by_bucket_and_the_comparison_fails() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let packed = Packed::new(&[PackedRow { after: None, tokens: vec![1; 4] }], Device::Cpu).unwrap();
        let how = PackedAttention::new(&packed, &config, Kind::BFloat16).unwrap();
        assert!(matches!(how, PackedAttention::Buckets(_)));
        let error = compared(&config, Kind::BFloat16, Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("_flash_attention_forward"), "{error}");
    }
}

//! Keys that change the computation in other families, or in other libraries. A file that uses one asks for more than
//! its family computes here.

use crate::error::{PolicyError, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The value of a key that changes nothing. Neither does `null`, an empty list or an empty table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neutral {
    False,
    True,
    One,
}

/// The keys, by the name that `transformers` or vLLM reads them under.
const KEYS: [(&str, Neutral); 27] = [
    ("alibi", Neutral::False),
    ("attention_chunk_size", Neutral::False),
    ("attention_multiplier", Neutral::False),
    ("attn_logit_softcapping", Neutral::False),
    ("clip_qkv", Neutral::False),
    ("dim_model_base", Neutral::False),
    ("embedding_multiplier", Neutral::One),
    ("final_logit_softcapping", Neutral::False),
    ("is_causal", Neutral::True),
    ("is_encoder_decoder", Neutral::False),
    ("logit_scale", Neutral::One),
    ("logits_scaling", Neutral::One),
    ("mlp_bias", Neutral::False),
    ("no_rope_layer_interval", Neutral::False),
    ("no_rope_layers", Neutral::False),
    ("partial_rotary_factor", Neutral::One),
    ("per_layer_config", Neutral::False),
    ("qk_layernorm", Neutral::False),
    ("quantization_config", Neutral::False),
    ("query_pre_attn_scalar", Neutral::False),
    ("residual_multiplier", Neutral::One),
    ("rope_interleaved", Neutral::False),
    ("rotary_pct", Neutral::One),
    ("scale_depth", Neutral::False),
    ("scale_emb", Neutral::One),
    ("use_bidirectional_attention", Neutral::False),
    ("use_qk_norm", Neutral::False),
];

impl Neutral {
    fn is_left_by(self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(items) => !items.is_empty(),
            Value::Bool(value) => *value != (self == Self::True),
            Value::Number(number) => self != Self::One || number.as_f64() != Some(1.0),
            Value::String(_) => true,
        }
    }
}

/// Whether the value of an unsupported key would change the computation.
pub(super) fn asks(value: &Value) -> bool {
    Neutral::False.is_left_by(value)
}

/// Refuses the keys of a file that ask for a computation of others.
pub(super) fn refuse(keys: &BTreeMap<String, Value>) -> Result<()> {
    for (key, neutral) in KEYS {
        let Some(value) = keys.get(key).filter(|value| neutral.is_left_by(value)) else { continue };
        return Err(PolicyError::Config(match neutral {
            Neutral::One => format!("`{key}` {value} is not supported; only 1 is"),
            Neutral::True => format!("`{key}` {value} is not supported; only true is"),
            Neutral::False => format!("`{key}` is not supported; only without it"),
        }));
    }
    Ok(())
}

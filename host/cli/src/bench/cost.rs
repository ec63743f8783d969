//! What a model must read and compute, by formula.

use gavel_policy::{Model, ModelConfig};

/// The bytes of weights that a decoding step reads: all, save for an embedding
/// that is not the head too, of which it reads a row for each token.
pub fn weight_bytes(model: &Model) -> u64 {
    let bytes = |count: usize| (count * model.kind().elt_size_in_bytes()) as u64;
    let all: u64 = model.parameters().iter().map(|(_, tensor)| bytes(tensor.numel())).sum();
    let config = model.config();
    match config.tie_word_embeddings {
        true => all,
        false => all - bytes((config.vocab_size * config.hidden_size) as usize),
    }
}

/// The bytes of keys and values that a decoding step reads for a row of
/// `tokens` tokens.
pub fn cache_bytes(model: &Model, tokens: u64) -> u64 {
    let config = model.config();
    let width = (2 * config.num_key_value_heads * config.head_dim) as u64;
    let seen = |layer| window(config, layer).map_or(tokens, |window| tokens.min(window));
    let tokens: u64 = (0..config.num_hidden_layers as usize).map(seen).sum();
    tokens * width * model.kind().elt_size_in_bytes() as u64
}

/// The floating-point operations of a prompt of `tokens` tokens up to the
/// logits after it: two for each weight of a layer's matrices and each token,
/// and four for each dimension of the query heads and each pair of tokens of
/// which one sees the other; then two for each weight of the head.
pub fn prompt_flops(config: &ModelConfig, tokens: u64) -> f64 {
    let heads = config.num_attention_heads * config.head_dim;
    let kv_heads = 2 * config.num_key_value_heads * config.head_dim;
    let matrices = config.hidden_size * (2 * heads + kv_heads + 3 * config.intermediate_size);
    let n = tokens as f64;
    let pairs = |layer| {
        let window = window(config, layer).map_or(n, |window| n.min(window as f64));
        // The first tokens see fewer than the window.
        window * (n - window) + window * (window + 1.0) / 2.0
    };
    let layers = (0..config.num_hidden_layers as usize)
        .map(|layer| 2.0 * matrices as f64 * n + 4.0 * heads as f64 * pairs(layer));
    layers.sum::<f64>() + 2.0 * (config.vocab_size * config.hidden_size) as f64
}

fn window(config: &ModelConfig, layer: usize) -> Option<u64> {
    config.windows.get(layer).copied().flatten().map(|window| window as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::{Device, Kind};
    use serde_json::json;

    fn model(windows: bool, tied: bool) -> Model {
        let config = serde_json::from_value(json!({
            "model_type": "qwen2", "vocab_size": 50, "hidden_size": 8, "intermediate_size": 12,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": tied,
            "use_sliding_window": windows, "sliding_window": 3, "max_window_layers": 1,
        }));
        Model::noise(config.unwrap(), Kind::BFloat16, Device::Cpu).unwrap()
    }

    #[test]
    fn a_step_reads_weights_once_and_the_cache_of_each_row() {
        // Norms 2 * 8, query, key and value (8 + 4 + 4) * 8 and their bias, output 8 * 8, feed-forward 3 * 12 * 8.
        let layer = 16 + 16 * 8 + 16 + 64 + 288;
        assert_eq!(weight_bytes(&model(false, true)), 2 * (2 * layer + 8 + 50 * 8));
        assert_eq!(weight_bytes(&model(false, false)), 2 * (2 * layer + 8 + 50 * 8));
        assert_eq!(cache_bytes(&model(false, true), 10), 2 * 2 * 10 * 2 * 4);
        assert_eq!(cache_bytes(&model(true, true), 10), 2 * (10 + 3) * 2 * 4);
    }

    #[test]
    fn a_prompt_costs_its_products() {
        let matrices = 2.0 * (16.0 * 8.0 + 64.0 + 288.0);
        let head = 2.0 * 50.0 * 8.0;
        let config = model(true, true);
        // Five tokens see 1 + 2 + 3 + 4 + 5 in one layer and 1 + 2 + 3 + 3 + 3 in the other.
        assert_eq!(prompt_flops(config.config(), 5), 2.0 * 5.0 * matrices + 4.0 * 8.0 * (15.0 + 12.0) + head);
    }
}

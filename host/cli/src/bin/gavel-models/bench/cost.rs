//! What a model must read and compute, by formula.

use gavel_policy::memory::kv_bytes_per_layer;
use gavel_policy::{Model, ModelConfig, PolicyError};

/// The bytes of weights that a decoding step reads: all weights, except an embedding that is not also the head. Of that
/// embedding, it reads a row for each token.
pub fn weight_bytes(model: &Model) -> Result<u64, PolicyError> {
    let tensors = model.named_weights()?.into_iter().chain(model.named_adapters()?);
    let all: usize = tensors.map(|(_, tensor)| tensor.numel() * tensor.kind().elt_size_in_bytes()).sum();
    let config = model.config();
    let embedding = (config.vocab_size * config.hidden_size) as usize * model.kind().elt_size_in_bytes();
    Ok(if config.tie_word_embeddings { all } else { all - embedding } as u64)
}

/// The bytes of keys and values that a decoding step reads for a row of
/// `tokens` tokens.
pub fn cache_bytes(model: &Model, tokens: u64) -> u64 {
    let config = model.config();
    let seen = |layer| window(config, layer).map_or(tokens, |window| tokens.min(window));
    let tokens: u64 = (0..config.num_hidden_layers as usize).map(seen).sum();
    tokens * kv_bytes_per_layer(config, model.kind())
}

/// The floating-point operations of a prompt of `tokens` tokens up to the logits after it:
///
/// - two for each weight of a layer's matrices and each token;
/// - four for each dimension of the query heads and each pair of tokens of which one sees the other;
/// - two for each weight of the head.
///
/// In the last layer, the engine computes only queries, keys and values for the tokens before the last.
pub fn prompt_flops(config: &ModelConfig, tokens: u64) -> f64 {
    let last = config.num_hidden_layers as usize - 1;
    let before = tokens.saturating_sub(1);
    let [_, others] = matrix_flops(config);
    let skipped = others * before as f64 + attention_flops(config, last, before);
    layer_flops(config, tokens) - skipped + head_flops(config)
}

/// The floating-point operations of an update over a group of responses, whose prompt is computed once. The backward
/// pass has twice as many as the forward pass. With `again`, the layers' forward pass counts once more. `responses` are
/// the tokens of each response, the last of which is not read.
pub fn update_flops(config: &ModelConfig, prompt: u64, responses: &[u64], again: bool) -> f64 {
    let shared = layer_flops(config, prompt);
    let own = responses.iter().map(|tokens| layer_flops(config, prompt + tokens - 1) - shared);
    let layers = shared + own.sum::<f64>();
    let head = responses.iter().sum::<u64>() as f64 * head_flops(config);
    3.0 * (layers + head) + if again { layers } else { 0.0 }
}

/// The operations of all layers, for a sequence.
fn layer_flops(config: &ModelConfig, tokens: u64) -> f64 {
    let matrices: f64 = matrix_flops(config).iter().sum();
    let layers = (0..config.num_hidden_layers as usize)
        .map(|layer| matrices * tokens as f64 + attention_flops(config, layer, tokens));
    layers.sum()
}

/// The operations of a layer's matrices, for a token: of the matrices of queries, keys and values, and of the others.
fn matrix_flops(config: &ModelConfig) -> [f64; 2] {
    let heads = config.num_attention_heads * config.head_dim;
    let kv_heads = 2 * config.num_key_value_heads * config.head_dim;
    [heads + kv_heads, heads + 3 * config.intermediate_size].map(|width| 2.0 * (width * config.hidden_size) as f64)
}

/// The operations of a layer's attention, for a sequence.
fn attention_flops(config: &ModelConfig, layer: usize, tokens: u64) -> f64 {
    let n = tokens as f64;
    let window = window(config, layer).map_or(n, |window| n.min(window as f64));
    // The first tokens see fewer than the window.
    let pairs = window * (n - window) + window * (window + 1.0) / 2.0;
    4.0 * (config.num_attention_heads * config.head_dim) as f64 * pairs
}

/// The operations of the head, for a token.
fn head_flops(config: &ModelConfig) -> f64 {
    2.0 * (config.vocab_size * config.hidden_size) as f64
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
        assert_eq!(weight_bytes(&model(false, true)).unwrap(), 2 * (2 * layer + 8 + 50 * 8));
        assert_eq!(weight_bytes(&model(false, false)).unwrap(), 2 * (2 * layer + 8 + 50 * 8));
        assert_eq!(cache_bytes(&model(false, true), 10), 2 * 2 * 10 * 2 * 4);
        assert_eq!(cache_bytes(&model(true, true), 10), 2 * (10 + 3) * 2 * 4);
    }

    #[test]
    fn a_prompt_costs_its_products() {
        let (projections, others) = (2.0 * 16.0 * 8.0, 2.0 * (64.0 + 288.0));
        let matrices = projections + others;
        let head = 2.0 * 50.0 * 8.0;
        let config = model(true, true);
        // Five tokens see 1 + 2 + 3 + 4 + 5 in the first layer; in the last one the fifth sees 3.
        let first = 5.0 * matrices + 4.0 * 8.0 * 15.0;
        let last = 5.0 * projections + others + 4.0 * 8.0 * 3.0;
        assert_eq!(prompt_flops(config.config(), 5), first + last + head);
        assert_eq!(first + last + head, 5280.0 + 2080.0 + 800.0);
        // One token is the last.
        assert_eq!(prompt_flops(config.config(), 1), 2.0 * (matrices + 4.0 * 8.0) + head);
        // Three tokens and, twice, two more; each response has three.
        let layers = 2.0 * 7.0 * matrices + 4.0 * 8.0 * (6.0 + 2.0 * 9.0 + 6.0 + 2.0 * 6.0);
        let update = |again| update_flops(config.config(), 3, &[3, 3], again);
        assert_eq!(update(false), 3.0 * (layers + 6.0 * head));
        assert_eq!(update(true) - update(false), layers);
    }
}

//! Qwen2 in plain loops over doubles, written from the formulas. It shares only
//! the names of the weights with the product.

use gavel_policy::{Model, ModelConfig};
use std::collections::HashMap;

pub struct Reference {
    config: ModelConfig,
    weights: HashMap<String, Vec<f64>>,
}

impl Reference {
    pub fn new(model: &Model) -> Self {
        let named = model.named_weights().unwrap().into_iter();
        let weights = named.map(|(name, weight)| (name, Vec::<f64>::try_from(weight.flatten(0, -1)).unwrap()));
        Self { config: model.config().clone(), weights: weights.collect() }
    }

    fn weight(&self, layer: i64, name: &str) -> &[f64] {
        &self.weights[&format!("model.layers.{layer}.{name}")]
    }

    /// The logits at each position.
    pub fn logits(&self, ids: &[u32]) -> Vec<Vec<f64>> {
        let config = &self.config;
        let hidden = config.hidden_size as usize;
        let embedding = &self.weights["model.embed_tokens.weight"];
        let mut states: Vec<Vec<f64>> =
            ids.iter().map(|&id| embedding[id as usize * hidden..][..hidden].to_vec()).collect();
        for layer in 0..config.num_hidden_layers {
            let normed: Vec<_> =
                states.iter().map(|x| self.norm(x, self.weight(layer, "input_layernorm.weight"))).collect();
            let attended = self.attention(layer, &normed);
            for (x, y) in states.iter_mut().zip(attended) {
                add(x, &matmul(self.weight(layer, "self_attn.o_proj.weight"), &y));
                let normed = self.norm(x, self.weight(layer, "post_attention_layernorm.weight"));
                let gate = matmul(self.weight(layer, "mlp.gate_proj.weight"), &normed);
                let up = matmul(self.weight(layer, "mlp.up_proj.weight"), &normed);
                let inner: Vec<f64> = gate.iter().zip(up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
                add(x, &matmul(self.weight(layer, "mlp.down_proj.weight"), &inner));
            }
        }
        let head = self.weights.get("lm_head.weight").unwrap_or(embedding);
        states.iter().map(|x| matmul(head, &self.norm(x, &self.weights["model.norm.weight"]))).collect()
    }

    fn norm(&self, x: &[f64], weight: &[f64]) -> Vec<f64> {
        let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
        x.iter().zip(weight).map(|(v, w)| v / (mean + self.config.rms_norm_eps).sqrt() * w).collect()
    }

    fn attention(&self, layer: i64, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let width = self.config.head_dim as usize;
        let heads = self.config.num_attention_heads as usize;
        let share = heads / self.config.num_key_value_heads as usize;
        let project = |name: &str, x: &[f64]| {
            let mut out = matmul(self.weight(layer, &format!("self_attn.{name}.weight")), x);
            add(&mut out, self.weight(layer, &format!("self_attn.{name}.bias")));
            out
        };
        let turned = |name: &str| -> Vec<Vec<f64>> {
            inputs.iter().enumerate().map(|(position, x)| self.rotate(&project(name, x), position)).collect()
        };
        let (queries, keys) = (turned("q_proj"), turned("k_proj"));
        let values: Vec<Vec<f64>> = inputs.iter().map(|x| project("v_proj", x)).collect();
        let mut out = vec![vec![0.0; heads * width]; inputs.len()];
        for (time, row) in out.iter_mut().enumerate() {
            for head in 0..heads {
                let (own, shared) = (head * width, head / share * width);
                let scores: Vec<f64> = (0..=time)
                    .map(|t| {
                        dot(&queries[time][own..own + width], &keys[t][shared..shared + width]) / (width as f64).sqrt()
                    })
                    .collect();
                for (t, p) in softmax(&scores).into_iter().enumerate() {
                    (0..width).for_each(|i| row[own + i] += p * values[t][shared + i]);
                }
            }
        }
        out
    }

    fn rotate(&self, x: &[f64], position: usize) -> Vec<f64> {
        let width = self.config.head_dim as usize;
        let half = width / 2;
        let turn = |(index, &value): (usize, &f64)| {
            let i = index % width;
            let angle = position as f64 * self.config.rope_theta.powf(-2.0 * (i % half) as f64 / width as f64);
            let partner = if i < half { -x[index + half] } else { x[index - half] };
            value * angle.cos() + partner * angle.sin()
        };
        x.iter().enumerate().map(turn).collect()
    }
}

pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exp: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let total: f64 = exp.iter().sum();
    exp.into_iter().map(|e| e / total).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn matmul(weight: &[f64], x: &[f64]) -> Vec<f64> {
    weight.chunks(x.len()).map(|row| dot(row, x)).collect()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(a, b)| *a += b);
}

//! How many bytes a language model takes, term by term, from its sizes alone.
//!
//! Autograd keeps what the operations of [`Model::hidden_packed`] save for
//! their backward passes, each tensor once. Letters: `t` tokens, `h` the hidden
//! size, `q` the width of all query heads, `i` the intermediate size, `b` the
//! bytes of a weight.
//!
//! [`Model::hidden_packed`]: crate::Model::hidden_packed

use crate::architecture::Architecture;
use crate::config::ModelConfig;
use crate::lora::{LoraConfig, Module};
use crate::quantization::Quantization;
use tch::{Device, Kind};

/// Bytes of a number of 32 bits.
pub const FLOAT: u64 = 4;

/// The bytes of the keys and values of one token in one layer.
pub fn kv_bytes_per_layer(config: &ModelConfig, kind: Kind) -> u64 {
    2 * size(config.kv_width()) * kind.elt_size_in_bytes() as u64
}

/// The memory that a model takes.
#[derive(Debug, Clone, Copy)]
pub struct Footprint<'a> {
    /// Its sizes.
    pub config: &'a ModelConfig,
    /// The kind of its weights.
    pub kind: Kind,
    /// Where it is.
    pub device: Device,
    /// The parameters of its adapters, in 32 bits, if only these are trained.
    pub adapters: Option<u64>,
}

/// A parameter of the model.
#[derive(Debug, Clone, Copy)]
pub struct ParameterSize {
    /// How many numbers it has.
    pub numbers: u64,
    /// Whether it is in a layer.
    pub is_of_layer: bool,
    /// Whether it has two dimensions.
    pub is_matrix: bool,
}

/// The tokens of a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassShape {
    /// Tokens that pass through the layers.
    pub tokens: u64,
    /// Keys that rows look at. The keys of a prompt count once for each row that follows it.
    pub keys: u64,
    /// Numbers of the attention masks, which layers share; 0 if attention is
    /// only causal.
    pub mask: u64,
}

impl PassShape {
    /// Whole sequences of `tokens` tokens in all, without shared prompts.
    pub fn unshared(tokens: u64) -> Self {
        Self { tokens, keys: tokens, mask: 0 }
    }
}

impl<'a> Footprint<'a> {
    /// The footprint of the model of these sizes, with weights of `kind`, on
    /// `device`.
    pub fn new(config: &'a ModelConfig, kind: Kind, device: Device) -> Self {
        Self { config, kind, device, adapters: None }
    }

    /// The same model with adapters of `adapters` parameters; only these are
    /// trained.
    pub fn with_adapters(self, adapters: u64) -> Self {
        Self { adapters: Some(adapters), ..self }
    }

    /// The parameters that adapters train: `rank · (in + out)` a module, and the head of a classifier or critic.
    pub fn adapters(&self, lora: &LoraConfig) -> u64 {
        let [h, i] = [self.config.hidden_size, self.config.intermediate_size].map(size);
        let (q, kv) = (size(self.config.query_width()), size(self.config.kv_width()));
        let widths = lora.target_modules.iter().map(|module| match module {
            Module::Query | Module::Output => h + q,
            Module::Key | Module::Value => h + kv,
            Module::Gate | Module::Up | Module::Down => h + i,
        });
        let head = self.config.head.labels().map_or(0, |labels| size(labels) * h);
        self.layers() * size(lora.rank) * widths.sum::<u64>() + head
    }

    /// How many weights there are.
    pub fn parameters(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.numbers).sum()
    }

    /// All parameters in the order of an optimiser: first the matrices, then norms and biases.
    pub fn tensors(&self) -> Vec<ParameterSize> {
        let [h, i] = [self.config.hidden_size, self.config.intermediate_size].map(size);
        let (q, kv, head) = (size(self.config.query_width()), size(self.config.kv_width()), size(self.config.head_dim));
        let architecture = self.config.architecture;
        let of_layers = |sizes: Vec<u64>, is_matrix: bool| {
            let all = (0..self.layers()).flat_map(move |_| sizes.clone());
            all.map(move |numbers| ParameterSize { numbers, is_of_layer: true, is_matrix })
        };
        let outside = |numbers: u64, is_matrix: bool| ParameterSize { numbers, is_of_layer: false, is_matrix };
        let output = match self.config.head.labels() {
            Some(labels) => Some(size(labels) * h),
            None => (!self.config.tie_word_embeddings).then(|| self.embedding()),
        };
        let biases = if architecture.has_qkv_bias() { vec![q + 2 * kv] } else { vec![] };
        let head_norms = if architecture.has_qk_norm() { vec![head, head] } else { vec![] };
        let mut all = vec![outside(self.embedding(), true)];
        all.extend(of_layers(vec![(q + 2 * kv) * h, q * h, 2 * i * h, i * h], true));
        all.extend(output.map(|numbers| outside(numbers, true)));
        all.extend(of_layers([vec![h], biases, head_norms, vec![h]].concat(), false));
        all.push(outside(h, false));
        all
    }

    /// The numbers of the largest matrix: the embedding, or gate and up.
    pub fn largest_matrix(&self) -> u64 {
        let [h, i, v] = [self.config.hidden_size, self.config.intermediate_size, self.config.vocab_size].map(size);
        h * v.max(2 * i)
    }

    /// The numbers of the embedding.
    pub fn embedding(&self) -> u64 {
        size(self.config.vocab_size) * size(self.config.hidden_size)
    }

    /// The weights, and adapters beside them.
    pub fn weights(&self) -> u64 {
        self.parameters() * self.bytes() + self.adapters.unwrap_or(0) * FLOAT
    }

    /// The matrices of the layers once more in fewer bits, to draw with, and the head where it is one of them.
    pub fn quantized(&self, quantization: Quantization) -> u64 {
        let [h, i, v] = [self.config.hidden_size, self.config.intermediate_size, self.config.vocab_size].map(size);
        let (q, kv) = (size(self.config.query_width()), size(self.config.kv_width()));
        let matrices = [(q + 2 * kv, h), (h, q), (2 * i, h), (h, i)];
        let of_layer: u64 = matrices.into_iter().map(|(outs, width)| quantization.bytes(outs, width)).sum();
        self.layers() * of_layer + if quantization.includes_head() { quantization.bytes(v, h) } else { 0 }
    }

    /// Keys and values of one token in all layers.
    pub fn cache_per_token(&self) -> u64 {
        self.layers() * kv_bytes_per_layer(self.config, self.kind)
    }

    /// The tensors that a forward pass keeps for its backward pass. They are all that its layers keep or, with
    /// `checkpointing`, the input of each layer, `b·t·h`, and what one layer keeps. Beside that: the masks, the final
    /// norm, the hidden states with their gradient, `3·b·t·h`, and the angles of the rotary embedding, in 32 bits: a
    /// cosine for each pair of a head's numbers and a sine for each number.
    pub fn activations(&self, shape: PassShape, checkpointing: bool) -> u64 {
        let residual = self.bytes() * shape.tokens * size(self.config.hidden_size);
        let layers = match checkpointing {
            true => self.layers() * residual + self.layer(shape),
            false => self.layers() * self.layer(shape),
        };
        let angles = shape.tokens * size(self.config.head_dim) * 3 * FLOAT / 2;
        layers + self.bytes() * shape.mask + self.norm(shape.tokens) + 3 * residual + angles
    }

    /// The tensors that one layer keeps:
    /// - two [norms](Self::norm), and the inputs of the norms of queries and
    ///   keys, if the model has these;
    /// - attention: queries, the result, and the result as a matrix, `3·b·t·q`;
    ///   keys and values for every query head, `2·b·q` for each visible key;
    ///   the normaliser, `4·t` a head;
    /// - the feed-forward block: gate and up, and their product, `3·b·t·i`; the
    ///   gate's activation, `b·t·i`, where they are not [one pass](Self::is_one_pass);
    /// - adapters beside weights of 16 bits: the input of each map in 32 bits,
    ///   `4·t·(2·h + q + i)`.
    pub fn layer(&self, shape: PassShape) -> u64 {
        let (t, b) = (shape.tokens, self.bytes());
        let (q, i) = (size(self.config.query_width()), size(self.config.intermediate_size));
        let wide = match self.adapters {
            Some(_) if self.is_half() => FLOAT * t * (2 * size(self.config.hidden_size) + q + i),
            _ => 0,
        };
        let normaliser = FLOAT * t * size(self.config.num_attention_heads);
        let attention = b * q * (3 * t + 2 * shape.keys) + normaliser;
        let head_norms = match self.config.architecture.has_qk_norm() {
            true => self.norm_input() * t * (q + size(self.config.kv_width())),
            false => 0,
        };
        2 * self.norm(t) + head_norms + attention + self.feed_forward() * b * t * i + wide
    }

    /// The peak of the backward pass through one layer: the gradients of the
    /// product and of gate and up, `3·b·t·i`, and `b·t·i` more if these are not
    /// [one pass](Self::is_one_pass); the gradients of the residual stream,
    /// `2·b·t·h`. By then the [logits](Self::logits) are freed.
    pub fn layer_backward(&self, shape: PassShape) -> u64 {
        let (h, i) = (size(self.config.hidden_size), size(self.config.intermediate_size));
        self.bytes() * shape.tokens * (self.feed_forward() * i + 2 * h)
    }

    /// How many tensors of `t·i` numbers the feed-forward block keeps.
    fn feed_forward(&self) -> u64 {
        if self.is_one_pass() && self.config.architecture != Architecture::Gemma { 3 } else { 4 }
    }

    /// A norm keeps its input and its output, `b·t·h`.
    fn norm(&self, tokens: u64) -> u64 {
        (self.norm_input() + self.bytes()) * tokens * size(self.config.hidden_size)
    }

    /// The bytes that a norm keeps for each number of its input: `b` if it is
    /// one operation, as on a GPU, or [one pass](Self::is_one_pass). In Gemma
    /// it is one operation in 32 bits. Otherwise it also keeps the normalised
    /// input, both in 32 bits.
    fn norm_input(&self) -> u64 {
        match self.config.architecture {
            Architecture::Gemma => FLOAT,
            _ if self.device.is_cuda() || self.is_one_pass() => self.bytes(),
            _ => 2 * FLOAT,
        }
    }

    /// The logits of `tokens` tokens and then, in the same memory, their
    /// gradient, in 32 bits, and once more in `b` bytes if these are fewer.
    pub fn logits(&self, tokens: u64) -> u64 {
        (FLOAT + if self.is_half() { self.bytes() } else { 0 }) * tokens * size(self.config.vocab_size)
    }

    /// Drawing a token for each of `rows`: the logits, the logits in 32 bits,
    /// the logits over the temperature, and probabilities. Truncations (top-k,
    /// top-p, min-p) sort all of them where the most probable are not enough,
    /// which takes nine more numbers of 64 bits.
    pub fn sampling(&self, rows: u64, truncated: bool) -> u64 {
        let sorting = if truncated { 9 * 8 } else { 0 };
        (self.bytes() + 3 * FLOAT + sorting) * rows * size(self.config.vocab_size)
    }

    /// Whether parts of a layer are one pass over memory
    /// ([`gavel_torch::layer`]).
    fn is_one_pass(&self) -> bool {
        self.device == Device::Cpu && self.kind == Kind::Float
    }

    /// How many layers there are.
    pub fn layers(&self) -> u64 {
        size(self.config.num_hidden_layers)
    }

    /// The bytes of a weight.
    pub fn bytes(&self) -> u64 {
        self.kind.elt_size_in_bytes() as u64
    }

    /// Whether weights have 16 bits.
    pub fn is_half(&self) -> bool {
        matches!(self.kind, Kind::BFloat16 | Kind::Half)
    }
}

/// A size of a configuration that was validated.
fn size(value: i64) -> u64 {
    value.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn config(more: &str) -> ModelConfig {
        let json = format!(
            r#"{{"vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8{more}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn weights_are_those_of_the_model() {
        for more in [
            r#","model_type":"qwen2","tie_word_embeddings":true"#,
            r#","model_type":"qwen2","tie_word_embeddings":false"#,
            r#","model_type":"qwen3""#,
            r#","model_type":"llama""#,
            r#","model_type":"gemma""#,
            r#","architectures":["LlamaForSequenceClassification"],"num_labels":1"#,
        ] {
            let config = config(more);
            let model = Model::random(config.clone(), 0, Device::Cpu).unwrap();
            let there: usize = model.parameters().iter().map(|(_, weight)| weight.numel()).sum();
            let footprint = Footprint::new(&config, Kind::BFloat16, Device::Cpu);
            assert_eq!(footprint.parameters(), there as u64, "{more}");
            assert_eq!(footprint.weights(), 2 * there as u64);
        }
    }

    #[test]
    fn adapters_are_those_of_the_model() {
        let config = config(r#","model_type":"qwen2""#);
        for target_modules in [Module::ALL.to_vec(), vec![Module::Key, Module::Down]] {
            let lora = LoraConfig { rank: 3, target_modules, ..Default::default() };
            let model = Model::random(config.clone(), 0, Device::Cpu).unwrap();
            let model = model.adapt(&lora, std::path::Path::new("base"), 0).unwrap();
            let there: usize = model.parameters().iter().map(|(_, weight)| weight.numel()).sum();
            let footprint = Footprint::new(&config, Kind::Float, Device::Cpu);
            assert_eq!(footprint.adapters(&lora), there as u64);
        }
    }

    #[test]
    fn checkpointing_keeps_one_layer_and_less_than_all() {
        let config = config(r#","model_type":"qwen2""#);
        let footprint = Footprint::new(&config, Kind::Float, Device::Cpu);
        let shape = PassShape::unshared(100);
        let saved = footprint.activations(shape, false) - footprint.activations(shape, true);
        // Two of three layers, except the input of each.
        assert_eq!(saved, 2 * footprint.layer(shape) - 3 * 4 * 100 * 16);
    }
}

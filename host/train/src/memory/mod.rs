//! How many bytes the training of a language model takes beside [the model](gavel_policy::memory), from its sizes alone.

mod ranks;
mod step;

pub use ranks::SharedBy;

use crate::batch::tokens_per_chunk;
use crate::optimizer::{OptimizerKind, has_8_bits, is_for_muon};
use gavel_policy::memory::{FLOAT, Footprint, ParameterSize, PassShape};
use gavel_torch::head::CHANGED_AT_A_TIME;
use gavel_torch::optimizer::BLOCK;

/// The memory that a model takes that is trained, on one of the ranks that train it.
#[derive(Debug, Clone, Copy)]
pub struct TrainingFootprint<'a> {
    /// The model's own.
    pub model: Footprint<'a>,
    /// The ranks that share its training state.
    pub ranks: SharedBy,
    /// The optimiser that trains it.
    pub optimizer: OptimizerKind,
}

impl<'a> TrainingFootprint<'a> {
    /// In one process, which has everything, with AdamW.
    pub fn alone(model: Footprint<'a>) -> Self {
        Self { model, ranks: SharedBy::ALONE, optimizer: OptimizerKind::Adamw }
    }

    /// Whether ranks have the weights of layers only while these compute, in an update.
    pub fn is_by_layer(&self) -> bool {
        self.ranks.is_by_layer(&self.model)
    }

    /// The weights in an update: by layer, only a part of them.
    pub fn weights_in_update(&self) -> u64 {
        self.ranks.weights_in_update(&self.model)
    }

    /// Whether the optimiser's state is in host memory between updates, which need the memory of the weights then.
    pub fn optimizer_waits(&self) -> bool {
        self.is_by_layer() && self.model.device.is_cuda()
    }

    /// The state of the optimiser, such as AdamW's two running means, and a master copy in 32 bits of a parameter that has
    /// 16 bits. Several ranks share them.
    pub fn optimizer(&self) -> u64 {
        if self.model.adapters.is_some() {
            return self.optimizer_of_adapters();
        }
        let master = if self.model.is_half() { FLOAT } else { 0 };
        let bytes = |tensor: &ParameterSize| tensor.numbers * master + state(self.optimizer, tensor);
        self.ranks.most_of_a_rank(&self.model, bytes)
    }

    /// The same of adapters, which are matrices of layers, and of the head of a classifier or critic. Running means of
    /// 8 bits are counted as if they had 32: many adapters are too small for them.
    fn optimizer_of_adapters(&self) -> u64 {
        let own = self.ranks.own(&self.model);
        let config = self.model.config;
        let head = config.head.labels().map_or(0, |labels| labels as u64 * config.hidden_size as u64);
        match self.optimizer {
            OptimizerKind::Muon => (own + head.min(own)) * FLOAT,
            OptimizerKind::Adamw | OptimizerKind::Adamw8Bit => 2 * own * FLOAT,
        }
    }

    /// The gradients, which are summed in 32 bits, and the gradient of the
    /// largest matrix once more, as it exists before it is added.
    pub fn gradients(&self) -> u64 {
        match self.model.adapters {
            Some(adapters) => adapters * FLOAT,
            None if self.ranks.ranks > 1 => self.ranks.gradients(&self.model),
            None => self.model.parameters() * FLOAT + self.model.largest_matrix() * self.model.bytes(),
        }
    }

    /// A copy of the parameters that are trained, as the policy before a step: adapters have 32 bits.
    pub fn copy_of_trained(&self) -> u64 {
        self.model.adapters.map_or(self.model.weights(), |adapters| adapters * FLOAT)
    }

    /// How many of the `learned` tokens of a micro-batch have their logits at a time.
    pub fn tokens_at_a_time(&self, learned: u64) -> u64 {
        learned.min(tokens_per_chunk(self.model.config, self.model.device) as u64).max(1)
    }

    /// What the whole distributions of a distillation take, of which as many exist at a time as logits.
    pub fn distributions(&self, learned: u64) -> u64 {
        DISTRIBUTIONS * FLOAT * self.tokens_at_a_time(learned) * self.model.config.vocab_size as u64
    }

    /// What the backward pass of a micro-batch of this shape, of which `learned` tokens are learned from, takes beside
    /// its [activations](Footprint::activations): the logits of some tokens or, after these, the gradients inside a layer.
    pub fn backward(&self, shape: PassShape, learned: u64) -> u64 {
        self.model.logits(self.tokens_at_a_time(learned)).max(self.model.layer_backward(shape))
    }
}

/// How many numbers of 32 bits a distillation has for each token of the vocabulary at its most: the log-probabilities, the
/// same without the teacher's tokens, and the gradients of both as they are made.
const DISTRIBUTIONS: u64 = 6;

/// How the logits of a token are changed in an update, at their most.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangedLogits {
    /// The tokens in the list of its mask.
    pub kept: u64,
    /// The tokens before it that are penalised.
    pub penalised: u64,
}

impl ChangedLogits {
    /// What the changes of `tokens`, whose logits exist at a time, take beside these.
    pub fn bytes(&self, tokens: u64) -> u64 {
        let place = 8;
        let of_mask = self.kept * (place + FLOAT);
        // The logit, the penalty, their comparison, quotient and product, and which of the two it is.
        let of_penalties = self.penalised * (5 * FLOAT + 1);
        let forward = tokens.min(CHANGED_AT_A_TIME as u64) * of_mask.max(of_penalties);
        // The gradient, before and after.
        let backward = tokens * self.penalised * 2 * FLOAT;
        // A place and a derivative wait for the backward pass.
        tokens * self.penalised * (place + FLOAT) + forward.max(backward)
    }
}

/// The bytes of an optimiser's state of a parameter.
fn state(optimizer: OptimizerKind, parameter: &ParameterSize) -> u64 {
    let numbers = parameter.numbers;
    match optimizer {
        OptimizerKind::Adamw8Bit if has_8_bits(numbers as usize) => 2 * (numbers + numbers / BLOCK as u64 * FLOAT),
        OptimizerKind::Muon if is_for_muon(parameter.is_of_layer, parameter.is_matrix) => numbers * FLOAT,
        _ => 2 * numbers * FLOAT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::tests::held;
    use crate::optimizer::{Optimizer, OptimizerConfig};
    use gavel_policy::{Device, Kind, LoraConfig, Model, ModelConfig, Module};

    fn config(more: &str) -> ModelConfig {
        let json = format!(
            r#"{{"vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8{more}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn numbers(model: &Model) -> u64 {
        model.parameters().iter().map(|(_, weight)| weight.numel() as u64).sum()
    }

    #[test]
    fn the_optimiser_has_three_numbers_for_a_parameter_of_16_bits() {
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
            let half = Footprint::new(&config, Kind::BFloat16, Device::Cpu);
            assert_eq!(TrainingFootprint::alone(half).optimizer(), 12 * numbers(&model), "{more}");
        }
    }

    #[test]
    fn muon_has_one_number_for_a_parameter_of_adapters_but_two_for_the_head() {
        for (more, head) in [("", 0), (r#","architectures":["Qwen2ForSequenceClassification"],"num_labels":2"#, 2 * 16)]
        {
            let config = config(&format!(r#","model_type":"qwen2"{more}"#));
            let lora = LoraConfig { rank: 3, ..Default::default() };
            let model = Model::random(config.clone(), 0, Device::Cpu).unwrap();
            let adapted = model.adapt(&lora, std::path::Path::new("base"), 0).unwrap();
            let model = Footprint::new(&config, Kind::Float, Device::Cpu).with_adapters(numbers(&adapted));
            let footprint = TrainingFootprint { optimizer: OptimizerKind::Muon, ..TrainingFootprint::alone(model) };
            let optimizer = OptimizerConfig { kind: OptimizerKind::Muon, ..OptimizerConfig::default() };
            let optimizer = Optimizer::new(adapted.parameters(), optimizer).unwrap();
            let [_, state, _] = held(&optimizer);
            assert_eq!(footprint.optimizer(), state as u64);
            assert_eq!(state as u64, 4 * (numbers(&adapted) + head));
        }
    }

    #[test]
    fn the_optimiser_has_two_numbers_for_a_parameter_of_adapters() {
        let config = config(r#","model_type":"qwen2""#);
        for target_modules in [Module::ALL.to_vec(), vec![Module::Key, Module::Down]] {
            let lora = LoraConfig { rank: 3, target_modules, ..Default::default() };
            let model = Model::random(config.clone(), 0, Device::Cpu).unwrap();
            let adapted = model.adapt(&lora, std::path::Path::new("base"), 0).unwrap();
            let footprint = Footprint::new(&config, Kind::Float, Device::Cpu).with_adapters(numbers(&adapted));
            assert_eq!(TrainingFootprint::alone(footprint).optimizer(), 8 * numbers(&adapted));
        }
    }

    #[test]
    fn a_copy_of_what_is_trained_has_its_dtype() {
        let config = config(r#","model_type":"qwen2""#);
        let bytes = |model: &Model| -> u64 {
            let bytes =
                |(_, weight): &(String, tch::Tensor)| (weight.numel() * weight.kind().elt_size_in_bytes()) as u64;
            model.parameters().iter().map(bytes).sum()
        };
        for kind in [Kind::BFloat16, Kind::Float] {
            let model = Model::random(config.clone(), 0, Device::Cpu).unwrap().to_kind(kind).unwrap();
            let footprint = Footprint::new(&config, kind, Device::Cpu);
            assert_eq!(TrainingFootprint::alone(footprint).copy_of_trained(), bytes(&model), "{kind:?}");
            let adapted = model.adapt(&LoraConfig::default(), std::path::Path::new("base"), 0).unwrap();
            let footprint = footprint.with_adapters(numbers(&adapted));
            assert_eq!(TrainingFootprint::alone(footprint).copy_of_trained(), bytes(&adapted), "{kind:?}");
        }
    }
}

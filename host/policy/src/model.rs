//! The language model: its weights, and operations on all of them.

use crate::config::{Head, ModelConfig};
use crate::error::{PolicyError, Result};
use crate::layer::Layer;
use crate::linear::Linear;
use crate::lora::adapter::Adapter;
use crate::lora::sizes::{Adapted, Sizes};
use crate::quantization::Quantized;
use crate::rotary::Rotary;
use std::hash::{DefaultHasher, Hash, Hasher};
use tch::{Device, Kind, Tensor};

/// A language model, or a classifier or critic made from one.
pub struct Model {
    pub(crate) config: ModelConfig,
    pub(crate) kind: Kind,
    pub(crate) device: Device,
    /// `[vocab, hidden]`
    pub(crate) embedding: Tensor,
    pub(crate) layers: Vec<Layer>,
    /// `[hidden]`
    pub(crate) norm: Tensor,
    /// `[vocab, hidden]`, or `[labels, hidden]` of a classifier or critic; `None` if the embedding serves as the head.
    pub(crate) head: Option<Tensor>,
    /// The bias of a critic's head: `[labels]`.
    pub(crate) head_bias: Option<Tensor>,
    /// The head of a language model in fewer bits, which gives the logits where the model only draws.
    pub(crate) quantized_head: Option<Quantized>,
    pub(crate) rotary: Rotary,
    /// The settings of the adapters, if the model has any.
    pub(crate) adapted: Option<Adapted>,
}

impl Model {
    /// A model whose weights are all 0 and need no gradient.
    pub(crate) fn zeros(config: ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        let zeros = |shape: &[i64]| Tensor::f_zeros(shape, (kind, device));
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let rotary_kind = if kind == Kind::Double { Kind::Double } else { Kind::Float };
        let head_rows = match config.head.labels() {
            Some(labels) => Some(labels),
            None if config.tie_word_embeddings => None,
            None => Some(vocab),
        };
        Ok(Self {
            embedding: zeros(&[vocab, hidden])?,
            layers: (0..config.num_hidden_layers)
                .map(|_| Layer::zeros(&config, kind, device))
                .collect::<Result<_>>()?,
            norm: zeros(&[hidden])?,
            head: match head_rows {
                Some(rows) => Some(zeros(&[rows, hidden])?),
                None => None,
            },
            head_bias: match config.head {
                Head::Values { labels } => Some(zeros(&[labels])?),
                Head::LanguageModel | Head::Scores { .. } => None,
            },
            quantized_head: None,
            rotary: Rotary::new(&config, rotary_kind, device)?,
            config,
            kind,
            device,
            adapted: None,
        })
    }

    /// The sizes of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The dtype of the weights.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The tensors that training changes, with their names, always in the same order. They are all weights or, with
    /// adapters, only the adapters and the head of a classifier or critic, which is usually new. They share their
    /// memory with the model. The names are Hugging Face's, except for the fused matrices: `self_attn.qkv_proj` holds
    /// the rows of `q_proj`, `k_proj` and `v_proj`, and `mlp.gate_up_proj` holds the rows of `gate_proj` and `up_proj`.
    /// Norms and biases have one dimension.
    pub fn parameters(&self) -> Vec<(String, Tensor)> {
        if self.is_adapted() { self.adapters().into_iter().chain(self.own_head()).collect() } else { self.weights() }
    }

    /// Overwrites the [`parameters`](Self::parameters) with `from`, the parameters of a model of the same
    /// configuration, maybe on another device.
    pub fn set_parameters(&self, from: &[(String, Tensor)]) -> Result<()> {
        let own = self.parameters();
        check_alike(&own, from)?;
        let _guard = tch::no_grad_guard();
        for ((_, mut own), (_, from)) in own.into_iter().zip(from) {
            own.f_copy_(from)?;
        }
        Ok(())
    }

    /// Does `work` with `other` in place of the [`parameters`](Self::parameters). `other` comes from a model of the
    /// same configuration, kind and device. No memory is copied.
    pub fn with_parameters<R>(&self, other: &[(String, Tensor)], work: impl FnOnce(&Self) -> R) -> Result<R> {
        let own = self.parameters();
        check_alike(&own, other)?;
        let exchange = |with: &mut dyn Iterator<Item = &Tensor>| {
            let _guard = tch::no_grad_guard();
            own.iter().zip(with).try_for_each(|((_, own), with)| own.shallow_clone().f_set_data(with))
        };
        let kept = own.iter().map(|(_, own)| own.f_detach()).collect::<std::result::Result<Vec<_>, _>>()?;
        let put = exchange(&mut other.iter().map(|(_, other)| other));
        let done = put.map(|()| work(self));
        exchange(&mut kept.iter())?;
        Ok(done?)
    }

    /// The weights without adapters.
    pub(crate) fn weights(&self) -> Vec<(String, Tensor)> {
        let mut all = vec![("model.embed_tokens.weight".to_owned(), self.embedding.shallow_clone())];
        for (index, layer) in self.layers.iter().enumerate() {
            let named = layer.weights().into_iter();
            all.extend(named.map(|(name, tensor)| (format!("model.layers.{index}.{name}"), tensor.shallow_clone())));
        }
        all.push(("model.norm.weight".to_owned(), self.norm.shallow_clone()));
        if self.config.head == Head::LanguageModel {
            all.extend(self.head.as_ref().map(|weight| ("lm_head.weight".to_owned(), weight.shallow_clone())));
        }
        all.extend(self.own_head());
        all
    }

    /// A number that changes when weights or adapters move to other memory.
    pub(crate) fn addresses(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let layers = self.layers.iter().flat_map(|layer| layer.weights().into_iter().map(|(_, weight)| weight));
        let whole = [&self.embedding, &self.norm].into_iter().chain(&self.head).chain(layers);
        whole.for_each(|weight| weight.data_ptr().hash(&mut hasher));
        self.adapters().iter().for_each(|(_, weight)| weight.data_ptr().hash(&mut hasher));
        let quantized = self.layers.iter().flat_map(Layer::linears).filter_map(|linear| linear.quantized.as_ref());
        quantized.flat_map(Quantized::tensors).for_each(|tensor| tensor.data_ptr().hash(&mut hasher));
        hasher.finish()
    }

    /// The head of a classifier or critic; empty for a language model.
    pub(crate) fn own_head(&self) -> Vec<(String, Tensor)> {
        if self.config.head == Head::LanguageModel {
            return Vec::new();
        }
        let named = |name: &str, tensor: &Tensor| (name.to_owned(), tensor.shallow_clone());
        let weight = self.head.as_ref().map(|weight| named("score.weight", weight));
        weight.into_iter().chain(self.head_bias.as_ref().map(|bias| named("score.bias", bias))).collect()
    }

    /// Every weight except adapters, with its name and shape in a Hugging Face
    /// checkpoint. They share their memory with the model and carry no
    /// gradient.
    pub fn named_weights(&self) -> Result<Vec<(String, Tensor)>> {
        let mut all = Vec::new();
        for (name, tensor) in self.weights() {
            all.extend(self.parts(&name, &tensor.f_detach()?)?);
        }
        Ok(all)
    }

    /// The tensors of a Hugging Face checkpoint that one of
    /// [`parameters`](Self::parameters) holds. They are parts of `tensor`: the
    /// value of the parameter, or a tensor of the same shape, such as its
    /// gradient.
    pub fn parts(&self, name: &str, tensor: &Tensor) -> Result<Vec<(String, Tensor)>> {
        let Some((linear, what)) = self.fused(name) else {
            return Ok(vec![(name.to_owned(), tensor.shallow_clone())]);
        };
        let mut start = 0;
        let parts = linear.parts(what).into_iter().filter(|(_, rows)| *rows > 0).map(|(module, rows)| {
            let piece = tensor.f_narrow(0, start, rows)?;
            start += rows;
            Ok((name.replace(linear.name, module.path()), piece))
        });
        parts.collect()
    }

    /// The linear map of several modules that the tensor `name` belongs to, and
    /// which tensor of the map it is.
    fn fused<'a>(&self, name: &'a str) -> Option<(&Linear, &'a str)> {
        let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
        let linears = self.layers.get(layer.parse::<usize>().ok()?)?.linears();
        let fused = linears.into_iter().filter(|linear| linear.modules.len() > 1);
        fused.filter_map(|linear| Some((linear, rest.strip_prefix(linear.name)?.strip_prefix('.')?))).next()
    }

    /// A copy in new memory, without gradients, such as the frozen reference of
    /// a KL penalty.
    pub fn try_clone(&self) -> Result<Self> {
        self.copy(self.kind)
    }

    /// A trainable copy with weights of another dtype.
    pub fn to_kind(&self, kind: Kind) -> Result<Self> {
        let copy = self.copy(kind)?;
        copy.train_all(true)?;
        Ok(copy)
    }

    fn copy(&self, kind: Kind) -> Result<Self> {
        let mut copy = Self::zeros(self.config.clone(), kind, self.device)?;
        if let Some(adapted) = &self.adapted {
            copy.put_adapters(&self.adapter_sizes(), adapted.clone())?;
        }
        self.copy_to(&mut copy)?;
        Ok(copy)
    }

    /// Overwrites the weights and adapters of `other`, a model of the same
    /// configuration.
    pub fn copy_to(&self, other: &mut Model) -> Result<()> {
        let rslora = |model: &Model| model.adapted.as_ref().map(|adapted| adapted.rslora);
        let alike = self.adapter_sizes() == other.adapter_sizes() && rslora(self) == rslora(other);
        if self.config != other.config || !alike {
            return Err(PolicyError::Input(
                "weights can only be copied between models of the same configuration".into(),
            ));
        }
        let _guard = tch::no_grad_guard();
        let all = |model: &Model| model.weights().into_iter().chain(model.adapters());
        for ((_, from), (_, mut to)) in all(self).zip(all(other)) {
            to.f_copy_(&from)?;
        }
        Ok(())
    }

    /// Turns gradients of the [`parameters`](Self::parameters) on or off.
    pub(crate) fn train_all(&self, on: bool) -> Result<()> {
        for (_, tensor) in self.parameters() {
            let _ = tensor.f_set_requires_grad(on)?;
        }
        Ok(())
    }

    /// Whether the model has adapters. If so, only these are trained.
    pub fn is_adapted(&self) -> bool {
        self.adapted.is_some()
    }

    /// The tensors of the adapters, with their names. `lora_A` of modules that
    /// read the same input is one tensor, like their weights.
    pub(crate) fn adapters(&self) -> Vec<(String, Tensor)> {
        let mut all = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            for linear in layer.linears() {
                let tensors = linear.adapter.iter().flat_map(|adapter| adapter.tensors(linear.name));
                all.extend(tensors.map(|(name, tensor)| (format!("model.layers.{index}.{name}"), tensor)));
            }
        }
        all
    }

    pub(crate) fn adapter_sizes(&self) -> Sizes {
        let layers = self.layers.iter().enumerate();
        let linears = layers.flat_map(|(index, layer)| layer.linears().map(|linear| (index, linear)));
        let sizes = linears.flat_map(|(index, linear)| {
            let sizes = linear.adapter.iter().flat_map(Adapter::sizes);
            sizes.map(move |(module, size)| ((index, module), size))
        });
        sizes.collect()
    }

    /// Puts adapters of these sizes on the model, all 0.
    pub(crate) fn put_adapters(&mut self, sizes: &Sizes, adapted: Adapted) -> Result<()> {
        for (index, layer) in self.layers.iter_mut().enumerate() {
            for linear in layer.linears_mut() {
                let size = |module| sizes.get(&(index, module)).copied();
                linear.adapter = Adapter::zeros(&linear.modules, &linear.weight, size, adapted.rslora)?;
            }
        }
        self.adapted = Some(adapted);
        Ok(())
    }
}

/// Refuses parameters with other names or sizes.
fn check_alike(own: &[(String, Tensor)], other: &[(String, Tensor)]) -> Result<()> {
    let alike = |((name, own), (other_name, other)): (&(String, Tensor), &(String, Tensor))| {
        name == other_name && own.size() == other.size()
    };
    match own.len() == other.len() && own.iter().zip(other).all(alike) {
        true => Ok(()),
        false => Err(PolicyError::Input("weights can only be copied between models of the same configuration".into())),
    }
}

//! The language model: its weights and what can be done with them as a whole.

use crate::config::{Head, ModelConfig};
use crate::error::{PolicyError, Result};
use crate::layer::Layer;
use crate::linear::Linear;
use crate::lora::adapter::Adapter;
use crate::lora::sizes::{Adapted, Sizes};
use crate::rotary::Rotary;
use tch::{Device, Kind, Tensor};

/// A language model, or a classifier or critic made of one.
pub struct Model {
    pub(crate) config: ModelConfig,
    pub(crate) kind: Kind,
    pub(crate) device: Device,
    /// `[vocab, hidden]`
    pub(crate) embedding: Tensor,
    pub(crate) layers: Vec<Layer>,
    /// `[hidden]`
    pub(crate) norm: Tensor,
    /// `[vocab, hidden]`, or `[labels, hidden]` of a classifier or critic; absent where
    /// the embedding serves as the head.
    pub(crate) head: Option<Tensor>,
    /// `[labels]`, of a critic.
    pub(crate) head_bias: Option<Tensor>,
    pub(crate) rotary: Rotary,
    /// Of a model with adapters.
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
            rotary: Rotary::new(&config, rotary_kind, device)?,
            config,
            kind,
            device,
            adapted: None,
        })
    }

    /// The sizes.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Where the weights lie.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The kind of number that the weights are.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The tensors that training changes, with their names, always in the same
    /// order; they share their memory with the model: all weights or, of a model
    /// with adapters, these alone. The names are those of Hugging Face, save for
    /// the fused matrices: `self_attn.qkv_proj` holds the rows of `q_proj`,
    /// `k_proj` and `v_proj`, `mlp.gate_up_proj` those of `gate_proj` and
    /// `up_proj`. Norms and biases have one dimension.
    pub fn parameters(&self) -> Vec<(String, Tensor)> {
        if self.is_adapted() { self.adapters() } else { self.weights() }
    }

    /// Overwrites the [`parameters`](Self::parameters) with `from`, those of a model of the same configuration, which
    /// may be on another device.
    pub fn set_parameters(&self, from: &[(String, Tensor)]) -> Result<()> {
        let own = self.parameters();
        check_alike(&own, from)?;
        let _guard = tch::no_grad_guard();
        for ((_, mut own), (_, from)) in own.into_iter().zip(from) {
            own.f_copy_(from)?;
        }
        Ok(())
    }

    /// Does `work` as if [`parameters`](Self::parameters) were `other`, those of a model of the same configuration, kind
    /// and device. No memory is copied.
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

    /// The weights that adapters stand beside.
    fn weights(&self) -> Vec<(String, Tensor)> {
        let mut all = vec![("model.embed_tokens.weight".to_owned(), self.embedding.shallow_clone())];
        for (index, layer) in self.layers.iter().enumerate() {
            let named = layer.weights().into_iter();
            all.extend(named.map(|(name, tensor)| (format!("model.layers.{index}.{name}"), tensor.shallow_clone())));
        }
        all.push(("model.norm.weight".to_owned(), self.norm.shallow_clone()));
        let head = if self.config.head == Head::LanguageModel { "lm_head.weight" } else { "score.weight" };
        all.extend(self.head.as_ref().map(|weight| (head.to_owned(), weight.shallow_clone())));
        all.extend(self.head_bias.as_ref().map(|bias| ("score.bias".to_owned(), bias.shallow_clone())));
        all
    }

    /// Every weight by its name and with its shape in a Hugging Face
    /// checkpoint, without adapters. They share their memory with the model and
    /// carry no gradient.
    pub fn named_weights(&self) -> Result<Vec<(String, Tensor)>> {
        let mut all = Vec::new();
        for (name, tensor) in self.weights() {
            all.extend(self.parts(&name, &tensor.f_detach()?)?);
        }
        Ok(all)
    }

    /// The tensors of a Hugging Face checkpoint that one of
    /// [`parameters`](Self::parameters) holds; `tensor` is its value, or
    /// something of the same shape, such as its gradient, of which they are
    /// parts.
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
    /// what of it that is.
    fn fused<'a>(&self, name: &'a str) -> Option<(&Linear, &'a str)> {
        let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
        let linears = self.layers.get(layer.parse::<usize>().ok()?)?.linears();
        let fused = linears.into_iter().filter(|linear| linear.modules.len() > 1);
        fused.filter_map(|linear| Some((linear, rest.strip_prefix(linear.name)?.strip_prefix('.')?))).next()
    }

    /// A copy of its own, without gradients, such as the frozen reference of a
    /// KL penalty.
    pub fn try_clone(&self) -> Result<Self> {
        self.copy(self.kind)
    }

    /// A trainable copy with weights of another kind.
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

    /// Overwrites the weights of `other`, and its adapters, a model of the same
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

    /// Whether gradients are kept for the [`parameters`](Self::parameters).
    pub(crate) fn train_all(&self, on: bool) -> Result<()> {
        for (_, tensor) in self.parameters() {
            let _ = tensor.f_set_requires_grad(on)?;
        }
        Ok(())
    }

    /// Whether the model has adapters, which alone are then trained.
    pub fn is_adapted(&self) -> bool {
        self.adapted.is_some()
    }

    /// The tensors of the adapters, with their names. `lora_A` of modules that
    /// read the same input is one tensor, as their weights are.
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

//! `adapter_config.json`, as PEFT writes it.

use super::module::Module;
use super::sizes::{Size, Sizes};
use crate::config::Head;
use crate::error::{PolicyError, Result};
use crate::json_file;
use crate::tensor_file::io;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

const FILE: &str = "adapter_config.json";
/// PEFT's names of the tasks whose models have a head of their own.
const SCORES: &str = "SEQ_CLS";
const VALUES: &str = "TOKEN_CLS";
/// The names of such a head. PEFT writes both, and models of the supported families have the first.
const HEADS: [&str; 2] = ["score", "classifier"];

/// Keys that repeat what the tensors have, or do not affect the computation.
/// (Dropout affects training only, and Gavel trains without it.)
const SILENT: [&str; 13] = [
    "auto_mapping",
    "peft_version",
    "revision",
    "inference_mode",
    "r",
    "rank_pattern",
    "target_modules",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "lora_dropout",
    "megatron_core",
    "qalora_group_size",
];

/// Initialisations that leave the weights of the base as they are.
const INITIALISATIONS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// The settings of such a file beyond its tensors, which give the modules and
/// the ranks.
#[derive(Debug, Deserialize)]
pub(crate) struct AdapterConfigFile {
    peft_type: Option<String>,
    /// `SEQ_CLS` for a classifier, `TOKEN_CLS` for a critic.
    task_type: Option<String>,
    /// Modules that are trained whole.
    modules_to_save: Option<Vec<String>>,
    pub(crate) base_model_name_or_path: Option<PathBuf>,
    lora_alpha: Option<f64>,
    use_rslora: Option<bool>,
    /// Alphas by name; the first match counts.
    alpha_pattern: Option<Map<String, Value>>,
    bias: Option<String>,
    #[serde(default)]
    init_lora_weights: Value,
    /// How `eva` initialised.
    #[serde(default, rename = "eva_config")]
    _eva_config: Value,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl AdapterConfigFile {
    /// The file in the folder `dir`.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A key asks for something that is computed in another way; the error
    /// names it.
    pub(crate) fn load(dir: &Path) -> Result<Self> {
        let path = Self::path(dir);
        let text = json_file::read(&path)?;
        let wrong = |what: String| PolicyError::Checkpoint { path: path.clone(), what };
        let config: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        config.check().map_err(wrong)?;
        Ok(config)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let refused = |key: &str, value: &Value, only: &str| Err(format!("`{key}` {value} is not supported; {only}"));
        if self.peft_type.as_deref() != Some("LORA") {
            return refused("peft_type", &json!(self.peft_type), "only \"LORA\" is");
        }
        if self.bias.as_deref().is_some_and(|bias| bias != "none") {
            return refused("bias", &json!(self.bias), "only \"none\" is");
        }
        match &self.init_lora_weights {
            Value::Null | Value::Bool(_) => {}
            Value::String(name) if INITIALISATIONS.contains(&name.as_str()) => {}
            other => {
                return refused(
                    "init_lora_weights",
                    other,
                    "it changes the weights of the base: merge the adapter with PEFT, or convert it to plain LoRA there",
                );
            }
        }
        let others =
            |names: &&Vec<String>| !self.has_head() || names.iter().any(|name| !HEADS.contains(&name.as_str()));
        if let Some(names) = self.modules_to_save.as_ref().filter(|names| !names.is_empty()).filter(others) {
            return refused("modules_to_save", &json!(names), "only the head of a classifier is");
        }
        if let Some(key) = self.alpha_pattern.iter().flatten().map(|(key, _)| key).find(|key| is_expression(key)) {
            return refused("alpha_pattern", &json!(key), "only names of modules are, not regular expressions");
        }
        if let Some((_, alpha)) = self.alpha_pattern.iter().flatten().find(|(_, alpha)| !alpha.is_number()) {
            return refused("alpha_pattern", alpha, "only numbers are");
        }
        let off = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(values) => values.is_empty(),
            Value::Object(values) => values.is_empty(),
            _ => false,
        };
        match self.others.iter().find(|(key, value)| !SILENT.contains(&key.as_str()) && !off(value)) {
            Some((key, value)) => refused(key, value, "only plain LoRA of the layers' linear maps is"),
            None => Ok(()),
        }
    }

    /// Whether the adapter comes with the head of a classifier or critic.
    fn has_head(&self) -> bool {
        matches!(self.task_type.as_deref(), Some(SCORES | VALUES))
    }

    /// The head of the model with the adapter, whose base has `base`; `labels` are the rows of the head that the adapter
    /// has, if any.
    pub(crate) fn head(&self, base: Head, labels: Option<i64>) -> Head {
        match (self.task_type.as_deref(), labels) {
            (Some(SCORES), Some(labels)) => Head::Scores { labels },
            (Some(VALUES), Some(labels)) => Head::Values { labels },
            _ => base,
        }
    }

    pub(crate) fn rslora(&self) -> bool {
        self.use_rslora.unwrap_or(false)
    }

    /// The alpha of the module of this name, such as
    /// `model.layers.0.self_attn.q_proj`; PEFT's default is 8.
    pub(crate) fn alpha(&self, module: &str) -> f64 {
        let is_named = |key: &str| module.strip_suffix(key).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let own = self.alpha_pattern.iter().flatten().find(|(key, _)| is_named(key));
        let own = own.and_then(|(_, alpha)| alpha.as_f64());
        own.or(self.lora_alpha).unwrap_or(8.0)
    }

    /// Writes the file of adapters of these sizes, of a model with `head`, into the folder `dir`.
    pub(crate) fn save(dir: &Path, base: &Path, rslora: bool, head: Head, layers: usize, sizes: &Sizes) -> Result<()> {
        let path = Self::path(dir);
        let named = named(sizes, layers);
        let Some(&(_, usual)) = named.first() else {
            return Err(PolicyError::Checkpoint { path, what: "there is no adapter to save".into() });
        };
        // Whole numbers are written as such, which is what PEFT and vLLM expect.
        let number = |alpha: f64| if alpha.fract() == 0.0 { json!(alpha as i64) } else { json!(alpha) };
        let unusual = |value: &dyn Fn(Size) -> Value| -> Map<String, Value> {
            let others = named.iter().filter(|(_, size)| value(*size) != value(usual));
            others.map(|(name, size)| (name.clone(), value(*size))).collect()
        };
        let (task, saved) = match head {
            Head::LanguageModel => ("CAUSAL_LM", Value::Null),
            Head::Scores { .. } => (SCORES, json!([HEADS[0]])),
            Head::Values { .. } => (VALUES, json!([HEADS[0]])),
        };
        let config = json!({
            "peft_type": "LORA",
            "task_type": task,
            "base_model_name_or_path": base,
            "r": usual.rank,
            "lora_alpha": number(usual.alpha),
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": named.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "use_rslora": rslora,
            "rank_pattern": unusual(&|size| json!(size.rank)),
            "alpha_pattern": unusual(&|size| number(size.alpha)),
            "modules_to_save": saved,
            "fan_in_fan_out": false,
            "init_lora_weights": true,
            "inference_mode": true,
        });
        std::fs::write(&path, format!("{config:#}\n")).map_err(io("write", &path))
    }
}

/// Whether a key of a pattern is more than a name. (PEFT reads it as a regular
/// expression, in which a dot also matches a dot.)
fn is_expression(key: &str) -> bool {
    key.contains(|char: char| !(char.is_alphanumeric() || char == '_' || char == '.'))
}

/// The sizes by the names under which PEFT finds the modules: the module's own
/// name if the size is the same in all layers, else the name with its layer.
fn named(sizes: &Sizes, layers: usize) -> Vec<(String, Size)> {
    let mut all = Vec::new();
    for module in Module::ALL {
        let own: Vec<_> = sizes.iter().filter(|((_, other), _)| *other == module).collect();
        match own.first() {
            Some((_, first)) if own.len() == layers && own.iter().all(|(_, size)| size == first) => {
                all.push((module.name().to_owned(), **first));
            }
            _ => all.extend(
                own.iter().map(|((layer, _), size)| (format!("model.layers.{layer}.{}", module.path()), **size)),
            ),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_alpha_that_fits_counts() {
        let text = r#"{"lora_alpha": 1, "alpha_pattern": {"q_proj": 4, "model.layers.0.self_attn.q_proj": 8,
                       "model.layers.0.mlp.up_proj": 5, "up_proj": 6}}"#;
        let config: AdapterConfigFile = serde_json::from_str(text).unwrap();
        let alphas = [
            ("model.layers.0.self_attn.q_proj", 4.0),
            ("model.layers.0.mlp.up_proj", 5.0),
            ("model.layers.1.mlp.up_proj", 6.0),
            ("model.layers.1.mlp.down_proj", 1.0),
        ];
        alphas.iter().for_each(|(module, alpha)| assert_eq!(config.alpha(module), *alpha, "{module}"));
    }
}

//! The configuration of the adapters to train.

use super::module::Module;
use crate::error::{PolicyError, Result};
use serde::{Deserialize, Serialize};

/// The adapters to train. There is no dropout: with dropout, the policy in training would differ from the policy that
/// wrote the responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoraConfig {
    /// The rank of B·A; 16 by default.
    pub rank: i64,
    /// The factor of B·A is `alpha / rank`; 32 by default, as in TRL. With it
    /// the best learning rate hardly depends on the rank (Schulman et al.,
    /// "LoRA Without Regret", 2025).
    pub alpha: f64,
    /// The modules that get an adapter; by default `"all-linear"`, which is all
    /// seven.
    #[serde(deserialize_with = "modules")]
    #[schemars(with = "ModulesForm", extend("default" = "all-linear"))]
    pub target_modules: Vec<Module>,
    /// Whether the factor is `alpha / sqrt(rank)` (rank-stabilised LoRA,
    /// arXiv:2312.03732); `false` by default.
    pub rslora: bool,
}

impl Default for LoraConfig {
    fn default() -> Self {
        Self { rank: 16, alpha: 32.0, target_modules: Module::ALL.to_vec(), rslora: false }
    }
}

impl LoraConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        if !(1..=65_536).contains(&self.rank) {
            return wrong(format!("`rank` must be from 1 to 65536, not {}", self.rank));
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return wrong(format!("`alpha` must be a number above 0, not {}", self.alpha));
        }
        if self.target_modules.is_empty() {
            return wrong("`target_modules` must name a module".into());
        }
        for (at, module) in self.target_modules.iter().enumerate() {
            if self.target_modules[..at].contains(module) {
                return wrong(format!("`target_modules` names {} twice", module.name()));
            }
        }
        Ok(())
    }
}

/// The modules as they are written.
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used: `modules` names what is wrong")]
enum ModulesForm {
    All(AllLinear),
    Names(Vec<Module>),
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "kebab-case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum AllLinear {
    AllLinear,
}

/// `"all-linear"`, or a list of names.
fn modules<'de, D: serde::Deserializer<'de>>(value: D) -> std::result::Result<Vec<Module>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Word(String),
        Names(Vec<String>),
    }
    let named = |name: &str| Module::ALL.into_iter().find(|module| module.name() == name);
    let found = match Written::deserialize(value) {
        Ok(Written::Word(word)) if word == "all-linear" => Ok(Module::ALL.to_vec()),
        Ok(Written::Word(word)) => Err(word),
        Ok(Written::Names(names)) => names.into_iter().map(|name| named(&name).ok_or(name)).collect(),
        Err(_) => Err("a value of another type".into()),
    };
    found.map_err(|wrong| {
        let known = Module::ALL.map(Module::name).join(", ");
        serde::de::Error::custom(format!("must be \"all-linear\" or a list of some of {known}, not {wrong}"))
    })
}

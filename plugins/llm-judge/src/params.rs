//! The parameters of a judge.

use crate::{pairwise, rubric, single};
use model_judging::{Model, Template, score_format};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `[[reward]].params`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The model, by the name of its `[chat.NAME]`.
    #[serde(default = "endpoint")]
    endpoint: String,
    mode: ModeName,
    /// The prompt; each mode has a default.
    prompt: Option<String>,
    /// The system prompt; none by default.
    system: Option<String>,
    /// The text of `{rubric}` in the prompt.
    rubric: Option<String>,
    /// The criteria of the mode `rubric`.
    #[serde(default)]
    criteria: Vec<Criterion>,
    /// The texts that `pairwise` compares with.
    against: Option<Against>,
    /// How often a model that gave no verdict is asked again.
    #[serde(default = "retries")]
    retries: u32,
    /// Further fields of each request, such as `temperature`.
    #[serde(default)]
    options: Map<String, Value>,
    /// Whether requests ask for a JSON object by a schema; by default, not with a prompt of the user's own.
    structured: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    Single,
    Pairwise,
    Rubric,
}

/// The texts that a response is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// Each of the others of its group.
    Others,
    /// The ground truth.
    Reference,
}

/// A question with the answer yes or no.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// The question, as a statement.
    pub text: String,
    /// The weight of the criterion.
    #[serde(default = "weight")]
    pub weight: f64,
}

fn endpoint() -> String {
    "judge".into()
}

fn retries() -> u32 {
    2
}

fn weight() -> f64 {
    1.0
}

/// A judge with checked parameters.
pub struct Judge {
    pub(crate) model: Model,
    pub(crate) mode: Mode,
    pub(crate) prompt: Template,
    /// Whether the prompt is the user's, and with it the scale.
    pub(crate) has_own_prompt: bool,
    pub(crate) rubric: String,
}

/// How it judges.
pub enum Mode {
    /// Each response by itself, from 0 to 10.
    Single,
    /// Each against others, in both orders.
    Pairwise { against: Against },
    /// Each by a list of criteria.
    Rubric { criteria: Vec<Criterion> },
}

impl Mode {
    /// The `response_format` of its verdicts.
    fn format(&self) -> Value {
        match self {
            Self::Single => score_format(),
            Self::Pairwise { .. } => pairwise::format(),
            Self::Rubric { criteria } => rubric::format(criteria.len()),
        }
    }
}

impl Params {
    /// Checks the parameters and makes the judge.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    pub(crate) fn check(self) -> Result<Judge, String> {
        let Self { endpoint, mode, prompt, system, rubric, criteria, against, retries, options, structured } = self;
        if mode != ModeName::Rubric && !criteria.is_empty() {
            return Err("`criteria` are for the mode `rubric`; others take a text as `rubric`".into());
        }
        if mode != ModeName::Pairwise && against.is_some() {
            return Err("`against` is for the mode `pairwise`".into());
        }
        if mode == ModeName::Rubric && rubric.is_some() {
            return Err("the mode `rubric` takes `criteria`, a list, in place of the text `rubric`".into());
        }
        let (mode, default, names, rubric) = match mode {
            ModeName::Single => (Mode::Single, single::PROMPT, single::NAMES, rubric.unwrap_or(single::RUBRIC.into())),
            ModeName::Pairwise => {
                let mode = Mode::Pairwise { against: against.unwrap_or(Against::Others) };
                (mode, pairwise::PROMPT, pairwise::NAMES, rubric.unwrap_or(pairwise::RUBRIC.into()))
            }
            ModeName::Rubric => {
                if criteria.is_empty() {
                    return Err("the mode `rubric` needs `criteria`: [{ text = \"…\", weight = 1.0 }]".into());
                }
                if let Some(wrong) = criteria.iter().find(|each| !(each.weight > 0.0 && each.weight.is_finite())) {
                    return Err(format!("the weight of {:?} must be more than 0, not {}", wrong.text, wrong.weight));
                }
                let text = rubric::list(&criteria);
                (Mode::Rubric { criteria }, rubric::PROMPT, rubric::NAMES, text)
            }
        };
        let has_own_prompt = prompt.is_some();
        let format = structured.unwrap_or(!has_own_prompt).then(|| mode.format());
        let prompt = Template::read(prompt.as_deref().unwrap_or(default), names)?;
        if let Some(missing) = names.iter().find(|name| name.needed && !prompt.has(name.name)) {
            return Err(format!("`prompt` has no {{{}}}: the model would not see it", missing.name));
        }
        Ok(Judge { model: Model { endpoint, system, retries, options, format }, mode, prompt, has_own_prompt, rubric })
    }
}

impl Judge {
    /// Whether a row without a ground truth cannot be judged.
    pub(crate) fn needs_reference(&self) -> bool {
        self.prompt.has("reference") || matches!(self.mode, Mode::Pairwise { against: Against::Reference })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(params: Value) -> Result<Judge, String> {
        serde_json::from_value::<Params>(params).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn a_mode_is_enough_but_for_a_rubric() {
        for mode in ["single", "pairwise"] {
            let judge = read(json!({"mode": mode})).unwrap();
            assert_eq!(
                (judge.model.endpoint.as_str(), judge.model.retries, judge.needs_reference()),
                ("judge", 2, false)
            );
        }
        assert!(read(json!({"mode": "pairwise", "against": "reference"})).unwrap().needs_reference());
        assert!(read(json!({"mode": "single", "prompt": "{response} {reference}"})).unwrap().needs_reference());
        assert!(read(json!({"mode": "rubric", "criteria": [{"text": "It is short."}]})).is_ok());
    }

    #[test]
    fn each_mode_asks_for_its_verdict_in_json() {
        let fields = |params: Value| {
            let format = read(params).unwrap().model.format?;
            let schema = &format["json_schema"]["schema"];
            let names: Vec<_> = schema["properties"].as_object()?.keys().cloned().collect();
            Some(names.join(" "))
        };
        let criteria = json!([{"text": "a"}, {"text": "b"}]);
        assert_eq!(fields(json!({"mode": "single"})).as_deref(), Some("reason score"));
        assert_eq!(fields(json!({"mode": "pairwise"})).as_deref(), Some("reason better"));
        assert_eq!(fields(json!({"mode": "rubric", "criteria": criteria})).as_deref(), Some("reason 1 2"));
        assert_eq!(fields(json!({"mode": "single", "structured": false})), None);
    }

    #[test]
    fn a_prompt_of_ones_own_is_sent_without_a_schema_unless_it_is_asked_for() {
        let criteria = json!([{"text": "a"}]);
        for (params, is_structured) in [
            (json!({"mode": "single", "prompt": "Rate {response} from 0 to 5."}), false),
            (json!({"mode": "pairwise", "prompt": "{response} or {other}?"}), false),
            (json!({"mode": "rubric", "prompt": "{response}: {rubric}?", "criteria": criteria}), false),
            (json!({"mode": "single", "prompt": "{response}", "structured": true}), true),
            (json!({"mode": "single", "rubric": "How short it is.", "system": "Be strict."}), true),
        ] {
            assert_eq!(read(params.clone()).unwrap().model.format.is_some(), is_structured, "{params}");
        }
    }

    #[test]
    fn what_a_mode_does_not_take_is_refused() {
        for (params, what) in [
            (json!({}), "missing field `mode`"),
            (json!({"mode": "both"}), "unknown variant"),
            (json!({"mode": "rubric"}), "needs `criteria`"),
            (json!({"mode": "rubric", "criteria": [{"text": "a", "weight": 0}]}), "more than 0"),
            (json!({"mode": "rubric", "criteria": [{"text": "a"}], "rubric": "b"}), "in place of"),
            (json!({"mode": "single", "criteria": [{"text": "a"}]}), "for the mode `rubric`"),
            (json!({"mode": "single", "against": "others"}), "for the mode `pairwise`"),
            (json!({"mode": "single", "prompt": "{prompt}"}), "no {response}"),
            (json!({"mode": "pairwise", "prompt": "{response}"}), "no {other}"),
            (json!({"mode": "single", "prompt": "{answer} {response}"}), "{answer}"),
        ] {
            let error = read(params.clone()).err().unwrap();
            assert!(error.contains(what), "{params}: {error}");
        }
    }
}

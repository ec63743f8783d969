//! What a table of samples shows of a line of `trajectories/`: its numbers, without its texts and tokens.

use gavel_data::{FinishReason, OutcomeKind};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The numbers of a trajectory. Texts, tokens and unknown fields are skipped.
#[derive(Debug, Deserialize)]
pub struct SampleGlance<'a> {
    /// The id of its sample: `STEP.GROUP.SAMPLE`.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Where its task comes from.
    pub data_source: Option<String>,
    /// The step that the sample was drawn for.
    pub step: u64,
    /// The number of its group.
    pub group: u64,
    /// The number of the sample in its group.
    pub sample: u32,
    /// The number of the trajectory in its sample; absent in the oldest recordings.
    #[serde(default)]
    pub trajectory: Option<u32>,
    #[serde(default)]
    opening: Option<OpeningGlance>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The turns of the policy.
    #[serde(default)]
    pub turns: u32,
    /// The tokens of the prompt.
    #[serde(default)]
    pub prompt_length: u32,
    /// The tokens after the prompt.
    #[serde(default)]
    pub response_length: u32,
    /// Its advantage, if an update learned from it.
    pub advantage: Option<f64>,
    /// The weighted sum of the sample's scores.
    pub reward: Option<f64>,
    /// The combined outcome of all plugins.
    pub outcome: OutcomeKind,
    /// What each plugin said.
    pub plugins: BTreeMap<String, VerdictGlance>,
}

impl SampleGlance<'_> {
    /// The speaker that the policy played, if an agent with several opened the trajectory.
    pub fn speaker(&self) -> Option<&str> {
        self.opening.as_ref().map(|opening| opening.speaker.as_str()).filter(|speaker| !speaker.is_empty())
    }
}

/// The numbers of a verdict.
#[derive(Debug, Deserialize)]
pub struct VerdictGlance {
    /// The outcome of the call.
    pub outcome: OutcomeKind,
    /// The score, where there is one.
    pub score: Option<f64>,
    /// Microseconds that the call took.
    #[serde(default)]
    pub elapsed_us: u64,
}

#[derive(Debug, Deserialize)]
struct OpeningGlance {
    #[serde(default)]
    speaker: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_unknown_fields_are_skipped() {
        let line = r#"{"id":"3.1.0","task":"h","data_source":null,"step":3,"group":1,"sample":0,"trajectory":1,
            "opening":{"speaker":"critic","messages":[]},"messages":[{"role":"assistant","content":"x"}],"newer":[1],
            "finish_reason":"length","response_length":7,"advantage":null,"reward":0.5,"outcome":"scored",
            "plugins":{"a":{"outcome":"fault","score":null,"elapsed_us":9}}}"#;
        let glance: SampleGlance<'_> = serde_json::from_str(line).unwrap();
        assert_eq!((glance.id.as_ref(), glance.speaker(), glance.response_length), ("3.1.0", Some("critic"), 7));
        assert_eq!((glance.reward, glance.advantage, glance.trajectory), (Some(0.5), None, Some(1)));
        assert_eq!((glance.plugins["a"].outcome, glance.plugins["a"].elapsed_us), (OutcomeKind::Fault, 9));
    }
}

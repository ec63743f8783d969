//! Gives credit as set in its parameters: to a part that does not exist, or a
//! number that is not valid.

use attack::{Credit, Failure, Info, Reference, Reward, Sample, Score, Verdict};

struct FalseCredit(Params);

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(default)]
    trajectory: u32,
    #[serde(default)]
    message: u32,
    #[serde(default)]
    start: u32,
    #[serde(default)]
    end: u32,
    /// As text: JSON has no `nan`.
    #[serde(default)]
    value: Option<String>,
    /// How many times.
    #[serde(default)]
    times: Option<usize>,
}

impl Reward for FalseCredit {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let Params { trajectory, message, start, end, .. } = self.0;
        let value = self.0.value.as_ref().and_then(|text| text.parse().ok()).unwrap_or(1.0);
        let credit = vec![Credit { trajectory, message, start, end, value }; self.0.times.unwrap_or(1)];
        Ok(Score { credit, ..Score::new(1.0) }.into())
    }
}

attack::export_reward!(FalseCredit);

//! Gives advantages that are not valid, as set in its parameters.

use attack::advantage::{Estimates, Group, SampleAdvantage, ScoredSample};
use attack::{Advantage, Failure, Info};

struct Attack(Params);

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    form: Form,
    /// As text: JSON has no `nan`.
    #[serde(default = "one")]
    value: String,
    /// Numbers that are too many in the last list.
    #[serde(default)]
    more: usize,
    /// Groups whose advantages are left out.
    #[serde(default)]
    without: usize,
    /// Bytes of the state.
    #[serde(default)]
    state: usize,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Sample,
    Trajectories,
    Tokens,
}

fn one() -> String {
    "1".into()
}

impl Advantage for Attack {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn estimate(&self, _: u64, groups: &[Group], _: &[u8]) -> Result<Estimates, Failure> {
        let Params { form, ref value, more, without, state } = self.0;
        let value = value.parse().map_err(|_| Failure::internal("`value` is not a number"))?;
        let of_sample = |sample: &ScoredSample| match form {
            Form::Sample => SampleAdvantage::Sample(value),
            Form::Trajectories => SampleAdvantage::Trajectories(vec![value; sample.trajectories.len() + more]),
            Form::Tokens => {
                let lengths = sample.trajectories.iter().map(|trajectory| trajectory.response_tokens as usize);
                SampleAdvantage::Tokens(lengths.map(|tokens| vec![value; tokens + more]).collect())
            }
        };
        let of_group = |group: &Group| group.samples.iter().map(of_sample).collect();
        let advantages = groups.iter().skip(without).map(of_group).collect();
        Ok(Estimates::new(advantages).state(vec![0; state]))
    }
}

attack::export_advantage!(Attack);

//! Gives draws and refusals that are not valid, as set in its parameters.

use attack::sampler::{Answer, Request, Task};
use attack::{Failure, Info, Sampler};

struct Attack(Params);

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The task that is drawn.
    dataset: u32,
    row: u64,
    /// Tasks that are too many.
    more: usize,
    /// Tasks that are left out.
    less: usize,
    /// The draws of the groups that are refused.
    refused: Vec<u64>,
    reason: String,
    /// How often the reason is repeated.
    times: usize,
    /// Bytes of the state.
    state: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { dataset: 0, row: 0, more: 0, less: 0, refused: Vec::new(), reason: "r".to_owned(), times: 1, state: 0 }
    }
}

impl Sampler for Attack {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let Params { dataset, row, more, less, ref refused, ref reason, times, state } = self.0;
        let draws = vec![Task { dataset, row }; request.wanted as usize + more - less];
        let refuse = |answer: Answer, draw: &u64| answer.refuse(*draw, reason.repeat(times));
        Ok(refused.iter().fold(Answer::new(draws), refuse).state(vec![0; state]))
    }
}

attack::export_sampler!(Attack);

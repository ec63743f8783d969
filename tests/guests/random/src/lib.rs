//! Gives a random number as its note, drawn in `init` or in the call.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};

struct Random {
    params: Params,
    drawn: Option<u64>,
    /// A table that fills memory.
    table: Vec<u64>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Draws in `init` instead of in each call.
    #[serde(default)]
    early: bool,
    /// Prints in `init`, which opens a stream of the host.
    #[serde(default)]
    loud: bool,
}

impl Reward for Random {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.loud {
            eprintln!("ready");
        }
        let drawn = if params.early { Some(draw().map_err(|failure| format!("{failure:?}"))?) } else { None };
        Ok(Self { params, drawn, table: (0..100_000).collect() })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        if self.params.loud {
            eprintln!("scoring");
        }
        let number = self.drawn.map_or_else(draw, Ok)?;
        let mut score = Score::new(self.table.iter().sum::<u64>() as f64);
        score.note = Some(format!("{number} {}", sample.response()));
        Ok(score.into())
    }
}

/// Draws from the host, as the standard library draws only once for all of its
/// hash maps.
fn draw() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| Failure::internal(error.to_string()))
}

gavel_sdk::export_reward!(Random);

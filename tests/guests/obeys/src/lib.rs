//! Follows the instructions in the response, one a line, so that a test can get
//! any outcome from one component.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::hint::black_box;

struct Obeys {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The factor of every score.
    #[serde(default = "one")]
    factor: f64,
    /// The name that it declares.
    name: Option<String>,
    /// The score range that it declares.
    range: Option<(f64, f64)>,
    /// The error with which it does not start.
    refuse: Option<String>,
}

fn one() -> f64 {
    1.0
}

impl Reward for Obeys {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.factor == 0.0 {
            return Err("`factor` is 0: every score would be".into());
        }
        if let Some(why) = &params.refuse {
            return Err(why.clone());
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        let name = self.params.name.as_deref().unwrap_or(env!("CARGO_PKG_NAME"));
        let info = Info::new(name, env!("CARGO_PKG_VERSION"));
        match self.params.range {
            Some((min, max)) => info.score_range(min, max),
            None => info,
        }
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let mut score = Score::new(0.0);
        for line in sample.response().lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            // An instruction is one line, but its text may have several.
            let rest = &rest.replace('␤', "\n");
            match word {
                "score" => score.value = self.params.factor * number(rest)?,
                "truth" => score.value = number(&reference.require_ground_truth()?)?,
                "metric" => {
                    let (name, value) = rest.split_once(' ').unwrap_or((rest, "1"));
                    score = score.metric(name, number(value)?);
                }
                "note" => score = score.note(rest),
                "print" => println!("{rest}"),
                "complain" => eprintln!("{rest}"),
                "columns" => println!("{}", reference.column_names().join(", ")),
                "abstain" => return Ok(Verdict::abstain(rest)),
                "unavailable" => return Err(Failure::unavailable(rest)),
                "internal" => return Err(Failure::internal(rest)),
                "panic" => panic!("{rest}"),
                "loop" => while black_box(true) {},
                "take" => drop(black_box(vec![1u8; number(rest)? as usize])),
                _ => return Err(Failure::invalid_input(format!("`{line}` is not an instruction"))),
            }
        }
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(Obeys);

fn number(text: &str) -> Result<f64, Failure> {
    text.parse().map_err(|_| Failure::invalid_input(format!("`{text}` is not a number")))
}

//! Waits in the host, using no CPU, then gives the score 1. Its parameters make it wait longer for longer responses or
//! at random, sometimes wait forever, or crash.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::time::Duration;

struct Sleepy {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// How long to wait, in milliseconds.
    milliseconds: u64,
    /// The milliseconds to wait for each byte of the response.
    #[serde(default)]
    each_byte: u64,
    /// The most milliseconds to wait longer, at random.
    #[serde(default)]
    random: u64,
    /// One call in this many never answers, at random; 0 means none.
    #[serde(default)]
    hangs: u64,
    /// One call in this many crashes, at random; 0 means none.
    #[serde(default)]
    crashes: u64,
}

impl Reward for Sleepy {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let Params { milliseconds, each_byte, random, hangs, crashes } = self.params;
        let draw = || getrandom::u64().map_err(|error| Failure::internal(error.to_string()));
        let is_one_of = |calls: u64| Ok::<_, Failure>(draw()?.checked_rem(calls) == Some(0));
        let drawn = draw()?;
        if is_one_of(hangs)? {
            std::thread::sleep(Duration::MAX);
        }
        assert!(!is_one_of(crashes)?, "this call crashes");
        let extra = drawn.checked_rem(random).unwrap_or_default();
        let each = each_byte * sample.response().len() as u64;
        std::thread::sleep(Duration::from_millis(milliseconds + each + extra));
        Ok(Score::new(1.0).into())
    }
}

gavel_sdk::export_reward!(Sleepy);

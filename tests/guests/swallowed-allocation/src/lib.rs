//! Asks for 3 GiB at once and gives the score 1 where that is refused, as if
//! nothing had happened; 0 where it is granted.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

struct SwallowedAllocation;

impl Reward for SwallowedAllocation {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let mut block = Vec::<u8>::new();
        let refused = std::hint::black_box(&mut block).try_reserve_exact(1 << 30).is_err();
        Ok(Score::new(f64::from(refused)).into())
    }
}

gavel_sdk::export_reward!(SwallowedAllocation);

//! Takes memory until it is refused, which the allocator answers with a trap.

use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Verdict};

struct MemoryBomb;

impl Reward for MemoryBomb {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let mut blocks = Vec::new();
        loop {
            blocks.push(std::hint::black_box(vec![1_u8; 1 << 20]));
        }
    }
}

gavel_sdk::export_reward!(MemoryBomb);

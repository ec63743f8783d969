//! Never returns from a batch.

use attack::advantage::{Estimates, Group};
use attack::{Advantage, Failure, Info, NoParams};

struct Attack;

impl Advantage for Attack {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn estimate(&self, _: u64, groups: &[Group], _: &[u8]) -> Result<Estimates, Failure> {
        while std::hint::black_box(groups.len()) > 0 {}
        Ok(Estimates::new(Vec::new()))
    }
}

attack::export_advantage!(Attack);

//! Asks a server for the score of a response: for rewards that cannot be
//! components.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Verdict};
use service_client::{Params, Service};

struct Asked(Service);

impl Reward for Asked {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Service::new(params).map(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let verdict = self.0.judge(&[sample], reference)?.pop();
        verdict.ok_or_else(|| Failure::internal("the service gave no verdict"))
    }
}

gavel_sdk::export_reward!(Asked);

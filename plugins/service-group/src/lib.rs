//! Asks a server for the score of the responses of a group: for rewards that cannot be
//! components.

use gavel_sdk::{Failure, Info, Judger, Reference, Sample, Verdict};
use service_client::{Params, Service};

struct Asked(Service);

impl Judger for Asked {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Service::new(params).map(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        self.0.judge(&samples.iter().collect::<Vec<_>>(), reference)
    }
}

gavel_sdk::export_judger!(Asked);

//! Gives the number of calls of this instance as its score, this call included, and what it keeps as its parameters say.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use std::cell::{Cell, RefCell};

struct Stateful {
    params: Params,
    calls: Cell<u32>,
    kept: RefCell<Vec<Vec<u8>>>,
    response: RefCell<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Params {
    /// Declares itself pure, which is false.
    pure: bool,
    /// Bytes of memory that `init` fills.
    fills: usize,
    /// Bytes that each call adds to what is kept.
    grows_by: usize,
    /// A file that each call opens and leaves open.
    leaves_open: Option<String>,
    /// Its note is the response of the call before.
    recalls: bool,
    /// The call that traps.
    traps_at: u32,
    /// The call that does not end.
    loops_at: u32,
}

impl Reward for Stateful {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let kept = RefCell::new(vec![vec![1; params.fills]]);
        Ok(Self { params, calls: Cell::default(), kept, response: RefCell::default() })
    }

    fn info(&self) -> Info {
        let info = Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        if self.params.pure { info.pure() } else { info }
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let Params { grows_by, leaves_open, recalls, traps_at, loops_at, .. } = &self.params;
        let calls = self.calls.get() + 1;
        self.calls.set(calls);
        assert!(calls != *traps_at, "as the parameters say");
        while self.calls.get() == *loops_at {
            std::hint::black_box(());
        }
        self.kept.borrow_mut().push(vec![1; *grows_by]);
        if let Some(path) = leaves_open {
            std::mem::forget(std::fs::File::open(path).map_err(|error| Failure::internal(error.to_string()))?);
        }
        let before = self.response.replace(sample.response());
        let score = Score::new(calls.into());
        Ok(if *recalls { score.note(before) } else { score }.into())
    }
}

gavel_sdk::export_reward!(Stateful);

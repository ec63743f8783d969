//! The judges that a sample waits for.

use gavel_plugin::{OutsideWait, OutsideWaits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The judges that a sample waits for. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Vec<AskedJudge>>>);

#[derive(Debug, Clone)]
struct AskedJudge {
    judge: String,
    since: Instant,
    outside: OutsideWaits,
}

/// A judge that has been asked and has not answered yet.
#[derive(Debug, Clone)]
pub struct JudgeWait {
    /// Its name.
    pub judge: String,
    /// When it was asked.
    pub since: Instant,
    /// The endpoint that the judge itself waits for, if any.
    pub outside: Option<OutsideWait>,
}

/// A wait for a judge; dropping it ends the wait.
pub(crate) struct Wait<'a> {
    progress: &'a Progress,
    since: Instant,
    judge: &'a str,
}

impl Progress {
    /// The judges that have been asked and have not answered yet.
    pub fn waits(&self) -> Vec<JudgeWait> {
        let wait =
            |AskedJudge { judge, since, outside }: AskedJudge| JudgeWait { judge, since, outside: outside.oldest() };
        self.asked().clone().into_iter().map(wait).collect()
    }

    /// Notes that the sample waits for a judge; `outside` is what the judge itself waits for.
    pub(crate) fn wait_for<'a>(&'a self, judge: &'a str, outside: &OutsideWaits) -> Wait<'a> {
        let since = Instant::now();
        self.asked().push(AskedJudge { judge: judge.to_owned(), since, outside: outside.clone() });
        Wait { progress: self, since, judge }
    }

    fn asked(&self) -> MutexGuard<'_, Vec<AskedJudge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.progress.asked().retain(|asked| (asked.judge.as_str(), asked.since) != (self.judge, self.since));
    }
}

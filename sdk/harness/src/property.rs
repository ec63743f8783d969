//! Properties of every plugin, whatever the policy writes.

use crate::call::Call;
use crate::plugin::LoadedPlugin;
use gavel_data::{Blame, Json, Outcome, Sample};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

/// Bytes of a row that are shown.
const SHOWN: usize = 4096;
/// The time for shrinking: a call that exceeds its time limit takes the whole
/// limit at every attempt.
const SHRINK_MILLISECONDS: u32 = 60_000;

impl LoadedPlugin {
    /// Asserts that for any sample the plugin scores within its range,
    /// abstains, or reports what is wrong with the input. It never faults and
    /// stays within its limits. 256 samples are tried; `PROPTEST_CASES` sets
    /// another number. A sample that fails is made as small as possible and
    /// shown.
    ///
    /// [`samples`](crate::samples) gives samples of any task,
    /// [`samples_like`](crate::samples_like) gives samples of one task.
    #[track_caller]
    pub fn assert_never_faults(&self, samples: impl Strategy<Value = Sample>) {
        self.assert_sound(samples, |sample| vec![self.score(sample)]);
    }

    /// Like [`assert_never_faults`](Self::assert_never_faults), for a judger:
    /// no sample of any group gets a fault. [`groups`](crate::groups) gives
    /// groups of any task.
    #[track_caller]
    pub fn assert_never_faults_in_groups(&self, groups: impl Strategy<Value = Vec<Sample>>) {
        self.assert_sound(groups, |group| self.judge(group));
    }

    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test")]
    fn assert_sound<S: Strategy>(&self, inputs: S, call: impl Fn(S::Value) -> Vec<Call>)
    where
        S::Value: Clone,
    {
        let config = Config { failure_persistence: None, max_shrink_time: SHRINK_MILLISECONDS, ..Config::default() };
        let tried = TestRunner::new(config).run(&inputs, |input| match call(input).iter().all(sound) {
            true => Ok(()),
            false => Err(TestCaseError::fail("it is not sound")),
        });
        let smallest = match tried {
            Ok(()) => return,
            Err(TestError::Fail(_, smallest)) => smallest,
            Err(TestError::Abort(reason)) => panic!("no samples to try plugin `{}` with: {reason}", self.name()),
        };
        match call(smallest).iter().find(|call| !sound(call)) {
            Some(call) => {
                panic!("plugin `{}` fails for this sample:\n{call}as a case: {}", self.name(), row(call.sample()))
            }
            None => panic!("plugin `{}` fails for a sample, but not when it is called with it again", self.name()),
        }
    }
}

fn sound(call: &Call) -> bool {
    match call.outcome() {
        Outcome::Scored(_) | Outcome::Abstained(_) | Outcome::Unavailable(_) => true,
        Outcome::Fault { whose, .. } => *whose == Blame::Input,
        Outcome::OutOfBudget { .. } => false,
    }
}

/// A sample as a line of a file of cases, unless it is too long.
fn row(sample: &Sample) -> String {
    let [trajectory] = &sample.trajectories[..] else {
        return format!("none; it has {} trajectories", sample.trajectories.len());
    };
    let mut row = sample.task.reference.columns.clone();
    // Any message can be written as JSON.
    if !sample.task.prompt.is_empty() {
        row.insert("prompt", Json::of(&sample.task.prompt).unwrap_or_default());
    }
    row.insert("messages", Json::of(&trajectory.messages).unwrap_or_default());
    let row = Json::from(row);
    let text = row.as_text();
    match text.len() {
        0..=SHOWN => text.to_owned(),
        long => format!("{}… ({long} bytes)", &text[..text.floor_char_boundary(SHOWN)]),
    }
}

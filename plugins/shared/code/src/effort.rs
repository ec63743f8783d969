//! What the children of a row's tests take, over all rounds.

use crate::language::Language;
use std::num::NonZeroU32;

/// Runs that tests always have, with the first.
const FEW_ROUNDS: usize = 8;

/// The most runs of tests. The program for Python knows many answers at once.
/// In JavaScript, each expression over an answer needs another run.
fn most_rounds(language: Language) -> usize {
    match language {
        Language::Python | Language::C => FEW_ROUNDS,
        Language::JavaScript => 256,
    }
}

/// The most jobs of one call with more rounds: half of the host's usual
/// `limits.requests`.
const JOBS: usize = 2048;

/// The effort for a row, and its limits. Code that asks for round after round
/// must not take more of a call's time than code that loops in a few.
pub(crate) struct Effort {
    most_rounds: usize,
    /// The most microseconds of the tests, and of the code of each case.
    most_us: u64,
    rounds: usize,
    jobs: usize,
    tests_us: u64,
    codes_us: Vec<u64>,
}

impl Effort {
    /// Before the first run of the tests. `cpu_ms` is the limit of each child.
    pub(crate) fn new(language: Language, cpu_ms: NonZeroU32, cases: usize) -> Self {
        let most_us = u64::from(cpu_ms.get()) * 1000 * FEW_ROUNDS as u64;
        Self { most_rounds: most_rounds(language), most_us, rounds: 1, jobs: 1, tests_us: 0, codes_us: vec![0; cases] }
    }

    /// Whether there may be another round for so many cases, which is begun
    /// then.
    pub(crate) fn begin(&mut self, cases: usize) -> bool {
        let jobs = self.jobs + cases + 1;
        let is_few = self.rounds < FEW_ROUNDS;
        let has_room = jobs <= JOBS && self.tests_us <= self.most_us;
        let begins = self.rounds < self.most_rounds && (is_few || has_room);
        if begins {
            (self.rounds, self.jobs) = (self.rounds + 1, jobs);
        }
        begins
    }

    /// Whether a case needs an answer more in each round.
    pub(crate) fn must_advance(&self) -> bool {
        self.rounds > FEW_ROUNDS
    }

    /// Adds the time of a run of the tests.
    pub(crate) fn add_tests(&mut self, cpu_us: u64) {
        self.tests_us = self.tests_us.saturating_add(cpu_us);
    }

    /// Adds the time of a case's code; returns whether it has more.
    pub(crate) fn add_code(&mut self, case: usize, cpu_us: u64) -> bool {
        self.codes_us[case] = self.codes_us[case].saturating_add(cpu_us);
        self.codes_us[case] <= self.most_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(language: Language, cases: usize) -> Effort {
        Effort::new(language, NonZeroU32::new(10).unwrap(), cases)
    }

    /// The rounds after the first run that so many open cases may have.
    fn rounds(effort: &mut Effort, cases: usize) -> usize {
        (0..1000).take_while(|_| effort.begin(cases)).count()
    }

    #[test]
    fn each_language_has_its_rounds() {
        assert_eq!(rounds(&mut effort(Language::Python, 1), 1), 7);
        assert_eq!(rounds(&mut effort(Language::JavaScript, 1), 1), 255);
    }

    #[test]
    fn jobs_bound_all_but_the_first_rounds() {
        assert_eq!(rounds(&mut effort(Language::JavaScript, 10), 10), (JOBS - 1) / 11);
        assert_eq!(rounds(&mut effort(Language::JavaScript, 5000), 5000), 7);
        assert_eq!(rounds(&mut effort(Language::Python, 5000), 5000), 7);
    }

    #[test]
    fn time_bounds_all_but_the_first_rounds() {
        let mut slow = effort(Language::JavaScript, 2);
        slow.add_tests(80_000);
        assert!(slow.begin(2) && !slow.must_advance());
        slow.add_tests(1);
        assert_eq!(rounds(&mut slow, 2), 6);
        // Each case has its own time.
        assert!(slow.add_code(0, 80_000) && slow.add_code(1, 70_000));
        assert!(!slow.add_code(0, 1));
        assert!(slow.add_code(1, 10_000));
    }

    #[test]
    fn later_rounds_must_advance() {
        let mut effort = effort(Language::JavaScript, 1);
        let advancing: Vec<bool> = (0..9).map(|_| effort.begin(1) && effort.must_advance()).collect();
        assert_eq!(advancing, [false, false, false, false, false, false, false, true, true]);
    }
}

//! The sandbox's Python has 32 bits and one thread. A child in which that
//! showed asks for its job to be repeated in ways that are slower, and lack
//! less. programs/python/signs.py describes the request.

use crate::language::Language;
use gavel_sdk::exec::{self, Ending, Error, Job, Output};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The ways in which a job is repeated.
pub(crate) type Ways = BTreeSet<String>;

/// The most runs of a job: one, and one for each way.
const RUNS: usize = 3;

/// The last line on stderr of a child that asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// For each way, what showed that it is needed.
    repeat: BTreeMap<String, String>,
}

/// The last run of a job that ended by itself, or its only one.
pub(crate) struct Ran {
    pub(crate) output: Output,
    /// What the interpreter lacks that the job needs, in any way.
    pub(crate) lacking: Option<String>,
}

/// Runs `count` jobs at once, and repeats those that ask for it.
pub(crate) fn run(language: Language, count: usize, job: impl Fn(usize, &Ways) -> Job) -> Vec<Result<Ran, Error>> {
    let mut ways = vec![Ways::new(); count];
    let mut ran: Vec<Option<Result<Ran, Error>>> = (0..count).map(|_| None).collect();
    let mut open: Vec<usize> = (0..count).collect();
    for _ in 0..RUNS {
        let outputs = exec::run(open.iter().map(|at| job(*at, &ways[*at])).collect());
        let mut asking = Vec::new();
        for (at, output) in open.into_iter().zip(outputs) {
            let (ran, ways) = (&mut ran[at], &mut ways[at]);
            let next = output.map(|output| {
                let (new, lacking) = match language.repeats_jobs() {
                    true => wanted(&output, ways),
                    false => (false, None),
                };
                if new {
                    asking.push(at);
                }
                Ran { output, lacking }
            });
            *ran = Some(match (ran.take(), next) {
                (Some(Ok(before)), Ok(next)) => Ok(later(before, next)),
                (_, next) => next,
            });
        }
        if asking.is_empty() {
            break;
        }
        open = asking;
    }
    ran.into_iter()
        .map(|ran| ran.unwrap_or_else(|| Err(Error::InvalidRequest("the host gave too few answers".into()))))
        .collect()
}

/// The run that counts of one and its repetition. A repetition is slower: if
/// it does not end, the run before it counts where it passed, and what it lacks
/// leaves the result open where it did not.
fn later(before: Ran, next: Ran) -> Ran {
    let exited = |ran: &Ran| matches!(ran.output.ending, Ending::Exited(_));
    if exited(&next) || !exited(&before) {
        return next;
    }
    let lacking = before.lacking.map(|what| format!("{what}; its slower repetition did not end"));
    Ran { output: before.output, lacking }
}

/// Adds the ways that a child asks for. Returns whether one is new, and what
/// the interpreter lacks.
fn wanted(output: &Output, ways: &mut Ways) -> (bool, Option<String>) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let Some(request) = request(&stderr).filter(|_| matches!(output.ending, Ending::Exited(_))) else {
        return (false, None);
    };
    let what = request.repeat.values().next().map(|what| format!("the interpreter lacks what the code needs: {what}"));
    let before = ways.len();
    ways.extend(request.repeat.into_keys().filter(|way| ["threads", "wide"].contains(&way.as_str())));
    (ways.len() > before, what)
}

fn request(stderr: &str) -> Option<Request> {
    serde_json::from_str(stderr.trim_end().lines().next_back()?).ok()
}

/// What a child wrote on stderr, without its request.
pub(crate) fn own_words(stderr: &str) -> &str {
    let words = stderr.trim_end();
    match request(words) {
        Some(_) => words.rfind('\n').map_or("", |end| &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "OverflowError: too large\n\n{\"repeat\": {\"wide\": \"OverflowError: too large\"}}\n";

    fn output(ending: Ending, stderr: &str) -> Output {
        Output { ending, stdout: Vec::new(), stderr: stderr.as_bytes().to_vec(), cpu_us: 1 }
    }

    #[test]
    fn a_way_is_new_once() {
        let mut ways = Ways::new();
        let asking = output(Ending::Exited(1), REQUEST);
        let (new, lacking) = wanted(&asking, &mut ways);
        assert!(new && lacking.unwrap().ends_with("OverflowError: too large"));
        assert_eq!(ways, Ways::from(["wide".to_owned()]));
        assert!(!wanted(&asking, &mut ways).0);
        assert!(!wanted(&output(Ending::OutOfBudget("cpu".into()), REQUEST), &mut Ways::new()).0);
    }

    #[test]
    fn a_repetition_that_does_not_end_leaves_the_run_before_it() {
        let ran = |ending, lacking: Option<&str>| Ran { output: output(ending, ""), lacking: lacking.map(Into::into) };
        let slow = || ran(Ending::OutOfBudget("cpu".into()), None);
        let kept = later(ran(Ending::Exited(0), Some("32 bits")), slow());
        assert!(matches!(kept.output.ending, Ending::Exited(0)));
        assert_eq!(kept.lacking.as_deref(), Some("32 bits; its slower repetition did not end"));
        let last = later(ran(Ending::Exited(0), Some("32 bits")), ran(Ending::Exited(1), None));
        assert!(matches!(last.output.ending, Ending::Exited(1)) && last.lacking.is_none());
        assert!(later(slow(), slow()).lacking.is_none());
    }

    #[test]
    fn a_stack_that_ended_is_not_repeated() {
        let (new, lacking) =
            wanted(&output(Ending::Exited(1), "{\"repeat\": {\"stack\": \"Stack overflow\"}}"), &mut Ways::new());
        assert!(!new && lacking.unwrap().ends_with("Stack overflow"));
    }

    #[test]
    fn only_a_request_in_the_last_line_counts() {
        for stderr in
            ["", "ValueError: no\n", "{\"repeat\": {\"wide\": \"\"}}\nmore\n", "{\"repeat\": {}, \"more\": 1}"]
        {
            assert!(request(stderr).is_none(), "{stderr}");
        }
        let unknown = output(Ending::Exited(1), "{\"repeat\": {\"other\": \"\"}}");
        assert!(!wanted(&unknown, &mut Ways::new()).0);
        assert_eq!(own_words(REQUEST).trim_end(), "OverflowError: too large");
        assert_eq!(own_words("a\nb\n"), "a\nb");
    }
}

//! C as a program of the sandbox: compiles the code of a job, and runs it in an interpreter. README.md describes the
//! jobs.

mod call;
mod compile;
mod files;
mod job;
mod libc;
mod machine;

use job::Job;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the job.
///
/// # Errors
/// What went wrong, with what the reward shows in the last line.
fn run() -> Result<(), String> {
    let job = std::env::args().nth(1).ok_or("there is no job: it is the first argument, as JSON")?;
    let source = Job::read(&job)?.source()?;
    let wasm = compile::compile(&source.text).map_err(|words| compiler_words(&words))?;
    let (end, answers) = machine::run(&wasm, source.answers)?;
    for answer in answers {
        println!("{answer}");
    }
    match end? {
        0 => Ok(()),
        status => Err(format!("the program ended with status {status}")),
    }
}

/// What the compiler said, with its first error in the last line.
fn compiler_words(words: &str) -> String {
    let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it cannot be compiled");
    format!("{words}\ncannot be compiled: {first}")
}

//! `exec`: programs that a plugin may run.

use super::call_outside::{CallOutside, NotedCall};
use super::error::GrantError;
use crate::budget::NoMemory;
use crate::outside::{ChildEnding, ChildJob, ChildReport, ExecError, Held, ProgramHandle, Programs};
use crate::tape::QueueTime;
use bytes::Bytes;
use futures::future::try_join_all;
use gavel_data::{OutsideCallEnding, OutsideCallKind};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The programs of one plugin.
#[derive(Default)]
pub(super) struct ExecAccess(BTreeMap<String, ProgramHandle>);

impl ExecAccess {
    pub(super) fn open(names: &[String], programs: &Programs) -> Result<Self, GrantError> {
        let find = |name: &String| match programs.get(name) {
            Some(program) => Ok((name.clone(), program)),
            None => Err(GrantError::NoProgram { name: name.clone(), known: programs.names() }),
        };
        names.iter().map(find).collect::<Result<_, _>>().map(Self)
    }
}

/// The memory of a job beside its input: its place in a queue, a task.
const JOB_BYTES: usize = 8 << 10;

/// The jobs of one call.
pub(crate) struct ExecCalls {
    access: Arc<ExecAccess>,
    outside: CallOutside,
    seed: u64,
    /// The number of jobs so far: each has other random numbers.
    jobs: u64,
    /// Closed in `init`, whose result may be kept on disk.
    open: bool,
}

impl ExecCalls {
    pub(super) fn new(access: Arc<ExecAccess>, outside: CallOutside, seed: u64) -> Self {
        Self { access, outside, seed, jobs: 0, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Runs all jobs, several at once, and waits for the last. An error ends
    /// the call.
    pub(crate) async fn run(&mut self, jobs: Vec<ChildJob>) -> wasmtime::Result<Vec<Result<ChildReport, ExecError>>> {
        self.outside.meter.request(jobs.len())?;
        // Held until all are done: whether the memory suffices must not depend on which child ends first.
        let _inputs = self.outside.meter.hold(jobs.iter().map(|job| JOB_BYTES + size(job)).sum())?;
        let running: Vec<_> = jobs.into_iter().map(|job| self.start(job)).collect();
        let done = try_join_all(running).await?;
        Ok(done.into_iter().map(|done| done.map(|(report, _)| report)).collect())
    }

    /// Runs a job. Its output is charged to the call until all jobs are done and
    /// the guest has it. The outer error ends the call.
    fn start(
        &mut self,
        job: ChildJob,
    ) -> impl Future<Output = Result<Result<(ChildReport, Held), ExecError>, NoMemory>> + Send + use<> {
        let seed = self.seed ^ self.jobs.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.jobs += 1;
        let found = self.find(&job.program);
        let outside = self.outside.clone();
        async move {
            let ProgramHandle { program, handle } = match found {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            let queued = Arc::<QueueTime>::default();
            queued.start();
            let mut noted = outside.note(OutsideCallKind::Exec, &job.program, &queued);
            if let Some(noted) = &mut noted {
                let text = noted.has_texts().then(|| question(&job));
                let args: usize = job.args.iter().map(String::len).sum();
                noted.ask((args + job.stdin.len()) as u64, text);
            }
            let meter = &outside.meter;
            // In its own task, so that its processor time is not measured as its parent's. Dropping the wait ends it.
            let mut child = JoinSet::new();
            // Set before the child runs: its time is charged once, and must not count as a wait of its parent too.
            let (_queued, parent) = (meter.pauses().queue(), meter.clone());
            child.spawn_on(
                async move {
                    let report = program.run(job, seed, parent.clone(), queued).await?;
                    let printed = parent.hold(report.stdout.len() + report.stderr.len());
                    Some(printed.map(|held| (report, held)))
                },
                &handle,
            );
            let done = match child.join_next().await {
                Some(Ok(Some(done))) => done.map(Ok),
                _ => Ok(Err(ExecError::Unavailable("the host lost the child".into()))),
            };
            if let Some(noted) = noted {
                note_end(noted, &done);
            }
            done
        }
    }

    fn find(&self, name: &str) -> Result<ProgramHandle, ExecError> {
        if !self.open {
            return Err(ExecError::InvalidRequest("`init` cannot run a program; run it in the call itself".into()));
        }
        self.access.0.get(name).cloned().ok_or_else(|| {
            let granted: Vec<&str> = self.access.0.keys().map(String::as_str).collect();
            ExecError::InvalidRequest(format!(
                "the program `{name}` is not granted to this plugin, which has: {}",
                granted.join(", ")
            ))
        })
    }
}

/// Notes how a child ended.
fn note_end(noted: NotedCall, done: &Result<Result<(ChildReport, Held), ExecError>, NoMemory>) {
    let report = match done {
        Err(error) => return noted.end(OutsideCallEnding::OutOfBudget, Some(error.to_string())),
        Ok(Err(ExecError::InvalidRequest(what))) => {
            return noted.end(OutsideCallEnding::InvalidRequest, Some(what.clone()));
        }
        Ok(Err(ExecError::Unavailable(what))) => return noted.end(OutsideCallEnding::Unavailable, Some(what.clone())),
        Ok(Ok((report, _))) => report,
    };
    match &report.ending {
        ChildEnding::Exited(status) => {
            let text = noted.has_texts().then(|| answer(report));
            noted.answer(Some((*status).into()), (report.stdout.len() + report.stderr.len()) as u64, text);
        }
        ChildEnding::OutOfBudget(budget) => noted.end(OutsideCallEnding::OutOfBudget, Some(budget.to_string())),
        ChildEnding::Trapped(what) => noted.end(OutsideCallEnding::Trapped, Some(what.clone())),
    }
}

fn question(ChildJob { args, stdin, .. }: &ChildJob) -> Bytes {
    json!({"args": args, "stdin": String::from_utf8_lossy(stdin)}).to_string().into()
}

fn answer(ChildReport { stdout, stderr, .. }: &ChildReport) -> Bytes {
    json!({"stdout": String::from_utf8_lossy(stdout), "stderr": String::from_utf8_lossy(stderr)}).to_string().into()
}

fn size(job: &ChildJob) -> usize {
    let args: usize = job.args.iter().map(|arg| size_of::<String>() + arg.len()).sum();
    job.program.len() + args + job.stdin.len()
}

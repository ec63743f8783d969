//! `exec`: programs that a plugin may run.

use super::GrantError;
use crate::bindings::gavel::plugin::exec;
use crate::call_meter::{CallMeter, Held};
use crate::memory_budget::NoMemory;
use crate::program::{ChildEnding, ChildJob, ChildReport, Program};
use crate::sandbox::Shared;
use crate::state::State;
use futures::future::try_join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wasmtime::Result;

/// The programs of one plugin.
pub(super) struct ExecAccess {
    programs: BTreeMap<String, Arc<Program>>,
    shared: Arc<Shared>,
}

impl ExecAccess {
    pub(super) fn open(names: &[String], shared: &Arc<Shared>) -> Result<Option<Self>, GrantError> {
        if names.is_empty() {
            return Ok(None);
        }
        let find = |name: &String| match shared.outside.programs.get(name) {
            Some(program) => Ok((name.clone(), program)),
            None => Err(GrantError::NoProgram { name: name.clone(), known: shared.outside.programs.names() }),
        };
        let programs = names.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Some(Self { programs, shared: shared.clone() }))
    }
}

/// What a job takes beside its input: its place in a queue, a task.
const JOB_BYTES: usize = 8 << 10;

/// The jobs of one call.
pub(super) struct ExecCalls {
    access: Option<Arc<ExecAccess>>,
    meter: CallMeter,
    seed: u64,
    /// Jobs so far: each sees other random numbers.
    jobs: u64,
    /// Not in `init`, whose result may be kept on disk.
    open: bool,
}

impl ExecCalls {
    pub(super) fn new(access: Option<Arc<ExecAccess>>, meter: CallMeter, seed: u64) -> Self {
        Self { access, meter, seed, jobs: 0, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Runs a job. What it printed counts as memory of the call until all jobs
    /// are done and the guest has it. The outer error ends the call.
    fn start(
        &mut self,
        job: exec::Job,
    ) -> impl Future<Output = Result<Result<(exec::Output, Held), exec::Error>, NoMemory>> + Send + use<> {
        let seed = self.seed ^ self.jobs.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.jobs += 1;
        let found = self.find(&job.program);
        let meter = self.meter.clone();
        async move {
            let (program, shared) = match found {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            let job = ChildJob {
                args: std::iter::once(job.program).chain(job.args).collect(),
                stdin: job.stdin,
                cpu: job.cpu_ms.map(|ms| Duration::from_millis(ms.into())),
                memory: job.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
                seed,
            };
            // On a thread of its own, so that its processor time is not its parent's; it ends with the one who waits.
            let mut child = JoinSet::new();
            let handle = shared.lanes.handle().clone();
            // From before the child runs: it charges what it uses, which must not be a wait of its parent's as well.
            let (_queued, parent) = (meter.pauses().queue(), meter.clone());
            child.spawn_on(
                async move {
                    let done = program.run(&shared, job, parent.pauses()).await?;
                    let printed = parent.hold(done.stdout.len() + done.stderr.len());
                    Some(printed.map(|held| (done, held)))
                },
                &handle,
            );
            match child.join_next().await {
                Some(Ok(Some(done))) => done.map(|(done, held)| Ok((done.into(), held))),
                _ => Ok(Err(exec::Error::Unavailable("the host lost the child".into()))),
            }
        }
    }

    fn find(&self, name: &str) -> Result<(Arc<Program>, Arc<Shared>), exec::Error> {
        if !self.open {
            return Err(exec::Error::InvalidRequest("`init` cannot run a program; run it in the call itself".into()));
        }
        let access = self.access.as_ref();
        let found = access.and_then(|access| Some((access.programs.get(name)?.clone(), access.shared.clone())));
        found.ok_or_else(|| {
            let granted: Vec<&str> =
                access.into_iter().flat_map(|all| all.programs.keys().map(String::as_str)).collect();
            let granted = granted.join(", ");
            exec::Error::InvalidRequest(format!(
                "the program `{name}` is not granted to this plugin, which has: {granted}"
            ))
        })
    }
}

impl From<ChildReport> for exec::Output {
    fn from(done: ChildReport) -> Self {
        Self {
            ending: match done.ending {
                ChildEnding::Exited(status) => exec::Ending::Exited(status),
                ChildEnding::OutOfBudget(budget) => exec::Ending::OutOfBudget(budget.as_str().into()),
                ChildEnding::Trapped(what) => exec::Ending::Trapped(what),
            },
            stdout: done.stdout,
            stderr: done.stderr,
            cpu_us: done.cpu.as_micros() as u64,
        }
    }
}

impl exec::Host for State {
    async fn run(&mut self, jobs: Vec<exec::Job>) -> Result<Vec<Result<exec::Output, exec::Error>>> {
        let meter = &self.grants.exec.meter;
        meter.request(jobs.len())?;
        // Until all are done: whether it suffices must not depend on which child ends first.
        let _inputs = meter.hold(jobs.iter().map(|job| JOB_BYTES + size(job)).sum())?;
        let running: Vec<_> = jobs.into_iter().map(|job| self.grants.exec.start(job)).collect();
        let done = try_join_all(running).await?;
        Ok(done.into_iter().map(|done| done.map(|(output, _)| output)).collect())
    }
}

fn size(job: &exec::Job) -> usize {
    let args: usize = job.args.iter().map(|arg| size_of::<String>() + arg.len()).sum();
    job.program.len() + args + job.stdin.len()
}

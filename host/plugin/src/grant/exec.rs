//! `exec`: programs that a plugin may run.

use super::GrantError;
use crate::bindings::gavel::plugin::exec;
use crate::pauses::Pauses;
use crate::program::{Done, Ending, Job, Program};
use crate::sandbox::Shared;
use crate::state::State;
use futures::future::join_all;
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

/// The jobs of one call.
pub(super) struct ExecCalls {
    access: Option<Arc<ExecAccess>>,
    pauses: Arc<Pauses>,
    seed: u64,
    /// Jobs so far: each sees other random numbers.
    jobs: u64,
    /// Not in `init`, whose result may be kept on disk.
    open: bool,
}

impl ExecCalls {
    pub(super) fn new(access: Option<Arc<ExecAccess>>, pauses: Arc<Pauses>, seed: u64) -> Self {
        Self { access, pauses, seed, jobs: 0, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    fn start(&mut self, job: exec::Job) -> impl Future<Output = Result<exec::Output, exec::Error>> + Send + use<> {
        let seed = self.seed ^ self.jobs.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.jobs += 1;
        let found = self.find(&job.program);
        let pauses = self.pauses.clone();
        async move {
            let (program, shared) = found?;
            let job = Job {
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
            let (_queued, charged) = (pauses.queue(), pauses.clone());
            child.spawn_on(async move { program.run(&shared, job, &charged).await }, &handle);
            match child.join_next().await {
                Some(Ok(Some(done))) => Ok(done.into()),
                _ => Err(exec::Error::Unavailable("the host lost the child".into())),
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

impl From<Done> for exec::Output {
    fn from(done: Done) -> Self {
        Self {
            ending: match done.ending {
                Ending::Exited(status) => exec::Ending::Exited(status),
                Ending::OutOfBudget(budget) => exec::Ending::OutOfBudget(budget.as_str().into()),
                Ending::Trapped(what) => exec::Ending::Trapped(what),
            },
            stdout: done.stdout,
            stderr: done.stderr,
            cpu_us: done.cpu.as_micros() as u64,
        }
    }
}

impl exec::Host for State {
    async fn run(&mut self, jobs: Vec<exec::Job>) -> Result<Vec<Result<exec::Output, exec::Error>>> {
        let running: Vec<_> = jobs.into_iter().map(|job| self.grants.exec.start(job)).collect();
        Ok(join_all(running).await)
    }
}

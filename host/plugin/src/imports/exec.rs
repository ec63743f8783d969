//! The host's side of `exec`.

use crate::bindings::gavel::plugin::exec;
use crate::imports::state::State;
use crate::outside::{ChildEnding, ChildJob, ChildReport, ExecError};
use std::time::Duration;
use wasmtime::Result;

impl exec::Host for State {
    async fn run(&mut self, jobs: Vec<exec::Job>) -> Result<Vec<Result<exec::Output, exec::Error>>> {
        let done = self.grants.exec.run(jobs.into_iter().map(ChildJob::from).collect()).await?;
        Ok(done.into_iter().map(|done| done.map(exec::Output::from).map_err(exec::Error::from)).collect())
    }
}

impl From<exec::Job> for ChildJob {
    fn from(job: exec::Job) -> Self {
        Self {
            program: job.program,
            args: job.args,
            stdin: job.stdin,
            cpu: job.cpu_ms.map(|ms| Duration::from_millis(ms.into())),
            memory: job.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        }
    }
}

impl From<ChildReport> for exec::Output {
    fn from(report: ChildReport) -> Self {
        Self {
            ending: match report.ending {
                ChildEnding::Exited(status) => exec::Ending::Exited(status),
                ChildEnding::OutOfBudget(budget) => exec::Ending::OutOfBudget(budget.as_str().into()),
                ChildEnding::Trapped(what) => exec::Ending::Trapped(what),
            },
            stdout: report.stdout,
            stderr: report.stderr,
            cpu_us: report.cpu.as_micros() as u64,
        }
    }
}

impl From<ExecError> for exec::Error {
    fn from(error: ExecError) -> Self {
        match error {
            ExecError::InvalidRequest(what) => Self::InvalidRequest(what),
            ExecError::Unavailable(what) => Self::Unavailable(what),
        }
    }
}

//! A program as a child process, with the environment that it sees.

use crate::descendants::{self, Mark};
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The variables of this process that every program sees: those that a program needs to start.
pub const SHOWN_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// A program's process, which is killed with all that it started when this is dropped.
pub struct ChildProgram {
    child: Child,
    mark: Mark,
}

impl ChildProgram {
    /// Starts a program with its arguments. It sees the variables `env`, those in [`SHOWN_VARIABLES`], and `mark`, by
    /// whose value the processes that it starts are found.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        command: &[String],
        env: impl IntoIterator<Item = (String, String)>,
        mark: &'static str,
    ) -> io::Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"));
        };
        let shown = SHOWN_VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        let mark = Mark::new(mark);
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(shown)
            .envs(env)
            .env(mark.variable, &mark.value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for gavel, which ends its step first.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, mark })
    }

    /// Its stdin, stdout and stderr, the first time.
    ///
    /// # Errors
    /// They were taken before.
    pub fn pipes(&mut self) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
        match (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(io::Error::other("it has no stdin, stdout or stderr")),
        }
    }

    /// Waits for its end, and kills what it leaves running.
    ///
    /// # Errors
    /// The machine does not report its end.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        #[cfg(target_os = "linux")]
        if let Some(id) = self.child.id() {
            // Until it is waited for, no other process has its number. A machine that does not report this has only what
            // follows.
            if exit::of(id).await.is_ok() {
                self.kill();
            }
        }
        self.child.wait().await
    }

    fn kill(&self) {
        // Programs such as `npx` start another as a child of their own.
        if let Some(group) = self.child.id().and_then(|id| libc::pid_t::try_from(id).ok()) {
            // Before, each has its parent; after that, none of the group starts another.
            descendants::kill(group, &self.mark);
            // SAFETY: it only sends a signal. The child was not waited for, so its process id still names its
            // group.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            descendants::kill(group, &self.mark);
        }
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(target_os = "linux")]
mod exit {
    use std::io;
    use std::os::fd::{FromRawFd, OwnedFd};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Waits until the child with this number has exited. It stays to be waited for.
    pub(super) async fn of(id: u32) -> io::Result<()> {
        // SAFETY: the call takes plain integers. It returns a new descriptor that nothing else owns.
        let process = unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, id, 0);
            match i32::try_from(descriptor) {
                Ok(descriptor @ 0..) => OwnedFd::from_raw_fd(descriptor),
                _ => return Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: the descriptor is owned, and nothing closes it before this.
        let process = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
        let process = process.map_err(|error| error.into_parts().1)?;
        process.readable().await?.retain_ready();
        Ok(())
    }
}

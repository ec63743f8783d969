//! A server as a child process, which speaks over stdin and stdout.

use super::damaged::{Damage, Damaged};
use crate::child_program::ChildProgram;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

/// The variable by which a server's processes are found.
const MARK: &str = "GAVEL_MCP_SERVER";
/// The longest message that a server may send, in bytes.
const MESSAGE_BYTES: usize = 16 << 20;
/// How much of the end of its stderr is kept, in bytes.
const STDERR_BYTES: usize = 2048;
/// How long the rest of its stderr is waited for once it has ended. What it started may keep its stderr open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

/// A server's process, which is killed with all that it started when this is dropped.
pub(super) struct Process {
    _child: ChildProgram,
    /// The end of its stderr, until it is closed.
    last_words: watch::Receiver<Vec<u8>>,
    damaged: Damaged,
}

impl Process {
    /// Starts a program with its arguments. It sees the variables `env`, those that every program sees, and `MARK`.
    pub(super) fn start(
        command: &[String],
        env: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<(Self, Messages<ChildStdout>, ChildStdin)> {
        let mut child = ChildProgram::start(command, env, MARK)?;
        let (stdin, stdout, stderr) = child.pipes()?;
        let (kept, last_words) = watch::channel(Vec::new());
        tokio::spawn(keep_last(stderr, kept));
        let (messages, damaged) = Messages::of(stdout);
        Ok((Self { _child: child, last_words, damaged }, messages, stdin))
    }

    /// The messages that are damaged from now on.
    pub(super) fn damaged(&self) -> Damaged {
        self.damaged.anew()
    }

    /// The end of what it wrote to stderr, for a server that ends.
    pub(super) async fn last_words(&self) -> String {
        let mut last_words = self.last_words.clone();
        // This returns, with an error, once stderr is closed.
        let _ = timeout(LAST_WORDS_WITHIN, last_words.wait_for(|_| false)).await;
        String::from_utf8_lossy(&last_words.borrow()).trim().to_owned()
    }
}

async fn keep_last(mut stderr: ChildStderr, kept: watch::Sender<Vec<u8>>) {
    let mut chunk = [0; STDERR_BYTES];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        kept.send_modify(|kept| {
            kept.extend_from_slice(&chunk[..read]);
            let over = kept.len().saturating_sub(STDERR_BYTES);
            kept.drain(..over);
        });
    }
}

/// Reads lines, each of which is a message. Ends with an error at a line that is longer than a message may be, and reports
/// one that is damaged.
pub(super) struct Messages<R> {
    inner: R,
    /// The line so far.
    line: Vec<u8>,
    damage: Damage,
}

impl<R> Messages<R> {
    fn of(inner: R) -> (Self, Damaged) {
        let damage = Damage::default();
        let damaged = damage.reports();
        (Self { inner, line: Vec::new(), damage }, damaged)
    }

    /// Adds what was read.
    fn add(&mut self, mut new: &[u8]) {
        while let Some(end) = new.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&new[..end]);
            self.damage.check(&self.line);
            self.line = Vec::new();
            new = &new[end + 1..];
        }
        self.line.extend_from_slice(new);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.add(&buffer.filled()[before..]);
        if self.line.len() > MESSAGE_BYTES {
            let what = format!("it sent a message of more than {MESSAGE_BYTES} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_limited_and_lines_are_not() {
        let read = async |text: Vec<u8>| {
            let (mut lines, _) = Messages::of(&text[..]);
            let mut read = Vec::new();
            lines.read_to_end(&mut read).await.map(|_| read.len()).map_err(|error| error.to_string())
        };
        let lines = [vec![b'x'; MESSAGE_BYTES - 1], vec![b'\n']].concat().repeat(2);
        assert_eq!(read(lines.clone()).await, Ok(lines.len()));
        let error = read(vec![b'x'; 2 * MESSAGE_BYTES]).await.unwrap_err();
        assert_eq!(error, format!("it sent a message of more than {MESSAGE_BYTES} bytes"));
    }

    /// Starts processes that leave the group: with a parent, without one, and without the variables. Each prints `ready`,
    /// and `survived` once it can read from the pipe `$0`.
    #[cfg(target_os = "linux")]
    const LEAVES: &str = r#"
        leaver="echo ready; read line <'$0'; echo survived"
        setsid sh -c "$leaver" &
        (setsid sh -c "$leaver" &)
        setsid env -i "$(command -v sh)" -c "$leaver" &
        wait
    "#;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_server_started_ends_with_it_in_any_group() {
        use std::io::Write;
        use tokio::io::{AsyncBufReadExt, BufReader};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let pipe = path.to_str().unwrap();
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let mut waited_for = std::fs::OpenOptions::new().read(true).write(true).open(pipe).unwrap();

        let start = |script: &str| Process::start(&["sh", "-c", script, pipe].map(str::to_owned), []).unwrap();
        let (other, other_stdout, _stdin) = start("echo ready; read line <$0; echo survived");
        let (server, stdout, _stdin) = start(LEAVES);
        let (mut stdout, mut other_stdout) = (BufReader::new(stdout), BufReader::new(other_stdout));
        let mut text = String::new();
        for _ in 0..3 {
            stdout.read_line(&mut text).await.unwrap();
        }
        drop(server);
        // Whatever is left reads it.
        waited_for.write_all(&b"line\n".repeat(4)).unwrap();
        stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ready\n".repeat(3));
        text.clear();
        // Another server goes on.
        other_stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ready\nsurvived\n");
        drop(other);
    }
}

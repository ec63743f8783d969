//! A program as an agent: a process that gets its task on stdin, asks the gateway, and prints its answer.

use gavel_agent::ChildProgram;
use gavel_data::{Blame, Budget, Diagnosis, Outcome};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// The variable by which the processes of an agent are found.
const MARK: &str = "GAVEL_AGENT_PROCESS";
/// How much of the end of each stream is kept, in bytes.
const TAIL: usize = 2048;
/// How long the rest of its output is read once it and what it started have ended.
const REST_WITHIN: Duration = Duration::from_secs(2);

/// What a program has printed. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Output>>);

#[derive(Default)]
struct Output {
    /// Bytes of both streams.
    bytes: usize,
    /// The line of stdout that has not ended.
    line: Vec<u8>,
    /// The last line of stdout that is not blank.
    last_line: Vec<u8>,
    /// The ends of stdout and of stderr.
    tails: [Vec<u8>; 2],
}

impl Printed {
    /// The last line of stdout that is not blank.
    pub(crate) fn last_line(&self) -> String {
        let output = self.lock();
        let last = if output.line.trim_ascii().is_empty() { &output.last_line } else { &output.line };
        String::from_utf8_lossy(last).trim().to_owned()
    }

    /// The end of what it printed, on stdout and then on stderr; `None` if it printed nothing.
    pub(crate) fn diagnosis(&self) -> Option<Diagnosis> {
        let output = self.lock();
        let ends = output.tails.each_ref().map(|tail| String::from_utf8_lossy(tail).trim().to_owned());
        let stderr = ends.iter().filter(|end| !end.is_empty()).cloned().collect::<Vec<_>>().join("\n");
        (!stderr.is_empty()).then(|| Diagnosis { stderr, ..Diagnosis::default() })
    }

    /// The last line of stderr or, without any, of stdout.
    fn last_words(&self) -> String {
        let output = self.lock();
        let last = |tail: &Vec<u8>| {
            let text = String::from_utf8_lossy(tail);
            text.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
        };
        output.tails.iter().rev().find_map(last).unwrap_or_default()
    }

    /// Adds what was read; whether it is at most `most` bytes together.
    fn add(&self, new: &[u8], is_stdout: bool, most: usize) -> bool {
        let mut output = self.lock();
        let output = &mut *output;
        output.bytes += new.len();
        let tail = &mut output.tails[usize::from(!is_stdout)];
        tail.extend_from_slice(new);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
        if is_stdout {
            for piece in new.split_inclusive(|byte| *byte == b'\n') {
                output.line.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    let line = std::mem::take(&mut output.line);
                    if !line.trim_ascii().is_empty() {
                        output.last_line = line;
                    }
                }
            }
        }
        output.bytes <= most
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a program to its end: it gets `input` on stdin, sees the variables `env`, and may print `most` bytes. What it
/// leaves running is ended, also if this is dropped.
///
/// # Errors
/// Why it gave no answer.
pub(crate) async fn run(
    command: &[String],
    env: Vec<(String, String)>,
    input: String,
    most: usize,
    printed: &Printed,
) -> Result<(), Outcome> {
    let cannot = |error: io::Error| {
        let program = command.first().map_or("", String::as_str);
        fault(format!("the program {program:?} cannot be started: {error}"))
    };
    let mut child = ChildProgram::start(command, env, MARK).map_err(cannot)?;
    let (mut stdin, stdout, stderr) = child.pipes().map_err(cannot)?;
    let feeding = async move {
        // A program need not read its task.
        let _ = stdin.write_all(input.as_bytes()).await;
    };
    let reading = async { tokio::join!(read(stdout, true, most, printed), read(stderr, false, most, printed)) };
    let ending = child.end();
    tokio::pin!(feeding, reading, ending);
    let (mut is_fed, mut is_read) = (false, None);
    let status = loop {
        tokio::select! {
            status = &mut ending => break status,
            () = &mut feeding, if !is_fed => is_fed = true,
            (out, err) = &mut reading, if is_read.is_none() => {
                is_read = Some(out && err);
                if !(out && err) {
                    break Ok(ExitStatus::default());
                }
            }
        }
    };
    if is_read.is_none() {
        is_read = timeout(REST_WITHIN, reading).await.ok().map(|(out, err)| out && err);
    }
    if is_read == Some(false) {
        let what = format!("it printed more than {most} bytes\nhint: print less, or set limits.output of the agent");
        return Err(Outcome::OutOfBudget { which: Budget::Output, what });
    }
    let status = status.map_err(|error| Outcome::Fault {
        whose: Blame::Host,
        what: format!("the end of the program cannot be read: {error}"),
    })?;
    let last = printed.last_words();
    let said = if last.is_empty() { ", and printed nothing".to_owned() } else { format!(": {last}") };
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(fault(format!("the program ended with exit code {code}{said}"))),
        (None, Some(signal)) => Err(fault(format!("the program was ended by signal {signal}{}{said}", name(signal)))),
        (None, None) => Err(fault(format!("the program ended without a status{said}"))),
    }
}

/// Reads to the end; whether all output was within its limit.
async fn read(mut pipe: impl AsyncRead + Unpin, is_stdout: bool, most: usize, printed: &Printed) -> bool {
    let mut chunk = [0; 8192];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(read @ 1..) => {
                if !printed.add(&chunk[..read], is_stdout, most) {
                    return false;
                }
            }
            // Nothing more comes.
            Ok(0) | Err(_) => return true,
        }
    }
}

/// The name of a signal that ends programs, in brackets.
fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

pub(crate) fn fault(what: String) -> Outcome {
    Outcome::Fault { whose: Blame::Plugin, what }
}

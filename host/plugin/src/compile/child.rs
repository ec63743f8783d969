//! Compilation in a child process: the parent's side, and the command of the
//! child. The child reads the component from its standard input and writes the
//! code to its standard output, or an error as a line of JSON to its standard
//! error.

use super::here::compile_here;
use super::limits::{LoadBudget, LoadLimits};
use super::order::{Form, NotCompiled, Order};
use super::output::Output;
use crate::budget::machine_limits;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The hidden command with which a program compiles components in a child; its
/// one argument is for [`compile_command`].
pub const COMPILE_COMMAND: &str = "compile-component";

/// How often the parent looks whether the child has ended. A compilation takes at least some 50 ms.
const LOOK: Duration = Duration::from_millis(2);
/// The exit status of a child that ran out of wall-clock time.
const TIMED_OUT: u8 = 124;
/// The exit status of a child that has reported why there is no code.
const REFUSED: u8 = 3;
/// The exit status of a child that cannot write its code, or why there is none. It may write nothing else then.
const UNWRITTEN: u8 = 4;
/// The most threads of the compiler. Each compiles one function at a time with
/// memory of its own, and the memory limit is meant for this many.
const MAX_THREADS: usize = 8;
/// The signals of a process that crashes by itself, not of one that the user or the system ends.
const CRASHES: [i32; 7] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGSYS, libc::SIGTRAP];
/// The most bytes of an error that are read: a line, or the end of a panic.
const ERROR_BYTES: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Argument {
    form: Form,
    fuel: bool,
    functions: Option<PathBuf>,
    cache: Option<PathBuf>,
    limits: LoadLimits,
}

/// A program that compiles components: it must answer [`COMPILE_COMMAND`], after these arguments, with
/// [`compile_command`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments, for a program that is an interpreter.
    pub arguments: Vec<String>,
}

impl From<PathBuf> for CompilerProgram {
    fn from(program: PathBuf) -> Self {
        Self { program, arguments: Vec::new() }
    }
}

/// Compiles in a child and waits for it.
pub(super) fn compile(
    compiler: &CompilerProgram,
    limits: &LoadLimits,
    order: Order<'_>,
    cache: Option<&Path>,
) -> Result<Output, NotCompiled> {
    let failed = |error: io::Error| NotCompiled::Host(format!("{}: {error}", compiler.program.display()));
    let [component, mut code, mut error] = files(order.component).map_err(|error| unwritten(&error.to_string()))?;
    let status = run(compiler, limits, order, cache, [&component, &code, &error]).map_err(failed)?;
    if status.success() {
        let mut bytes = Vec::new();
        code.rewind().and_then(|()| code.read_to_end(&mut bytes)).map_err(failed)?;
        // A program that is not `gavel` may end like this, and its output would be kept.
        return Output::read(&bytes).ok_or_else(|| {
            NotCompiled::Host(format!("{} ended without the code of the component", compiler.program.display()))
        });
    }
    // It has limited its own files, so that its code ends there.
    if code.metadata().map_err(failed)?.len() >= limits.memory as u64 {
        return Err(NotCompiled::Exceeded(LoadBudget::Memory));
    }
    let mut told = Vec::new();
    error.rewind().and_then(|()| (&error).take(ERROR_BYTES).read_to_end(&mut told)).map_err(failed)?;
    Err(reason(status, &String::from_utf8_lossy(&told)))
}

/// The files of a child, without names: the component, the code, and the error.
fn files(component: &[u8]) -> io::Result<[File; 3]> {
    let mut input = tempfile::tempfile()?;
    input.write_all(component)?;
    input.rewind()?;
    Ok([input, tempfile::tempfile()?, tempfile::tempfile()?])
}

/// The error of a folder for these files that cannot be written, or has no room.
fn unwritten(what: &str) -> NotCompiled {
    NotCompiled::Host(format!(
        "the compiler cannot write its files in {}: {what}\nhint: set the variable TMPDIR to a folder that can be written, with some hundred megabytes of room and no limit on files (`ulimit -f`)",
        std::env::temp_dir().display()
    ))
}

fn run(
    compiler: &CompilerProgram,
    limits: &LoadLimits,
    order: Order<'_>,
    cache: Option<&Path>,
    [component, code, error]: [&File; 3],
) -> io::Result<ExitStatus> {
    let [functions, cache] = [order.functions, cache].map(|path| path.map(Path::to_owned));
    let argument = Argument { form: order.form, fuel: order.fuel, functions, cache, limits: *limits };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments).arg(COMPILE_COMMAND).arg(serde_json::to_string(&argument)?);
    // The compiler must not see the keys of endpoints.
    command.env_clear().env("RAYON_NUM_THREADS", threads.to_string());
    for name in ["LD_LIBRARY_PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // Ctrl-C is for the run, which may finish its step first.
    command.process_group(0);
    command.stdin(component.try_clone()?).stdout(code.try_clone()?).stderr(error.try_clone()?);
    wait(command.spawn()?, limits.timeout)
}

/// Waits for a child, and kills it after `time`: a child that is stopped, as by SIGSTOP, does not end itself.
fn wait(mut child: Child, time: Duration) -> io::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > time {
            child.kill()?;
            child.wait()?;
            return Ok(ExitStatus::from_raw(i32::from(TIMED_OUT) << 8));
        }
        std::thread::sleep(LOOK);
    }
}

fn reason(status: ExitStatus, told: &str) -> NotCompiled {
    let out_of_memory = ["memory allocation of", "Cannot allocate memory", "out of memory"];
    if out_of_memory.iter().any(|sign| told.contains(sign)) {
        return NotCompiled::Exceeded(LoadBudget::Memory);
    }
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(TIMED_OUT) => NotCompiled::Exceeded(LoadBudget::Timeout),
        (Some(code), _) if code == i32::from(UNWRITTEN) => {
            unwritten(if told.is_empty() { "it has written no reason" } else { told })
        }
        (Some(code), _) if code == i32::from(REFUSED) => serde_json::from_str(told.trim())
            .unwrap_or_else(|_| NotCompiled::Host(format!("the compiler's answer cannot be parsed: {told}"))),
        (_, Some(libc::SIGXCPU)) => NotCompiled::Exceeded(LoadBudget::Cpu),
        // A lower limit than its own.
        (_, Some(libc::SIGXFSZ)) => unwritten(&io::Error::from_raw_os_error(libc::EFBIG).to_string()),
        (_, signal) => {
            let last = told.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            let what = format!("the compiler ended with {status}: {last}");
            match signal.is_some_and(|signal| !CRASHES.contains(&signal)) {
                true => NotCompiled::Host(what),
                false => NotCompiled::Invalid(what),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only the parent reads them")]
fn streams() -> (io::Stdout, io::Stderr) {
    (io::stdout(), io::stderr())
}

/// Answers [`COMPILE_COMMAND`]: limits this process, compiles the component on
/// the standard input, and writes the code to the standard output. Returns the
/// exit status of the process.
pub fn compile_command(argument: &str) -> u8 {
    let written = match answer(argument) {
        Ok(output) => output.write(&mut streams().0.lock()).map(|()| 0),
        Err(error) => serde_json::to_vec(&error)
            .map_err(io::Error::from)
            .and_then(|error| streams().1.lock().write_all(&error))
            .map(|()| REFUSED),
    };
    written.unwrap_or_else(|error| {
        // If this has no room either, the status still reports that there is no code.
        let _ = write!(streams().1.lock(), "{error}");
        UNWRITTEN
    })
}

fn answer(argument: &str) -> Result<Output, NotCompiled> {
    let other = |what: String| NotCompiled::Invalid(format!("the compiler: {what}"));
    let Argument { form, fuel, functions, cache, limits } =
        serde_json::from_str(argument).map_err(|error| other(error.to_string()))?;
    limit(&limits).map_err(|error| other(format!("its limits cannot be set: {error}")))?;
    let mut component = Vec::new();
    io::stdin().lock().read_to_end(&mut component).map_err(|error| other(error.to_string()))?;
    let order = Order { component: &component, form, fuel, functions: functions.as_deref() };
    compile_here(order, cache.as_deref())
}

/// Sets the limits of this process.
fn limit(limits: &LoadLimits) -> io::Result<()> {
    // Where its own address space is not known, the other limits must suffice.
    if let Some(own) = machine_limits::used_address_space() {
        let memory = own.saturating_add(limits.memory as u64);
        set(libc::RLIMIT_AS, memory, memory)?;
    }
    // It is killed a second later if it does not end by itself.
    let cpu = limits.cpu.as_secs_f64().ceil() as u64;
    set(libc::RLIMIT_CPU, cpu, cpu.saturating_add(1))?;
    set(libc::RLIMIT_FSIZE, limits.memory as u64, limits.memory as u64)?;
    set(libc::RLIMIT_CORE, 0, 0)?;
    end_with_parent();
    end_after(limits.timeout)
}

fn set(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that outlives the call, which writes nothing else.
    if unsafe { libc::getrlimit(resource, &mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let wanted = libc::rlimit { rlim_cur: soft.min(now.rlim_max), rlim_max: hard.min(now.rlim_max) };
    // SAFETY: the pointer is to a local that outlives the call, which only reads it.
    match unsafe { libc::setrlimit(resource, &wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: it takes and returns plain integers. A failure leaves a child that ends by its other limits.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
    };
}

fn end_after(time: Duration) -> io::Result<()> {
    std::thread::Builder::new()
        .name("gavel-timeout".into())
        .spawn(move || {
            std::thread::sleep(time);
            // SAFETY: it has no preconditions, and does not return.
            unsafe { libc::_exit(TIMED_OUT.into()) }
        })
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_room_is_named_with_what_to_do() {
        let status = ExitStatus::from_raw(i32::from(UNWRITTEN) << 8);
        let folder = std::env::temp_dir().display().to_string();
        let full = "No space left on device (os error 28)";
        for (told, what) in [(full, full), ("", "it has written no reason")] {
            let error = reason(status, told);
            assert!(matches!(error, NotCompiled::Host(_)), "{error}");
            let start =
                format!("the compiler cannot write its files in {folder}: {what}\nhint: set the variable TMPDIR");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }

    #[test]
    fn code_as_long_as_the_memory_has_used_up_the_memory() {
        let limits = LoadLimits { memory: 1000, ..LoadLimits::default() };
        let order = || Order { component: b"", form: Form::Plain, fuel: false, functions: None };
        for (length, is_memory) in [(1000, true), (999, false)] {
            let arguments = vec!["-c".to_owned(), format!("printf %{length}d 0; exit {UNWRITTEN}")];
            let compiler = CompilerProgram { program: "/bin/sh".into(), arguments };
            let error = compile(&compiler, &limits, order(), None).err().unwrap();
            assert_eq!(matches!(error, NotCompiled::Exceeded(LoadBudget::Memory)), is_memory, "{length}: {error}");
        }
        // Where a lower limit than its own ends the child, the plugin is not to blame.
        let error = reason(ExitStatus::from_raw(libc::SIGXFSZ), "").to_string();
        assert!(error.contains("cannot write its files in") && error.contains("File too large"), "{error}");
    }

    #[test]
    fn a_child_that_is_stopped_ends_when_its_time_does() {
        let start = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        let ended = wait(start("kill -STOP $$"), Duration::from_millis(1)).unwrap();
        assert!(matches!(reason(ended, ""), NotCompiled::Exceeded(LoadBudget::Timeout)));
        assert_eq!(wait(start("exit 7"), Duration::MAX).unwrap().code(), Some(7));
    }
}

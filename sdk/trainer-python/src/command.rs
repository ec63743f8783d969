//! The `gavel` command that the wheel brings: a program that is linked from the archive of the module.

use std::ffi::c_int;
use std::process::ExitCode;

/// The status of a program whose status is unknown, as that of an error.
const ERROR: u8 = 2;

/// Runs the command of this process, whose start is that of a program in C, and returns its exit status.
// SAFETY: only the program is linked with a symbol of this name; the module exports one other symbol alone.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> c_int {
    // As each program in Rust does: a pipe that is closed is an error of the write, not the end of the process.
    // SAFETY: no other thread runs yet, and no handler is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // The environment that the wheel is installed in need not be active.
    if let Some(environment) = std::env::current_exe().ok().as_deref().and_then(|gavel| gavel.parent()?.parent()) {
        gavel_project::use_environment(environment.to_owned());
    }
    status(gavel::gavel()).into()
}

/// The number of an exit code, which the standard library does not give.
fn status(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(ERROR)
}

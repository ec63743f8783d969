//! The `gavel` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    gavel::gavel()
}

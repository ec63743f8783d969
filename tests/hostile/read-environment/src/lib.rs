//! Looks for the host's environment variables, arguments, input and folder.

use attack::{Reference, Sample, Score};
use std::io::Read;

fn attack(_: &Sample, _: &Reference) -> Score {
    let mut input = Vec::new();
    let read = std::io::stdin().read_to_end(&mut input).unwrap_or(0);
    attack::refused([
        ("a variable", std::env::vars_os().next().is_some()),
        ("an argument", std::env::args_os().next().is_some()),
        ("the standard input", read > 0),
        ("the folder's files", std::fs::read_dir(".").is_ok()),
        ("a terminal", std::io::IsTerminal::is_terminal(&std::io::stderr())),
    ])
}

attack::on_score!(attack);

//! `gavel completions`

use crate::terminal;
use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;
use std::process::ExitCode;

/// Print the completion script of a shell.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel completions bash > ~/.local/share/bash-completion/completions/gavel\n  gavel completions zsh > ~/.zfunc/_gavel    # with `fpath+=~/.zfunc` before compinit in ~/.zshrc\n  gavel completions fish > ~/.config/fish/completions/gavel.fish"
)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, gavel: &Command) -> Result<ExitCode> {
    // The generators offer hidden commands, too.
    let mut visible = Command::new("gavel")
        .version(env!("CARGO_PKG_VERSION"))
        .args(gavel.get_arguments().cloned())
        .subcommands(gavel.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible, "gavel", &mut script);
    terminal::data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

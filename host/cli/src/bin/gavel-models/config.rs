//! `gavel config`

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use gavel::terminal;
use gavel_config::schema;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum ConfigCommand {
    Schema(SchemaArgs),
}

/// Print the JSON Schema of a configuration, from which editors complete and check it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel config schema > run.schema.json    # and `#:schema ./run.schema.json` in the first line of run.toml"
)]
pub struct SchemaArgs {
    /// The command that reads the configuration.
    #[arg(default_value = "train", value_name = "COMMAND")]
    command: Reader,
}

/// The commands that read a configuration.
#[derive(Clone, Copy, ValueEnum)]
enum Reader {
    Train,
    Sft,
    RewardModel,
    Dpo,
    Eval,
}

pub fn run(command: ConfigCommand) -> Result<ExitCode> {
    let ConfigCommand::Schema(SchemaArgs { command }) = command;
    let command = match command {
        Reader::Train => gavel_config::Command::Train,
        Reader::Sft => gavel_config::Command::Sft,
        Reader::RewardModel => gavel_config::Command::RewardModel,
        Reader::Dpo => gavel_config::Command::Dpo,
        Reader::Eval => gavel_config::Command::Eval,
    };
    terminal::json_pretty(&schema(command))?;
    Ok(ExitCode::SUCCESS)
}

//! `gavel plugin new`

use super::shown;
use anyhow::Result;
use clap::{Args, ValueEnum};
use gavel_project::{Kind, Language, New};
use std::path::Path;
use std::process::ExitCode;

/// Make a folder with a plugin that builds and passes its tests.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin new polite --lang python")]
pub struct NewArgs {
    /// The plugin's name, and that of its folder: lower-case letters, digits and dashes.
    name: String,
    /// What it is written in.
    #[arg(long, value_name = "LANGUAGE", value_parser = ["rust", "python", "js", "c"])]
    lang: String,
    /// What it does.
    #[arg(long, value_enum, default_value_t = KindArg::Reward)]
    kind: KindArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    /// Scores one sample.
    Reward,
    /// Scores the samples of a group, which it may compare.
    Judger,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Reward => Self::Reward,
            KindArg::Judger => Self::Judger,
        }
    }
}

pub fn run(args: NewArgs) -> Result<ExitCode> {
    let language: Language = args.lang.parse()?;
    let new = New { name: &args.name, language, kind: args.kind.into() };
    let created = gavel_project::create(new, Path::new("."))?;
    println!("made {}/, a {} in {language}", shown(&created.project.folder), new.kind.as_str());
    println!("\nnext:\n  cd {}", args.name);
    for tool in &created.missing {
        println!("  {}    # {}: it {}", tool.install, tool.name, tool.purpose);
    }
    println!("  gavel plugin build\n  gavel plugin test");
    Ok(ExitCode::SUCCESS)
}

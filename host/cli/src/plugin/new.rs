//! `gavel plugin new`

use crate::terminal::{self, outln};
use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use gavel_project::{Convention, Created, Kind, New, Template, Wrap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a folder with a plugin that builds and passes its tests.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel plugin new polite --lang python\n  gavel plugin new ours --from-verl rewards/math.py:compute_score"
)]
pub struct NewArgs {
    /// The plugin's name, and that of its folder: lower-case letters, digits and dashes.
    name: String,
    /// What it is written in.
    #[arg(long, value_name = "LANGUAGE", value_parser = template())]
    #[arg(required_unless_present_any = ["from_verl", "from_trl"])]
    lang: Option<Template>,
    /// What it does.
    #[arg(long, value_enum, default_value_t = KindArg::Reward)]
    kind: KindArg,
    /// Wrap a reward function made for verl; without FUNCTION, `compute_score`.
    #[arg(long, value_name = "FILE.py[:FUNCTION]", conflicts_with_all = ["lang", "kind", "from_trl"])]
    from_verl: Option<String>,
    /// Wrap a reward function made for TRL; without FUNCTION, the only one of the file.
    #[arg(long, value_name = "FILE.py[:FUNCTION]", conflicts_with_all = ["lang", "kind"])]
    from_trl: Option<String>,
    /// The packages of the wrapped function [default: the requirements.txt beside its file].
    #[arg(long, value_name = "FILE", conflicts_with = "lang")]
    requirements: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    /// Scores one sample.
    Reward,
    /// Scores the samples of a group, which it may compare.
    Judger,
}

/// The languages by their words.
fn template() -> impl TypedValueParser<Value = Template> {
    PossibleValuesParser::new(Template::ALL.map(Template::as_str)).try_map(|word| word.parse())
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
    if let Some(source) = &args.from_verl {
        return wrap(&args, Convention::Verl, source);
    }
    if let Some(source) = &args.from_trl {
        return wrap(&args, Convention::Trl, source);
    }
    let Some(template) = args.lang else {
        // clap asks for one of the three.
        bail!("there is nothing to make\nhint: name a language with --lang");
    };
    let new = New { name: &args.name, template, kind: args.kind.into() };
    let created = gavel_project::create(new, Path::new(""))?;
    outln!("made {}/, a {} in {template}", created.project.folder.display(), new.kind.as_str());
    next_steps(&args.name, &created);
    Ok(ExitCode::SUCCESS)
}

fn wrap(args: &NewArgs, convention: Convention, source: &str) -> Result<ExitCode> {
    let (file, function) = match source.rsplit_once(':') {
        Some((file, function)) => (file, Some(function)),
        None => (source, None),
    };
    let wrap = Wrap {
        name: &args.name,
        convention,
        file: Path::new(file),
        function,
        requirements: args.requirements.as_deref(),
    };
    let wrapped = gavel_project::wrap(wrap, Path::new(""))?;
    let files: Vec<_> = wrapped.files.iter().map(|file| file.display().to_string()).collect();
    outln!("made {}/ around `{}`", wrapped.created.project.folder.display(), wrapped.function);
    outln!("  copied  {}", files.join(", "));
    for problem in &wrapped.problems {
        outln!();
        terminal::out_lines(format_args!("will not work as it is: {problem}"));
    }
    next_steps(&args.name, &wrapped.created);
    Ok(ExitCode::SUCCESS)
}

fn next_steps(name: &str, created: &Created) {
    outln!();
    outln!("next:");
    outln!("  cd {name}");
    for tool in &created.missing {
        outln!("  {}    # {}: it {}", tool.install, tool.name, tool.purpose);
    }
    outln!("  gavel plugin build");
    outln!("  gavel plugin test");
}

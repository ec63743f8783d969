//! `gavel plugin new`

use super::first_cases::first_cases;
use crate::terminal::{self, outln};
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gavel_project::{Convention, Created, Kind, New, Template, Wrap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a folder with a plugin that builds and passes its tests.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel plugin new polite --lang python\n  gavel plugin new ours --from-verl rewards/math.py:compute_score --data train.parquet"
)]
pub struct NewArgs {
    /// The name of the plugin and of its folder: lower-case letters, digits and dashes.
    name: String,
    /// The language of the plugin.
    #[arg(long, value_name = "LANGUAGE", value_parser = template())]
    #[arg(required_unless_present_any = ["from_verl", "from_trl"])]
    lang: Option<Template>,
    /// The kind of plugin.
    #[arg(long, default_value = Kind::Reward.as_str(), value_parser = kind())]
    kind: Kind,
    /// Wrap a reward function made for verl; without FUNCTION, `compute_score`.
    #[arg(long, value_name = "FILE.py[:FUNCTION]", conflicts_with_all = ["lang", "kind", "from_trl"])]
    from_verl: Option<String>,
    /// Wrap a reward function made for TRL; without FUNCTION, the only one in the file.
    #[arg(long, value_name = "FILE.py[:FUNCTION]", conflicts_with_all = ["lang", "kind"])]
    from_trl: Option<String>,
    /// The packages of the wrapped function [default: the requirements.txt beside its file].
    #[arg(long, value_name = "FILE", conflicts_with = "lang")]
    requirements: Option<PathBuf>,
    /// A dataset, whose first rows become the golden cases of the wrapped function: a file, a folder, a pattern, or one
    /// of the hub, hf://datasets/ORG/NAME/FILES.
    #[arg(long, value_name = "PATH", conflicts_with = "lang")]
    data: Option<PathBuf>,
}

/// The languages by their names on the command line.
fn template() -> impl TypedValueParser<Value = Template> {
    PossibleValuesParser::new(Template::ALL.map(Template::as_str)).try_map(|word| word.parse())
}

/// The kinds by their names on the command line.
fn kind() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::ALL.map(|kind| PossibleValue::new(kind.as_str()).help(kind.purpose()));
    PossibleValuesParser::new(kinds).try_map(|word| word.parse())
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
    let new = New { name: &args.name, template, kind: args.kind };
    let created = gavel_project::create(new, Path::new(""))?;
    let article = if new.kind == Kind::Agent { "an" } else { "a" };
    outln!("made {}/, {article} {} in {template}", created.project.folder.display(), new.kind.as_str());
    next_steps(&args.name, &created);
    Ok(ExitCode::SUCCESS)
}

fn wrap(args: &NewArgs, convention: Convention, source: &str) -> Result<ExitCode> {
    let (file, function) = match source.rsplit_once(':') {
        Some((file, function)) => (file, Some(function)),
        None => (source, None),
    };
    let cases = args.data.as_deref().map(first_cases).transpose()?;
    let wrap = Wrap {
        name: &args.name,
        convention: Some(convention),
        file: Path::new(file),
        function,
        requirements: args.requirements.as_deref(),
        cases: cases.as_ref().map(|cases| cases.text.as_str()),
    };
    let wrapped = gavel_project::wrap(wrap, Path::new(""))?;
    let files: Vec<_> = wrapped.files.iter().map(|file| file.display().to_string()).collect();
    outln!("made {}/ around `{}`", wrapped.created.project.folder.display(), wrapped.function);
    outln!("  copied  {}", files.join(", "));
    if let (Some(cases), Some(data)) = (&cases, &args.data) {
        outln!("  cases   {} of {}; any score passes until you state one", cases.count, data.display());
    }
    for problem in cases.iter().flat_map(|cases| &cases.problems) {
        outln!("  note    {problem}");
    }
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

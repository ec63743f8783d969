//! `gavel doctor`

mod finding;
mod release;

pub use finding::Finding;

use crate::models::Models;
use crate::terminal::outln;
use anyhow::Result;
use clap::Args;
use gavel_plugin::{Sandbox, SandboxConfig, component_cache};
use gavel_project::Language;
use std::num::NonZeroUsize;
use std::process::ExitCode;

/// Check what this machine lacks, and what to do about it.
///
/// A line with `missing` matters only if you need what it names.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel doctor\n\nExit status: 0 plugins can be run, whatever else is missing; 1 they cannot."
)]
pub struct DoctorArgs;

pub fn run<M: Models>(_: DoctorArgs) -> Result<ExitCode> {
    let models = M::findings()?;
    let mut is_broken = false;
    let mut print = |what: &str, finding: Finding| {
        let (state, found, to_do) = match finding {
            Finding::Ok(found) => ("ok", found, None),
            Finding::Missing(found, to_do) => ("missing", found, Some(to_do)),
            Finding::Changed(found, to_do) => ("changed", found, Some(to_do)),
            Finding::Broken(found, to_do) => {
                is_broken = true;
                ("broken", found, Some(to_do))
            }
        };
        outln!("{state:<8} {what:<26} {found}");
        if let Some(to_do) = to_do {
            outln!("{:<8} {:<26} -> {to_do}", "", "");
        }
    };
    outln!("gavel {}", env!("CARGO_PKG_VERSION"));
    print("sandbox", sandbox());
    print("cache of compiled plugins", cache());
    if let Some(finding) = release::components() {
        print("standard plugins", finding);
    }
    for (what, finding) in models {
        print(what, finding);
    }
    for language in Language::ALL {
        for (what, finding) in toolchain(language) {
            print(&what, finding);
        }
    }
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether components can be run here.
fn sandbox() -> Finding {
    match Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)) {
        Ok(_) => Finding::Ok("runs".into()),
        Err(error) => Finding::Broken(
            error.to_string(),
            "plugins reserve much address space; if `ulimit -v` limits it, raise that limit".into(),
        ),
    }
}

fn cache() -> Finding {
    match component_cache() {
        Ok(folder) => Finding::Ok(folder.display().to_string()),
        Err(error) => {
            let (what, hint) =
                error.split_once("\nhint: ").unwrap_or((&error, "set GAVEL_CACHE_DIR to a folder of yours"));
            let to_do = format!("{hint}; until then, every start compiles its plugins");
            Finding::Missing(what.to_owned(), to_do)
        }
    }
}

/// What plugins in `language` are built with.
fn toolchain(language: Language) -> Vec<(String, Finding)> {
    let what = format!("plugins in {}", language.with_dialect());
    let missing = language.missing_tools();
    if missing.is_empty() {
        return vec![(what, Finding::Ok("can be built".into()))];
    }
    let lines = missing.into_iter().map(|tool| {
        let found = format!("{} is not there: it {}", tool.name, tool.purpose);
        (what.clone(), Finding::Missing(found, format!("install it with `{}`", tool.install)))
    });
    lines.collect()
}

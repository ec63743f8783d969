//! `gavel doctor`

mod finding;
mod release;

use crate::terminal::outln;
use anyhow::Result;
use clap::Args;
use finding::Finding;
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

pub fn run(_: DoctorArgs) -> Result<ExitCode> {
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
    for (what, finding) in training() {
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

#[cfg(feature = "train")]
fn training() -> Vec<(&'static str, Finding)> {
    use bytesize::ByteSize;
    use gavel_policy::device::{DeviceMemory, memory, select, why_no_gpu};

    // Without it, the process would not have started.
    let libtorch = crate::libtorch::loaded().unwrap_or_else(|| "linked".into());
    let gpu = match (why_no_gpu(), select("cuda:0").and_then(memory)) {
        (Some(why), _) => Finding::Missing(
            why,
            "models are trained on the processor; for a GPU, install its driver and a PyTorch with CUDA, and set LD_LIBRARY_PATH to its folder torch/lib or build gavel with it"
                .into(),
        ),
        (None, Ok(DeviceMemory { total, free })) => {
            let nccl = match gavel_torch::cuda::nccl_version() {
                Ok(version) => format!("several connected by NCCL {version}"),
                Err(why) => format!("not several, because {why}"),
            };
            Finding::Ok(format!("cuda:0, {} of {} free; {nccl}", ByteSize(free), ByteSize(total)))
        }
        (None, Err(error)) => Finding::Missing(error.to_string(), "check the driver with `nvidia-smi`".into()),
    };
    let host = match select("cpu").and_then(memory) {
        Ok(DeviceMemory { total, free }) if free < 1 << 30 => Finding::Missing(
            format!("{} of {} free", ByteSize(free), ByteSize(total)),
            "end other programs; `gavel train --dry-run` prints what a run needs".into(),
        ),
        Ok(DeviceMemory { total, free }) => Finding::Ok(format!("{} of {} free", ByteSize(free), ByteSize(total))),
        Err(error) => {
            Finding::Missing(error.to_string(), "runs start without a check that the memory is enough".into())
        }
    };
    vec![("libtorch", Finding::Ok(libtorch)), ("memory", host), ("GPU", gpu)]
}

#[cfg(not(feature = "train"))]
fn training() -> Vec<(&'static str, Finding)> {
    let missing = Finding::Missing(
        "this gavel is built without it: it scores, replays and tests plugins".into(),
        crate::without_training::WHAT_TO_DO.into(),
    );
    vec![("libtorch", missing)]
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

//! `gavel view`: runs in the browser.

use crate::serve::{block_on, stopped};
use crate::terminal::{outln, stdout_is_terminal};
use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use clap::Args;
use gavel_data::Shown;
use gavel_view::{Access, View, export, router};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Show runs in the browser: curves, samples, rewards, times, evaluations and configurations.
///
/// It prints a link to a page on this machine, which needs no network. The page follows runs that other processes write.
/// Only a browser that opened the link is answered: the link has a token, and the server listens on 127.0.0.1 alone.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel view\n  gavel view runs/demo runs/demo-2\n  gavel view runs/demo answers.jsonl\n  gavel view runs/demo --export page\n  ssh -L 8265:127.0.0.1:8265 gpu-7 gavel view runs/demo --port 8265\n\nThe files of --export open from a disk (page/index.html) and from any web server. They have all that the runs recorded of their samples."
)]
pub struct ViewArgs {
    /// Folders of runs, folders with the folders of runs, or files of answers that `gavel eval --out NAME.jsonl` saved.
    #[arg(value_name = "RUN", default_value = "runs")]
    runs: Vec<PathBuf>,
    /// The port; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Write the page and its data into this folder, which is made or empty, in place of serving it.
    #[arg(long, value_name = "DIR", conflicts_with = "port")]
    export: Option<PathBuf>,
}

pub fn run(args: &ViewArgs) -> Result<ExitCode> {
    let view = open(&args.runs)?;
    if let Some(folder) = &args.export {
        let bytes = export(&view, folder)?;
        outln!("wrote {} into {}: open {}", ByteSize(bytes), folder.display(), folder.join("index.html").display());
        return Ok(ExitCode::SUCCESS);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).with_context(|| {
        format!("cannot listen on 127.0.0.1:{}\nhint: give another --port; 0 takes a free one", args.port)
    })?;
    let port = listener.local_addr().context("cannot read the server's address")?.port();
    let access = Arc::new(Access::new(port)?);
    let stopped = stopped()?;
    let link = access.link();
    block_on(listener, router(Arc::new(view), access), async |listening| {
        // Tests and scripts wait for this line.
        outln!("open {link}");
        if stdout_is_terminal() {
            outln!("the link is for this machine alone, until Ctrl-C");
        }
        tokio::select! {
            never = listening => match never {},
            stopped = stopped => stopped,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn open(runs: &[PathBuf]) -> Result<View> {
    if let [folder] = runs
        && folder == Path::new("runs")
        && !folder.is_dir()
    {
        bail!("there is no run in the folder {}\nhint: name the folder of a run", Shown(folder.display()));
    }
    Ok(View::open(runs)?)
}

//! `gavel plugin inspect`

use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel_plugin::{Inspection, Sandbox, SandboxConfig};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show what a component exports and imports, and which grants it would need.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin inspect target/plugins/exact-answer.wasm")]
pub struct InspectArgs {
    /// The component.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: InspectArgs) -> Result<ExitCode> {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN))?;
    let found = sandbox.handle().block_on(gavel_plugin::inspect(&sandbox, &args.path))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&found)?);
    } else {
        print(&args, &found);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(args: &InspectArgs, found: &Inspection) {
    let or_none = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    println!("{}", args.path.display());
    match &found.info {
        Some(info) => {
            println!("  name      {} {}", info.name, info.version);
            println!("  pure      {}", if info.pure { "yes" } else { "no" });
            if let Some((min, max)) = info.score_range {
                println!("  scores    {min} to {max}");
            }
        }
        None => println!("  name      unknown: {}", found.info_missing.as_deref().unwrap_or("init gave none")),
    }
    println!("  contract  {}", found.contract.as_deref().map_or("none".into(), |v| format!("gavel:plugin@{v}")));
    println!("  size      {}", ByteSize(found.size));
    println!("  hash      {}", found.hash);
    match (&found.info, &found.no_snapshot) {
        (None, _) => {}
        (Some(_), None) => println!("  snapshot  yes"),
        (Some(_), Some(reason)) => println!("  snapshot  no ({reason})"),
    }
    println!("  exports   {}", or_none(&found.exports));
    println!("  imports");
    for import in &found.imports {
        println!("    {import}");
    }
    println!("  grants needed: {}", or_none(&found.needs_grant));
}

//! `gavel plugin inspect`

use crate::component::component;
use crate::plugin_args;
use crate::terminal::{self, outln};
use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use clap::Args;
use gavel_data::Shown;
use gavel_plugin::{Grants, Inspection, Limits, PluginSpec, Sandbox, SandboxConfig};
use gavel_runs::ConfigFile;
use gavel_scoring::ExecTable;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what a component exports and imports, and which of its imports are granted.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel plugin inspect target/plugins/exact-answer.wasm\n  gavel plugin inspect judge.wasm --grant '{ http = [\"https://judge.example\"] }'"
)]
pub struct InspectArgs {
    /// The component, or the folder of a built plugin.
    path: PathBuf,
    /// The grants that its imports are compared with.
    #[arg(long, value_name = "TABLE", conflicts_with = "config", value_parser = plugin_args::grants)]
    grant: Option<Grants>,
    /// A run's configuration, whose parameters and grants for the component are used.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: InspectArgs) -> Result<ExitCode> {
    let (name, path) = component(&args.path)?;
    let (reward, programs) = match &args.config {
        Some(config) => configured(config, &path)?,
        None => {
            let name = name.unwrap_or_default();
            let grant = args.grant.clone().unwrap_or_default();
            (Configured { name, path: None, params: Map::new(), grant }, BTreeMap::new())
        }
    };
    let spec = PluginSpec {
        name: reward.name,
        path: path.clone(),
        params: reward.params,
        limits: Limits::default(),
        grants: reward.grant,
        reuse: None,
    };
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN))?;
    gavel_scoring::stand_in(&sandbox, [&spec.grants]);
    for (name, program) in &programs {
        sandbox.add_program(program.program(name))?;
    }
    let found = sandbox.handle().block_on(gavel_plugin::inspect(&sandbox, spec))?;
    if args.json {
        terminal::json_pretty(&found)?;
    } else {
        print(&path, &found);
    }
    Ok(ExitCode::SUCCESS)
}

/// The keys of a `[[reward]]`, a `[[tool]]`, `[agent]` or `[plugin.NAME]` that matter here; a run checks the others.
#[derive(Deserialize)]
struct Configured {
    #[serde(default = "agent")]
    name: String,
    /// Absent for a server.
    path: Option<PathBuf>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    grant: Grants,
}

/// The name of the only agent, the one component whose table may have no name.
fn agent() -> String {
    "agent".into()
}

/// The reward, tool, agent or plugin in `config` whose component is `path`, and the programs there.
fn configured(config: &Path, path: &Path) -> Result<(Configured, BTreeMap<String, ExecTable>)> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Agents {
        One(Box<Configured>),
        Several(Vec<Configured>),
    }
    impl Default for Agents {
        fn default() -> Self {
            Self::Several(Vec::new())
        }
    }
    #[derive(Deserialize)]
    struct Run {
        #[serde(default)]
        reward: Vec<Configured>,
        #[serde(default)]
        tool: Vec<Configured>,
        #[serde(default)]
        agent: Agents,
        #[serde(default)]
        plugin: BTreeMap<String, Configured>,
        #[serde(default)]
        exec: BTreeMap<String, ExecTable>,
    }
    let table = ConfigFile::read(config)?.table;
    let run: Run = table.try_into().with_context(|| format!("{} is not a configuration", config.display()))?;
    let wanted = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    let is_wanted = |table: &Configured| {
        let component = table.path.as_ref().and_then(|path| component(path).ok());
        component.and_then(|(_, path)| path.canonicalize().ok()).is_some_and(|path| path == wanted)
    };
    let agents = match run.agent {
        Agents::One(agent) => vec![*agent],
        Agents::Several(agents) => agents,
    };
    let plugins = run.plugin.into_iter().map(|(name, plugin)| Configured { name, ..plugin });
    match run.reward.into_iter().chain(run.tool).chain(agents).chain(plugins).find(is_wanted) {
        Some(reward) => Ok((reward, run.exec)),
        None => bail!(
            "no [[reward]], no [[tool]], no [agent] and no [plugin.NAME] of {} has the component {}\nhint: paths in it are relative to the current folder",
            config.display(),
            path.display()
        ),
    }
}

fn print(path: &Path, found: &Inspection) {
    outln!("{}", path.display());
    match &found.info {
        Some(info) => {
            outln!("  name      {} {}", info.name, info.version);
            outln!("  pure      {}", if info.pure { "yes" } else { "no" });
            if let Some((min, max)) = info.score_range {
                outln!("  scores    {min} to {max}");
            }
        }
        None => {
            let why = found.info_missing.as_deref().unwrap_or("init returned no info");
            terminal::out_titled("  name      ", &format!("unknown: {why}"));
        }
    }
    outln!("  contract  {}", found.contract.as_deref().map_or("none".into(), |v| format!("gavel:plugin@{v}")));
    outln!("  size      {}", ByteSize(found.size));
    outln!("  hash      {}", found.hash);
    match (&found.info, &found.no_snapshot) {
        (None, _) => {}
        (Some(_), None) if found.set_back => outln!("  snapshot  yes, and an instance is set back to it after a call"),
        (Some(_), None) => outln!("  snapshot  yes"),
        (Some(_), Some(reason)) => outln!("  snapshot  no ({reason})"),
    }
    let exports = if found.exports.is_empty() { "none".to_owned() } else { found.exports.join(", ") };
    outln!("  exports   {exports}");
    functions(found);
    outln!("  imports");
    let width = found.imports.iter().map(|import| import.name.len()).max().unwrap_or_default();
    for import in &found.imports {
        let grant = import.grant.map(|line| format!("; grant = {{ {line} }}")).unwrap_or_default();
        outln!("    {:<width$}  {:<8}  {}{grant}", import.name, import.status.as_str(), import.what);
    }
}

/// The functions of a tool, each with its arguments.
fn functions(found: &Inspection) {
    if let Some(why) = &found.functions_missing {
        terminal::out_titled("  functions ", &format!("unknown: {why}"));
    }
    for (number, function) in found.functions.iter().enumerate() {
        if number == 0 {
            outln!("  functions");
        }
        let description = function.description.trim();
        let description = if description.is_empty() { "no description" } else { description };
        terminal::out_titled(&format!("    {}  ", function.name), description);
        let arguments = function.parameters.get("properties").and_then(Value::as_object);
        let required = function.parameters.get("required").and_then(Value::as_array);
        for (name, schema) in arguments.into_iter().flatten() {
            let is_required = required.is_some_and(|required| required.iter().any(|required| required == name));
            let optional = if is_required { "" } else { "optional, " };
            terminal::out_titled("      ", &format!("{}  {optional}{schema}", Shown(name)));
        }
    }
}

//! `gavel score --ray`: the same job on a cluster of Ray, by the Python package that this command belongs to.

use super::args::ScoreArgs;
use super::dash::is_dash;
use crate::plugin_args;
use anyhow::{Context, Result, bail};
use gavel_data::ColumnNames;
use gavel_plugin::{Limits, ProgramSpec};
use gavel_scoring::WeightedPlugin;
use humantime::format_duration;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, absolute};
use std::process::{Command, ExitCode};

/// Becomes the job's driver, a process of Python.
pub fn run(args: ScoreArgs, address: &str) -> Result<ExitCode> {
    let Some(python) = gavel_project::own_python() else {
        bail!(
            "--ray needs the gavel of the Python package gavel-rl, and this is another one\nhint: install the wheel and Ray into one environment (pip install gavel_rl-….whl 'ray[data]' typing_extensions), and run its bin/gavel"
        );
    };
    let job = job(args, address)?.to_string();
    // Modules are the environment's, not what lies in the current folder (Python 3.11 and newer).
    let failed = Command::new(&python).env("PYTHONSAFEPATH", "1").args(["-m", "gavel_rl._on_ray", &job]).exec();
    Err(failed).with_context(|| format!("cannot run {}", python.display()))
}

/// The job as `gavel_rl._on_ray` reads it.
fn job(args: ScoreArgs, address: &str) -> Result<Value> {
    let Some(data) = args.data.filter(|data| !is_dash(data)) else {
        bail!("--ray reads Parquet files, not stdin\nhint: name them with --data");
    };
    if is_dash(&args.out) {
        bail!("--ray writes a folder, not stdout\nhint: name it with --out");
    }
    let mut plugins = plugin_args::weighted(args.plugins, &args.params, &args.grants, Limits::default())?;
    plugin_args::set_after(&mut plugins, &args.after)?;
    plugin_args::set_reuse(&mut plugins, &args.reuse)?;
    let written = |time| format_duration(time).to_string();
    let columns: ColumnNames = args.columns.into_iter().collect();
    let program = |ProgramSpec { name, path, .. }: ProgramSpec| -> Result<(String, Value)> {
        let path = absolute(&path).with_context(|| format!("--exec {name}: {}", path.display()))?;
        Ok((name, json!({ "path": text(&path)? })))
    };
    let programs = args.programs.into_iter().map(program).collect::<Result<Vec<_>>>()?;
    Ok(json!({
        "address": address,
        "data": text(&data)?,
        "out": text(&args.out)?,
        "columns": columns,
        "json": args.json,
        "scorer": {
            "rewards": plugins.into_iter().map(reward).collect::<Result<Vec<_>>>()?,
            "limits": {
                "timeout": written(args.timeout),
                "cpu": written(args.cpu),
                "memory": args.memory,
                "fuel": args.fuel,
            },
            "chat": plugin_args::each_once("--chat", "endpoint", args.chat)?,
            "limiter": plugin_args::each_once("--limiter", "limiter", args.limiters)?,
            "exec": plugin_args::each_once("--exec", "program", programs)?,
            "workers": args.workers,
            "seed": args.seed,
        },
    }))
}

/// A plugin with the keys of `[[reward]]`.
fn reward(WeightedPlugin { spec, weight, when }: WeightedPlugin) -> Result<Value> {
    let path = absolute(&spec.path).with_context(|| format!("--plugin {}: {}", spec.name, spec.path.display()))?;
    Ok(json!({
        "path": text(&path)?,
        "weight": weight,
        "name": spec.name,
        "params": spec.params,
        "grant": spec.grants,
        "after": when.after,
        "reuse": spec.reuse,
    }))
}

/// A path as JSON has it.
fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| {
        format!("the path {} is not UTF-8\nhint: with --ray, give the file another name", path.display())
    })
}

//! `--dry-run`: checks everything that a run needs, and starts nothing.

use crate::error::Result;
use crate::memory::{Prediction, predict_sft, predict_train};
use crate::rl::Teacher;
use crate::run::{Check, Planned, Setup, probe};
use gavel_agent::RunTool;
use gavel_config::{Config, RlTable, SftTable};
use gavel_data::Shown;
use gavel_gateway::GatewayAddress;

/// The results of a dry run.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// The configuration with every default, as TOML.
    pub config: String,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What failed and does not stop the run.
    pub warnings: Vec<String>,
    /// The memory that it needs.
    pub memory: Prediction,
}

/// Checks all that `gavel train` would use. The prediction of memory is for each of the planned ranks.
pub fn dry_run_train(config: &Config<RlTable>, planned: impl Into<Planned>) -> Result<DryRun> {
    let Planned { ranks, gpu } = planned.into();
    let setup = Setup::of_dry_run(config, gpu)?;
    let prompts = setup.train_prompts(config)?;
    if let Some(teacher) = Teacher::open(config, setup.scorer.sandbox())? {
        teacher.check(&prompts.rows, &setup.text.tokenizer, setup.scorer.sandbox())?;
    }
    let probed = probe(config, &setup, Some(&prompts))?;
    Ok(DryRun {
        config: config.resolved()?,
        checks: [
            checks(&setup, &config.data.train.to_string(), prompts.rows.len(), setup.validation.len()),
            probed.checks,
        ]
        .concat(),
        warnings: probed.warnings,
        memory: predict_train(config, &setup, &prompts, ranks)?,
    })
}

/// The same for `gavel sft`.
pub fn dry_run_sft(config: &Config<SftTable>, planned: impl Into<Planned>) -> Result<DryRun> {
    let Planned { ranks, gpu } = planned.into();
    let setup = Setup::of_dry_run(config, gpu)?;
    let rows = setup.sft_rows(config)?;
    let probed = probe(config, &setup, None)?;
    Ok(DryRun {
        config: config.resolved()?,
        checks: [
            checks(&setup, &config.data.train.to_string(), rows.drawable.rows.len(), setup.validation.len()),
            probed.checks,
        ]
        .concat(),
        warnings: probed.warnings,
        memory: predict_sft(config, &setup, &rows, ranks)?,
    })
}

/// The checks of the model, of `rows` rows of `train`, of `validation` rows to validate with, of the rewards and of the
/// tools.
pub(crate) fn checks(setup: &Setup, train: &str, rows: usize, validation: usize) -> Vec<Check> {
    let sizes = &setup.sizes;
    let mut checks = vec![
        Check {
            what: "model",
            found: format!(
                "{} layers, hidden {}, vocabulary {}, {} positions",
                sizes.num_hidden_layers,
                sizes.hidden_size,
                sizes.vocab_size,
                sizes.positions()
            ),
        },
        Check { what: "training data", found: format!("{rows} rows of {train}") },
        Check { what: "validation data", found: format!("{validation} rows") },
    ];
    checks.extend(setup.scorer.plugins().map(|(plugin, weight)| Check {
        what: "reward",
        found: format!(
            "{}: {} {}, weight {weight}, hash {}",
            plugin.name(),
            plugin.info().name,
            plugin.info().version,
            &plugin.hash()[..16]
        ),
    }));
    checks.extend(setup.episode_kinds.agents().map(|(table, agent)| {
        let (info, hash) = (agent.info(), &agent.hash()[..16]);
        let name = table.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        Check { what: "agent", found: format!("{name}{} {}, hash {hash}", Shown(&info.name), Shown(&info.version)) }
    }));
    checks.extend(setup.episode_kinds.programs().map(|(table, program)| {
        let name = table.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let GatewayAddress { address, url } = program.gateway().address();
        let port = if address.port() == 0 { "a free port".to_owned() } else { format!("port {}", address.port()) };
        let reached = url.as_ref().map_or(String::new(), |url| format!(", reached at {url}"));
        let found =
            format!("{name}{}, which asks the gateway at {}, {port}{reached}", program.describe(), address.ip());
        Check { what: "agent", found: Shown(found).to_string() }
    }));
    let deciders = [("advantage", &setup.advantage), ("sampler", &setup.sampler)];
    checks.extend(deciders.into_iter().filter_map(|(what, plugin)| {
        let plugin = plugin.as_ref()?;
        let (info, hash) = (plugin.info(), &plugin.hash()[..16]);
        let (name, version) = (Shown(&info.name), Shown(&info.version));
        Some(Check { what, found: format!("{}: {name} {version}, hash {hash}", plugin.name()) })
    }));
    checks.extend(setup.episode_kinds.tools().tools().map(|tool| {
        let functions: Vec<&str> = tool.functions().iter().map(|function| function.name()).collect();
        let (name, functions) = (tool.name(), functions.join(", "));
        let found = match tool {
            RunTool::Component(tool) => {
                let (info, hash) = (tool.info(), &tool.hash()[..16]);
                let (what, version) = (Shown(&info.name), Shown(&info.version));
                format!("{name}: {what} {version}, functions {}, hash {hash}", Shown(functions))
            }
            RunTool::Mcp(server) => {
                format!("{name}: MCP server {}, functions {}", Shown(server.source().to_string()), Shown(functions))
            }
        };
        Check { what: "tool", found }
    }));
    checks
}

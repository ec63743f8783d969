//! Grants and imports that the plugin does not need.

use super::finding::{CheckReport, Finding, Findings, Kind, Severity};
use crate::endpoints::Endpoints;
use crate::error::HarnessError;
use crate::harness::Harness;
use gavel_plugin::{ClockGrant, GrantStatus, Grants, PluginSpec, RandomGrant};

/// Looks for grants whose interface the component does not import, and for
/// endpoints that it never asked during the check.
///
/// The check cannot know whether an import of WASI is called: a toolchain may
/// import it for its own start. Imports that a grant would make real are noted.
pub(super) fn check(
    harness: &Harness,
    spec: &PluginSpec,
    endpoints: &Endpoints<'_>,
    findings: &mut Findings,
    report: &mut CheckReport,
) -> Result<(), HarnessError> {
    let found = harness.inspect(spec.clone())?;
    let imports = |package: &str| found.imports.iter().any(|import| import.name.starts_with(package));
    let Grants { read, http, limit: _, servers: _, chat, reward_model, exec, env, clock, random } = &spec.grants;
    let mut add = |what: String| {
        let (severity, kind) = (Severity::Low, Kind::Grant);
        let (row, example) = (String::new(), String::new());
        findings.add(Finding { severity, kind, mutation: None, what, count: 1, row, example });
    };
    for (granted, grant, package) in [
        (!read.is_empty(), "read", "wasi:filesystem/"),
        (!http.is_empty(), "http", "wasi:http/"),
        (!chat.is_empty(), "chat", "gavel:plugin/chat"),
        (!reward_model.is_empty(), "reward_model", "gavel:plugin/reward-model"),
        (!exec.is_empty(), "exec", "gavel:plugin/exec"),
        (!env.is_empty(), "env", "wasi:cli/environment"),
        (*clock == ClockGrant::Real, "clock", "wasi:clocks/"),
        (*random == RandomGrant::Os, "random", "wasi:random/"),
    ] {
        if granted && !imports(package) {
            add(format!("the grant `{grant}` is not needed: the component does not import {package}*"));
        }
    }
    for name in endpoints.never_asked() {
        for (granted, package, noun) in
            [(chat, "gavel:plugin/chat", "endpoint"), (reward_model, "gavel:plugin/reward-model", "reward model")]
        {
            if imports(package) && granted.iter().any(|granted| granted == name) {
                add(format!("the {noun} `{name}` is granted but was never asked"));
            }
        }
    }
    let stand_ins: Vec<&str> = found
        .imports
        .iter()
        .filter(|import| import.status == GrantStatus::StandIn)
        .map(|import| import.name.split('@').next().unwrap_or(&import.name))
        .collect();
    if !stand_ins.is_empty() {
        report
            .notes
            .push(format!("imports that show nothing of the machine without a grant: {}", stand_ins.join(", ")));
    }
    Ok(())
}

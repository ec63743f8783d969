//! Checks whether this host supports a component, by the names of its imports and
//! exports.

use crate::compile::is_code_name;
use crate::error::LoadError;
use crate::grant::{GrantStatus, Grants, Import};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The versions of the contract that this host supports.
pub(crate) const VERSIONS: [&str; 2] = ["0.1.0", "0.2.0"];

const NAMESPACE: &str = "gavel:plugin/";
/// Exports of components that see the answer key.
const SCORERS: [&str; 3] = ["reward", "judger", "taskset"];
/// Exports of components that act for the policy.
const ACTORS: [&str; 2] = ["tool", "agent"];

/// Exports of components that decide what is learned.
const DECIDERS: [&str; 2] = ["advantage", "sampler"];

/// Imports of agents alone: nothing else has a conversation of its own.
const OF_AGENTS: [&str; 3] = ["gavel:plugin/policy@", "gavel:plugin/tools@", "gavel:plugin/tasks@"];

/// Imports that show the answer key, or samples that were made of it.
const ANSWER_KEY: [&str; 2] = ["gavel:plugin/references@", "gavel:plugin/samples@"];

/// The interfaces of the contract that a component exports, without their
/// package and version, such as `reward`.
pub(crate) fn exports(engine: &Engine, component: &Component) -> Vec<String> {
    let ty = component.component_type();
    ty.exports(engine)
        .filter_map(|(name, _)| name.strip_prefix(NAMESPACE))
        .filter_map(|name| name.split_once('@'))
        .map(|(interface, _)| interface.to_owned())
        .collect()
}

/// All imports that it was built with, and how a plugin with `grants` gets them.
pub(crate) fn imports(engine: &Engine, component: &Component, grants: &Grants) -> Vec<Import> {
    let ty = component.component_type();
    let built = ty.imports(engine).map(|(name, _)| name).filter(|name| !is_code_name(name));
    built.map(|name| Import::new(name, grants)).collect()
}

/// The full name of the contract that a component was built for, as records have it.
pub(crate) fn full_name(version: &str) -> String {
    format!("gavel:plugin@{version}")
}

/// The versions of the contract that a component names, in its exports and then its imports, each once.
fn versions(engine: &Engine, component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let names = ty.exports(engine).map(|(name, _)| name).chain(ty.imports(engine).map(|(name, _)| name));
    let mut versions = Vec::new();
    for (_, version) in names.filter_map(|name| name.strip_prefix(NAMESPACE)?.split_once('@')) {
        if !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// The version of the contract that a component was built for. If it names several, the first that this host does not
/// support.
pub(crate) fn version(engine: &Engine, component: &Component) -> Option<String> {
    let mut versions = versions(engine, component);
    let shown = versions.iter().position(|version| !VERSIONS.contains(&version.as_str())).unwrap_or(0);
    (!versions.is_empty()).then(|| versions.swap_remove(shown))
}

/// A component that may be called.
pub(crate) struct Checked {
    /// The version of the contract that it was built for.
    pub(crate) version: String,
    /// The interfaces of the contract that it exports.
    pub(crate) exports: Vec<String>,
}

/// Refuses a component that is not a program, or imports more than a program gets.
pub(crate) fn check_program(program: &str, engine: &Engine, component: &Component) -> Result<(), LoadError> {
    let ty = component.component_type();
    if !ty.exports(engine).any(|(name, _)| name.starts_with("wasi:cli/run@")) {
        return Err(LoadError::NoProgram { program: program.into() });
    }
    let more = |import: &Import| import.status == GrantStatus::Refused || import.name.starts_with(NAMESPACE);
    match imports(engine, component, &Grants::default()).into_iter().find(more) {
        Some(import) => Err(LoadError::ProgramImport { program: program.into(), import: import.name }),
        None => Ok(()),
    }
}

/// Refuses a component that exports nothing that this host uses, one that acts for the policy but sees the answer key
/// or decides what is learned, and one with an import that no grant covers.
pub(crate) fn check(
    plugin: &str,
    engine: &Engine,
    component: &Component,
    grants: &Grants,
) -> Result<Checked, LoadError> {
    let versions = versions(engine, component);
    if let Some(found) = versions.iter().find(|version| !VERSIONS.contains(&version.as_str())) {
        let known = VERSIONS.join(" and ");
        return Err(LoadError::UnknownContract { plugin: plugin.into(), found: found.clone(), known });
    }
    if let [first, second, ..] = &versions[..] {
        return Err(LoadError::MixedContracts { plugin: plugin.into(), first: first.clone(), second: second.clone() });
    }
    let exported = exports(engine, component);
    let of = |family: &[&'static str]| family.iter().copied().find(|name| exported.iter().any(|found| found == name));
    if let (Some(scorer), Some(actor)) = (of(&SCORERS), of(&ACTORS)) {
        return Err(LoadError::BothFamilies { plugin: plugin.into(), scorer, actor });
    }
    // The contract 0.1 has no deciders.
    let decider = of(&DECIDERS).filter(|_| versions.iter().all(|version| version != "0.1.0"));
    let actor = of(&ACTORS);
    if let (Some(decider), Some(actor)) = (decider, actor) {
        return Err(LoadError::DecidesAndActs { plugin: plugin.into(), decider, actor });
    }
    let needed = match of(&SCORERS).or(actor).or(decider) {
        None => Some("reward"),
        Some(_) => ["lifecycle"].into_iter().find(|needed| !exported.iter().any(|name| name == needed)),
    };
    if let Some(needed) = needed {
        return Err(LoadError::MissingExport { plugin: plugin.into(), needed, exported });
    }
    let imports = imports(engine, component, grants);
    let answer_key = |import: &&Import| ANSWER_KEY.iter().any(|name| import.name.starts_with(name));
    if let (Some(actor), Some(import)) = (actor, imports.iter().find(answer_key)) {
        return Err(LoadError::AnswerKey { plugin: plugin.into(), actor, import: import.name.clone() });
    }
    let of_agents = |import: &&Import| OF_AGENTS.iter().any(|name| import.name.starts_with(name));
    if let Some(import) = imports.iter().find(of_agents).filter(|_| !exported.iter().any(|name| name == "agent")) {
        return Err(LoadError::NoEpisode { plugin: plugin.into(), import: import.name.clone() });
    }
    match imports.into_iter().find(|import| import.status == GrantStatus::Refused) {
        Some(Import { name: import, grant, .. }) => Err(LoadError::NotGranted { plugin: plugin.into(), import, grant }),
        None => Ok(Checked { version: versions.into_iter().next().unwrap_or_default(), exports: exported }),
    }
}

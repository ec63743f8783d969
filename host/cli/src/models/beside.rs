//! `gavel`, which has `gavel-models` beside it.

use super::environment::missing_variables;
use super::{Models, lacking};
use crate::doctor::Finding;
use anyhow::{Error, Result};
use gavel_plugin::{Limits, RewardModel};
use gavel_scoring::WeightedPlugin;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// The program that is linked with libtorch.
const PROGRAM: &str = "gavel-models";

/// Hands over what needs libtorch.
pub struct Beside;

impl Models for Beside {
    fn reward_models(
        given: Vec<(String, String)>,
        _: &mut Vec<WeightedPlugin>,
        _: Limits,
    ) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
        match given.first() {
            None => Ok(BTreeMap::new()),
            Some((name, _)) => Err(hand_over().unwrap_or_else(|| lacking::reward_model(name))),
        }
    }

    fn findings() -> Result<Vec<(&'static str, Finding)>> {
        hand_over().map_or_else(|| Ok(lacking::findings()), Err)
    }
}

/// Whether the program that is linked with libtorch is there.
pub fn is_beside() -> bool {
    std::env::current_exe().is_ok_and(|gavel| gavel.with_file_name(PROGRAM).is_file())
}

/// Becomes the program beside this one, with the same command line. Returns only if it is not there, which is `None`, or
/// cannot be started.
pub fn hand_over() -> Option<Error> {
    let program = match std::env::current_exe() {
        Ok(gavel) => gavel.with_file_name(PROGRAM),
        Err(error) => return Some(Error::new(error).context("cannot find the path of gavel itself")),
    };
    if !program.is_file() {
        return None;
    }
    let mut command = Command::new(&program);
    let mut words = std::env::args_os();
    // A list of processes shows what was typed.
    if let Some(typed) = words.next() {
        command.arg0(typed);
    }
    let error = command.args(words).envs(missing_variables()).exec();
    Some(Error::new(error).context(format!("cannot start {}, which runs the models", program.display())))
}

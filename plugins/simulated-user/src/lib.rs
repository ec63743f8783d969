//! An agent in which the policy speaks with a user whom a language model plays.

mod model;
mod params;
mod reply;

use gavel_sdk::{Agent, Answer, Failure, Info, Task};
use model::Player;
use params::{Config, Params};
use user_dialogue::{Settings, attempt};

struct SimulatedUser(Config);

impl Agent for SimulatedUser {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        params.check().map(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let Config { model, opening, policy, .. } = &self.0;
        let instructions = self.instructions_of(Settings::of(task)?)?;
        attempt(task, *opening, policy, &Player::new(model, &instructions))
    }
}

gavel_sdk::export_agent!(SimulatedUser);

impl SimulatedUser {
    /// Who the user of a row is.
    fn instructions_of(&self, settings: Settings) -> Result<String, Failure> {
        let own = settings.instructions.filter(|own| !own.trim().is_empty());
        own.or_else(|| self.0.instructions.clone()).ok_or_else(|| {
            Failure::invalid_input(
                "the user has no instructions; give them in the row's `extra_info.agent_kwargs.instructions`, or in the parameter `instructions` for all rows",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_own_instructions_or_the_common_ones() {
        let instructions = |common: Option<&str>, own: Option<&str>| {
            let params = Params { instructions: common.map(str::to_owned), ..Params::default() };
            let settings = Settings { instructions: own.map(str::to_owned), ..Settings::default() };
            SimulatedUser::new(params).unwrap().instructions_of(settings).map_err(|failure| failure.to_string())
        };
        assert_eq!(instructions(Some("You are angry."), None).unwrap(), "You are angry.");
        assert_eq!(instructions(Some("You are angry."), Some("You are calm.")).unwrap(), "You are calm.");
        assert_eq!(instructions(Some("You are angry."), Some(" ")).unwrap(), "You are angry.");
        assert!(instructions(None, None).unwrap_err().contains("the user has no instructions"));
        assert!(instructions(Some(""), None).unwrap_err().contains("the user has no instructions"));
    }
}

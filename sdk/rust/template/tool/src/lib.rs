//! A tool with which the policy guesses a number that the row sets.

use gavel_sdk::{Failure, Info, Tool, ToolSpec};
use serde_json::{Map, Value, json};

/// The tool, with its parameters checked.
struct Guessing {
    params: Params,
}

/// The keys of `[[tool]].params` in a run's configuration.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// How many guesses the policy has.
    guesses: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { guesses: 10 }
    }
}

/// What the calls of a trajectory share.
struct Game {
    number: i64,
    left: u32,
}

impl Tool for Guessing {
    type Params = Params;
    type State = Game;

    // Once, before any trajectory; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if params.guesses < 1 {
            return Err(format!("`guesses` must be 1 or more, not {}", params.guesses));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let number = json!({"type": "integer", "minimum": 1, "maximum": 100, "description": "The guess."});
        let guess = json!({
            "type": "object",
            "properties": {"number": number},
            "required": ["number"],
            "additionalProperties": false,
        });
        let nothing = json!({"type": "object", "additionalProperties": false});
        vec![
            ToolSpec::new(
                "guess",
                "Guesses the number. Returns \"right\", or whether the number is \"higher\" or \"lower\".",
                guess,
            ),
            ToolSpec::new("guesses_left", "Returns how many guesses are left.", nothing),
        ]
    }

    // Once a trajectory. The policy does not see the settings.
    fn open(&self, settings: Map<String, Value>) -> Result<Game, Failure> {
        let number = settings.get("number").and_then(Value::as_i64);
        let number = number.ok_or_else(|| Failure::invalid_input("the row sets no `number`"))?;
        Ok(Game { number, left: self.params.guesses })
    }

    fn call(&self, game: &mut Game, name: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
        match name {
            // The schema allows 42.0 too.
            "guess" => game.guess(arguments["number"].as_f64().unwrap_or_default() as i64),
            _ => Ok(game.left.to_string()),
        }
    }
}

gavel_sdk::export_tool!(Guessing);

impl Game {
    fn guess(&mut self, number: i64) -> Result<String, Failure> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Failure::invalid_input("no guess is left"))?;
        let answer = match number.cmp(&self.number) {
            std::cmp::Ordering::Equal => "right",
            std::cmp::Ordering::Less => "higher",
            std::cmp::Ordering::Greater => "lower",
        };
        Ok(answer.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(guesses: u32) -> Game {
        let settings = json!({"number": 42}).as_object().unwrap().clone();
        Guessing::new(Params { guesses }).unwrap().open(settings).unwrap()
    }

    #[test]
    fn a_game_ends_when_no_guess_is_left() {
        let mut game = game(2);
        assert_eq!(game.guess(50).unwrap(), "lower");
        assert_eq!(game.guess(25).unwrap(), "higher");
        assert!(game.guess(42).is_err());
    }

    #[test]
    fn no_guesses_are_refused() {
        assert!(Guessing::new(Params { guesses: 0 }).is_err());
    }
}

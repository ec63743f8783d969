//! A tool whose functions end in every way that a call can end.

use gavel_sdk::{Failure, Info, Tool, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

struct Toolbox {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Whether to declare itself pure.
    #[serde(default)]
    pure: bool,
    /// The name that it gives itself.
    name: Option<String>,
    /// The schema of `add`, instead of its own.
    schema: Option<Value>,
}

/// What all sessions have added in this instance.
static ADDED: AtomicI64 = AtomicI64::new(0);

/// What a trajectory has left here.
struct State {
    settings: Map<String, Value>,
    sum: i64,
}

impl Tool for Toolbox {
    type Params = Params;
    type State = State;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        let name = self.params.name.as_deref().unwrap_or(env!("CARGO_PKG_NAME"));
        let info = Info::new(name, env!("CARGO_PKG_VERSION"));
        if self.params.pure { info.pure() } else { info }
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let empty = || json!({"type": "object", "additionalProperties": false});
        let add = json!({"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"], "additionalProperties": false});
        let add = self.params.schema.clone().unwrap_or(add);
        let size = json!({"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]});
        let wait = json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]});
        let fail = json!({"type": "object", "properties": {"how": {"enum": ["wrong", "away", "broken"]}}, "required": ["how"]});
        vec![
            ToolSpec::new("add", "Adds to the sum and returns it.", add),
            ToolSpec::new("settings", "Returns what the row sets.", empty()),
            ToolSpec::new("random", "Returns a random number.", empty()),
            ToolSpec::new("flood", "Returns a text of this size.", size),
            ToolSpec::new(
                "grow",
                "Takes this much memory.",
                json!({"type": "object", "properties": {"bytes": {"type": "integer"}}}),
            ),
            ToolSpec::new("wait", "Waits this long.", wait),
            ToolSpec::new("fail", "Fails.", fail),
            ToolSpec::new("loop", "Never ends.", empty()),
            ToolSpec::new("trap", "Panics.", empty()),
            ToolSpec::new("claim", "Returns what other sessions have added.", empty()),
            ToolSpec::new("bytes", "Returns a text that is not UTF-8.", empty()),
        ]
    }

    fn open(&self, settings: Map<String, Value>) -> Result<State, Failure> {
        if settings.get("refuse").is_some() {
            return Err(Failure::invalid_input("`refuse` is set"));
        }
        Ok(State { settings, sum: 0 })
    }

    fn call(&self, state: &mut State, name: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
        let number = |key: &str| arguments.get(key).and_then(Value::as_i64).unwrap_or_default();
        match name {
            "add" => {
                state.sum += number("by");
                ADDED.fetch_add(number("by"), Ordering::Relaxed);
                Ok(state.sum.to_string())
            }
            "settings" => Ok(Value::Object(state.settings.clone()).to_string()),
            "random" => {
                let mut bytes = [0; 8];
                getrandom::fill(&mut bytes).map_err(|error| Failure::internal(error.to_string()))?;
                Ok(u64::from_le_bytes(bytes).to_string())
            }
            "flood" => Ok("x".repeat(number("bytes") as usize)),
            "grow" => {
                Ok(vec![1u8; number("bytes") as usize].iter().map(|byte| u64::from(*byte)).sum::<u64>().to_string())
            }
            "wait" => {
                std::thread::sleep(Duration::from_millis(number("ms") as u64));
                Ok("done".into())
            }
            "fail" => Err(match arguments["how"].as_str() {
                Some("wrong") => Failure::invalid_input("that was wrong"),
                Some("away") => Failure::unavailable("nobody is there"),
                _ => Failure::internal("it is broken"),
            }),
            "claim" => Ok((ADDED.load(Ordering::Relaxed) - state.sum).to_string()),
            // SAFETY: it is not UTF-8, which the host must find.
            #[allow(unsafe_code, reason = "the host must not believe a tool")]
            "bytes" => Ok(unsafe { String::from_utf8_unchecked(vec![b'a', 0xff]) }),
            "loop" => loop {
                std::hint::spin_loop();
            },
            _ => panic!("a trap"),
        }
    }

    fn finish(&self, state: &mut State) -> Result<Option<Value>, Failure> {
        match state.settings.get("finish").and_then(Value::as_str) {
            Some("none") => Ok(None),
            Some("away") => Err(Failure::unavailable("nobody is there")),
            Some("large") => Ok(Some("x".repeat(1 << 20).into())),
            Some("loop") => loop {
                std::hint::spin_loop();
            },
            Some(_) => panic!("a trap"),
            None => Ok(Some(json!({"sum": state.sum}))),
        }
    }
}

gavel_sdk::export_tool!(Toolbox);

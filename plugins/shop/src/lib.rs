//! A tool that is a shop: the policy finds items, puts them in its basket, pays for them and cancels orders. The state
//! in which a trajectory ends says what was bought.

mod counter;

use counter::{Counter, Item};
use gavel_sdk::{Failure, Info, NoParams, Tool, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a row sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The items by their names.
    stock: BTreeMap<String, Item>,
}

struct Shop;

impl Tool for Shop {
    type Params = NoParams;
    type State = Counter;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let schema = |properties: Value, required: &[&str]| {
            let closed = json!(false);
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": closed})
        };
        let words = json!({"type": "string", "description": "A part of the name; all items without it"});
        let item = json!({"type": "string", "description": "The name of the item"});
        let count = json!({"type": "integer", "minimum": 1, "description": "How many of it"});
        let order = json!({"type": "integer", "minimum": 1, "description": "The number of the order"});
        vec![
            ToolSpec::new(
                "search",
                "Lists items with their prices, and how many are left.",
                schema(json!({"words": words}), &[]),
            ),
            ToolSpec::new(
                "add",
                "Puts items in the basket. Nothing is bought before it is paid for.",
                schema(json!({"item": item, "count": count}), &["item", "count"]),
            ),
            ToolSpec::new("pay", "Pays for the basket, which becomes an order.", schema(json!({}), &[])),
            ToolSpec::new(
                "cancel",
                "Cancels an order. Its items are in stock again.",
                schema(json!({"order": order}), &["order"]),
            ),
        ]
    }

    fn open(&self, settings: Map<String, Value>) -> Result<Counter, Failure> {
        let Settings { stock } =
            serde_json::from_value(settings.into()).map_err(|error| Failure::invalid_input(error.to_string()))?;
        Ok(Counter::new(stock))
    }

    fn call(&self, counter: &mut Counter, name: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        // The schema has no other numbers than those from 1, and a larger one is more than any stock.
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64).unwrap_or(u64::MAX);
        match name {
            "search" => Ok(counter.search(text("words"))),
            "add" => counter.add(text("item"), number("count")),
            "pay" => counter.pay(),
            "cancel" => counter.cancel(number("order")),
            // The host calls the functions of `specs` alone.
            other => Err(format!("there is no function `{other}`")),
        }
        .map_err(Failure::invalid_input)
    }

    fn finish(&self, counter: &mut Counter) -> Result<Option<Value>, Failure> {
        Ok(Some(counter.state()))
    }
}

gavel_sdk::export_tool!(Shop);

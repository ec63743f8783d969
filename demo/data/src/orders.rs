//! The orders of the demo with a shop: an item with its count, which the policy is to buy. No order is asked both in
//! training and in validation.

use crate::questions::Split;
use gavel_data::seed;
use serde_json::{Value, json};

/// Everything is drawn from this seed, so that every machine has the same data.
const SEED: u64 = 0x6a7e_1006;

/// What the shop has. A name is one capital letter: no other token of a conversation is one before the call that has to
/// copy it, so that a small model learns to.
const ITEMS: std::ops::RangeInclusive<char> = 'A'..='Z';

/// How many of an item are ordered.
const COUNTS: std::ops::RangeInclusive<u64> = 1..=9;

/// The share of the warm-up's conversations that pay. The others end with a full basket, and nothing is bought. So the
/// policy learns both, and at first prefers not to pay.
const PAID_SHARE: f64 = 0.25;

/// How often the warm-up has the first call of an order alone.
const FIRST_CALLS: usize = 2;

/// How often the warm-up has an order to repeat.
const COPIES: usize = 4;

/// One order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    item: char,
    count: u64,
}

impl Order {
    /// What the policy reads: `4 K`.
    fn text(self) -> String {
        format!("{} {}", self.count, self.item)
    }

    /// The row `index` of `split`, with the columns that verl expects.
    pub fn row(self, split: Split, index: usize) -> Value {
        json!({
            "data_source": "gavel/orders",
            "prompt": [{"role": "user", "content": self.text()}],
            "ability": "shopping",
            "reward_model": {"style": "rule", "ground_truth": {"orders": [{self.item.to_string(): self.count}]}},
            "extra_info": {
                "index": index,
                "split": split.name(),
                "tools_kwargs": {"shop": {"create_kwargs": {"stock": stock()}}},
            },
        })
    }

    /// What is learned first: to repeat an order. A small model learns to copy from short rows sooner than from long ones.
    pub fn copy(self) -> Value {
        json!({"messages": [
            {"role": "user", "content": format!("say {}", self.text())},
            {"role": "assistant", "content": self.text()},
        ]})
    }

    /// The rows of the warm-up for the order `index`: how to buy, and what was learned first, so that it is kept.
    pub fn warm_up(self, index: usize) -> Vec<Value> {
        let conversation = self.conversation(index);
        let first_call = json!({"messages": [conversation["messages"][0], conversation["messages"][1]]});
        let mut rows = vec![conversation];
        rows.extend(vec![first_call; FIRST_CALLS]);
        rows.extend(vec![self.copy(); COPIES]);
        rows
    }

    /// The purchase `index` of the warm-up. The plugin `shop` gives these answers.
    fn conversation(self, index: usize) -> Value {
        let Self { item, count } = self;
        let total = count * price(item);
        let add = json!({"item": item, "count": count});
        let mut messages = vec![json!({"role": "user", "content": self.text()})];
        messages.extend(call("call00000", "add", &add, &format!("{count} {item} in the basket, {total} in all")));
        if seed::uniform(SEED ^ 1, index as u64) < PAID_SHARE {
            messages.extend(call("call00001", "pay", &json!({}), &format!("order 1 is paid: {total}")));
        }
        messages.push(json!({"role": "assistant", "content": "Done."}));
        json!({"messages": messages})
    }
}

/// A call of the shop, and its answer.
fn call(id: &str, name: &str, arguments: &Value, answer: &str) -> [Value; 2] {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let call = json!({"id": id, "type": "function", "function": function});
    [
        json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": answer}),
    ]
}

/// The price of one.
fn price(item: char) -> u64 {
    1 + u64::from(u32::from(item)) % 5
}

/// What the shop has at the beginning.
fn stock() -> Value {
    ITEMS.map(|item| (item, json!({"price": price(item), "count": COUNTS.end()}))).collect()
}

/// `train` orders to learn from and `validation` others, in an order of their own.
pub fn draw(train: usize, validation: usize) -> (Vec<Order>, Vec<Order>) {
    let all: Vec<Order> = ITEMS.flat_map(|item| COUNTS.map(move |count| Order { item, count })).collect();
    let order = seed::permutation(SEED, all.len());
    let mut drawn = order.into_iter().map(|at| all[at]);
    let train = drawn.by_ref().take(train).collect();
    (train, drawn.take(validation).collect())
}

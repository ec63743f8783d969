//! The questions of the demo with tools: products of two numbers of two digits, which a small model cannot compute in
//! its head. No product is asked both in training and in validation.

use crate::questions::Split;
use gavel_data::seed;
use serde_json::{Value, json};

/// Everything is drawn from this seed, so that every machine has the same data.
const SEED: u64 = 0x6a7e_1002;

/// The factors.
const FACTORS: std::ops::RangeInclusive<u64> = 11..=99;

/// The share of the warm-up's rows that ask the calculator. The others answer at once. So the policy learns both, and
/// at first prefers to answer at once.
const CALCULATOR_SHARE: f64 = 0.45;

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    first: u64,
    second: u64,
}

impl Product {
    fn expression(self) -> String {
        format!("{} * {}", self.first, self.second)
    }

    fn value(self) -> String {
        (self.first * self.second).to_string()
    }

    /// The row `index` of `split`, with the columns that verl expects.
    pub fn row(self, split: Split, index: usize) -> Value {
        json!({
            "data_source": "gavel/products",
            "prompt": [{"role": "user", "content": self.expression()}],
            "ability": "arithmetic",
            "reward_model": {"style": "rule", "ground_truth": self.value()},
            "extra_info": {"index": index, "split": split.name()},
        })
    }

    /// The conversation `index` of the warm-up.
    pub fn conversation(self, index: usize) -> Value {
        let mut messages = vec![json!({"role": "user", "content": self.expression()})];
        if seed::uniform(SEED ^ 1, index as u64) < CALCULATOR_SHARE {
            let arguments = json!({"expression": self.expression()}).to_string();
            let function = json!({"name": "calculator", "arguments": arguments});
            let call = json!({"id": "call00000", "type": "function", "function": function});
            messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": "call00000", "content": self.value()}));
        }
        messages.push(json!({"role": "assistant", "content": format!("Answer: {}", self.value())}));
        json!({"messages": messages})
    }
}

/// `train` questions to learn from and `validation` others, in an order of their own.
pub fn draw(train: usize, validation: usize) -> (Vec<Product>, Vec<Product>) {
    let all: Vec<Product> = FACTORS.flat_map(|first| FACTORS.map(move |second| Product { first, second })).collect();
    let order = seed::permutation(SEED, all.len());
    let mut drawn = order.into_iter().map(|at| all[at]);
    let train = drawn.by_ref().take(train).collect();
    (train, drawn.take(validation).collect())
}

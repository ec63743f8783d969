//! The cost of requests to endpoints, by plugin.

use super::usage::Usage;
use gavel_runs::Spent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `price` of `[chat.NAME]`, for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of prompts.
    pub prompt: f64,
    /// The price of answers.
    pub completion: f64,
}

/// The spending of plugins at endpoints.
#[derive(Default)]
pub(crate) struct Spending(Mutex<BTreeMap<String, Spent>>);

impl Price {
    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        match is_price(self.prompt) && is_price(self.completion) {
            true => Ok(()),
            false => Err("price: prompt and completion must be numbers of at least 0, for a million tokens".into()),
        }
    }

    fn of(&self, usage: &Usage) -> f64 {
        let million = |tokens: Option<u32>| f64::from(tokens.unwrap_or(0)) / 1e6;
        self.prompt * million(usage.prompt_tokens) + self.completion * million(usage.completion_tokens)
    }
}

impl Spending {
    /// Adds an answer.
    pub(super) fn add(&self, plugin: &str, usage: &Usage, price: Option<&Price>) {
        let spent = Spent { tokens: usage.total() as u64, money: price.map_or(0.0, |price| price.of(usage)) };
        self.lock().entry(plugin.to_owned()).or_default().add(spent);
    }

    /// The spending of plugins since the last call of this.
    pub(crate) fn take(&self) -> BTreeMap<String, Spent> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Spent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_is_counted_by_plugin() {
        let (spending, price) = (Spending::default(), Price { prompt: 0.5, completion: 2.0 });
        let usage = |prompt, completion| Usage { prompt_tokens: Some(prompt), completion_tokens: Some(completion) };
        spending.add("a", &usage(1_000_000, 500_000), Some(&price));
        spending.add("a", &usage(10, 0), None);
        spending.add("b", &usage(3, 4), Some(&Price { prompt: 0.0, completion: 0.0 }));
        let a = Spent { tokens: 1_500_010, money: 1.5 };
        assert_eq!(spending.take(), [("a".to_owned(), a), ("b".to_owned(), Spent { tokens: 7, money: 0.0 })].into());
        assert!(spending.take().is_empty());
        assert!(Price { prompt: -1.0, completion: 0.0 }.check().is_err() && price.check().is_ok());
    }
}

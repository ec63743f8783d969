//! The cost of requests to endpoints, by plugin.

use super::usage::TokenCost;
use gavel_runs::Spent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most that a million tokens may cost: the cost of any number of tokens is finite.
const MOST: f64 = 1e9;

/// `price` of `[chat.NAME]`, for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
        let is_price = |price: f64| (0.0..=MOST).contains(&price);
        match is_price(self.prompt) && is_price(self.completion) {
            true => Ok(()),
            false => Err("price: prompt and completion must be numbers from 0 to 1e9, for a million tokens".into()),
        }
    }

    fn of(&self, cost: &TokenCost) -> f64 {
        (self.prompt * cost.prompt + self.completion * cost.completion) / 1e6
    }
}

impl Spending {
    /// Adds an answer.
    pub(super) fn add(&self, plugin: &str, cost: &TokenCost, price: Option<&Price>) {
        let spent = Spent { tokens: cost.total() as u64, money: price.map_or(0.0, |price| price.of(cost)) };
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
        let cost = |prompt, completion| TokenCost { prompt, completion };
        spending.add("a", &cost(1_000_000.0, 500_000.0), Some(&price));
        spending.add("a", &cost(10.0, 0.0), None);
        spending.add("b", &cost(3.0, 4.0), Some(&Price { prompt: 0.0, completion: 0.0 }));
        let a = Spent { tokens: 1_500_010, money: 1.5 };
        assert_eq!(spending.take(), [("a".to_owned(), a), ("b".to_owned(), Spent { tokens: 7, money: 0.0 })].into());
        assert!(spending.take().is_empty());
        assert!(Price { prompt: -1.0, completion: 0.0 }.check().is_err() && price.check().is_ok());
        // The most that a server may report.
        let (all, dearest) = (f64::from(u32::MAX), Price { prompt: 1e9, completion: 1e9 });
        assert!(dearest.check().is_ok() && dearest.of(&cost(all, all)).is_finite());
        for wrong in [f64::NAN, f64::INFINITY, 1e308] {
            assert!(Price { prompt: 0.0, completion: wrong }.check().is_err(), "{wrong}");
        }
    }
}

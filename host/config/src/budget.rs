//! `[budget]`: what a run may spend at language models.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};

/// `[budget]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetTable {
    /// The most tokens of prompts and answers at all endpoints; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most money, by the prices of `[chat.NAME]`; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

impl BudgetTable {
    /// Whether every key has its default.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn validate(&self, has_prices: bool) -> Result<(), ConfigError> {
        match self.money {
            Some(money) if !(money.is_finite() && money > 0.0) => {
                Err(ConfigError::value("budget.money", "a number above 0", money))
            }
            Some(_) if !has_prices => Err(ConfigError::invalid(
                "budget.money",
                "budget.money is set, and no endpoint has a price\nhint: set price = { prompt = …, completion = … } in [chat.NAME], for a million tokens",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_a_finite_number_above_0() {
        let error = |money: &str| {
            let table: BudgetTable = toml::from_str(&format!("money = {money}")).unwrap();
            table.validate(true).err().map(|error| error.to_string())
        };
        for (money, found) in
            [("nan", "NaN"), ("-nan", "NaN"), ("inf", "inf"), ("-inf", "-inf"), ("0.0", "0"), ("-0.5", "-0.5")]
        {
            let says = format!("budget.money must be a number above 0, not {found}");
            assert_eq!(error(money), Some(says), "{money}");
        }
        assert_eq!(error("0.5"), None);
    }
}

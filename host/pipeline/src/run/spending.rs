//! What a run spends at language models.

use crate::run::recorder::Recorder;
use gavel_config::BudgetTable;
use gavel_runs::{Metrics, Spent};
use std::collections::BTreeMap;

/// Sets the metrics of what all ranks have spent in a step, by plugin, and notes it.
pub(crate) fn describe_spent(spent: &BTreeMap<String, Spent>, recorder: &mut Recorder, metrics: &mut Metrics) {
    for (plugin, Spent { tokens, money }) in spent {
        metrics.count(format!("spent/{plugin}/tokens"), *tokens);
        metrics.set(format!("spent/{plugin}/money"), *money);
    }
    recorder.add_spent(spent);
    let all = &recorder.state().spent;
    if !all.is_empty() {
        let Spent { tokens, money } = total(all);
        metrics.count("spent/tokens", tokens);
        metrics.set("spent/money", money);
    }
}

/// Why the run must end, if it has spent its budget.
pub(crate) fn over_budget(budget: &BudgetTable, spent: &BTreeMap<String, Spent>) -> Option<String> {
    let Spent { tokens, money } = total(spent);
    match (budget.tokens, budget.money) {
        (Some(most), _) if tokens >= most => Some(format!("{tokens} tokens are spent, of budget.tokens = {most}")),
        (_, Some(most)) if money >= most => Some(format!("{money:.2} are spent, of budget.money = {most}")),
        _ => None,
    }
}

fn total(spent: &BTreeMap<String, Spent>) -> Spent {
    spent.values().fold(Spent::default(), |mut total, each| {
        total.add(*each);
        total
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_for_all_plugins_together() {
        let each = Spent { tokens: 60, money: 0.5 };
        let spent = BTreeMap::from([("a".to_owned(), each), ("b".to_owned(), each)]);
        let over = |tokens, money| over_budget(&BudgetTable { tokens, money }, &spent);
        assert_eq!(over(Some(120), None).unwrap(), "120 tokens are spent, of budget.tokens = 120");
        assert_eq!(over(None, Some(0.75)).unwrap(), "1.00 are spent, of budget.money = 0.75");
        assert_eq!((over(None, None), over(Some(121), Some(1.5))), (None, None));
    }
}

//! Which ranks draw groups: those that no reward model is placed on.

use gavel_config::{ConfigError, RewardModelTable};
use std::collections::BTreeMap;

/// The ranks of `size` that draw groups, in their order.
///
/// # Errors
/// A table names a rank that does not exist, no rank is left, or the run is one process.
pub(super) fn drawing_ranks(
    tables: &BTreeMap<String, RewardModelTable>,
    size: usize,
) -> Result<Vec<usize>, ConfigError> {
    let wrong = |name: &str, what: String| Err(ConfigError::of(&format!("reward_model.{name}.ranks"), what));
    let placed = || tables.iter().filter(|(_, table)| !table.ranks.is_empty());
    if let Some((name, table)) = placed().next()
        && size == 1
    {
        return wrong(
            name,
            format!(
                "the run is one process, and has no ranks {:?}\nhint: start several with `torchrun --no-python --nproc-per-node N gavel …`, or leave ranks out",
                table.ranks
            ),
        );
    }
    for (name, table) in placed() {
        if let Some(rank) = table.ranks.iter().find(|rank| **rank >= size) {
            return wrong(name, format!("there is no rank {rank}: the run has the ranks 0 to {}", size - 1));
        }
    }
    let has_model = |rank: &usize| placed().any(|(_, table)| table.ranks.contains(rank));
    let drawing: Vec<usize> = (0..size).filter(|rank| !has_model(rank)).collect();
    match (drawing.is_empty(), placed().next_back()) {
        (true, Some((name, _))) => wrong(
            name,
            format!("all {size} ranks have a reward model, and none is left to draw groups\nhint: name fewer ranks"),
        ),
        _ => Ok(drawing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_a_reward_model_draw_nothing_and_one_is_left_at_least() {
        let of = |ranks: &[(&str, &[usize])], size| {
            let table =
                |ranks: &[usize]| RewardModelTable { ranks: ranks.to_vec(), ..RewardModelTable::of("a".into()) };
            let tables = ranks.iter().map(|(name, ranks)| ((*name).to_owned(), table(ranks)));
            drawing_ranks(&tables.collect(), size).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[("a", &[])], 1), Ok(vec![0]));
        assert_eq!(of(&[("a", &[]), ("b", &[1])], 3), Ok(vec![0, 2]));
        assert_eq!(of(&[("a", &[0, 3]), ("b", &[1])], 5), Ok(vec![2, 4]));
        for (found, says) in [
            (of(&[("a", &[]), ("b", &[1])], 1), "reward_model.b.ranks: the run is one process, and has no ranks [1]"),
            (of(&[("a", &[1, 3])], 3), "reward_model.a.ranks: there is no rank 3: the run has the ranks 0 to 2"),
            (of(&[("a", &[0]), ("b", &[1])], 2), "reward_model.b.ranks: all 2 ranks have a reward model"),
        ] {
            let error = found.unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}

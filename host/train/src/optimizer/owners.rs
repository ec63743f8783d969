//! Which rank has the optimiser's state of which parameter.

/// The rank that has the state of each parameter, given how many numbers these have: the largest first, each to the rank
/// that has the least.
pub(crate) fn owners(sizes: &[usize], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(sizes[at]));
    let (mut owners, mut loads) = (vec![0; sizes.len()], vec![0; ranks]);
    for at in order {
        let least = (0..ranks).min_by_key(|&rank| loads[rank]).unwrap_or_default();
        loads[least] += sizes[at];
        owners[at] = least;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_about_as_many_numbers() {
        let sizes = [3, 9, 4, 4, 1];
        assert_eq!(owners(&sizes, 1), [0; 5]);
        assert_eq!(owners(&sizes, 2), [1, 0, 1, 1, 0]);
        assert_eq!(owners(&sizes, 8), [3, 0, 1, 2, 4]);
    }
}

//! Tokens that are proposed for rows, of which one forward pass checks all (Leviathan et al., arXiv:2211.17192).
//!
//! The step draws a token at each place, each from the policy's own distribution at the place's own uniform number. A
//! proposed token stays if it is the token drawn there. A point mass at `x` is accepted so with probability `p(x)`, and
//! where it is not, the token comes from `p` without `x`: this is speculative sampling with a proposal that is certain.
//! It draws what would be drawn without proposals, save for rounding.

use super::decoding::{Decoding, Draft};
use super::drawn::Pick;
use super::lookup::Lookup;
use super::row::Row;
use super::slots::Slots;

/// How many tokens were proposed, and how many of them stayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proposals {
    /// Tokens that were proposed.
    pub proposed: u64,
    /// Tokens that were drawn as proposed.
    pub accepted: u64,
}

/// The proposed tokens of all rows, those of a row one after another.
pub(super) fn drafts(lookup: &Lookup, slots: &Slots) -> Vec<Decoding> {
    if !lookup.is_used_for(slots.active()) {
        return Vec::new();
    }
    let of_row = |(number, row): (usize, &Row)| {
        let most = most_drafts(lookup, row, slots.cache.region(row.slot.unwrap_or_default()).room);
        let tokens = if most == 0 { Vec::new() } else { lookup.propose(&row.request.prompt, &row.response, most) };
        let draft = move |(token, ahead)| Decoding::draft(number, Draft { token, ahead });
        tokens.into_iter().zip(1..).map(draft)
    };
    slots.rows.iter().enumerate().flat_map(of_row).collect()
}

/// The most tokens that may be proposed for a row that has `room` in the cache. None where the distribution of a
/// token depends on the one drawn before it by more than the model: the host does not know it yet.
fn most_drafts(lookup: &Lookup, row: &Row, room: usize) -> usize {
    let sampling = &row.request.sampling;
    if sampling.constraint.is_some() || sampling.repetition_penalty != 1.0 || sampling.has_added_penalties() {
        return 0;
    }
    // The token after the last proposed one is drawn too.
    let left = sampling.max_tokens.saturating_sub(row.response.len() + 1);
    lookup.num_speculative_tokens.min(left).min(room.saturating_sub(row.tokens()))
}

/// What each row drew: its token and, as long as this is the proposed one, the token after it. `picks` are the draws of
/// `rows`: first of all rows, then of proposed tokens.
pub(super) fn accepted(rows: &[Decoding], picks: Vec<Pick>) -> Vec<Vec<Pick>> {
    let mut drawn: Vec<Vec<Pick>> = Vec::new();
    for (of, pick) in rows.iter().zip(picks) {
        let Some(draft) = of.drafted() else {
            drawn.push(vec![pick]);
            continue;
        };
        let Some(own) = drawn.get_mut(of.number) else { continue };
        // Logits that are not finite are an error of the step that begins with them.
        if own.len() == draft.ahead
            && own.last().is_some_and(|last| last.token == draft.token)
            && pick.logprob.is_finite()
        {
            own.push(pick);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed;

    #[test]
    fn tokens_stay_as_long_as_they_are_the_proposed_ones() {
        let draft = |number, ahead, token| Decoding::draft(number, Draft { token, ahead });
        let whole = [Decoding::of(0), Decoding::of(1), Decoding::of(2)];
        let rows = [&whole[..], &[draft(0, 1, 5), draft(0, 2, 6), draft(2, 1, 7), draft(2, 2, 8)]].concat();
        let picks = |tokens: [u32; 7]| tokens.into_iter().map(|token| Pick::new((token, -1.0))).collect();
        let drawn = |tokens| -> Vec<Vec<u32>> {
            let drawn = accepted(&rows, picks(tokens));
            drawn.into_iter().map(|own| own.into_iter().map(|pick| pick.token).collect()).collect()
        };
        assert_eq!(drawn([5, 1, 7, 6, 9, 8, 4]), [vec![5, 6, 9], vec![1], vec![7, 8, 4]]);
        // After the first that differs, nothing stays, even if it is as proposed.
        assert_eq!(drawn([4, 1, 7, 6, 9, 3, 4]), [vec![4], vec![1], vec![7, 3]]);
        let mut broken: Vec<Pick> = picks([5, 1, 7, 6, 9, 8, 4]);
        broken[3].logprob = f32::NAN;
        assert_eq!(accepted(&rows, broken)[0].len(), 1);
    }

    /// The distribution of what a draw gives, by 10⁶ draws, is the one that is drawn from: with a proposal that is
    /// probable, improbable or impossible.
    #[test]
    fn a_million_draws_have_the_distribution_without_proposals() {
        const DRAWS: u64 = 1_000_000;
        let first = [0.5, 0.25, 0.15, 0.1, 0.0];
        // The second token's distribution depends on the first.
        let second =
            |first: usize| -> [f64; 5] { std::array::from_fn(|at| [0.4, 0.3, 0.2, 0.1, 0.0][(at + first) % 5]) };
        let draw = |probs: &[f64], uniform: f64| {
            let mut below = 0.0;
            let inside = |prob: &f64| {
                below += prob;
                uniform < below
            };
            probs.iter().position(inside).unwrap_or(0)
        };
        for proposed in [0, 3, 4] {
            let rows = [Decoding::of(0), Decoding::draft(0, Draft { token: proposed, ahead: 1 })];
            let mut counts = [[0u32; 5]; 5];
            for seed in 0..DRAWS {
                // As a step does: after the proposed token, whatever the row itself draws.
                let of_row = draw(&first, seed::uniform(seed, 0));
                let of_draft = draw(&second(proposed as usize), seed::uniform(seed, 1));
                let picks = [of_row, of_draft].map(|token| Pick::new((token as u32, -1.0))).into();
                let drawn = accepted(&rows, picks).remove(0);
                let next = match drawn.get(1) {
                    Some(pick) => pick.token as usize,
                    // The next step.
                    None => draw(&second(of_row), seed::uniform(seed, 1)),
                };
                counts[drawn[0].token as usize][next] += 1;
            }
            let chi_square = |expected: &dyn Fn(usize, usize) -> f64| {
                let cells = (0..25).map(|cell| (cell / 5, cell % 5));
                let terms = cells.map(|(a, b)| match (f64::from(counts[a][b]), expected(a, b) * DRAWS as f64) {
                    (0.0, 0.0) => 0.0,
                    (count, mean) => (count - mean).powi(2) / mean,
                });
                terms.sum::<f64>()
            };
            // 16 cells are possible: 15 degrees of freedom, of which 37.7 is exceeded once in a thousand times.
            let right = chi_square(&|a, b| first[a] * second(a)[b]);
            assert!(right < 37.7, "{proposed}: {right}");
            // A proposal that always stays, and a second draw of all tokens where it does not, are noticed.
            let p = first[proposed as usize];
            let again = |a: usize| first[a] * (1.0 - p) + if a == proposed as usize { p } else { 0.0 };
            let wrong = chi_square(&|a, b| again(a) * second(a)[b]);
            assert!(p == 0.0 || wrong > 1000.0, "{proposed}: {wrong}");
        }
    }
}

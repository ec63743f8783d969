//! Where a response stands in the messages of the policy, so that its parts can have credit.

use crate::bindings::gavel::plugin::{
    samples::Sample,
    types::{Credit, Failure, Role},
};
use std::ops::Range;

/// Where the response of a sample stands in the messages of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseSpans(Vec<Span>);

/// The first byte of the response in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    trajectory: u32,
    message: u32,
    start: u32,
}

/// A message of the policy.
struct Reply {
    trajectory: u32,
    message: u32,
    text: String,
    has_calls: bool,
    is_last: bool,
}

impl Sample {
    /// Where the response stands in the messages of the policy. A response that several trajectories end with, word for
    /// word, stands in each of them.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if an agent put its answer together, so that it stands in no message, or stands in several
    /// without being any of them.
    pub fn response_spans(&self) -> Result<ResponseSpans, Failure> {
        let mut replies = Vec::new();
        for (trajectory, each) in (0..).zip(self.trajectories()) {
            let first = replies.len();
            for (message, each) in (0..).zip(each.messages()).filter(|(_, each)| each.role == Role::Assistant) {
                let (text, has_calls) = (each.text(), !each.tool_calls.is_empty());
                replies.push(Reply { trajectory, message, text, has_calls, is_last: false });
            }
            if let Some(last) = replies[first..].last_mut() {
                last.is_last = true;
            }
        }
        spans(&self.response(), &replies).ok_or_else(|| {
            Failure::invalid_input(
                "the response is not the text of one message of the policy, so that its parts cannot have credit",
            )
        })
    }
}

impl ResponseSpans {
    /// Credit for bytes `range` of the response, in each message where it stands.
    pub fn credit(&self, range: Range<usize>, value: f64) -> impl Iterator<Item = Credit> + use<'_> {
        self.0.iter().map(move |Span { trajectory, message, start }| Credit {
            trajectory: *trajectory,
            message: *message,
            start: start + range.start as u32,
            end: start + range.end as u32,
            value,
        })
    }

    /// The number of messages where the response stands.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The response is the last message of a trajectory, most often without calls. Otherwise it is an earlier message, or a part
/// of one: the only text that is like it, or the end of the only last message.
fn spans(response: &str, replies: &[Reply]) -> Option<ResponseSpans> {
    let whole = |is_final: fn(&Reply) -> bool| {
        let equal = replies.iter().filter(|reply| reply.text == response && is_final(reply));
        let spans: Vec<Span> = equal.map(|reply| reply.span(0)).collect();
        (!spans.is_empty()).then_some(spans)
    };
    let only = |mut spans: Box<dyn Iterator<Item = Span> + '_>| match (spans.next(), spans.next()) {
        (Some(only), None) => Some(vec![only]),
        _ => None,
    };
    let parts = || {
        let places = replies.iter().flat_map(|reply| occurrences(&reply.text, response).map(|at| reply.span(at)));
        only(Box::new(places))
    };
    let ends = || {
        let last = replies.iter().filter(|reply| reply.is_last);
        only(Box::new(last.filter_map(|reply| Some(reply.span(reply.text.trim_end().strip_suffix(response)?.len())))))
    };
    let found = whole(|reply| reply.is_last && !reply.has_calls)
        .or_else(|| whole(|reply| reply.is_last))
        .or_else(|| whole(|_| true))
        .or_else(|| parts().filter(|_| !response.is_empty()))
        .or_else(|| ends().filter(|_| !response.is_empty()));
    found.map(ResponseSpans)
}

/// The places of `part` in `text`, those that overlap too.
fn occurrences<'t>(text: &'t str, part: &'t str) -> impl Iterator<Item = usize> + 't {
    text.char_indices().map(|(at, _)| at).filter(move |at| text[*at..].starts_with(part))
}

impl Reply {
    fn span(&self, start: usize) -> Span {
        Span { trajectory: self.trajectory, message: self.message, start: start as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds a response among the last messages of trajectories, each after another message with calls.
    fn find(response: &str, finals: &[&str]) -> Option<Vec<(u32, u32, u32)>> {
        let replies = (0..).zip(finals).flat_map(|(trajectory, text)| {
            let last = Reply { trajectory, message: 2, text: (*text).into(), has_calls: false, is_last: true };
            [call_of(trajectory, "I call"), last]
        });
        let found = spans(response, &replies.collect::<Vec<_>>())?;
        Some(found.0.iter().map(|span| (span.trajectory, span.message, span.start)).collect())
    }

    fn call_of(trajectory: u32, text: &str) -> Reply {
        Reply { trajectory, message: 0, text: text.into(), has_calls: true, is_last: false }
    }

    #[test]
    fn a_response_stands_in_the_message_that_it_is() {
        assert_eq!(find("Answer: 6", &["Answer: 5", "Answer: 6", "1"]), Some(vec![(1, 2, 0)]));
        // Drafts with the same words.
        assert_eq!(find("Answer: 6", &["Answer: 6", "7", "Answer: 6"]), Some(vec![(0, 2, 0), (2, 2, 0)]));
        assert_eq!(find("", &["a", ""]), Some(vec![(1, 2, 0)]));
        // A turn with a call said the same before.
        let call = Reply { is_last: true, ..call_of(0, "6") };
        let last = Reply { has_calls: false, is_last: true, ..call_of(1, "6") };
        assert_eq!(spans("6", &[call, last]).unwrap().0, [Span { trajectory: 1, message: 0, start: 0 }]);
    }

    #[test]
    fn a_part_of_a_message_is_found_where_it_is_certain() {
        assert_eq!(find("the é 7", &["Final Answer: the é 7\n"]), Some(vec![(0, 2, 14)]));
        assert_eq!(find("7", &["I think 7. Final Answer: 7\n"]), Some(vec![(0, 2, 25)]));
        assert_eq!(find("7", &["7 or 8"]), Some(vec![(0, 2, 0)]));
        // Twice in one message, at the end of two, in none, or nothing.
        assert_eq!(find("7", &["7 or 7."]), None);
        assert_eq!(find("7", &["so 7", "hence 7"]), None);
        assert_eq!(find("aa", &["aaa."]), None);
        assert_eq!(find("8", &["so 7", "hence 7"]), None);
        assert_eq!(find("", &["a", "b"]), None);
    }

    #[test]
    fn credit_is_for_the_bytes_in_the_message() {
        let spans = ResponseSpans(vec![
            Span { trajectory: 1, message: 2, start: 14 },
            Span { trajectory: 3, message: 0, start: 0 },
        ]);
        let credit: Vec<_> = spans.credit(2..5, 0.5).map(|it| (it.trajectory, it.message, it.start, it.end)).collect();
        assert_eq!((credit, spans.len()), (vec![(1, 2, 16, 19), (3, 0, 2, 5)], 2));
    }
}

//! What a reply may quote: a text in a fence, in quotation marks or in tags, or one that the line before introduces.

use std::borrow::Cow;
use std::ops::Range;

/// The characters that Markdown puts around words and numbers.
pub(crate) const DECORATION: &[char] = &['*', '_', '`', '#', '$', ' ', '\t'];
/// The words of a text that repeats what somebody wrote.
const QUOTING: &[&str] = &[
    "added",
    "adds",
    "appended",
    "asked",
    "asks",
    "begged",
    "begins",
    "begs",
    "claimed",
    "claims",
    "concluded",
    "concludes",
    "contained",
    "contains",
    "declares",
    "demanded",
    "demands",
    "embedded",
    "ended",
    "ends",
    "example",
    "fake",
    "faked",
    "following",
    "forged",
    "format",
    "gave",
    "hidden",
    "himself",
    "included",
    "includes",
    "inject",
    "injected",
    "injects",
    "inserted",
    "inserts",
    "insisted",
    "insists",
    "instructed",
    "instruction",
    "instructions",
    "instructs",
    "itself",
    "line",
    "mentioned",
    "mentions",
    "ordered",
    "orders",
    "output",
    "outputs",
    "pretends",
    "printed",
    "prints",
    "put",
    "puts",
    "quote",
    "quoted",
    "quotes",
    "read",
    "reads",
    "replied",
    "replies",
    "reported",
    "requested",
    "requests",
    "said",
    "say",
    "saying",
    "says",
    "self",
    "stated",
    "states",
    "suggested",
    "suggests",
    "text",
    "themselves",
    "told",
    "typed",
    "types",
    "verbatim",
    "wanted",
    "wants",
    "write",
    "writes",
    "writing",
    "written",
    "wrote",
];
/// Words after which a sentence goes on in the next line.
const LEADING_ON: &[&str] = &[
    "a", "and", "are", "as", "be", "by", "for", "from", "in", "is", "like", "of", "on", "or", "say", "that", "the",
    "then", "this", "to", "was", "were", "with",
];
/// The words of a line that introduces the judge's own verdict: `My final verdict:`.
const OWN: &[&str] = &[
    "assessment",
    "conclusion",
    "consequently",
    "evaluation",
    "final",
    "grade",
    "hence",
    "here",
    "judgement",
    "judgment",
    "overall",
    "rate",
    "rating",
    "result",
    "scale",
    "score",
    "so",
    "summary",
    "therefore",
    "thus",
    "verdict",
];
/// Tags that are the judge's own, beside the labels of verdicts.
const OWN_TAGS: &[&str] = &[
    "assessment",
    "b",
    "better",
    "center",
    "em",
    "evaluation",
    "final",
    "final_score",
    "grade",
    "i",
    "judgement",
    "judgment",
    "p",
    "points",
    "rating",
    "score",
    "strong",
    "u",
    "verdict",
    "winner",
];
/// Bytes of the longest name of a tag.
const LONGEST_TAG: usize = 64;
/// The tags that models put around their thoughts before a reply.
const THOUGHT: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// A line that is not blank, without decoration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    /// Where it begins in its reply.
    pub(crate) start: usize,
    /// The number of the fence that it is in.
    pub(crate) fence: Option<usize>,
}

/// The lines of a reply, without those that begin and end a fence.
pub(crate) fn lines(reply: &str) -> Vec<Line<'_>> {
    let (mut lines, mut fences, mut is_open, mut start) = (Vec::new(), 0, false, 0);
    for line in reply.split_inclusive('\n') {
        let text = bare(line.trim_end());
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            let closes_itself = trimmed.trim_end().len() > 3 && trimmed.trim_end().ends_with("```");
            if !closes_itself {
                fences += usize::from(!is_open);
                is_open = !is_open;
                start += line.len();
                continue;
            }
        }
        if !text.is_empty() && !is_rule(text) {
            let at = text.as_ptr() as usize - line.as_ptr() as usize;
            lines.push(Line { text, start: start + at, fence: is_open.then_some(fences) });
        }
        start += line.len();
    }
    lines
}

/// Whether a line is a rule, or the underline of a heading.
fn is_rule(text: &str) -> bool {
    text.len() > 2 && text.chars().all(|c| "-=".contains(c))
}

/// The parts of a reply that are in quotation marks or in tags that are not the judge's own.
pub(crate) fn quotations(reply: &str) -> Vec<Range<usize>> {
    let mut quoted = tagged(reply);
    for (open, close) in [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“')] {
        let mut rest = 0;
        while let Some(at) = reply[rest..].find(open).map(|at| rest + at) {
            let inside = at + open.len_utf8();
            let end = reply[inside..].find(close).map_or(reply.len(), |end| inside + end + close.len_utf8());
            quoted.push(at..end);
            rest = end;
        }
    }
    quoted
}

/// The parts of a reply between tags that are not the judge's own, such as `<response>`.
fn tagged(reply: &str) -> Vec<Range<usize>> {
    let opens = reply.match_indices('<').filter_map(|(at, _)| {
        let (name, _) = reply[at + 1..].split_once('>').filter(|(name, _)| name.len() <= LONGEST_TAG)?;
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let is_own = OWN_TAGS.contains(&name.to_ascii_lowercase().as_str());
        (is_name && !is_own).then(|| (at, format!("</{name}>")))
    });
    let closed = opens.filter_map(|(at, close)| Some(at..at + reply[at..].find(&close)?));
    closed.collect()
}

/// A reply without the thoughts before it; `None` if it ends in a thought. A thought that ends without having begun, or
/// ends twice, may be a part of the response: what is before its end counts, too.
pub(crate) fn said(reply: &str) -> Option<Cow<'_, str>> {
    let mut said = Cow::Borrowed(reply.trim());
    for (open, close) in THOUGHT {
        if let Some(after) = said.strip_prefix(open).map(|thought| thought.split_once(close)) {
            said = Cow::Owned(after?.1.trim_start().to_owned());
        }
        if said.contains(open) {
            return None;
        }
        if said.contains(close) {
            said = Cow::Owned(said.replace(close, "\n"));
        }
    }
    Some(said)
}

/// Whether what follows a line may be a quotation, because the line repeats somebody, or leads on to another text.
pub(crate) fn introduces_quotation(line: &str) -> bool {
    if line.ends_with([':', ',']) {
        return cites(line) || !is_own(line);
    }
    let last = words(line).filter(|word| !word.is_empty()).last();
    let leads_on = last.is_some_and(|word| LEADING_ON.contains(&word.as_str()));
    line.ends_with(|c: char| c.is_alphanumeric() || "-–—>".contains(c)) && (quotes(line) || leads_on)
}

/// Whether a line speaks of the judge's own verdict: `My final verdict:`.
pub(crate) fn is_own(line: &str) -> bool {
    words(line).any(|word| OWN.contains(&word.as_str()))
}

/// Whether a text may lead to a quotation: `The response says:` or `The whole response was`.
pub(crate) fn cites(text: &str) -> bool {
    quotes(text) || words(text).any(|word| word == "response")
}

/// Whether a text repeats what somebody wrote.
pub(crate) fn quotes(text: &str) -> bool {
    words(text).any(|word| QUOTING.contains(&word.as_str()))
}

/// The words of a text, in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase)
}

/// Whether a text ends with the verdict that was read from it.
pub(crate) fn is_end(after: &str) -> bool {
    bare(after).trim_end_matches(['.', '!']).is_empty()
}

/// A text without decoration.
pub(crate) fn bare(text: &str) -> &str {
    text.trim_matches(DECORATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_fence_and_place() {
        let reply = "It greets.\n```json\n  **7**\n```\nEnd";
        let found: Vec<_> = lines(reply).into_iter().map(|line| (line.text, line.start, line.fence)).collect();
        assert_eq!(found, [("It greets.", 0, None), ("7", 23, Some(1)), ("End", 31, None)]);
    }

    #[test]
    fn what_is_in_marks_or_tags_is_quoted() {
        let quoted = |text: &str| {
            let at = text.find('7').unwrap_or_default();
            quotations(text).iter().any(|range| range.contains(&at))
        };
        for text in ["He says \"7\".", "“7”", "«7»", "<response>7</response>", "\"7", "<b><quote>7</quote></b>"] {
            assert!(quoted(text), "{text}");
        }
        for text in ["\"a\" 7 \"b\"", "<score>7</score>", "<b>7</b>", "<response></response>7", "it's 7"] {
            assert!(!quoted(text), "{text}");
        }
    }

    #[test]
    fn what_somebody_wrote_is_introduced() {
        for line in ["He wrote", "The response says:", "At its end there is", "At the bottom:", "It puts this first,"] {
            assert!(introduces_quotation(line), "{line}");
        }
        for line in ["My final verdict:", "It greets", "It says hello.", "Therefore:", "It is polite"] {
            assert!(!introduces_quotation(line), "{line}");
        }
    }
}

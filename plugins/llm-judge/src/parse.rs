//! Verdicts in a model's words.

/// Which of two responses is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    First,
    Second,
    Neither,
}

/// The last `Score: N` or `[[N]]`, with N from 0 to 10; as a share of 10. One
/// that is out of range is no verdict, and neither is an earlier one then.
pub(crate) fn score(reply: &str) -> Option<f64> {
    let value: f64 = last(reply, "score")?.trim_end_matches("/10").trim().parse().ok()?;
    (0.0..=10.0).contains(&value).then_some(value / 10.0)
}

/// The last `Better: A`, `B` or `tie`, or `[[A]]`, `[[B]]`, `[[C]]`.
pub(crate) fn better(reply: &str) -> Option<Better> {
    match last(reply, "better")?.to_ascii_lowercase().as_str() {
        "a" => Some(Better::First),
        "b" => Some(Better::Second),
        "c" | "tie" => Some(Better::Neither),
        _ => None,
    }
}

/// A `yes` or `no` for each of `count` numbers, in lines such as `2: yes`.
/// Where a number has several, the last one counts.
pub(crate) fn answers(reply: &str, count: usize) -> Option<Vec<bool>> {
    let mut found = vec![None; count];
    for line in reply.lines() {
        let Some((number, answer)) = bare(line).split_once([':', '.', ')']) else { continue };
        let Ok(number) = bare(number).parse::<usize>() else { continue };
        let answer = match word(answer).to_ascii_lowercase().as_str() {
            "yes" => true,
            "no" => false,
            _ => continue,
        };
        if let Some(place) = number.checked_sub(1).and_then(|at| found.get_mut(at)) {
            *place = Some(answer);
        }
    }
    found.into_iter().collect()
}

/// What follows the last `NAME:` at the start of a line, or stands in the last
/// `[[…]]`, whichever comes last.
fn last<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    reply.lines().rev().find_map(|line| {
        let named = bare(line).split_once(':').filter(|(own, _)| bare(own).eq_ignore_ascii_case(name));
        let marked = || Some(line.rsplit_once("[[")?.1.split_once("]]")?.0.trim());
        // A minus is no bullet here.
        let value = |text: &'a str| text.trim_matches(|c: char| c.is_whitespace() || "*_`.".contains(c));
        marked().or_else(|| named.map(|(_, text)| value(text)))
    })
}

/// Without what Markdown puts around words and numbers.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "*_`#>-".contains(c))
}

/// The first word.
fn word(text: &str) -> &str {
    bare(text).split(|c: char| !c.is_alphabetic()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_score_counts() {
        for (reply, expected) in [
            ("Score: 7", Some(0.7)),
            ("It says \"Score: 10\".\nScore: 3\n", Some(0.3)),
            ("**Score:** 8.5", Some(0.85)),
            ("score: 9/10.", Some(0.9)),
            ("Rating: [[5]]", Some(0.5)),
            ("Score: 7\nScore: 70", None),
            ("Score: high", None),
            ("Score: -1", None),
            ("Score: NaN", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(score(reply), expected, "{reply}");
        }
    }

    #[test]
    fn the_better_one_is_a_letter() {
        for (reply, expected) in [
            ("Better: A", Some(Better::First)),
            ("A is longer.\n**Better: B**", Some(Better::Second)),
            ("better: tie.", Some(Better::Neither)),
            ("[[C]]", Some(Better::Neither)),
            ("[[A]] at first, yet\n[[B]]", Some(Better::Second)),
            ("Better: both", None),
            ("A", None),
        ] {
            assert_eq!(better(reply), expected, "{reply}");
        }
    }

    #[test]
    fn every_criterion_needs_its_answer() {
        assert_eq!(answers("1: yes\n2: No, it is long.\n", 2), Some(vec![true, false]));
        assert_eq!(answers("- **1.** Yes\n2) no\n1: no", 2), Some(vec![false, false]));
        assert_eq!(answers("1: yes", 2), None);
        assert_eq!(answers("1: yes\n2: perhaps", 2), None);
        assert_eq!(answers("0: yes\n1: yes\n7: no", 1), Some(vec![true]));
    }
}

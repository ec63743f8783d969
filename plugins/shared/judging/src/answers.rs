//! Reads a `yes` or `no` for each of several criteria.

use crate::object::{Object, is_json, objects};
use crate::quotation::{cites, introduces_quotation, lines, quotations, said};
use crate::verdict::corrects;
use serde_json::Value;

/// A `yes` or `no` for each of `count` numbers, in lines such as `2: yes` or in a JSON object such as `{"2": "yes"}`.
/// `None` if a number has both or neither, or where an answer may be a quotation.
pub fn answers(reply: &str, count: usize) -> Option<Vec<bool>> {
    let text = said(reply)?;
    let found = objects(&text)?;
    let of_objects: Vec<_> = found.iter().filter_map(|each| of_object(&each.object, count)).collect();
    let Some(first) = of_objects.first() else {
        return if is_json(&text) { None } else { of_lines(&text, count) };
    };
    let last = found.last()?;
    let is_last = text[last.at.end..].trim_matches(|c: char| c.is_whitespace() || c == '`').is_empty();
    let before = &text[..last.at.start];
    let is_cited = lines(before).last().is_some_and(|line| cites(line.text) || introduces_quotation(line.text));
    let is_sure = is_last && !is_cited && of_objects.iter().all(|other| other == first);
    let agrees = |answers: &Vec<bool>| of_lines(before, count).is_none_or(|other| other == *answers);
    first.clone().filter(|answers| is_sure && agrees(answers))
}

/// The answers of an object; `None` if it has none, `Some(None)` if some are missing or differ.
fn of_object(object: &Object, count: usize) -> Option<Option<Vec<bool>>> {
    let names = (1..=count).map(|number| number.to_string());
    let answers: Vec<Option<Option<bool>>> = names
        .map(|name| {
            let mut values = object.get(&name).map(|value| match value {
                Value::Bool(answer) => Some(*answer),
                Value::String(text) => read(text),
                _ => None,
            });
            let first = values.next()?;
            Some(first.filter(|_| values.all(|other| other == first)))
        })
        .collect();
    let has_any = answers.iter().any(Option::is_some);
    has_any.then(|| answers.into_iter().map(Option::flatten).collect())
}

/// The answers of lines.
fn of_lines(text: &str, count: usize) -> Option<Vec<bool>> {
    let quoted = quotations(text);
    let mut found = vec![None; count];
    let mut is_cited = false;
    let mut is_answered = false;
    for line in lines(text) {
        let numbered = bare(line.text).split_once([':', '.', ')']);
        let numbered = numbered.and_then(|(number, answer)| Some((bare(number).parse::<usize>().ok()?, answer)));
        let answered = numbered.and_then(|(number, answer)| Some((number, read(answer)?)));
        let is_quoted =
            line.fence.is_some() || line.text.starts_with('>') || quoted.iter().any(|at| at.contains(&line.start));
        let Some((number, answer)) = answered else {
            if is_answered && corrects(line.text) {
                return None;
            }
            is_cited = is_cited && numbered.is_some()
                || line.text.ends_with([':', ',']) && cites(line.text)
                || cites(line.text) && line.text.ends_with(char::is_alphanumeric);
            continue;
        };
        if is_cited || is_quoted {
            continue;
        }
        is_answered = true;
        if let Some(place) = number.checked_sub(1).and_then(|at| found.get_mut(at)) {
            if place.is_some_and(|other| other != answer) {
                return None;
            }
            *place = Some(answer);
        }
    }
    found.into_iter().collect()
}

/// The answer that a text begins with: `Yes, it is.`, `not met`.
fn read(text: &str) -> Option<bool> {
    let text = bare(text).to_ascii_lowercase();
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len()));
    let (answer, rest) = match word {
        "yes" | "true" | "met" => (true, rest),
        "no" | "false" | "unmet" => (false, rest),
        "not" => (false, rest.strip_prefix(" met")?),
        _ => return None,
    };
    let rest = rest.trim_start_matches(['*', '_', '`']);
    let remark = rest.trim_start();
    let is_remark = remark.is_empty()
        || remark.starts_with([',', '.', ';', '(', '-', '–', '—', ':', '!'])
        || remark.starts_with("because");
    let first = remark.trim_start_matches(|c: char| !c.is_alphabetic());
    let other = if answer { ["no", "false"] } else { ["yes", "true"] };
    let begins_with =
        |word: &str| first.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    let is_sure = is_remark && !corrects(remark) && !other.into_iter().any(begins_with);
    is_sure.then_some(answer)
}

/// The text without Markdown's characters around words and numbers.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "*_`#-".contains(c))
}

//! What the other fields of an object say of the score in it: its scale, or that another score may hold.

use crate::criterion::is_criterion;
use crate::scale::{ASKED, named};
use serde_json::Value;

/// Words in the name of a field that has the scale: `max_score`, `scale`.
const SCALE_NAMES: &[&str] = &["maximum", "max", "possible", "range", "scale"];
/// The other words of such a name; `max_tokens` is none.
const OF_SCORE: &[&str] =
    &["rating", "scores", "score", "grade", "overall", "points", "possible", "total", "value", "out", "of"];
/// Words in the name of a field that has a score.
const SCORES: &[&str] = &["grade", "overall", "points", "rating", "score", "total"];
/// Words in the name of a field that corrects a score.
const CORRECTIONS: &[&str] = &["adjusted", "corrected", "correction", "revised"];
/// Words in the name of a field that has something else.
const OTHERS: &[&str] = &["answer", "count", "deducted", "distribution", "level", "lost", "steps", "tokens", "words"];
/// Words for a score before the final one.
const EARLIER: &[&str] = &["base", "draft", "earlier", "first", "initial", "old", "preliminary", "previous", "raw"];
/// Fields that name the criterion that a score is for.
const ASPECTS: &[&str] = &["aspect", "criterion", "dimension"];

/// Whether a field names a scale other than the one that is asked for, or the only criterion of the score.
pub(crate) fn names_another_scale(name: &str, value: &Value) -> bool {
    let name = name.to_ascii_lowercase();
    let mut rest: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    for word in SCALE_NAMES.iter().chain(OF_SCORE) {
        rest = rest.replace(word, "");
    }
    let is_scale = SCALE_NAMES.iter().any(|word| name.contains(word)) || name.contains("out_of");
    let is_of_score = rest.is_empty() || name.contains("scale");
    let top = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok().or(named(text))));
    is_scale && is_of_score && top != Some(ASKED) || ASPECTS.contains(&name.as_str()) && value.is_string()
}

/// Whether a field may have another score than `points`, which stands in the field `chosen`: `"revised_score": 5`.
pub(crate) fn is_rival(name: &str, value: &Value, chosen: &str, points: f64) -> bool {
    let words = name_words(name);
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
    let is_scale = has(SCALE_NAMES);
    let is_replaced = has(EARLIER) && name_words(chosen).iter().any(|word| word == "final");
    let is_part = words.iter().any(|word| is_criterion(word) || word == "subscore") || has(OTHERS);
    let is_other = number.is_some_and(|number| number != points);
    let corrects = has(CORRECTIONS) && (is_other || number.is_none() && value.as_str().is_some_and(has_digit));
    let scores = (has(SCORES) || words == ["final"]) && is_other;
    (corrects || scores) && !is_scale && !is_replaced && !is_part
}

/// The words of a name in lower case: `finalScore`, `final_score`, `Final score`.
fn name_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        was_lower = c.is_lowercase();
    }
    spaced.split_whitespace().map(str::to_lowercase).collect()
}

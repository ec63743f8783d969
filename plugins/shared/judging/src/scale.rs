//! Numbers, and the scales that they are out of: `7/10`, `(0-5)`, `out of 100`, `70 %`.

/// The scale that the prompts ask for: from 0 to this.
pub(crate) const ASKED: f64 = 10.0;

/// Words that may stand before a scale: `(on a scale from 0 to 5)`.
const BEFORE_SCALE: &[&str] = &["a", "between", "from", "is", "of", "on", "range", "ranges", "rated", "scale", "the"];
/// Words that announce the highest score: `out of 5`, `max. 5`.
const TOP: &[&str] = &["max", "maximum", "of", "out"];

/// Remarks about an earlier score: `8/10 (up from 5)`.
const CHANGED_FROM: [&str; 4] = ["up from", "down from", "raised from", "lowered from"];

/// The number from 0 that a text begins with, without a sign or an exponent, and the rest of the text.
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    let end = if fraction == 0 { whole } else { whole + 1 + fraction };
    let value: f64 = text[..end].parse().ok()?;
    Some((value, &text[end..]))
}

/// The highest number of the scale that a text names and that begins at 0: `0-5`, `on a scale from 0 to 100`,
/// `out of 5`, `/5`, `max. 5`, `%`.
pub(crate) fn named(text: &str) -> Option<f64> {
    let text = text.trim();
    if text == "%" || text.eq_ignore_ascii_case("percent") {
        return Some(100.0);
    }
    let is_top = |top: &f64| *top > 0.0;
    if let Some(of) = text.strip_prefix('/') {
        return whole_number(of).filter(is_top);
    }
    match range(text) {
        Some((low, high)) => (low == 0.0).then_some(high).filter(is_top),
        None => {
            let (words, at) = words_before_digit(text)?;
            let is_announced = !words.is_empty() && words.iter().all(|word| TOP.contains(&word.as_str()));
            whole_number(&text[at..]).filter(|top| is_announced && is_top(top))
        }
    }
}

/// The scale after a number, if there is one, and the rest of the text: `/10`, ` out of 5`, ` (0-100)`, ` %`. `None`
/// if the number is out of something that is not a scale.
pub(crate) fn after_number(text: &str) -> Option<(Option<f64>, &str)> {
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix('%').or_else(|| trimmed.strip_prefix("percent")) {
        return Some((Some(100.0), rest));
    }
    if let Some(inside) = trimmed.strip_prefix(['(', '[']) {
        let Some((inside, rest)) = inside.split_once([')', ']']) else { return Some((None, text)) };
        let scale = named(inside);
        if CHANGED_FROM.iter().any(|from| inside.trim_start().to_ascii_lowercase().starts_with(from)) {
            return Some((None, rest));
        }
        let is_remark = scale.is_none() && !inside.contains(|c: char| c.is_ascii_digit() || c == '/');
        return if is_remark { Some((None, text)) } else { scale.map(|scale| (Some(scale), rest)) };
    }
    let lower = trimmed.to_ascii_lowercase();
    if lower.starts_with("on a scale") {
        let (_, at) = words_before_digit(trimmed)?;
        let (low, high, rest) = bounds(&trimmed[at..])?;
        return (low == 0.0 && high > 0.0).then_some((Some(high), rest));
    }
    let Some(of) = trimmed.strip_prefix('/').or_else(|| lower.starts_with("out of ").then(|| &trimmed[7..])) else {
        return Some((None, text));
    };
    let (top, rest) = number(of.trim_start_matches([' ', '*']))?;
    (top > 0.0).then_some((Some(top), rest))
}

/// A text that is one number.
fn whole_number(text: &str) -> Option<f64> {
    let (number, rest) = number(text.trim())?;
    rest.is_empty().then_some(number)
}

/// The bounds of a text that names a range and nothing else: `0-5`, `from 0 to 5`, `0–5 scale`.
fn range(text: &str) -> Option<(f64, f64)> {
    let (words, at) = words_before_digit(text)?;
    let (low, high, rest) = bounds(&text[at..])?;
    let is_whole = rest.trim().is_empty() || rest.trim().eq_ignore_ascii_case("scale");
    (is_whole && words.iter().all(|word| BEFORE_SCALE.contains(&word.as_str()))).then_some((low, high))
}

/// The two numbers of a range, and the rest of the text: `0-5`, `0 to 5`, `0 and 5`.
pub(crate) fn bounds(text: &str) -> Option<(f64, f64, &str)> {
    let (low, rest) = number(text)?;
    let rest = rest.trim_start();
    let to = ["-", "–", "—", "..", "to ", "and "].iter().find_map(|to| rest.strip_prefix(to))?;
    let (high, rest) = number(to.trim_start())?;
    Some((low, high, rest))
}

/// The words before the first digit of a text, in lower case, and where the digit is; `None` if there are other signs
/// than those around words.
fn words_before_digit(text: &str) -> Option<(Vec<String>, usize)> {
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let is_word = |c: char| c.is_alphabetic() || c.is_whitespace() || "(:.,[".contains(c);
    let before = &text[..at];
    let words = before.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    before.chars().all(is_word).then(|| (words.map(str::to_ascii_lowercase).collect(), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_that_begins_at_zero_is_named_in_many_ways() {
        for (text, top) in [
            ("0-5", 5.0),
            ("0 – 100", 100.0),
            ("from 0 to 5", 5.0),
            ("on a scale of 0 to 5", 5.0),
            ("scale: 0-5", 5.0),
            ("0-5 scale", 5.0),
            ("out of 5", 5.0),
            ("max. 20", 20.0),
            ("/5", 5.0),
            ("%", 100.0),
        ] {
            assert_eq!(named(text), Some(top), "{text}");
        }
        for text in ["1-5", "-5 to 5", "0", "5", "0-0", "/0", "clarity", "0-5 or 0-10", "10-0", "out of ten", "about 5"]
        {
            assert_eq!(named(text), None, "{text}");
        }
    }
}

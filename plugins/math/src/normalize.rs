//! Equality of answers after the normalisation that Hendrycks et al. published
//! with the MATH dataset (<https://arxiv.org/abs/2103.03874>), as verl applies
//! it. It works on text, so 1/2 and 0.50 differ.

/// Whether two answers are the same. If the rules cannot read one of them (a
/// `\frac` or `\sqrt` at the end, two units), both are compared without
/// normalisation.
pub fn equivalent(answer: &str, truth: &str) -> bool {
    match (normalize(answer), normalize(truth)) {
        (Some(answer), Some(truth)) => answer == truth,
        _ => answer == truth,
    }
}

/// Whether `truth` is blank after normalisation.
pub fn is_blank(truth: &str) -> bool {
    normalize(truth).unwrap_or_else(|| truth.to_owned()).is_empty()
}

/// The texts that are removed or rewritten, in this order, before anything is
/// parsed.
const REWRITES: [(&str, &str); 13] = [
    ("\n", ""),
    (r"\!", ""),
    (r"\\", r"\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    (r"\left", ""),
    (r"\right", ""),
    (r"^{\circ}", ""),
    (r"^\circ", ""),
    (r"\$", ""),
    // From here on, after the units are removed.
    (r"\\%", ""),
    (r"\%", ""),
    (" .", " 0."),
];

/// How many of [`REWRITES`] come before the removal of units.
const BEFORE_UNITS: usize = 10;

/// The normal form; `None` if the rules cannot read `text`.
fn normalize(text: &str) -> Option<String> {
    let rewrite = |text: String, rules: &[(&str, &str)]| {
        rules.iter().fold(text, |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
    };
    let text = rewrite(text.to_owned(), &REWRITES[..BEFORE_UNITS]);
    let text = rewrite(without_units(&text)?.to_owned(), &REWRITES[BEFORE_UNITS..]);
    let mut text = text.replace("{.", "{0.");
    if text.starts_with('.') {
        text.insert(0, '0');
    }
    let text = braced_roots(value_of_equation(&text))?.replace(' ', "");
    let text = braced_fractions(&text)?;
    Some(if text == "0.5" { r"\frac{1}{2}".into() } else { ratio_as_fraction(text) })
}

/// The text before its unit, which `\text{ ` begins.
fn without_units(text: &str) -> Option<&str> {
    match text.split_once(r"\text{ ") {
        None => Some(text),
        Some((_, unit)) if unit.contains(r"\text{ ") => None,
        Some((value, _)) => Some(value),
    }
}

/// `5` of `x = 5`, where the name has at most two characters, spaces included.
fn value_of_equation(text: &str) -> &str {
    match text.split_once('=') {
        Some((name, value)) if !value.contains('=') && name.chars().count() <= 2 => value,
        _ => text,
    }
}

/// `\sqrt3` as `\sqrt{3}`.
fn braced_roots(text: &str) -> Option<String> {
    let mut parts = text.split(r"\sqrt");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let first = part.chars().next()?;
        result.push_str(r"\sqrt");
        if first == '{' {
            result.push_str(part);
        } else {
            push_braced(&mut result, first);
            result.push_str(&part[first.len_utf8()..]);
        }
    }
    Some(result)
}

/// `\frac12` and `\frac1{2}` as `\frac{1}{2}`. A text in which a single
/// character follows a `\frac` stays as it is.
fn braced_fractions(text: &str) -> Option<String> {
    let mut parts = text.split(r"\frac");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        let numerator = rest.next()?;
        result.push_str(r"\frac");
        if numerator == '{' {
            result.push_str(part);
            continue;
        }
        push_braced(&mut result, numerator);
        match rest.next() {
            None => return Some(text.to_owned()),
            Some('{') => result.push('{'),
            Some(denominator) => push_braced(&mut result, denominator),
        }
        result.push_str(rest.as_str());
    }
    Some(result)
}

fn push_braced(text: &mut String, character: char) {
    text.extend(['{', character, '}']);
}

/// `a/b` of two whole numbers as `\frac{a}{b}`.
fn ratio_as_fraction(text: String) -> String {
    match text.split_once('/') {
        Some((above, below)) if is_integer(above) && is_integer(below) => format!(r"\frac{{{above}}}{{{below}}}"),
        _ => text,
    }
}

/// Whether `text` is a whole number written as a computer prints it.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    text == "0" || (!digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(forms: &[&str]) {
        for form in forms {
            assert!(equivalent(form, forms[0]), "{form} is not {}: {:?}", forms[0], normalize(form));
        }
    }

    #[test]
    fn forms_of_one_answer_are_equal() {
        same(&[
            r"\frac{1}{2}",
            "1/2",
            "0.5",
            ".5",
            r"\dfrac12",
            r"\tfrac{1}{2}",
            r"\frac 1 2",
            r"x=\frac1{2}",
            "k = .5",
        ]);
        same(&["90", r"90^\circ", r"90^{\circ}", "9 0\n", r"\$90", r"90\%", r"90\text{ degrees}", r"9\!0"]);
        same(&[r"(1,\sqrt{3})", r"\left(1, \sqrt3\right)", r"\\left(1,\\sqrt{3}\\right)"]);
        same(&[r"\frac{-3}{4}", "-3/4"]);
    }

    #[test]
    fn what_only_looks_alike_differs() {
        for (a, b) in
            [("0.50", "0.5"), ("1/2", "2/4"), ("03/4", r"\frac{3}{4}"), ("1,000", "1000"), ("xyz=5", "5"), ("", "0")]
        {
            assert!(!equivalent(a, b), "{a} {b}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_compared_as_it_stands() {
        for text in [r"\sqrt", r"2\frac", r"5\text{ m}\text{ s}"] {
            assert_eq!(normalize(text), None, "{text}");
            assert!(equivalent(text, text) && !equivalent(text, &format!("{text} ")));
        }
        assert_eq!(normalize(r"\frac2").as_deref(), Some(r"\frac2"));
    }

    #[test]
    fn a_truth_of_which_nothing_is_left_is_blank() {
        assert!(is_blank("") && is_blank(" \n") && is_blank(r"\!") && is_blank("x="));
        assert!(!is_blank("0") && !is_blank(r"\sqrt"));
    }
}

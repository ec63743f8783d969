//! The normal form of a final answer after Lewkowycz et al.
//! (<https://arxiv.org/abs/2206.14858>, appendix D), with the lists of DAPO and
//! verl.

use answer_rules::strip;
use regex::Regex;
use std::borrow::Cow;

/// The first rewrites, in this order.
const REWRITES: [(&str, &str); 10] = [
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    (r"\$", ""),
    (r"\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (r",\text{and}", ","),
    (r"\text{and}", ","),
    (r"\text{m}", r"\text{}"),
];

/// The texts that are then removed everywhere, in this order.
const REMOVED: [&str; 41] = [
    "square",
    "ways",
    "integers",
    "dollars",
    "mph",
    "inches",
    "hours",
    "km",
    "units",
    r"\ldots",
    "sue",
    "points",
    "feet",
    "minutes",
    "digits",
    "cents",
    "degrees",
    "cm",
    "gm",
    "pounds",
    "meters",
    "meals",
    "edges",
    "students",
    "childrentickets",
    "multiples",
    r"\text{s}",
    r"\text{.}",
    "\\text{\ns}",
    r"\text{}^2",
    r"\text{}^3",
    "\\text{\n}",
    r"\text{}",
    r"\mathrm{th}",
    r"^\circ",
    r"^{\circ}",
    r"\;",
    r",\!",
    "{,}",
    "\"",
    r"\dots",
];

/// The last rewrites, of LaTeX, in this order: a text that must occur for the
/// pattern to match, the pattern, and its replacement. A pattern that is not
/// used costs a call nothing.
const LATEX: [(&str, &str, &str); 7] = [
    // Only the mathematics of a text that has some.
    ("$", r"(.*?)(\$)(.*?)(\$)(.*)", "$$$3$$"),
    (r"\text{", r"(\\text\{)(.*?)(\})", "$2"),
    (r"\textbf{", r"(\\textbf\{)(.*?)(\})", "$2"),
    (r"\overline{", r"(\\overline\{)(.*?)(\})", "$2"),
    (r"\boxed{", r"(\\boxed\{)(.*)(\})", "$2"),
    // `\fracab` as `\frac{a}{b}`, `\sqrta` as `\sqrt{a}`.
    ("frac", r"(frac)([^{])(.)", "frac{$2}{$3}"),
    ("sqrt", r"(sqrt)([^{])", "sqrt{$2}"),
];

/// The rules, with their patterns compiled.
pub struct Normalizer {
    latex: Vec<(&'static str, Regex, &'static str)>,
    digits: Regex,
}

impl Normalizer {
    pub fn new() -> Result<Self, regex::Error> {
        let latex = LATEX.iter().map(|&(literal, pattern, with)| Ok((literal, Regex::new(pattern)?, with)));
        Ok(Self { latex: latex.collect::<Result<_, _>>()?, digits: Regex::new(DIGITS)? })
    }

    /// The normal form of `answer`.
    pub fn normalize(&self, answer: &str) -> String {
        let mut text = answer.rsplit('=').next().unwrap_or_default().to_owned();
        for (from, to) in REWRITES.into_iter().chain(REMOVED.map(|removed| (removed, ""))) {
            if text.contains(from) {
                text = text.replace(from, to);
            }
        }
        for (literal, pattern, with) in &self.latex {
            if text.contains(literal)
                && let Cow::Owned(changed) = pattern.replace_all(&text, *with)
            {
                text = changed;
            }
        }
        text = text.replace('$', "");
        if text.contains(',') {
            let without_commas = text.replace(',', "");
            if self.digits.is_match(&without_commas) {
                text = without_commas;
            }
        }
        strip(&text).to_owned()
    }
}

/// The digits of Python's `str.isdigit`: the decimal digits of every script,
/// and those in circles, in brackets, with a full stop, above and below the
/// line.
const DIGITS: &str = concat!(
    r"\A[\p{Nd}\u{b2}\u{b3}\u{b9}\u{1369}-\u{1371}\u{19da}\u{2070}\u{2074}-\u{2079}\u{2080}-\u{2089}",
    r"\u{2460}-\u{2468}\u{2474}-\u{247c}\u{2488}-\u{2490}\u{24ea}\u{24f5}-\u{24fd}\u{24ff}\u{2776}-\u{277e}",
    r"\u{2780}-\u{2788}\u{278a}-\u{2792}\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}",
    r"\u{1f100}-\u{1f10a}]+\z"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(answer: &str) -> String {
        Normalizer::new().unwrap().normalize(answer)
    }

    #[test]
    fn forms_of_a_number_become_one() {
        for answer in
            ["1,000", "$1{,}000$", "x = 1000", "1000 dollars", r"\$1000", "a 1000", r"\text{1000 units}", "1 000"]
        {
            assert_eq!(normal(answer), "1000", "{answer}");
        }
        assert_eq!(normal("1,000.5"), "1,000.5");
        assert_eq!(normal("1,²"), "1²");
        assert_eq!(normal(",,"), ",,");
    }

    #[test]
    fn latex_loses_what_says_nothing() {
        assert_eq!(normal(r"The answer is $\frac12$."), r"\frac{1}{2}");
        assert_eq!(normal(r"\boxed{\textbf{7}}"), "7");
        assert_eq!(normal(r"\sqrt2^\circ"), r"\sqrt{2}");
        assert_eq!(normal(r"\overline{AB}"), "AB");
        assert_eq!(normal(r"x,\text{ and }y"), "x,y");
    }
}

//! Splits texts into sentences, clauses and their words.

use crate::scale::number;

/// Tokens of a clause that are read; no sentence has more.
const MOST_TOKENS: usize = 500;
/// Numbers in words that scales have.
const NUMBERS: [(&str, f64); 13] = [
    ("zero", 0.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twenty", 20.0),
    ("hundred", 100.0),
];

/// A word in lower case, a number, or a sign.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Number(f64),
}

impl Token {
    pub(crate) fn is_in(&self, words: &[&str]) -> bool {
        matches!(self, Self::Word(word) if words.contains(&word.as_str()))
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.is_in(&[word])
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(word) => NUMBERS.iter().find(|(name, _)| name == word).map(|(_, number)| *number),
        }
    }
}

/// The parts of a line between full stops, commas and the like.
pub(crate) fn clauses(line: &str) -> impl Iterator<Item = &str> {
    let is_within = |at: usize| line[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let ends = line.char_indices().filter(move |(at, c)| "!?;".contains(*c) || ".,".contains(*c) && !is_within(*at));
    let mut start = 0;
    let mut parts: Vec<&str> = Vec::new();
    for (at, _) in ends {
        parts.push(&line[start..at]);
        start = at + 1;
    }
    parts.push(&line[start..]);
    parts.into_iter().filter(|part| !part.is_empty())
}

/// The tokens of a clause. Dashes of any length are one sign, the bars of a table are colons, and Markdown's characters are
/// left out.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|_| found.len() < MOST_TOKENS) {
        if let Some((value, after)) = number(rest) {
            found.push(Token::Number(value));
            rest = after;
        } else if first.is_alphanumeric() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            found.push(Token::Word(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else {
            let sign = match first {
                '–' | '—' | '−' => '-',
                '|' => ':',
                other => other,
            };
            if "-()/:=%[]".contains(sign) {
                found.push(Token::Word(sign.to_string()));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    // `1-to-5`
    let is_to = |at: Option<usize>| at.and_then(|at| found.get(at)).is_some_and(|word: &Token| word.is("to"));
    let is_kept = |at: usize| !found[at].is("-") || !(is_to(at.checked_sub(1)) || is_to(Some(at + 1)));
    (0..found.len()).filter(|at| is_kept(*at)).map(|at| found[at].clone()).collect()
}

/// The sentences of a text. A line break ends one, too.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: usize, c: char| {
        "!?\n".contains(c) || c == '.' && text[at + 1..].chars().next().is_none_or(|next| !next.is_alphanumeric())
    };
    let ends = text.char_indices().filter(move |(at, c)| is_end(*at, *c)).map(|(at, _)| at + 1);
    let mut start = 0;
    let mut parts = Vec::new();
    for end in ends.chain([text.len()]) {
        parts.push(text[start..end].trim());
        start = end;
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

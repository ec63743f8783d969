//! Finds sub-scores that have maxima of their own and that the score is the sum of: `Accuracy (0-2): 2`, `Style: 1/2` and
//! `Score: 3`. Such a score is out of the sum of the maxima.

use crate::scale::ASKED;
use crate::tokens::{Token, tokens};

/// Words for the highest value of a sub-score.
const MAXIMUM: &[&str] = &["max", "maximum", "possible"];

/// A value and what it is out of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    value: f64,
    top: f64,
}

/// Whether a score is the sum of parts of these lines, and out of another sum than the one that is asked for.
pub(crate) fn are_summed<'a>(lines: impl Iterator<Item = &'a str> + Clone, score: f64) -> bool {
    let words: Vec<_> = lines.clone().map(tokens).collect();
    let parts: Vec<_> = words.iter().flat_map(|words| parts(words)).collect();
    let is_total = words.iter().any(|words| total(words).is_some_and(|total| is_other(&[total], score)));
    let is_counted = words.iter().any(|words| gives_a_point_each(words));
    let is_sum = |parts: &[Part]| parts.len() > 1 && is_other(parts, score);
    is_total || is_counted || is_sum(&parts) || is_sum(&rows(lines))
}

/// Whether the parts add up to the score, and their maxima to another scale.
fn is_other(parts: &[Part], score: f64) -> bool {
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    let top: f64 = parts.iter().map(|part| part.top).sum();
    (sum - score).abs() < 1e-9 && (top - ASKED).abs() > 1e-9
}

/// The parts of a line, each below the scale that is asked for.
fn parts(words: &[Token]) -> impl Iterator<Item = Part> + '_ {
    let read = |at: usize| {
        let rest = &words[at..];
        match rest {
            [value, slash, top, ..] if slash.is("/") => Some((value, top)),
            [value, out, of, top, ..] if out.is("out") && of.is("of") => Some((value, top)),
            [value, open, of, top, close, ..] if open.is("(") && of.is("of") && close.is(")") => Some((value, top)),
            [value, open, max, top, close, ..] if is_open(open) && max.is_in(MAXIMUM) && is_close(close) => {
                Some((value, top))
            }
            [open, low, to, top, close, colon, value, ..]
                if is_open(open) && low.number() == Some(0.0) && to.is("-") && is_close(close) && colon.is(":") =>
            {
                Some((value, top))
            }
            [open, max, top, close, colon, value, ..]
                if is_open(open) && max.is_in(MAXIMUM) && is_close(close) && colon.is(":") =>
            {
                Some((value, top))
            }
            _ => None,
        }
    };
    let find = move |at| {
        let (value, top) = read(at)?;
        Some(Part { value: value.number()?, top: top.number()? })
    };
    (0..words.len()).filter_map(find).filter(|part| part.value <= part.top && part.top < ASKED)
}

fn is_open(word: &Token) -> bool {
    word.is_in(&["(", "["])
}

fn is_close(word: &Token) -> bool {
    word.is_in(&[")", "]"])
}

/// The total of a line: `Total 2 of 3`.
fn total(words: &[Token]) -> Option<Part> {
    let at = words.iter().position(|word| word.is("total"))? + 1;
    let at = at + words[at..].iter().take_while(|word| word.is_in(&[":", "=", "is", "points", "score"])).count();
    let value = words.get(at)?.number()?;
    let of = words[at + 1..].iter().take_while(|word| word.is_in(&["/", "of", "out"])).count();
    let top = words.get(at + 1 + of).filter(|_| of > 0)?.number()?;
    Some(Part { value, top })
}

/// Whether a line says that each thing that is right gives a point: `one point per criterion`.
fn gives_a_point_each(words: &[Token]) -> bool {
    words.windows(3).any(|three| {
        three[0].number() == Some(1.0)
            && three[1].is_in(&["mark", "point"])
            && (three[2].is_in(&["each", "per"]) || three[2].is("for") && words.iter().any(|word| word.is("each")))
    })
}

/// The rows of a table that has a column of maxima, without a row of totals.
fn rows<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Part> {
    let mut rows = Vec::new();
    let mut column = None;
    for line in lines {
        let Some(cells) = line.strip_prefix('|').map(|line| line.split('|').map(tokens).collect::<Vec<_>>()) else {
            column = None;
            continue;
        };
        let is_maximum = |cell: &Vec<Token>| cell.iter().any(|word| word.is_in(MAXIMUM));
        match column {
            None => column = cells.iter().position(is_maximum),
            Some(at) if !cells.iter().flatten().any(|word| word.is("total")) => {
                let number = |cell: &Vec<Token>| cell.first().filter(|_| cell.len() == 1).and_then(Token::number);
                let mut others = cells.iter().enumerate().filter(|(other, _)| *other != at);
                let value = others.find_map(|(_, cell)| number(cell));
                let top = cells.get(at).and_then(number);
                rows.extend(value.zip(top).map(|(value, top)| Part { value, top }));
            }
            Some(_) => {}
        }
    }
    rows
}

//! Finds the places where a response states its answer.

use crate::letters::{Letter, Letters, Said, class};
use crate::patterns::{CORRECTION, DOUBT, HEADING, HENCE, LABEL, OTHER, TAKEN};
use answer_rules::{balanced, elements};
use regex::Regex;
use std::cell::LazyCell;

/// How many bytes a box may have. Without a limit, a response of boxes that
/// never close would be read once for each box.
const LONGEST_BOX: usize = 1000;

/// The names of elements that hold an answer.
const ELEMENTS: [&str; 4] = ["answer", "Answer", "ANSWER", "final_answer"];

/// How many bytes before a statement are read.
const BEFORE: usize = 60;

/// A place where a response may state its answer.
struct Place {
    /// The byte where the answer begins.
    at: usize,
    form: Form,
}

/// How a response states its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// "Answer: B", "the answer is B"; `denies` where the answer "isn't B".
    Label {
        start: usize,
        denies: bool,
    },
    /// A heading, and the answer apart from it.
    Heading,
    /// "Answer B" is an answer, "Answer A: …" is about one.
    Beside,
    Box,
    Element {
        end: usize,
    },
    /// "Wait, actually C."
    Correction,
}

/// Finds statements.
pub struct Statements {
    label: Regex,
    heading: Regex,
    doubt: Regex,
    other: Regex,
    correction: Regex,
    taken: Regex,
    hence: Regex,
    subject: Regex,
    end: Regex,
    choice_line: Regex,
    option: Regex,
}

impl Statements {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let class = class(choices);
        Ok(Self {
            label: Regex::new(LABEL)?,
            heading: Regex::new(HEADING)?,
            doubt: Regex::new(DOUBT)?,
            other: Regex::new(OTHER)?,
            correction: Regex::new(CORRECTION)?,
            taken: Regex::new(TAKEN)?,
            hence: Regex::new(HENCE)?,
            // "Option (B) is correct", "So B must be the right answer".
            subject: Regex::new(&format!(
                r#"(?x) (?: \A | [.!?:;,—\n]\s* | (?i:\b(?:so|therefore|thus|hence|that|and|but|only|think|believe|option|choice|answer)\s+) )
                    [(\[*"'_]* (?P<letter>{class}) [)\]*"'_]*
                    (?i: \s+(?:is|must\s+be|would\s+be|should\s+be|seems|appears\s+to\s+be)\s+ (?:\w+ly\s+)? (?:the\s+)? (?:only\s+|most\s+|single\s+)?
                        (?:correct|right|best|appropriate|likely|suitable|accurate|answer|valid)\b )"#
            ))?,
            end: Regex::new(r"\A\s*(?:it\s+is\b|[.!](?:\s*\z|\s+[^\p{Ll}])|\n|\z)")?,
            option: Regex::new(r"\A(?:[.:!]|\s+[-–—]\s|,?\s+(?:because|since)\b|\s*\z)")?,
            choice_line: Regex::new(&format!(
                r"\A[\s*_>#(\[$]*{class}(?:[*_.!):\]}}$].*|\s+[-–—]\s.*|,?\s+(?:because|since)\b.*)?\z"
            ))?,
        })
    }

    /// The choices that the response states expressly: the last of "Answer: …",
    /// "the answer is …", a box, an element, and the corrections of these.
    pub fn express(&self, response: &str, letters: &Letters) -> Vec<char> {
        let places = self.places(response);
        let read = |place: &&Place| self.read(place, response, letters);
        let first = LazyCell::new(|| {
            let stated = places.iter().filter(|place| place.form != Form::Correction);
            stated.map(|place| (place.at, read(&place))).find(|(_, said)| *said != Said::Nothing).map(|(at, _)| at)
        });
        let mut denied = Vec::new();
        // From the last, so that a response of many statements is not read whole.
        for place in places.iter().rev() {
            match read(&place) {
                Said::Choices(named) if place.form != Form::Correction || first.is_some_and(|at| at < place.at) => {
                    // "The answer is A. No, it is not A."
                    return if denied.contains(&named) { Vec::new() } else { named };
                }
                Said::Not(choices) => denied.push(choices),
                Said::Choices(_) | Said::Nothing => {}
            }
        }
        Vec::new()
    }

    /// Where a response may state its answer, in order.
    fn places(&self, response: &str) -> Vec<Place> {
        let labels = self.label.captures_iter(response).filter_map(|found| {
            let whole = found.get(0)?;
            let form = Form::Label { start: whole.start(), denies: found.name("not").is_some() };
            Some(Place { at: whole.end(), form })
        });
        let headings = self.heading.captures_iter(response).filter_map(|found| {
            let form = if found.name("apart").is_some() { Form::Heading } else { Form::Beside };
            Some(Place { at: found.get(0)?.end(), form })
        });
        let boxes = response.match_indices(r"\boxed{").map(|(at, _)| Place { at, form: Form::Box });
        let elements = ELEMENTS.into_iter().flat_map(|name| elements(response, name));
        let elements = elements.map(|(at, text)| Place { at, form: Form::Element { end: at + text.len() } });
        let corrections = self.correction.find_iter(response);
        let corrections = corrections.map(|found| Place { at: found.end(), form: Form::Correction });
        let mut places: Vec<Place> = labels.chain(headings).chain(boxes).chain(elements).chain(corrections).collect();
        places.sort_by_key(|place| place.at);
        places
    }

    fn read(&self, place: &Place, response: &str, letters: &Letters) -> Said {
        let rest = &response[place.at..];
        match place.form {
            Form::Label { start, denies } => {
                let before = before(response, start);
                match denies {
                    _ if self.doubt.is_match(before) || self.other.is_match(before) => Said::Nothing,
                    true => letters.denied(rest),
                    false => letters.read(rest),
                }
            }
            Form::Heading => letters.read(rest),
            Form::Beside => letters.letter(rest).map_or(Said::Nothing, |letter| {
                let rest = letter.rest.trim_start_matches([' ', '\t', '.', '\r']);
                let alone = rest.is_empty() || rest.starts_with('\n');
                if alone { Said::Choices(vec![letter.choice]) } else { Said::Nothing }
            }),
            Form::Box => balanced(&rest[..rest.floor_char_boundary(LONGEST_BOX)])
                .map_or(Said::Nothing, |inside| letters.read(inside)),
            Form::Element { end } => letters.read(&response[place.at..end]),
            Form::Correction => self.ending(rest, letters).map_or(Said::Nothing, |choice| Said::Choices(vec![choice])),
        }
    }

    /// What the response says in other words: "I choose B", "option B is
    /// correct", "So B.", or a line that holds only a choice.
    pub fn implied(&self, response: &str, letters: &Letters) -> Vec<char> {
        let taken = self.taken.find_iter(response).map(|found| letters.read(&response[found.end()..]));
        let subjects = self.subject.captures_iter(response).filter_map(|found| {
            let (whole, letter) = (found.get(0)?, found.name("letter")?);
            let said = Said::Choices(letter.as_str().chars().collect());
            (!self.doubt.is_match(before(response, whole.start()))).then_some(said)
        });
        let hence = self.hence.find_iter(response).filter_map(|found| self.ending(&response[found.end()..], letters));
        let said = taken.chain(subjects).chain(self.line(response, letters));
        let named = said.flat_map(|said| if let Said::Choices(choices) = said { choices } else { Vec::new() });
        named.chain(hence).collect()
    }

    /// The choice that `text` begins with, if it ends its sentence.
    fn ending(&self, text: &str, letters: &Letters) -> Option<char> {
        letters.letter(text).filter(|letter| self.end.is_match(letter.rest)).map(|letter| letter.choice)
    }

    /// The first or last line, where it holds only a choice and the lines are
    /// not the options again.
    fn line(&self, response: &str, letters: &Letters) -> Option<Said> {
        let lines: Vec<&str> =
            response.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains(r"\boxed")).collect();
        if let [line] = lines[..]
            && let (named, "") = letters.list(line)
            && named.len() > 1
        {
            return Some(Said::Choices(named));
        }
        let choice = |line: &&str| {
            let alone = lines.len() == 1 || self.choice_line.is_match(line);
            letters.dressed(line).filter(|letter| alone && self.only(letter, letters)).map(|letter| letter.choice)
        };
        let mut named: Vec<char> = lines.iter().filter_map(choice).collect();
        named.dedup();
        let [named] = named[..] else { return None };
        let ends = [lines.first(), lines.last()];
        ends.into_iter().flatten().any(|line| choice(line) == Some(named)).then(|| Said::Choices(vec![named]))
    }

    /// Whether a line holds only a letter, or a letter and its option.
    fn only(&self, letter: &Letter, letters: &Letters) -> bool {
        letter.enclosed && !letters.is_subject(letter.rest) || self.option.is_match(letter.rest)
    }
}

/// The text before `at`, as far as it is read.
fn before(response: &str, at: usize) -> &str {
    &response[response.floor_char_boundary(at.saturating_sub(BEFORE))..at]
}

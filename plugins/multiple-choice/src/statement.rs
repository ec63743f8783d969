//! Finds the places where a response states its answer.

use crate::letters::{Letter, Letters, Said, class};
use crate::patterns::{CALLED, CORRECTION, HEADING, HENCE, LABEL, TAKEN};
use crate::stance::{Stance, Stances};
use answer_rules::{balanced, elements};
use regex::Regex;
use std::cell::LazyCell;

/// How many bytes a box may have. Without a limit, a response of boxes that
/// never close would be read once for each box.
const LONGEST_BOX: usize = 1000;

/// The names of elements that hold an answer.
const ELEMENTS: [&str; 4] = ["answer", "Answer", "ANSWER", "final_answer"];

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
    Correction {
        start: usize,
    },
}

impl Place {
    fn corrects(&self) -> bool {
        matches!(self.form, Form::Correction { .. })
    }
}

/// The choices that a response states.
#[derive(Default)]
pub struct Stated {
    pub named: Vec<char>,
    /// The choices that it states on a condition, or as a first impression.
    pub conditional: Vec<char>,
}

impl Stated {
    fn add(&mut self, choices: impl IntoIterator<Item = char>, stance: Stance) {
        match stance {
            Stance::Stated => self.named.extend(choices),
            Stance::Conditional => self.conditional.extend(choices),
            Stance::Disowned => {}
        }
    }
}

/// Finds statements.
pub struct Statements {
    stances: Stances,
    label: Regex,
    heading: Regex,
    correction: Regex,
    taken: Regex,
    hence: Regex,
    subject: Regex,
    called: Regex,
    end: Regex,
    choice_line: Regex,
    option: Regex,
}

impl Statements {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let class = class(choices);
        Ok(Self {
            stances: Stances::new()?,
            label: Regex::new(LABEL)?,
            heading: Regex::new(HEADING)?,
            correction: Regex::new(CORRECTION)?,
            taken: Regex::new(TAKEN)?,
            hence: Regex::new(HENCE)?,
            // "Option (B) is correct", "So B must be the right answer".
            subject: Regex::new(&format!(
                r#"(?x) (?: \A | [.!?:;,—\n]\s* | (?i:\b(?:so|therefore|thus|hence|clearly|that|and|but|only|think|believe|option|choice|answer)\s+) )
                    [(\[*"'_]* (?P<letter>{class}) [)\]*"'_]* {CALLED}"#
            ))?,
            called: Regex::new(&format!(r"(?x) \A {CALLED}"))?,
            end: Regex::new(r"\A\s*(?:it\s+is\b|[.!](?:\s*\z|\s+[^\p{Ll}])|\n|\z)")?,
            option: Regex::new(r"\A(?:[.:!]|\s+[-–—]\s|,?\s+(?:because|since)\b|\s*\z)")?,
            choice_line: Regex::new(&format!(
                r"\A[\s*_>#(\[$]*{class}(?:[*_.!):\]}}$].*|\s+[-–—]\s.*|,?\s+(?:because|since)\b.*)?\z"
            ))?,
        })
    }

    /// The choices that the response states expressly: the last of "Answer: …",
    /// "the answer is …", a box, an element, and the corrections of these.
    pub fn express(&self, response: &str, letters: &Letters) -> Stated {
        let places = self.places(response);
        let read = |place: &Place| self.read(place, response, letters);
        let first = LazyCell::new(|| {
            let stated = places.iter().filter(|place| !place.corrects());
            stated.map(|place| (place.at, read(place))).find(|(_, said)| said.0 != Said::Nothing).map(|(at, _)| at)
        });
        let (mut denied, mut conditional) = (Vec::new(), Vec::new());
        // From the last, so that a response of many statements is not read whole.
        for place in places.iter().rev() {
            match read(place) {
                (Said::Choices(named), Stance::Conditional) => conditional.extend(named),
                (Said::Choices(named), _) if !place.corrects() || first.is_some_and(|at| at < place.at) => {
                    // "The answer is A. No, it is not A."
                    let named = if denied.contains(&named) { Vec::new() } else { named };
                    return Stated { named, conditional };
                }
                (Said::Not(choices), _) => denied.push(choices),
                (Said::Choices(_) | Said::Nothing, _) => {}
            }
        }
        conditional.reverse();
        Stated { named: Vec::new(), conditional }
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
        let corrections =
            corrections.map(|found| Place { at: found.end(), form: Form::Correction { start: found.start() } });
        let mut places: Vec<Place> = labels.chain(headings).chain(boxes).chain(elements).chain(corrections).collect();
        places.sort_by_key(|place| place.at);
        places
    }

    /// What a place says, and how the writer stands to it.
    fn read(&self, place: &Place, response: &str, letters: &Letters) -> (Said, Stance) {
        let rest = &response[place.at..];
        let said = match place.form {
            Form::Label { start, denies } => {
                let stance = self.stances.of(response, start, &response[start..place.at], letters.after_list(rest));
                let said = match stance {
                    Stance::Disowned => Said::Nothing,
                    _ if denies => letters.denied(rest),
                    _ => letters.read(rest),
                };
                return (said, stance);
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
            Form::Correction { start } => self.correction(response, start, rest, letters),
        };
        (said, Stance::Stated)
    }

    /// The choice of "Wait, actually C." or "No, C is correct."
    fn correction(&self, response: &str, start: usize, rest: &str, letters: &Letters) -> Said {
        let letter = letters.letter(rest).filter(|letter| {
            let called = self.called.find(letter.rest).map(|called| &letter.rest[called.end()..]);
            let called = called.is_some_and(|rest| self.stances.of(response, start, "", rest) == Stance::Stated);
            called || self.end.is_match(letter.rest)
        });
        match letter {
            Some(letter) if !self.stances.is_disowned(response, start) => Said::Choices(vec![letter.choice]),
            _ => Said::Nothing,
        }
    }

    /// What the response says in other words: "I choose B", "option B is
    /// correct", "So B.", or a line that holds only a choice.
    pub fn implied(&self, response: &str, letters: &Letters) -> Stated {
        let mut stated = Stated::default();
        for found in self.taken.find_iter(response) {
            let rest = &response[found.end()..];
            if let Said::Choices(choices) = letters.read(rest) {
                let stance = self.stances.of(response, found.start(), found.as_str(), letters.after_list(rest));
                stated.add(choices, stance);
            }
        }
        for found in self.subject.captures_iter(response) {
            let (Some(whole), Some(letter)) = (found.get(0), found.name("letter")) else { continue };
            let words = &response[letter.end()..whole.end()];
            // "D (both A and B) is correct".
            let opened = response[whole.start()..letter.start()].contains(['(', '[']);
            if !opened && words.starts_with([')', ']']) {
                continue;
            }
            let stance = self.stances.of(response, letter.start(), words, &response[whole.end()..]);
            stated.add(letter.as_str().chars(), stance);
        }
        stated.add(self.line(response, letters), Stance::Stated);
        for found in self.hence.find_iter(response) {
            if let Some(choice) = self.ending(&response[found.end()..], letters) {
                stated.add([choice], self.stances.of(response, found.end(), found.as_str(), ""));
            }
        }
        stated
    }

    /// The choice that `text` begins with, if it ends its sentence.
    fn ending(&self, text: &str, letters: &Letters) -> Option<char> {
        letters.letter(text).filter(|letter| self.end.is_match(letter.rest)).map(|letter| letter.choice)
    }

    /// The first or last line, where it holds only a choice and the lines are
    /// not the options again.
    fn line(&self, response: &str, letters: &Letters) -> Vec<char> {
        let lines: Vec<&str> =
            response.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains(r"\boxed")).collect();
        if let [line] = lines[..]
            && let (named, "") = letters.list(line)
            && named.len() > 1
        {
            return named;
        }
        if let [line] = lines[..]
            && !self.label.is_match(line)
            && let named = letters.at_end(line)
            && !named.is_empty()
        {
            return named;
        }
        let choice = |line: &&str| {
            let alone = lines.len() == 1 || self.choice_line.is_match(line);
            letters.dressed(line).filter(|letter| alone && self.only(letter, letters)).map(|letter| letter.choice)
        };
        let mut named: Vec<char> = lines.iter().filter_map(choice).collect();
        named.dedup();
        let [named] = named[..] else { return Vec::new() };
        let ends = [lines.first(), lines.last()];
        if ends.into_iter().flatten().any(|line| choice(line) == Some(named)) { vec![named] } else { Vec::new() }
    }

    /// Whether a line holds only a letter, or a letter and its option.
    fn only(&self, letter: &Letter, letters: &Letters) -> bool {
        letter.enclosed && !letters.is_subject(letter.rest) || self.option.is_match(letter.rest)
    }
}

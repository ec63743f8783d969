//! Finds the places where a response states its answer.

use crate::change::{Change, Changes, Later};
use crate::letters::{Letter, Letters, Said, class};
use crate::patterns::compile;
use crate::patterns::{CALLED, HEADING, HENCE, TAKEN, correction, label};
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
        foreign: bool,
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

/// A statement in other words.
struct Implied {
    /// The byte where its choice begins.
    at: usize,
    choices: Vec<char>,
    stance: Stance,
    form: Words,
}

/// The words of such a statement.
#[derive(PartialEq, Eq)]
enum Words {
    /// "I choose B", "So B."
    Concluded,
    /// "B is correct."
    Called,
    /// "This matches option B", "we get B".
    Matched,
}

/// The choices that a response states.
#[derive(Default)]
pub struct Stated {
    pub named: Vec<char>,
    /// The choices that it states on a condition, or as a first impression.
    pub conditional: Vec<char>,
    /// Whether it takes back the choice that it stated.
    pub withdrawn: bool,
    /// The choices that it calls right, and does not conclude.
    pub called: Vec<char>,
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
    pub stances: Stances,
    changes: Changes,
    label: Regex,
    heading: Regex,
    correction: Regex,
    taken: Regex,
    writer: Regex,
    found: Regex,
    another: Regex,
    concluded: Regex,
    hence: Regex,
    subject: Regex,
    called: Regex,
    end: Regex,
    choice_line: Regex,
    about_options: Regex,
    option: Regex,
}

impl Statements {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let class = class(choices);
        Ok(Self {
            stances: Stances::new()?,
            changes: Changes::new(choices)?,
            label: compile(&label())?,
            heading: compile(HEADING)?,
            correction: compile(&correction())?,
            taken: compile(TAKEN)?,
            concluded: compile(r"(?i)\b(?:answer|it\s+(?:is|must|has)|(?:right|correct)\s+(?:one|choice|option))\b")?,
            found: compile(r"(?i)\A(?:i|we)\s")?,
            // "C is the answer to the next one."
            another: compile(r"\A\s+(?:for|to|in|under|at|when|only)\b")?,
            writer: compile(r"(?i)\A\W*(?:i|we|let|going)\b")?,
            hence: compile(HENCE)?,
            // "Option (B) is correct", "So B must be the right answer".
            subject: compile(&format!(
                r#"(?x) (?: \A | [.!?:;,—\n]\s* | (?i:\b(?:so|therefore|thus|hence|clearly|that|and|but|only|think|believe|option|choice|answer)\s+) )
                    [(\[*"'_]* (?P<letter>{class}) [)\]*"'_]* {CALLED}"#
            ))?,
            called: compile(&format!(r"(?x) \A {CALLED}"))?,
            end: compile(
                r"\A\s*(?:です|だ|입니다|이다)?\s*(?:it\s+is\b|instead\b|[.!](?:\s*\z|\s+[^\p{Ll}])|[。！]|\)|,?\s+(?:since|because)\b|\n|\z)",
            )?,
            option: compile(r"\A(?:[.:!]|\s+[-–—]\s|,?\s+(?:because|since)\b|\s*\z)")?,
            about_options: compile(r"(?i)\b(?:this|first|second|third|fourth|last)\s+(?:option|choice)\b")?,
            choice_line: compile(&format!(
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
                    let named = if denied.contains(&named) {
                        Vec::new()
                    } else {
                        self.changed(named, place, response, letters)
                    };
                    let withdrawn = named.is_empty();
                    return Stated { named, conditional, withdrawn, ..Stated::default() };
                }
                (Said::Not(choices), _) => denied.push(choices),
                (Said::Choices(_) | Said::Nothing, _) => {}
            }
        }
        conditional.reverse();
        Stated { conditional, ..Stated::default() }
    }

    /// Where a response may state its answer, in order.
    fn places(&self, response: &str) -> Vec<Place> {
        let labels = self.label.captures_iter(response).filter_map(|found| {
            let whole = found.get(0)?;
            let form = Form::Label {
                start: whole.start(),
                denies: found.name("not").or(found.name("no")).is_some(),
                foreign: found.name("foreign").is_some(),
            };
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

    /// Whether a text has a label, such as "the answer is".
    pub fn is_labelled(&self, text: &str) -> bool {
        self.label.is_match(text)
    }

    /// What a place says, and how the writer stands to it.
    fn read(&self, place: &Place, response: &str, letters: &Letters) -> (Said, Stance) {
        let rest = &response[place.at..];
        if matches!(place.form, Form::Box | Form::Element { .. }) && self.stances.is_form(response, place.at) {
            return (Said::Nothing, Stance::Disowned);
        }
        let said = match place.form {
            Form::Label { start, denies, foreign } => {
                let (words, after) = (&response[start..place.at], letters.after_list(rest));
                let stance = match foreign {
                    true => self.stances.of(response, start, words, after),
                    false => self.stances.of_label(response, start, words, after),
                };
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

    /// What a place states in the end: the text after it may change it.
    fn changed(&self, named: Vec<char>, place: &Place, response: &str, letters: &Letters) -> Vec<char> {
        let rest = &response[place.at..];
        let length = match place.form {
            Form::Element { end } => end - place.at,
            Form::Box => balanced(&rest[..rest.floor_char_boundary(LONGEST_BOX)]).map_or(0, |inside| inside.len() + 2),
            _ => rest.len() - letters.past_list(rest).len(),
        };
        let text = &rest[length.min(rest.len())..];
        let later = self.in_other_words(text, letters).into_iter().filter(|implied| implied.stance == Stance::Stated);
        let later = later.filter_map(|implied| {
            let [choice] = implied.choices[..] else { return None };
            Some(Later { at: implied.at, choice, explains: implied.form != Words::Concluded })
        });
        match self.changes.of(&named, text, later.collect(), letters) {
            Change::None => named,
            Change::To(choices) => choices,
            Change::Withdrawn => Vec::new(),
        }
    }

    /// What the response says in other words: "I choose B", "option B is
    /// correct", "So B.", or a line that holds only a choice.
    pub fn implied(&self, response: &str, letters: &Letters) -> Stated {
        let mut stated = Stated::default();
        stated.add(self.line(response, letters), Stance::Stated);
        for implied in self.in_other_words(response, letters) {
            if implied.form == Words::Called && implied.stance == Stance::Stated {
                stated.called.extend(&implied.choices);
            }
            stated.add(implied.choices, implied.stance);
        }
        stated
    }

    /// The choices that are taken, called right or concluded.
    fn in_other_words(&self, response: &str, letters: &Letters) -> Vec<Implied> {
        let mut implied = Vec::new();
        for found in self.taken.find_iter(response) {
            let rest = &response[found.end()..];
            if let Said::Choices(choices) = letters.read(rest) {
                let stance = self.stances.of(response, found.start(), found.as_str(), letters.after_list(rest));
                let writer = self.writer.is_match(found.as_str());
                let form = if writer { Words::Concluded } else { Words::Matched };
                implied.push(Implied { at: found.end(), choices, stance, form });
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
            let choices = letter.as_str().chars().collect();
            let rest = &response[whole.end()..];
            let answers = self.concluded.is_match(words) && !self.another.is_match(rest);
            let form = if answers { Words::Concluded } else { Words::Called };
            implied.push(Implied { at: letter.start(), choices, stance, form });
        }
        for found in self.hence.find_iter(response) {
            if let Some(choice) = self.ending(&response[found.end()..], letters) {
                let stance = self.stances.of(response, found.end(), found.as_str(), "");
                let form = if self.found.is_match(found.as_str()) { Words::Matched } else { Words::Concluded };
                implied.push(Implied { at: found.end(), choices: vec![choice], stance, form });
            }
        }
        implied
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
            if self.about_options.is_match(line) {
                return None;
            }
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

//! Finds the places where a response states its answer.

use crate::letters::{Letter, Letters, Said, class};
use crate::patterns::{CORRECTION, DOUBT, HEADING, HENCE, LABEL, OTHER, TAKEN};
use answer_rules::{balanced, elements};
use regex::Regex;

/// How many bytes a box may have. Without a limit, a response of boxes that
/// never close would be read once for each box.
const LONGEST_BOX: usize = 1000;

/// The names of elements that hold an answer.
const ELEMENTS: [&str; 4] = ["answer", "Answer", "ANSWER", "final_answer"];

/// How many bytes before a statement are read.
const BEFORE: usize = 60;

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

    /// What the response says expressly, in order: "Answer: …", "the answer is
    /// …", a box, an element, and the corrections of these.
    pub fn express(&self, response: &str, letters: &Letters) -> Vec<Said> {
        let labels = self.label.captures_iter(response).filter_map(|found| {
            let whole = found.get(0)?;
            let rest = &response[whole.end()..];
            let denies = found.name("not").is_some();
            let said = if denies { letters.denied(rest) } else { letters.read(rest) };
            let before = before(response, whole.start());
            let own = !self.doubt.is_match(before) && !self.other.is_match(before);
            own.then_some((whole.end(), said))
        });
        let headings = self.heading.captures_iter(response).filter_map(|found| {
            let at = found.get(0)?.end();
            if found.name("apart").is_some() {
                return Some((at, letters.read(&response[at..])));
            }
            // "Answer A: …" is about an answer, "Answer B" is one.
            let letter = letters.letter(&response[at..])?;
            let alone = letter.rest.trim_start_matches([' ', '\t', '.', '\r']);
            (alone.is_empty() || alone.starts_with('\n')).then(|| (at, Said::Choices(vec![letter.choice])))
        });
        let boxes = response.match_indices(r"\boxed{").filter_map(|(at, _)| {
            let end = response.floor_char_boundary(at + LONGEST_BOX);
            Some((at, letters.read(balanced(&response[at..end])?)))
        });
        let elements = ELEMENTS.into_iter().flat_map(|name| elements(response, name));
        let elements = elements.map(|(at, text)| (at, letters.read(text)));
        let mut found: Vec<(usize, Said)> = labels.chain(headings).chain(boxes).chain(elements).collect();
        found.retain(|(_, said)| *said != Said::Nothing);
        if let Some(first) = found.iter().map(|(at, _)| *at).min() {
            let corrections = self.ending(&self.correction, response, letters);
            found.extend(corrections.filter(|(at, _)| *at > first));
        }
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, said)| said).collect()
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
        let hence = self.ending(&self.hence, response, letters).map(|(_, said)| said);
        let said = taken.chain(subjects).chain(hence).chain(self.line(response, letters));
        said.flat_map(|said| if let Said::Choices(choices) = said { choices } else { Vec::new() }).collect()
    }

    /// The choices that stand after `lead` and end their sentence.
    fn ending<'a>(
        &'a self,
        lead: &'a Regex,
        response: &'a str,
        letters: &'a Letters,
    ) -> impl Iterator<Item = (usize, Said)> + 'a {
        lead.find_iter(response).filter_map(|found| {
            let Letter { choice, rest, .. } = letters.letter(&response[found.end()..])?;
            self.end.is_match(rest).then(|| (found.end(), Said::Choices(vec![choice])))
        })
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

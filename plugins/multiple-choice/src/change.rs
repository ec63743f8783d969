//! What becomes of a stated choice in the text after it.

use crate::letters::{Letters, class};
use crate::patterns::compile;
use regex::Regex;

/// What follows a stated choice.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that takes it back.
    None,
    /// The writer states these instead.
    To(Vec<char>),
    /// The writer takes it back.
    Withdrawn,
}

/// A statement in other words, after a stated choice.
pub struct Later {
    /// The byte where it begins.
    pub at: usize,
    pub choice: char,
    /// Whether it can be part of an explanation: "C is correct.", "C does.".
    pub explains: bool,
}

/// Finds changes.
pub struct Changes {
    /// "Update: C", "I change my answer to C".
    announced: Regex,
    /// Directly after the stated choice: "→ C".
    beside: Regex,
    /// "C does.", "C then."
    brief: Regex,
    /// A line that is only a choice.
    line: Regex,
    /// A word that makes another choice a correction.
    doubt: Regex,
    /// A word that makes even "C does." a correction.
    mistake: Regex,
    /// The stated choice is taken back.
    withdrawal: Regex,
    condition: Regex,
    /// It is kept after all.
    confirmed: Regex,
}

impl Changes {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let letter = format!(
            r#"(?:(?i:the\s+)?(?i:option|choice|answer|letter)\s+)?[\s*_(\["'“]*(?P<letter>{})[*_)\]"'”]*"#,
            class(choices)
        );
        let end = r"(?: \s* (?: [!\n,;] | \.(?:\s|\z|\)) | [)\]] | \z ) | \s+(?:because|since|instead|as|now)\b )";
        Ok(Self {
            // "Update: C", "Edit: after rereading, C", "I change it to C".
            announced: compile(&format!(
                r"(?x) (?: (?i: \b(?:update|updated|revise|revised|revision|edit|edited|corrected|correction|amended|new|changed) (?:\s+(?:answer|choice|option|guess|to|is))* ) \s* [:：–—-] \s* (?:[^.,;:\n]{{1,60}},\s*)?
                    | (?i: (?: \A\s* | [(.!?\n]\s* | \b(?:i|we|answer|choice|me|us|i['’](?:d|ll|m)|to)\s+(?:\w+\s+){{0,3}}? ) (?:chang|switch|revis|updat|correct|amend)(?:e|es|ed|ing)?
                        (?:\s+(?:that|this|it|my|the|our|answer|choice|option|final|selection|from|[a-z]))* \s+to ) \s+
                    | (?i: \(\s*(?:it\s+)?should\s+be ) \s+
                    | (?i: \b(?:but|however) ) \b [^.;:!?\n]{{0,80}} ,\s* )
                    {letter} {end}"
            ))?,
            // "A -> C".
            beside: compile(&format!(r"(?x) \A [\s*_)\]]* (?:->|→|⇒|=>|-->) \s* {letter} {end}"))?,
            // "C does.", "B then."
            brief: compile(&format!(
                r"(?x) (?: [.!?:—]\s+ | \n\s* | ,\s+(?:and|but)\s+ ) {letter} (?i: \s+ (?: does | is | it\s+is | fits | works | matches | then | seems\s+better | is\s+better ) | ,? \s+ (?:then|instead) ) \s* (?:[.!\n]|\z)"
            ))?,
            line: compile(&format!(r"(?xm) ^ [\ \t>\#]* {letter} [.!*_\ \t\r]* $"))?,
            doubt: compile(
                r"(?i)\b(?:wait|actually|hmm+|no|but|however|sorry|apologies|oh|oops|mistake|misread|misjudged|bad|strike|scratch|chang(?:e|es|ed|ing)|switch(?:ed|ing)?|revis(?:e|ed|ion)|updated?|edit(?:ed)?|correction|corrected|re-?check(?:ed|ing)?|re-?reading|reflection|rethink\w*|second\s+look|second\s+thought|reconsider\w*|take\s+that\s+back|failed|wrong|incorrect|not\s+right|doesn['’]t|isn['’]t|not|instead|should\s+be|error|double-?check\w*|verify)\b|->|→|⇒",
            )?,
            mistake: compile(
                r"(?i)\b(?:wait|actually|hmm+|sorry|apologies|oh|oops|correction|misread|my\s+(?:bad|mistake)|made\s+(?:a|an)\s+(?:mistake|error)|strike\s+that|scratch\s+that|re-?check(?:ed|ing)?|second\s+thought|reconsider\w*|take\s+that\s+back|(?:verification|check)\s+failed|(?:this|that|it)(?:['’]s|\s+is)\s+(?:wrong|incorrect|not\s+right|not\s+correct)|(?:this|that|it)\s+doesn['’]t)\b",
            )?,
            condition: compile(r"(?i)\b(?:if|when|unless)\b")?,
            withdrawal: compile(
                r"(?ix) (?: \A[\s.,;!)*_]* | [.!?…\n(—]\s* ) (?: (?:wait|actually|hmm+|oh|no|sorry|but|oops) [\s,.…!—–-]* (?:(?:but|no|wait|actually|sorry)[\s,.…!—–-]*)*
                        (?: (?:that|this|it)(?:['’]s|\s+is) (?:\s+\w+ly)? \s+ (?: not\s+(?:right|correct|true|it) | wrong | incorrect | a\s+mistake ) \b
                          | (?:that|this|it)\s+(?:isn['’]t|can['’]t\s+be|cannot\s+be)\s+(?:right|correct|true|it)\b
                          | none\s+of\s+(?:these|the|them|those)\b [^.,;\n]{0,30}? \s (?:are|is|work|works|fit|fits|match|matches)\b
                          | i\s+(?:was|am)\s+(?:wrong|mistaken) | i\s+made\s+(?:a\s+mistake|an\s+error) )
                    | i\s+(?:take|took)\s+(?:that|it|this)\s+back | (?:scratch|strike)\s+that | i\s+(?:withdraw|retract)\b )",
            )?,
            confirmed: compile(
                r"(?i)\b(?:yes|confirmed|indeed|(?:it|that|this)(?:['’]s|\s+is)\s+(?:\w+\s+)?(?:right|correct|fine)|still|stands?|keep|stick)\b",
            )?,
        })
    }

    /// What becomes of `stated` in `text`, which follows it; `implied` are the
    /// statements there in other words.
    pub fn of(&self, stated: &[char], text: &str, mut implied: Vec<Later>, letters: &Letters) -> Change {
        implied.extend(self.found(text, letters));
        implied.sort_by_key(|later| later.at);
        let mistake = self.mistake.find(text).map_or(text.len(), |found| found.end());
        let last = implied.iter().rev().find(|later| !later.explains || mistake <= later.at);
        let Some(last) = last else { return self.withdrawn(stated, text, letters) };
        if stated == [last.choice] {
            return Change::None;
        }
        // "A or B. B it is, then."
        let narrowed = stated.len() > 1 && stated.contains(&last.choice);
        if narrowed || self.doubt.is_match(&text[..last.at]) || self.beside.is_match(text) {
            return Change::To(vec![last.choice]);
        }
        Change::To(stated.iter().copied().chain([last.choice]).collect())
    }

    fn found(&self, text: &str, letters: &Letters) -> Vec<Later> {
        let mut found = Vec::new();
        let later = |captures: &regex::Captures, explains| {
            // "But if it is heated, C."
            if self.condition.is_match(captures.get(0)?.as_str()) {
                return None;
            }
            let letter = captures.name("letter")?;
            let choice = letters.choices().iter().copied().find(|choice| letter.as_str().starts_with(*choice))?;
            Some(Later { at: letter.start(), choice, explains })
        };
        found.extend(self.beside.captures(text).and_then(|captures| later(&captures, false)));
        found.extend(self.announced.captures_iter(text).filter_map(|captures| later(&captures, false)));
        found.extend(self.brief.captures_iter(text).filter_map(|captures| later(&captures, true)));
        // Lines of several choices are a list of the options.
        let lines: Vec<Later> = self.line.captures_iter(text).filter_map(|captures| later(&captures, false)).collect();
        if let [first, rest @ ..] = &lines[..]
            && rest.iter().all(|line| line.choice == first.choice)
        {
            found.extend(lines);
        }
        found
    }

    fn withdrawn(&self, stated: &[char], text: &str, letters: &Letters) -> Change {
        let Some(withdrawal) = self.withdrawal.find(text) else { return Change::None };
        let rest = &text[withdrawal.end()..];
        let again = rest.split(|letter: char| !letter.is_alphanumeric()).any(|word| {
            let mut letters_of_word = word.chars();
            let choice = letters_of_word.next().filter(|choice| letters.choices().contains(choice));
            choice.is_some_and(|choice| letters_of_word.next().is_none() && stated.contains(&choice))
        });
        if again || self.confirmed.is_match(rest) { Change::None } else { Change::Withdrawn }
    }
}

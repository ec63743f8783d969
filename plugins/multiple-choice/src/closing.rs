//! The choice that the last sentence of a response names.

use crate::letters::class;
use crate::patterns::compile;
use crate::statement::Statements;
use regex::{Captures, Regex};
use std::borrow::Cow;

/// How many bytes a last sentence may have.
const LONGEST: usize = 300;

/// How many bytes of a last line are searched for its last sentence.
const LONGEST_LINE: usize = 1000;

/// How a sentence names a letter.
enum Mention {
    /// Not as the choice: it is a word, or denied.
    Not,
    /// As a choice, perhaps as the answer.
    Passing,
    /// As the answer.
    Certain,
}

/// Reads last sentences.
pub struct Closing {
    aside: Regex,
    asked: Regex,
    option: Regex,
    named: Regex,
    marked: Regex,
    /// Before a letter that ends a sentence: it is the answer.
    led: Regex,
    /// Before a letter that is the subject of a sentence.
    begins: Regex,
    /// After such a letter: it is the answer.
    judged: Regex,
    ends: Regex,
    /// After a letter: the text of its option.
    numbered: Regex,
    /// Directly before a letter that is no choice: "not B", "vitamin C".
    denied: Regex,
    /// A denial anywhere in the clause of a letter.
    denial: Regex,
    subject: Regex,
    unsure: Regex,
    /// Others choose, or the writer only considers.
    other: Regex,
    item: Regex,
    refused: Regex,
}

impl Closing {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let class = class(choices);
        Ok(Self {
            // "Is it B? Yes."
            asked: compile(&format!(r"\b(?i:is|could|must)\b[^.?!\n]{{0,60}}\s({class})\?\s+(?i:yes)\b"))?,
            option: compile(&format!(r"\A\((?i:option|choice|answer)\s+{class}\)\z"))?,
            aside: compile(r"\([^()\n]{2,200}\)")?,
            named: compile(&format!(r"[A-Za-z0-9]?{class}\b"))?,
            // "(B)", "**B", "option B".
            marked: compile(r"(?:[(\[*_]|(?i:\b(?:option|choice|answer|letter)\s))\z")?,
            // "is B", "like B", "→ B", "so, B".
            led: compile(
                r"(?ix) (?: \A | [,;→⇒—–] | -> | => | (?: \b(?:output|result|verdict|conclusion|decision|selection|right|in\s+short|in\s+sum|summary) | \w\s+\w[^:]*\s\w+ | \A[\s*]*(?:question|problem|exercise|q)\s*\d{1,3} ) [\s*]* :
                    | \b(?:the|this|that|it|which|my|our|mine)\b [^,;]*? \b(?:is|be) | \b(?:my|our|this|that|which|it)\b [^,;]*? \b(?:gives?|yields?) | \b(?:looks?|seems?|sounds?|feels?)\s+like | \b(?:corresponds?|leads?|points?|amounts?|comes?\s+down|closest|refers?)\s+to | \b(?:go|going|stick|agrees?|consistent|concerned)\s+with | \b(?:vote|opt|settle)\s+for
                    | \b(?:described|expressed|completed|shown|represented|illustrated|supported|summari[sz]ed|captured|answered)\s+by | \b(?:towards?|remains|only|just|i\.e\.|so|then|thus|choose|pick|select|say|called|probably|possibly|perhaps|maybe|definitely|certainly|surely|clearly|obviously|likely) ) [\s*_]* \z",
            )?,
            begins: compile(
                r"\A[\s*_>#→⇒(\[]*(?:(?i:so|but|and|only|then|thus|hence|therefore|however|probably|maybe|among[^,]{1,40}|of[^,]{1,40}|between[^,]{1,40}|since[^,]{1,80}|because[^,]{1,80}|as[^,]{1,80})\b[\s,]*)?\z",
            )?,
            judged: compile(
                r"(?ix) \A [)\]*_]* (?: ,?\s+ (?:for\s+sure|of\s+course|then|i\s+(?:guess|think|believe|suppose)|it\s+is|definitely|obviously|certainly|probably|instead) [.!]* \z
                  | \s+ (?:\w+\s+){0,2}? (?: remains | fits | satisf(?:y|ies) | match(?:es)? | works | best | closest | correct | right | plausible | only\s+(?:option|one|choice|answer) | the\s+(?:best|only|odd|exception|one|closest|most|right|correct) | most | stands\s+out ) \b )",
            )?,
            ends: compile(r#"(?x) \A [)\]*_"'”]* (?: \s*[.!]*[)\]*_"'”]* \s* \z | \s+\(|\s[—–-]\s|: )"#)?,
            // "B. NO CHANGE"
            numbered: compile(r"\A[.)][*_]*\s+\S")?,
            denied: compile(
                r#"(?ix) \b(?:not|nor|than|of|except|vitamin|hepatitis|type|group|grade|level|section|part|figure|step|point|team|class|row|column|case|unlike | (?:language|group|letter|note|grade|mark|symbol|unit|variable|temperature)\b[^;]*?(?:\sis|,) ) [\s*_(\["']* \z"#,
            )?,
            denial: compile(
                r"(?ix) \b(?:not|no|none|neither|never|cannot|wrong|incorrect|except|unlike|without|excluded|eliminated|ruled\s+out)\b | n['’]t\b",
            )?,
            subject: compile(
                r"(?ix) \A [\s*_]* (?:(?:so|thus|therefore|hence|and)\s+)? the\s (?: statement|sentence|figure|word|item|one|option|exception|claim|graph | (?:wrong|incorrect|false|untrue|unrelated|impossible)\s+(?:statement|sentence|claim|word|item|figure|graph|spelling|order|pair) )
                    [^,;]*? \b(?:is|are) [\s*_(]* \z",
            )?,
            unsure: compile(
                r"(?ix) \b(?:if|unless|whether|would|could|might|may|suppose|assuming|had|either|or|can['’]t)\b | \?",
            )?,
            other: compile(
                r"(?ix) \b(?:some|many|most|others?|people|students?|somebody|someone|they|he|she|you|the\s+hint|professors?|teachers?)\b [^,;:]{0,40} \b(?:say|said|think|thought|believe|choose|chose|pick|answer|go|claim|guess|prefer|argue|suggest)\w* \b | \b(?:second|2nd|third|3rd|next)\s+(?:choice|best|question) | \b(?:let|define|denote|suppose|take|plan|provide|send|consider|analy[sz]e|check|examine|evaluate|look(?:ing)?\s+at|start\s+with|turn(?:ing)?\s+to|compare|explore|discuss|review)\b",
            )?,
            // "None of the options is 17. The closest is B."
            refused: compile(r"(?i)\bnone\s+of\s+the\s+(?:given\s+|listed\s+)?(?:options|choices|answers)\b")?,
            item: compile(&format!(r"\A[\s*_>#|-]*(?:(?i:option|choice|statement)\s+)?[(\[]?{class}[)\].:|][*_]*\s"))?,
        })
    }

    /// The choice of the last sentence, if it names just one.
    pub fn choice(&self, response: &str, statements: &Statements) -> Option<char> {
        let asked = self.asked.captures_iter(response).last();
        if let Some(letter) = asked.and_then(|found| found.get(1)) {
            return letter.as_str().chars().next();
        }
        let sentence = self.sentence(response, statements)?;
        let mut named = Vec::new();
        let mut certain = false;
        for found in self.named.find_iter(&sentence) {
            // "AB" is a word.
            let (letter, before) = (found.as_str(), &sentence[..found.start()]);
            let Some(choice) = letter.chars().next().filter(|_| letter.len() == 1) else { continue };
            match self.mention(choice, before, &sentence[found.end()..]) {
                Mention::Not => continue,
                Mention::Certain => certain = true,
                Mention::Passing => {}
            }
            if !named.contains(&choice) {
                named.push(choice);
            }
        }
        if let [choice] = named[..] { Some(choice).filter(|_| certain) } else { None }
    }

    /// The last sentence, if the writer states it, without its asides.
    fn sentence<'a>(&self, response: &'a str, statements: &Statements) -> Option<Cow<'a, str>> {
        let (sentence, whole_line) = last_sentence(response)?;
        let alone = sentence.chars().filter(|character| character.is_alphanumeric()).count() == 1;
        let item = whole_line && (alone || self.item.is_match(sentence));
        // What a label names is read as a label.
        if sentence.len() > LONGEST
            || item
            || self.refused.is_match(response)
            || statements.is_labelled(sentence.rsplit(", but ").next().unwrap_or(sentence))
        {
            return None;
        }
        let sentence = self.aside.replace_all(sentence, |aside: &Captures| {
            let aside = &aside[0];
            if self.option.is_match(aside) { aside.to_owned() } else { String::new() }
        });
        let stances = &statements.stances;
        let unsure = self.unsure.is_match(&sentence) && !stances.is_earnest(&sentence);
        let others = self.other.is_match(&sentence) || stances.is_disowned(&sentence, sentence.len());
        (!unsure && !others).then_some(sentence)
    }

    /// How a sentence names the letter between `before` and `after`.
    fn mention(&self, choice: char, before: &str, after: &str) -> Mention {
        if joined(before, after) || self.denied.is_match(before) {
            return Mention::Not;
        }
        let clause = before.rsplit([',', ';', ':']).next().unwrap_or(before);
        let begins = self.begins.is_match(before) || self.begins.is_match(clause);
        let numbered = !before.ends_with(['(', '[']) && self.numbered.is_match(after);
        let ends = numbered || self.ends.is_match(after);
        // "A" and "I" are also words.
        let word = matches!(choice, 'A' | 'I');
        let judged = self.judged.is_match(after) && (!word || begins && after.starts_with([' ', ',']));
        let apart = ends || judged || after.starts_with([',', ';']) || after.starts_with("** ");
        let marked = apart && self.marked.is_match(before);
        let led = ends && self.led.is_match(before) || judged && (begins || before.ends_with(" in "));
        let certain = marked || led;
        if !certain && word && self.word(after) || self.denies(clause, after) {
            return Mention::Not;
        }
        if certain { Mention::Certain } else { Mention::Passing }
    }

    /// Whether the clause before a letter, or what it says of the letter,
    /// denies it.
    fn denies(&self, clause: &str, after: &str) -> bool {
        let clause = clause.rsplit(" but ").next().unwrap_or(clause);
        let predicate = after.split([',', ';', ':', '.']).next().unwrap_or(after);
        let predicate = predicate.split(" since ").flat_map(|part| part.split(" because ")).next().unwrap_or(predicate);
        let remark = predicate.contains(['–', '—']) || after.trim_start().starts_with(['.', ')', ':']);
        // "The statement that is NOT true is B": the one that is asked for.
        let asked_for = self.subject.is_match(clause);
        !asked_for && self.denial.is_match(clause) || !remark && self.denial.is_match(predicate)
    }

    /// Whether a letter before `after` may be a word.
    fn word(&self, after: &str) -> bool {
        let and = after.starts_with(" and ") || after.starts_with(" or ") || after.starts_with(" to ");
        !and && after.starts_with(' ') && after[1..].starts_with(char::is_alphabetic)
    }
}

/// Whether a letter is part of a word, a formula or an amount.
fn joined(before: &str, after: &str) -> bool {
    let amount =
        before.trim_end_matches(' ').ends_with(|last: char| last.is_ascii_digit() || matches!(last, '°' | 'µ'));
    amount
        || before.ends_with(|last: char| {
            last.is_alphanumeric() || matches!(last, '|' | '\'' | '’' | '^' | '\\' | '=' | '+' | '/' | '.' | '-')
        })
        || before.trim_end().ends_with(['=', '+', '∪', '∩', '×'])
        || ["'", "’", "+", "#", "(", "^", "_", "/", "|", " =", " +", " ∪", " ∩", " ×", "-", " \\"]
            .iter()
            .any(|mark| after.starts_with(mark))
        || before.ends_with('(') && before.trim_end_matches('(').ends_with(char::is_alphanumeric)
}

/// The last sentence of the last line, and whether it is the whole line.
fn last_sentence(response: &str) -> Option<(&str, bool)> {
    let line = response.trim_end().rsplit('\n').next()?.trim();
    let line = &line[line.ceil_char_boundary(line.len().saturating_sub(LONGEST_LINE))..];
    let body = line.trim_end_matches(|last: char| last.is_whitespace() || ".!*_)".contains(last));
    let mut ends = body.rmatch_indices(['.', '!', '?']).map(|(at, _)| at);
    let end = ends.find(|at| body[at + 1..].starts_with([' ', '*']) && !is_mark(body, *at));
    Some(end.map_or((line, true), |at| (line[at + 1..].trim(), false)))
}

/// Whether the mark at `at` stands after the letter of an option: "**B. Rome",
/// "is B. NO CHANGE".
fn is_mark(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let before = before.strip_suffix(|last: char| last.is_ascii_uppercase());
    let Some(before) = before.filter(|_| text[at..].starts_with('.')) else { return false };
    let brief = || {
        let letter = after.split(|character: char| !character.is_alphanumeric()).any(|word| word.len() == 1);
        after.split_whitespace().count() <= 3 && !letter
    };
    before.ends_with(['*', '(']) || before.is_empty() || before.ends_with(' ') && brief()
}

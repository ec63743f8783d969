//! The choice that the last sentence of a response names.

use crate::letters::class;
use crate::statement::Statements;
use regex::Regex;

/// How many bytes a last sentence may have.
const LONGEST: usize = 300;

/// How many bytes of a last line are searched for its last sentence.
const LONGEST_LINE: usize = 1000;

/// Reads last sentences.
pub struct Closing {
    aside: Regex,
    asked: Regex,
    named: Regex,
    marked: Regex,
    led: Regex,
    begins: Regex,
    judged: Regex,
    ends: Regex,
    denied: Regex,
    denial: Regex,
    unsure: Regex,
    other: Regex,
    item: Regex,
}

impl Closing {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let class = class(choices);
        Ok(Self {
            // "Is it B? Yes."
            asked: Regex::new(&format!(r"\b(?i:is|could|must)\b[^.?!\n]{{0,60}}\s({class})\?\s+(?i:yes)\b"))?,
            aside: Regex::new(r"\([^()\n]{2,200}\)")?,
            named: Regex::new(&format!(r"[A-Za-z0-9]?({class})\b"))?,
            // "(B)", "**B", "option B".
            marked: Regex::new(r"(?:[(\[*_]|(?i:\b(?:option|choice|answer|letter)\s))\z")?,
            // "is B", "like B", "→ B", "so, B".
            led: Regex::new(
                r"(?ix) (?: \A | [,;→⇒—–] | -> | => | (?: \b(?:output|result|verdict|conclusion|decision|selection|right|in\s+short|in\s+sum|summary) | \w\s+\w[^:]*\s\w+ | \A[\s*]*(?:question|problem|exercise|q)\s*\d{1,3} ) [\s*]* :
                    | \b(?:the|this|that|it|which|my|our|mine)\b [^,;]*? \b(?:is|be) | \b(?:like|towards?|to|with|gives?|yields?|remains|only|just|i\.e\.|so|then|thus|for|choose|pick|select|say|called|probably|possibly|perhaps|maybe|definitely|certainly|surely|clearly|obviously|likely) ) [\s*_]* \z",
            )?,
            begins: Regex::new(
                r"\A[\s*_>#→⇒(\[]*(?:(?i:so|but|and|only|then|thus|hence|therefore|however|probably|maybe|among[^,]{1,40}|of[^,]{1,40}|between[^,]{1,40}|since[^,]{1,80}|because[^,]{1,80}|as[^,]{1,80})\b[\s,]*)?\z",
            )?,
            judged: Regex::new(
                r"(?ix) \A [)\]*_]* (?: ,?\s+ (?:for\s+sure|of\s+course|then|i\s+(?:guess|think|believe|suppose)|it\s+is|definitely|obviously|certainly|probably|instead) [.!]* \z
                  | \s+ (?:\w+\s+){0,2}? (?: remains | fits | satisf(?:y|ies) | match(?:es)? | works | best | closest | correct | right | plausible | only\s+(?:option|one|choice|answer) | the\s+(?:best|only|odd|exception|one|closest|most|right|correct) | most | stands\s+out ) \b )",
            )?,
            ends: Regex::new(
                r#"(?x) \A [)\]*_"'”]* (?: \s*[.!]*[)\]*_"'”]* \s* \z | [.)][*_]*\s+\S | \s+\(|\s[—–-]\s|: )"#,
            )?,
            denied: Regex::new(
                r#"(?ix) \b(?:not|nor|than|of|except|vitamin|hepatitis|type|group|grade|level|section|part|figure|step|point|team|class|row|column|case|unlike) [\s*_(\["']* \z"#,
            )?,
            denial: Regex::new(
                r"(?ix) \b(?:not|no|none|neither|never|cannot|wrong|incorrect|except|unlike|without|excluded|eliminated|ruled\s+out)\b | n['’]t\b",
            )?,
            unsure: Regex::new(
                r"(?ix) \b(?:if|unless|whether|would|could|might|may|suppose|assuming|had|either|or|can['’]t)\b | \?",
            )?,
            other: Regex::new(
                r"(?ix) \b(?:some|many|most|others?|people|students?|somebody|someone|they|he|she|you|the\s+hint|professors?|teachers?)\b [^,;:]{0,40} \b(?:say|said|think|thought|believe|choose|chose|pick|answer|go|claim|guess|prefer|argue|suggest)\w* \b | \b(?:second|2nd|third|3rd|next)\s+(?:choice|best|question) | \b(?:let|define|denote|suppose|take|plan)\b",
            )?,
            item: Regex::new(&format!(
                r"\A[\s*_>#|-]*(?:(?i:option|choice|statement)\s+)?[(\[]?{class}[)\].:|][*_]*\s"
            ))?,
        })
    }

    /// The choice of the last sentence, if it names just one.
    pub fn choice(&self, response: &str, statements: &Statements) -> Option<char> {
        let asked = self.asked.captures_iter(response).last();
        if let Some(letter) = asked.and_then(|found| found.get(1)) {
            return letter.as_str().chars().next();
        }
        let (sentence, whole_line) = last_sentence(response)?;
        let alone = sentence.chars().filter(|character| character.is_alphanumeric()).count() == 1;
        if sentence.len() > LONGEST || whole_line && (alone || self.item.is_match(sentence)) {
            return None;
        }
        // What a label names is read as a label.
        if statements.is_labelled(sentence) {
            return None;
        }
        let sentence = self.aside.replace_all(sentence, "");
        let stances = &statements.stances;
        let earnest = stances.is_earnest(&sentence);
        if !earnest && self.unsure.is_match(&sentence)
            || self.other.is_match(&sentence)
            || stances.is_disowned(&sentence, sentence.len())
        {
            return None;
        }
        let mut named = Vec::new();
        let mut certain = false;
        for found in self.named.captures_iter(&sentence) {
            let (Some(whole), Some(letter)) = (found.get(0), found.get(1)) else { continue };
            let (before, after) = (&sentence[..letter.start()], &sentence[letter.end()..]);
            if whole.len() > 1 || joined(before, after) || self.denied.is_match(before) {
                continue;
            }
            let choice = letter.as_str().chars().next()?;
            let clause = before.rsplit([',', ';', ':']).next().unwrap_or(before);
            let begins = self.begins.is_match(before) || self.begins.is_match(clause);
            let marked = self.marked.is_match(before);
            let ends = self.ends.is_match(after);
            let judged = self.judged.is_match(after)
                && (choice != 'A' && choice != 'I' || begins && after.starts_with([' ', ',']));
            let led = ends && self.led.is_match(before) || judged && (begins || before.ends_with(" in "));
            if !marked && !led && matches!(choice, 'A' | 'I') && self.word(after) {
                continue;
            }
            let clause = clause.rsplit(" but ").next().unwrap_or(clause);
            let predicate = after.split([',', ';', ':', '.']).next().unwrap_or(after);
            let predicate =
                predicate.split(" since ").flat_map(|part| part.split(" because ")).next().unwrap_or(predicate);
            let remark = predicate.contains(['–', '—']) || after.trim_start().starts_with(['.', ')', ':']);
            if self.denial.is_match(clause) || !remark && self.denial.is_match(predicate) {
                continue;
            }
            certain |= marked || led;
            if !named.contains(&choice) {
                named.push(choice);
            }
        }
        if let [choice] = named[..]
            && certain
        {
            Some(choice)
        } else {
            None
        }
    }

    /// Whether a letter before `after` may be a word.
    fn word(&self, after: &str) -> bool {
        let and = after.starts_with(" and ") || after.starts_with(" or ");
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

/// The last sentence of the last line, and whether it is the whole line. A
/// letter before "." ends none: "B. Paris".
fn last_sentence(response: &str) -> Option<(&str, bool)> {
    let line = response.trim_end().rsplit('\n').next()?.trim();
    let line = &line[line.ceil_char_boundary(line.len().saturating_sub(LONGEST_LINE))..];
    let body = line.trim_end_matches(|last: char| last.is_whitespace() || ".!*_)".contains(last));
    let end = body.rmatch_indices(['.', '!', '?']).find(|(at, mark)| {
        let letter = *mark == "."
            && body[..*at].ends_with(|last: char| last.is_ascii_uppercase())
            && !body[..at - 1].ends_with(char::is_alphanumeric)
            && !body[at + 1..].trim().is_empty()
            && !body[..at - 1].ends_with(' ');
        let listed = *mark == "."
            && body[..*at].ends_with(|last: char| last.is_ascii_uppercase())
            && body[..at - 1].ends_with([' ', '*', '('])
            && (body[..at - 1].ends_with(['*', '(']) || body[at + 1..].split_whitespace().count() <= 3)
            && !body[at + 1..].split(|character: char| !character.is_alphanumeric()).any(|word| word.len() == 1);
        !letter && !listed && body[at + 1..].starts_with([' ', '*'])
    });
    match end {
        Some((at, _)) => Some((line[at + 1..].trim(), false)),
        None => Some((line, true)),
    }
}

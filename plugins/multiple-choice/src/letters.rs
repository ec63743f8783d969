//! Reads the choices that a text begins with.

use crate::languages;
use crate::patterns::compile;
use regex::Regex;

/// What a statement says of the choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It names no choice.
    Nothing,
    /// It is one of these.
    Choices(Vec<char>),
    /// It is none of these.
    Not(Vec<char>),
}

/// Reads letters of choices.
pub struct Letters {
    choices: Vec<char>,
    dress: Regex,
    lead: Regex,
    joined: Regex,
    closing: Regex,
    operator: Regex,
    word: Regex,
    connective: Regex,
    connector: Regex,
    beside: Regex,
    verb: Regex,
    run: Regex,
    numbers: Regex,
    negation: Regex,
    option: Regex,
    bracketed: Regex,
    instead: Regex,
    wrong: Regex,
    contrast: Regex,
    question: Regex,
    marked: Regex,
    denial: Regex,
    exclusion: Regex,
    none_of: Regex,
    ends_in_choice: Regex,
    reference: Regex,
    sentence: Regex,
}

/// A letter that stands for a choice, at the start of a text.
pub struct Letter<'a> {
    pub choice: char,
    /// Whether it is in brackets, bold, quoted or boxed.
    pub enclosed: bool,
    /// The text after it.
    pub rest: &'a str,
}

/// Formatting, brackets, quotes, LaTeX and the word "option" before a letter.
const DRESS: &str = r#"
    [\s*_~✅✔☑👉\u{FE0F}"'“”‘’«»(（\[{【「<$:：`\#>-] | \.{3} | … | </?[a-z]+> | \\[(\[{\ ,;!]
    | \\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|mathsf|mathit|boxed|fbox|bf|rm|it|displaystyle|left|large|Large|underline|emph|operatorname)\b \s* \{?
    | (?i: (?:the\s+)? (?:option|choice|letter|answer|alternative)s? )\b
"#;

/// Words between "the answer is" and a letter.
const FILLER: &str = r", | (?i: most\s+likely | likely | probably | definitely | clearly | obviously | certainly | surely | indeed
    | therefore | thus | hence | then | simply | just | still | actually | either | both | between | it\s+is | it['’]s
    | it\s+(?:must|should|has\s+to)\s+be | i\s+(?:think|believe) | of\s+course
    | in\s+fact | without\s+(?:a\s+)?doubt | none\s+other\s+than | only | is
    | (?: (?:la|el|le|a|die|de|o|il)\s+ )? (?: opci[óo]n|opção|opzione|alternativa|letra|lettre|lettera|antwort|antwoord|aussage|r[ée]ponse|respuesta|resposta|risposta|optie|opsi|opcja )
    | la | el | die | donc | also | daher | portanto | quindi | por\s+(?:lo\s+)?tanto )\b
    | (?i: вариант | ответ | это | odpowiedź )\s";

/// Words that follow a choice, and not the article "a" or the pronoun "I".
const CONNECTIVE: &str = r"(?ix) \A \s+ (?:\\text\{\s*)? (?: because | since | as | for | due | given\s+that | based\s+on | according | by | in | from
    | with | which | where | when | while | whereas | owing | only | alone | although | though | however | but | and | or | nor | not | so | thus | therefore | if | per
    | rather | instead | is | isn['’]t | then | after | over | unless | via | at | on | mais | mas | ma | sino | sondern | а | है | şıkkı(?:dır)? ) (?:[\s,.:;/।] | \z)";

/// After a choice: it is denied. An option's own text may go on with "is not"
/// or "cannot be".
const WRONG: &str = r"(?ix) \A \s* (?: (?:is|was|seems|looks) \s+ (?:[a-z]+ly\s+)? (?:wrong|incorrect|false|impossible|unlikely|ruled\s+out) \b
    | (?: (?:is|was|can) \s* (?:not|n['’]t) (?:\s+be)? | can['’]t (?:\s+be)? )
        (?: \s+ (?:[a-z]+ly\s+)? (?:the|an?|correct|right|true|valid|it|possible|one)\b | \s*[.,;!\n] | \s*\z ) )";

/// A text of an option that begins with a negation, and not a denial such as
/// "not Paris".
const OPTION: &str = r#"(?x) \A [\s*_"“'‘]* (?: (?:Not|Never|Neither)\b | (?i:neither|never) \s
    | (?i:not) \s+ (?: enough|sufficient|necessarily|possible|any|at\s+all|known|clear|there|[a-z]+(?:ed|en|able|ible|ing) ) \b )"#;

/// Words that exclude what follows them: "rather than Rome (A)", "not (A)".
const EXCLUSION: &str = r"(?ix) \b (?: other\s+than|rather\s+than|instead\s+of|unlike|except(?:\s+for)?|not\s+even|(?:and|but)\s+not|anything\s+but ) \b
    | (?: \b(?:not|no|none|neither|nor|never|without|wrong|incorrect) | n['’]t )
        (?:\s+(?:even|the|be|in|option|choice|letter|answer))* [\s*_]* \z";

/// Words before a letter in brackets that refer to something else than a
/// choice.
const REFERENCE: &str = r"(?i)\b(?:see|consider|at|for|on|about|parts?|figure|fig\.|table|equation|eq\.|step|section|from|in|by|of|and|or|not|is|are|than|to|with|if|statement|vitamin|hepatitis|type|group)\s+[*_]*\z";

/// How many bytes the letters before a verb may have: "A, B and C are wrong". Without a limit, a list would be read once
/// for each of its letters.
const LONGEST_SUBJECT: usize = 100;

/// How many bytes of a statement are read. Without a limit, a response of
/// statements in one line would be read once for each.
const LONGEST: usize = 200;

impl Letters {
    pub fn new(choices: Vec<char>) -> Result<Self, regex::Error> {
        let class = class(&choices);
        Ok(Self {
            dress: compile(&format!(r"(?x)\A(?:{DRESS})*"))?,
            lead: compile(&format!(r"(?x)\A(?:{DRESS}|{FILLER})*"))?,
            // "A4", "A's", "B-cells", "C++", "C(t)", "D.C." hold no choice.
            joined: compile(r"\A(?:[\p{Latin}\p{Greek}\p{Cyrillic}\p{N}+#°′(]|['’_^*\\-][\p{L}\p{N}{]|\.\p{L}\.)")?,
            closing: compile(r#"\A(?:[*_~"'”’»)）\]}】」>$`]|\\[)\]}]|</[a-z]+>)*"#)?,
            operator: compile(r"\A\s*(?:[∪∩×·⊂⊃∈^]|\\(?:cup|cap|times|cdot|in|to|subset)\b)")?,
            word: compile(r#"\A[ \t]+[^\s.,:;!?()\[\]—–=/|&…<\-]"#)?,
            connective: compile(CONNECTIVE)?,
            connector: compile(
                r"(?i)\A(?:\s|\\text\{)*(?:,?\s*\(?(and/or|or|nor|/|\||&|\+)|,?\s*\(?(and)\b|([,;、]))[\s}]*(?:(?:maybe|perhaps|possibly|else|also)\s+)?",
            )?,
            beside: compile(&format!(r"\A\s*[(\[]{class}[)\]]"))?,
            verb: compile(&format!(
                r"\A(?:[\s,]*(?:and|or|&)?\s*{class}\b)*\s+(?:is|isn['’]t|are|aren['’]t|was|does|doesn['’]t|do|has|have|can|cannot|can['’]t|would|fails?|ignores?)\b"
            ))?,
            run: compile(&format!(r"\A({class}{{2,}})[\s.*_)\]}}$]*(?:\n|\z)"))?,
            numbers: compile(r"\A[\s,]*(?:and\s+)?(?:II|only\b)")?,
            negation: compile(r#"(?i)\A[\s*_"“'‘]*(?:\w+ly\s+)?(?:not|(?P<alone>neither|never))\b[\s*_]*"#)?,
            option: compile(OPTION)?,
            bracketed: compile(&format!(r"\A[(\[]{class}[)\]][\s.*]*\z"))?,
            instead: compile(&format!(
                r"(?ix)\A (?:,[^,.;\n]{{1,40}},)? [\s,;.，、—–-]* (?:(?:but|rather|instead|it['’]s|it\s+is)(?:\s+rather)?\b | {})",
                languages::INSTEAD
            ))?,
            wrong: compile(&format!("{WRONG} | (?ix) \\A {}", languages::DENIED))?,
            contrast: compile(languages::CONTRAST)?,
            question: compile(r"\A\s*[?？]")?,
            marked: compile(&format!(
                r"(?:[(\[（]|\*\*)({class})(?:[)\]）]|\*\*)|(?i:option|choice|letter)\s+[(\[*]*({class})\b"
            ))?,
            denial: compile(
                r"(?i)\b(?:not|no|none|neither|nor|never|except|other\s+than|rather\s+than|instead\s+of|unlike|without|wrong|incorrect)\b|n['’]t\b",
            )?,
            exclusion: compile(EXCLUSION)?,
            none_of: compile(r"(?i)\b(?:none|neither)\s+of\s+(?:the\s+)?[a-z]+")?,
            ends_in_choice: compile(&format!(r"\A[^\n(\[:?]{{1,80}}[^\n(\[:?\s]\s+[*_]*[(\[]{class}[)\]][*_.!]*\z"))?,
            reference: compile(REFERENCE)?,
            sentence: compile(r"[.!?](?:\z|\s+[^\p{Ll}])|[;\n]")?,
            choices,
        })
    }

    /// The letters of the choices, in their order.
    pub fn choices(&self) -> &[char] {
        &self.choices
    }

    /// What a text says that is the complement of "the answer is", or the
    /// content of a box or element.
    pub fn read(&self, text: &str) -> Said {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        // "A no, B sí": what is meant follows what is denied.
        if let Some(contrast) = self.contrast.find(text)
            && let (named, _) = self.list(&text[contrast.end()..])
            && !named.is_empty()
        {
            return Said::Choices(named);
        }
        if let Some(negation) = self.negation.captures(text) {
            let rest = &text[negation.get(0).map_or(0, |whole| whole.end())..];
            return match self.denied(rest) {
                // "Not enough information (C)".
                Said::Nothing if self.option.is_match(text) => self.aside(text),
                // "Neither (D)".
                Said::Not(named) if negation.name("alone").is_some() && self.bracketed.is_match(rest) => {
                    Said::Choices(named)
                }
                said => said,
            };
        }
        let (named, rest) = self.list(text);
        if named.is_empty() {
            return self.aside(text);
        }
        if self.question.is_match(rest) {
            return Said::Nothing;
        }
        if self.wrong.is_match(rest) { Said::Not(named) } else { Said::Choices(named) }
    }

    /// The text after the choices that `text` begins with.
    pub fn after_list<'a>(&self, text: &'a str) -> &'a str {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        self.list(text).1
    }

    /// What follows the choices that `text` begins with, up to its end.
    pub fn past_list<'a>(&self, text: &'a str) -> &'a str {
        let head = &text[..text.floor_char_boundary(LONGEST)];
        &text[head.len() - self.list(head).1.len()..]
    }

    /// Whether the text after a letter goes on with a verb: "(B) is false".
    pub fn is_subject(&self, rest: &str) -> bool {
        self.verb.is_match(&rest[..rest.floor_char_boundary(LONGEST_SUBJECT)])
    }

    /// What "not …" says: "not A", or "not A but B".
    pub fn denied(&self, text: &str) -> Said {
        let (denied, rest) = self.list(text);
        if denied.is_empty() {
            return Said::Nothing;
        }
        let instead = self.instead.find(rest).map(|found| self.list(&rest[found.end()..]).0);
        match instead {
            Some(named) if !named.is_empty() => Said::Choices(named),
            // "Neither A nor B (D)".
            _ if self.beside.is_match(rest) => self.aside(rest),
            _ => Said::Not(denied),
        }
    }

    /// The choices that `text` begins with, each once, and what follows them:
    /// one letter, or a list such as "A, B and C" or "AB".
    pub fn list<'a>(&self, text: &'a str) -> (Vec<char>, &'a str) {
        if let Some(found) = self.run(text) {
            return (found, "");
        }
        let Some(Letter { choice, mut enclosed, mut rest }) = self.letter(text) else { return (Vec::new(), text) };
        let mut named = vec![choice];
        while let Some(next) = self.next(rest, enclosed) {
            if !named.contains(&next.choice) {
                named.push(next.choice);
            }
            (enclosed, rest) = (next.enclosed, next.rest);
        }
        // "I and II", "I only": numbers.
        let numbers = choice == 'I' && self.numbers.is_match(rest);
        if numbers { (Vec::new(), text) } else { (named, rest) }
    }

    /// The next letter of a list.
    fn next<'a>(&self, rest: &'a str, enclosed: bool) -> Option<Letter<'a>> {
        let Some(connector) = self.connector.captures(rest) else {
            return if enclosed && self.beside.is_match(rest) { self.dressed(rest) } else { None };
        };
        let connector_text = connector.get(0)?;
        // A table below an answer is no list.
        if connector_text.as_str().contains("\n\n") {
            return None;
        }
        let next = self.dressed(&rest[connector_text.end()..])?;
        // "B, C ignores friction", "B and C is wrong": another clause.
        let word = || self.word.is_match(next.rest) && self.connector.captures(next.rest).is_none();
        let clause = match (connector.get(1), connector.get(3)) {
            (Some(_), _) => false,
            (_, comma) => self.is_subject(next.rest) || comma.is_some() && word(),
        };
        (!clause).then_some(next)
    }

    /// Letters of choices written together, in their order: "AB".
    fn run(&self, text: &str) -> Option<Vec<char>> {
        let text = &text[self.lead.find(text)?.end()..];
        let run: Vec<char> = self.run.captures(text)?[1].chars().collect();
        run.is_sorted_by(|one, next| one < next).then_some(run)
    }

    /// The letter that `text` begins with, perhaps after words such as
    /// "therefore".
    pub fn letter<'a>(&self, text: &'a str) -> Option<Letter<'a>> {
        self.after(&self.lead, text)
    }

    /// The letter that `text` begins with, without words before it.
    pub fn dressed<'a>(&self, text: &'a str) -> Option<Letter<'a>> {
        self.after(&self.dress, text)
    }

    /// The letter after `lead`, if it stands for a choice: a capital letter, or
    /// a small one that is enclosed or has no word after it. "A" and "I" are
    /// also words, so that only some words may follow them.
    fn after<'a>(&self, lead: &Regex, text: &'a str) -> Option<Letter<'a>> {
        let dress = lead.find(text)?;
        let mut characters = text[dress.end()..].chars();
        let written = narrow(characters.next()?);
        let (choice, after) = (written.to_ascii_uppercase(), characters.as_str());
        if !self.choices.contains(&choice) || self.joined.is_match(after) {
            return None;
        }
        let closing = self.closing.find(after)?.end();
        let (enclosed, rest) = (closing > 0, &after[closing..]);
        let formula = dress.as_str().contains(['$', '\\']) && rest.trim_start().starts_with('=');
        if formula || self.operator.is_match(rest) {
            return None;
        }
        let word = matches!(written, 'A' | 'I') || written.is_ascii_lowercase();
        if !enclosed && word && self.word.is_match(rest) && !self.connective.is_match(rest) {
            return None;
        }
        Some(Letter { choice, enclosed, rest })
    }

    /// The choices that a sentence marks in passing: "Paris (B)", "Paris,
    /// which is option B".
    fn aside(&self, text: &str) -> Said {
        let text = text.trim_start();
        let sentence = &text[..self.sentence.find(text).map_or(text.len(), |end| end.start())];
        let mut named = Vec::new();
        for found in self.marked.captures_iter(sentence) {
            let (Some(whole), Some(letter)) = (found.get(0), found.get(1).or(found.get(2))) else { continue };
            let before = &sentence[..whole.start()];
            let clause = before.rsplit([',', ';']).next().unwrap_or(before);
            let first = clause.len() == before.len();
            let clause = self.none_of.replace_all(clause, "");
            let function = whole.as_str().starts_with('(') && before.ends_with(|last: char| last.is_alphanumeric());
            // The first clause may be the text of an option: "no change (B)".
            let denied = self.exclusion.is_match(&clause) || !first && self.denial.is_match(&clause);
            if function || denied {
                continue;
            }
            named.extend(letter.as_str().chars().filter(|choice| !named.contains(choice)).collect::<Vec<_>>());
        }
        if named.is_empty() { Said::Nothing } else { Said::Choices(named) }
    }

    /// The choice that ends a line with the text of its option: "No change (B)".
    pub fn at_end(&self, line: &str) -> Vec<char> {
        let refers = || line.rfind(['(', '[']).is_some_and(|at| self.reference.is_match(&line[..at]));
        if !self.ends_in_choice.is_match(line) || refers() {
            return Vec::new();
        }
        if let Said::Choices(choices) = self.read(line) { choices } else { Vec::new() }
    }
}

/// A class of a regular expression that holds the letters.
pub fn class(choices: &[char]) -> String {
    format!("[{}]", choices.iter().collect::<String>())
}

/// A full-width letter as the narrow one.
fn narrow(letter: char) -> char {
    match letter {
        'Ａ'..='Ｚ' | 'ａ'..='ｚ' => {
            char::from_u32(u32::from(letter) - u32::from('Ａ') + u32::from('A')).unwrap_or(letter)
        }
        letter => letter,
    }
}

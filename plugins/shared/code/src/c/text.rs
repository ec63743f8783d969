//! The text of a test as tokens, without comments.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    /// A literal in double quotes.
    Text,
    /// A literal in single quotes.
    Char,
    Sign,
}

/// A token, and where it begins in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(crate) fn is_one_of(&self, texts: &[&str]) -> bool {
        texts.contains(&self.text)
    }

    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The signs of more than one character. A longer one comes before its beginnings.
const SIGNS: [&str; 23] = [
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=",
    "%=", "&=", "^=", "|=", "::",
];

/// Other ways to write `[`, `]`, `{`, `}` and `#`.
const DIGRAPHS: [&str; 5] = ["<:", ":>", "<%", "%>", "%:"];

/// The text without comments, joined lines and `#include`.
///
/// # Errors
/// A comment or a literal has no end, or there is another directive.
pub(crate) fn cleaned(text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n").replace("\\\n", "");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                kept.push(' ');
                rest[2..].find("*/").ok_or("a comment of the test has no end: close it with `*/`")? + 4
            }
            '"' | '\'' => {
                let length = literal_length(rest).ok_or("a literal of the test has no end: close its quotes")?;
                kept.push_str(&rest[..length]);
                length
            }
            _ => {
                kept.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    let lines: Vec<&str> = kept.lines().map(without_directive).collect::<Result<_, _>>()?;
    Ok(lines.join("\n"))
}

/// A line, which is empty if it is a directive that a child does not need.
fn without_directive(line: &str) -> Result<&str, String> {
    let Some(directive) = line.trim_start().strip_prefix('#') else { return Ok(line) };
    let words: Vec<&str> = directive.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let is_include = first.strip_prefix("include").is_some_and(|rest| rest.is_empty() || rest.starts_with(['<', '"']));
    if is_include || words == ["undef", "NDEBUG"] {
        return Ok("");
    }
    Err(format!(
        "`{}`: a test may have no directive but `#include`: write what it stands for in its place",
        line.trim()
    ))
}

/// The bytes of the literal at the beginning of a text.
fn literal_length(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The tokens of a text that is [`cleaned`], with every bracket closed.
///
/// # Errors
/// A character that is none of a token, or a bracket without its other one.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let (kind, length) = if first.is_ascii_alphabetic() || first == '_' {
            (Kind::Name, rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()))
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            (Kind::Number, number_length(rest))
        } else if first == '"' || first == '\'' {
            let kind = if first == '"' { Kind::Text } else { Kind::Char };
            (kind, literal_length(rest).ok_or("a literal of the test has no end: close its quotes")?)
        } else {
            (Kind::Sign, sign_length(rest).ok_or_else(|| format!("`{first}` is no sign that a test may have"))?)
        };
        tokens.push(Token { kind, text: &rest[..length], start });
        start += length;
    }
    balanced(&tokens)?;
    Ok(tokens)
}

fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let is_part = c.is_ascii_alphanumeric() || c == '.' || c == '_';
        let is_sign_of_exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P');
        before = c;
        !is_part && !is_sign_of_exponent
    });
    end.unwrap_or(text.len())
}

fn sign_length(text: &str) -> Option<usize> {
    if DIGRAPHS.iter().any(|sign| text.starts_with(sign)) {
        return None;
    }
    let long = SIGNS.iter().find(|sign| text.starts_with(**sign)).map(|sign| sign.len());
    long.or_else(|| text.starts_with(|c| "[](){}.&*+-~!/%<>^|?:;=,".contains(c)).then_some(1))
}

fn balanced(tokens: &[Token]) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == Kind::Sign) {
        match token.text {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(token.text) => {
                return Err(format!("a `{}` of the test closes nothing", token.text));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(close) => Err(format!("a `{close}` is missing in the test")),
        None => Ok(()),
    }
}

/// For each token that is not within brackets, its place. Brackets themselves are not within.
fn outside<'a>(tokens: &'a [Token]) -> impl Iterator<Item = usize> + 'a {
    let mut depth = 0usize;
    tokens.iter().enumerate().filter_map(move |(at, token)| {
        let is_sign = token.kind == Kind::Sign;
        if is_sign && token.is_one_of(&[")", "]", "}"]) {
            depth = depth.saturating_sub(1);
        }
        let found = (depth == 0).then_some(at);
        if is_sign && token.is_one_of(&["(", "[", "{"]) {
            depth += 1;
        }
        found
    })
}

/// The places of signs that are not within brackets.
pub(crate) fn signs(tokens: &[Token], wanted: &[&str]) -> Vec<usize> {
    outside(tokens).filter(|at| tokens[*at].kind == Kind::Sign && tokens[*at].is_one_of(wanted)).collect()
}

/// The places of signs between two operands, not within brackets. One that comes first, or after another sign, is none.
pub(crate) fn operators(tokens: &[Token], wanted: &[&str]) -> Vec<usize> {
    let is_between = |at: &usize| {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        before.is_some_and(|before| before.kind != Kind::Sign || before.is_one_of(&[")", "]"]))
    };
    signs(tokens, wanted).into_iter().filter(is_between).collect()
}

/// The parts between signs that are not within brackets.
pub(crate) fn split<'a, 'b>(tokens: &'a [Token<'b>], sign: &str) -> Vec<&'a [Token<'b>]> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for at in signs(tokens, &[sign]) {
        parts.push(&tokens[start..at]);
        start = at + 1;
    }
    parts.push(&tokens[start..]);
    parts
}

/// The place of the bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    outside(tokens.get(open..)?).nth(1).map(|at| open + at)
}

/// Without parentheses around all of it.
pub(crate) fn bare<'a, 'b>(tokens: &'a [Token<'b>]) -> &'a [Token<'b>] {
    match tokens.first() {
        Some(first) if first.is("(") && closing(tokens, 0) == Some(tokens.len() - 1) => {
            bare(&tokens[1..tokens.len() - 1])
        }
        _ => tokens,
    }
}

/// The arguments of a call of a function with this name that is all there is.
pub(crate) fn call<'a, 'b>(tokens: &'a [Token<'b>], name: &str) -> Option<Vec<&'a [Token<'b>]>> {
    let [callee, open, .., _] = tokens else { return None };
    let is_call = callee.is(name) && open.is("(") && closing(tokens, 1) == Some(tokens.len() - 1);
    is_call.then(|| split(&tokens[2..tokens.len() - 1], ","))
}

/// What tokens are in their text.
pub(crate) fn written<'a>(text: &'a str, tokens: &[Token]) -> &'a str {
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => &text[first.start..last.end()],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_joined_lines_are_removed() {
        for (text, clean) in [
            ("a; // it's\nb;", "a; \nb;"),
            ("a /* it's \" */ b", "a   b"),
            ("// a \\\nb\nc", "\nc"),
            ("\"/* a */\" '\"' '\\'' // b", "\"/* a */\" '\"' '\\'' "),
            ("a\\\nb", "ab"),
            ("# include <a.h> // it's\n#undef NDEBUG\na", "\n\na"),
            ("/* x */ #include \"a.h\"\nb", "\nb"),
        ] {
            assert_eq!(cleaned(text).unwrap(), clean, "{text}");
        }
        for (text, error) in [
            ("a /* b", "comment"),
            ("a '", "literal"),
            ("\"a\nb\"", "literal"),
            ("#define a b", "`#define a b`"),
            ("/**/ # define a b", "directive"),
            ("#includes", "directive"),
            ("#if 0\n#endif", "directive"),
        ] {
            assert!(cleaned(text).unwrap_err().contains(error), "{text}");
        }
    }

    #[test]
    fn a_text_has_tokens() {
        let found = |text| tokens(text).map(|found| found.iter().map(|token| token.text).collect::<Vec<_>>().join(" "));
        assert_eq!(found("f(a->b,-1.5e-3)==')'").unwrap(), "f ( a -> b , - 1.5e-3 ) == ')'");
        assert_eq!(found("x<<=.5f+a...").unwrap(), "x <<= .5f + a ...");
        assert_eq!(found("\"a\\\"b\" \"c\"").unwrap(), "\"a\\\"b\" \"c\"");
        for (text, error) in
            [("a # b", "`#`"), ("<% %>", "`<`"), ("é", "`é`"), ("(a]", "closes nothing"), ("{ (", "is missing")]
        {
            assert!(found(text).unwrap_err().contains(error), "{text}");
        }
    }

    #[test]
    fn brackets_hold_their_tokens_together() {
        let all = tokens("(f(a, b[1, 2]), (g)), h").unwrap();
        let parts = |tokens: &[Token]| split(tokens, ",").iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(parts(&all), [17, 1]);
        assert_eq!(closing(&all, 0), Some(16));
        assert_eq!(parts(bare(&all[..17])), [11, 3]);
        let all = tokens("((f(a), b))").unwrap();
        assert_eq!(written("((f(a), b))", bare(&all)), "f(a), b");
        let all = tokens("f(a, (b, c))").unwrap();
        assert_eq!(call(&all, "f").unwrap().len(), 2);
        assert!(call(&all, "g").is_none() && call(&all[..3], "f").is_none());
        let all = tokens("f(a)(b)").unwrap();
        assert!(call(&all, "f").is_none());
    }
}

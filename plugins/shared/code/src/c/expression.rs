//! Expressions whose values a child may answer with: what the code gives, with nothing computed or compared beside it.

use super::library;
use super::text::{Kind, Token, bare, closing, split};

const ALONE: &str = "it computes or compares beside the code: compare a call, a variable, an element or a member \
                     alone with a literal, such as `f(x) == 5`";
const NESTED: &str = "a call that answers true or false has another call of the code in its arguments, and the \
                      expected value may be there too: compare what the inner call gives, such as `f(x) == 5`";

/// What would compare in an argument or an index.
const COMPARING: [&str; 12] = ["==", "!=", "<", "<=", ">", ">=", "<<", ">>", "&&", "||", "!", "?"];

/// Words that no test may have.
const UNFIT: [&str; 10] =
    ["assert", "static_assert", "_Static_assert", "_Generic", "_Pragma", "asm", "typeof", "setjmp", "longjmp", "goto"];

const KEYWORDS: [&str; 46] = [
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Imaginary",
    "_Noreturn",
    "_Thread_local",
    "alignof",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "size_t",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "_Decimal64",
];

/// Checks an expression: a name or a call, with any calls, indices and members after it. An argument may compute, but
/// may not compare. With `is_truth`, the value says one bit, as a comparison's does; then no argument may call the code.
///
/// # Errors
/// Why its value may not be compared, and what to write.
pub(crate) fn own(tokens: &[Token], is_truth: bool) -> Result<(), String> {
    let tokens = bare(tokens);
    let stars = tokens.iter().take_while(|token| token.is("*")).count();
    let tokens = &tokens[stars..];
    let [first, ..] = tokens else { return Err(ALONE.into()) };
    let mut at = match first.kind {
        Kind::Name if KEYWORDS.contains(&first.text) => return Err(ALONE.into()),
        Kind::Name => {
            named(first)?;
            1
        }
        Kind::Sign if first.is("(") => {
            let end = closing(tokens, 0).ok_or(ALONE)?;
            own(&tokens[1..end], is_truth)?;
            // With a name alone, it may convert to a type: `(word)(x - 5)`.
            if end == 2 && tokens.get(3).is_some_and(|next| !next.is_one_of(&[".", "->", "["])) {
                return Err(ALONE.into());
            }
            end + 1
        }
        _ => return Err(ALONE.into()),
    };
    while let Some(token) = tokens.get(at) {
        at = match token.text {
            "(" | "[" => {
                let end = closing(tokens, at).ok_or(ALONE)?;
                let inner = &tokens[at + 1..end];
                match token.is("(") && at == 1 && library::has(first.text) {
                    true => of_library(inner, is_truth)?,
                    false => harmless(inner, is_truth)?,
                }
                end + 1
            }
            "." | "->" if tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Name) => at + 2,
            _ => return Err(ALONE.into()),
        };
    }
    Ok(())
}

/// Checks a word of a test.
///
/// # Errors
/// It is one with which a test decides by itself.
pub(crate) fn named(token: &Token) -> Result<(), String> {
    let name = token.text;
    if library::compares(name) {
        return Err(format!("`{name}` compares in the code's memory: {}", instead(name)));
    }
    match UNFIT.contains(&name) || name.starts_with("__") {
        true => Err(format!("`{name}` may not be within it")),
        false => Ok(()),
    }
}

/// What to write in place of a function that compares.
fn instead(name: &str) -> &'static str {
    match name {
        "strcmp" | "strncmp" | "strcoll" => "write `strcmp(f(x), \"text\") == 0`, with a literal",
        "memcmp" | "bcmp" | "timingsafe_memcmp" | "timingsafe_bcmp" => {
            "write an assertion for each element, such as `a[0] == 1`"
        }
        "fabs" | "fabsf" | "fabsl" | "abs" | "labs" | "llabs" | "imaxabs" => "write `fabs(f(x) - 0.5) < 1e-6`",
        _ => "compare the value itself with a literal, such as `f(x) == 5` or `strcmp(f(x), \"text\") == 0`",
    }
}

/// Checks the arguments of a function of the library. It is given what the code gives, and nothing beside it.
fn of_library(arguments: &[Token], is_truth: bool) -> Result<(), String> {
    match split(arguments, ",")[..] {
        [one] => own(one, is_truth),
        _ => Err("a function of C's library with several arguments may compare them: compare what the code gives \
                  with a literal, such as `f(x) == 5`"
            .into()),
    }
}

/// Checks arguments or an index.
fn harmless(tokens: &[Token], is_truth: bool) -> Result<(), String> {
    let mut before: Option<&Token> = None;
    for token in tokens {
        match token.kind {
            Kind::Name => named(token)?,
            Kind::Sign if token.is_one_of(&COMPARING) => {
                return Err(format!(
                    "`{}` is in an argument or an index: compute it before, or write its value",
                    token.text
                ));
            }
            Kind::Sign if token.is(";") => return Err("a statement is within it: write it before".into()),
            Kind::Sign if token.is("(") && is_truth => {
                let is_call = before.is_some_and(|before| match before.kind {
                    Kind::Name => !library::has(before.text) && !before.is("sizeof"),
                    _ => before.is_one_of(&[")", "]"]),
                });
                if is_call {
                    return Err(NESTED.into());
                }
            }
            _ => {}
        }
        before = Some(token);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::text::tokens;
    use super::*;

    fn checked(text: &str, is_truth: bool) -> Result<(), String> {
        own(&tokens(text).unwrap(), is_truth)
    }

    #[test]
    fn what_the_code_gives_is_an_answer() {
        for text in [
            "x",
            "f()",
            "((f(1, -2)))",
            "f(\"a == b\", '<')",
            "f(a, sizeof(a) / sizeof(a[0]))",
            "f((int[]){1, 2}, 2 * n + 1)",
            "f(&(struct p){.x = 1})",
            "*f(x)",
            "**p",
            "(*p).x[1]->y",
            "(p)->x",
            "(*g)(1)",
            "f(1)(2)[3]",
            "strlen(f(1))",
            "isnan(f(-1.0))",
            "is_word(s, strlen(s))",
            "f(strdup(\"a\"), INT64_C(5))",
        ] {
            assert_eq!(checked(text, true), Ok(()), "{text}");
        }
        for text in ["f(g(1), 5)", "a[f(1)]", "f((*g)(1))", "toupper(f(g(1)))"] {
            assert_eq!(checked(text, false), Ok(()), "{text}");
            assert!(checked(text, true).unwrap_err().contains("true or false"), "{text}");
        }
    }

    #[test]
    fn what_computes_or_compares_is_none() {
        for text in [
            "",
            "1",
            "\"a\"",
            "f(1) - 5",
            "-f(1)",
            "!f(1)",
            "~f(1)",
            "&a[0]",
            "f(1) ^ 5",
            "f(1), 5",
            "(f(1), 5)",
            "(int)f(1)",
            "(int)(f(1))",
            "(word)(f(1) - 5)",
            "(f(1) == 5)",
            "int(f(1))",
            "sizeof(char[5])",
            "f(1) ? 5 : 6",
            "x = 5",
            "x++",
            "x.5",
        ] {
            assert!(checked(text, false).unwrap_err().contains("alone"), "{text}");
        }
        for (text, what) in [
            ("f(g(1) == 5)", "`==`"),
            ("f(g(1) != 5)", "`!=`"),
            ("f(a[g(1) <= 5])", "`<=`"),
            ("f(!x)", "`!`"),
            ("f(x ? 1 : 2)", "`?`"),
            ("f(1 << 2)", "`<<`"),
            ("f(a && b)", "`&&`"),
            ("f(({ int x = 1; x; }))", "statement"),
            ("strcmp(f(1), \"a\")", "with a literal"),
            ("(*strcmp)(f(1), \"a\")", "with a literal"),
            ("check(memcmp(a, b, 4))", "each element"),
            ("check((strstr)(a, b))", "`strstr`"),
            ("fabs(f(1))", "1e-6"),
            ("isless(f(1), 3)", "itself"),
            ("pow(f(1), 2)", "several arguments"),
            ("strlen(\"abc\")", "alone"),
            ("toupper(f(1) - 5)", "alone"),
            ("isdigit(f(g(1) == 5))", "`==`"),
            ("__builtin_strcmp(f(1), \"a\")", "`__builtin_strcmp`"),
            ("f(__builtin_strcmp(g(1), \"a\"))", "`__builtin_strcmp`"),
            ("_Generic(f(1), default: 5)", "`_Generic`"),
        ] {
            let error = checked(text, false).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}

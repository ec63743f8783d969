//! The statements of a test, which run in the child around its answers. They may make arguments, but not compare.

use super::expression::named;
use super::text::{Kind, Token, closing, signs, split};

/// Words of statements with which a test decides by itself, or ends.
const DECIDING: [&str; 11] =
    ["if", "else", "switch", "case", "default", "return", "abort", "exit", "_exit", "_Exit", "quick_exit"];
/// What compares. A loop may have one of the first five in its condition.
const COMPARING: [&str; 9] = ["<", "<=", ">", ">=", "!=", "==", "&&", "||", "?"];

/// A part of a test.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a, 'b> {
    Statements(&'a [Token<'b>]),
    /// What is between the parentheses of `assert(…);`.
    Assertion(&'a [Token<'b>]),
}

/// The parts of a test: of its `main`, if it has one.
///
/// # Errors
/// An assertion is not a statement that always runs once, or a statement may compare.
pub(crate) fn parts<'a, 'b>(tokens: &'a [Token<'b>]) -> Result<Vec<Part<'a, 'b>>, String> {
    let tokens = without_end(body(tokens)?);
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    let mut blocks = Vec::new();
    while at < tokens.len() {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let begins = before.is_none_or(|before| before.is_one_of(&[";", "{", "}"]));
        let token = &tokens[at];
        if token.is("assert") {
            if !begins || blocks.contains(&false) {
                return Err(
                    "an assertion is in a loop, a branch or another statement: write one for each value, such \
                            as `assert(a[0] == 1);`, as statements of their own"
                        .into(),
                );
            }
            let end = tokens.get(at + 1).filter(|open| open.is("(")).and_then(|_| closing(tokens, at + 1));
            let end = end.filter(|end| tokens.get(end + 1).is_some_and(|after| after.is(";")));
            let end = end.ok_or("an `assert` is not of the form `assert(…);`")?;
            parts.push(Part::Statements(&tokens[from..at]));
            parts.push(Part::Assertion(&tokens[at + 2..end]));
            at = end + 2;
            from = at;
            continue;
        }
        match token.text {
            "(" | "[" => blocks.push(false),
            "{" => blocks.push(begins),
            ")" | "]" | "}" => _ = blocks.pop(),
            _ => {}
        }
        at += 1;
    }
    parts.push(Part::Statements(&tokens[from..]));
    for part in &parts {
        if let Part::Statements(statements) = part {
            check(statements)?;
        }
    }
    Ok(parts)
}

/// The statements of `main`, or all of a test without one.
fn body<'a, 'b>(tokens: &'a [Token<'b>]) -> Result<&'a [Token<'b>], String> {
    let more = || {
        "the test has more than a `main`, and the code could change what it does: write its statements and variables \
                    into `main`, and an assertion for each element, such as `assert(a[0] == 1);`"
            .to_owned()
    };
    let is_main = |at: &usize| tokens[*at].is("main") && tokens.get(at + 1).is_some_and(|next| next.is("("));
    let Some(main) = (0..tokens.len()).find(is_main) else { return Ok(tokens) };
    let mut before = split(&tokens[..main], ";");
    let result = before.pop().unwrap_or_default();
    let is_prototype = |part: &[Token]| {
        let [.., name, _] = part else { return false };
        let open = (0..part.len()).find(|at| part[*at].is("("));
        let is_whole = open.and_then(|open| closing(part, open)) == Some(part.len() - 1);
        is_whole && !name.is("{") && part.iter().all(|token| !token.is_one_of(&["=", "{"]))
    };
    let is_result = result.iter().all(|token| token.is_one_of(&["int", "void", "static", "signed"]));
    if !is_result || !before.into_iter().all(is_prototype) {
        return Err(more());
    }
    let open =
        closing(tokens, main + 1).map(|end| end + 1).filter(|open| tokens.get(*open).is_some_and(|at| at.is("{")));
    let open = open.ok_or("the test's `main` has no body")?;
    match closing(tokens, open) {
        Some(end) if end + 1 == tokens.len() => Ok(&tokens[open + 1..end]),
        _ => Err(more()),
    }
}

/// Without `return 0;` at the end.
fn without_end<'a, 'b>(tokens: &'a [Token<'b>]) -> &'a [Token<'b>] {
    match tokens {
        [rest @ .., last, value, end]
            if last.is("return") && value.is_one_of(&["0", "EXIT_SUCCESS"]) && end.is(";") =>
        {
            rest
        }
        [rest @ .., last, end] if last.is("return") && end.is(";") => rest,
        _ => tokens,
    }
}

/// Checks statements between assertions.
fn check(tokens: &[Token]) -> Result<(), String> {
    // The places of signs that compare in the condition of a loop.
    let mut conditions = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is_one_of(&["for", "while"]) {
            let head = closing(tokens, at + 1).map(|end| &tokens[at + 2..end]).unwrap_or_default();
            let (start, condition) = match split(head, ";")[..] {
                [first, condition, _] => (first.len() + 1, condition),
                _ => (0, head),
            };
            conditions.extend(counting(condition).map(|place| at + 2 + start + place));
        }
        let what = match token.kind {
            Kind::Name if DECIDING.contains(&token.text) => Err("decides"),
            Kind::Name => {
                named(token).map_err(|why| format!("a statement of the test cannot run beside the code: {why}"))?;
                Ok(())
            }
            Kind::Sign if token.is("!") || (token.is_one_of(&COMPARING) && !conditions.contains(&at)) => {
                Err("compares")
            }
            _ => Ok(()),
        };
        what.map_err(|what| {
            format!(
                "`{}` in a statement {what} in the code's memory, where the code can change the result: write \
                 assertions of values, such as `assert(f(x) == 5);`, and no statement that {what}",
                token.text
            )
        })?;
    }
    Ok(())
}

/// The place of the one sign that compares in a condition that counts, as `i < n` does: one side is a variable alone.
fn counting(condition: &[Token]) -> Option<usize> {
    let [at] = signs(condition, &COMPARING)[..] else { return None };
    let is_variable = |side: &[Token]| matches!(side, [name] if name.kind == Kind::Name);
    let is_counting = is_variable(&condition[..at]) || is_variable(&condition[at + 1..]);
    (is_counting && condition[at].is_one_of(&COMPARING[..5])).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::super::text::{tokens, written};
    use super::*;

    fn assertions(text: &str) -> Result<Vec<String>, String> {
        let tokens = tokens(text)?;
        let parts = parts(&tokens)?;
        Ok(parts
            .iter()
            .map(|part| match part {
                Part::Statements(tokens) => written(text, tokens).to_owned(),
                Part::Assertion(tokens) => format!("? {}", written(text, tokens)),
            })
            .filter(|part| !part.is_empty())
            .collect())
    }

    #[test]
    fn a_test_has_statements_and_assertions() {
        let parts = |text| assertions(text).unwrap();
        assert_eq!(parts("assert(a);assert((b));"), ["? a", "? (b)"]);
        assert_eq!(
            parts("int main(void) { int a[] = {1}; assert(f(a)); free(a); return 0; }"),
            ["int a[] = {1};", "? f(a)", "free(a);"]
        );
        assert_eq!(
            parts("int f(int a[]); void g(); static int main() { assert(f(1)); return EXIT_SUCCESS; }"),
            ["? f(1)"]
        );
        assert_eq!(parts("{ int x = f(1); assert(x); } { assert(y); }"), ["{ int x = f(1);", "? x", "} {", "? y", "}"]);
        for text in [
            "for (int i = 0; i < n; i++) a[i] = i; assert(f(a));",
            "while (n > 0) { n = n / 10; } assert(f(a));",
            "while (p != NULL) p = p->next; do { x++; } while (x <= f(1)); assert(f(a));",
            "for (;;) break; assert(f(a));",
            "printf(\"if a == b\"); assert(f('?'));",
        ] {
            assert_eq!(parts(text).len(), 2, "{text}");
        }
    }

    #[test]
    fn an_assertion_runs_once() {
        for text in [
            "for (;;) { assert(f(1)); }",
            "for (;;) assert(f(1));",
            "while (x) assert(f(1));",
            "do assert(f(1)); while (x);",
            "again: assert(f(1));",
            "{ while (x) { { assert(f(1)); } } }",
            "void g(void) { assert(f(1)); }",
            "x = (assert(f(1)), 1);",
            "int main() { struct s x = { assert(f(1)); }; }",
        ] {
            assert!(assertions(text).unwrap_err().contains("in a loop"), "{text}");
        }
        for text in ["if (x) assert(f(1));", "if (x) { } else assert(f(1));", "if (x) { assert(f(1)); }"] {
            assert!(assertions(text).unwrap_err().contains("in a loop"), "{text}");
        }
        for text in ["assert f(1);", "assert(f(1))", "assert(f(1)), x;", "x = 1; assert"] {
            assert!(assertions(text).unwrap_err().contains("of the form"), "{text}");
        }
    }

    #[test]
    fn a_statement_does_not_compare() {
        for (text, what) in [
            ("int x = f(1) == 5;", "`==`"),
            ("int x = f(1) != 5;", "`!=`"),
            ("int x = f(1) < 5;", "`<`"),
            ("int x = !f(1);", "`!`"),
            ("int x = f(1) ? 5 : 6;", "`?`"),
            ("int x = a && b;", "`&&`"),
            ("for (i = 0; i < 3 && a[i] == b[i]; i++) ;", "`<`"),
            ("for (i = 0; a[i] != b[i]; i++) ;", "`!=`"),
            ("for (i = 0; i == 5; i++) ;", "`==`"),
            ("for (i = x < 5; i < 5; i++) ;", "`<`"),
            ("for (i = 0; i < 5; x = y < 5) ;", "`<`"),
            ("while (i < 3) x = y < z;", "`<`"),
            ("while (f(1) != 5) ;", "`!=`"),
            ("while (!x) ;", "`!`"),
            ("if (f(1) - 5) x = 1;", "`if`"),
            ("x = 1; return 1;", "`return`"),
            ("exit(0);", "`exit`"),
            ("int x = strcmp(f(1), \"a\");", "with a literal"),
            ("int x = memcmp(f(1), a, 4);", "each element"),
            ("int x = __builtin_memcmp(f(1), a, 4);", "`__builtin_memcmp`"),
            ("static_assert(sizeof(int) + 4);", "`static_assert`"),
        ] {
            let error = assertions(&format!("{text} assert(x);")).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_main_is_alone() {
        for text in [
            "int same(int a) { return 1; } int main() { assert(same(f(1))); }",
            "int main() { assert(same(f(1))); } int same(int a) { return 1; }",
            "int x = 5; int main() { assert(f(x)); }",
            "struct s { int x; }; int main() { assert(f(1)); }",
        ] {
            assert!(assertions(text).unwrap_err().contains("more than a `main`"), "{text}");
        }
        assert!(assertions("int main();").unwrap_err().contains("no body"));
    }
}

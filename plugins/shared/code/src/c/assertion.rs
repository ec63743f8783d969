//! Takes an assertion apart into expressions and the values that they should have.

use super::expression::own;
use super::literal;
use super::number::Number;
use super::text::{Kind, Token, bare, call, operators, signs, split, written};
use super::wanted::Wanted;

const LITERAL: &str = "one side must be a literal, such as `5` or `'a'`: the code could read and change a variable. \
                       For an array, write an assertion for each element, such as `a[0] == 1`";

/// The expressions of what is in `assert(…)`, and what each should be. `source` has the tokens.
///
/// # Errors
/// It cannot be compared outside of the code's memory.
pub(crate) fn read(source: &str, tokens: &[Token]) -> Result<Vec<(String, Wanted)>, String> {
    let mut found = Vec::new();
    parts(tokens, &mut found);
    // `assert(f(x) == 5 && "a message")`
    if found.len() > 1 {
        found.retain(|part| part.iter().any(|token| token.kind != Kind::Text));
    }
    let compared = found.into_iter().map(|part| compared(part).map(|(own, wanted)| (written(source, own), wanted)));
    let all: Result<Vec<_>, String> =
        compared.map(|each| each.map(|(text, wanted)| (text.to_owned(), wanted))).collect();
    all.map_err(|why| {
        format!("`assert({})` cannot be compared outside of the code's memory: {why}", written(source, tokens))
    })
}

/// The parts that all have to be true.
fn parts<'a, 'b>(tokens: &'a [Token<'b>], found: &mut Vec<&'a [Token<'b>]>) {
    let tokens = bare(tokens);
    match &split(tokens, "&&")[..] {
        [_] => found.push(tokens),
        several => several.iter().for_each(|part| parts(part, found)),
    }
}

type Compared<'a, 'b> = Result<(&'a [Token<'b>], Wanted), String>;

/// An expression, and what it should be.
fn compared<'a, 'b>(part: &'a [Token<'b>]) -> Compared<'a, 'b> {
    if !signs(part, &["||", "?"]).is_empty() {
        return Err("it has more than one way to be true: write the one value that is right".into());
    }
    let [at] = signs(part, &["==", "!=", "<", "<=", ">", ">="])[..] else { return truth(part) };
    let (left, right) = (bare(&part[..at]), bare(&part[at + 1..]));
    match part[at].text {
        "==" => equal(left, right),
        "!=" => different(left, right),
        sign @ ("<" | "<=") => near(left, right, sign == "<="),
        sign => near(right, left, sign == ">="),
    }
}

/// `f(x)`, `!f(x)` or `!strcmp(f(x), "text")`.
fn truth<'a, 'b>(part: &'a [Token<'b>]) -> Compared<'a, 'b> {
    match part {
        [not, rest @ ..] if not.is("!") => {
            let rest = bare(rest);
            text(rest).unwrap_or_else(|| own(rest, true).map(|()| (rest, Wanted::Truth(false))))
        }
        _ => own(part, true).map(|()| (part, Wanted::Truth(true))),
    }
}

/// What an expression is compared with.
enum Constant {
    Null,
    Number(Number),
}

fn constant(tokens: &[Token]) -> Option<Constant> {
    match bare(tokens) {
        [null] if null.is("NULL") => Some(Constant::Null),
        other => literal::number(other).map(Constant::Number),
    }
}

/// An expression, and the constant on its other side.
fn sides<'a, 'b>(left: &'a [Token<'b>], right: &'a [Token<'b>]) -> Result<(&'a [Token<'b>], Constant), String> {
    if literal::text(left).or_else(|| literal::text(right)).is_some() {
        return Err("it compares places in memory: write `strcmp(f(x), \"text\") == 0`".into());
    }
    if [left, right].iter().any(|side| side.iter().any(|token| token.is_one_of(&["NAN", "INFINITY", "HUGE_VAL"]))) {
        return Err("infinity and what is no number are no literals: write `isinf(f(x))` or `isnan(f(x))`".into());
    }
    match (constant(left), constant(right)) {
        (None, Some(constant)) => Ok((left, constant)),
        (Some(constant), None) => Ok((right, constant)),
        (Some(_), Some(_)) => Err("both sides are literals: compare what the code gives".into()),
        (None, None) => Err(LITERAL.into()),
    }
}

fn equal<'a, 'b>(left: &'a [Token<'b>], right: &'a [Token<'b>]) -> Compared<'a, 'b> {
    let (expression, constant) = sides(left, right)?;
    let number = match constant {
        Constant::Null => return own(expression, false).map(|()| (expression, Wanted::Truth(false))),
        Constant::Number(number) => number,
    };
    match text(expression).filter(|_| number.real() == 0.0) {
        Some(compared) => compared,
        None => own(expression, number.is_truth()).map(|()| (expression, Wanted::Equal(number))),
    }
}

fn different<'a, 'b>(left: &'a [Token<'b>], right: &'a [Token<'b>]) -> Compared<'a, 'b> {
    let (expression, constant) = sides(left, right)?;
    let is_truth = match constant {
        Constant::Null => false,
        Constant::Number(number) if number.real() == 0.0 => true,
        Constant::Number(_) => {
            return Err("many values are different: write the one that is right, such as `f(x) == 5`".into());
        }
    };
    own(expression, is_truth).map(|()| (expression, Wanted::Truth(true)))
}

/// A call of `strcmp` or `strncmp` whose one side is a literal.
fn text<'a, 'b>(expression: &'a [Token<'b>]) -> Option<Compared<'a, 'b>> {
    let expression = bare(expression);
    let (a, b, bytes) = match (call(expression, "strcmp").as_deref(), call(expression, "strncmp").as_deref()) {
        (Some([a, b]), _) => (*a, *b, None),
        (_, Some([a, b, bytes])) => (*a, *b, Some(*bytes)),
        _ => return None,
    };
    Some(match (literal::text(a), literal::text(b)) {
        (None, Some(text)) => beginning(a, text, bytes),
        (Some(text), None) => beginning(b, text, bytes),
        _ => Err("one side must be a text as a literal, in UTF-8: the code could read and change a variable".into()),
    })
}

fn beginning<'a, 'b>(side: &'a [Token<'b>], text: String, bytes: Option<&[Token]>) -> Compared<'a, 'b> {
    let side = bare(side);
    own(side, false)?;
    let Some(bytes) = bytes else { return Ok((side, Wanted::Text(text))) };
    match literal::number(bytes).map(Number::real) {
        Some(bytes) if bytes >= 1.0 => Ok((side, Wanted::Beginning(text, bytes as usize))),
        _ => Err("the length must be a literal above 0: write `strcmp(f(x), \"text\") == 0`".into()),
    }
}

/// `fabs(f(x) - 0.5) < 1e-6`
fn near<'a, 'b>(distance: &'a [Token<'b>], bound: &'a [Token<'b>], closed: bool) -> Compared<'a, 'b> {
    let unfit = || "an order has many right values: write `f(x) == 5` or `fabs(f(x) - 0.5) < 1e-6`".to_owned();
    let calls = ["fabs", "fabsf", "fabsl"].into_iter().find_map(|name| call(distance, name));
    let Some([inner]) = calls.as_deref() else { return Err(unfit()) };
    let within = literal::number(bound).ok_or("the bound must be a literal, such as `1e-6`")?.real();
    let inner = bare(inner);
    let [at] = operators(inner, &["-", "+"])[..] else { return Err(unfit()) };
    match sides(bare(&inner[..at]), bare(&inner[at + 1..]))? {
        (expression, Constant::Number(value)) => {
            own(expression, false)?;
            let value = if inner[at].is("+") { -value.real() } else { value.real() };
            Ok((expression, Wanted::Near { value, within, closed }))
        }
        (_, Constant::Null) => Err(unfit()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::Type;
    use super::super::text::tokens;
    use super::*;

    fn of(assertion: &str) -> Result<Vec<(String, Wanted)>, String> {
        read(assertion, &tokens(assertion).unwrap())
    }

    fn whole(value: i128) -> Wanted {
        Wanted::Equal(Number::whole(Type::Int, value))
    }

    fn near(value: f64, within: f64, closed: bool) -> Wanted {
        Wanted::Near { value, within, closed }
    }

    #[test]
    fn an_assertion_is_an_expression_and_a_value() {
        for (assertion, expression, wanted) in [
            ("f(1, 2) == 3", "f(1, 2)", whole(3)),
            ("(f(')') == '\\n')", "f(')')", whole(10)),
            ("-7 == f(a[0])", "f(a[0])", whole(-7)),
            ("f(\"==\") == true", "f(\"==\")", whole(1)),
            ("(f(2)) == (010)", "f(2)", whole(8)),
            ("f(x)", "f(x)", Wanted::Truth(true)),
            ("x", "x", Wanted::Truth(true)),
            ("!(f(x))", "f(x)", Wanted::Truth(false)),
            ("f(x) != 0", "f(x)", Wanted::Truth(true)),
            ("f(g(x)) == NULL", "f(g(x))", Wanted::Truth(false)),
            ("NULL != p->next", "p->next", Wanted::Truth(true)),
            ("f(2) == 2.5", "f(2)", Wanted::Equal(Number::double(2.5))),
            ("f(2) == 0.1f", "f(2)", Wanted::Equal(Number::float(0.1))),
            ("strcmp(f(\"a, b\"), \"x\\\"\" \"y\") == 0", "f(\"a, b\")", Wanted::Text("x\"y".into())),
            ("0 == strcmp(\"x\", b)", "b", Wanted::Text("x".into())),
            ("!strcmp(f(g(x)), \"\")", "f(g(x))", Wanted::Text(String::new())),
            ("strncmp(f(x), \"abc\", 2) == 0", "f(x)", Wanted::Beginning("abc".into(), 2)),
            ("fabs(f(1.5, -2) - -2.5e-1) < 1e-6", "f(1.5, -2)", near(-0.25, 1e-6, false)),
            ("fabsf((0.5 - f(x))) <= 1e-4", "f(x)", near(0.5, 1e-4, true)),
            ("1e-6 > fabs(f(x) - 2.0)", "f(x)", near(2.0, 1e-6, false)),
            ("fabs(f(x) + 1) < 0.01", "f(x)", near(-1.0, 0.01, false)),
            ("fabs(f(x) - 1.0 / 2) < 0.01", "f(x)", near(0.5, 0.01, false)),
            ("f(x) == 12 + 14", "f(x)", whole(26)),
            ("p->next == 0", "p->next", whole(0)),
        ] {
            assert_eq!(of(assertion), Ok(vec![(expression.to_owned(), wanted)]), "{assertion}");
        }
    }

    #[test]
    fn several_are_true_together() {
        let found = of("(f(1) == 1 && (g(2) && !h())) && \"it works\"").unwrap();
        let wanted = [("f(1)", whole(1)), ("g(2)", Wanted::Truth(true)), ("h()", Wanted::Truth(false))];
        assert_eq!(found, wanted.map(|(text, wanted)| (text.to_owned(), wanted)));
    }

    #[test]
    fn what_would_be_decided_beside_the_code_is_refused() {
        for (assertion, what) in [
            ("f(1) == g(1)", "one side must be a literal"),
            ("a[i] == b[i]", "each element"),
            ("f(1) == expected", "one side must be a literal"),
            ("f(1) == -INFINITY", "`isinf(f(x))`"),
            ("1 == 1", "both sides"),
            ("1", "alone"),
            ("0 && \"no\"", "alone"),
            ("\"yes\"", "alone"),
            ("f(1) == \"a\"", "strcmp(f(x)"),
            ("strcmp(f(1), g(1)) == 0", "in UTF-8"),
            ("strcmp(f(1), \"\\xff\") == 0", "in UTF-8"),
            ("strcmp(f(1), \"a\") > 0", "an order"),
            ("strcmp(f(1), \"a\") == 1", "with a literal"),
            ("strcmp(f(1), \"a\")", "with a literal"),
            ("strcmp(f(1), \"a\") != 0", "with a literal"),
            ("strncmp(f(1), \"a\", n) == 0", "length"),
            ("strncasecmp(f(1), \"Abc\", 3) == 0", "`strncasecmp`"),
            ("memcmp(a, b, 4) == 0", "each element"),
            ("f(1) > 2", "an order"),
            ("f(1) != 2", "many values"),
            ("f(1) == 1 || f(1) == 2", "more than one way"),
            ("abs(f(1)) == 4", "`abs`"),
            ("fabs(f(1)) < 4", "an order"),
            ("fabs(f(1) - g(1)) < 1e-6", "one side must be a literal"),
            ("fabs(f(1) - 0.5) < epsilon", "bound"),
            ("fabs(f(1) - 0.5 - 1) < 1", "an order"),
            ("f(1) - 5 == 0", "computes"),
            ("(int)(f(1) == 5) == 1", "computes"),
            ("(f(1) <= 5) == true", "computes"),
            ("check(f(1) == 5)", "true or false"),
            ("check(f(1) == 5) == 7", "`==`"),
            ("equal(f(1), 5)", "true or false"),
            ("equal(f(1), 5) == 1", "true or false"),
            ("!differ(f(1), 5)", "true or false"),
            ("f(1) == 1 == 1", "computes"),
        ] {
            let error = of(assertion).unwrap_err();
            assert!(error.contains(what) && error.contains("cannot be compared"), "{assertion}: {error}");
        }
    }
}

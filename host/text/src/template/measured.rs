//! Measures what a template joins: a template that doubles a string would otherwise take all memory in some forty steps.
//! Measures what it searches and compares, too: each is a step of the engine, however long the text or the list.

use super::budget::{COMPARED, KEEP, KEEP_BLOCK, KEEP_IN, MEASURE, SEARCHED, SPREAD};
use super::values::extent_within;
use minijinja::machinery::ast::{BinOpKind, CallArg, CompareOpKind, Expr, Stmt};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

/// The most bytes of a value that is written out and not measured.
const SHORT: usize = 1024;

/// The source with calls around what takes work, at the same lines, and the bytes of its longest literal text. The
/// calls are [`MEASURE`] for the operands of `~`, `+` and `*`, [`KEEP`], [`KEEP_IN`] and [`KEEP_BLOCK`] for the values
/// of `set`, [`SEARCHED`] for values that are sliced, searched or looked up, [`COMPARED`] for values that are compared,
/// and [`SPREAD`] for lists of arguments. A source that is not a template is not changed: the environment reports it.
pub(super) fn measured(source: &str, syntax: &SyntaxConfig) -> (String, usize) {
    let Ok(template) = parse(source, "", syntax.clone()) else { return (source.to_owned(), 0) };
    let mut found = Operands { source, edits: Vec::new(), longest: 0 };
    found.statement(&template);
    found.edits.sort_by_key(|(at, _)| *at);
    let (mut out, mut done) = (String::with_capacity(2 * source.len()), 0);
    for (at, text) in found.edits {
        out.extend([&source[done..at], text]);
        done = at;
    }
    out.push_str(&source[done..]);
    (out, found.longest)
}

/// The operands of a template: where each starts and ends.
struct Operands<'s> {
    source: &'s str,
    edits: Vec<(usize, &'static str)>,
    longest: usize,
}

impl Operands<'_> {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emitted) => self.expression(&emitted.expr),
            Stmt::ForLoop(each) => {
                self.expression(&each.iter);
                self.optional(&each.filter_expr);
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                with.assignments.iter().for_each(|(_, value)| self.expression(value));
                self.statements(&with.body);
            }
            Stmt::Set(set) => {
                let [start, end] = [set.target.span(), set.span()].map(|span| span.end_offset as usize);
                let value = self.source.get(start..end).map(after_brackets).and_then(|text| text.strip_prefix('='));
                if let Some(value) = value {
                    let keep = if sets_attribute(&set.target) { KEEP_IN } else { KEEP };
                    self.edits.push((end - value.len(), keep));
                }
                self.expression(&set.expr);
                if value.is_some() {
                    self.edits.push((end, "))"));
                }
            }
            Stmt::SetBlock(set) => {
                let end = set.target.span().end_offset as usize;
                if let Some(rest) = self.source.get(end..).map(after_brackets) {
                    self.edits.push((self.source.len() - rest.len(), KEEP_BLOCK));
                }
                self.optional(&set.filter);
                self.statements(&set.body);
            }
            Stmt::AutoEscape(block) => self.statements(&block.body),
            Stmt::FilterBlock(block) => {
                self.expression(&block.filter);
                self.statements(&block.body);
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Import(import) => self.expression(&import.expr),
            Stmt::FromImport(import) => self.expression(&import.expr),
            Stmt::Extends(extends) => self.expression(&extends.name),
            Stmt::Include(include) => self.expression(&include.name),
            Stmt::Macro(function) => {
                self.expressions(&function.defaults);
                self.statements(&function.body);
            }
            Stmt::CallBlock(block) => {
                self.expression(&block.call.expr);
                self.arguments(&block.call.args);
                self.expressions(&block.macro_decl.defaults);
                self.statements(&block.macro_decl.body);
            }
            Stmt::Do(call) => {
                self.expression(&call.call.expr);
                self.arguments(&call.call.args);
            }
            Stmt::EmitRaw(text) => self.longest = self.longest.max(text.raw.len()),
            Stmt::Continue(_) | Stmt::Break(_) => {}
        }
    }

    fn expressions(&mut self, expressions: &[Expr<'_>]) {
        expressions.iter().for_each(|expression| self.expression(expression));
    }

    fn optional(&mut self, expression: &Option<Expr<'_>>) {
        expression.iter().for_each(|expression| self.expression(expression));
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            let is_many = matches!(argument, CallArg::PosSplat(_) | CallArg::KwargSplat(_));
            self.wrapped(value, is_many.then_some(SPREAD));
        }
    }

    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.wrapped(&slice.expr, Some(SEARCHED));
                [&slice.start, &slice.stop, &slice.step].into_iter().for_each(|bound| self.optional(bound));
            }
            Expr::UnaryOp(operation) => self.expression(&operation.expr),
            Expr::BinOp(operation) => {
                let sign = match operation.op {
                    BinOpKind::Concat => Some('~'),
                    BinOpKind::Add => Some('+'),
                    BinOpKind::Mul => Some('*'),
                    _ => None,
                };
                // The outer of two calls that begin at the same place comes first.
                if let Some(sign) = sign {
                    let span = operation.span();
                    self.operands(span.start_offset, operation.left.span().end_offset, sign, span.end_offset);
                }
                self.expression(&operation.left);
                let compared = match operation.op {
                    BinOpKind::In => (!is_constant(&operation.right)).then_some(SEARCHED),
                    BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => {
                        let is_short = is_constant(&operation.left) || is_constant(&operation.right);
                        (!is_short).then_some(COMPARED)
                    }
                    _ => None,
                };
                self.wrapped(&operation.right, compared);
            }
            Expr::Compare(comparison) => {
                self.expression(&comparison.expr);
                for other in &comparison.ops {
                    let is_searched = matches!(other.op, CompareOpKind::In | CompareOpKind::NotIn);
                    self.wrapped(&other.expr, Some(if is_searched { SEARCHED } else { COMPARED }));
                }
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr);
                self.expression(&choice.true_expr);
                self.optional(&choice.false_expr);
            }
            Expr::Filter(filter) => {
                self.optional(&filter.expr);
                self.arguments(&filter.args);
            }
            Expr::Test(test) => {
                self.expression(&test.expr);
                self.arguments(&test.args);
            }
            Expr::GetAttr(lookup) => self.expression(&lookup.expr),
            Expr::GetItem(lookup) => {
                self.expression(&lookup.expr);
                // The key of a map is hashed.
                self.wrapped(&lookup.subscript_expr, (!is_constant(&lookup.subscript_expr)).then_some(SEARCHED));
            }
            Expr::Call(call) => {
                self.expression(&call.expr);
                // `loop.changed` compares its arguments with the last ones.
                match &call.expr {
                    Expr::GetAttr(method) if method.name == "changed" => {
                        for argument in &call.args {
                            if let CallArg::Pos(value) = argument {
                                self.wrapped(value, Some(COMPARED));
                            }
                        }
                    }
                    _ => self.arguments(&call.args),
                }
            }
            Expr::List(list) => self.expressions(&list.items),
            Expr::Tuple(tuple) => self.expressions(&tuple.items),
            Expr::Map(map) => {
                map.keys.iter().for_each(|key| self.wrapped(key, (!is_constant(key)).then_some(SEARCHED)));
                self.expressions(&map.values);
            }
        }
    }

    /// An expression in a call, if so. The call may begin within brackets, such as `(call((a)[0]))` for `(a)[0]`: it gives
    /// what it is given.
    fn wrapped(&mut self, expression: &Expr<'_>, call: Option<&'static str>) {
        if let Some(call) = call {
            self.edits.push((start(expression), call));
        }
        self.expression(expression);
        if call.is_some() {
            self.edits.push((expression.span().end_offset as usize, "))"));
        }
    }

    /// Notes the operands of the operation from `start` to `end`. The left one ends before its closing brackets.
    fn operands(&mut self, start: u32, left_end: u32, sign: char, end: u32) {
        let [start, left_end, end] = [start, left_end, end].map(|at| at as usize);
        let Some(after) = self.source.get(left_end..end) else { return };
        let before = after_brackets(after);
        if sign == '*' {
            // It repeats its operand.
            self.edits.extend([(start, MEASURE), (end, ")")]);
        }
        if before.starts_with(sign) {
            let operator = end - before.len();
            self.edits.extend([(start, MEASURE), (operator, ")"), (operator + 1, MEASURE), (end, ")")]);
        }
    }
}

/// Whether a `set` changes a namespace.
fn sets_attribute(target: &Expr<'_>) -> bool {
    match target {
        Expr::GetAttr(_) => true,
        Expr::List(list) => list.items.iter().any(sets_attribute),
        Expr::Tuple(tuple) => tuple.items.iter().any(sets_attribute),
        _ => false,
    }
}

/// Where the first word or sign of an expression starts, besides brackets and signs before it. The parser's spans begin
/// later where filters and attributes follow.
fn start(expression: &Expr<'_>) -> usize {
    match expression {
        Expr::Slice(slice) => start(&slice.expr),
        Expr::UnaryOp(operation) => start(&operation.expr),
        Expr::BinOp(operation) => start(&operation.left),
        Expr::Compare(comparison) => start(&comparison.expr),
        Expr::IfExpr(choice) => start(&choice.true_expr),
        Expr::Filter(filter) => filter.expr.as_ref().map_or(filter.span().start_offset as usize, start),
        Expr::Test(test) => start(&test.expr),
        Expr::GetAttr(lookup) => start(&lookup.expr),
        Expr::GetItem(lookup) => start(&lookup.expr),
        Expr::Call(call) => start(&call.expr),
        Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => {
            expression.span().start_offset as usize
        }
    }
}

/// Whether a value is written out, and so short that nothing that is done with it takes longer than a step.
fn is_constant(expression: &Expr<'_>) -> bool {
    // The parser's own `as_const` would compute `'x' * 1000000000000`.
    fn left(expression: &Expr<'_>, most: usize) -> Option<usize> {
        match expression {
            Expr::Const(constant) => extent_within(&constant.value, most).map(|extent| most - extent.bytes),
            Expr::UnaryOp(operation) => left(&operation.expr, most),
            Expr::List(list) => list.items.iter().try_fold(most, |most, item| left(item, most)),
            Expr::Tuple(tuple) => tuple.items.iter().try_fold(most, |most, item| left(item, most)),
            _ => None,
        }
    }
    left(expression, SHORT).is_some()
}

/// The text after closing brackets, which the parser does not count to an expression.
fn after_brackets(text: &str) -> &str {
    text.trim_start_matches(|char: char| char == ')' || char.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_measured_and_nothing_else() {
        for (source, expected) in [
            ("{{ a ~ b }}", "{{ M(a )~M( b) }}"),
            ("{{ 'é' + b ~ c }}", "{{ M('é' )+M( M(b )~M( c)) }}"),
            ("{{ (a|f(x) + (b)) ~ ((c)) }}", "{{ M((M(a|f(x) )+M( (b))) )~M( ((c))) }}"),
            ("{%- set x = (a if b else c)|trim ~ -1 -%}", "{%- set x =K(( M((a if b else c)|trim )~M( -1))) -%}"),
            ("{{ f(a.b[c + 1:], k=d * 2)[0] }}", "{{ f(S((a.b))[M(c )+M( 1):], k=M(M(d )*M( 2)))[0] }}"),
            (
                "{% for i in [a ~ b] if i + 1 is odd %}{% endfor %}",
                "{% for i in [M(a )~M( b)] if M(i )+M( 1 is odd) %}{% endfor %}",
            ),
            ("{{ {'k': a ~ b}['k'] ~ (a ~ b).c }}", "{{ M({'k': M(a )~M( b)}['k'] )~M( (M(a )~M( b)).c) }}"),
            (
                "{{ a\n ~\n b }} ~ {# a ~ b #}{% raw %}{{ a ~ b }}{% endraw %}",
                "{{ M(a\n )~M(\n b) }} ~ {# a ~ b #}{% raw %}{{ a ~ b }}{% endraw %}",
            ),
            (
                "{% macro m(x, y=a ~ b) %}{{ m(x ~ x) }}{% endmacro %}",
                "{% macro m(x, y=M(a )~M( b)) %}{{ m(M(x )~M( x)) }}{% endmacro %}",
            ),
            ("{{ a - b / c and d in e or not '~+*' }}", "{{ a - b / c and d in S((e)) or not '~+*' }}"),
            ("{{ a not in (b ~ c) and d == (e)|f(1) }}", "{{ a not in (S((M(b )~M( c)))) and d == (C((e)|f(1))) }}"),
            (
                "{{ a in 'bc' or a in ['b', 'c'] or a == 'b' or 1 < b }}",
                "{{ a in 'bc' or a in ['b', 'c'] or a == 'b' or 1 < b }}",
            ),
            (
                "{{ a == 'b' * 1000000000000 or a in ('b', -1) or a == ['b' * 9] }}",
                "{{ a == C((M(M('b' )*M( 1000000000000)))) or a in ('b', -1) or a == C(([M(M('b' )*M( 9))])) }}",
            ),
            ("{{ a < b.c.d <= (d) in e|f }}", "{{ a < C((b.c.d)) <= (C((d))) in S((e|f)) }}"),
            ("{{ a[b][c.d.e]['e'][0][-1:] }}", "{{ S((a[S((b))][S((c.d.e))]['e'][0]))[-1:] }}"),
            ("{{ a[1:]~b[1:][2:] }}", "{{ M(S((a))[1:])~M(S((S((b))[1:]))[2:]) }}"),
            ("{{ {a: 1, 'b': c} }}{{ (a + b)[1:] }}", "{{ {S((a)): 1, 'b': c} }}{{ (S((M(a )+M( b))))[1:] }}"),
            (
                "{{ ((a, b))[1:] }}{{ [a][-b] }}{{ [a][1:] }}",
                "{{ (S(((a, b))))[1:] }}{{ [a][-S((b))] }}{{ S(([a]))[1:] }}",
            ),
            (
                "{{ a[not b is c] }}{{ a == (b if c else d) }}",
                "{{ a[not S((b is c))] }}{{ a == (C((b if c else d))) }}",
            ),
            (
                "{{ a == {'b': c}.d }}{{ a in b.c(d)|e is f }}",
                "{{ a == C(({'b': c}.d)) }}{{ a in S((b.c(d)|e is f)) }}",
            ),
            (
                &format!("{{{{ a in '{0}' or a == '{0}' }}}}", "b".repeat(2000)),
                &format!("{{{{ a in S(('{0}')) or a == C(('{0}')) }}}}", "b".repeat(2000)),
            ),
            (
                "{{ f(*a, **b) }}{% if loop.changed(a, 1) %}{% endif %}",
                "{{ f(*A((a)), **A((b))) }}{% if loop.changed(C((a)), C((1))) %}{% endif %}",
            ),
            ("{% set n.x = (a, [b]) %}{% set y = 1, 2 %}", "{% set n.x =I(( (a, [b]))) %}{% set y =K(( 1, 2)) %}"),
            ("{% set (x, (n.y)) = z %}{% set x, n.y = z %}", "{% set (x, (n.y)) =I(( z)) %}{% set x, n.y =I(( z)) %}"),
            (
                "{% set (x, y) = z %}{% set t|upper %}=a{% endset %}",
                "{% set (x, y) =K(( z)) %}{% set t|K|upper %}=a{% endset %}",
            ),
            (
                "{%- set (t ) -%}a{% endset %}{% set u%}{% endset %}",
                "{%- set (t ) |K-%}a{% endset %}{% set u|K%}{% endset %}",
            ),
            ("{{ a ~ }}", "{{ a ~ }}"),
        ] {
            let syntax = SyntaxConfig::default();
            let (found, _) = measured(source, &syntax);
            let found_short =
                found.replace(MEASURE, "M(").replace(KEEP, "K((").replace(KEEP_IN, "I((").replace(KEEP_BLOCK, "|K");
            let found_short = found_short.replace(SEARCHED, "S((").replace(COMPARED, "C((").replace(SPREAD, "A((");
            assert_eq!(found_short, expected);
            assert_eq!(parse(&found, "", syntax.clone()).is_ok(), parse(source, "", syntax).is_ok());
        }
    }
}

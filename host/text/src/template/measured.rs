//! Measures what a template joins: a template that doubles a string would otherwise take all memory in some forty steps.

use super::budget::{KEEP, KEEP_BLOCK, KEEP_IN, MEASURE};
use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

/// The source with the operands of each `~`, `+` and `*` in calls of [`MEASURE`] and the values of each `set` in calls of
/// [`KEEP`], [`KEEP_IN`] or [`KEEP_BLOCK`], at the same lines, and the bytes of its longest literal text. A source that is
/// not a template is not changed: the environment reports it.
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
            self.expression(value);
        }
    }

    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                [&slice.start, &slice.stop, &slice.step].into_iter().for_each(|bound| self.optional(bound));
            }
            Expr::UnaryOp(operation) => self.expression(&operation.expr),
            Expr::BinOp(operation) => {
                self.expression(&operation.left);
                self.expression(&operation.right);
                let sign = match operation.op {
                    BinOpKind::Concat => '~',
                    BinOpKind::Add => '+',
                    BinOpKind::Mul => '*',
                    _ => return,
                };
                let span = operation.span();
                self.operands(span.start_offset, operation.left.span().end_offset, sign, span.end_offset);
            }
            Expr::Compare(comparison) => {
                self.expression(&comparison.expr);
                comparison.ops.iter().for_each(|other| self.expression(&other.expr));
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
                self.expression(&lookup.subscript_expr);
            }
            Expr::Call(call) => {
                self.expression(&call.expr);
                self.arguments(&call.args);
            }
            Expr::List(list) => self.expressions(&list.items),
            Expr::Tuple(tuple) => self.expressions(&tuple.items),
            Expr::Map(map) => {
                self.expressions(&map.keys);
                self.expressions(&map.values);
            }
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
            ("{{ f(a.b[c + 1:], k=d * 2)[0] }}", "{{ f(a.b[M(c )+M( 1):], k=M(M(d )*M( 2)))[0] }}"),
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
            ("{{ a - b / c and d in e or not '~+*' }}", "{{ a - b / c and d in e or not '~+*' }}"),
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
            assert_eq!(found_short, expected);
            assert_eq!(parse(&found, "", syntax.clone()).is_ok(), parse(source, "", syntax).is_ok());
        }
    }
}

//! The engine's own filters and tests, whose work is counted.

use super::budget::{
    CHANGE, ITEM, ITEM_BYTES, SEARCH, SPELL, charge, charge_bytes, charge_work, listed, measure, read,
};
use super::values::{Extent, Result, extent_within};
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, State, Value, filters, tests as checks};

/// The work of a filter or a test.
#[derive(Clone, Copy)]
enum Work {
    /// With each byte of the texts of its arguments, and with each item of their lists.
    Bytes(u64),
    /// With each item of a list and all of the further arguments.
    Each,
    /// The same, and rows of so many items as the first argument says.
    Rows,
    /// With two items of a list, as often as they are compared to sort it.
    Sort,
}

/// Puts them in place of the engine's own.
pub(super) fn add(environment: &mut Environment<'static>) {
    let all = [
        ("upper", Work::Bytes(CHANGE), Value::from_function(filters::upper)),
        ("lower", Work::Bytes(CHANGE), Value::from_function(filters::lower)),
        ("escape", Work::Bytes(CHANGE), Value::from_function(filters::escape)),
        ("e", Work::Bytes(CHANGE), Value::from_function(filters::escape)),
        ("title", Work::Bytes(SPELL), Value::from_function(filters::title)),
        ("safe", Work::Bytes(SEARCH), Value::from_function(filters::safe)),
        ("split", Work::Bytes(SEARCH), Value::from_function(filters::split)),
        ("lines", Work::Bytes(SEARCH), Value::from_function(filters::lines)),
        ("reverse", Work::Bytes(SEARCH), Value::from_function(filters::reverse)),
        ("items", Work::Bytes(0), Value::from_function(filters::items)),
        ("batch", Work::Rows, Value::from_function(filters::batch)),
        ("slice", Work::Rows, Value::from_function(filters::slice)),
        ("map", Work::Each, Value::from_function(filters::map)),
        ("select", Work::Each, Value::from_function(filters::select)),
        ("reject", Work::Each, Value::from_function(filters::reject)),
        ("selectattr", Work::Each, Value::from_function(filters::selectattr)),
        ("rejectattr", Work::Each, Value::from_function(filters::rejectattr)),
        ("min", Work::Sort, Value::from_function(filters::min)),
        ("max", Work::Sort, Value::from_function(filters::max)),
        ("sort", Work::Sort, Value::from_function(filters::sort)),
        ("unique", Work::Sort, Value::from_function(filters::unique)),
        ("groupby", Work::Sort, Value::from_function(filters::groupby)),
        ("dictsort", Work::Sort, Value::from_function(filters::dictsort)),
    ];
    for (name, work, filter) in all {
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let made = called(work, &filter, state, args)?;
            // What is made only as it is gone through would be made each time.
            measure(listed(made)?)
        });
    }
    let comparisons: [(&[&str], Value); 6] = [
        (&["eq", "equalto", "=="], Value::from_function(checks::is_eq)),
        (&["ne", "!="], Value::from_function(checks::is_ne)),
        (&["lt", "lessthan", "<"], Value::from_function(checks::is_lt)),
        (&["le", "<="], Value::from_function(checks::is_le)),
        (&["gt", "greaterthan", ">"], Value::from_function(checks::is_gt)),
        (&["ge", ">="], Value::from_function(checks::is_ge)),
    ];
    let others: [(&[&str], u64, Value); 5] = [
        (&["in"], SEARCH, Value::from_function(checks::is_in)),
        (&["lower"], CHANGE, Value::from_function(checks::is_lower)),
        (&["upper"], CHANGE, Value::from_function(checks::is_upper)),
        (&["startingwith"], 0, Value::from_function(checks::is_startingwith)),
        (&["endingwith"], 0, Value::from_function(checks::is_endingwith)),
    ];
    let all = comparisons.into_iter().map(|(names, test)| (names, 0, test)).chain(others);
    for (names, work, test) in all {
        for name in names {
            let test = test.clone();
            environment.add_test(*name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
                Ok(called(Work::Bytes(work), &test, state, args)?.is_true())
            });
        }
    }
}

fn called(work: Work, function: &Value, state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value> {
    let args = args.into_values();
    let (first, others) = args.split_first().map_or((&Value::UNDEFINED, &args[..]), |args| args);
    match work {
        Work::Bytes(work) => args.iter().try_for_each(|arg| read(arg, work))?,
        Work::Each | Work::Rows => {
            read(first, 0)?;
            let items = others.first().and_then(Value::as_usize).filter(|_| matches!(work, Work::Rows));
            charge(items.unwrap_or_default().saturating_mul(ITEM_BYTES))?;
            let bytes = others.iter().map(bytes).fold(CALL, usize::saturating_add);
            charge_bytes(first.len().unwrap_or_default().saturating_mul(bytes), CHANGE)?;
        }
        Work::Sort => {
            args.iter().try_for_each(|arg| read(arg, CHANGE))?;
            let (mut items, mut longest) = (0_u64, bytes(others.first().unwrap_or(&Value::UNDEFINED)));
            if matches!(first.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
                for item in first.try_iter()? {
                    let value = if first.kind() == ValueKind::Map { bytes(&first.get_item(&item)?) } else { 0 };
                    (items, longest) = (items + 1, longest.max(bytes(&item)).max(value));
                }
            } else {
                items = first.len().unwrap_or_default() as u64;
            }
            let compared = items.saturating_mul(u64::from(items.max(2).ilog2()));
            charge_work(compared.saturating_mul(ITEM + (2 * longest) as u64 * CHANGE))?;
        }
    }
    function.call(state, &args)
}

/// The work of calling a filter or a test, as bytes.
const CALL: usize = 16;

/// The bytes of a value: it was found not to be too large, or is refused now.
fn bytes(value: &Value) -> usize {
    extent_within(value, usize::MAX).map_or(usize::MAX / 64, Extent::text_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::budget::{WORK, is_used_up, needed, start};
    use super::super::measured::measured;
    use super::super::python;
    use super::*;
    use minijinja::context;

    /// What goes through a text or a list, or compares it, takes work: each is one step of the engine.
    #[test]
    fn whatever_reads_a_long_text_or_list_takes_work() {
        let (environment, syntax) = (python::environment().unwrap(), python::syntax().unwrap());
        let render = |expression: &str, work: u64| {
            start(1 << 20, 0, work);
            let list: Value = (0..100).map(Value::from).collect();
            let source = format!("{{% if {expression} %}}{{% endif %}}");
            let values = context! { s => "x".repeat(1000), l => list.clone(), k => list, d => context! { a => 1 } };
            environment.render_str(&measured(&source, &syntax).0, values)
        };
        for expression in [
            "s|upper",
            "s|lower",
            "s|title",
            "s|capitalize",
            "s|escape",
            "s|e",
            "s|safe",
            "s|reverse",
            "s|split",
            "s|lines",
            "s|list",
            "s|wordcount",
            "[s]|string",
            "[s]|tojson",
            "s|tojson",
            "s|trim('x')",
            "s|replace('x', 'y')",
            "l|max",
            "l|min",
            "l|sort",
            "l|unique",
            "l|sum",
            "l|list",
            "l|reverse",
            "l|join",
            "l|string",
            "l|tojson",
            "l|batch(2)",
            "l|slice(2)",
            "l|map('string')",
            "l|select",
            "l|reject('odd')",
            "l|selectattr('x')",
            "l|rejectattr('x')",
            "l|groupby('x')",
            "{'x': l}|dictsort",
            "{'x': l}|items",
            "'%s'|format(s)",
            "range(100)",
            "s[1:]",
            "l[1:]",
            "'y' in s",
            "5 in l",
            "s in l",
            "l == k",
            "l != k",
            "l < k",
            "1 < l < k",
            "d[s]",
            "{s: 1}",
            "s is in s",
            "l is eq k",
            "l is lessthan k",
            "s is upper",
            "s is lower",
            "d.get(s)",
            "l.count(5)",
            "l.index(9)",
            "s.find('y')",
            "s.count('y')",
            "s.split('y')",
            "s.rsplit()",
            "s.splitlines()",
            "s.upper()",
            "s.title()",
            "s.swapcase()",
            "s.isalpha()",
            "s.strip('x')",
            "s.rstrip('x')",
            "s.replace('x', 'y')",
            "s.partition('y')",
            "s.join(['a', 'b'])",
            "','.join(l)",
            "s.center(5)",
            "'{}'.format(s)",
            "s.endswith(l)",
        ] {
            let error = render(expression, 50).expect_err(expression);
            assert!(is_used_up(&error), "{expression}: {error:#}");
            let whole = render(expression, WORK);
            assert!(
                whole.as_ref().is_ok_and(String::is_empty) || !is_used_up(whole.as_ref().unwrap_err()),
                "{expression}"
            );
        }
        for expression in
            ["s|length", "l|length", "l|first", "s|default('y')", "d.a", "d['a']", "s == 'y'", "s.startswith('y')"]
        {
            assert!(render(expression, 50).is_ok(), "{expression}");
        }
        for expression in ["l|chain(l)", "l|zip(l)", "l|pprint", "debug()"] {
            assert!(render(expression, WORK).is_err(), "{expression}");
        }
    }

    #[test]
    fn a_joined_text_is_no_longer_than_others() {
        let environment = python::environment().unwrap();
        let join = |between: &str| {
            start(1000, 0, WORK);
            let list: Value = (0..20).map(Value::from).collect();
            environment.render_str("{{ l|join(s)|length }}", context! { l => list, s => between })
        };
        assert_eq!(join("xx").unwrap(), "68");
        assert!(is_used_up(&join(&"x".repeat(60)).unwrap_err()) && needed() > 1000);
    }

    #[test]
    fn a_sort_takes_work_for_the_longest_text_that_it_compares() {
        let mut environment = Environment::new();
        add(&mut environment);
        let work = |items: usize, length: usize| {
            let list: Value = (0..items).map(|item| Value::from(format!("{item:0length$}"))).collect();
            let is_enough = |work: u64| {
                start(1 << 20, 0, work);
                environment.render_str("{{ l|sort|length }}", context! { l => list.clone() }).is_ok()
            };
            (0..40).find(|power| is_enough(1 << power)).unwrap()
        };
        assert!(work(64, 1000) > work(64, 10) + 3 && work(512, 100) > work(64, 100) + 2);
    }
}

//! Lists of tables with names, such as `[[reward]]`: a table is identified by its name, not by its place.

use toml::{Table, Value};

/// The names of the tables in `list`, in order; `None` if the list is empty or has an item that is not a table with a
/// name.
pub fn table_names(list: &[Value]) -> Option<Vec<&str>> {
    let names: Option<Vec<&str>> = list.iter().map(|item| table_name(item.as_table()?)).collect();
    names.filter(|names| !names.is_empty())
}

/// The `name` in `table`.
pub fn table_name(table: &Table) -> Option<&str> {
    table.get("name")?.as_str()
}

/// The table of `list` whose name `key` begins with, and the rest of the key: `weight` of `format.weight`. A name may
/// have dots; the longest one counts.
pub fn find_named<'a, 'k>(list: &'a mut [Value], key: &'k str) -> Option<(&'a mut Table, &'k str)> {
    let rest = |table: &Table| key.strip_prefix(table_name(table)?)?.strip_prefix('.');
    let named = list.iter_mut().filter_map(|item| {
        let table = item.as_table_mut()?;
        let rest = rest(table)?;
        Some((table, rest))
    });
    named.min_by_key(|(_, rest)| rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Value> {
        text.parse::<Table>().unwrap().remove("a").unwrap().as_array().unwrap().clone()
    }

    #[test]
    fn only_lists_of_tables_with_names_are_named() {
        assert_eq!(table_names(&list("a = [{name = 'x'}, {name = 'y', b = 1}]")), Some(vec!["x", "y"]));
        for other in ["a = []", "a = [1]", "a = [{name = 'x'}, {b = 1}]", "a = [{name = 1}]", "a = ['x']"] {
            assert_eq!(table_names(&list(other)), None, "{other}");
        }
    }

    #[test]
    fn the_longest_name_counts() {
        let mut both = list("a = [{name = 'v'}, {name = 'v.2'}]");
        let found = |(table, rest): (&mut Table, &str)| (table_name(table).unwrap().to_owned(), rest.to_owned());
        assert_eq!(find_named(&mut both, "v.2.weight").map(found), Some(("v.2".into(), "weight".into())));
        assert_eq!(find_named(&mut both, "v.weight").map(found), Some(("v".into(), "weight".into())));
        assert_eq!(find_named(&mut both, "v2.weight").map(found), None);
        assert_eq!(find_named(&mut both, "v").map(found), None);
    }
}

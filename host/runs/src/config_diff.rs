//! The keys in which two configurations differ.

use crate::named_tables::table_names;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A key, and its value on each side, where it has one.
pub type Difference<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// The keys whose values differ, in order. A table of a list is named by its `name`: `reward.format.weight`.
pub fn differences<'a>(one: &'a Table, other: &'a Table) -> Vec<Difference<'a>> {
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    flatten(one, "", &mut ours);
    flatten(other, "", &mut theirs);
    let mut keys: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let both = keys.into_iter().map(|key| (key.clone(), ours.get(key).copied(), theirs.get(key).copied()));
    both.filter(|(_, one, other)| one != other).collect()
}

/// Collects the values of a table that are no tables, by their keys.
fn flatten<'a>(table: &'a Table, before: &str, found: &mut BTreeMap<String, &'a Value>) {
    for (name, value) in table {
        let key = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        match value {
            Value::Table(table) => flatten(table, &key, found),
            Value::Array(list) => match table_names(list) {
                Some(names) if is_unique(&names) => {
                    let tables = list.iter().filter_map(Value::as_table);
                    names.iter().zip(tables).for_each(|(name, table)| flatten(table, &format!("{key}.{name}"), found));
                }
                _ => {
                    found.insert(key, value);
                }
            },
            _ => {
                found.insert(key, value);
            }
        }
    }
}

fn is_unique(names: &[&str]) -> bool {
    names.iter().enumerate().all(|(number, name)| !names.iter().take(number).any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_keys_and_both_values() {
        let one: Table = "seed = 1\nlist = [1]\n[[reward]]\nname = 'a'\nweight = 1.0\n[[reward]]\nname = 'b'\nweight = 2.0\n[gone]\nx = 1"
            .parse()
            .unwrap();
        let other: Table =
            "seed = 1\nlist = [2]\n[[reward]]\nname = 'b'\nweight = 3.0\n[[reward]]\nname = 'a'\nweight = 1.0\nnew = 'y'".parse().unwrap();
        let found: Vec<_> = differences(&one, &other)
            .into_iter()
            .map(|(key, one, other)| (key, one.map(Value::to_string), other.map(Value::to_string)))
            .collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("gone.x".to_owned(), text("1"), None),
                ("list".to_owned(), text("[1]"), text("[2]")),
                ("reward.a.new".to_owned(), None, text("\"y\"")),
                ("reward.b.weight".to_owned(), text("2.0"), text("3.0")),
            ]
        );
        assert!(differences(&one, &one).is_empty());
        let twice: Table = "[[reward]]\nname = 'a'\n[[reward]]\nname = 'a'".parse().unwrap();
        assert_eq!(differences(&twice, &Table::new()).len(), 1);
    }
}

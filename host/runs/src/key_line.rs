//! The line of a key in a TOML file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line of `key` in `text`, from 1. A table of a list is selected by its name, `reward.format.weight`, or by its
/// number, `tool[0].path`.
pub(crate) fn line_of(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let start = in_table(table.get_ref(), key)?;
    Some(1 + text.get(..start)?.matches('\n').count())
}

/// Where `key` starts in the text of `table`.
fn in_table(table: &DeTable<'_>, key: &str) -> Option<usize> {
    table.iter().find_map(|(name, value)| match key.strip_prefix(name.get_ref().as_ref())? {
        "" => Some(name.span().start),
        rest => in_value(value, rest),
    })
}

/// Where the key starts that ends with `rest`: `.weight` or `[0].path`.
fn in_value(value: &Spanned<DeValue<'_>>, rest: &str) -> Option<usize> {
    match value.get_ref() {
        DeValue::Table(table) => in_table(table, rest.strip_prefix('.')?),
        DeValue::Array(list) => list.iter().enumerate().find_map(|(number, item)| {
            let named = || rest.strip_prefix('.')?.strip_prefix(item.get_ref().get("name")?.get_ref().as_str()?);
            match rest.strip_prefix(&format!("[{number}]")).or_else(named)? {
                "" => Some(item.span().start),
                rest => in_value(item, rest),
            }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_where_it_is_written() {
        let text = "seed = 1\n[train]\nsteps = 2\n\nloss.kl = { coefficient = 0.1 }\n[[reward]]\nname = \"a.b\"\nweight = 1\n[[reward]]\nname = \"a\"\nweight = 2\n[[tool]]\npath = \"t\"\n";
        for (key, line) in [
            ("seed", 1),
            ("train", 2),
            ("train.steps", 3),
            ("train.loss.kl.coefficient", 5),
            ("reward.a.b.weight", 8),
            ("reward.a.weight", 11),
            ("tool[0].path", 13),
        ] {
            assert_eq!(line_of(text, key), Some(line), "{key}");
        }
        for absent in ["train.step", "reward.c.weight", "tool[1].path", "seed.x", ""] {
            assert_eq!(line_of(text, absent), None, "{absent}");
        }
        assert_eq!(line_of("a = ", "a"), None);
    }
}

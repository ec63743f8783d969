//! The data sources of the rows of a dataset.

use indexmap::IndexSet;

/// The data source of each row of a dataset; each name is in memory once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSources {
    names: IndexSet<String>,
    /// By row: 0 without a data source, else one more than the number of the name.
    of_rows: Vec<u32>,
}

/// The rows of a data source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRows<'a> {
    /// Its name; absent for the rows without a data source.
    pub name: Option<&'a str>,
    /// The number of the first of them.
    pub first: usize,
    /// How many there are.
    pub count: usize,
}

impl RowSources {
    /// Adds the data source of the next row.
    pub fn push(&mut self, name: Option<&str>) {
        let number = name.map_or(0, |name| match self.names.get_index_of(name) {
            Some(number) => number + 1,
            None => self.names.insert_full(name.to_owned()).0 + 1,
        });
        // There are no more names than rows, and no more rows than a run can draw: fewer than 2³².
        self.of_rows.push(number as u32);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.of_rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.of_rows.is_empty()
    }

    /// The data source of a row; `None` without one.
    pub fn get(&self, row: usize) -> Option<&str> {
        let number = self.of_rows.get(row)?.checked_sub(1)?;
        self.names.get_index(number as usize).map(String::as_str)
    }

    /// The data sources, by their first rows.
    pub fn each(&self) -> Vec<SourceRows<'_>> {
        let mut places = vec![None; self.names.len() + 1];
        let mut sources: Vec<SourceRows<'_>> = Vec::new();
        for (row, number) in self.of_rows.iter().enumerate() {
            match places[*number as usize] {
                Some(place) => {
                    let source: &mut SourceRows<'_> = &mut sources[place];
                    source.count += 1;
                }
                None => {
                    places[*number as usize] = Some(sources.len());
                    sources.push(SourceRows { name: self.get(row), first: row, count: 1 });
                }
            }
        }
        sources
    }
}

impl<'a> FromIterator<Option<&'a str>> for RowSources {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(names: I) -> Self {
        let mut sources = Self::default();
        names.into_iter().for_each(|name| sources.push(name));
        sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_source_and_each_source_its_rows() {
        let names = [Some("b"), None, Some("a"), Some("b"), Some(""), None, Some("b")];
        let sources: RowSources = names.into_iter().collect();
        assert_eq!((0..names.len()).map(|row| sources.get(row)).collect::<Vec<_>>(), names);
        assert_eq!((sources.len(), sources.get(7)), (7, None));
        let each = |name, first, count| SourceRows { name, first, count };
        let expected = [each(Some("b"), 0, 3), each(None, 1, 2), each(Some("a"), 2, 1), each(Some(""), 4, 1)];
        assert_eq!(sources.each(), expected);
        assert_eq!(RowSources::default().each(), []);
    }
}

//! The rewards that a reward waits for: its gate, and those in its `after`.

use crate::condition::When;

/// The key of the configuration by which one reward waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    OnlyIf,
    After,
}

impl Key {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OnlyIf => "only_if",
            Self::After => "after",
        }
    }
}

impl When {
    /// The names of the rewards that a reward with these conditions waits for.
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = (Key, &str)> {
        let gate = self.only_if.iter().map(|condition| (Key::OnlyIf, condition.plugin.as_str()));
        gate.chain(self.after.iter().map(|name| (Key::After, name.as_str())))
    }
}

/// A circle of rewards that wait for each other, in words: `only_if` of `a` names `b`, `after` of `b` names `a`.
/// Unknown names are ignored.
pub(crate) fn find_circle(rewards: &[(&str, &When)]) -> Option<String> {
    let mut search = Search { rewards, done: vec![false; rewards.len()], way: Vec::new() };
    (0..rewards.len()).find_map(|number| search.visit(number))
}

/// A depth-first search.
struct Search<'a> {
    rewards: &'a [(&'a str, &'a When)],
    /// The rewards that lead to no circle.
    done: Vec<bool>,
    /// The path from the reward where the search began: each reward, and the key by which it waits for the next.
    way: Vec<(usize, Key)>,
}

impl Search<'_> {
    fn visit(&mut self, number: usize) -> Option<String> {
        if let Some(start) = self.way.iter().position(|(on_way, _)| *on_way == number) {
            return Some(self.shown(&self.way[start..]));
        }
        if self.done[number] {
            return None;
        }
        for (key, name) in self.rewards[number].1.waits_for() {
            if let Some(next) = self.rewards.iter().position(|(other, _)| *other == name) {
                self.way.push((number, key));
                let found = self.visit(next);
                self.way.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        self.done[number] = true;
        None
    }

    fn shown(&self, circle: &[(usize, Key)]) -> String {
        let name = |at: usize| self.rewards[circle[at % circle.len()].0].0;
        let link = |at: usize| format!("`{}` of `{}` names `{}`", circle[at].1.as_str(), name(at), name(at + 1));
        (0..circle.len()).map(link).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(only_if: Option<&str>, after: &[&str]) -> When {
        let only_if = only_if.map(|name| format!("{name} > 0").parse().unwrap());
        When { only_if, after: after.iter().map(|name| (*name).to_owned()).collect(), ..When::default() }
    }

    #[test]
    fn a_circle_is_named_link_by_link() {
        let found = |rewards: &[(&str, When)]| {
            find_circle(&rewards.iter().map(|(name, when)| (*name, when)).collect::<Vec<_>>())
        };
        assert_eq!(found(&[("a", when(None, &["a"]))]).unwrap(), "`after` of `a` names `a`");
        assert_eq!(found(&[("a", when(Some("a"), &[]))]).unwrap(), "`only_if` of `a` names `a`");
        // The path into the circle is not part of it.
        let mixed = [
            ("x", when(None, &["y", "a"])),
            ("y", when(None, &[])),
            ("a", when(Some("b"), &[])),
            ("b", when(Some("y"), &["y", "a"])),
        ];
        assert_eq!(found(&mixed).unwrap(), "`only_if` of `a` names `b`, `after` of `b` names `a`");
        // Two paths to the same reward are not a circle.
        let diamond = [
            ("a", when(None, &["b", "c"])),
            ("b", when(Some("d"), &[])),
            ("c", when(None, &["d"])),
            ("d", when(None, &["nobody"])),
        ];
        assert_eq!(found(&diamond), None);
    }
}

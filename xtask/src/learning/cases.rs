//! What `cargo xtask learning` trains with.

use crate::failure::Result;
use crate::setup::cannot;
use std::fs;
use std::path::Path;

/// Seeds of most cases.
pub const SEEDS: u64 = 3;
/// The names of `train.algorithm` that no recipe has, with the loss that belongs to them.
const ALGORITHMS: [(&str, &str); 6] = [
    ("grpo_passk", "vanilla"),
    ("gpg", "gpg"),
    ("optimal_token_baseline", "vanilla"),
    ("tir_optimal_token_baseline", "vanilla"),
    ("raft", "gpg"),
    ("distillation", "gpg"),
];
/// The checkpoint that `distillation` learns from: the end of the recipe of GRPO with the first seed.
pub const TEACHER: &str = "runs/learning-grpo-1/checkpoints/step-000060";
/// The names of `train.loss.policy` that no recipe has.
const LOSSES: [&str; 10] =
    ["gspo_token", "icepop", "m2po", "sapo", "geo_mean", "clip_cov", "kl_cov", "dppo_tv", "dppo_kl", "dro"];

/// PPO with a critic, and GRPO, each from the share of right digits alone and with credit for each digit: name, algorithm
/// and parameters of the reward.
const CREDIT: [(&str, &str, &str); 4] = [
    ("GRPO, the share alone", "grpo", ""),
    ("GRPO, the share and credit", "grpo", "params = { right = 0.5, wrong = -0.5 }\n"),
    ("PPO, the share alone", PPO, ""),
    ("PPO, credit alone", PPO, "params = { score = false, right = 0.25, wrong = -0.25 }\n"),
];
/// PPO as in its recipe.
const PPO: &str = "gae";

/// What a run adds to `demo/train.toml`.
pub struct Case {
    pub name: String,
    /// TOML.
    pub settings: String,
    pub kind: Kind,
}

/// The part of the page that a case belongs to.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Recipe,
    /// A name that no recipe has.
    Name,
    /// A comparison of what a critic does with credit.
    Credit,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Recipe, Self::Name, Self::Credit];

    /// How many seeds its cases have.
    pub fn seeds(self) -> u64 {
        if self == Self::Name { 1 } else { SEEDS }
    }

    /// The name of the picture, its title, and the heading of the part.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Recipe => ["recipes", "The recipes: mean over seeds", "The recipes"],
            Self::Name => ["others", "The other names", "The other names"],
            Self::Credit => ["credit", "Credit for each digit: mean over seeds", "A critic and credit for tokens"],
        }
    }
}

/// The recipes of the page, and each name that none of them has.
pub fn cases(root: &Path) -> Result<Vec<Case>> {
    let path = root.join("docs/algorithms.md");
    let page = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let other = |name: &str, settings: String| Case { name: name.to_owned(), settings, kind: Kind::Name };
    let algorithms = ALGORITHMS.map(|(name, loss)| {
        let teacher = if name == "distillation" { format!("reference.path = {TEACHER:?}\n") } else { String::new() };
        other(name, format!("[train]\nalgorithm = \"{name}\"\nloss.policy = \"{loss}\"\n{teacher}"))
    });
    let losses = LOSSES.map(|name| other(name, format!("[train]\nloss.policy = \"{name}\"\n")));
    let recipes = recipes(&page);
    let ppo = recipes.iter().find(|recipe| recipe.settings.contains("\"gae\"")).map(|recipe| recipe.settings.as_str());
    let credit = CREDIT.map(|(name, algorithm, params)| {
        let train = if algorithm == PPO { ppo.unwrap_or_default() } else { "[train]\nalgorithm = \"grpo\"\n" };
        let rewards = format!(
            "[[reward]]\nname = \"answer\"\nweight = 0.0\n\n[[reward]]\nname = \"items\"\n\
             path = \"target/plugins/item-credit.wasm\"\n{params}\n"
        );
        Case { name: name.to_owned(), settings: rewards + train, kind: Kind::Credit }
    });
    Ok(recipes.into_iter().chain(algorithms).chain(losses).chain(credit).collect())
}

/// The blocks of TOML below a paragraph that begins with a method in bold.
fn recipes(page: &str) -> Vec<Case> {
    let (mut found, mut method, mut block) = (Vec::new(), String::new(), None);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```toml") => block = Some(String::new()),
            (Some(_), "```") => {
                let settings = block.take().unwrap_or_default();
                found.push(Case { name: method.clone(), settings, kind: Kind::Recipe });
            }
            (Some(text), line) => *text += &format!("{line}\n"),
            (None, line) => {
                if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
                    name.clone_into(&mut method);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_from_the_page() {
        let found = recipes(
            "**GRPO**, as published.\n\n```toml\n[train]\n```\ntext\n```sh\nls\n```\n**A B**\n```toml\na = 1\n```\n",
        );
        let found: Vec<_> = found.iter().map(|case| (case.name.as_str(), case.settings.as_str())).collect();
        assert_eq!(found, [("GRPO", "[train]\n"), ("A B", "a = 1\n")]);
    }

    #[test]
    fn every_name_of_the_page_has_a_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = fs::read_to_string(root.join("docs/algorithms.md")).unwrap();
        let cases = cases(&root).unwrap();
        for heading in ["\n## Advantages\n", "\n## Losses\n"] {
            let section = page.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
            let names = section.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0));
            let names: Vec<&str> = names.filter(|name| !name.contains('.')).collect();
            assert!(names.len() > 10, "{names:?}");
            for name in names {
                assert!(cases.iter().any(|case| case.settings.contains(&format!("\"{name}\""))), "{name}");
            }
        }
    }
}

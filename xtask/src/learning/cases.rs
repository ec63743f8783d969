//! What `cargo xtask learning` trains with.

use super::few_rows;
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

/// Ways to draw tokens: name, and what they add to `demo/train.toml`. The grammar is the form that the demo rewards.
const DRAWS: [(&str, &str); 4] = [
    ("as the demo", ""),
    ("int8", "[rollout]\nquantization = \"int8\"\n\n[train.off_policy]\nrollout_is = \"token\"\n"),
    ("a grammar", "[rollout]\ngrammar = { regex = 'Answer: [0-9]( [0-9])*' }\n"),
    (
        "a grammar without masks",
        "[rollout]\ngrammar = { regex = 'Answer: [0-9]( [0-9])*' }\n\n[train.off_policy]\nsampling_mask = false\n",
    ),
];

/// The reward for the form is 0.1, whether the answer is right or wrong.
const NEAR_HALF: &str = "sampler = \"plugin:draws\"\n\n[plugin.draws]\npath = \"target/plugins/near-half.wasm\"\n\
                         params = { lowest = 0.1, highest = 1.1 }\n";

/// What a run adds to the configuration of its demo.
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
    /// A recipe with a teacher.
    Distillation,
    /// A name that no recipe has.
    Name,
    /// A comparison of what a critic does with credit.
    Credit,
    /// A comparison of a sampler with the uniform draw.
    Sampler,
    /// A comparison of what credit of turns does, with the demo of tools.
    Turns,
    /// A comparison of ways to draw tokens.
    Draws,
}

impl Kind {
    pub const ALL: [Self; 7] =
        [Self::Recipe, Self::Distillation, Self::Name, Self::Credit, Self::Sampler, Self::Turns, Self::Draws];

    /// The configurations of the warm-up and of the training.
    pub fn demo(self) -> [&'static str; 2] {
        if self == Self::Turns {
            ["demo/tools-sft.toml", "demo/tools.toml"]
        } else {
            ["demo/sft.toml", "demo/train.toml"]
        }
    }

    /// How many seeds its cases have.
    pub fn seeds(self) -> u64 {
        if self == Self::Name { 1 } else { SEEDS }
    }

    /// The name of the picture, its title, and the heading of the part.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Recipe => ["recipes", "The recipes: mean over seeds", "The recipes"],
            Self::Distillation => ["distillation", "Recipes with a teacher: mean over seeds", "Recipes with a teacher"],
            Self::Name => ["others", "The other names", "The other names"],
            Self::Credit => ["credit", "Credit for each digit: mean over seeds", "A critic and credit for tokens"],
            Self::Sampler => ["samplers", "Samplers: mean over seeds", "Samplers"],
            Self::Turns => ["turns", "Credit of turns: mean over seeds", "Credit of turns"],
            Self::Draws => ["draws", "How tokens are drawn: mean over seeds", "How tokens are drawn"],
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
    let cases = recipes.into_iter().chain(algorithms).chain(losses).chain(credit);
    let draws = DRAWS.map(|(name, settings)| Case { name: name.into(), settings: settings.into(), kind: Kind::Draws });
    Ok(cases.chain(samplers()).chain(turns()).chain(draws).collect())
}

/// The uniform draw and a sampler, each from all rows of the demo and from few.
fn samplers() -> [Case; 4] {
    let case = |name: &str, rows: &str, sampler: &str| {
        let settings = format!("[data]\n{rows}{sampler}");
        Case { name: name.to_owned(), settings, kind: Kind::Sampler }
    };
    let few = format!("train = {:?}\n", few_rows::FILE);
    [
        case("uniform, all rows", "", ""),
        case("near-half, all rows", "", NEAR_HALF),
        case("uniform, few rows", &few, ""),
        case("near-half, few rows", &few, NEAR_HALF),
    ]
}

/// GRPO with a calculator: on the answer alone, with a reward for the call, and with credit of turns. The discounts are
/// from the papers.
fn turns() -> [Case; 5] {
    let case = |name: &str, settings: String| Case { name: name.to_owned(), settings, kind: Kind::Turns };
    let calls =
        |reward: &str| format!("[[reward]]\nname = \"calls\"\npath = \"target/plugins/tool-credit.wasm\"\n{reward}\n");
    let credit = |advantage: &str| {
        let calls = calls("params = { found = 0.5, missed = -0.5, score = false }");
        format!("{calls}\n[train.advantage]\n{advantage}\n")
    };
    [
        case("the answer", String::new()),
        case("the answer and the call", calls("weight = 0.5")),
        case("turns by index", credit("turns = \"index\"")),
        case("turns by return", credit("turns = \"return\"\ngamma = 0.4")),
        case("turns by state", credit("turns = \"state\"\ngamma = 0.95")),
    ]
}

/// The blocks of TOML below a paragraph that begins with a method in bold.
fn recipes(page: &str) -> Vec<Case> {
    let (mut found, mut method, mut block) = (Vec::new(), String::new(), None);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```toml") => block = Some(String::new()),
            (Some(_), "```") => {
                let settings = block.take().unwrap_or_default();
                let kind = if settings.contains("distillation") { Kind::Distillation } else { Kind::Recipe };
                found.push(Case { name: method.clone(), settings, kind });
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
    use std::collections::HashSet;

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

    #[test]
    fn cases_are_toml_and_have_names_of_their_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let cases = cases(&root).unwrap();
        let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            case.settings.parse::<toml::Table>().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
    }

    #[test]
    fn every_comparison_of_turns_has_a_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = fs::read_to_string(root.join("docs/algorithms.md")).unwrap();
        let table = page.split("\n| `turns` |").nth(1).unwrap().split("\n\n").next().unwrap();
        let names: Vec<&str> =
            table.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0)).collect();
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            let setting = format!("\nturns = \"{name}\"\n");
            assert!(turns().iter().any(|case| case.settings.contains(&setting)), "{name}");
        }
    }
}

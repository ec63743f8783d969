//! What to write in place of an unknown key, or of an unknown name as a value.

use gavel_data::Shown;
use toml::{Table, Value};

/// Keys of other trainers. A line has who has the key, the key, and its hint.
const FOREIGN_KEYS: &str = include_str!("foreign_keys.tsv");
/// How similar a name must be to be suggested; clap's threshold.
const SIMILAR: f64 = 0.7;
/// The most hints about the keys of one table.
const MOST_HINTS: usize = 10;

/// The hint for serde's message `what` about an unknown field in `table` or an unknown variant; empty for other messages
/// and where nothing is known or similar. `key` is the path of the field, or of the table that has it.
pub(super) fn hint(what: &str, key: &str, table: &Table) -> String {
    if let Some((variant, known)) = unknown("variant", what) {
        return similar(variant, known);
    }
    let Some((field, known)) = unknown("field", what) else { return String::new() };
    let key = match key.rsplit('.').next() {
        Some(last) if last == field => key.to_owned(),
        Some(last) if !last.is_empty() => format!("{key}.{field}"),
        _ => field.to_owned(),
    };
    let foreign = foreign_hints(&key, table);
    if !foreign.is_empty() {
        return foreign;
    }
    similar(field, known)
}

/// The name that serde's message `what` calls an unknown `kind`, and the text with the known names.
fn unknown<'a>(kind: &str, what: &'a str) -> Option<(&'a str, &'a str)> {
    what.strip_prefix("unknown ")?.strip_prefix(kind)?.strip_prefix(" `")?.split_once('`')
}

/// The hint that names the most similar name in `known`, in which names are between backquotes. The case of letters does
/// not count.
fn similar(name: &str, known: &str) -> String {
    let name = name.to_lowercase();
    // Every second part of "`a`, `b`" is between the quotes.
    let known = known.split('`').skip(1).step_by(2);
    let closest = known
        .map(|known| (strsim::jaro(&name, &known.to_lowercase()), known))
        .filter(|(similarity, _)| *similarity > SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    closest.map(|(_, known)| format!("\nhint: did you mean `{known}`?")).unwrap_or_default()
}

/// The hints for the unknown `key` of `table`, or for each key below it, if they are keys of other trainers.
fn foreign_hints(key: &str, table: &Table) -> String {
    let unknown = key.split('.').count();
    let mut hints: Vec<(String, &str)> = Vec::new();
    for leaf in leaves(key, table) {
        if let Some(hint) = foreign_hint(&leaf, unknown)
            && hints.iter().all(|(_, other)| *other != hint)
        {
            hints.push((leaf, hint));
        }
    }
    if let [(_, hint)] = hints.as_slice() {
        return format!("\nhint: {hint}");
    }
    let lines = hints.iter().take(MOST_HINTS).map(|(leaf, hint)| format!("\nhint: {}: {hint}", Shown(leaf)));
    let left_out = hints.len().saturating_sub(MOST_HINTS);
    let rest = (left_out > 0)
        .then(|| format!("\nhint: for {left_out} more keys, see the list of hints that docs/coming-from.md names"));
    lines.chain(rest).collect()
}

/// The keys at and below `key` that have no keys of their own.
fn leaves(key: &str, table: &Table) -> Vec<String> {
    fn add(key: String, value: Option<&Value>, leaves: &mut Vec<String>) {
        match value.and_then(Value::as_table).filter(|table| !table.is_empty()) {
            Some(table) => table.iter().for_each(|(name, value)| add(format!("{key}.{name}"), Some(value), leaves)),
            None => leaves.push(key),
        }
    }
    let mut names = key.split('.');
    let first = names.next().and_then(|name| table.get(name));
    let value = names.fold(first, |value, name| value.and_then(|value| value.get(name)));
    let mut leaves = Vec::new();
    add(key.to_owned(), value, &mut leaves);
    leaves
}

/// The hint of the line that fits `key` best. Gavel has its names before the one with the number `unknown`, from 1.
fn foreign_hint(key: &str, unknown: usize) -> Option<&'static str> {
    let key: Vec<&str> = key.split('.').collect();
    let lines = FOREIGN_KEYS.lines().filter(|line| !line.starts_with('#'));
    let ranked = lines.filter_map(|line| {
        let (_, line) = line.split_once('\t')?;
        let (pattern, hint) = line.split_once('\t')?;
        Some((rank(pattern, &key, unknown)?, hint))
    });
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, hint)| hint)
}

/// How well `pattern` fits `key`: the more names it has the better, then the later its place in the key. `a.*` is the
/// table `a` and all in it, if it is not a table of Gavel; `a*` is a name that starts so.
fn rank(pattern: &str, key: &[&str], unknown: usize) -> Option<(usize, usize, bool, bool)> {
    let (pattern, is_table) = match pattern.strip_suffix(".*") {
        Some(table) => (table, true),
        None => (pattern, false),
    };
    let names: Vec<&str> = pattern.split('.').collect();
    let (last, tables) = names.split_last()?;
    let is_match = |name: &str| last.strip_suffix('*').map_or(name == *last, |start| name.starts_with(start));
    let least = if is_table { unknown } else { key.len() };
    let end = (least..=key.len()).rev().find(|end| {
        let place = key.get(..*end).and_then(|place| place.split_last());
        place.is_some_and(|(&name, before)| before.ends_with(tables) && is_match(name))
    })?;
    Some((names.len(), end, !is_table, !last.ends_with('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint for an unknown key of a table with the keys `steps`, `learning_rate` and `schedule`.
    fn of(key: &str, config: &str) -> String {
        let field = key.rsplit('.').next().unwrap();
        let what = format!("unknown field `{field}`, expected one of `steps`, `learning_rate`, `schedule`");
        hint(&what, key, &config.parse().unwrap())
    }

    #[test]
    fn a_similar_key_is_suggested() {
        assert_eq!(of("train.learning_rte", ""), "\nhint: did you mean `learning_rate`?");
        assert_eq!(of("setps", ""), "\nhint: did you mean `steps`?");
        assert_eq!(of("train.zzz", ""), "");
        let hint = |what| hint(what, "model", &Table::new());
        assert_eq!(hint("unknown field `pth`, expected `path` or `init`"), "\nhint: did you mean `path`?");
        assert_eq!(hint("unknown field `x`, there are no fields"), "");
        assert_eq!(hint("missing field `steps`"), "");
    }

    #[test]
    fn a_similar_value_is_suggested() {
        let of = |name: &str, known: &str| {
            hint(&format!("unknown variant `{name}`, expected {known}"), "a.b", &Table::new())
        };
        let kinds = "one of `adamw`, `adamw_8bit`, `muon`";
        for (name, meant) in [("AdamW", "adamw"), ("adamw8bit", "adamw_8bit"), ("Mu0n", "muon")] {
            assert_eq!(of(name, kinds), format!("\nhint: did you mean `{meant}`?"), "{name}");
        }
        assert_eq!(of("sgd", kinds), "");
        assert_eq!(of("", kinds), "");
        assert_eq!(of("drop", "`answer` or `end`"), "");
        // A name that is no key of another trainer's is not taken for one.
        assert_eq!(of("lr", "`constant` or `linear`"), "");
    }

    #[test]
    fn a_key_of_another_trainer_has_a_hint() {
        for (key, hint) in [
            ("train.lr", "the name here is `train.learning_rate`"),
            ("train.critic.lr", "the name here is `train.critic.learning_rate`"),
            ("train.optimizer.beta", "the name here is `train.optimizer.betas`"),
            ("train.optim", "the name here is `train.optimizer.kind`"),
            ("train.muon_momentum", "the name here is `train.optimizer.muon.momentum`"),
            ("critic.optim.muon_num_ns_steps", "the name here is `train.critic.optimizer.muon.ns_steps`"),
            ("train.optimizer.momentum", "the name here is `train.optimizer.muon.momentum`"),
            ("train.optimizer.muon.beta", "the name here is `train.optimizer.muon.momentum`"),
            ("train.optimizer.type", "the name here is `train.optimizer.kind`"),
            ("rollout.num_generations", "the name here is `rollout.group_size`"),
            ("train.seed", "the name here is `seed`, above the first table"),
            ("train.kl_coef", "the name here is `train.kl_reward.coefficient`"),
            ("train.num_iterations", "the name here is `train.ppo_epochs`"),
            ("ppo_epochs", "the name here is `train.ppo_epochs`"),
            ("shuffle", "the name here is `data.shuffle`"),
            (
                "train.per_device_train_batch_size",
                "the name here is `train.prompts_per_step`, of all devices together; of sft, dpo and reward-model, \
                 `train.batch_size`",
            ),
            ("fsdp_config", "not needed: several processes share the work as `[ranks]` sets, without FSDP"),
            ("log.hub_model_id", "not there: a run uploads nothing; checkpoints are kept in `log.dir`"),
        ] {
            assert_eq!(of(key, ""), format!("\nhint: {hint}"), "{key}");
        }
    }

    #[test]
    fn the_keys_of_a_table_of_another_trainer_have_hints() {
        assert_eq!(
            of("actor_rollout_ref", "[actor_rollout_ref.rollout]\nn = 8"),
            "\nhint: the name here is `rollout.group_size`"
        );
        assert_eq!(
            of("fsdp_config", "fsdp_config = { param_offload = true, fsdp_size = -1 }"),
            "\nhint: not needed: several processes share the work as `[ranks]` sets, without FSDP"
        );
        assert_eq!(
            of("actor_rollout_ref", "actor_rollout_ref = { actor.optim.lr = 1e-6, rollout.val_kwargs.n = 4 }"),
            "\nhint: actor_rollout_ref.actor.optim.lr: the name here is `train.learning_rate`\
             \nhint: actor_rollout_ref.rollout.val_kwargs.n: the name here is `data.validation_samples`"
        );
        let teacher = "distillation.teacher_models.teacher.inference.temperature = 1.0";
        assert!(of("distillation", teacher).contains("`train.reference.path`"));
    }

    #[test]
    fn a_key_in_a_table_of_gavel_is_not_of_the_table_with_its_name() {
        let what = "unknown field `devcie`, expected `device` or `path`";
        for key in ["train.critic.devcie", "reward_model.quality.devcie", "model.lora.devcie"] {
            assert_eq!(hint(what, key, &Table::new()), "\nhint: did you mean `device`?", "{key}");
        }
    }

    #[test]
    fn many_keys_of_a_table_are_cut() {
        let keys = "save_freq test_freq total_epochs total_training_steps experiment_name project_name logger nnodes \
                    resume_mode val_only val_before_train critic_warmup";
        let config: String = keys.split(' ').map(|key| format!("trainer.{key} = 1\n")).collect();
        let hints = of("trainer", &config);
        assert_eq!(hints.lines().count(), 1 + MOST_HINTS + 1, "{hints}");
        assert!(
            hints.ends_with("\nhint: for 2 more keys, see the list of hints that docs/coming-from.md names"),
            "{hints}"
        );
    }

    #[test]
    fn the_keys_of_the_page_for_users_of_other_trainers_have_hints() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coming-from.md");
        let page = std::fs::read_to_string(page).unwrap();
        let keys = page.split("\n## Keys\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows: Vec<&str> = keys.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 30, "{rows:?}");
        for row in rows {
            let names = row.split('|').skip(1).take(2).flat_map(|cell| cell.split('`').skip(1).step_by(2));
            for name in names {
                assert!(foreign_hint(name, 1).is_some(), "{name}");
            }
        }
    }
}

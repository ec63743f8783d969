//! The JSON Schemas of configurations: what can be read fits them, what is misspelt does not, and the tables of
//! docs/configuration.md have the same keys and defaults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_config::{Command, Config, DpoTable, RewardModelTrainTable, RlTable, SftTable, load, schema};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ALL: [Command; 5] = [Command::Train, Command::Sft, Command::RewardModel, Command::Dpo, Command::Eval];

/// A configuration with every kind of table.
const WHOLE: &str = r#"
seed = 1
model = { init = { vocab_size = 300, hidden_size = 32, intermediate_size = 64, num_hidden_layers = 1, num_attention_heads = 2, max_position_embeddings = 64 }, dtype = "bf16", device = "cpu" }
rollout = { max_tokens = 8, stop = ["</a>"], logit_bias = { 5 = -1.0 }, grammar = { choice = ["a"] }, cache_memory = "1GiB" }
validation = { top_k = 0 }
agent = { kind = "tools", max_turns = 2, on_tool_failure = { out-of-budget = "answer" } }
limits = { cpu = "500ms", memory = "64MiB" }
budget = { tokens = 5 }
limiter.slow = { requests_per_second = 0.5, concurrency = 2 }
schedule = { stream = true, watchdog = "2m" }
ranks = { share = "load" }
checkpoint = { every = 5 }
log = { calls = "text", trackers = [{ kind = "webhook", name = "chat", url_env = "HOOK", on = ["failed"] }, { kind = "mlflow", url = "http://a", project = "p", api_key_env = "K" }] }
resources = { plugin_threads = 1, loading = { size = "1GiB" } }
exec.python = { path = "python.wasm" }
plugin.own = { path = "own.wasm", params = { anything = 1 } }

[data]
train = ["a.jsonl", { path = "plugin:sums?digits=3", weight = 2, columns = { prompt = "question" } }]
validation = "b.parquet"
sampler = "plugin:own"
columns = { ground_truth = "extra_info.answer" }

[[tool]]
name = "clock"
mcp = ["mcp-server-time"]

[[reward]]
name = "exact"
path = "exact.wasm"
limits = { timeout = "1s" }
grant = { chat = ["judge"], clock = "real" }
reuse = 3
params = { any = { thing = [1] } }

[[reward]]
name = "served"
url = ["http://a/score", "http://b/score"]
batch = "group"
only_if = "exact > 0"

[chat.judge]
base_url = "http://a/v1"
model = "m"
options = { temperature = 0.0 }
cache = {}
price = { prompt = 0.25, completion = 2.0 }
on_endpoint_down = "stop"

[reward_model.quality]
path = "quality"
steps = { each = "token", score = "product" }
max_wait = "5ms"

[train]
steps = 3
algorithm = "gae"
prompts_per_step = 2
learning_rate = 1e-3
critic = { optimizer = { kind = "muon", muon = { ns_steps = 4 } } }
on_outcome = { abstained = { score = 0.5 }, fault = "drop", out-of-budget = "lowest-if-caused" }
kl_reward = { estimator = "low_var_kl" }
reference = { every = 2, mixup = 0.5 }
loss = { policy = "gspo", clip_high = 0.1, aggregation = "seq-mean-token-sum-norm", norm_tokens = 8 }
off_policy = { rollout_is = "sequence", rollout_rs = "geometric" }
optimizer = { kind = "adamw_8bit", betas = [0.9, 0.95], max_grad_norm = inf }
filter_groups = { max_num_gen_batches = 2 }
max_pause = "1h"
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A value of TOML as JSON. Numbers that JSON does not have become large ones.
fn json_of(value: &toml::Value) -> Value {
    match value {
        toml::Value::Float(number) if !number.is_finite() => json!(1e308),
        toml::Value::Array(list) => list.iter().map(json_of).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.clone(), json_of(value))).collect())
        }
        plain => serde_json::to_value(plain).unwrap(),
    }
}

fn table(text: &str) -> Value {
    json_of(&toml::Value::Table(text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))))
}

fn validator(command: Command) -> Validator {
    jsonschema::validator_for(&schema(command)).unwrap()
}

/// Where `config` does not fit, and why.
fn errors(validator: &Validator, config: &Value) -> Vec<String> {
    validator.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The commands that can read a configuration.
fn readers(text: &str) -> Vec<Command> {
    let table: toml::Table = text.parse().unwrap();
    let read = [
        table.clone().try_into::<Config<RlTable>>().is_ok(),
        table.clone().try_into::<Config<SftTable>>().is_ok(),
        table.clone().try_into::<Config<RewardModelTrainTable>>().is_ok(),
        table.clone().try_into::<Config<DpoTable>>().is_ok(),
    ];
    ALL.into_iter().zip(read).filter(|(_, is_read)| *is_read).map(|(command, _)| command).collect()
}

/// Every `.toml` file in a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            files(&path, found);
        } else if name.ends_with(".toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_configuration_here_fits() {
    let (mut paths, mut count) = (Vec::new(), 0);
    for folder in ["demo", "examples", "tests", "docs", "programs"] {
        files(&root().join(folder), &mut paths);
    }
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(config) = text.parse::<toml::Table>() else { continue };
        if !config.contains_key("rollout") && !config.contains_key("train") {
            continue;
        }
        count += 1;
        let own = if config.contains_key("include") { ALL.to_vec() } else { readers(&with_rollout(&text)) };
        let fits = |command: &Command| errors(&validator(*command), &table(&text)).is_empty();
        let found: Vec<_> = ALL.iter().map(|command| (command, errors(&validator(*command), &table(&text)))).collect();
        assert!(own.iter().any(fits), "{}: read by {own:?}: {found:#?}", path.display());
    }
    assert!(count >= 12, "{count}");
}

/// The configuration with a `[rollout]`, which `sft` and the commands for pairs fill in.
fn with_rollout(text: &str) -> String {
    match text.parse::<toml::Table>().unwrap().contains_key("rollout") {
        true => text.to_owned(),
        false => format!("rollout.max_tokens = 1\n{text}"),
    }
}

#[test]
fn every_snippet_of_a_configuration_on_a_page_fits() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path()).collect();
    pages.push(root().join("README.md"));
    let known: Vec<String> = schema(Command::Train)["properties"].as_object().unwrap().keys().cloned().collect();
    let validators = ALL.map(validator);
    let mut count = 0;
    for page in pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        // Its snippets are of rewards.toml, which `gavel serve --rewards` reads.
        if page.ends_with("rewards-service.md") {
            continue;
        }
        let text = std::fs::read_to_string(page).unwrap();
        for block in text.split("\n```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next()) {
            let Ok(config) = block.parse::<toml::Table>() else { continue };
            if !config.keys().any(|key| known.contains(key) && key != "limits") {
                continue;
            }
            count += 1;
            let mut config = table(block);
            // The rest is elsewhere.
            config["include"] = "base.toml".into();
            let found: Vec<_> = validators.iter().map(|validator| errors(validator, &config)).collect();
            assert!(found.iter().any(Vec::is_empty), "{}:\n{block}\n{:#?}", page.display(), found[0]);
        }
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn what_is_read_fits_with_every_default() {
    let train = validator(Command::Train);
    assert_eq!(errors(&train, &table(WHOLE)), [""; 0]);
    let config: Config<RlTable> = toml::from_str(WHOLE).unwrap();
    let resolved = config.resolved().unwrap();
    assert_eq!(errors(&train, &table(&resolved)), [""; 0]);
    assert_eq!(errors(&validator(Command::Eval), &table(&resolved)), [""; 0]);
}

/// Each place of a value in a configuration, and whether it is a table.
fn places(value: &Value, pointer: &str, found: &mut Vec<(String, bool)>) {
    match value {
        Value::Object(map) => {
            found.push((pointer.to_owned(), true));
            map.iter().for_each(|(key, value)| places(value, &format!("{pointer}/{key}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, value)| places(value, &format!("{pointer}/{at}"), found))
        }
        _ => found.push((pointer.to_owned(), false)),
    }
}

/// Tables whose keys are names that a user chooses, or that a plugin, a server or a template knows.
const FREE: [&str; 12] = [
    "/limiter",
    "/exec",
    "/plugin",
    "/chat",
    "/reward_model",
    "/params",
    "/any",
    "/options",
    "/chat_template_kwargs",
    "/by_source",
    "/logit_bias",
    "/json_schema",
];

#[test]
fn a_misspelt_key_does_not_fit() {
    let (train, whole) = (validator(Command::Train), table(WHOLE));
    serde_json::from_value::<Config<RlTable>>(whole.clone()).unwrap();
    let mut found = Vec::new();
    places(&whole, "", &mut found);
    let is_free = |pointer: &str| FREE.iter().any(|name| pointer.ends_with(name));
    let tables: Vec<String> = found
        .into_iter()
        .filter(|(pointer, is_table)| *is_table && !is_free(pointer))
        .map(|(pointer, _)| pointer)
        .collect();
    assert!(tables.len() > 40, "{tables:?}");
    for pointer in tables {
        let mut wrong = whole.clone();
        wrong.pointer_mut(&pointer).unwrap()["zzz"] = json!(1);
        assert_ne!(errors(&train, &wrong), [""; 0], "{pointer}/zzz");
        let as_toml: Result<Config<RlTable>, _> = serde_json::from_value(wrong);
        assert!(as_toml.is_err(), "{pointer}/zzz is read");
    }
}

#[test]
fn a_wrong_type_does_not_fit() {
    let (train, whole) = (validator(Command::Train), table(WHOLE));
    let mut found = Vec::new();
    places(&whole, "", &mut found);
    let is_free = |pointer: &str| ["/params/", "/options/"].iter().any(|name| pointer.contains(name));
    let values: Vec<String> = found
        .into_iter()
        .filter(|(pointer, is_table)| !is_table && !is_free(pointer))
        .map(|(pointer, _)| pointer)
        .collect();
    assert!(values.len() > 80, "{values:?}");
    for pointer in values {
        let mut wrong = whole.clone();
        *wrong.pointer_mut(&pointer).unwrap() = json!([[{ "zzz": true }]]);
        assert_ne!(errors(&train, &wrong), [""; 0], "{pointer}");
    }
}

#[test]
fn a_wrong_name_or_number_does_not_fit() {
    let (train, whole) = (validator(Command::Train), table(WHOLE));
    for (pointer, value) in [
        ("/model/dtype", json!("bf17")),
        ("/train/algorithm", json!("grpoo")),
        ("/train/loss/policy", json!("ppo")),
        ("/train/loss/aggregation", json!("token_mean")),
        ("/train/optimizer/kind", json!("sgd")),
        ("/train/optimizer/betas", json!([0.9])),
        ("/train/off_policy/rollout_rs", json!("tokens")),
        ("/train/kl_reward/estimator", json!("k4")),
        ("/train/on_outcome/fault", json!("dropped")),
        ("/train/on_outcome/abstained", json!({ "scores": 1 })),
        ("/train/steps", json!(-1)),
        ("/train/steps", json!(1.5)),
        ("/train/max_pause", json!(30)),
        ("/ranks/share", json!("dynamic")),
        ("/chat/judge/on_endpoint_down", json!("wait")),
        ("/chat/judge/concurrency", json!(0)),
        ("/reward/0/reuse", json!(0)),
        ("/reward/0/grant/clock", json!("os")),
        ("/reward/1/batch", json!("groups")),
        ("/log/calls", json!("all")),
        ("/log/trackers/0/kind", json!("tensorboard")),
        ("/log/trackers/0/on", json!(["end"])),
        ("/agent/kind", json!("tool")),
        ("/reward_model/quality/steps/score", json!("max")),
        ("/data/overlong_prompts", json!("cut")),
        ("/data/sampler", json!("own")),
        ("/resources/cuda_fast_paths", json!("on")),
    ] {
        let mut wrong = whole.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value.clone();
        assert_ne!(errors(&train, &wrong), [""; 0], "{pointer}: {value}");
    }
}

#[test]
fn a_missing_key_does_not_fit_unless_a_file_is_included() {
    for (command, text, missing) in [
        (Command::Train, "model.path = 'm'", "\"data\" is a required property"),
        (Command::Train, "rollout.top_k = 1", "\"max_tokens\" is a required property"),
        (Command::Sft, "train.steps = 1", "\"batch_size\" is a required property"),
        (Command::Train, "chat.judge.model = 'm'", "\"base_url\" is a required property"),
        (Command::Eval, "seed = 1", "\"rollout\" is a required property"),
    ] {
        let validator = validator(command);
        let found = errors(&validator, &table(text));
        assert!(found.iter().any(|error| error.contains(missing)), "{text}: {found:?}");
        assert_eq!(errors(&validator, &table(&format!("include = 'base.toml'\n{text}"))), [""; 0], "{text}");
    }
    let eval = validator(Command::Eval);
    assert_eq!(errors(&eval, &table("rollout.max_tokens = 8\ntrain.anything = 1")), [""; 0]);
    let dpo = validator(Command::Dpo);
    assert!(errors(&dpo, &table("include = 'a.toml'\nreward = []")).iter().any(|error| error.contains("reward")));
}

/// Every schema of a key: where it is, and itself.
fn keys(schema: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    match schema {
        Value::Object(map) => {
            for (name, value) in map {
                if name == "properties" && !at.ends_with("/then") {
                    found.extend(
                        value.as_object().unwrap().iter().map(|(key, value)| (format!("{at}/{key}"), value.clone())),
                    );
                }
                keys(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, at, found)),
        _ => {}
    }
}

/// Keys of `config.json`, and the value in `{ score = 0.5 }`, which the outcome describes.
const NAMED_ELSEWHERE: [&str; 3] = ["/ModelConfig/", "/RopeTable/", "/OnOutcome/"];

#[test]
fn every_key_is_described_in_plain_text() {
    for command in ALL {
        let mut found = Vec::new();
        keys(&schema(command), "", &mut found);
        assert!(found.len() > 150, "{}", found.len());
        for (at, key) in found.iter().filter(|(at, _)| !NAMED_ELSEWHERE.iter().any(|other| at.contains(other))) {
            let text = key["description"].as_str().unwrap_or_else(|| panic!("{at} has no description: {key}"));
            assert!(!text.contains("](") && !text.contains("[`") && !text.contains("::"), "{at}: {text}");
            assert!(key.get("default").is_none_or(|default| !default.is_null()), "{at}");
        }
        let text = schema(command).to_string();
        assert!(!text.contains("\"null\""), "{command:?}");
    }
}

/// The headings of docs/configuration.md with a table of keys, and the definition with them. Keys in brackets have
/// headings or pages of their own.
const TABLES: [(&str, &str, &[&str]); 33] = [
    ("`[model]`", "ModelTable", &["lora"]),
    ("`[model.lora]`", "LoraConfig", &[]),
    ("`[data]`", "DataTable", &[]),
    ("Datasets", "DatasetTable", &[]),
    ("`[rollout]`", "RolloutTable", &[]),
    ("A grammar", "GrammarTable", &[]),
    ("`[validation]`", "ValidationTable", &[]),
    ("`[[reward]]`", "RewardTable", &[]),
    ("`[chat.NAME]`", "ChatEndpoint", &[]),
    ("`[budget]`", "BudgetTable", &[]),
    ("`[limiter.NAME]`", "LimiterTable", &[]),
    (
        "`[reward_model.NAME]`",
        "RewardModelTable",
        &[
            "url",
            "protocol",
            "model",
            "api_key_env",
            "concurrency",
            "timeout",
            "retries",
            "deadline",
            "on_endpoint_down",
        ],
    ),
    ("Process reward models", "StepsTable", &[]),
    (
        "A server",
        "RewardModelTable",
        &["path", "device", "dtype", "yes_no", "steps", "max_tokens_per_batch", "max_wait", "sleep", "ranks"],
    ),
    ("`[exec.NAME]`", "ExecTable", &[]),
    ("`[plugin.NAME]`", "PluginTable", &[]),
    ("`[gateway]`", "GatewayTable", &[]),
    ("`[limits]`", "LimitsTable", &[]),
    ("`[schedule]`", "ScheduleTable", &[]),
    ("`[ranks]`", "RanksTable", &[]),
    ("`[train]` of `gavel train`", "RlTable", &[]),
    (
        "`[train.loss]`",
        "LossConfig",
        &[
            "mask_low",
            "mask_high",
            "m2_budget",
            "tau_pos",
            "tau_neg",
            "clip_cov_ratio",
            "clip_cov_lb",
            "clip_cov_ub",
            "kl_cov_ratio",
            "ppo_kl_coef",
            "dro_beta",
        ],
    ),
    ("`[train.off_policy]`", "OffPolicyTable", &[]),
    ("`[train.optimizer]`", "OptimizerConfig", &[]),
    ("`[train.optimizer.muon]`", "MuonConfig", &[]),
    ("`[train]` of `gavel sft`", "SftTable", &SHARED),
    ("`[train]` of `gavel reward-model`", "RewardModelTrainTable", &SHARED),
    ("`[train]` of `gavel dpo`", "DpoTable", &SHARED),
    ("`[checkpoint]`", "CheckpointTable", &[]),
    ("`[log]`", "LogTable", &[]),
    ("`[[log.trackers]]`", "TrackerTable", &[]),
    ("`[resources]`", "ResourcesTable", &[]),
    ("`[resources.loading]`", "LoadingTable", &[]),
];

/// Keys of every `[train]`, which the page has once.
const SHARED: [&str; 7] = [
    "max_tokens_per_micro_batch",
    "gradient_checkpointing",
    "learning_rate",
    "warmup_steps",
    "schedule",
    "min_lr_ratio",
    "optimizer",
];

/// Defaults that the page writes as a value and that depend on the command or on other keys: the definition, the key.
const COMPUTED: [(&str, &str); 5] = [
    ("RewardTable", "on_endpoint_down"),
    ("ChatEndpoint", "on_endpoint_down"),
    ("RewardModelTable", "on_endpoint_down"),
    ("LossConfig", "clip_low"),
    ("LossConfig", "clip_high"),
];

/// The keys of the tables below a heading, with the cells of their defaults.
fn documented(section: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_of_keys = false;
    for line in section.lines() {
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim().trim_matches('|').trim()).collect();
        match cells.as_slice() {
            _ if !line.starts_with('|') => is_of_keys = false,
            [first, ..] if first.starts_with("key") => is_of_keys = true,
            [names, default, ..] if is_of_keys && names.starts_with('`') => {
                let defaults: Vec<&str> = default.split(", ").collect();
                let names: Vec<&str> = names.split(", ").collect();
                for (at, name) in names.iter().enumerate() {
                    let default = if names.len() == defaults.len() { defaults[at] } else { default };
                    found.push((name.trim_matches('`').to_owned(), default.to_owned()));
                }
            }
            _ => {}
        }
    }
    found
}

/// The value that a cell writes, if it writes one.
fn written(cell: &str) -> Option<Value> {
    let text = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell);
    let table: toml::Table = format!("x = {text}").parse().ok()?;
    Some(json_of(&table["x"]))
}

fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * one.abs(),
        _ => {
            one == other
                || one.as_str().is_some_and(|one| other.as_str().is_some_and(|other| amount(one) == amount(other)))
        }
    }
}

/// A duration or a size, which has several spellings.
fn amount(text: &str) -> String {
    let text = text.replace(' ', "").replace(".0", "");
    match text.as_str() {
        "1m" => "60s".into(),
        _ => text,
    }
}

#[test]
fn the_page_has_every_key_once_with_its_default() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    for part in page.split("\n#").skip(1) {
        let (heading, text) = part.split_once('\n').unwrap();
        sections.insert(heading.trim_start_matches('#').trim(), text);
    }
    let definitions: Map<String, Value> = [Command::Train, Command::Sft, Command::RewardModel, Command::Dpo]
        .into_iter()
        .flat_map(|command| schema(command)["definitions"].as_object().unwrap().clone())
        .collect();
    let limits = table(&small().resolved().unwrap())["limits"].clone();
    let mut wrong = Vec::new();
    for (title, definition, elsewhere) in TABLES {
        let of_title = |heading: &&&str| {
            heading.strip_prefix(title).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
        };
        let exact = sections.get(title);
        let Some(section) = exact.or_else(|| sections.keys().find(of_title).and_then(|heading| sections.get(heading)))
        else {
            panic!("no section {title}")
        };
        let properties = definitions[definition]["properties"].as_object().unwrap();
        let rows = documented(section);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        if distinct.len() != names.len() {
            wrong.push(format!("{title} has a key twice: {names:?}"));
        }
        for name in properties.keys().filter(|name| !names.contains(&name.as_str())) {
            if !elsewhere.contains(&name.as_str()) {
                wrong.push(format!("{title} lacks {name}"));
            }
        }
        for (name, cell) in &rows {
            let Some(property) = properties.get(name) else {
                wrong.push(format!("{title} has {name}, which is no key"));
                continue;
            };
            // `limits` of a plugin takes its defaults from `[limits]`, which has its own.
            let default = if definition == "LimitsTable" { limits.get(name) } else { property.get("default") };
            match (written(cell), default) {
                (None, None) => {}
                (None, Some(default)) if default.is_object() => {}
                (Some(value), Some(default)) if same(&value, default) => {}
                (Some(value), _) if value == json!({}) && default.is_none_or(Value::is_object) => {}
                (Some(value), None) if value == json!([]) => {}
                _ if COMPUTED.contains(&(definition, name.as_str())) => {}
                (value, default) => {
                    wrong.push(format!("{title} {name}: the page has {cell:?} ({value:?}), the schema {default:?}"))
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A configuration with little in it, and every default.
fn small() -> Config<RlTable> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    let text = "model.init = { vocab_size = 300, hidden_size = 32, intermediate_size = 64, num_hidden_layers = 1, num_attention_heads = 2, num_key_value_heads = 2, max_position_embeddings = 64 }\n\
                data.train = 'rows.jsonl'\nrollout.max_tokens = 8\ntrain = { steps = 1, prompts_per_step = 1, learning_rate = 1e-3 }\n";
    std::fs::write(&path, format!("#:schema ./run.schema.json\n{text}")).unwrap();
    assert_eq!(errors(&validator(Command::Train), &table(text)), [""; 0]);
    load(&path, &[]).unwrap()
}

#[test]
fn a_file_that_fits_can_be_loaded() {
    assert_eq!(errors(&validator(Command::Train), &table(&small().resolved().unwrap())), [""; 0]);
}

//! The path of a new user, in every language: a folder made by `gavel plugin new` is built and tested, and its
//! components score and train. The templates are one rule in six languages, so they must give the same verdicts on the
//! same rows.
//!
//! It needs what `cargo xtask test` provides: componentize-py and ziglang in
//! the Python that comes first, and npm.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod exceptions;
mod npm;
mod outside;
mod project;

use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

const LANGUAGES: [&str; 6] = ["rust", "python", "js", "c", "ts", "cpp"];

/// A judger that repeats the verdict of the reward `quality` on each sample, in every language with an SDK: the file of
/// its folder, and its text.
const ECHOES: [(&str, &str); 4] = [
    ("src/lib.rs", include_str!("echoes/lib.rs")),
    ("main.py", include_str!("echoes/main.py")),
    ("main.js", include_str!("echoes/main.js")),
    ("src/plugin.c", include_str!("echoes/plugin.c")),
];

/// A tool that adds and reports its sum, and an agent that returns an object beside its answer, in the languages with an
/// interpreter: in C, a run trains with both.
const ACTORS: [(&str, [&str; 2]); 2] = [
    ("python", [include_str!("echoes/sums.py"), include_str!("echoes/plans.py")]),
    ("ts", [include_str!("echoes/sums.ts"), include_str!("echoes/plans.ts")]),
];

/// An advantage and a sampler that tell what they see, in these languages.
const DECIDERS: [(&str, [&str; 2]); 2] = [
    ("python", [include_str!("echoes/advantage.py"), include_str!("echoes/sampler.py")]),
    ("ts", [include_str!("echoes/advantage.ts"), include_str!("echoes/sampler.ts")]),
];

/// The languages with an interpreter in each component.
const INTERPRETED: [&str; 3] = ["python", "js", "ts"];

/// Of these, the languages whose plugin also asks servers and runs programs.
const REACH_OUT: [&str; 2] = ["python", "js"];

/// Runs `gavel` and gives what it prints.
fn run(project: &Project, args: &[&str]) -> String {
    // One target folder serves both kinds, so that what plugins depend on is compiled once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let mut command = project.command(args);
    // The crates of this repository are already there, so that nothing is downloaded.
    command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {said}{}", stderr(&output));
    said
}

/// Follows the first steps that `gavel plugin new` prints: the folder and its tools.
fn scaffold(project: &Project, language: &str, kind: &str) {
    let name = format!("{kind}-{language}");
    let said = run(project, &["plugin", "new", &name, "--lang", language, "--kind", kind]);
    assert!(said.contains(&format!("cd {name}")), "{said}");
    if ["js", "ts"].contains(&language) {
        npm::install(project, &name);
    }
}

/// Follows all steps: the folder, its tools, its component, its cases.
fn make(project: &Project, language: &str, kind: &str) {
    scaffold(project, language, kind);
    let name = format!("{kind}-{language}");
    let run = |args: &[&str]| run(project, args);
    run(&["plugin", "build", &name]);
    let said = run(&["plugin", "test", &name]);
    assert!(said.contains(" passed, with at most "), "{said}");
    // An interpreter that started anew for each sample would cost more than the sample.
    let said = run(&["plugin", "inspect", &component(kind, language)]);
    assert!(said.contains("snapshot  yes"), "{said}");
    let is_set_back = INTERPRETED.contains(&language) && !["agent", "tool"].contains(&kind);
    assert_eq!(said.contains("an instance is set back to it"), is_set_back, "{said}");
}

fn component(kind: &str, language: &str) -> String {
    format!("{kind}-{language}/build/{kind}-{language}.wasm")
}

/// The verdict of each plugin on each row: its outcome, score and metrics. The texts differ between languages.
fn said(project: &Project, file: &str, kind: &str, languages: &[&str]) -> Vec<Vec<Value>> {
    let told = |row: &Map<String, Value>, language: &str| {
        let said = &row["plugins"][format!("{kind}-{language}")];
        json!([said["outcome"], said["score"], said["metrics"], said["whose"]])
    };
    let rows = lines(&project.path(file));
    rows.iter().map(|row| languages.iter().map(|language| told(row, language)).collect()).collect()
}

fn score(project: &Project, kind: &str, data: &str) -> Vec<Vec<Value>> {
    let plugins = LANGUAGES.map(|language| component(kind, language));
    let mut args = vec!["score", "--data", data, "--out", "out.jsonl", "--cpu", "60s", "--timeout", "300s"];
    for plugin in &plugins {
        args.extend(["--plugin", plugin]);
    }
    project.succeed(&args);
    said(project, "out.jsonl", kind, &LANGUAGES)
}

/// Rows that differ in everything that the rule reads.
fn rows(count: usize) -> String {
    let numbers = ["4", "-3.5", "1,234,567", "$12", "0.1", "7e2", "−8", "1/2", "50%", ".5", "12:30", "x2", "1,2345"];
    let words =
        ["", "It is", "ответ", "答え", "🦀", "no, wait\nAnswer: 9", "\u{a0}", "So\r\n", "\\boxed{3}", "Answer:"];
    let truths =
        ["4", "-3.5", " 1234567 ", "12", "0.1", "700", "-8", "2", "Ada", "0.5", "nan", "-inf", "Infinity", "1e999"];
    let mut state = 1u64;
    let mut pick = |of: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % of
    };
    let row = |index: usize| {
        let (number, other) = (numbers[pick(numbers.len())], numbers[pick(numbers.len())]);
        let (before, after) = (words[pick(words.len())], words[pick(words.len())]);
        let response = match pick(5) {
            0 => format!("{before} {number}"),
            1 => format!("{before}Answer: {number}\n{other} {after}"),
            2 => format!("Answer: {other}\n{before}\nAnswer:{number} {after}"),
            3 => format!("{before}Answer:\t{number}{after}"),
            _ => before.repeat(pick(200)),
        };
        match pick(20) {
            0 => json!({"id": index, "prompt": "?", "response": response}),
            1 => json!({"id": index, "prompt": "?", "response": response, "ground_truth": 4}),
            _ => json!({"id": index, "prompt": "?", "response": response, "ground_truth": truths[pick(truths.len())]}),
        }
    };
    (0..count).map(row).map(|row| format!("{row}\n")).collect()
}

/// Responses of lengths around powers of two whose last words are their answer:
/// each is wrong without its end.
fn long_rows() -> String {
    let answer = "\nAnswer: 42";
    let around = (5..=21).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    let rows = around.enumerate().map(|(index, size): (usize, usize)| {
        let thought = ["x", "é", "🦀", "\0"][index % 4];
        let before = size - answer.len();
        let response = thought.repeat(before / thought.len()) + &"-".repeat(before % thought.len()) + answer;
        format!("{}\n", json!({"id": index, "prompt": "?", "response": response, "ground_truth": "42"}))
    });
    rows.collect()
}

#[test]
fn a_reward_says_the_same_in_every_language_and_trains() {
    let project = Project::new();
    for language in LANGUAGES {
        make(&project, language, "reward");
    }
    for language in ["c", "cpp"] {
        is_the_same_in_another_folder(&project, language);
    }
    for language in ["python", "js"] {
        each_call_uses_the_same(&project, language);
    }
    project.write("rows.jsonl", &rows(1000));
    let all = score(&project, "reward", "rows.jsonl");
    let mut seen: Vec<String> = Vec::new();
    for (line, said) in all.iter().enumerate() {
        let verdicts = || lines(&project.path("out.jsonl"))[line]["plugins"].clone();
        assert!(said.iter().all(|other| *other == said[0]), "line {}: {}", line + 1, verdicts());
        seen.push(said[0].to_string());
    }
    assert_eq!(all.len(), 1000);
    seen.sort();
    seen.dedup();
    // The rows lead to every outcome: right and wrong, with and without an answer, abstained, and a fault of the input.
    assert!(seen.len() >= 5, "{seen:?}");

    project.write("long.jsonl", &long_rows());
    for (line, said) in score(&project, "reward", "long.jsonl").iter().enumerate() {
        assert!(said.iter().all(|said| said[1] == 1.0), "line {}: {said:?}", line + 1);
    }

    #[cfg(feature = "train")]
    {
        for language in LANGUAGES {
            let path = component("reward", language);
            let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
            let reward = format!("[[reward]]\nname = {language:?}\npath = {path:?}\n");
            project.write("train.toml", &text.replace("[checkpoint]", &format!("{reward}[checkpoint]")));
        }
        project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);
        // The first line is the validation before the first step.
        for step in &project.metrics("runs/run")[1..] {
            let counts = LANGUAGES.map(|language| step[&format!("outcome/{language}/scored")].as_u64());
            assert_eq!(counts, [Some(16); 6], "{step:?}");
        }
    }
    types_are_checked_before_a_plugin_in_typescript_is_built(&project);
    exceptions::name_the_authors_lines(&project, "reward-ts");
}

/// Scores the same response several times with one worker: first in a new instance, then in one that was set back.
fn each_call_uses_the_same(project: &Project, language: &str) {
    let row =
        |id: usize| json!({"id": id, "prompt": "?", "response": "Answer: 4", "ground_truth": "4"}).to_string() + "\n";
    project.write("same.jsonl", &(0..5).map(row).collect::<String>());
    let plugin = component("reward", language);
    let args = ["score", "--plugin", &plugin, "--data", "same.jsonl", "--out", "used.jsonl", "--workers", "1"];
    project.succeed(&[&args[..], &["--fuel", "1000000000000", "--cpu", "60s", "--timeout", "300s"]].concat());
    let rows = lines(&project.path("used.jsonl"));
    let used = rows.iter().map(|row| &row["plugins"][format!("reward-{language}")]);
    let used: Vec<Value> = used.map(|call| json!([call["score"], call["fuel"], call["peak_memory"]])).collect();
    assert!(used[0][0] == 1.0 && used[0][1].as_u64() > Some(0), "{used:?}");
    assert!(used.len() == 5 && used.iter().all(|other| *other == used[0]), "{language}: {used:?}");
}

/// Builds a reward again elsewhere, from its sources alone.
fn is_the_same_in_another_folder(project: &Project, language: &str) {
    let name = format!("reward-{language}");
    let elsewhere = project.path("else/where");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let copied = Command::new("cp").arg("-r").arg(project.path(&name)).arg(&elsewhere).status().unwrap();
    assert!(copied.success());
    std::fs::remove_dir_all(elsewhere.join(&name).join("build")).unwrap();
    // Of what zig keeps, only the libraries of C and C++ are taken.
    let built = project
        .command(&["plugin", "build", &format!("else/where/{name}")])
        .env("ZIG_LOCAL_CACHE_DIR", elsewhere.join("cache"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    let bytes = |path: &str| std::fs::read(project.path(path)).unwrap();
    let component = component("reward", language);
    assert!(bytes(&component) == bytes(&format!("else/where/{component}")), "{component}");
}

/// Breaks a type of the reward in TypeScript, so that no build accepts it.
fn types_are_checked_before_a_plugin_in_typescript_is_built(project: &Project) {
    let main = project.read("reward-ts/main.ts");
    project.write(
        "reward-ts/main.ts",
        &main.replace("sample.response, params.prefix", "sample.response, params.tolerance"),
    );
    let output = project.run(&["plugin", "build", "reward-ts"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("error: `reward-ts` has type errors: tsc failed with status"), "{said}");
    assert!(said.contains("main.ts(") && said.contains("'number' is not assignable"), "{said}");
    // The component of the earlier sources is still there, and is up to date once these sources are back.
    project.write("reward-ts/main.ts", &main);
    assert!(run(project, &["plugin", "build", "reward-ts"]).contains("unchanged"));
}

#[test]
fn a_taskset_gives_its_rows() {
    let project = Project::empty();
    // The languages whose builds take a second.
    for language in ["c", "cpp"] {
        make(&project, language, "taskset");
    }
    assert_eq!(project.read("taskset-c/cases.jsonl"), project.read("taskset-cpp/cases.jsonl"));
    // A column that is not JSON, and a text that JSON escapes.
    let source = project.read("taskset-c/src/plugin.c");
    let row = "    gavel_row_text(row, \"note\", \"\\\"\\\\\\t\\xc3\\xa9\");\n    if (seed == 9) gavel_row_json(row, \"level\", \"1,\");\n}\n";
    let (before, _) = source.rsplit_once("}\n").unwrap();
    project.write("taskset-c/src/plugin.c", &format!("{before}{row}"));
    let case = |index: u64, seed: u64, expect: Value| {
        json!({"index": index, "seed": seed, "expect": expect}).to_string() + "\n"
    };
    let not_json = json!({"outcome": "fault", "reason": "the column `level` is not JSON: 1,"});
    project.write("taskset-c/cases.jsonl", &(case(0, 1, json!({"row": {"note": "\"\\\té"}})) + &case(0, 9, not_json)));
    assert!(run(&project, &["plugin", "test", "taskset-c"]).contains("2 cases passed"));
}

#[test]
fn a_tool_answers_its_calls() {
    let project = Project::empty();
    for language in ["rust", "python", "c", "cpp"] {
        make(&project, language, "tool");
        let said = run(&project, &["plugin", "inspect", &component("tool", language)]);
        for function in ["guess  Guesses the number.", "number  {", "guesses_left  Returns how many"] {
            assert!(said.contains(function), "{language}: {function:?} is not in {said}");
        }
    }
    // The sessions of a tool in JavaScript are tested in sdk/js/test. Its component takes longest to compile, so this one
    // is only built, from TypeScript, and one that is an agent too is run below.
    scaffold(&project, "ts", "tool");
    run(&project, &["plugin", "build", "tool-ts"]);
    run(&project, &["plugin", "new", "tool-js", "--lang", "js", "--kind", "tool"]);
    std::os::unix::fs::symlink(project.path("tool-ts/node_modules"), project.path("tool-js/node_modules")).unwrap();
    let tested = Command::new("node").arg("--test").current_dir(project.path("tool-js")).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    for language in LANGUAGES {
        let cases = project.read(&format!("tool-{language}/cases.jsonl"));
        assert_eq!(cases, project.read("tool-rust/cases.jsonl"), "{language}");
    }
}

/// Replaces the sources and the cases of a plugin, which must pass them.
fn passes_as(project: &Project, name: &str, file: &str, source: &str, cases: &str) {
    project.write(&format!("{name}/{file}"), source);
    project.write(&format!("{name}/cases.jsonl"), cases);
    if file.ends_with(".ts") {
        // Its types are checked, too, and it is about other functions.
        project.write(&format!("{name}/main.test.ts"), "export {};\n");
    }
    let said = run(project, &["plugin", "test", name]);
    let count = cases.lines().count();
    let expected = format!("{count} {} passed", if count == 1 { "case" } else { "cases" });
    assert!(said.contains(&expected), "{name}: {said}");
}

#[test]
fn an_agent_attempts_tasks() {
    let project = Project::empty();
    for language in ["rust", "python", "c", "cpp", "ts"] {
        make(&project, language, "agent");
    }
    // Its component would be the same as that in TypeScript, so only its tests run.
    run(&project, &["plugin", "new", "agent-js", "--lang", "js", "--kind", "agent"]);
    std::os::unix::fs::symlink(project.path("agent-ts/node_modules"), project.path("agent-js/node_modules")).unwrap();
    let tested = Command::new("node").arg("--test").current_dir(project.path("agent-js")).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    for language in LANGUAGES {
        let cases = project.read(&format!("agent-{language}/cases.jsonl"));
        assert_eq!(cases, project.read("agent-rust/cases.jsonl"), "{language}");
    }
    an_agent_in_c_asks_for_everything(&project);
    for (language, sources) in ACTORS {
        passes_as_both(&project, &format!("agent-{language}"), ["tool", "agent"], sources, &(sums() + &plans()));
    }
}

/// The cases of the tool that adds.
fn sums() -> String {
    let add = |by: u8, sum: u8| json!({"name": "add", "arguments": {"by": by}, "expect": {"answer": sum.to_string()}});
    let ends = |calls: Value, state: Value| json!({"calls": calls, "expect": {"state": state}}).to_string() + "\n";
    ends(json!([add(2, 2), add(3, 5)]), json!({"sum": 5, "é": [null]})) + &ends(json!([add(0, 0)]), json!(null))
}

/// The cases of the agent that returns an object.
fn plans() -> String {
    let attempt = |reply: &str, extra: Value| {
        let expect = json!({"response": reply, "extra": extra});
        json!({"prompt": "Plan.", "policy": [reply], "expect": expect}).to_string() + "\n"
    };
    attempt("one two", json!({"plan": [1.5, null], "é": 7})) + &attempt("one", json!(null))
}

/// As [`passes_as`], for a plugin in a language with an interpreter that becomes one of two kinds, with a file of sources
/// for each. Both kinds in one component, as it takes these languages longest to build and to compile one.
fn passes_as_both(project: &Project, name: &str, kinds: [&str; 2], sources: [&str; 2], cases: &str) {
    let manifest = project.read(&format!("{name}/plugin.toml"));
    let only = kinds.map(|kind| format!("exports = [{kind:?}]\n"));
    let only = only.iter().find(|only| manifest.contains(*only)).unwrap();
    project.write(&format!("{name}/plugin.toml"), &manifest.replace(only, &format!("exports = {kinds:?}\n")));
    let (end, import) = match name.ends_with("-python") {
        true => ("py", kinds.map(|kind| format!("import its_{kind}  # noqa: F401\n"))),
        false => ("ts", kinds.map(|kind| format!("import \"./its_{kind}.js\";\n"))),
    };
    for (kind, source) in kinds.into_iter().zip(sources) {
        project.write(&format!("{name}/its_{kind}.{end}"), source);
    }
    passes_as(project, name, &format!("main.{end}"), &import.concat(), cases);
}

/// Makes a plugin of this kind in every language and tests it. Then the sources of those in Rust and in C are replaced by
/// an echo, which must pass the case `echo`.
fn gives_the_same_in_every_language(kind: &str, echoes: [(&str, &str, &str); 2], echo: &Value) -> Project {
    let project = Project::empty();
    for language in ["rust", "python", "c", "cpp", "ts"] {
        make(&project, language, kind);
    }
    // As for agents.
    run(&project, &["plugin", "new", &format!("{kind}-js"), "--lang", "js", "--kind", kind]);
    let modules = |language: &str| project.path(&format!("{kind}-{language}/node_modules"));
    std::os::unix::fs::symlink(modules("ts"), modules("js")).unwrap();
    let in_js = project.path(&format!("{kind}-js"));
    let tested = Command::new("node").arg("--test").current_dir(in_js).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    for language in LANGUAGES {
        let cases = project.read(&format!("{kind}-{language}/cases.jsonl"));
        assert_eq!(cases, project.read(&format!("{kind}-rust/cases.jsonl")), "{language}");
    }
    for (language, file, source) in echoes {
        passes_as(&project, &format!("{kind}-{language}"), file, source, &format!("{echo}\n"));
    }
    project
}

#[test]
fn an_advantage_gives_the_same_in_every_language() {
    let echoes = [
        ("rust", "src/lib.rs", include_str!("echoes/advantage.rs")),
        ("c", "src/plugin.c", include_str!("echoes/advantage.c")),
    ];
    gives_the_same_in_every_language("advantage", echoes, &advantage());
}

/// The case of an advantage that tells what it sees.
fn advantage() -> Value {
    // What the plugin sees, and the three forms of an answer.
    let group = json!({"task_id": "t", "data_source": "math", "samples": [
        {"reward": 0.5, "parts": {"a": {"score": 1, "weight": 2, "metrics": {"m": 3}}, "b": null}, "tokens": 2},
        {"reward": 0, "trajectories": [
            {"tokens": 4, "learned": [[0, 2], [3, 4]], "credit": [[0, 1, 0.5]], "prompt_tokens": 7, "versions": [1, 2],
             "finish_reason": "length", "penalty": 0.25, "logprob": -2.5},
            {"tokens": 1}
        ]},
        {"reward": 1}
    ]});
    let seen = "t math [] | a 8 4 4 m=12 | b 4 none 0 | 0 0 0 2 0-2 0 0 none none | 0 7 1 4 0-2 3-4 0-1:2 1 -10 1 2 | 1 0 0 1 0-1 0 0 none none | 0 0 0 1 0-1 0 0 none none";
    let advantages = json!([[0.5, [0.5, 1.5], [[7]]]]);
    let expect = json!({"advantages": advantages, "state": format!("before 3 {seen}")});
    json!({"groups": [group], "step": 3, "state": "before", "expect": expect})
}

#[test]
fn a_sampler_gives_the_same_in_every_language() {
    let echoes = [
        ("rust", "src/lib.rs", include_str!("echoes/sampler.rs")),
        ("c", "src/plugin.c", include_str!("echoes/sampler.c")),
    ];
    let project = gives_the_same_in_every_language("sampler", echoes, &sampler());
    let cases = format!("{}\n{}\n", advantage(), sampler());
    for (language, sources) in DECIDERS {
        passes_as_both(&project, &format!("sampler-{language}"), ["advantage", "sampler"], sources, &cases);
    }
}

/// The case of a sampler that tells what it sees.
fn sampler() -> Value {
    let ended = json!([
        {"task": [1, 2], "draw": 8, "task_id": "t", "data_source": "math", "version": 4, "dropped": "equal-rewards",
         "samples": [{"reward": 0.5, "metrics": {"a": 1, "a/m": 3}}, {"outcome": "out-of-budget"}]},
        {"task": 1, "draw": 9, "samples": [{"outcome": "unavailable"}]}
    ]);
    let seen = "before 6 77 2 10 7 | 4 0 | 3 2 | 8 6 1 t math 4 equal-rewards 2 | scored 2 a=4 a/m=12 | out-of-budget none | 9 1 0 1 none 5 none none | unavailable none";
    let expect = json!({"draws": [[1, 2], 0], "refusals": {"8": "seen"}, "state": seen});
    let datasets = json!([4, {"rows": 3, "weight": 0.5}]);
    json!({"datasets": datasets, "step": 6, "seed": 77, "wanted": 2, "state": "before", "ended": ended, "expect": expect})
}

#[test]
fn a_sampler_in_c_names_why_it_draws_nothing() {
    let project = Project::empty();
    run(&project, &["plugin", "new", "refuses", "--lang", "c", "--kind", "sampler"]);
    project.write("refuses/src/plugin.c", include_str!("echoes/no_draws.c"));
    let expect = json!({"outcome": "fault", "reason": "the first reason"});
    project.write("refuses/cases.jsonl", &format!("{}\n", json!({"datasets": [4], "wanted": 1, "expect": expect})));
    let said = run(&project, &["plugin", "test", "refuses"]);
    assert!(said.contains("1 case passed"), "{said}");
}

fn an_agent_in_c_asks_for_everything(project: &Project) {
    project.write("agent-c/src/plugin.c", include_str!("echoes/agent.c"));
    let call = |name: &str| json!({"name": name, "arguments": {"by": 2}});
    let said = [
        "7 | sums | {\"a\":1} | 2 + 3? | 0 | 0",
        "one! | 4 | 1 | 4092 | 1 | there is no message to answer; append one",
        "add | 4 | sub | error: there is no function `sub`; there are: add",
        "0 | two | 2 | the sample has had its 2 turns (agent.max_turns)",
    ];
    let case = json!({
        "id": 7, "data_source": "sums", "prompt": "2 + 3?", "settings": {"a": 1}, "max_turns": 2,
        "policy": [{"content": "one! and", "tool_calls": [call("add"), call("sub")]}, "two"],
        "tools": {"add": ["4"]},
        "expect": {"response": said.join(" | "), "conversations": 1, "asked": "And?"},
    });
    project.write("agent-c/cases.jsonl", &format!("{case}\n"));
    assert!(run(project, &["plugin", "test", "agent-c"]).contains("1 case passed"));
}

#[cfg(feature = "train")]
#[test]
fn a_state_and_an_object_in_c_reach_rewards() {
    let project = Project::new();
    for (kind, source) in [("tool", include_str!("echoes/sums.c")), ("agent", include_str!("echoes/calls.c"))] {
        let name = format!("{kind}-c");
        run(&project, &["plugin", "new", &name, "--lang", "c", "--kind", kind]);
        project.write(&format!("{name}/src/plugin.c"), source);
        run(&project, &["plugin", "build", &name]);
    }
    project.add_reward("traces", "guests/traces.wasm", "weight = 0.0");
    let agent = format!("agent.path={:?}", component("agent", "c"));
    let tool = format!("tool=[{{name=\"shop\",path={:?}}}]", component("tool", "c"));
    let settings = ["train.steps=1", "rollout.max_tokens=20", &agent, &tool];
    let arguments = settings.iter().flat_map(|setting| ["--set", setting]);
    let output = project.run(&["train", "-c", "train.toml"].into_iter().chain(arguments).collect::<Vec<_>>());
    // Every attempt is the same, so that nothing is learned.
    assert!(stderr(&output).contains("the rewards of each group are equal"), "{}", stderr(&output));
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert!(!trajectories.is_empty());
    for line in trajectories {
        assert_eq!((&line["states"], &line["extra"]), (&json!({"shop": {"sum": 5}}), &json!({"plan": [1.5, null]})));
        let note: Value = serde_json::from_str(line["plugins"]["traces"]["reason"].as_str().unwrap()).unwrap();
        assert_eq!((&note["trajectories"][0]["shop"], &note["extra"]), (&line["states"]["shop"], &line["extra"]));
    }
}

#[test]
fn a_trap_in_c_names_its_functions() {
    let project = Project::empty();
    run(&project, &["plugin", "new", "traps", "--lang", "c"]);
    let rule = project.read("traps/src/plugin.c");
    let (before, _) = rule.split_once("/* Once a sample. */").unwrap();
    let traps = "static __attribute__((noinline)) double give_up(gavel_text text) {\n    if (text.len) __builtin_trap();\n    return 0;\n}\n\nvoid plugin_score(gavel_sample sample, gavel_reference reference, gavel_verdict *verdict) {\n    (void)reference;\n    gavel_score(verdict, give_up(gavel_response(sample)));\n}\n";
    project.write("traps/src/plugin.c", &format!("{before}{traps}"));
    run(&project, &["plugin", "build", "traps"]);
    let output = project.run(&["plugin", "test", "traps"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("give_up") && said.contains("plugin_score") && !said.contains("function "), "{said}");
    // Only names are kept.
    assert!(std::fs::metadata(project.path("traps/build/traps.wasm")).unwrap().len() < 100_000);
}

#[test]
fn a_judger_says_the_same_in_every_language() {
    let project = Project::empty();
    for language in LANGUAGES {
        make(&project, language, "judger");
    }
    // Groups of one to six.
    let mut group = 0;
    let mut left = 0;
    let text = rows(300);
    let grouped = text.lines().map(|line| {
        if left == 0 {
            (group, left) = (group + 1, group % 6 + 1);
        }
        left -= 1;
        let mut row: Value = serde_json::from_str(line).unwrap();
        row["id"] = json!(group);
        // The samples of a group are attempts at one task.
        row["ground_truth"] = json!((group % 9).to_string());
        format!("{row}\n")
    });
    project.write("rows.jsonl", &grouped.collect::<String>());
    for (line, said) in score(&project, "judger", "rows.jsonl").iter().enumerate() {
        assert!(said.iter().all(|other| *other == said[0]), "line {}: {said:?}", line + 1);
    }
    what_another_reward_said_is_the_same_in_every_language(&project);
    outside::servers_and_programs_answer(&project, "judger-python", "judger-js");
}

/// Changes the judgers so that they wait for a reward, and compares what they see of it.
fn what_another_reward_said_is_the_same_in_every_language(project: &Project) {
    let languages: [&str; ECHOES.len()] = std::array::from_fn(|at| LANGUAGES[at]);
    for (language, (file, source)) in languages.into_iter().zip(ECHOES) {
        project.write(&format!("judger-{language}/{file}"), source);
        if REACH_OUT.contains(&language) {
            let manifest = project.read(&format!("judger-{language}/plugin.toml"));
            let more = format!("language = {language:?}\n{}", outside::IMPORTS);
            project.write(
                &format!("judger-{language}/plugin.toml"),
                &manifest.replace(&format!("language = {language:?}\n"), &more),
            );
        }
        run(project, &["plugin", "build", &format!("judger-{language}")]);
    }
    let row = |response: &str| format!("{}\n", json!({"id": 1, "prompt": "?", "response": response}));
    let responses =
        ["score 0.25", "score -3\nmetric a 2\nmetric b 0.5\nnote süß", "abstain mine", "panic", "score 1e300"];
    project.write("rows.jsonl", &responses.map(row).concat());
    let quality = format!("quality={}", project::built("guests/obeys.wasm").display());
    let plugins = languages.map(|language| component("judger", language));
    let after = languages.map(|language| format!("judger-{language}=quality"));
    let mut args = vec!["score", "--data", "rows.jsonl", "--out", "out.jsonl", "--plugin", &quality];
    plugins.iter().for_each(|plugin| args.extend(["--plugin", plugin]));
    let granted = REACH_OUT.map(|language| outside::granted(&format!("judger-{language}"), &["127.0.0.1".into()]));
    let granted = [&outside::program()[..], &granted.concat()].concat();
    args.extend(granted.iter().map(String::as_str));
    // A judger without `after` sees no verdicts.
    let seen = |args: &[&str]| {
        project.succeed(args);
        let said = said(project, "out.jsonl", "judger", &languages);
        said.into_iter()
            .map(|said| {
                assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
                said[0].clone()
            })
            .collect::<Vec<_>>()
    };
    assert!(seen(&args).iter().all(|said| said[1] == -1.0));
    after.iter().for_each(|after| args.extend(["--after", after]));
    let scored = |score: f64, note: f64, metrics: Value| {
        let mut metrics = metrics;
        metrics["note"] = json!(note);
        // The prompt, with which each conversation opens.
        metrics["seen"] = json!(1.0);
        json!(["scored", score, metrics, null])
    };
    let abstained = json!(["abstained", null, {}, null]);
    let expected = [
        scored(0.25, 0.0, json!({})),
        scored(-3.0, 5.0, json!({"a": 2.0, "b": 0.5})),
        abstained,
        json!(["scored", -2.0, {}, null]),
        scored(1e300, 0.0, json!({})),
    ];
    assert_eq!(seen(&args), expected);
    let first = &lines(&project.path("out.jsonl"))[0];
    for language in ["python", "js", "c"] {
        assert_eq!(first["plugins"][format!("judger-{language}")]["payload"], json!({"é": [0.25]}), "{language}");
    }
}

/// A reward that asks a reward model, or shows what an agent and tools left, in the languages whose SDKs wrap the import
/// themselves: the file of its folder, and its text.
const RATES: [(&str, &str, &str); 3] = [
    ("python", "main.py", include_str!("rates/main.py")),
    ("js", "main.js", include_str!("rates/main.js")),
    ("c", "src/plugin.c", include_str!("rates/plugin.c")),
];

#[test]
fn a_reward_asks_a_reward_model_and_sees_what_agents_and_tools_left_in_every_language() {
    let project = Project::empty();
    let steps =
        json!({"score": 0.1, "steps": [{"start": 0, "end": 1, "value": 0.5}, {"start": 3, "end": 4, "value": 0.25}]});
    let case = |replies: Value, expect: Value| {
        json!({"prompt": "Go.", "response": "a\n\nb", "replies": {"quality": replies}, "expect": expect}).to_string()
            + "\n"
    };
    let scored = json!({"score": 0.5, "metrics": {"steps": 2, "last": 0.25, "end": 4}});
    let extra = json!({"plan": [1.5, null], "é": {}});
    let left = json!({
        "prompt": "Go.", "response": "a", "states": {"shop": {"sold": [2]}}, "extra": extra,
        "expect": {"score": 1, "payload": {"extra": extra, "states": [{"sold": [2]}, null]}},
    });
    let cases = case(json!(["0.75", "0.25", steps.to_string()]), scored)
        + &case(json!(["0.75"]), json!({"outcome": "unavailable"}))
        + &format!("{left}\n");
    for (language, file, source) in RATES {
        scaffold(&project, language, "reward");
        let folder = format!("reward-{language}");
        let manifest = format!(
            "[plugin]\nname = {folder:?}\nlanguage = {language:?}\nexports = [\"reward\"]\nimports = [\"reward-model\"]\n[test]\ngrant = {{ reward_model = [\"quality\"] }}\n"
        );
        project.write(&format!("{folder}/plugin.toml"), &manifest);
        project.write(&format!("{folder}/{file}"), source);
        project.write(&format!("{folder}/cases.jsonl"), &cases);
        run(&project, &["plugin", "build", &folder]);
        assert!(run(&project, &["plugin", "test", &folder]).contains("3 cases passed"), "{language}");
    }
}

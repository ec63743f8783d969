//! A policy with a tool, trained as `cargo xtask demo-tools` and `cargo xtask demo-shop` train it, on so few questions that
//! it soon calls it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::slice;

const QUESTIONS: [(u32, u32); 4] = [(12, 13), (27, 31), (44, 18), (95, 62)];

/// A file of the demo, with the paths of this project.
fn of_demo(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let template = folder.join("tools.jinja").canonicalize().unwrap();
    let text = text.replace("demo/tools.jinja", template.to_str().unwrap()).replace("target/demo/", "");
    ["calculator", "exact-answer", "final-state", "shop"].into_iter().fold(text, |text, plugin| {
        let path = format!("plugins/{plugin}.wasm");
        text.replace(&format!("target/{path}"), built(&path).to_str().unwrap())
    })
}

/// A project whose policy has learned to call the calculator.
fn project() -> Project {
    let project = Project::empty();
    let (mut rows, mut conversations) = (String::new(), String::new());
    for (index, (first, second)) in QUESTIONS.into_iter().enumerate() {
        let (expression, value) = (format!("{first} * {second}"), (first * second).to_string());
        let prompt = json!([{"role": "user", "content": expression}]);
        let row = json!({"prompt": prompt, "reward_model": {"ground_truth": value}, "extra_info": {"index": index}});
        let function = json!({"name": "calculator", "arguments": json!({"expression": expression}).to_string()});
        let conversation = json!({"messages": [
            {"role": "user", "content": expression},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": value},
            {"role": "assistant", "content": format!("Answer: {value}")},
        ]});
        rows += &format!("{row}\n");
        conversations += &format!("{conversation}\n");
    }
    project.write("tools-train.jsonl", &rows);
    project.write("tools-validation.jsonl", &rows);
    project.write("tools-sft.jsonl", &conversations);
    project.write("sft.toml", &of_demo("tools-sft.toml"));
    project.write("train.toml", &of_demo("tools.toml"));
    let steps = ["train.steps=100", "train.batch_size=4", "train.validate_every=100"];
    let settings = steps.iter().flat_map(|setting| ["--set", *setting]);
    project.succeed(&["sft", "-c", "sft.toml"].into_iter().chain(settings).collect::<Vec<_>>());
    project
}

const TRAIN: [&str; 12] = [
    "train",
    "-c",
    "train.toml",
    "--set",
    "model.path=runs/demo-tools-sft/checkpoints/step-000100",
    "--set",
    "train.steps=2",
    "--set",
    "train.prompts_per_step=4",
    "--set",
    "log.token_ids=true",
    "--dry-run",
];

#[test]
fn a_policy_calls_its_tool_and_learns_from_what_it_wrote_alone() {
    let project = project();
    let output = project.succeed(&TRAIN);
    let checked = String::from_utf8(output.stdout).unwrap();
    assert!(checked.contains("calculator"), "{checked}");
    project.succeed(&TRAIN[..11]);

    let metrics = project.metrics("runs/demo-tools");
    let number = |line: &Map<String, Value>, name: &str| {
        line.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("{name}: {line:?}"))
    };
    // The first line is the validation before the first step.
    assert!(number(&metrics[0], "val/tool_turns/mean") > 0.5);
    for line in &metrics[1..] {
        assert!(number(line, "tool_turns/mean") > 0.5 && number(line, "num_turns/max") >= 2.0, "{line:?}");
        assert!(number(line, "tool/calculator/answered") >= 1.0, "{line:?}");
        // As for samples of one turn, training computes the log-probabilities of rollout.
        assert!(number(line, "logprob_mismatch") < 1e-4, "{line:?}");
        // The answers of the tool are not learned from.
        assert!(number(line, "tokens/trained") < number(line, "tokens/response"), "{line:?}");
    }
    let trajectories = lines(&project.path("runs/demo-tools/trajectories/step-000001.jsonl"));
    // A sample may have called no tool.
    let answered = |line: &&Map<String, Value>| {
        line.get("rollout").is_some_and(|rollout| rollout["tool_uses"][0]["ending"] == "answered")
    };
    let with_call = trajectories.iter().find(answered).unwrap();
    let roles: Vec<&Value> = with_call["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["assistant", "tool", "assistant"]);
    assert_eq!(with_call["rollout"]["tool_uses"][0]["name"], "calculator");
    assert_eq!(with_call["rollout"]["generating"].as_array().unwrap().len(), 2);
    assert_eq!((&with_call["turns"], &with_call["tool_turns"]), (&json!(2), &json!(1)));
    assert_eq!((&with_call["status"], &with_call["finish_reason"]), (&json!("completed"), &json!("stop")));
    let question = with_call["prompt"][0]["content"].as_str().unwrap();
    let read = format!("<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n");
    assert_eq!(with_call["prompt_text"], read);
    // What the policy could call, how its call ended and how each turn did, as data: this template shows no functions.
    let trace = &with_call["trace"];
    assert_eq!(trace["tools"][0]["function"]["name"], "calculator");
    assert_eq!(trace["calls"], json!([{"turn": 0, "function": "calculator", "ending": "answered"}]));
    assert_eq!(trace["turns"].as_array().unwrap().len(), 2);

    let replayed = |run: &str| String::from_utf8(project.succeed(&["replay", run]).stdout).unwrap();
    let said = replayed("runs/demo-tools");
    assert!(said.contains("64 samples, 64 verdicts given again: all the same"), "{said}");

    turns_that_called_the_tool_are_compared(&project);

    // The same policy, and an MCP server in place of the component.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/mcp_server.py");
    let tool = format!(
        "tool=[{{name=\"remote\",mcp=[\"python3\",{script:?},\"newest\",\"stdio\"],limits={{timeout=\"60s\"}}}}]"
    );
    let mut arguments = [&TRAIN[..11], &["--set", "log.name=remote", "--set", &tool, "--dry-run"]].concat();
    let checked = String::from_utf8(project.succeed(&arguments).stdout).unwrap();
    assert!(checked.contains("tool: remote: MCP server `python3 ") && checked.contains("calculator"), "{checked}");
    arguments.pop();
    project.succeed(&arguments);
    for line in &project.metrics("runs/remote")[1..] {
        assert!(number(line, "tool/calculator/answered") >= 1.0, "{line:?}");
        assert!(number(line, "logprob_mismatch") < 1e-4, "{line:?}");
    }
    let said = replayed("runs/remote");
    assert!(said.contains("64 samples, 64 verdicts given again: all the same"), "{said}");
    what_a_server_did_is_not_learned(&project);
}

/// A call as a message of the policy, with the shop's answer.
fn shopping(id: &str, name: &str, arguments: &Value, answer: &str) -> [Value; 2] {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    [
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": function}]}),
        json!({"role": "tool", "tool_call_id": id, "content": answer}),
    ]
}

#[test]
fn a_policy_is_rewarded_for_the_state_in_which_it_left_the_shop() {
    let project = Project::empty();
    let user = json!({"role": "user", "content": "4 K"});
    let stock = json!({"K": {"price": 3, "count": 9}, "L": {"price": 2, "count": 9}});
    let row = json!({
        "prompt": [user],
        "reward_model": {"ground_truth": {"orders": [{"K": 4}]}},
        "extra_info": {"tools_kwargs": {"shop": {"create_kwargs": {"stock": stock}}}},
    });
    let in_basket = shopping("1", "add", &json!({"item": "K", "count": 4}), "4 K in the basket, 12 in all");
    let is_paid = shopping("2", "pay", &json!({}), "order 1 is paid: 12");
    let done = json!({"role": "assistant", "content": "Done."});
    let mut conversations = String::new();
    for calls in [in_basket.to_vec(), [in_basket, is_paid].concat()] {
        let messages = [slice::from_ref(&user), &calls, slice::from_ref(&done)].concat();
        conversations += &format!("{}\n", json!({"messages": messages}));
    }
    project.write("shop-train.jsonl", &format!("{row}\n"));
    project.write("shop-validation.jsonl", &format!("{row}\n"));
    project.write("shop-sft.jsonl", &conversations);
    let copy = json!({"messages": [{"role": "user", "content": "say 4 K"}, {"role": "assistant", "content": "4 K"}]});
    project.write("shop-copy.jsonl", &format!("{copy}\n"));
    for config in ["copy", "sft"] {
        project.write(&format!("{config}.toml"), &of_demo(&format!("shop-{config}.toml")));
    }
    project.write("train.toml", &of_demo("shop.toml"));
    project.succeed(&["sft", "-c", "copy.toml", "--set", "train.steps=20", "--set", "train.batch_size=4"]);
    let settings = [
        "model.path=runs/demo-shop-copy/checkpoints/step-000020",
        "train.steps=120",
        "train.batch_size=5",
        "train.learning_rate=2e-3",
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    project.succeed(&["sft", "-c", "sft.toml"].into_iter().chain(settings).collect::<Vec<_>>());
    let settings = [
        "model.path=runs/demo-shop-sft/checkpoints/step-000120",
        "train.steps=2",
        "train.prompts_per_step=1",
        "rollout.group_size=32",
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    project.succeed(&["train", "-c", "train.toml"].into_iter().chain(settings).collect::<Vec<_>>());

    let (mut bought, mut not_paid) = (0, 0);
    for sample in lines(&project.path("runs/demo-shop/trajectories/step-000001.jsonl")) {
        let state = sample.get("states").map_or(&Value::Null, |states| &states["shop"]);
        let is_bought = state["orders"] == json!([{"K": 4}]);
        assert_eq!(sample["reward"].as_f64(), Some(if is_bought { 1.0 } else { 0.0 }), "{sample:?}");
        bought += usize::from(is_bought);
        not_paid += usize::from(state["orders"] == json!([]) && state["basket"] == json!({"K": 4}));
    }
    assert!(bought > 0 && not_paid > 0, "{bought}, {not_paid}");
    // The states are on record: no shop is asked again.
    let said = String::from_utf8(project.succeed(&["replay", "runs/demo-shop"]).stdout).unwrap();
    assert!(said.contains("64 samples, 64 verdicts given again: all the same"), "{said}");
}

/// Credit for a call reaches the comparison of turns, though a call has no text.
fn turns_that_called_the_tool_are_compared(project: &Project) {
    let rewards = format!(
        "reward=[{{name=\"answer\",path={:?},params={{prefix=\"Answer:\"}}}},{{name=\"calls\",path={:?},params={{score=false,found=0.5,missed=-0.5}}}}]",
        built("plugins/exact-answer.wasm"),
        built("plugins/tool-credit.wasm"),
    );
    let settings = [rewards.as_str(), "train.advantage={turns=\"state\",gamma=0.95}", "log.name=turns"];
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    project.succeed(&TRAIN[..11].iter().copied().chain(settings).collect::<Vec<_>>());
    let (mut credited, mut uncredited) = (0, 0);
    for line in lines(&project.path("runs/turns/trajectories/step-000001.jsonl")) {
        let credit = &line["plugins"]["calls"]["credit"];
        match line["tool_turns"].as_u64().unwrap() {
            0 => uncredited += usize::from(credit.as_array().is_none_or(Vec::is_empty)),
            _ => {
                let first = &credit[0];
                assert_eq!([&first["message"], &first["start"], &first["end"]], [&json!(0), &json!(0), &json!(0)]);
                assert_eq!(first["value"].as_f64().unwrap().abs(), 0.5);
                credited += 1;
            }
        }
    }
    assert!(credited > 0 && credited + uncredited == 32, "{credited}, {uncredited}");
}

/// A run whose calculator is an MCP server that ends at each `every`-th call: its error output, and its trajectories.
fn with_mortal_server(project: &Project, every: &str, settings: &[&str]) -> (String, Vec<Map<String, Value>>) {
    let (name, folder) = (format!("log.name=every{every}"), project.path(every));
    std::fs::create_dir(&folder).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/mcp_mortal.py");
    let tool = format!("tool=[{{name=\"mortal\",mcp=[\"python3\",{script:?},{folder:?},\"0\",{every:?}]}}]");
    let settings = [&[&*name, &tool], settings].concat();
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    let output = project.run(&TRAIN[..11].iter().copied().chain(settings).collect::<Vec<_>>());
    let run = project.path(&format!("runs/every{every}/trajectories"));
    // A run that stops in its first step may have none.
    let entries = std::fs::read_dir(run).into_iter().flatten();
    let mut steps: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    steps.sort();
    (stderr(&output), steps.iter().flat_map(|step| lines(step)).collect())
}

/// A call under way at the end of its server may have had its effect, so it is not repeated, and its sample has no
/// reward. No sample is scored and learned from that reads of it.
fn what_a_server_did_is_not_learned(project: &Project) {
    let (said, samples) = with_mortal_server(project, "5", &["train.max_failure_rate=1.0"]);
    assert!(samples.iter().any(|sample| sample["outcome"] == "scored"), "{said}");
    for sample in &samples {
        let messages = sample["messages"].to_string();
        assert!(!messages.contains("does not answer"), "{messages}");
        let uses = sample.get("rollout").and_then(|rollout| rollout["tool_uses"].as_array());
        let is_away = uses.is_some_and(|uses| uses.iter().any(|each| each["ending"] == "unavailable"));
        assert_eq!(sample["outcome"] == "unavailable", is_away, "{sample:?}");
        assert!(!is_away || sample["advantage"].is_null(), "{sample:?}");
    }
    assert!(samples.iter().any(|sample| sample["outcome"] == "unavailable"), "{said}");

    // Without a server that answers, the run stops.
    let (said, samples) = with_mortal_server(project, "1", &["train.max_failure_rate=0.01"]);
    let expected =
        "samples could not be scored or had a tool that was unavailable, more than train.max_failure_rate = 0.01";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("the tool function `calculator` is unavailable: `mortal` does not answer\n"), "{said}");
    // What was written before has calls that cannot be read at most.
    for sample in &samples {
        let uses = sample.get("rollout").and_then(|rollout| rollout["tool_uses"].as_array());
        assert!(!uses.is_some_and(|uses| uses.iter().any(|each| each["ending"] == "answered")), "{sample:?}");
        assert!(!sample["messages"].to_string().contains("does not answer"), "{sample:?}");
    }
}

#[test]
fn a_configuration_of_tools_that_cannot_be_says_why() {
    let project = Project::empty();
    project.write("train.toml", &of_demo("tools.toml"));
    let error = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
        let output = project.run(&["train", "-c", "train.toml"].into_iter().chain(settings).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let said = error(&["agent.kind=single"]);
    assert!(said.contains("there are [[tool]] tables, and agent.kind is \"single\"\nhint: set agent.kind"), "{said}");
    for (table, wrong) in [
        ("", "it has neither path nor mcp\nhint: "),
        ("path=\"a.wasm\",mcp=[\"a\"]", "both path and mcp say what it is\nhint: "),
        ("mcp=[]", "mcp has no program"),
        ("mcp=\"mcp-server-time\"", "mcp is not a URL\nhint: write mcp = "),
        ("mcp=[\"a\"],params={b=1}", "params and reuse are those of a component\nhint: "),
        ("mcp=[\"a\"],limits={memory=\"1GiB\"}", "of limits, it has timeout and output"),
        ("mcp=[\"a\"],grant={chat=[\"x\"]}", "of grant, its program has env"),
        ("mcp=[\"a\"],api_key_env=\"B\"", "api_key_env is for an MCP server at a URL\nhint: "),
        ("path=\"a.wasm\",api_key_env=\"B\"", "api_key_env is for an MCP server at a URL"),
        ("path=\"a.wasm\",retries=3", "retries is for an MCP server\nhint: "),
        ("mcp=\"http://a\",grant={env=[\"B\"]}", "grant.env is for an MCP server that is a program\nhint: "),
    ] {
        let said = error(&[&format!("tool=[{{name=\"t\",{table}}}]")]);
        assert!(said.starts_with("error: ") && said.contains("tool `t`: ") && said.contains(wrong), "{table}: {said}");
    }
    let said = error(&["agent.max_turns=0"]);
    assert!(said.contains("agent.max_turns must be"), "{said}");
    let said = error(&["agent.on_tool_failure={unavailable=\"drop\"}"]);
    assert!(
        said.contains("agent.on_tool_failure.unavailable: unknown variant `drop`, expected `answer` or `end`"),
        "{said}"
    );
    let said = error(&["agent.on_tool_failure={timeout=\"end\"}"]);
    assert!(
        said.contains("unknown field `timeout`, expected one of `unavailable`, `out-of-budget`, `failed`"),
        "{said}"
    );
    let rows = json!({"prompt": "2 * 3", "ground_truth": "6"}).to_string() + "\n";
    project.write("tools-train.jsonl", &rows.repeat(20));
    let sizes = "model={init={vocab_size=259,hidden_size=32,intermediate_size=32,num_hidden_layers=1,num_attention_heads=2,max_position_embeddings=512}}";
    let said = error(&[sizes, "data.validation=\"tools-train.jsonl\""]);
    assert!(said.contains("the chat template has no form for tool calls that gavel reads"), "{said}");
    let row = json!({"prompt": "2 * 3", "ground_truth": "6", "extra_info": {"tool_selection": ["abacus"]}});
    project.write("other.jsonl", &format!("{row}\n"));
    let said = error(&[sizes, "data.validation=\"other.jsonl\""]);
    assert!(
        said.contains("other.jsonl, line 1: extra_info.tool_selection: there is no tool or function `abacus`"),
        "{said}"
    );
    let extra_info = json!({"need_tools_kwargs": true, "tools_kwargs": {"abacus": {"create_kwargs": {"beads": 9}}}});
    let row = json!({"prompt": "2 * 3", "ground_truth": "6", "extra_info": extra_info});
    project.write("other.jsonl", &format!("{row}\n"));
    let said = error(&[sizes, "data.validation=\"other.jsonl\""]);
    assert!(
        said.contains("other.jsonl, line 1: extra_info.need_tools_kwargs is true, and extra_info.tools_kwargs sets up no tool of the run: it names abacus; the tools and functions are: calculator\nhint: "),
        "{said}"
    );
    let tool = format!("{{name=\"t\",path={:?}}}", built("plugins/calculator.wasm"));
    let said = error(&[&format!("tool=[{tool},{tool}]")]);
    assert!(said.contains("two tools are named `t`\nhint: give each [[tool]] another name"), "{said}");
    project.write(
        "drops.jinja",
        "{{ messages[0].content }}{# <tool_call> #}{{ messages[-1].content if messages[-1].role != 'tool' }}",
    );
    for history in ["exact", "split"] {
        let history = format!("agent.history={history}");
        let said =
            error(&[sizes, "data.validation=\"tools-train.jsonl\"", "model.chat_template=drops.jinja", &history]);
        assert!(said.contains("drops.jinja") && said.contains("hint: set model.chat_template"), "{said}");
    }
    // The template leaves out the policy's messages before the last one.
    project.write("forgets.jinja", "{{ messages[0].content }}{{ messages[-1].content if messages|length > 1 }}:");
    let agent = format!("agent={{path={:?}}}", built("plugins/debate.wasm"));
    let agent =
        [sizes, "data.validation=\"tools-train.jsonl\"", "model.chat_template=forgets.jinja", &agent, "tool=[]"];
    let said = error(&agent);
    assert!(
        said.contains("it leaves a reply out, so that there cannot be a conversation of an agent\nhint: "),
        "{said}"
    );
    let said = error(&["agent.kind=many"]);
    assert!(said.contains("agent.kind") && said.contains("`single` or `tools`"), "{said}");
}

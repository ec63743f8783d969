//! Training where an agent makes the samples.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;
#[path = "project/user.rs"]
mod user;

use project::{Project, built, lines, stderr};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use user::PlayedUser;

/// The arguments of a run in which two speakers debate.
fn debate(settings: &[&str]) -> Vec<String> {
    let agent = format!("agent.path={:?}", built("plugins/debate.wasm"));
    let common =
        ["agent.params={rounds=1}", "train.steps=2", "train.mini_batch_prompts=4", "log.token_ids=true", &agent];
    let settings = common.iter().chain(settings).flat_map(|setting| ["--set", setting]);
    ["train", "-c", "train.toml"].into_iter().chain(settings).map(str::to_owned).collect()
}

fn succeed(project: &Project, arguments: &[String]) -> String {
    let output = project.succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_conversation_of_an_agent_is_a_trajectory_that_is_learned_from() {
    let project = Project::new();
    let checked = succeed(&project, &[&debate(&[])[..], &["--dry-run".to_owned()]].concat());
    assert!(checked.contains("agent: debate"), "{checked}");
    succeed(&project, &debate(&[]));
    for line in &project.metrics("runs/run")[1..] {
        assert_eq!(line["num_trajectories/mean"], 2.0, "{line:?}");
        assert!(line["response_length/clip_ratio"].as_f64().unwrap() <= 1.0, "{line:?}");
        assert!(line["logprob_mismatch"].as_f64().unwrap() < 1e-4, "{line:?}");
    }
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(trajectories.len(), 2 * 16);
    let speakers: Vec<&Value> = trajectories[..2].iter().map(|line| &line["opening"]["speaker"]).collect();
    assert_eq!(speakers, ["first", "second"]);
    for pair in trajectories.chunks(2) {
        assert_eq!((&pair[0]["id"], &pair[0]["advantage"]), (&pair[1]["id"], &pair[1]["advantage"]));
        // Rewards read the answer of the agent: the first speaker's last turn.
        assert_eq!(pair[1]["answer"], pair[0]["response"]);
    }
    let said = succeed(&project, &["replay".to_owned(), "runs/run".to_owned()]);
    assert!(said.contains("all the same"), "{said}");
}

#[test]
fn a_reward_that_reads_speakers_gives_each_its_own() {
    let project = Project::new();
    let reward = format!("reward=[{{name = 'speakers', path = {:?}}}]", built("guests/speakers.wasm"));
    let settings = [&reward, "agent.reward_to='by-agent'", "train.algorithm='dr_grpo'", "train.steps=1"];
    succeed(&project, &debate(&settings));
    let said_last = |line: &serde_json::Map<String, Value>| {
        let said = line["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
        f64::from(said.bytes().map(u32::from).sum::<u32>() % 5)
    };
    let mut compared = BTreeMap::<(String, String), Vec<(f64, f64)>>::new();
    for line in lines(&project.path("runs/run/trajectories/step-000001.jsonl")) {
        let speaker = line["opening"]["speaker"].as_str().unwrap().to_owned();
        let own = said_last(&line);
        assert_eq!(line["plugins"]["speakers"]["metrics"][format!("reward/{speaker}")], own, "{line:?}");
        let group = line["id"].as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
        compared.entry((group, speaker)).or_default().push((own, line["advantage"].as_f64().unwrap()));
    }
    assert_eq!(compared.len(), 2 * 4);
    assert!(compared.values().flatten().any(|(_, advantage)| *advantage != 0.0));
    for own in compared.values() {
        let mean = own.iter().map(|(reward, _)| reward).sum::<f64>() / 4.0;
        assert!(own.iter().all(|(reward, advantage)| (advantage - (reward - mean)).abs() < 1e-6), "{own:?}");
    }
}

#[test]
fn a_run_continues_with_its_own_agent() {
    let project = Project::new();
    let agent = project.path("agent.wasm");
    std::fs::copy(built("plugins/debate.wasm"), &agent).unwrap();
    let settings = |steps: &'static str| [steps, "agent.path=agent.wasm"];
    succeed(&project, &debate(&settings("train.steps=1")));
    let resume = || {
        let arguments = [&debate(&settings("train.steps=2"))[..], &["--resume".to_owned()]].concat();
        project.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // The same agent with an empty custom section is another component.
    let bytes = std::fs::read(&agent).unwrap();
    std::fs::write(&agent, [&bytes[..], &[0, 2, 1, b'x']].concat()).unwrap();
    let output = resume();
    let said = stderr(&output);
    let says = "the agent continues with the run's own copy of its component (hash ";
    assert!(output.status.success() && said.contains(says), "{said}");
    // Without that copy it would be another agent.
    for kept in std::fs::read_dir(project.path("runs/run/plugins")).unwrap() {
        let kept = kept.unwrap().path();
        if std::fs::read(&kept).unwrap() == bytes {
            std::fs::remove_file(kept).unwrap();
        }
    }
    let arguments = [&debate(&settings("train.steps=3"))[..], &["--resume".to_owned()]].concat();
    let said = stderr(&project.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    assert!(said.contains("the agent has another component (debate"), "{said}");
}

#[test]
fn each_row_has_the_agent_that_it_names_or_its_data_source_does() {
    let project = Project::new();
    let named = |number: usize| match number % 3 {
        0 => json!({"data_source": "debated"}),
        1 => json!({"data_source": "debated", "agent_name": "answer"}),
        _ => json!({"data_source": "plain"}),
    };
    let rows = |named: &dyn Fn(usize) -> Value| {
        let rows = lines(&project.path("train.jsonl")).into_iter().enumerate().map(|(number, mut row)| {
            row.remove("agent_name");
            row.extend(named(number).as_object().unwrap().clone());
            Value::Object(row).to_string() + "\n"
        });
        project.write("train.jsonl", &rows.collect::<String>());
    };
    rows(&named);
    let debate = format!(
        "agent=[{{name = 'debate', path = {:?}, params = {{rounds = 1}}, data_sources = ['debated']}}, {{name = 'answer'}}]",
        built("plugins/debate.wasm")
    );
    let arguments = ["train", "-c", "train.toml", "--set", &debate, "--set", "train.steps=1"];
    let checked = project.succeed(&[&arguments[..], &["--dry-run"]].concat());
    assert!(String::from_utf8(checked.stdout).unwrap().contains("agent: debate: debate"));
    project.succeed(&arguments);
    let mut seen = BTreeMap::<String, usize>::new();
    for line in lines(&project.path("runs/run/trajectories/step-000001.jsonl")) {
        let prompt = line["prompt"][0]["content"].as_str().unwrap();
        let is_debated = prompt.strip_prefix("Say ").unwrap().parse::<usize>().unwrap() % 3 == 0;
        let speaker = line.get("opening").map(|opening| opening["speaker"].as_str().unwrap());
        assert_eq!(speaker.is_some(), is_debated, "{line:?}");
        *seen.entry(speaker.unwrap_or("").to_owned()).or_default() += 1;
    }
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["", "first", "second"]);
    assert_eq!(seen["first"], seen["second"]);
    // The groups of the step, by agent and by data source.
    let (answered, debated) = (seen[""] / 4, seen["first"] / 4);
    let metrics = &project.metrics("runs/run")[1];
    let number = |name: &str| metrics[name].as_f64().unwrap();
    assert_eq!([number("agent/answer/groups"), number("agent/debate/groups")], [answered, debated].map(|it| it as f64));
    assert_eq!(number("train/plain/groups") + number("train/debated/groups"), 4.0);
    assert_eq!(number("agent/answer/num_turns/mean"), 1.0);
    assert!(number("agent/debate/num_turns/mean") > 1.0);
    let mean = |agent: &str, groups: usize| number(&format!("agent/{agent}/reward/letter/mean")) * groups as f64;
    let all = (mean("answer", answered) + mean("debate", debated)) / 4.0;
    assert!((all - number("reward/letter/mean")).abs() < 1e-12, "{metrics:?}");

    rows(&|number| if number == 4 { json!({"agent_name": "tool_agent"}) } else { json!({}) });
    let said = stderr(&project.run(&[&arguments[..], &["--dry-run"]].concat()));
    let expected = "train.jsonl, line 5: agent_name: no [[agent]] is named `tool_agent`; there are: debate, answer";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_ledger_has_the_time_in_which_the_device_waited_for_agents() {
    let project = Project::new();
    let rows: Vec<String> = lines(&project.path("train.jsonl"))
        .into_iter()
        .map(|mut row| {
            row.insert("extra_info".into(), json!({"agent_kwargs": {"act": "loop"}}));
            Value::Object(row).to_string() + "\n"
        })
        .collect();
    project.write("train.jsonl", &rows.concat());
    let agent = format!("agent.path={:?}", built("guests/acts.wasm"));
    let settings =
        ["agent.params={}", "agent.limits={cpu=\"100ms\"}", "train.steps=1", "train.max_failure_rate=1.0", &agent];
    let output = project.run(&debate(&settings).iter().map(String::as_str).collect::<Vec<_>>());
    let metrics = lines(&project.path("runs/run/metrics.jsonl"));
    let waited = metrics.last().unwrap().get("device_wait/agent").and_then(Value::as_f64).unwrap_or_default();
    assert!(waited > 0.1, "{metrics:?}\n{}", stderr(&output));
}

#[test]
fn the_reward_reaches_the_last_trajectory_alone_if_the_run_says_so() {
    let project = Project::new();
    succeed(&project, &debate(&["train.steps=1", "agent.reward_to=last"]));
    let metrics = project.metrics("runs/run");
    let (trained, response) = (&metrics[1]["tokens/trained"], &metrics[1]["tokens/response"]);
    assert!(trained.as_f64().unwrap() < 0.8 * response.as_f64().unwrap(), "{metrics:?}");
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    let (last, others): (Vec<_>, Vec<_>) = trajectories.iter().partition(|line| line["trajectory"] == 1);
    assert!(last.iter().any(|line| line["advantage"].is_number()), "{last:?}");
    assert!(others.len() == 16 && others.iter().all(|line| line["advantage"].is_null()), "{others:?}");
}

#[test]
fn a_configuration_of_an_agent_that_cannot_be_says_why() {
    let project = Project::new();
    let error = |settings: &[&str]| {
        let output = project.run(&debate(settings).iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let said = error(&["agent.kind=tools"]);
    assert!(
        said.contains("both agent.kind and agent.path say what makes a sample\nhint: leave agent.kind out"),
        "{said}"
    );
    let said = error(&["agent.limits={timeout=\"1s\"}"]);
    assert!(said.contains("agent.limits.timeout is not a key\nhint: set agent.timeout"), "{said}");
    let said = error(&[&format!("agent.path={:?}", built("plugins/exact-answer.wasm")), "agent.params={}"]);
    assert!(
        said.contains("plugin `agent` is not an agent: it does not export gavel:plugin/agent\nhint: name"),
        "{said}"
    );
    let said = error(&["agent.params={rounds=0}"]);
    assert!(said.contains("rounds must be at least 1, not 0"), "{said}");
}

/// A project whose rows set this for the agent: for the guest `acts`, what it does.
fn acting(settings: &Value) -> Project {
    let project = Project::new();
    let rows = lines(&project.path("train.jsonl")).into_iter().map(|mut row| {
        row.insert("extra_info".into(), json!({"agent_kwargs": settings}));
        Value::Object(row).to_string() + "\n"
    });
    project.write("train.jsonl", &rows.collect::<String>());
    project.write("train.toml", &project.read("train.toml").replace("validation = \"validation.jsonl\"\n", ""));
    project
}

/// The limits of a tool that answers, on a busy machine.
const PATIENT: &str = "cpu=\"60s\",timeout=\"2m\"";

/// The arguments of a step in which `acts` makes two samples of two rows, and may call the toolbox with these limits.
fn act(limits: &str, settings: &[&str]) -> Vec<String> {
    let (agent, tool) = (built("guests/acts.wasm"), built("guests/toolbox.wasm"));
    let agent = format!("agent.path={agent:?}");
    let tool = format!("tool=[{{name=\"toolbox\",path={tool:?},limits={{{limits}}}}}]");
    let sizes = ["train.steps=1", "train.prompts_per_step=2", "train.mini_batch_prompts=2", "rollout.group_size=2"];
    let settings = [&sizes[..], &[agent.as_str(), tool.as_str()], settings].concat();
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    ["train", "-c", "train.toml"].into_iter().chain(settings).map(str::to_owned).collect()
}

#[test]
fn what_waits_for_a_tool_is_told_and_charged_to_it() {
    let project = acting(&json!({"act": "converse", "call": {"name": "loop", "arguments": {}}}));
    let settings = [
        "schedule.watchdog=1s",
        "model.init.max_position_embeddings=2048",
        "rollout.max_tokens=500",
        "agent.on_tool_failure={out-of-budget=\"answer\"}",
    ];
    let output = project.run(&act("cpu=\"1s\"", &settings).iter().map(String::as_str).collect::<Vec<_>>());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\n  sample 1.0.0: tool loop, "), "{said}");
    let metrics = &lines(&project.path("runs/run/metrics.jsonl"))[1];
    let number = |name: &str| metrics.get(name).and_then(Value::as_f64).unwrap_or_default();
    assert!(number("device_wait/tool/loop") > 0.5, "{metrics:?}");
    assert!(number("time/sample_in_tools") > 0.5, "{metrics:?}");
    assert_eq!((number("tool/loop/out-of-budget"), number("tool_turns/mean")), (4.0, 1.0), "{metrics:?}");
}

#[test]
fn states_and_objects_reach_rewards_and_replay_without_the_tool_and_the_agent() {
    let project = acting(&json!({"act": "call", "extra": {"plan": [1.5, null]}}));
    project.add_reward("traces", "guests/traces.wasm", "params = { payload = { parts = [4.5] } }\nweight = 0.0");
    let guests = ["acts.wasm", "toolbox.wasm"];
    let mut arguments = act(PATIENT, &["rollout.max_tokens=20"]);
    for guest in guests {
        let path = built(&format!("guests/{guest}"));
        std::fs::copy(&path, project.path(guest)).unwrap();
        let of_project = |argument: String| argument.replace(&format!("{path:?}"), &format!("{guest:?}"));
        arguments = arguments.into_iter().map(of_project).collect();
    }
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("toolbox\"", "shop\"")).collect();
    // Every attempt is the same, so that nothing is learned.
    let said = stderr(&project.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    assert!(said.contains("the rewards of each group are equal (letter: always 1)"), "{said}");
    for guest in guests {
        std::fs::remove_file(project.path(guest)).unwrap();
    }
    let trajectories = "runs/run/trajectories/step-000001.jsonl";
    for line in lines(&project.path(trajectories)) {
        assert_eq!((&line["states"], &line["extra"]), (&json!({"shop": {"sum": 5}}), &json!({"plan": [1.5, null]})));
        let verdict = &line["plugins"]["traces"];
        assert_eq!(verdict["payload"], json!({"parts": [4.5]}));
        let note: Value = serde_json::from_str(verdict["reason"].as_str().unwrap()).unwrap();
        let seen = &note["trajectories"][0];
        assert_eq!((&seen["shop"], &note["extra"]), (&json!({"sum": 5}), &line["extra"]));
        let calls = json!([[0, "add", "Answered"], [0, "add", "Answered"], [0, null, "CalledWrongly"]]);
        assert_eq!(seen["calls"].to_string().replace("CallEnding::", ""), calls.to_string());
        assert_eq!(seen["functions"], json!([]));
    }
    let replay = ["replay".to_owned(), "runs/run".to_owned()];
    let said = succeed(&project, &[&replay[..], &["--sample".to_owned(), "1.0.0".to_owned()]].concat());
    for line in ["state    shop {\"sum\":5}", "extra    {\"plan\":[1.5,null]}", "payload  {\"parts\":[4.5]}"] {
        assert!(said.contains(&format!("\n    {line}\n")), "{line}: {said}");
    }
    let said = succeed(&project, &replay);
    assert!(said.contains("4 samples, 8 verdicts given again: all the same, to the last bit"), "{said}");
    project.write(trajectories, &project.read(trajectories).replace(r#""sum":5"#, r#""sum":6"#));
    assert_eq!(project.run(&["replay", "runs/run"]).status.code(), Some(1));
}

/// The arguments of a step in which the policy speaks with the user of this plugin, in turns of a few tokens.
fn with_user(plugin: &str, settings: &[&str]) -> Vec<String> {
    let agent = format!("agent.path={:?}", built(&format!("plugins/{plugin}.wasm")));
    let common = [
        "agent.params={max_tokens=6}",
        "agent.limits={cpu=\"60s\"}",
        "train.steps=1",
        "train.mini_batch_prompts=4",
        "rollout.max_tokens=400",
        "model.init.max_position_embeddings=512",
        "log.token_ids=true",
        &agent,
    ];
    let settings = common.iter().chain(settings).flat_map(|setting| ["--set", setting]);
    ["train", "-c", "train.toml"].into_iter().chain(settings).map(str::to_owned).collect()
}

/// Adds the endpoint of a user to the configuration.
fn add_endpoint(project: &Project, user: &PlayedUser, more: &str) {
    let endpoint = format!("[chat.user]\nbase_url = \"http://{}/v1\"\nmodel = \"m\"\n{more}\n", user.address);
    project.write("train.toml", &format!("{}\n{endpoint}", project.read("train.toml")));
}

/// The trajectories of the step, each checked to have these messages of the user between turns of the policy, and to
/// learn nothing of them.
fn spoken(project: &Project, said: &[&str]) -> Vec<serde_json::Map<String, Value>> {
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(trajectories.len(), 16);
    for line in &trajectories {
        let messages = line["messages"].as_array().unwrap();
        let (policy, user): (Vec<_>, Vec<_>) = messages.iter().enumerate().partition(|(number, _)| number % 2 == 0);
        assert!(policy.iter().all(|(_, message)| message["role"] == "assistant"), "{line:?}");
        assert!(user.iter().all(|(_, message)| message["role"] == "user"), "{line:?}");
        assert_eq!(user.iter().map(|(_, message)| message["content"].as_str().unwrap()).collect::<Vec<_>>(), said);
        assert_eq!(policy.len(), said.len() + 1, "{line:?}");
        assert_eq!(line.get("by_agent"), None, "{line:?}");
        let mask: Vec<usize> = serde_json::from_value(line["token_ids"]["loss_mask"].clone()).unwrap();
        assert_eq!(mask.len(), 2 * said.len() + 1, "{line:?}");
        assert!(mask.iter().step_by(2).all(|learned| (1..=6).contains(learned)), "{line:?}");
        // A token is a byte.
        assert!(mask.iter().skip(1).step_by(2).zip(said).all(|(masked, text)| *masked > text.len()), "{line:?}");
        assert_eq!(json!(mask.iter().sum::<usize>()), line["response_length"]);
    }
    let metrics = &project.metrics("runs/run")[1];
    assert!(metrics["logprob_mismatch"].as_f64().unwrap() < 1e-4, "{metrics:?}");
    trajectories
}

#[test]
fn a_scripted_user_speaks_and_is_not_learned() {
    let project = acting(&json!({"script": ["And why is that?", "Are you sure?"]}));
    succeed(&project, &with_user("scripted-user", &[]));
    for line in spoken(&project, &["And why is that?", "Are you sure?"]) {
        assert_eq!(line["extra"], json!({"user_turns": 2, "ended": "script"}));
        assert_eq!(line["response"], line["messages"][4]["content"]);
    }
    let said = succeed(&project, &["replay".to_owned(), "runs/run".to_owned()]);
    assert!(said.contains("16 samples, 16 verdicts given again: all the same"), "{said}");
}

#[test]
fn a_model_plays_the_user_and_a_replay_does_without_it() {
    let project = acting(&json!({"instructions": "You want to know why."}));
    let key = |row: &str| row.replace("\"ground_truth\":\"", "\"ground_truth\":\"secret ");
    project.write("train.jsonl", &key(&project.read("train.jsonl")));
    assert!(project.read("train.jsonl").contains("secret 7"));
    let user = PlayedUser::start(usize::MAX);
    add_endpoint(&project, &user, "");
    let settings =
        ["agent.grant={chat=[\"user\"]}", "agent.params={max_tokens=6,options={temperature=0}}", "log.calls=text"];
    succeed(&project, &with_user("simulated-user", &settings));
    let trajectories = spoken(&project, &["And why is that?"]);
    for line in &trajectories {
        assert_eq!(line["extra"], json!({"user_turns": 1, "ended": "stop", "farewell": "I see."}));
        assert!(!json!(line).to_string().contains("###STOP###"), "{line:?}");
    }

    // The model is the user, reads what was said alone, and never the answer key.
    let requests = user.requests();
    assert_eq!(requests.len(), 2 * 16);
    for request in &requests {
        let messages = request["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        let all = ["system", "user", "assistant", "user", "assistant", "user"];
        assert_eq!(roles, all[..roles.len()]);
        let text = |number: usize| messages[number]["content"].as_str().unwrap();
        assert!(text(0).contains("You want to know why.") && text(0).contains("###STOP###"), "{}", text(0));
        assert!(text(2).starts_with("Say "), "{}", text(2));
        assert_eq!(request["temperature"], 0);
        assert!(!request.to_string().contains("secret"), "{request}");
    }

    // Each answer is on the tape, and each request is noted with its sample.
    let taped = lines(&project.path("runs/run/tape/index.jsonl"));
    assert_eq!(taped.len(), 2 * 16);
    assert!(taped.iter().all(|entry| entry["plugin"] == "agent" && entry["import"] == "chat"), "{taped:?}");
    let calls = lines(&project.path("runs/run/calls/step-000001.jsonl"));
    assert!(calls.iter().all(|call| call["endpoint"] == "user" && call["ended"] == "answered"), "{calls:?}");
    let texts = |call: &serde_json::Map<String, Value>| {
        let [question, answer] = ["question", "answer"].map(|field| call[field].as_str().unwrap());
        question.contains("You want to know why.") && (answer.contains("And why is that?") || answer.contains("I see."))
    };
    assert!(calls.iter().all(texts), "{calls:?}");
    let mut made_for: Vec<&str> = calls.iter().map(|call| call["for"].as_str().unwrap()).collect();
    let mut expected: Vec<&str> = trajectories.iter().flat_map(|line| [line["id"].as_str().unwrap(); 2]).collect();
    made_for.sort_unstable();
    expected.sort_unstable();
    assert_eq!(made_for, expected);
    drop(user);
    let said = succeed(&project, &["replay".to_owned(), "runs/run".to_owned()]);
    assert!(said.contains("16 samples, 16 verdicts given again: all the same"), "{said}");
}

#[test]
fn a_sample_whose_user_does_not_answer_is_unavailable_and_has_no_reward() {
    let project = acting(&json!({"instructions": "You want to know why."}));
    // Each sample asks once, and again if it is answered, so that from 4 to 10 of 16 come to their end.
    let user = PlayedUser::start(20);
    add_endpoint(&project, &user, "retries = 0\non_endpoint_down = \"drop\"");
    let settings = ["agent.grant={chat=[\"user\"]}", "train.max_failure_rate=1.0"];
    // Whether there is something to learn from depends on which samples came to their end.
    let output = project.run(&with_user("simulated-user", &settings).iter().map(String::as_str).collect::<Vec<_>>());
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    let (ended, failed): (Vec<_>, Vec<_>) = trajectories.iter().partition(|line| line.contains_key("extra"));
    assert!(ended.len() + failed.len() == 16 && (4..=10).contains(&ended.len()), "{}", stderr(&output));
    assert!(ended.iter().all(|line| line["outcome"] == "scored" && line["reward"].is_number()), "{ended:?}");
    for line in failed {
        assert_eq!((&line["outcome"], &line["reward"]), (&json!("unavailable"), &Value::Null), "{line:?}");
        assert_eq!((&line["error"]["kind"], &line["error"]["stage"]), (&json!("unavailable"), &json!("agent")));
        assert_eq!((&line["error"]["retryable"], &line["advantage"]), (&json!(true), &Value::Null), "{line:?}");
    }
}

/// Compares each token of conversations in which a tool answers and a user speaks. A conversation is continued token
/// for token or, with a template that rewrites its history, each turn is a trajectory of its own.
#[test]
fn training_computes_the_log_probs_of_rollout_with_every_template() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates").canonicalize().unwrap();
    let call = json!({"name": "add", "arguments": {"by": 2}});
    let (with_tool, without) = (acting(&json!({"act": "converse", "call": call})), acting(&json!({"act": "converse"})));
    // The turns of a sample, or an error if the template cannot render such a conversation.
    let check = |project: &Project, name: &str, history: &str| {
        let settings = [
            format!("log.name={name}-{history}"),
            format!("agent.history={history}"),
            format!("model.chat_template={:?}", folder.join(name).with_extension("jinja")),
            "model.init.max_position_embeddings=8192".to_owned(),
            "rollout.max_tokens=2000".to_owned(),
        ];
        let arguments = act(PATIENT, &settings.iter().map(String::as_str).collect::<Vec<_>>());
        let output = project.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        if !output.status.success() {
            let said = stderr(&output);
            assert!(said.contains("chat template"), "{name}: {said}");
            return Err(());
        }
        let line = &project.metrics(&format!("runs/{name}-{history}"))[1];
        assert!(line["logprob_mismatch_max"].as_f64().unwrap() < 1e-3, "{name}: {line:?}");
        Ok(line["num_turns/mean"].as_f64().unwrap())
    };
    let mut found = BTreeMap::<_, Vec<String>>::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jinja") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // Some templates cannot render answers of tools.
        let ways = [("tool", "exact"), ("user", "exact"), ("tool", "split"), ("user", "split")];
        let way = ways.into_iter().find(|(after, history)| {
            let (project, turns) = if *after == "tool" { (&with_tool, 3.0) } else { (&without, 2.0) };
            check(project, &name, history).is_ok_and(|found| {
                assert_eq!(found, turns, "{name}");
                true
            })
        });
        found.entry(way).or_default().push(name);
    }
    found.values_mut().for_each(|names| names.sort());
    let expected = [
        // They need special tokens that bytes as tokens do not have.
        (None, "mistral_v3 zephyr"),
        (
            Some(("tool", "exact")),
            "chatml deepseek_v3_1 deepseek_v3_2 deepseek_v4 function_gemma header_json_tools kimi_k2 mistral_small pythonic qwen2_5 qwen2_5_training qwen3_instruct_2507 qwen3_training smolvlm",
        ),
        (
            Some(("tool", "split")),
            "constructs deepseek_r1_distill deepseekv3 gemma4 glm4_7 glm4moe qwen3 qwen3_5_think seed_oss",
        ),
        (Some(("user", "exact")), "phi3 turns turns_with_parts"),
        // They refuse an answer of a tool that the policy did not call.
        (Some(("user", "split")), "gptoss minimax_m2"),
    ];
    let found: Vec<_> = found.iter().map(|(way, names)| (*way, names.join(" "))).collect();
    assert_eq!(found, expected.map(|(way, names)| (way, names.to_owned())));
}

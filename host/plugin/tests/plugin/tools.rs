//! Tools: their functions, the state of a trajectory, and every way that a call ends.

use crate::common::{guest, sandbox};
use gavel_data::{Blame, Budget, Outcome};
use gavel_plugin::{
    Grants, Limits, LoadError, OutsideWaits, PluginSpec, Sandbox, SandboxConfig, SessionRooms, Tool, ToolFunction,
    ToolSession,
};
use serde_json::{Map, Value, json};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn spec(params: Value) -> PluginSpec {
    let limits = Limits { cpu: Duration::from_secs(1), memory: 16 * MIB, output: MIB, ..Limits::default() };
    let params = serde_json::from_value(params).unwrap();
    PluginSpec { params, limits, ..PluginSpec::new("toolbox", guest("toolbox")) }
}

/// The toolbox with so much time that none of its calls ends before the test gives it up.
fn patient(sandbox: &Sandbox) -> Tool {
    let spec = spec(json!({}));
    let limits = Limits { cpu: Duration::from_secs(60), deadline: Duration::from_secs(300), ..spec.limits };
    sandbox.handle().block_on(Tool::load(sandbox, PluginSpec { limits, ..spec })).unwrap()
}

fn load(sandbox: &Sandbox, params: Value) -> Tool {
    sandbox.handle().block_on(Tool::load(sandbox, spec(params))).unwrap()
}

async fn session(tool: &Tool, settings: Value) -> ToolSession {
    let room = Arc::new(SessionRooms::wait(None, [tool]).await.unwrap());
    tool.session(room, settings.to_string(), OutsideWaits::default())
}

async fn call(session: &mut ToolSession, name: &str, arguments: Value) -> Result<String, Outcome> {
    session.call(name, &arguments.to_string(), 7).await.answer
}

#[test]
fn a_tool_lists_its_functions() {
    let sandbox = sandbox();
    let tool = load(&sandbox, json!({}));
    let names: Vec<&str> = tool.functions().iter().map(ToolFunction::name).collect();
    assert_eq!(names, ["add", "settings", "random", "flood", "grow", "wait", "fail", "loop", "trap", "claim", "bytes"]);
    assert_eq!(tool.functions()[0].spec().parameters["required"], json!(["by"]));
}

#[test]
fn state_lives_as_long_as_its_trajectory_and_no_longer() {
    let sandbox = sandbox();
    let tool = load(&sandbox, json!({}));
    sandbox.handle().block_on(async {
        let (mut first, mut second) = (session(&tool, json!({"secret": 3})).await, session(&tool, json!({})).await);
        assert_eq!(call(&mut first, "add", json!({"by": 2})).await.as_deref(), Ok("2"));
        assert_eq!(call(&mut second, "add", json!({"by": 40})).await.as_deref(), Ok("40"));
        assert_eq!(call(&mut first, "add", json!({"by": 3})).await.as_deref(), Ok("5"));
        assert_eq!(call(&mut first, "settings", json!({})).await.as_deref(), Ok(r#"{"secret":3}"#));
        assert_eq!(call(&mut second, "settings", json!({})).await.as_deref(), Ok("{}"));
        drop(first);
        let mut third = session(&tool, json!({})).await;
        assert_eq!(call(&mut third, "add", json!({"by": 1})).await.as_deref(), Ok("1"));
    });
}

#[test]
fn a_pure_tool_keeps_nothing_from_call_to_call() {
    let sandbox = sandbox();
    let tool = load(&sandbox, json!({"pure": true}));
    sandbox.handle().block_on(async {
        let mut session = session(&tool, json!({})).await;
        for _ in 0..2 {
            assert_eq!(call(&mut session, "add", json!({"by": 2})).await.as_deref(), Ok("2"));
        }
    });
}

#[test]
fn each_ending_of_a_call_is_told_apart() {
    let sandbox = sandbox();
    for params in [json!({}), json!({"pure": true})] {
        let tool = load(&sandbox, params);
        sandbox.handle().block_on(async {
            let mut session = session(&tool, json!({})).await;
            let fail = |how: &str| json!({"how": how});
            assert_eq!(
                call(&mut session, "fail", fail("wrong")).await,
                Err(Outcome::Fault { whose: Blame::Input, what: "that was wrong".into() })
            );
            assert_eq!(
                call(&mut session, "fail", fail("away")).await,
                Err(Outcome::Unavailable("nobody is there".into()))
            );
            assert_eq!(
                call(&mut session, "fail", fail("broken")).await,
                Err(Outcome::Fault { whose: Blame::Plugin, what: "it is broken".into() })
            );
            let mut out_of = async |name: &str, arguments: Value| match call(&mut session, name, arguments).await {
                Err(Outcome::OutOfBudget { which, .. }) => which,
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(out_of("loop", json!({})).await, Budget::Cpu);
            assert_eq!(out_of("flood", json!({"bytes": 64 * MIB / 8})).await, Budget::Output);
            assert_eq!(out_of("grow", json!({"bytes": 64 * MIB})).await, Budget::Memory);
            let trap = call(&mut session, "trap", json!({})).await;
            assert!(matches!(trap, Err(Outcome::Fault { whose: Blame::Plugin, .. })), "{trap:?}");
            // The session begins anew.
            assert_eq!(call(&mut session, "add", json!({"by": 4})).await.as_deref(), Ok("4"));
        });
    }
}

#[test]
fn settings_that_are_refused_are_not_the_policys_fault() {
    let sandbox = sandbox();
    let tool = load(&sandbox, json!({}));
    sandbox.handle().block_on(async {
        let mut session = session(&tool, json!({"refuse": true})).await;
        let what = "the settings of this row are refused: `refuse` is set".to_owned();
        let expected = Err(Outcome::Fault { whose: Blame::Plugin, what });
        assert_eq!(call(&mut session, "add", json!({"by": 1})).await, expected);
    });
}

#[test]
fn what_is_random_follows_from_the_seed_of_each_call() {
    let sandbox = sandbox();
    let tool = load(&sandbox, json!({}));
    sandbox.handle().block_on(async {
        let (mut first, mut second) = (session(&tool, json!({})).await, session(&tool, json!({})).await);
        let mut drawn = Vec::new();
        for seed in [1, 2] {
            let [one, other] = [&mut first, &mut second];
            let one = one.call("random", "{}", seed).await.answer.unwrap();
            assert_eq!(other.call("random", "{}", seed).await.answer.unwrap(), one);
            drawn.push(one);
        }
        assert_ne!(drawn[0], drawn[1]);
    });
}

#[test]
fn a_pure_tool_may_be_reused_with_the_folder_that_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("a.txt"), text).unwrap();
    write("first words");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/search.wasm");
    let grants = Grants { read: vec![format!("{}:/documents", folder.path().display())], ..Grants::default() };
    let sandbox = sandbox();
    let found = |reuse: Option<u32>| {
        let reuse = reuse.map(|calls| NonZeroU32::new(calls).unwrap());
        let spec = PluginSpec { reuse, grants: grants.clone(), ..PluginSpec::new("search", path.clone()) };
        let tool = sandbox.handle().block_on(Tool::load(&sandbox, spec)).unwrap();
        write("other words");
        // Each call has another session. A query that is refused does not end the instance.
        let found = ["words", "", "words", "words"].map(|query| {
            sandbox.handle().block_on(async {
                let mut session = session(&tool, json!({})).await;
                call(&mut session, "search", json!({"query": query})).await.unwrap_or_else(|_| "refused".into())
            })
        });
        write("first words");
        found
    };
    let [first, other] = ["first words", "other words"].map(|text| format!("[1] a.txt\n{text}"));
    let refused = || "refused".to_owned();
    // The functions are the first thing that an instance is asked for.
    assert_eq!(found(Some(4)), [first.clone(), refused(), first, other.clone()]);
    assert_eq!(found(None), [other.clone(), refused(), other.clone(), other]);

    let spec = PluginSpec { reuse: NonZeroU32::new(3), ..spec(json!({})) };
    let error = sandbox.handle().block_on(Tool::load(&sandbox, spec)).err().unwrap();
    assert!(matches!(error, LoadError::NotPure { .. }), "{error}");
}

#[test]
fn a_tool_that_declares_itself_pure_falsely_keeps_to_its_calls() {
    let sandbox = sandbox();
    let spec = spec(json!({"pure": true}));
    let limits = Limits { cpu: Duration::from_secs(60), deadline: Duration::from_secs(300), ..spec.limits };
    let spec = PluginSpec { limits, reuse: NonZeroU32::new(64), ..spec };
    let tool = sandbox.handle().block_on(Tool::load(&sandbox, spec)).unwrap();
    sandbox.handle().block_on(async {
        let mut sessions = [session(&tool, json!({"secret": 1})).await, session(&tool, json!({"secret": 2})).await];
        let add = async |session: &mut ToolSession| {
            // The session itself is new in each call.
            assert_eq!(call(session, "add", json!({"by": 1})).await.as_deref(), Ok("1"));
        };
        let kept = async |session: &mut ToolSession| call(session, "claim", json!({})).await.unwrap();
        // What an instance keeps is what its tool kept, and ends after 64 calls. The functions are the first of these.
        for number in 0..80 {
            let session = &mut sessions[number % 2];
            add(session).await;
            assert_eq!(kept(session).await, ((number + 1) % 32).to_string(), "{number}");
        }
        for (session, secret) in sessions.iter_mut().zip(1..) {
            assert_eq!(call(session, "settings", json!({})).await, Ok(json!({"secret": secret}).to_string()));
        }
        // It ends with a call that fails or exceeds a budget, too.
        for (name, arguments) in [("trap", json!({})), ("flood", json!({"bytes": 8 * MIB}))] {
            let session = &mut sessions[0];
            add(session).await;
            assert_ne!(kept(session).await, "0");
            let failed = call(session, name, arguments).await.unwrap_err();
            assert!(
                matches!(failed, Outcome::Fault { whose: Blame::Plugin, .. } | Outcome::OutOfBudget { .. }),
                "{failed:?}"
            );
            assert_eq!(kept(session).await, "0", "{name}");
        }
    });
}

#[test]
fn trajectories_wait_for_room_with_nothing_in_hand() {
    // Room for two sessions at a time, and each trajectory has two.
    let config = SandboxConfig { memory: 80 * MIB, ..SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()) };
    let sandbox = Sandbox::new(config).unwrap();
    let tools = [load(&sandbox, json!({})), load(&sandbox, json!({"pure": false}))];
    let pure = load(&sandbox, json!({"pure": true}));
    sandbox.handle().block_on(async {
        let trajectories = (0..20).map(async |number| {
            let room = Arc::new(SessionRooms::wait(None, tools.iter().chain([&pure])).await.unwrap());
            let open = |tool: &Tool| tool.session(room.clone(), "{}".into(), OutsideWaits::default());
            let mut sessions: Vec<ToolSession> = tools.iter().chain([&pure]).map(open).collect();
            for session in &mut sessions {
                call(session, "add", json!({"by": number})).await.unwrap();
            }
            let by = json!({"by": 1});
            for session in &mut sessions[..2] {
                assert_eq!(call(session, "add", by.clone()).await, Ok((number + 1).to_string()));
            }
        });
        let all = futures::future::join_all(trajectories);
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("nobody waits for ever");
    });

    let limits = Limits { memory: 41 * MIB, ..Limits::default() };
    let error =
        sandbox.handle().block_on(Tool::load(&sandbox, PluginSpec { limits, ..spec(json!({})) })).err().unwrap();
    assert!(matches!(error, LoadError::SessionMemory { allowed, .. } if allowed == 40 * MIB), "{error}");
}

#[test]
fn a_call_that_is_given_up_leaves_its_room() {
    let config = SandboxConfig { memory: 40 * MIB, ..SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()) };
    let sandbox = Sandbox::new(config).unwrap();
    let tool = patient(&sandbox);
    sandbox.handle().block_on(async {
        for _ in 0..3 {
            let mut session = session(&tool, json!({})).await;
            let call = call(&mut session, "loop", json!({}));
            assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
        }
    });
}

#[test]
fn a_reward_is_not_a_tool() {
    let sandbox = sandbox();
    let load = Tool::load(&sandbox, PluginSpec::new("sums", guest("obeys")));
    let error = sandbox.handle().block_on(load).err().unwrap();
    assert!(matches!(error, LoadError::NotATool { .. }), "{error}");
}

// Here and not beside the schemas, since unit tests may be compiled without optimisation, which takes far more stack.
#[test]
fn neither_schemas_nor_arguments_overflow_a_stack() {
    let check = |links: usize, link: fn(Value) -> Value, end: Value| {
        let next = |number: usize| json!({"$ref": format!("#/$defs/{}", number + 1)});
        let schemas = (0..links).map(|number| (number.to_string(), link(next(number))));
        let schemas: Map<String, Value> = schemas.chain([(links.to_string(), end)]).collect();
        let schema = json!({"$ref": "#/$defs/0", "$defs": schemas});
        ToolFunction::all([("f".into(), String::new(), schema.to_string())]).unwrap()[0].check(r#"{"a": 1}"#)
    };
    let links: [fn(Value) -> Value; 5] = [
        |next| next,
        |next| json!({"not": {"not": next}}),
        |next| json!({"oneOf": [{"anyOf": [{"dependentSchemas": {"a": next}}]}]}),
        |next| json!({"if": next, "then": true}),
        |next| json!({"anyOf": [true, next], "unevaluatedProperties": false}),
    ];
    // A thread of the runtime has twice as much.
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let thread = thread.spawn(move || links.map(|link| check(1200, link, json!({"type": "object"}))));
    let too_many = "the arguments of `f` are nested too deep, or too long, to be checked";
    assert_eq!(thread.unwrap().join().unwrap(), [(); 5].map(|()| Err(too_many.to_owned())));
    let wrong = "{\"a\":1} is not of type \"array\"".to_owned();
    assert_eq!(check(300, |next| next, json!({"type": "array"})), Err(wrong));
}

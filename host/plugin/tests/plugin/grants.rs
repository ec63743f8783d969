//! What a plugin reaches with and without grants for files, environment, clock
//! and randomness.

use crate::common::{Sampled, guest, sample, sandbox};
use gavel_data::{Budget, Outcome};
use gavel_plugin::{ClockGrant, GrantError, Grants, Limits, LoadError, Plugin, PluginSpec, RandomGrant, Sandbox};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Loads `probe` with parameters and grants.
async fn load(sandbox: &Sandbox, params: Value, grants: Grants) -> Result<Plugin, LoadError> {
    let params: Map<String, Value> = serde_json::from_value(params).unwrap();
    let spec = PluginSpec { params, grants, ..PluginSpec::new("probe", guest("probe")) };
    Plugin::load(sandbox, spec).await
}

/// What `probe` saw.
async fn probe(params: Value, grants: Grants, seed: u64) -> Value {
    let sandbox = sandbox();
    let plugin = load(&sandbox, params, grants).await.unwrap();
    plugin.score(&sample(), seed).await.note()
}

fn reads(folder: &Path) -> Grants {
    Grants { read: vec![format!("{}:/data", folder.display())], ..Grants::default() }
}

#[tokio::test]
async fn without_grants_there_is_nothing() {
    let seen = probe(
        json!({"read": ["/etc/passwd", "Cargo.toml", "/proc/self/environ"], "write": ["/tmp/x"]}),
        Grants::default(),
        1,
    )
    .await;
    for attempt in seen["read"].as_array().unwrap().iter().chain(seen["write"].as_array().unwrap()) {
        assert!(attempt["error"].is_string(), "{attempt}");
    }
    assert_eq!((&seen["env"], &seen["args"], &seen["stdin"]), (&json!({}), &json!([]), &json!("")));
    for network in ["tcp", "udp", "name"] {
        assert!(seen["socket"][network].is_string(), "{network} is open: {seen}");
    }
}

#[tokio::test]
async fn a_folder_is_read_and_never_left_or_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
    std::fs::create_dir_all(inside.join("deep")).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(inside.join("deep/key.txt"), "42").unwrap();
    std::fs::write(outside.join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink("deep/key.txt", inside.join("near")).unwrap();
    std::os::unix::fs::symlink("../outside/secret.txt", inside.join("relative")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret.txt"), inside.join("absolute")).unwrap();
    std::os::unix::fs::symlink("/proc/self/environ", inside.join("process")).unwrap();
    let read = [
        "/data/deep/key.txt",
        "/data/deep/../near",
        "/data/relative",
        "/data/absolute",
        "/data/process",
        "/data/../outside/secret.txt",
        "/data/deep/../../outside/secret.txt",
        "/outside/secret.txt",
    ];
    let write = ["/data/new.txt", "/data/deep/key.txt"];
    let seen = probe(json!({"read": read, "write": write}), reads(&inside), 1).await;
    let (allowed, refused) = seen["read"].as_array().unwrap().split_at(2);
    assert_eq!(allowed, [json!({"ok": "42"}), json!({"ok": "42"})]);
    for (path, attempt) in read[2..].iter().zip(refused) {
        assert!(attempt["error"].is_string(), "{path}: {attempt}");
    }
    assert!(seen["write"].as_array().unwrap().iter().all(|attempt| attempt["error"].is_string()), "{seen}");
    assert!(!inside.join("new.txt").exists());
    assert_eq!(std::fs::read_to_string(inside.join("deep/key.txt")).unwrap(), "42");
}

#[tokio::test]
async fn a_folder_that_takes_the_granted_name_later_is_not_seen() {
    let folder = tempfile::tempdir().unwrap();
    let granted = folder.path().join("granted");
    std::fs::create_dir(&granted).unwrap();
    std::fs::write(granted.join("which"), "first").unwrap();
    let sandbox = sandbox();
    let plugin = load(&sandbox, json!({"read": ["/data/which"]}), reads(&granted)).await.unwrap();
    std::fs::rename(&granted, folder.path().join("moved")).unwrap();
    std::fs::create_dir(&granted).unwrap();
    std::fs::write(granted.join("which"), "second").unwrap();
    assert_eq!(plugin.score(&sample(), 1).await.note()["read"], json!([{"ok": "first"}]));
}

#[tokio::test]
async fn a_variable_is_seen_by_name_and_its_value_is_told_to_nobody() {
    // Cargo sets it for every test.
    let grants = Grants { env: vec!["CARGO_MANIFEST_DIR".into()], ..Grants::default() };
    let value = env!("CARGO_MANIFEST_DIR");
    assert!(!serde_json::to_string(&grants).unwrap().contains(value));
    // A log would hold the note.
    let seen = probe(json!({}), grants.clone(), 1).await;
    assert_eq!(seen["env"], json!({"CARGO_MANIFEST_DIR": "$CARGO_MANIFEST_DIR"}));
    let sandbox = sandbox();
    let plugin = load(&sandbox, json!({"fail": true}), grants).await.unwrap();
    let reason = plugin.score(&sample(), 1).await.outcome.reason().unwrap();
    assert!(reason.contains("$CARGO_MANIFEST_DIR") && !reason.contains(value), "{reason}");
}

#[tokio::test]
async fn a_grant_that_cannot_be_given_names_plugin_and_field() {
    let sandbox = sandbox();
    let refusal = async |grants: Grants| load(&sandbox, json!({}), grants).await.err().unwrap();
    let absent = refusal(Grants { env: vec!["GAVEL_TEST_ABSENT".into()], ..Grants::default() }).await;
    assert!(matches!(&absent, LoadError::Grant { source: GrantError::NoVariable { .. }, .. }));
    assert!(
        absent.to_string().starts_with("plugin `probe`: grant.env: the variable GAVEL_TEST_ABSENT is not set\nhint: ")
    );
    let folder = refusal(Grants { read: vec!["no/such/folder:/data".into()], ..Grants::default() }).await;
    assert!(folder.to_string().starts_with("plugin `probe`: grant.read: cannot open the folder no/such/folder: "));
}

#[tokio::test]
async fn virtual_time_starts_at_one_instant_and_sleeps_for_nothing() {
    // Longer than its deadline.
    let seen = probe(json!({"sleep": 3_600_000}), Grants::default(), 1).await;
    assert_eq!(seen["now"], 1_704_067_200);
    for clock in ["wall", "monotonic"] {
        let slept = seen["slept"][clock].as_f64().unwrap();
        assert!((3600.0..3600.001).contains(&slept), "{clock}: {slept}");
    }
}

#[tokio::test]
async fn real_time_is_the_machines_and_ends_at_the_deadline() {
    let grants = Grants { clock: ClockGrant::Real, ..Grants::default() };
    let seen = probe(json!({"sleep": 50}), grants.clone(), 1).await;
    assert!(seen["now"].as_u64().unwrap() > 1_704_067_200);
    assert!(seen["slept"]["monotonic"].as_f64().unwrap() >= 0.05, "{seen}");

    let sandbox = sandbox();
    let limits = Limits { deadline: Duration::from_millis(300), ..Limits::default() };
    let params = serde_json::from_value(json!({"milliseconds": 3_600_000})).unwrap();
    let spec = PluginSpec { params, limits, grants, ..PluginSpec::new("sleepy", guest("sleepy")) };
    let sleepy = Plugin::load(&sandbox, spec).await.unwrap();
    let start = Instant::now();
    let outcome = sleepy.score(&sample(), 1).await.outcome;
    assert!(matches!(outcome, Outcome::OutOfBudget { which: Budget::Deadline, .. }), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn random_numbers_follow_from_the_seed_unless_the_system_gives_them() {
    let drawn = async |grants: &Grants, seed| {
        let seen = probe(json!({}), grants.clone(), seed).await;
        (seen["random"].clone(), seen["insecure"].clone())
    };
    let seeded = Grants::default();
    let (random, insecure) = drawn(&seeded, 7).await;
    assert_eq!(drawn(&seeded, 7).await, (random.clone(), insecure.clone()));
    assert_ne!(random, insecure);
    assert_ne!(drawn(&seeded, 8).await.0, random);
    let os = Grants { random: RandomGrant::Os, ..Grants::default() };
    assert_ne!(drawn(&os, 7).await.0, drawn(&os, 7).await.0);
}

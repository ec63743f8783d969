//! Each test starts ranks, processes of this test's executable, by the variables alone.

use super::store::Store;
use super::*;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The variable that says what a rank does.
const CASE: &str = "GAVEL_TEST_CASE";

/// How long ranks and clients wait at the start where that is not to run out.
const START_WITHIN: Duration = Duration::from_secs(300);

/// The variable with which torchrun says that it serves the store.
const SERVED: [(&str, &str); 1] = [("TORCHELASTIC_USE_AGENT_STORE", "True")];

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(case: &str, rank: usize, size: usize, port: u16, more: &[(&str, &str)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["peers::tests::a_rank", "--exact", "--nocapture"]).env(CASE, case);
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", size.to_string()).env("LOCAL_RANK", rank.to_string());
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string()).env("OMP_NUM_THREADS", "1");
    command.envs(more.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// All ranks of a case, until they end.
fn run(case: &str, size: usize) -> Vec<Output> {
    let port = free_port();
    let ranks: Vec<Child> = (0..size).map(|rank| start(case, rank, size, port, &[])).collect();
    ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect()
}

/// What a rank printed after `result: `.
fn result(output: &Output) -> String {
    printed(output, "result: ")
}

fn printed(output: &Output, after: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once(after)).map(|(_, rest)| rest.to_owned());
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn joined() -> Result<Peers> {
    Peers::join(Rendezvous { start_within: START_WITHIN, ..Rendezvous::from_environment()?.unwrap() })
}

/// Not a test by itself: a rank of one.
#[test]
fn a_rank() {
    let Ok(case) = std::env::var(CASE) else { return };
    let outcome = match case.as_str() {
        "operations" => joined().map(|peers| operations(&peers, Device::Cpu)),
        "gpus" => joined().and_then(|peers| {
            let device = Device::Cuda(peers.local_rank());
            // Without GPUs this is the error of those who want them.
            peers.joined.as_ref().map_or(Ok(()), |joined| joined.gpus(device).map(drop))?;
            Ok(operations(&peers, device))
        }),
        "costs" => joined().and_then(|peers| costs(&peers)),
        "killed" | "stopped" | "killed-beside-counts" => {
            joined().and_then(|peers| wait_for_the_last_but_one(&peers, &case))
        }
        "leaves" => joined().and_then(|peers| {
            if peers.rank() == 1 {
                return Ok("left".into());
            }
            peers.sum(&Tensor::from(1.0)).map(|()| "summed".into())
        }),
        "terms" => joined().and_then(|peers| {
            let value = if peers.rank() == 2 { "b" } else { "a" };
            peers.agree(&[("binary", "1"), ("configuration", "1")])?;
            peers.agree(&[("binary", "1"), ("configuration", value)]).map(|()| "agreed".into())
        }),
        "short" => {
            let at = Rendezvous::from_environment().unwrap().unwrap();
            Peers::join(Rendezvous { start_within: Duration::from_secs(3), ..at }).map(|_| "joined".into())
        }
        other => panic!("{other}"),
    };
    match outcome {
        Ok(text) => println!("\nresult: {text}"),
        Err(error) => println!("\nresult: {}", error.to_string().replace('\n', " | ")),
    }
}

fn operations(peers: &Peers, device: Device) -> String {
    let (rank, size) = (peers.rank(), peers.size());
    assert_eq!(peers.local_rank(), rank);
    let total = (size * (size + 1) / 2) as f64;
    for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
        let own = Tensor::from_slice(&[1.0, -0.5, 0.0]).to_kind(kind).to_device(device) * (rank as f64 + 1.0);
        peers.sum(&own).unwrap();
        assert_eq!(Vec::<f64>::try_from(own.to_kind(Kind::Double)).unwrap(), [total, -0.5 * total, 0.0]);
    }
    // Several at once, of different sizes, and on the CPU twice the same numbers to the last bit.
    let numbers = |length: i64| (Tensor::arange(length, (Kind::Float, device)) * (rank as f64 + 0.1)).sin();
    let twice = [0, 1].map(|_| {
        let tensors: Vec<Tensor> = [1, 1000, 70_001].iter().map(|&length| numbers(length)).collect();
        let sums: Vec<_> = tensors.iter().map(|tensor| peers.begin_sum(tensor).unwrap()).collect();
        sums.into_iter().for_each(|sum| sum.wait().unwrap());
        tensors.into_iter().flat_map(|tensor| Vec::<f32>::try_from(tensor).unwrap()).collect::<Vec<f32>>()
    });
    assert!(device != Device::Cpu || twice[0] == twice[1]);
    let bits: Vec<u8> = twice[0].iter().flat_map(|number| number.to_le_bytes()).collect();
    assert!(peers.gather(&bits).unwrap().iter().all(|other| *other == bits), "ranks got different sums");

    // Sums that one rank gets, the same twice.
    let twice = [0, 1].map(|_| {
        let tensors: Vec<(usize, Tensor)> = (0..size).map(|to| (to, numbers(100 * to as i64 + 7))).collect();
        let sums: Vec<_> = tensors.iter().map(|(to, tensor)| peers.begin_reduce(tensor, *to).unwrap()).collect();
        sums.into_iter().for_each(|sum| sum.wait().unwrap());
        Vec::<f32>::try_from(&tensors[rank].1).unwrap()
    });
    assert!(device != Device::Cpu || twice[0] == twice[1]);
    for (at, found) in twice[0].iter().enumerate() {
        let expected: f64 = (0..size).map(|rank| (at as f64 * (rank as f64 + 0.1)).sin()).sum();
        assert!((f64::from(*found) - expected).abs() < 5e-3, "{at}: {found} is not {expected}");
    }

    let from = size - 1;
    let value = Tensor::from_slice(&[rank as f64, 7.5]).to_device(device);
    peers.broadcast(&value, from).unwrap();
    assert_eq!(Vec::<f64>::try_from(value).unwrap(), [from as f64, 7.5]);

    let own = vec![rank as u8; 3 * rank];
    let expected: Vec<Vec<u8>> = (0..size).map(|rank| vec![rank as u8; 3 * rank]).collect();
    assert_eq!(peers.gather(&own).unwrap(), expected);
    assert_eq!(peers.gather(&[]).unwrap(), vec![Vec::<u8>::new(); size]);
    peers.agree(&[("binary", "1"), ("configuration", "")]).unwrap();
    assert!(peers.failure().is_none());
    "right".into()
}

/// What this process wrote to files and connections.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let bytes = text.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    bytes.parse().unwrap()
}

/// The bytes that are counted are those that the process writes, but for headers and the store, to which it writes more
/// the longer an operation takes.
fn costs(peers: &Peers) -> Result<String> {
    const LENGTH: usize = 24 << 20;
    const MOST_OF_OTHERS: u64 = 1 << 20;
    let (tensor, others) = (Tensor::zeros([LENGTH as i64 / 4], (Kind::Float, Device::Cpu)), peers.size() - 1);
    type Case<'a> = (&'a str, &'a dyn Fn() -> Result<()>, fn(&Cost) -> u64);
    let cases: [Case; 5] = [
        ("sum", &|| peers.sum(&tensor), |cost| cost.sum_bytes),
        ("reduce to the last", &|| peers.begin_reduce(&tensor, others)?.wait(), |cost| cost.reduce_bytes),
        ("broadcast", &|| peers.broadcast(&tensor, 0), |cost| cost.broadcast_bytes),
        ("broadcast of the last", &|| peers.broadcast(&tensor, others), |cost| cost.broadcast_bytes),
        ("gather", &|| peers.gather(&[1; LENGTH]).map(drop), |cost| cost.gather_bytes),
    ];
    for (name, operation, bytes) in cases {
        peers.agree(&[])?;
        peers.take_cost();
        let before = written();
        operation()?;
        let (cost, wrote) = (peers.take_cost(), written() - before);
        let Cost { sum_bytes, reduce_bytes, broadcast_bytes, gather_bytes, .. } = cost;
        assert_eq!(sum_bytes + reduce_bytes + broadcast_bytes + gather_bytes, bytes(&cost), "{name}: {cost:?}");
        assert!(wrote.abs_diff(bytes(&cost)) < MOST_OF_OTHERS, "{name}: wrote {wrote}, {cost:?}");
    }

    // Rank 0 computes while its sum runs. How long the ranks wait for it depends on how busy the machine is.
    peers.take_cost();
    let begun = Instant::now();
    let sum = peers.begin_sum(&tensor)?;
    if peers.rank() == 0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    let asked = Instant::now();
    sum.wait()?;
    let (wait, took) = (asked.elapsed(), begun.elapsed());
    let cost = peers.take_cost();
    assert!(cost.waited <= wait && cost.waited + cost.overlapped <= took, "{cost:?}, {wait:?} of {took:?}");
    assert!(peers.rank() != 0 || cost.overlapped > Duration::ZERO, "{cost:?}");
    Ok("counted".into())
}

/// The last rank but one ends itself; the others wait for it, and print how many seconds.
fn wait_for_the_last_but_one(peers: &Peers, how: &str) -> Result<String> {
    peers.sum(&Tensor::from(1.0))?;
    let since = Instant::now();
    let outcome = lose_the_last_but_one(peers, how);
    println!("\nwaited: {}", since.elapsed().as_secs_f64());
    outcome
}

fn lose_the_last_but_one(peers: &Peers, how: &str) -> Result<String> {
    if peers.rank() + 2 == peers.size() {
        let signal = if how == "stopped" { "-STOP" } else { "-KILL" };
        Command::new("kill").args([signal, &std::process::id().to_string()]).status().unwrap();
        std::thread::sleep(Duration::from_secs(1));
    }
    if how == "killed-beside-counts" {
        loop {
            peers.count("turns", 1)?;
        }
    }
    peers.sum(&Tensor::from(1.0))?;
    Ok("summed".into())
}

#[test]
fn one_two_three_and_eight_ranks_compute_together() {
    assert_eq!(operations(&Peers::alone(), Device::Cpu), "right");
    for size in [1, 2, 3, 8] {
        for (rank, output) in run("operations", size).iter().enumerate() {
            assert_eq!(result(output), "right", "rank {rank} of {size}");
        }
    }
}

#[test]
fn bytes_and_waits_are_counted() {
    assert_eq!(Peers::alone().take_cost(), Cost::default());
    for size in [2, 3, 8] {
        for (rank, output) in run("costs", size).iter().enumerate() {
            assert_eq!(result(output), "counted", "rank {rank} of {size}");
        }
    }
}

#[test]
fn gpus_compute_together_or_it_is_said_why_not() {
    let usable = crate::cuda::load().is_ok() && tch::Cuda::device_count() > 1;
    for output in run("gpus", 2) {
        let result = result(&output);
        let failed = result.starts_with("the GPUs of several ranks cannot be connected: ") && result.contains("hint");
        assert!(if usable { result == "right" } else { failed }, "{result}");
    }
}

#[test]
fn a_tensor_that_ranks_cannot_exchange_is_an_error() {
    let peers = Peers::alone();
    assert!(
        peers.sum(&Tensor::zeros([2, 3], (Kind::Float, Device::Cpu)).transpose(0, 1)).is_ok(),
        "one rank sums nothing"
    );
}

/// Asserts that all ranks but `gone` have an error that names it soon after their last sum with it, and end.
fn assert_named(case: &str, size: usize, gone: usize, how: &[&str]) {
    let port = free_port();
    let mut ranks: Vec<Child> = (0..size).map(|rank| start(case, rank, size, port, &[])).collect();
    let mut last = ranks.remove(gone);
    let id = last.id();
    let started = Instant::now();
    let outputs: Vec<Output> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    let took = started.elapsed();
    if case == "stopped" {
        // It runs on when the others, and the store with them, have ended without it.
        Command::new("kill").args(["-CONT", &id.to_string()]).status().unwrap();
        let text = result(&last.wait_with_output().unwrap());
        assert!(text.starts_with(&format!("rank {gone} (process {id} on ")), "{case}, its own word: {text}");
    } else {
        last.kill().unwrap();
        last.wait().unwrap();
    }
    for output in &outputs {
        let text = result(output);
        assert!(text.starts_with(&format!("rank {gone} (process {id} on ")), "{case}: {text}");
        assert!(how.iter().any(|how| text.contains(how)), "{case}: {text}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.lines().any(|line| line.starts_with("[W")), "{case}: c10 prints warnings itself: {said}");
        // 15 s are promised, and a busy machine may add to them.
        let waited: f64 = printed(output, "waited: ").parse().unwrap();
        assert!(waited < 25.0, "{case}: {waited} s");
    }
    println!("{case}, rank {gone} of {size}: {took:.1?}");
    // They also start and leave in this time.
    assert!(took < Duration::from_secs(120), "{case}: {took:?}");
}

#[test]
fn a_killed_rank_ends_the_others_and_is_named() {
    assert_named("killed", 4, 2, &["nothing was heard of it for"]);
    // Rank 0 serves the store.
    assert_named("killed", 2, 0, &["its store at 127.0.0.1:"]);
    assert_named("killed-beside-counts", 2, 0, &["its store at 127.0.0.1:"]);
}

/// Waits until a rank says in the store that it is there.
fn wait_for(rank: usize, process: &mut Child, store: &Store) {
    while !store.has(&format!("gavel/0/here/{rank}")).unwrap() {
        assert_eq!(process.try_wait().unwrap(), None, "rank {rank} ended before it was there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_store_that_ends_before_all_ranks_have_met_is_blamed_on_rank_0() {
    let port = free_port();
    let store = Store::connect("127.0.0.1", port, true, START_WITHIN).unwrap();
    let mut rank = start("operations", 1, 2, port, &[]);
    wait_for(1, &mut rank, &store);
    drop(store);
    let text = result(&rank.wait_with_output().unwrap());
    assert!(text.starts_with(&format!("rank 1 cannot reach rank 0 at 127.0.0.1:{port}: libtorch: ")), "{text}");
}

#[test]
fn a_rank_that_nothing_is_heard_of_ends_the_others_and_is_named() {
    assert_named("stopped", 3, 1, &["nothing was heard of it for 1"]);
    // Rank 0 serves the store.
    assert_named("stopped", 2, 0, &["its store at 127.0.0.1:"]);
}

#[test]
fn a_rank_that_leaves_ends_the_others_and_is_named() {
    let outputs = run("leaves", 3);
    assert_eq!(result(&outputs[1]), "left");
    for output in [&outputs[0], &outputs[2]] {
        let text = result(output);
        assert!(text.starts_with("rank 1 (process ") && text.contains("is gone: it left the run"), "{text}");
    }
}

#[test]
fn a_rank_with_another_configuration_is_refused_by_name() {
    for output in run("terms", 3) {
        let text = result(&output);
        assert!(text.starts_with("rank 2 (process "), "{text}");
        assert!(text.contains(") has another configuration than rank 0: b instead of a"), "{text}");
    }
}

#[test]
fn a_taken_port_is_tried_again_and_then_named() {
    let other = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let first = start("operations", 0, 2, port, &[]);
    let text = result(&first.wait_with_output().unwrap());
    assert!(text.starts_with(&format!("port {port} of this machine is taken | hint: set MASTER_PORT")), "{text}");
    // What listens there is no store.
    let second = start("short", 1, 2, port, &[]);
    let text = result(&second.wait_with_output().unwrap());
    assert!(text.starts_with(&format!("rank 1 cannot reach rank 0 at 127.0.0.1:{port}")), "{text}");

    // Another program may leave the port in time.
    let other = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let ranks = [0, 1].map(|rank| start("operations", rank, 2, port, &[]));
    std::thread::sleep(Duration::from_secs(2));
    drop(other);
    for output in ranks.map(|rank| rank.wait_with_output().unwrap()) {
        assert_eq!(result(&output), "right");
    }
}

#[test]
fn ranks_that_are_not_started_or_started_twice_are_named() {
    let port = free_port();
    let store = Store::connect("127.0.0.1", port, true, START_WITHIN).unwrap();
    let mut third = start("short", 2, 4, port, &SERVED);
    wait_for(2, &mut third, &store);
    let first = result(&start("short", 0, 4, port, &SERVED).wait_with_output().unwrap());
    assert_eq!(first, "ranks 1, 3 of 4 did not start within 3 s");
    // Its time may be over before rank 0 is there.
    let third = result(&third.wait_with_output().unwrap());
    assert!(third == first || third == "ranks 0, 1, 3 of 4 did not start within 3 s", "{third}");
    drop(store);

    let port = free_port();
    let store = Store::connect("127.0.0.1", port, true, START_WITHIN).unwrap();
    let mut second = start("short", 1, 3, port, &SERVED);
    wait_for(1, &mut second, &store);
    let again = result(&start("short", 1, 3, port, &SERVED).wait_with_output().unwrap());
    assert!(again.starts_with("two processes have rank 1 | hint:"), "{again}");
    assert_eq!(result(&second.wait_with_output().unwrap()), "ranks 0, 2 of 3 did not start within 3 s");
    drop(store);
}

// Only there is all of 127.0.0.0/8 this machine.
#[cfg(target_os = "linux")]
#[test]
fn a_store_at_loopback_listens_nowhere_else() {
    for host in ["127.0.0.1", "localhost"] {
        let port = free_port();
        let served = Store::connect(host, port, true, START_WITHIN).unwrap();
        served.set("key", "value").unwrap();
        // Another address of this machine.
        let refused = TcpStream::connect(("127.0.0.2", port)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{host}");
        let other = Store::connect(host, port, false, START_WITHIN).unwrap();
        assert!(other.has("key").unwrap(), "{host}");
    }
}

#[test]
fn the_store_may_be_that_of_torchruns_agent() {
    let port = free_port();
    let agent = Store::connect("127.0.0.1", port, true, START_WITHIN).unwrap();
    for attempt in ["0", "1"] {
        let more = [SERVED[0], ("TORCHELASTIC_RESTART_COUNT", attempt)];
        let ranks = [0, 1].map(|rank| start("operations", rank, 2, port, &more));
        for output in ranks.map(|rank| rank.wait_with_output().unwrap()) {
            assert_eq!(result(&output), "right", "attempt {attempt}");
        }
    }
    drop(agent);
}

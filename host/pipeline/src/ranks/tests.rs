//! Each test starts ranks, which are processes of this test's executable.

use super::*;
use std::process::{Child, Command, Stdio};
use tokio::net::TcpSocket;

/// The variable that makes a process a rank.
const IS_RANK: &str = "GAVEL_TEST_RANK";

/// Not a test by itself: a rank, of which the second and the third fail at first.
#[test]
fn a_rank() {
    if std::env::var_os(IS_RANK).is_none() {
        return;
    }
    let ranks = Ranks::of(&Peers::from_environment().unwrap(), &BTreeMap::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let own = match ranks.rank() {
            0 => Ok("whole"),
            rank => Err(PipelineError::Stopped(format!("train.reference.chat: no answer to rank {rank}"))),
        };
        let error = ranks.or_stop_together(own).await.unwrap_err();
        assert!(matches!(error, PipelineError::StoppedTogether(_)), "{error:?}");
        assert_eq!(error.to_string(), "train.reference.chat: no answer to rank 1");
        assert_eq!(ranks.or_stop_together(Ok(ranks.rank())).await.unwrap(), ranks.rank());
        let own = if ranks.rank() == 1 { Err(PipelineError::Stopped(String::new())) } else { Ok(()) };
        let error = ranks.or_stop_together(own).await.unwrap_err();
        assert!(matches!(&error, PipelineError::StoppedTogether(why) if why.is_empty()), "{error:?}");
    });
}

/// A port at which rank 0 may listen, and which is nobody else's while the socket is there.
fn reserved_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

#[test]
fn ranks_stop_together_if_one_has_an_error() {
    let (_reserved, port) = reserved_port();
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["ranks::tests::a_rank", "--exact", "--nocapture"]).env(IS_RANK, "1");
        command.envs([
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", port.to_string().as_str()),
            ("OMP_NUM_THREADS", "1"),
        ]);
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", "3");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ranks: Vec<Child> = (0..3).map(start).collect();
    let outputs: Vec<_> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    for (rank, output) in outputs.iter().enumerate() {
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        assert!(output.status.success(), "rank {rank}: {text}");
    }
}

//! `gavel serve`: what the servers of both programs share, and rewards as a service.

use crate::terminal::{errln, outln};
use anyhow::{Context, Result};
use axum::Router;
use clap::Args;
use gavel_data::OutcomeKind;
use gavel_service::{Server, ServiceTable};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where a server listens.
#[derive(Args)]
pub struct AddressArgs {
    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    port: u16,
}

/// Serve rewards over HTTP, for trainers that ask so.
///
/// /score takes rows as `gavel score` does, /verify is for NeMo-Gym, and /get_reward for OpenRLHF. /openapi.json describes
/// them, and /metrics is for Prometheus. There is no authentication: everybody who reaches the port may use it.
///
/// With -m in place of --rewards, it serves a model.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel serve --rewards rewards.toml --port 8000\n  curl http://127.0.0.1:8000/score -d '{\"rows\": [{\"response\": \"Answer: 4\", \"ground_truth\": \"4\"}]}'"
)]
pub struct ServeArgs {
    /// A file with the tables [[reward]], [limits], [chat.NAME], [limiter.NAME] and [exec.NAME] of a run, [columns] as
    /// [data.columns], and [openrlhf].
    #[arg(long, value_name = "FILE")]
    rewards: PathBuf,
    #[command(flatten)]
    address: AddressArgs,
}

impl AddressArgs {
    /// The socket. It is bound before what it serves is loaded, which may take minutes.
    pub fn bind(&self) -> Result<(TcpListener, SocketAddr)> {
        let Self { host, port } = self;
        let listener = TcpListener::bind((*host, *port)).with_context(|| {
            format!("cannot listen on {host}:{port}\nhint: give another --port; 0 takes a free one")
        })?;
        let address = listener.local_addr().context("cannot read the server's address")?;
        Ok((listener, address))
    }
}

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    serve_rewards(&args.rewards, &args.address)
}

/// Serves the rewards of a file until Ctrl-C or SIGTERM.
pub fn serve_rewards(file: &Path, address: &AddressArgs) -> Result<ExitCode> {
    let (listener, address) = address.bind()?;
    let service = ServiceTable::read(file)?;
    let no_score = service.openrlhf.no_score;
    let server = Server::start(service)?;
    tracing::info!(
        "a sample without a score: /score says what happened, /verify sets mask_sample, and /get_reward gives {no_score}"
    );
    if server.has_judgers() {
        tracing::warn!("a reward judges whole groups, so only /score answers: the other paths have one row at a time");
    }
    let router = gavel_service::router(server.clone());
    let stopped = stopped()?;
    let ended = block_on(listener, router, async |listening| {
        // Tests and scripts wait for this line.
        outln!("serving rewards at http://{address}");
        tokio::select! {
            never = listening => match never {},
            stopped = stopped => stopped,
        }
    });
    print_counts(&server.counts(), no_score);
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Starts a runtime and answers requests in it while `during` runs. With several threads, a large body or answer of one
/// client does not hold up the others.
pub fn block_on<F: Future<Output = Result<()>>>(
    listener: TcpListener,
    router: Router,
    during: impl FnOnce(Listening) -> F,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        listener.set_nonblocking(true).context("cannot listen")?;
        let listener = tokio::net::TcpListener::from_std(listener).context("cannot listen")?;
        during(Box::pin(gavel_http::serve(listener, router))).await
    })
}

/// Answers requests while it is polled.
pub type Listening = std::pin::Pin<Box<dyn Future<Output = std::convert::Infallible> + Send>>;

/// Listens for Ctrl-C and SIGTERM from now on. The result waits for one of them.
pub fn stopped() -> Result<impl Future<Output = Result<()>>> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot wait for Ctrl-C")?;
    let wait = move || {
        let mut signals = signals.forever();
        signals.next();
        errln!("stopping; a second signal stops at once");
        // The receiver is gone only when there is nothing to stop.
        let _ = sender.send(());
        if let Some(signal) = signals.next() {
            // Fails for a signal that has no default, and these have one.
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("gavel-signals".into()).spawn(wait).context("cannot wait for Ctrl-C")?;
    Ok(async { receiver.await.context("cannot wait for Ctrl-C") })
}

/// Says how many samples had no score, which trainers may have taken for numbers.
fn print_counts(counts: &BTreeMap<OutcomeKind, u64>, no_score: f64) {
    let all: Vec<String> = counts.iter().map(|(kind, rows)| format!("{rows} {}", kind.as_str())).collect();
    if !all.is_empty() {
        errln!("rows: {}", all.join(", "));
    }
    let lost: u64 = counts.iter().filter(|(kind, _)| **kind != OutcomeKind::Scored).map(|(_, rows)| rows).sum();
    if lost > 0 {
        tracing::warn!("rows without a score: {lost}; for OpenRLHF each counted as {no_score}");
    }
}

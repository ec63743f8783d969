//! A reward model that this rank answers the other ranks with, as `gavel serve` does.

use gavel_http::serve;
use gavel_rollout::RewardModel;
use gavel_serve::classifier;
use std::net::{IpAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A server in a thread of its own, which ends when this is dropped.
pub(super) struct ServedModel {
    pub(super) url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServedModel {
    /// Serves the model at a free port of `address`.
    pub(super) fn start(name: &str, model: RewardModel, address: IpAddr) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let router = classifier::router(model, name, vec!["LABEL_0".to_owned()]);
        let (stop, stopped) = oneshot::channel();
        let answer = move || {
            runtime.block_on(async {
                tokio::select! {
                    never = serve(listener, router) => match never {},
                    // Also if this rank ends without a word.
                    _ = stopped => (),
                }
            });
        };
        let thread = std::thread::Builder::new().name("gavel-reward-server".into()).spawn(answer)?;
        Ok(Self { url, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ServedModel {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed when it came.
            let _ = thread.join();
        }
    }
}

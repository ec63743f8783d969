//! The thread of a run under way that sends it to its trackers.

use crate::error::{SendError, TrackingError};
use crate::feed::count_lacking;
use crate::link::Link;
use crate::listener::MetricsListener;
use crate::progress::Progress;
use crate::prometheus::{Steps, router};
use crate::sent::{SendLock, Sent};
use crate::table::TrackerTable;
use crate::tracker::Tracker;
use gavel_data::Shown;
use gavel_runs::read_ending;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// From one look at the folder to the next.
    pub(crate) look: Duration,
    /// A request.
    pub(crate) request: Duration,
    /// The pause after the first failure; each later one is twice as long.
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
    /// What is left to send when the run ends.
    pub(crate) end: Duration,
}

impl Times {
    pub(crate) const DEFAULT: Self = Self {
        look: Duration::from_secs(1),
        request: Duration::from_secs(30),
        first_pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(60),
        end: Duration::from_secs(10),
    };
}

/// The time for the thread to end by itself, after its own time is over.
const SLACK: Duration = Duration::from_secs(1);
/// A tracker that fails this often in a row when the run ends is given up.
const LAST_TRIES: u32 = 2;

/// Sends a run to its trackers while it is under way. When this is dropped, after the end of the run was recorded, they
/// have ten seconds to get what is left.
pub struct Tracking {
    run: PathBuf,
    stop: watch::Sender<bool>,
    ended: Receiver<()>,
    times: Times,
}

/// Reads the keys of trackers, so that a run does not begin without them.
///
/// # Errors
/// A tracker cannot be used as it is configured.
pub fn check_environment(tables: &[TrackerTable]) -> Result<(), TrackingError> {
    tables.iter().try_for_each(|table| Tracker::new(table, Times::DEFAULT.request).map(drop))
}

impl Tracking {
    /// Starts to send the run in this folder, and to show it at `metrics`; `None` where there is nothing to do.
    ///
    /// # Errors
    /// A tracker cannot be used as it is configured.
    pub fn start(
        run: &Path,
        tables: &[TrackerTable],
        metrics: Option<&MetricsListener>,
    ) -> Result<Option<Self>, TrackingError> {
        Self::start_within(run, tables, metrics, Times::DEFAULT)
    }

    pub(crate) fn start_within(
        run: &Path,
        tables: &[TrackerTable],
        metrics: Option<&MetricsListener>,
        times: Times,
    ) -> Result<Option<Self>, TrackingError> {
        if tables.is_empty() && metrics.is_none() {
            return Ok(None);
        }
        let links = tables.iter().map(|table| Link::new(run, table, true, times.request));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let (stop, stopped) = watch::channel(false);
        let (sender, ended) = channel();
        let (folder, metrics) = (run.to_owned(), metrics.cloned());
        let work = move || {
            follow_all(&folder, links, metrics.as_ref(), &stopped, times);
            // Nobody waits any more if this fails.
            let _ = sender.send(());
        };
        if let Err(error) = thread::Builder::new().name("gavel-tracking".into()).spawn(work) {
            tracing::warn!("nothing is sent to trackers: there is no thread: {error}{}", later(run));
            return Ok(None);
        }
        Ok(Some(Self { run: run.to_owned(), stop, ended, times }))
    }
}

impl Drop for Tracking {
    fn drop(&mut self) {
        // Fails if the thread has ended.
        let _ = self.stop.send(true);
        match self.ended.recv_timeout(self.times.end + SLACK) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => tracing::warn!("a tracker takes too long{}", later(&self.run)),
            Err(RecvTimeoutError::Disconnected) => tracing::warn!("sending to trackers failed{}", later(&self.run)),
        }
    }
}

fn later(run: &Path) -> String {
    format!("\nhint: gavel runs track {} sends what is left", Shown(run.display()))
}

fn follow_all(
    run: &Path,
    links: Vec<Link>,
    metrics: Option<&MetricsListener>,
    stopped: &watch::Receiver<bool>,
    times: Times,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!("nothing is sent to trackers: {error}{}", later(run)),
    };
    let steps = Steps::default();
    let trackers: Vec<_> = links.iter().map(|link| (link.name.clone(), link.target(), link.takes_numbers())).collect();
    runtime.block_on(async {
        if let Some(listener) = metrics {
            show(listener, run, steps.clone());
        }
        let sending = send_all(run, links, stopped.clone(), times, &steps);
        let over = async {
            wait_for_end(stopped.clone()).await;
            sleep(times.end).await;
        };
        tokio::select! {
            () = sending => {}
            () = over => {}
        }
        // Without trackers, numbers are shown until the run ends.
        wait_for_end(stopped.clone()).await;
    });
    // Whatever is under way has had its time.
    runtime.shutdown_background();
    for (name, target, takes_numbers) in trackers {
        if let Some(what) = left(run, &name, &target, takes_numbers) {
            tracing::warn!("{name}: {what}{}", later(run));
        }
    }
}

/// What a tracker was not sent.
pub(crate) fn left(run: &Path, name: &str, target: &str, takes_numbers: bool) -> Option<String> {
    let sent = match Sent::read(run, name, target) {
        Ok(sent) => sent,
        Err(error) => return Some(error.to_string()),
    };
    let last = sent.as_ref().and_then(|sent| sent.last.as_ref());
    let steps = if takes_numbers { count_lacking(run, last) } else { Ok(0) };
    let end = read_ending(run).ok().flatten().map(|ending| ending.at);
    let has_end = end.is_none() || end == sent.as_ref().and_then(|sent| sent.end);
    match steps {
        Ok(0) if has_end => None,
        Ok(0) => Some("the end of the run is not sent yet".to_owned()),
        Ok(1) => Some("1 step is not sent yet".to_owned()),
        Ok(steps) => Some(format!("{steps} steps are not sent yet")),
        Err(error) => Some(error.to_string()),
    }
}

/// Waits until the run has ended.
async fn wait_for_end(mut stopped: watch::Receiver<bool>) {
    // It fails if the run is gone, which is an end, too.
    let _ = stopped.wait_for(|is_over| *is_over).await;
}

/// Shows the run's numbers as long as the runtime lives.
fn show(listener: &MetricsListener, run: &Path, steps: Steps) {
    let accepting = match listener.accepting() {
        Ok(accepting) => accepting,
        Err(error) => return tracing::warn!("--metrics: the run's numbers are not shown: {error}"),
    };
    let router = router(run, steps);
    tokio::spawn(async move { match gavel_http::serve(accepting, router).await {} });
}

async fn send_all(run: &Path, links: Vec<Link>, stopped: watch::Receiver<bool>, times: Times, steps: &Steps) {
    if links.is_empty() {
        return;
    }
    let Some(_lock) = locked(run, stopped.clone(), times).await else {
        return tracing::warn!("nothing is sent to trackers: another process sends this run{}", later(run));
    };
    let mut following = tokio::task::JoinSet::new();
    for link in links {
        steps.lock().unwrap_or_else(PoisonError::into_inner).insert(link.name.clone(), None);
        following.spawn(follow(link, stopped.clone(), times, steps.clone()));
    }
    // A tracker whose code panics ends alone.
    while following.join_next().await.is_some() {}
}

/// Waits until no other process sends the run; `None` if the run has ended before.
async fn locked(run: &Path, mut stopped: watch::Receiver<bool>, times: Times) -> Option<SendLock> {
    let mut has_warned = false;
    loop {
        match SendLock::take(run) {
            Ok(lock) => return Some(lock),
            Err(error) if !has_warned => {
                tracing::warn!("trackers wait: {error}");
                has_warned = true;
            }
            Err(_) => {}
        }
        if *stopped.borrow() {
            return None;
        }
        let _ = timeout(times.look, stopped.changed()).await;
    }
}

/// Sends a run to a tracker until the run has ended and the tracker has all of it, or fails then.
async fn follow(mut link: Link, mut stopped: watch::Receiver<bool>, times: Times, steps: Steps) {
    let mut trouble = Trouble::default();
    let mut last_tries = 0;
    loop {
        let is_over = *stopped.borrow();
        let advanced = link.advance().await;
        if link.takes_numbers() {
            steps.lock().unwrap_or_else(PoisonError::into_inner).insert(link.name.clone(), link.step());
        }
        let pause = match advanced {
            Ok(progress) => {
                trouble.end(&link.name);
                match progress {
                    Progress::More => continue,
                    Progress::CaughtUp if is_over => return,
                    Progress::CaughtUp => times.look,
                }
            }
            Err(error) => {
                last_tries += u32::from(is_over);
                if last_tries >= LAST_TRIES {
                    return;
                }
                let pause = trouble.begin(&link.name, &error, times);
                if is_over { times.first_pause.min(pause) } else { pause }
            }
        };
        match is_over {
            true => sleep(pause).await,
            // Either is a reason to look.
            false => drop(timeout(pause, stopped.changed()).await),
        }
    }
}

/// The failures of a tracker in a row.
#[derive(Default)]
struct Trouble {
    failures: u32,
    /// What was reported last.
    said: String,
}

impl Trouble {
    /// Reports a failure, once as long as it stays the same. Returns how long to wait.
    fn begin(&mut self, name: &str, error: &SendError, times: Times) -> Duration {
        let what = error.to_string();
        if self.said != what {
            tracing::warn!(
                "{name}: {}; the run goes on, and what is missed is sent later{}",
                first_line(&what),
                hints(&what)
            );
            self.said = what;
        }
        let pause = times.first_pause.saturating_mul(2_u32.saturating_pow(self.failures)).min(times.longest_pause);
        self.failures += 1;
        pause
    }

    fn end(&mut self, name: &str) {
        if std::mem::take(&mut self.failures) > 0 {
            tracing::info!("{name}: sends again");
            self.said.clear();
        }
    }
}

fn first_line(what: &str) -> &str {
    what.split("\nhint: ").next().unwrap_or_default()
}

fn hints(what: &str) -> &str {
    what.find("\nhint: ").map_or("", |at| &what[at..])
}

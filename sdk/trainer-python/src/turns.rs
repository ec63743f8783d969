//! Turns of limiters that processes share without a folder: one process gives them, and the others ask it. Python
//! carries what they report, as JSON.

use gavel_endpoint::{Asker, Limiter, LimiterTable, Turn, TurnEvent, group_number};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// The side of a process that asks.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Courier(gavel_endpoint::Courier);

impl Courier {
    pub fn inner(&self) -> &gavel_endpoint::Courier {
        &self.0
    }
}

#[pymethods]
impl Courier {
    #[new]
    fn new() -> Self {
        Self(gavel_endpoint::Courier::default())
    }

    /// Waits without Python's lock for what requests report, for so many seconds at most.
    fn take<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let within = duration(seconds)?;
        let events = py.detach(|| self.0.take(within));
        if events.is_empty() {
            return Ok(None);
        }
        let json = serde_json::to_vec(&events).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Some(PyBytes::new(py, &json)))
    }

    /// Hands out the turns of these requests.
    fn bring(&self, numbers: Vec<u64>) {
        self.0.bring(&numbers);
    }

    /// Reports all requests that wait once more.
    fn report_again(&self) {
        self.0.report_again();
    }
}

/// The side that gives turns.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Turns {
    limiters: BTreeMap<String, Limiter>,
    runtime: Runtime,
    requests: Arc<Mutex<Requests>>,
    given: Mutex<Receiver<Key>>,
    give: Sender<Key>,
}

/// A process, and the number of a request there.
type Key = (String, u64);

#[derive(Default)]
struct Requests {
    under_way: BTreeMap<Key, Request>,
    /// The number here of each group of a process, and its requests under way.
    groups: BTreeMap<Key, (u64, usize)>,
}

struct Request {
    group: Key,
    state: State,
}

enum State {
    Waiting(AbortHandle),
    Given(Turn),
}

impl Requests {
    /// The number of a group here, in which one more request is under way.
    fn join(&mut self, group: &Key) -> u64 {
        let (number, requests) = self.groups.entry(group.clone()).or_insert_with(|| (group_number(), 0));
        *requests += 1;
        *number
    }

    /// Ends a request. Returns its turn, if it was given.
    fn end(&mut self, key: &Key) -> Option<Turn> {
        let Request { group, state } = self.under_way.remove(key)?;
        if let Some((_, requests)) = self.groups.get_mut(&group) {
            *requests -= 1;
            if *requests == 0 {
                self.groups.remove(&group);
            }
        }
        match state {
            State::Waiting(task) => {
                task.abort();
                None
            }
            State::Given(turn) => Some(turn),
        }
    }
}

#[pymethods]
impl Turns {
    /// Gives turns of these limiters, tables as JSON.
    #[new]
    fn new(limiters: &str) -> PyResult<Self> {
        let tables: BTreeMap<String, LimiterTable> =
            serde_json::from_str(limiters).map_err(|error| PyValueError::new_err(format!("limiter: {error}")))?;
        let open = |(name, table): (String, LimiterTable)| match Limiter::open(&table) {
            Ok(limiter) => Ok((name, limiter)),
            Err(error) => Err(PyValueError::new_err(format!("limiter.{name}.{error}"))),
        };
        let limiters = tables.into_iter().map(open).collect::<PyResult<_>>()?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let runtime = runtime.map_err(|error| PyOSError::new_err(format!("cannot start a thread: {error}")))?;
        let (give, given) = channel();
        Ok(Self { limiters, runtime, requests: Arc::default(), given: Mutex::new(given), give })
    }

    /// Takes what the requests of a process report, as its courier has it.
    fn report(&self, process: &str, events: &[u8]) -> PyResult<()> {
        let events: Vec<TurnEvent> =
            serde_json::from_slice(events).map_err(|error| PyValueError::new_err(error.to_string()))?;
        events.into_iter().try_for_each(|event| match event {
            TurnEvent::Wanted { number, limiter, plugin, group, sample, tokens } => {
                let Some(limiter) = self.limiters.get(&limiter) else {
                    let known = self.limiters.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    return Err(PyValueError::new_err(format!("there is no limiter `{limiter}`, only: {known}")));
                };
                let key = (process.to_owned(), number);
                self.want(limiter.clone(), key, (process.to_owned(), group), (plugin, sample), tokens);
                Ok(())
            }
            TurnEvent::Ended { number, spent, reported } => {
                let turn = lock(&self.requests).end(&(process.to_owned(), number));
                if let Some(mut turn) = turn {
                    spent.into_iter().for_each(|spent| turn.spend(spent));
                    turn.report(reported);
                }
                Ok(())
            }
        })
    }

    /// Waits without Python's lock for turns that are given, for so many seconds at most: the process and the number of
    /// each.
    fn given(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Key>> {
        let within = duration(seconds)?;
        Ok(py.detach(|| {
            let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            given.recv_timeout(within).into_iter().chain(given.try_iter()).collect()
        }))
    }

    /// Ends all requests of a process, which has ended itself.
    fn forget(&self, process: &str) {
        let ended = {
            let mut requests = lock(&self.requests);
            let of_process = requests.under_way.keys().filter(|(owner, _)| owner == process).cloned();
            let keys = of_process.collect::<Vec<_>>();
            keys.iter().filter_map(|key| requests.end(key)).collect::<Vec<_>>()
        };
        drop(ended);
    }
}

impl Turns {
    fn want(&self, limiter: Limiter, key: Key, group: Key, (plugin, sample): (String, u32), tokens: f64) {
        let mut requests = lock(&self.requests);
        if let Some(request) = requests.under_way.get(&key) {
            if matches!(request.state, State::Given(_)) {
                // It asks again, so it does not know of its turn. Nobody asks any more where this fails.
                let _ = self.give.send(key);
            }
            return;
        }
        let asker = Asker { plugin: plugin.into(), group: requests.join(&group), sample };
        let (all, give, own) = (self.requests.clone(), self.give.clone(), key.clone());
        let waiting = self.runtime.spawn(async move {
            let turn = limiter.turn(&asker, tokens).await;
            if let Some(request) = lock(&all).under_way.get_mut(&own) {
                request.state = State::Given(turn);
                // Nobody asks any more where it fails.
                let _ = give.send(own);
            }
        });
        requests.under_way.insert(key, Request { group, state: State::Waiting(waiting.abort_handle()) });
    }
}

fn lock(requests: &Mutex<Requests>) -> MutexGuard<'_, Requests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

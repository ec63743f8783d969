//! Servers that answer the same requests: chooses one of them, and knows whether any is up.

use crate::on_endpoint_down::OnEndpointDown;
use crate::pauses::HeldPause;
use std::fmt::{self, Display, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// An endpoint is down after this many failures without an answer between them, …
const DOWN_AFTER: u32 = 5;
/// … if the first of them is this long ago.
const DOWN_FOR: Duration = Duration::from_secs(3);
/// The time for which a failed server is left out at first; each further time is twice as long.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The servers of an endpoint. The server with the fewest requests under way is asked. A server that failed is left out
/// for a while and then tried with a single request. When all servers have failed for a while, the endpoint is down.
pub struct Servers {
    /// The endpoint's name in messages.
    name: String,
    on_endpoint_down: OnEndpointDown,
    /// The longest pause of a run, which stops after it.
    max_pause: Option<Duration>,
    state: Mutex<State>,
    /// Signals that the endpoint is up again.
    up: Notify,
}

struct State {
    servers: Vec<Server>,
    /// The number of failures since the last answer, and the time of the first.
    failures: Option<(u32, Instant)>,
    /// When the failures had lasted for a while.
    down_at: Option<Instant>,
    has_answered: bool,
    /// Why the last failed request failed.
    last_failure: String,
    /// The number of choices so far.
    chosen: u64,
    /// While requests wait for the endpoint.
    pause: Option<HeldPause>,
}

#[derive(Default)]
struct Server {
    under_way: usize,
    /// Failures since its last answer.
    failures: u32,
    /// The server is left out until then.
    rests_until: Option<Instant>,
    last_chosen: u64,
}

/// A server that is being asked. If it is dropped without a result, that counts as a failure only if the server has not
/// answered for a while, such as when a call ends at its own deadline.
pub struct ChosenServer<'a> {
    servers: &'a Servers,
    /// The server's place in the list.
    pub number: usize,
    /// Whether it failed before, and this request tries it.
    is_trial: bool,
    asked_at: Instant,
    /// Whether the result of the request is known.
    is_known: bool,
}

/// The state of an endpoint that has not answered for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down {
    /// Since the first request that failed.
    pub since: Instant,
    /// When a server is tried again.
    pub tried_at: Instant,
    /// When it counted as down.
    at: Instant,
    /// Whether it has ever answered.
    has_answered: bool,
    /// Whether requests are unavailable because the configuration asks for it.
    is_chosen: bool,
}

impl Display for Down {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "it has not answered for {:.0} s", self.since.elapsed().as_secs_f64())?;
        let hint = if self.is_chosen { " (with on_endpoint_down = \"pause\", requests wait for it)" } else { "" };
        f.write_str(hint)
    }
}

impl Servers {
    /// This many servers, without any history. `name` stands for them in messages, such as "the server URL".
    pub fn new(name: String, count: usize, on_endpoint_down: OnEndpointDown) -> Self {
        let state = Mutex::new(State::new(count));
        Self { name, on_endpoint_down, max_pause: None, state, up: Notify::new() }
    }

    /// The same servers of a run that stops after a pause of `max_pause`, and does not wait for a server that has never
    /// answered. Without this, requests that wait do so for as long as it takes.
    pub fn with_max_pause(self, max_pause: Option<Duration>) -> Self {
        Self { max_pause, ..self }
    }

    /// Chooses the server to ask.
    ///
    /// # Errors
    /// The endpoint is down, and it is not yet time to try a server.
    pub fn choose(&self) -> Result<ChosenServer<'_>, Down> {
        let asked_at = Instant::now();
        let (number, is_trial) = self.lock().choose(asked_at)?;
        Ok(ChosenServer { servers: self, number, is_trial, asked_at, is_known: false })
    }

    /// Whether the endpoint is down, and since when.
    pub fn down(&self) -> Option<Down> {
        let is_chosen = self.on_endpoint_down == OnEndpointDown::Drop;
        self.lock().down().map(|down| Down { is_chosen, ..down })
    }

    /// Whether the endpoint is down, and requests wait until it is up.
    pub(crate) fn hold_requests(&self) -> bool {
        self.down().is_some_and(|down| self.holds_at(&down, Instant::now()))
    }

    /// Whether requests wait for the endpoint at the time `now`.
    fn holds_at(&self, down: &Down, now: Instant) -> bool {
        let is_in_time = |most| down.has_answered && now.saturating_duration_since(down.at) < most;
        self.on_endpoint_down == OnEndpointDown::Pause && self.max_pause.is_none_or(is_in_time)
    }

    /// Notes that a server has answered a request that was not sent to a chosen one.
    pub fn note_answer(&self) {
        self.lock().has_answered = true;
    }

    /// Why a run must stop: the endpoint is down, and the run does not wait for it, or no longer.
    pub fn must_stop(&self) -> Option<String> {
        let down = self.down().filter(|down| !self.holds_at(down, Instant::now()))?;
        let name = &self.name;
        Some(match (self.on_endpoint_down, self.max_pause) {
            (OnEndpointDown::Drop, _) => return None,
            (OnEndpointDown::Pause, Some(most)) if down.has_answered => {
                let (most, why) = (most.as_secs_f64(), self.lock().last_failure.clone());
                format!("{name}: {down}, and the run paused for {most:.0} s (train.max_pause): {why}")
            }
            (OnEndpointDown::Pause, _) => format!("{name}: it has never answered: {}", self.lock().last_failure),
            (OnEndpointDown::Stop, _) => format!("{name}: {down}, and its on_endpoint_down is \"stop\""),
        })
    }

    /// Waits while the endpoint is down, until it is time to try a server. Returns whether it had to wait.
    ///
    /// # Errors
    /// The endpoint is down, and requests do not wait.
    pub async fn until_up(&self) -> Result<bool, Down> {
        let mut has_waited = false;
        while let Some(down) = self.down().filter(|down| Instant::now() < down.tried_at) {
            if !self.holds_at(&down, Instant::now()) {
                return Err(down);
            }
            self.wait(down).await;
            has_waited = true;
        }
        Ok(has_waited)
    }

    /// Waits until the endpoint is up again, it is time to try a server, or the pause is over.
    async fn wait(&self, down: Down) {
        let mut up = std::pin::pin!(self.up.notified());
        up.as_mut().enable();
        if self.down().is_some() {
            let over = self.max_pause.and_then(|most| down.at.checked_add(most));
            let until = over.map_or(down.tried_at, |over| over.min(down.tried_at));
            // Either is a reason to look again.
            let _ = timeout_at(until.into(), up).await;
        }
    }

    fn failed(&self, number: usize, is_trial: bool, why: &dyn Display) {
        let has_answered = {
            let mut state = self.lock();
            state.last_failure = why.to_string();
            if !state.failed(number, is_trial, Instant::now()) {
                return;
            }
            if state.down().is_some_and(|down| self.holds_at(&down, Instant::now())) {
                state.pause = Some(HeldPause::begin(&self.name, &state.last_failure));
            }
            state.has_answered
        };
        let then = match (self.on_endpoint_down, self.max_pause) {
            (OnEndpointDown::Pause, Some(_)) if !has_answered => {
                "it has never answered, so that the run stops".to_owned()
            }
            (OnEndpointDown::Pause, Some(most)) => {
                format!("requests wait until it answers, for at most {:.0} s (train.max_pause)", most.as_secs_f64())
            }
            (OnEndpointDown::Pause, None) => "requests wait until it answers".to_owned(),
            (OnEndpointDown::Drop, _) => {
                "requests are unavailable until it answers\nhint: with on_endpoint_down = \"pause\", they wait"
                    .to_owned()
            }
            (OnEndpointDown::Stop, _) => "the run stops".to_owned(),
        };
        tracing::warn!("{why}; {} has failed for a while: {then}", self.name);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChosenServer<'_> {
    /// Notes that it answered, even if the answer is that the request is wrong or that the server is busy.
    pub fn answered(mut self) {
        self.is_known = true;
        let was_down = self.servers.lock().answered(self.number);
        if was_down {
            tracing::info!("{} answers again", self.servers.name);
            self.servers.up.notify_waiters();
        }
    }

    /// Notes that it did not answer, or failed.
    pub fn failed(mut self, why: &dyn Display) {
        self.is_known = true;
        self.servers.failed(self.number, self.is_trial, why);
    }
}

impl Drop for ChosenServer<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.servers.lock();
            let server = &mut state.servers[self.number];
            server.under_way = server.under_way.saturating_sub(1);
        }
        if !self.is_known && self.asked_at.elapsed() >= DOWN_FOR {
            self.servers.failed(self.number, self.is_trial, &"no answer before the call ended");
        }
    }
}

impl State {
    fn new(count: usize) -> Self {
        let servers = std::iter::repeat_with(Server::default).take(count).collect();
        let last_failure = String::new();
        Self { servers, failures: None, down_at: None, has_answered: false, last_failure, chosen: 0, pause: None }
    }

    /// The number of the server to ask, and whether the request tries it.
    fn choose(&mut self, now: Instant) -> Result<(usize, bool), Down> {
        let down = self.down();
        let rests = |server: &Server| server.rests_until.is_some_and(|until| now < until);
        let places = || self.servers.iter().enumerate();
        let awake = places().filter(|(_, server)| !rests(server));
        let fewest = awake.min_by_key(|(_, server)| (server.under_way, server.last_chosen));
        let (number, is_awake) = match (fewest, down) {
            (Some((number, _)), _) => (number, true),
            (None, Some(down)) => return Err(down),
            // All servers rest, but not for long enough to be down.
            (None, None) => {
                (places().min_by_key(|(_, server)| server.rests_until).map_or(0, |(number, _)| number), false)
            }
        };
        self.chosen += 1;
        let chosen = self.chosen;
        let server = &mut self.servers[number];
        (server.under_way, server.last_chosen) = (server.under_way + 1, chosen);
        let is_trial = is_awake && server.failures > 0;
        if is_trial {
            // One request tries it; the others leave it out until that request has ended.
            server.rests_until = Some(now + rest(server.failures));
        }
        Ok((number, is_trial))
    }

    fn down(&self) -> Option<Down> {
        let ((_, since), at) = self.failures.zip(self.down_at)?;
        let tried_at = self.servers.iter().filter_map(|server| server.rests_until).min().unwrap_or(since);
        Some(Down { since, tried_at, at, has_answered: self.has_answered, is_chosen: false })
    }

    /// Returns whether the endpoint was down.
    fn answered(&mut self, number: usize) -> bool {
        let server = &mut self.servers[number];
        (server.failures, server.rests_until) = (0, None);
        (self.failures, self.has_answered, self.pause) = (None, true, None);
        self.down_at.take().is_some()
    }

    /// Returns whether the endpoint went down with this failure.
    fn failed(&mut self, number: usize, is_trial: bool, now: Instant) -> bool {
        let server = &mut self.servers[number];
        // Requests that were under way when it failed tell nothing new.
        if is_trial || server.rests_until.is_none_or(|until| until <= now) {
            server.failures += 1;
            server.rests_until = Some(now + rest(server.failures));
        }
        let (count, first) = self.failures.unwrap_or((0, now));
        self.failures = Some((count + 1, first));
        let is_down = count + 1 >= DOWN_AFTER && now.duration_since(first) >= DOWN_FOR;
        let goes_down = is_down && self.down_at.is_none();
        if goes_down {
            self.down_at = Some(now);
        }
        goes_down
    }
}

/// The time that a server rests after this many failures in a row.
fn rest(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_REST.saturating_mul(doubled).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Servers {
        Servers::new("the endpoint `judge`".into(), 1, OnEndpointDown::Pause)
    }

    fn chosen(state: &mut State, now: Instant, times: usize) -> Vec<usize> {
        (0..times).map(|_| state.choose(now).unwrap().0).collect()
    }

    #[test]
    fn the_server_with_the_fewest_requests_is_asked() {
        let (mut state, now) = (State::new(3), Instant::now());
        assert_eq!(chosen(&mut state, now, 4), [0, 1, 2, 0]);
        state.servers[2].under_way = 0;
        assert_eq!(chosen(&mut state, now, 1), [2]);
    }

    #[test]
    fn a_server_that_failed_is_left_out_and_tried_with_one_request() {
        let (mut state, start) = (State::new(2), Instant::now());
        // The requests that were under way count once.
        state.failed(0, false, start);
        state.failed(0, false, start);
        assert_eq!(chosen(&mut state, start, 3), [1; 3]);
        let later = start + FIRST_REST;
        assert_eq!((state.choose(later), state.choose(later)), (Ok((0, true)), Ok((1, false))));
        // It failed again, and rests for longer.
        state.failed(0, true, later);
        assert_eq!(state.choose(later + FIRST_REST), Ok((1, false)));
        assert!(!state.answered(0));
        state.servers[1].under_way = 9;
        assert_eq!(state.choose(later + FIRST_REST), Ok((0, false)));
        assert!(state.down().is_none());
    }

    #[test]
    fn an_endpoint_is_down_when_it_has_failed_for_a_while() {
        let (mut state, start) = (State::new(1), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for _ in 0..DOWN_AFTER {
            assert!(!state.failed(0, false, start));
        }
        // Many failures at once are not yet an endpoint that is down.
        assert_eq!(state.choose(at(0)), Ok((0, false)));
        assert!(state.failed(0, false, at(4)));
        let down = state.choose(at(4)).unwrap_err();
        assert_eq!((down.since, down.tried_at), (start, at(6)));
        // A single request tries it.
        assert_eq!(state.choose(at(6)), Ok((0, true)));
        assert!(state.choose(at(6)).is_err());
        assert!(state.answered(0));
        assert_eq!(chosen(&mut state, at(6), 2), [0; 2]);
    }

    impl Servers {
        /// Servers that are down, and are to be tried.
        pub(crate) fn down_before(on_endpoint_down: OnEndpointDown) -> Self {
            down_for_100_s(on_endpoint_down, None, true)
        }

        /// Lets the next request try them.
        pub(crate) fn trial_now(&self) {
            self.lock().servers.iter_mut().for_each(|server| server.rests_until = None);
        }
    }

    #[tokio::test]
    async fn whoever_waits_asks_again_once_it_is_up() {
        let servers = servers();
        let now = Instant::now();
        for at in [now; DOWN_AFTER as usize - 1].into_iter().chain([now + DOWN_FOR]) {
            servers.lock().failed(0, false, at);
        }
        servers.lock().servers[0].rests_until = Some(Instant::now() + Duration::from_secs(3600));
        let down = servers.down().unwrap();
        let up = async {
            tokio::task::yield_now().await;
            ChosenServer { servers: &servers, number: 0, is_trial: true, asked_at: now, is_known: false }.answered();
        };
        futures::future::join(servers.wait(down), up).await;
        assert!(servers.down().is_none());
    }

    /// An endpoint of a run with this longest pause, which has been down for 100 s.
    fn down_for_100_s(on_endpoint_down: OnEndpointDown, max_pause: Option<u64>, has_answered: bool) -> Servers {
        let servers = Servers::new("the endpoint `judge`".into(), 1, on_endpoint_down);
        let servers = servers.with_max_pause(max_pause.map(Duration::from_secs));
        if has_answered {
            servers.note_answer();
        }
        let down_at = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let first = down_at.checked_sub(DOWN_FOR).unwrap();
        let mut state = servers.lock();
        for at in [first; DOWN_AFTER as usize - 1].into_iter().chain([down_at]) {
            state.failed(0, false, at);
        }
        state.last_failure = "connection refused".into();
        drop(state);
        servers
    }

    #[test]
    fn a_run_waits_for_a_server_that_has_answered_and_not_for_ever() {
        use OnEndpointDown::{Drop, Pause, Stop};
        for (on_endpoint_down, max_pause, has_answered, holds, stops) in [
            (Pause, Some(101 * 60), true, true, None),
            (Pause, None, false, true, None),
            (Drop, Some(60), true, false, None),
            (
                Pause,
                Some(60),
                true,
                false,
                Some(
                    "it has not answered for 103 s, and the run paused for 60 s (train.max_pause): connection refused",
                ),
            ),
            (Pause, Some(101 * 60), false, false, Some("it has never answered: connection refused")),
            (Stop, None, true, false, Some("it has not answered for 103 s, and its on_endpoint_down is \"stop\"")),
        ] {
            let servers = down_for_100_s(on_endpoint_down, max_pause, has_answered);
            let stops = stops.map(|why| format!("the endpoint `judge`: {why}"));
            assert_eq!((servers.hold_requests(), servers.must_stop()), (holds, stops), "{on_endpoint_down:?}");
        }
    }

    #[tokio::test]
    async fn requests_that_wait_are_unavailable_once_the_pause_is_over() {
        let over = down_for_100_s(OnEndpointDown::Pause, Some(100), true);
        over.lock().servers[0].rests_until = Some(Instant::now() + Duration::from_secs(3600));
        // Without the end of the pause, this would wait for the next trial.
        assert!(over.until_up().await.is_err());
    }

    #[test]
    fn a_pause_is_known_in_this_process_while_it_lasts() {
        let name = "the endpoint `paused`";
        let paused = || crate::pauses::pauses().into_iter().find(|pause| pause.endpoint == name);
        let down = |on_endpoint_down| {
            let servers = Servers::new(name.into(), 1, on_endpoint_down);
            let first = Instant::now().checked_sub(DOWN_FOR).unwrap();
            (1..DOWN_AFTER).for_each(|_| assert!(!servers.lock().failed(0, false, first)));
            servers.failed(0, false, &"connection refused");
            servers
        };
        let servers = down(OnEndpointDown::Drop);
        assert_eq!((servers.down().is_some(), paused()), (true, None));
        let servers = down(OnEndpointDown::Pause);
        assert_eq!(paused().unwrap().why, "connection refused");
        servers.trial_now();
        servers.choose().unwrap().answered();
        assert_eq!(paused(), None);
        let servers = down(OnEndpointDown::Pause);
        assert!(paused().is_some());
        drop(servers);
        assert_eq!(paused(), None);
    }

    #[test]
    fn requests_that_are_dropped_name_what_lets_them_wait() {
        let down = down_for_100_s(OnEndpointDown::Drop, None, true).down().unwrap().to_string();
        assert!(down.ends_with(" (with on_endpoint_down = \"pause\", requests wait for it)"), "{down}");
        let down = down_for_100_s(OnEndpointDown::Pause, Some(60), true).down().unwrap().to_string();
        assert!(down.ends_with(" s"), "{down}");
    }

    #[test]
    fn a_server_that_only_hangs_has_failed() {
        let servers = servers();
        let failures = || servers.lock().servers[0].failures;
        drop(servers.choose().unwrap());
        assert_eq!((failures(), servers.lock().servers[0].under_way), (0, 0));
        let mut asked = servers.choose().unwrap();
        asked.asked_at = Instant::now().checked_sub(DOWN_FOR).unwrap();
        drop(asked);
        assert_eq!((failures(), servers.lock().servers[0].under_way), (1, 0));
    }
}

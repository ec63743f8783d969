//! Checks of the arguments that the policy wrote.

use gavel_plugin::ToolFunction;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The long checks that are made at once. They leave processors to the others.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new((available_parallelism().map_or(1, NonZero::get) / 2).max(1)));

/// Ends a check that nobody waits for any more.
#[derive(Default)]
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks arguments before the tool is asked. All episodes of a run share a thread: a check that takes longer than
/// milliseconds is made on another one.
///
/// # Errors
/// The function does not take them. The text is for the policy.
pub(crate) async fn check_arguments(function: &ToolFunction, arguments: &str) -> Result<(), String> {
    if let Some(checked) = function.check_shortly(arguments) {
        return checked;
    }
    // The semaphore is never closed.
    let turn = TURNS.acquire().await.ok();
    let waits = Waits::default();
    let check = function.check_elsewhere(arguments, waits.0.clone());
    let check = move || {
        // Also if the episode is over before its check has ended.
        let _until_done = turn;
        check()
    };
    match spawn_blocking(check).await {
        Ok(checked) => checked,
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(lost) => Err(format!("the arguments were not checked: {lost}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use serde_json::json;
    use tokio::runtime::Builder;

    #[test]
    fn a_check_ends_with_what_waits_for_it() {
        let function = ToolFunction::all([("f".into(), String::new(), "{}".to_owned())]).unwrap().remove(0);
        let (waits, over) = (Waits::default(), Waits::default());
        let checks = [&waits, &over].map(|waits| function.check_elsewhere("{}", waits.0.clone()));
        drop(over);
        assert_eq!(checks.map(|check| check().is_ok()), [true, false]);
    }

    #[test]
    fn a_long_check_leaves_the_thread_to_other_episodes() {
        // Each text counts as 20 million steps.
        let schema = json!({"properties": {"list": {"items": {"format": "regex"}}}});
        let function = ToolFunction::all([("f".into(), String::new(), schema.to_string())]).unwrap().remove(0);
        let [short, long] = [0, 11].map(|length| json!({"list": vec!["a"; length]}).to_string());
        let runtime = Builder::new_current_thread().build().unwrap();
        let count = TURNS.available_permits() as u32;
        runtime.block_on(async {
            // A check that is made elsewhere cannot be done before there is a turn for it.
            let turns = TURNS.acquire_many(count).await.unwrap();
            let mut waiting = std::pin::pin!(check_arguments(&function, &long));
            assert_eq!(futures::poll!(&mut waiting), std::task::Poll::Pending);
            assert_eq!(check_arguments(&function, &short).now_or_never(), Some(Ok(())));
            drop(turns);
            let checked = waiting.await;
            assert_eq!(checked, function.check(&long));
            assert!(checked.unwrap_err().contains("nested too deep, or too long, to be checked"));
        });
    }
}

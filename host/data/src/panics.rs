//! Panics of libraries about what others wrote, which must not end the process.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught, and so reported by its caller.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`.
///
/// # Errors
/// It panics. Nothing is printed; the error is what would be.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    done.map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_caught_panic_is_an_error() {
        assert_eq!(caught(|| 1), Ok(1));
        assert_eq!(caught(|| -> u8 { panic!("at {}", 2) }), Err("at 2".into()));
        assert_eq!(caught(|| caught(|| -> u8 { panic!("within") })), Ok(Err("within".into())));
    }

    /// Panics where a test of another process looks.
    #[test]
    #[ignore = "the test below starts it"]
    fn some_panics() {
        _ = caught(|| -> u8 { panic!("a caught one") });
        _ = catch_unwind(|| -> u8 { panic!("another one") });
    }

    #[test]
    fn only_other_panics_are_printed() {
        let mut some = Command::new(std::env::current_exe().unwrap());
        some.args(["--ignored", "--exact", "--nocapture", "panics::tests::some_panics"]);
        let printed = String::from_utf8(some.output().unwrap().stderr).unwrap();
        assert!(printed.contains("another one") && !printed.contains("a caught one"), "{printed}");
    }
}

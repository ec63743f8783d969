//! Messages of a server that are not JSON. The library ignores them, so that the call which one answers would wait for
//! its whole time.

use serde::de::IgnoredAny;
use tokio::sync::watch;

/// How much of the beginning of a message is shown, in bytes.
const SHOWN_BYTES: usize = 80;

/// Where damaged messages are reported; the value is what the last one begins with.
#[derive(Debug, Default)]
pub(super) struct Damage(watch::Sender<String>);

/// The reports of damaged messages.
#[derive(Debug, Clone)]
pub(super) struct Damaged(watch::Receiver<String>);

impl Damage {
    pub(super) fn reports(&self) -> Damaged {
        Damaged(self.0.subscribe())
    }

    /// Reports `message` if it begins as a message does and is not JSON. Other text is not meant as a message: servers
    /// write greetings and logs to their stdout.
    pub(super) fn check(&self, message: &[u8]) {
        let message = message.trim_ascii();
        if message.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(message).is_err() {
            let shown = &message[..message.len().min(SHOWN_BYTES)];
            self.0.send_replace(String::from_utf8_lossy(shown).into_owned());
        }
    }
}

impl Damaged {
    /// The messages that are damaged after this call.
    pub(super) fn anew(&self) -> Self {
        let mut copy = self.clone();
        copy.0.mark_unchanged();
        copy
    }

    /// Waits for a damaged message, and says what it begins with. Without a message, it waits for ever.
    pub(super) async fn next(&mut self) -> String {
        if self.0.changed().await.is_err() {
            // The server has ended, which the library finds.
            return std::future::pending().await;
        }
        let begins = self.0.borrow_and_update().clone();
        format!("it sent a message that is not JSON; the message begins: {begins}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_message_that_is_not_json_is_reported_once() {
        let damage = Damage::default();
        let mut reports = damage.reports();
        for fine in ["{\"id\": 1}", " {} \r", "", "Listening on stdio", "[1", "3"] {
            damage.check(fine.as_bytes());
        }
        assert_eq!(reports.next().now_or_never(), None);
        damage.check(b"{\"jsonrpc\": \"2.0\", ");
        let says = "it sent a message that is not JSON; the message begins: {\"jsonrpc\": \"2.0\",";
        assert_eq!(reports.next().now_or_never().as_deref(), Some(says));
        assert_eq!(reports.next().now_or_never(), None);
        damage.check(&[b"{".repeat(5000), b"\xff".to_vec()].concat());
        let long = reports.anew().next().now_or_never();
        assert_eq!(long, None, "it came before");
        assert!(reports.next().now_or_never().unwrap().ends_with(&format!(": {}", "{".repeat(SHOWN_BYTES))));
    }
}

//! Whether each import of a component is granted.

use super::grants::{ClockGrant, Grants, RandomGrant};
use serde::Serialize;

/// An import of a component, and how a plugin with some grants gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// The interface, with its package and version.
    pub name: String,
    /// How it is granted.
    #[serde(rename = "standing")]
    pub status: GrantStatus,
    /// The status in words.
    pub what: String,
    /// The grant that gives the real interface, where there is one.
    pub grant: Option<&'static str>,
}

/// How an import is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantStatus {
    /// Every plugin has it.
    Given,
    /// It is granted.
    Granted,
    /// It is present, but shows nothing of the machine.
    StandIn,
    /// The component does not load.
    Refused,
}

impl GrantStatus {
    /// The name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Granted => "granted",
            Self::StandIn => "stand-in",
            Self::Refused => "refused",
        }
    }
}

impl Import {
    /// How a plugin with `grants` gets the import `name`.
    pub fn new(name: &str, grants: &Grants) -> Self {
        use GrantStatus::{Given, Granted, Refused, StandIn};
        let interface = name.split_once('@').map_or(name, |(interface, _)| interface);
        let (package, interface) = interface.split_once('/').unwrap_or((interface, ""));
        let or_stand_in = |granted: Option<String>, stand_in: &str, grant| match granted {
            Some(what) => (Granted, what, None),
            None => (StandIn, stand_in.to_owned(), Some(grant)),
        };
        let (status, what, grant) = match (package, interface) {
            ("gavel:plugin", "types" | "samples" | "references" | "tasks" | "policy" | "tools") => {
                (Given, "the contract".to_owned(), None)
            }
            ("gavel:plugin", "chat") => match list(&grants.chat) {
                Some(endpoints) => (Granted, endpoints, None),
                None => (Refused, "no endpoint".to_owned(), Some(r#"chat = ["NAME"]"#)),
            },
            ("gavel:plugin", "reward-model") => match list(&grants.reward_model) {
                Some(models) => (Granted, models, None),
                None => (Refused, "no reward model".to_owned(), Some(r#"reward_model = ["NAME"]"#)),
            },
            ("gavel:plugin", "exec") => match list(&grants.exec) {
                Some(programs) => (Granted, programs, None),
                None => (Refused, "no program".to_owned(), Some(r#"exec = ["NAME"]"#)),
            },
            ("wasi:http", "types" | "outgoing-handler") => match list(&grants.http) {
                Some(hosts) => (Granted, hosts, None),
                None => (Refused, "no server".to_owned(), Some(r#"http = ["https://HOST"]"#)),
            },
            ("wasi:filesystem", _) => or_stand_in(list(&grants.read), "no folder", r#"read = ["FOLDER:/GUEST-PATH"]"#),
            ("wasi:cli", "environment") => or_stand_in(list(&grants.env), "empty", r#"env = ["NAME"]"#),
            ("wasi:clocks", _) => {
                let real = (grants.clock == ClockGrant::Real).then(|| "the machine's time".to_owned());
                or_stand_in(real, "starts at 2024-01-01, a sleep moves it at once", r#"clock = "real""#)
            }
            ("wasi:random", _) => {
                let os = (grants.random == RandomGrant::Os).then(|| "the system's".to_owned());
                or_stand_in(os, "follows from the run's seed and the sample", r#"random = "os""#)
            }
            ("wasi:cli", "stdin") => (StandIn, "empty".to_owned(), None),
            ("wasi:cli", "exit") => (Given, "ends the call as a fault".to_owned(), None),
            ("wasi:cli" | "wasi:io", _) => (Given, "output for the host's messages".to_owned(), None),
            ("wasi:sockets", _) => (StandIn, "every use is refused".to_owned(), None),
            _ => (Refused, "nothing grants it".to_owned(), None),
        };
        Self { name: name.to_owned(), status, what, grant }
    }
}

/// A list of grants in one line.
fn list(grants: &[String]) -> Option<String> {
    (!grants.is_empty()).then(|| grants.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_granted_is_refused_or_stood_in_for() {
        let none = Grants::default();
        let all = Grants {
            read: vec!["data:/data".into()],
            http: vec!["judge.example".into()],
            chat: vec!["judge".into()],
            reward_model: vec!["quality".into()],
            exec: vec!["python".into()],
            env: vec!["KEY".into()],
            clock: ClockGrant::Real,
            random: RandomGrant::Os,
        };
        let status = |name: &str| [&none, &all].map(|grants| Import::new(name, grants).status);
        use GrantStatus::{Given, Granted, Refused, StandIn};
        assert_eq!(status("gavel:plugin/samples@0.1.0"), [Given; 2]);
        assert_eq!(status("gavel:plugin/chat@0.1.0"), [Refused, Granted]);
        assert_eq!(status("gavel:plugin/reward-model@0.1.0"), [Refused, Granted]);
        assert_eq!(status("gavel:plugin/exec@0.1.0"), [Refused, Granted]);
        assert_eq!(status("wasi:http/outgoing-handler@0.2.12"), [Refused, Granted]);
        assert_eq!(status("wasi:http/incoming-handler@0.2.12"), [Refused; 2]);
        assert_eq!(status("wasi:filesystem/preopens@0.2.12"), [StandIn, Granted]);
        assert_eq!(status("wasi:cli/environment@0.2.12"), [StandIn, Granted]);
        assert_eq!(status("wasi:clocks/wall-clock@0.2.12"), [StandIn, Granted]);
        assert_eq!(status("wasi:random/insecure@0.2.12"), [StandIn, Granted]);
        assert_eq!(status("wasi:sockets/tcp@0.2.12"), [StandIn; 2]);
        assert_eq!(status("wasi:keyvalue/store@0.2.0"), [Refused; 2]);
    }
}

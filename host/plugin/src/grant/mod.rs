//! What a plugin may reach beyond its sample: nothing, unless the run's
//! configuration grants it.
//!
//! [`Grants`] is what the configuration says. At load it becomes `Granted`:
//! checked, its folders open, its variables read. Each call gets a share of
//! that, from which the host's side of the WASI interfaces answers. Memory and
//! processor time that the host spends on a guest's behalf are the guest's:
//! whatever grows with what a guest asks is charged to its
//! [`CallMeter`](crate::CallMeter).

mod chat;
mod clock;
mod environment;
mod error;
mod exec;
mod folder;
mod http;
mod import;
mod poll;
mod random;
mod tell;

pub use chat::ChatReply;
pub use error::GrantError;
pub use http::HttpResponder;
pub(crate) use http::Refusals;
pub use import::{Import, GrantStatus};

use crate::call_meter::CallMeter;
use crate::sandbox::Shared;
use crate::state::{State, Traces};
use chat::{ChatAccess, ChatCalls};
use clock::{Clock, VirtualTime};
use environment::Environment;
use exec::{ExecAccess, ExecCalls};
use folder::{Folder, ReadRule};
use http::{HttpAccess, HttpCalls};
use random::Seeded;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_http::WasiHttpCtx;

/// The grants of one plugin, as its `[[reward]]` table writes them. The
/// default grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Folders that it may read, each as `FOLDER:/GUEST-PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Servers that it may ask, each as `[SCHEME://]HOST[:PORT]`: `https` and
    /// the scheme's own port where nothing else is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<String>,
    /// Names of the language models that it may ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chat: Vec<String>,
    /// Names of the programs that it may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exec: Vec<String>,
    /// Names of environment variables that it sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Which time it sees.
    pub clock: ClockGrant,
    /// Which random numbers it sees.
    pub random: RandomGrant,
}

/// The time that a plugin sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockGrant {
    /// It starts at 2024-01-01T00:00:00Z in each call, and a sleep moves it at
    /// once.
    #[default]
    Virtual,
    /// The machine's time.
    Real,
}

/// The random numbers that a plugin sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RandomGrant {
    /// They follow from the run's seed and the sample.
    #[default]
    Seeded,
    /// The system's.
    Os,
}

impl Grants {
    /// Checks how the grants are written, without touching what they name.
    pub fn check(&self) -> Result<(), GrantError> {
        ReadRule::parse_all(&self.read)?;
        http::parse_all(&self.http)?;
        chat::check_names(&self.chat)?;
        environment::check_names(&self.env)
    }
}

/// The grants of a loaded plugin, open and ready.
pub(crate) struct Granted {
    folders: Vec<Folder>,
    http: Arc<HttpAccess>,
    chat: Arc<ChatAccess>,
    exec: Option<Arc<ExecAccess>>,
    env: Environment,
    clock: ClockGrant,
    random: RandomGrant,
}

impl Granted {
    /// Opens the folders, reads the variables and, where a server is granted
    /// over TLS, the machine's root certificates.
    pub(crate) fn open(grants: &Grants, shared: &Arc<Shared>) -> Result<Arc<Self>, GrantError> {
        let outside = &shared.outside;
        Ok(Arc::new(Self {
            folders: ReadRule::parse_all(&grants.read)?.into_iter().map(Folder::open).collect::<Result<_, _>>()?,
            http: Arc::new(HttpAccess::open(http::parse_all(&grants.http)?, outside.http())?),
            chat: Arc::new(ChatAccess::open(&grants.chat, &outside.chat)?),
            exec: ExecAccess::open(&grants.exec, shared)?.map(Arc::new),
            env: Environment::read(&grants.env)?,
            clock: grants.clock,
            random: grants.random,
        }))
    }

    /// What a program has that a plugin runs.
    pub(crate) fn nothing() -> Result<Arc<Self>, GrantError> {
        Ok(Arc::new(Self {
            folders: Vec::new(),
            http: Arc::new(HttpAccess::open(Vec::new(), None)?),
            chat: Arc::default(),
            exec: None,
            env: Environment::read(&[])?,
            clock: ClockGrant::default(),
            random: RandomGrant::default(),
        }))
    }

    /// One call's share. `seed` is what the call sees as random.
    pub(crate) fn call(
        self: &Arc<Self>,
        wasi: &mut WasiCtxBuilder,
        seed: u64,
        traces: &Traces,
        meter: &CallMeter,
    ) -> CallGrants {
        wasi.allow_tcp(false).allow_udp(false);
        self.env.show(wasi);
        if self.random == RandomGrant::Seeded {
            wasi.secure_random(Seeded::new(seed, "secure"))
                .insecure_random(Seeded::new(seed, "insecure"))
                .insecure_random_seed(random::insecure_seed(seed));
        }
        let clock = match self.clock {
            ClockGrant::Virtual => {
                let time = VirtualTime::default();
                wasi.wall_clock(time.clone());
                Clock::starting_at_zero(time)
            }
            ClockGrant::Real => Clock::real(),
        };
        CallGrants {
            granted: self.clone(),
            clock,
            http: HttpCalls::new(self.http.clone(), traces.refusals.clone(), traces.tape.clone(), meter.clone()),
            http_ctx: http::context(),
            chat: ChatCalls::new(self.chat.clone(), traces.tape.clone(), meter.clone()),
            exec: ExecCalls::new(self.exec.clone(), meter.clone(), seed),
        }
    }
}

/// What one call holds of its plugin's grants.
pub(crate) struct CallGrants {
    granted: Arc<Granted>,
    clock: Clock,
    http: HttpCalls,
    http_ctx: WasiHttpCtx,
    chat: ChatCalls,
    exec: ExecCalls,
}

impl CallGrants {
    pub(crate) fn begin_init(&mut self) {
        self.chat.close();
        self.exec.close();
    }
}

/// Puts the interfaces that grants decide about into a linker that has those
/// of WASI.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    clock::link(linker)?;
    poll::link(linker)?;
    folder::link(linker)?;
    linker.allow_shadowing(false);
    http::link(linker)
}

//! The grants of a loaded plugin, and each call's share of them.

use super::call_outside::CallOutside;
use super::chat::{AskedModel, ChatAccess, ChatCalls};
use super::clock::{Clock, MonotonicClock, VirtualTime};
use super::environment::Environment;
use super::error::GrantError;
use super::exec::{ExecAccess, ExecCalls};
use super::folder::{Folder, Preopens, ReadRule};
use super::grants::{ClockGrant, Grants, RandomGrant};
use super::http::{self, HttpAccess, HttpCalls, HttpLimit, Refusals, ServerPool};
use super::poll::Poll;
use super::random::{self, Seeded};
use crate::outside::{CallMeter, Outside};
use crate::tape::CallTape;
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

/// The grants of a loaded plugin, open and ready.
pub(crate) struct Granted {
    folders: Vec<Folder>,
    http: Arc<HttpAccess>,
    chat: Arc<ChatAccess>,
    reward_model: Arc<ChatAccess>,
    exec: Arc<ExecAccess>,
    pub(super) env: Arc<Environment>,
    clock: ClockGrant,
    random: RandomGrant,
}

impl Granted {
    /// Opens the folders, reads the variables and, where a server is granted
    /// over TLS, the machine's root certificates.
    pub(crate) fn open(grants: &Grants, outside: &Outside) -> Result<Arc<Self>, GrantError> {
        let http_limit = grants.limit.as_deref().map(|name| HttpLimit::find(name, outside)).transpose()?;
        let pool = grants.servers.as_ref().map(|table| ServerPool::open(table, outside)).transpose()?;
        let http = HttpAccess::open(http::parse_all(&grants.http)?, outside.http.get().cloned())?;
        let env = Arc::new(Environment::read(&grants.env)?);
        let http = http.with_variables(env.values().collect());
        Ok(Arc::new(Self {
            folders: ReadRule::parse_all(&grants.read)?.into_iter().map(Folder::open).collect::<Result<_, _>>()?,
            http: Arc::new(http.paced(http_limit, pool)),
            chat: Arc::new(ChatAccess::open(AskedModel::Chat, &grants.chat, &outside.chat)?),
            reward_model: Arc::new(ChatAccess::open(
                AskedModel::RewardModel,
                &grants.reward_model,
                &outside.reward_models,
            )?),
            exec: Arc::new(ExecAccess::open(&grants.exec, &outside.programs)?),
            env,
            clock: grants.clock,
            random: grants.random,
        }))
    }

    /// The grants of a program that a plugin runs.
    pub(crate) fn nothing() -> Result<Arc<Self>, GrantError> {
        Ok(Arc::new(Self {
            folders: Vec::new(),
            http: Arc::new(HttpAccess::open(Vec::new(), None)?),
            chat: Arc::default(),
            reward_model: Arc::default(),
            exec: Arc::default(),
            env: Arc::new(Environment::read(&[])?),
            clock: ClockGrant::default(),
            random: RandomGrant::default(),
        }))
    }

    /// One call's share. `seed` is the seed of its random numbers; requests that
    /// the grants do not cover go to `refusals`.
    pub(crate) fn call(
        self: &Arc<Self>,
        wasi: &mut WasiCtxBuilder,
        seed: u64,
        refusals: &Refusals,
        tape: &CallTape,
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
        let outside = CallOutside { tape: tape.clone(), meter: meter.clone(), env: self.env.clone() };
        CallGrants {
            granted: self.clone(),
            clock,
            http: HttpCalls::new(self.http.clone(), refusals.clone(), outside.clone()),
            http_ctx: http::context(),
            chat: ChatCalls::new(self.chat.clone(), outside.clone()),
            reward_model: ChatCalls::new(self.reward_model.clone(), outside.clone()),
            exec: ExecCalls::new(self.exec.clone(), outside, seed),
        }
    }
}

/// One call's share of its plugin's grants.
pub(crate) struct CallGrants {
    granted: Arc<Granted>,
    clock: Clock,
    http: HttpCalls,
    http_ctx: WasiHttpCtx,
    pub(crate) chat: ChatCalls,
    pub(crate) reward_model: ChatCalls,
    pub(crate) exec: ExecCalls,
}

impl CallGrants {
    pub(crate) fn begin_init(&mut self) {
        self.chat.close();
        self.reward_model.close();
        self.exec.close();
    }

    /// The host's side of `wasi:clocks/monotonic-clock`.
    pub(crate) fn monotonic_clock<'a>(&'a mut self, table: &'a mut ResourceTable) -> MonotonicClock<'a> {
        MonotonicClock { clock: &mut self.clock, table }
    }

    /// The host's side of `wasi:io/poll`.
    pub(crate) fn poll<'a>(&'a mut self, table: &'a mut ResourceTable) -> Poll<'a> {
        Poll { clock: &mut self.clock, table }
    }

    /// The host's side of `wasi:filesystem/preopens`.
    pub(crate) fn preopens<'a>(&'a self, table: &'a mut ResourceTable) -> Preopens<'a> {
        Preopens { folders: &self.granted.folders, table }
    }

    /// The host's side of `wasi:http`.
    pub(crate) fn http<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.http, table, ctx: &mut self.http_ctx }
    }
}

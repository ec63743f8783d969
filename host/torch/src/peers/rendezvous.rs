//! Which rank a process is, and where the ranks meet: the variables of torchrun, Kubernetes and Slurm.

use super::error::{PeersError, Result};
use std::time::Duration;

/// Which rank a process is, and where the ranks meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// The number of this process among all, from 0.
    pub rank: usize,
    /// How many processes there are.
    pub size: usize,
    /// The number of this process among the processes of its machine, from 0. Its device has the same number.
    pub local_rank: usize,
    /// The address of the store, where rank 0 runs.
    pub address: String,
    /// The port of the store.
    pub port: u16,
    /// Whether rank 0 serves the store. If not, the program that started the ranks does, as torchrun.
    pub is_served_by_rank_0: bool,
    /// Which attempt of the program that started the ranks this is: a store that outlives an attempt keeps its keys.
    pub attempt: u64,
    /// How long the ranks wait for each other at the start; 5 minutes by default.
    pub start_within: Duration,
}

/// How long the ranks wait for each other at the start, as in torch.distributed.
const START_WITHIN: Duration = Duration::from_secs(300);

const HINT: &str = "start the ranks with `torchrun --no-python --nproc-per-node N gavel …`, or set RANK, WORLD_SIZE, \
                    MASTER_ADDR and MASTER_PORT for each; unset them all for a run of one process";
const SLURM_HINT: &str = "set MASTER_ADDR to the machine of the first task and MASTER_PORT to a free port before `srun`; \
                          for a run of one process, use `srun --ntasks 1`";

impl Rendezvous {
    /// What the environment says; `None` for a run of one process, which is where no variable is set.
    ///
    /// RANK, WORLD_SIZE, LOCAL_RANK (0 if it is not set), MASTER_ADDR and MASTER_PORT count first, as torchrun and
    /// Kubernetes set them. Without RANK and WORLD_SIZE, SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID do.
    ///
    /// # Errors
    /// Some of the variables are set and others are not, or one cannot be read.
    pub fn from_environment() -> Result<Option<Self>> {
        Self::read(&variable)
    }

    /// How many of the processes are on this machine and share its cores, as torchrun and Slurm say it; 1 if nothing does.
    pub fn local_size() -> usize {
        local_size(&variable)
    }

    fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"];
        let is_slurm = get("RANK").is_none() && get("WORLD_SIZE").is_none() && get("SLURM_PROCID").is_some();
        let (from, hint) = if is_slurm {
            (["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"], SLURM_HINT)
        } else if names.iter().all(|name| get(name).is_none()) {
            return Ok(None);
        } else {
            (["RANK", "WORLD_SIZE", "LOCAL_RANK"], HINT)
        };
        let variables = Variables { get, hint };
        let [rank, size] = [variables.number(from[0])?, variables.number(from[1])?];
        let local_rank = match get(from[2]) {
            Some(_) => variables.number(from[2])?,
            None => 0,
        };
        if rank >= size {
            return Err(variables.wrong(from[0], format!("is {rank}, but {} is {size}", from[1])));
        }
        if is_slurm && size == 1 {
            return Ok(None);
        }
        let port = variables.text("MASTER_PORT")?;
        let is_agents = get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value == "True");
        Ok(Some(Self {
            rank,
            size,
            local_rank,
            address: variables.text("MASTER_ADDR")?,
            port: match port.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err(variables.wrong("MASTER_PORT", format!("is {port:?}, not a port from 1 to 65535"))),
            },
            is_served_by_rank_0: !is_agents,
            attempt: match get("TORCHELASTIC_RESTART_COUNT") {
                Some(_) => variables.number("TORCHELASTIC_RESTART_COUNT")? as u64,
                None => 0,
            },
            start_within: START_WITHIN,
        }))
    }

    /// `host:port` of the store.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Whether all ranks run on this machine and need no other network.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.address.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn local_size(get: &dyn Fn(&str) -> Option<String>) -> usize {
    let name = match Rendezvous::read(get) {
        Ok(Some(_)) if get("RANK").is_some() => "LOCAL_WORLD_SIZE",
        Ok(Some(_)) => "SLURM_NTASKS_PER_NODE",
        Ok(None) | Err(_) => return 1,
    };
    get(name).and_then(|size| size.parse().ok()).filter(|size| *size > 0).unwrap_or(1)
}

/// The variables of the environment, and what to do if one is missing.
struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    hint: &'static str,
}

impl Variables<'_> {
    fn wrong(&self, name: &'static str, what: String) -> PeersError {
        PeersError::Variable { name, what, hint: self.hint }
    }

    fn text(&self, name: &'static str) -> Result<String> {
        (self.get)(name).ok_or_else(|| self.wrong(name, "is not set, but others that start several ranks are".into()))
    }

    fn number(&self, name: &'static str) -> Result<usize> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.wrong(name, format!("is {text:?}, not a number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Rendezvous>> {
        Rendezvous::read(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn error(variables: &[(&str, &str)]) -> String {
        read(variables).unwrap_err().to_string()
    }

    const MASTER: [(&str, &str); 2] = [("MASTER_ADDR", "node-1"), ("MASTER_PORT", "29500")];

    #[test]
    fn without_variables_a_process_is_alone() {
        assert_eq!(read(&[]).unwrap(), None);
        // A shell of salloc has no rank, and a run of one task needs no store.
        assert_eq!(read(&[("SLURM_NTASKS", "4")]).unwrap(), None);
        assert_eq!(read(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]).unwrap(), None);
    }

    #[test]
    fn the_variables_of_torchrun_kubernetes_and_slurm_say_the_same() {
        let expected = Rendezvous {
            rank: 3,
            size: 4,
            local_rank: 1,
            address: "node-1".into(),
            port: 29500,
            is_served_by_rank_0: true,
            attempt: 0,
            start_within: START_WITHIN,
        };
        let plain = [("RANK", "3"), ("WORLD_SIZE", "4"), MASTER[0], MASTER[1]];
        let local = [&plain[..], &[("LOCAL_RANK", "1"), ("SLURM_PROCID", "9"), ("SLURM_NTASKS", "9")]].concat();
        assert_eq!(read(&local).unwrap(), Some(expected.clone()));
        // A pod has one process, and Kubernetes does not number it.
        assert_eq!(read(&plain).unwrap(), Some(Rendezvous { local_rank: 0, ..expected.clone() }));
        let torchrun = [&local[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True"), ("TORCHELASTIC_RESTART_COUNT", "2")]];
        let found = read(&torchrun.concat()).unwrap();
        assert_eq!(found, Some(Rendezvous { is_served_by_rank_0: false, attempt: 2, ..expected.clone() }));
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4"), ("SLURM_LOCALID", "1"), MASTER[0], MASTER[1]];
        assert_eq!(read(&slurm).unwrap(), Some(expected));
    }

    #[test]
    fn a_variable_that_is_missing_or_wrong_is_named() {
        let rest = [("WORLD_SIZE", "2"), MASTER[0], MASTER[1]];
        let with = |rank: &'static str| [&rest[..], &[("RANK", rank)]].concat();
        assert!(
            error(&rest).starts_with("the variable RANK is not set, but others that start several ranks are\nhint: ")
        );
        assert!(error(&MASTER[..1]).starts_with("the variable RANK is not set"));
        assert!(error(&with("1")[1..]).starts_with("the variable WORLD_SIZE is not set"));
        assert!(error(&with("one")).starts_with("the variable RANK is \"one\", not a number\nhint: start the ranks"));
        assert!(error(&with("2")).starts_with("the variable RANK is 2, but WORLD_SIZE is 2"));
        let port = [("RANK", "1"), ("WORLD_SIZE", "2"), MASTER[0], ("MASTER_PORT", "0")];
        assert!(error(&port).starts_with("the variable MASTER_PORT is \"0\", not a port from 1 to 65535"));
        assert!(error(&port[..3]).starts_with("the variable MASTER_PORT is not set"));
        let slurm = error(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("MASTER_PORT", "1")]);
        assert!(
            slurm.starts_with("the variable MASTER_ADDR is not set") && slurm.contains("srun --ntasks 1"),
            "{slurm}"
        );
        assert!(error(&[("SLURM_PROCID", "0")]).starts_with("the variable SLURM_NTASKS is not set"));
    }

    #[test]
    fn processes_of_one_machine_share_its_cores() {
        let size = |variables: &[(&str, &str)]| {
            local_size(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let plain = [("RANK", "1"), ("WORLD_SIZE", "4"), MASTER[0], MASTER[1]];
        assert_eq!(size(&plain), 1);
        assert_eq!(size(&[&plain[..], &[("LOCAL_WORLD_SIZE", "2")]].concat()), 2);
        // Nobody started this process as one of several.
        assert_eq!(size(&[("LOCAL_WORLD_SIZE", "2")]), 1);
        let slurm =
            [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4"), ("SLURM_NTASKS_PER_NODE", "4"), MASTER[0], MASTER[1]];
        assert_eq!(size(&slurm), 4);
    }
}

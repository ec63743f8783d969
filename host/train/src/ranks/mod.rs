//! What the ranks of a run tell each other about an update.

mod message;

pub(crate) use message::Message;

use crate::error::{Result, TrainError};
use gavel_torch::peers::Peers;

/// The own value, and what each rank, in their order, tells about its value. A rank that failed tells so: then it has
/// its own error, and the others have one that names it.
pub(crate) fn gather_results<T, M: Message>(
    peers: &Peers,
    own: Result<T>,
    tell: impl FnOnce(&T) -> M,
) -> Result<(T, Vec<M>)> {
    if peers.size() == 1 {
        let own = own?;
        let told = tell(&own);
        return Ok((own, vec![told]));
    }
    let message = own.as_ref().map(tell).map_err(ToString::to_string);
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    let all = peers.gather(&bytes);
    // The own error, rather than the error of another rank.
    let (own, all) = (own?, all?);
    let read = |(rank, bytes): (usize, Vec<u8>)| match Message::read(&mut bytes.as_slice()) {
        Some(Ok(told)) => Ok(told),
        Some(Err(what)) => Err(TrainError::Rank { process: peers.process(rank), what }),
        None => Err(TrainError::Rank { process: peers.process(rank), what: "it sent what cannot be read".into() }),
    };
    Ok((own, all.into_iter().enumerate().map(read).collect::<Result<_>>()?))
}

/// The parts of all ranks as one list, and where in it the own part is.
pub(crate) fn joined<T>(peers: &Peers, parts: Vec<Vec<T>>) -> (Vec<T>, std::ops::Range<usize>) {
    let start: usize = parts[..peers.rank()].iter().map(Vec::len).sum();
    let end = start + parts[peers.rank()].len();
    (parts.into_iter().flatten().collect(), start..end)
}

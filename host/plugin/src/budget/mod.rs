//! What a call, an episode and a load may use, and what they have used.

mod address_space;
mod child_limits;
mod first_slice;
mod lanes;
mod limits;
mod limits_table;
pub(crate) mod machine_limits;
mod memory;
mod pauses;
mod requests;
mod reservation;
mod time;

pub(crate) use address_space::{AddressSpace, TooSmall};
pub(crate) use child_limits::ChildLimits;
pub(crate) use first_slice::History;
pub(crate) use lanes::{LaneEnd, Lanes, Turn};
pub use limits::Limits;
pub(crate) use limits::{HOST_STACK, SLOT_TABLES, STACK, TABLE_ELEMENTS};
pub use limits_table::{LimitsTable, ZeroLimit};
pub use memory::NoMemory;
pub(crate) use memory::{MemoryBudget, MemoryUse, RefusedMemory};
pub(crate) use pauses::{Counted, Pauses};
pub(crate) use requests::{RequestBudget, TooManyRequests};
pub(crate) use reservation::{MemoryReservation, pages};
pub(crate) use time::{TimeUse, thread_time};

//! The ids of connections, spawns and watched processes, and random UUIDs.

use protocol::control_socket::Process;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use tmux::PaneTag;
use uuid::Uuid;

/// A connection to the control socket, numbered in the order of arrival.
pub(crate) type ConnId = u64;

/// A watched process. Its exit is reported with this id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WatchId {
    /// The shim of a spawn.
    Shim(SpawnId),
    /// The first process of the terminal in which the lead session of a team runs.
    Lead { team: TeamName, process: Process },
}

thread_local! {
    /// The number of the next UUID of this thread. `None` in the daemon: its UUIDs are random.
    static UUID_COUNTER: Cell<Option<u64>> = const { Cell::new(if cfg!(test) { Some(0) } else { None }) };
}

/// Returns a new UUID. The daemon's UUIDs are random. In a test, and after [`set_uuid_counter`], a
/// UUID is computed from a counter, so that each run of a test or a replay gets the same UUIDs.
pub(crate) fn new_uuid() -> Uuid {
    let Some(number) = UUID_COUNTER.get() else { return Uuid::new_v4() };
    UUID_COUNTER.set(Some(number + 1));
    // The UUIDs do not ascend with the counter, so that no code can rely on their order.
    let (high, low) = (mix_bits(number), mix_bits(!number));
    Uuid::from_u64_pair(high, low)
}

/// Sets the counter of this thread. Only the simulator calls it, before each simulation.
pub(crate) fn set_uuid_counter(number: u64) {
    UUID_COUNTER.set(Some(number));
}

/// The last step of the splitmix64 generator.
fn mix_bits(number: u64) -> u64 {
    let number =
        (number.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The id of one spawn (one start of a member). It is in the command line of the shim, in the
/// option `@teamd_spawn` of the tmux pane, and in the roster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SpawnId(String);

impl SpawnId {
    /// A new id.
    pub(crate) fn generate() -> SpawnId {
        SpawnId(new_uuid().to_string())
    }

    /// The id that a peer claims. The roster decides whether it is known.
    pub(crate) fn from_peer(text: &str) -> SpawnId {
        SpawnId(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the pane option that marks the agent's pane.
    pub(crate) fn pane_tag(&self) -> PaneTag {
        self.0.parse().expect("a uuid is made of hex digits and dashes")
    }
}

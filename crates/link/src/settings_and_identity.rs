//! What is constant about one end of a link.

/// Times and limits of a link. Only one limit is not a setting, because both ends must use the same
/// number: how many items may be sent before the first is acknowledged. It is the constant
/// [`protocol::annex_link::WINDOW_ITEMS`].
#[derive(Debug, Clone, Copy)]
pub struct LinkSettings {
    /// Time without a sent frame after which an end sends a keep-alive, in milliseconds.
    pub keep_alive_ms: u64,
    /// If this end receives no frame for this time, in milliseconds, it gives up the connection.
    /// The time must be longer than the other end's `keep_alive_ms`.
    pub silence_ms: u64,
    /// Time for the connect command and the hello of the other end, in milliseconds.
    pub hello_ms: u64,
    /// The first pause before a new connection in milliseconds. Each failure doubles it.
    pub first_pause_ms: u64,
    /// The longest pause, which also follows a refusal, in milliseconds.
    pub longest_pause_ms: u64,
    /// Pause after a failed write, in milliseconds.
    pub write_pause_ms: u64,
    /// The application may submit while fewer items than this wait for their acknowledgement.
    pub queue_items: usize,
    /// The application may submit while fewer bytes than this wait for their acknowledgement.
    pub queue_bytes: usize,
    /// Acknowledged items stay in the spool until they use at least this many bytes, and at least
    /// as many bytes as the other items. Then the spool is rewritten without them.
    pub spool_slack_bytes: usize,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            keep_alive_ms: 15_000,
            silence_ms: 45_000,
            hello_ms: 30_000,
            first_pause_ms: 1_000,
            longest_pause_ms: 60_000,
            write_pause_ms: 1_000,
            queue_items: 16_384,
            queue_bytes: 16 << 20,
            spool_slack_bytes: 64 << 10,
        }
    }
}

/// Which end of the link this is. The home makes the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// The host whose files are true for the team.
    Home {
        /// The epoch of the link. The daemon always uses 1, because each team has its own epoch.
        epoch: u64,
    },
    /// Another host that runs members.
    Annex,
}

/// Who this end is.
#[derive(Debug, Clone)]
pub struct LinkIdentity {
    /// Which end this is.
    pub role: LinkRole,
    /// The release of this program.
    pub program_version: String,
    /// Identity of the team root.
    pub root: String,
    /// Identity of the annex. An annex creates it together with its spool.
    pub annex: String,
}

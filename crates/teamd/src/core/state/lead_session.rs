//! The state of a session that leads a team.

use crate::core::roster::agent_record::HookState;
use crate::core::state::long_poll::LongPollState;
use protocol::control_socket::LeadProcess;

/// A session that leads a team.
#[derive(Debug)]
pub(crate) struct LeadSession {
    pub(crate) lead: LeadProcess,
    /// When the lead's turn started, in milliseconds since the epoch.
    pub(crate) turn_since: u64,
    pub(crate) long_poll: LongPollState,
    /// What the hooks of the session have reported. Empty after a restart of the daemon.
    pub(crate) hook_state: HookState,
}

impl LeadSession {
    pub(crate) fn new(lead: LeadProcess) -> LeadSession {
        LeadSession {
            lead,
            turn_since: 0,
            long_poll: LongPollState::default(),
            hook_state: HookState::default(),
        }
    }
}

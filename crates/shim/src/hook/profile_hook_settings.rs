//! How a program with hooks expects answers, and how long its turn-end hook may wait.

use crate::stderr_messages;
use profile::{HookDelivery, ProfileRegistry};
use std::time::Duration;
use store::env_var;

/// The longest wait of a turn-end hook if the profile says nothing. Programs give their hooks more
/// time than this.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(550);

/// How the program that called the hook expects answers.
#[derive(Debug, PartialEq)]
pub(super) struct HookProtocol {
    pub(super) delivery: HookDelivery,
    /// Whether the agent was spawned by a profile that delivers by hooks.
    pub(super) is_own_profile: bool,
}

impl HookProtocol {
    /// The protocol of the profile that the agent was spawned by, if that profile delivers by hooks.
    /// Else that of the profile `named`, which the user's settings pass to the hook.
    ///
    /// If neither can be read, the protocol is that of Claude Code, which most programs have adopted.
    pub(super) fn for_profile(named: Option<&str>) -> HookProtocol {
        let own = env_var("TEAMD_PROFILE").and_then(|name| read_delivery(&name));
        let is_own_profile = own.is_some();
        let delivery = own.or_else(|| read_delivery(named?)).unwrap_or_default();
        HookProtocol { delivery, is_own_profile }
    }

    /// The longest time that the turn-end hook may wait.
    pub(super) fn max_wait(&self) -> Duration {
        self.delivery.max_wait_ms.map_or(DEFAULT_MAX_WAIT, Duration::from_millis)
    }
}

/// `None` if the profile has another delivery or cannot be read. The second case prints a warning.
fn read_delivery(profile: &str) -> Option<HookDelivery> {
    let profile = ProfileRegistry::for_user()
        .profile(profile)
        .map_err(|error| stderr_messages::print_warning(&error.to_string()))
        .ok()?;
    profile.hook_delivery().cloned()
}

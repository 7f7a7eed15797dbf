//! The hook settings of the agent's profile: the format of the responses that the program expects
//! from its hooks, and how long its turn-end hook may wait.

use crate::stderr_messages;
use profile::{HookDelivery, ProfileRegistry};
use std::time::Duration;
use store::env_var;

/// The longest wait of a turn-end hook if the profile names none. Agent programs kill a hook that
/// runs too long, but only after a longer time than this.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(550);

/// How the program that called the hook expects answers.
#[derive(Debug, PartialEq)]
pub(super) struct ProfileHookSettings {
    pub(super) delivery: HookDelivery,
    /// Whether `delivery` is from the profile with which the agent was spawned.
    pub(super) is_own_profile: bool,
}

impl ProfileHookSettings {
    /// Chooses the profile whose settings the hook uses. The first choice is the profile with which
    /// the agent was spawned, if that profile delivers messages by hooks. The second choice is the
    /// profile `fallback_profile`, whose name is an argument of the hook's command line.
    ///
    /// If neither profile is usable, the hook's responses have Claude Code's format, which most
    /// programs have adopted.
    pub(super) fn for_profile(fallback_profile: Option<&str>) -> ProfileHookSettings {
        let own_delivery = env_var("TEAMD_PROFILE").and_then(|name| read_delivery(&name));
        let is_own_profile = own_delivery.is_some();
        let delivery = own_delivery.or_else(|| read_delivery(fallback_profile?)).unwrap_or_default();
        ProfileHookSettings { delivery, is_own_profile }
    }

    /// The longest time that the turn-end hook may wait.
    pub(super) fn max_wait(&self) -> Duration {
        self.delivery.max_wait_ms.map_or(DEFAULT_MAX_WAIT, Duration::from_millis)
    }
}

/// The hook settings of a profile. `None` if the profile does not deliver messages by hooks. Also
/// `None`, with a warning, if the profile cannot be read.
fn read_delivery(profile: &str) -> Option<HookDelivery> {
    let profile = ProfileRegistry::for_user()
        .profile(profile)
        .map_err(|error| stderr_messages::print_warning(&error.to_string()))
        .ok()?;
    profile.hook_delivery().cloned()
}

//! How a program takes what its hook says, and how long it lets it wait: as its profile has it.

use crate::output;
use profile::{ProfileRegistry, ReplySource, UsageFile};
use serde_json::{Value, json};
use std::time::Duration;
use store::env_var;

/// How long a hook waits unless its profile says otherwise: less than programs give their hooks.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(550);

/// See above.
#[derive(Debug, PartialEq)]
pub(super) struct HookProtocol {
    /// The answer's shape, `{text}` in it.
    pub(super) response_template: Value,
    /// How long it waits.
    pub(super) max_wait: Duration,
    /// Where a turn-end event has what the agent said at last; none: where most have it.
    pub(super) reply_source: Option<ReplySource>,
    /// Where it tells what the session has used up; none: nowhere.
    pub(super) usage_file: Option<UsageFile>,
    /// The key of a turn-end event that says whether the program went on with what was handed over; none: believe it.
    pub(super) continued_key: Option<String>,
    /// The profile that the agent was spawned by feeds it through its hooks.
    pub(super) is_own_profile: bool,
}

impl HookProtocol {
    /// That of the profile that the agent was spawned by, where that feeds through hooks; else of the named one, which
    /// the hooks of a user's program bear. A profile at fault is told, and most programs take the usual shape.
    pub(super) fn for_profile(named: Option<&str>) -> HookProtocol {
        let own = env_var("TEAMD_PROFILE").and_then(|name| HookProtocol::from_profile(&name));
        let feeds = own.is_some();
        let manner = own.or_else(|| HookProtocol::from_profile(named?)).unwrap_or_else(|| HookProtocol {
            response_template: json!({"decision": "block", "reason": "{text}"}),
            max_wait: DEFAULT_MAX_WAIT,
            reply_source: None,
            usage_file: None,
            continued_key: None,
            is_own_profile: feeds,
        });
        HookProtocol { is_own_profile: feeds, ..manner }
    }

    /// None where it feeds in another way, or can't be read.
    fn from_profile(name: &str) -> Option<HookProtocol> {
        let profile = ProfileRegistry::for_user()
            .profile(name)
            .map_err(|fault| output::print_warning(&fault.to_string()))
            .ok()?;
        let (answer, park) = profile.hook_delivery()?;
        Some(HookProtocol {
            response_template: Value::Object(answer.clone()),
            max_wait: park.map_or(DEFAULT_MAX_WAIT, Duration::from_millis),
            reply_source: profile.reply_source().cloned(),
            usage_file: profile.usage_file().cloned(),
            continued_key: profile.continued_key().map(str::to_owned),
            is_own_profile: true,
        })
    }
}

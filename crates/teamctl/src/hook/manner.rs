//! How a program takes what its hook says, and how long it lets it wait: as its profile has it.

use crate::here::variable;
use crate::output;
use crate::profile::{Receipt, Shelf, Words};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a hook waits unless its profile says otherwise: less than programs give their hooks.
const PATIENCE: Duration = Duration::from_secs(550);

/// See above.
#[derive(Debug, PartialEq)]
pub(super) struct Manner {
    /// The answer's shape, `{text}` in it.
    pub(super) answer: Value,
    /// How long it waits.
    pub(super) park: Duration,
    /// Where a turn-end event has what the agent said at last; none: where most have it.
    pub(super) said: Option<Words>,
    /// Where it tells what the session has used up; none: nowhere.
    pub(super) used: Option<Receipt>,
    /// The key of a turn-end event that says whether the program went on with what was handed over; none: believe it.
    pub(super) taken: Option<String>,
    /// The profile that the agent was spawned by feeds it through its hooks.
    pub(super) feeds: bool,
}

impl Manner {
    /// That of the profile that the agent was spawned by, where that feeds through hooks; else of the named one, which
    /// the hooks of a user's program bear. A profile at fault is told, and most programs take the usual shape.
    pub(super) fn of(named: Option<&str>) -> Manner {
        let own = variable("TEAMD_PROFILE").and_then(|name| Manner::in_profile(&name));
        let feeds = own.is_some();
        let manner = own.or_else(|| Manner::in_profile(named?)).unwrap_or_else(|| Manner {
            answer: json!({"decision": "block", "reason": "{text}"}),
            park: PATIENCE,
            said: None,
            used: None,
            taken: None,
            feeds,
        });
        Manner { feeds, ..manner }
    }

    /// None where it feeds in another way, or can't be read.
    fn in_profile(name: &str) -> Option<Manner> {
        let profile =
            Shelf::of_user().profile(name).map_err(|fault| output::complain(&fault.to_string())).ok()?;
        let (answer, park) = profile.hooks()?;
        Some(Manner {
            answer: Value::Object(answer.clone()),
            park: park.map_or(PATIENCE, Duration::from_millis),
            said: profile.last_words().cloned(),
            used: profile.receipt().cloned(),
            taken: profile.taken().map(str::to_owned),
            feeds: true,
        })
    }
}

//! How a program takes what its hook says, and how long it lets it wait: as its profile has it.

use crate::here::variable;
use crate::output;
use crate::profile::{Shelf, Words};
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
}

impl Manner {
    /// That of the named profile, else of the one that the agent was spawned by. A profile at fault is told, and most
    /// programs take the usual shape.
    pub(super) fn of(name: Option<&str>) -> Manner {
        let name = name.map(str::to_owned).or_else(|| variable("TEAMD_PROFILE"));
        let profile = name.map(|name| Shelf::of_user().profile(&name)).transpose().unwrap_or_else(|fault| {
            output::complain(&fault.to_string());
            None
        });
        let usual =
            Manner { answer: json!({"decision": "block", "reason": "{text}"}), park: PATIENCE, said: None };
        match profile.as_ref().and_then(|profile| profile.hooks()) {
            Some((answer, park)) => Manner {
                answer: Value::Object(answer.clone()),
                park: park.map_or(PATIENCE, Duration::from_millis),
                said: profile.as_ref().and_then(|profile| profile.last_words()).cloned(),
            },
            None => usual,
        }
    }
}

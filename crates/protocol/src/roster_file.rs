//! Who rests, as the daemon's roster tells it: for whoever looks at files alone, or while there is no daemon. It is told
//! as the daemon tells it in its status.

use crate::control::{PastMember, TeamStatus};
use crate::name::{AgentName, TeamName};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The part of the roster that tells it.
#[derive(Debug, Default, Deserialize)]
struct PastMembersFile {
    #[serde(default)]
    #[serde(rename = "past")]
    past_members: BTreeMap<TeamName, Vec<PastMember>>,
}

/// Each team in which somebody rests, with nobody else in it; of a roster that is missing or can't be read there is none.
pub fn suspended_teams(roster: Option<&[u8]>) -> Vec<TeamStatus> {
    let ended: PastMembersFile =
        roster.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let teams = ended.past_members.into_iter().map(|(name, past)| TeamStatus {
        name,
        members: Vec::new(),
        past_members: past.into_iter().filter(|past| past.is_suspended).collect(),
        worktrees: Vec::new(),
        budget: None,
    });
    teams.filter(|team| !team.past_members.is_empty()).collect()
}

/// Whether that one rests.
pub fn is_suspended(roster: Option<&[u8]>, team: &TeamName, name: &AgentName) -> bool {
    let of_team = suspended_teams(roster).into_iter().filter(|told| told.name == *team);
    of_team.flat_map(|told| told.past_members).any(|past| past.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_rests_is_told_and_nobody_else_who_has_ended() {
        let past = |name: &str, rests: bool| json!({"name": name, "state": "killed", "how": "", "at": 1, "rests": rests});
        let roster = json!({
            "version": 1,
            "past": {"survey": [past("ann", true), past("bob", false)], "other": [past("cy", false)]},
        });
        let roster = roster.to_string();
        let told = suspended_teams(Some(roster.as_bytes()));
        assert_eq!((told.len(), told[0].name.as_str()), (1, "survey"));
        assert_eq!(told[0].past_members.iter().map(|past| past.name.as_str()).collect::<Vec<_>>(), ["ann"]);
        let rests = |name: &str| {
            is_suspended(Some(roster.as_bytes()), &told[0].name, &AgentName::new_unchecked(name))
        };
        assert_eq!(["Ann", "bob", "cy"].map(rests), [true, false, false]);
        assert!(suspended_teams(None).is_empty() && suspended_teams(Some(b"{")).is_empty());
    }
}

//! `--format tmux`: formats the daemon's status as a short segment for tmux's status line. The only
//! text from users in the segment is team names, which contain no character that tmux would expand.

use protocol::control_socket::{Activity, MemberFlag, MemberStatus, PastMember, StatusReply, TeamStatus};
use protocol::team_and_member_names::TeamName;

/// The segment if no daemon answers.
pub(super) const DAEMON_DOWN: &str = "#[fg=red]teamd down#[default]";

/// Returns the segments of all teams, or of the team `selected_team`. `survey 2/5 !1 x1 z1` means:
/// the team `survey` has five members, two of them active and one waiting for a person. Of its past
/// members, one has failed and one is suspended.
pub(super) fn segment_line(status: &StatusReply, selected_team: Option<&TeamName>) -> String {
    let shown = status
        .teams
        .iter()
        .filter(|team| selected_team.is_none_or(|selected_team| team.name == *selected_team));
    shown.filter_map(team_segment).collect::<Vec<_>>().join("  ")
}

/// `None` if the team has no members and none of its past members has failed or is suspended.
fn team_segment(team: &TeamStatus) -> Option<String> {
    let failed = team.past_members.iter().filter(|past| has_failed(past)).count();
    let suspended = team.past_members.iter().filter(|past| past.is_suspended).count();
    if team.members.is_empty() && failed == 0 && suspended == 0 {
        return None;
    }
    let active = team.members.iter().filter(|agent| agent.activity == Activity::Active).count();
    let waiting = team.members.iter().filter(|agent| awaits_person(agent)).count();
    let mut text = format!("{} {active}/{}", team.name, team.members.len());
    for (count, style, sign) in
        [(waiting, "fg=yellow,bold", '!'), (failed, "fg=red,bold", 'x'), (suspended, "dim", 'z')]
    {
        if count > 0 {
            text += &format!(" #[{style}]{sign}{count}#[default]");
        }
    }
    Some(text)
}

fn awaits_person(agent: &MemberStatus) -> bool {
    let waiting = [
        MemberFlag::AwaitingPlanApproval,
        MemberFlag::AwaitingPermission,
        MemberFlag::AtDialog,
        MemberFlag::TurnsStopped,
    ];
    agent.flags.iter().any(|flag| waiting.contains(flag))
}

fn has_failed(past: &PastMember) -> bool {
    past.outcome == "failed" && !past.has_respawn()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn segment_text(members: &[Value], past_members: &Value) -> String {
        let status = json!({
            "daemon": {"pid": 1, "version": "1", "root": "/r", "tmux": null, "watch_mode": "events"},
            "teams": [{"name": "survey", "members": members, "past_members": past_members}, {"name": "other", "members": []}],
        });
        segment_line(&serde_json::from_value(status).unwrap(), None)
    }

    fn agent(activity: &str, flags: &Value) -> Value {
        json!({"name": "ann", "agent_id": "ann@survey", "lifecycle": "running", "activity": activity, "activity_since": 1,
            "flags": flags, "backend": "tmux", "color": "blue", "task": null, "pane": "%1", "pid": 7})
    }

    #[test]
    fn segment_counts_members_by_state() {
        let empty = json!([]);
        assert_eq!(segment_text(&[], &empty), "");
        assert_eq!(segment_text(&[agent("active", &empty), agent("idle", &empty)], &empty), "survey 1/2");
        let blocked_agent = agent("active", &json!(["awaiting_permission"]));
        let past = |state: &str, is_suspended: bool| json!({"name": "bob", "outcome": state, "description": "", "ended_at": 1, "is_suspended": is_suspended});
        let segment = segment_text(
            &[blocked_agent],
            &json!([past("failed", false), past("killed", true), past("completed", false)]),
        );
        let expected =
            "survey 1/1 #[fg=yellow,bold]!1#[default] #[fg=red,bold]x1#[default] #[dim]z1#[default]";
        assert_eq!(segment, expected);
    }
}

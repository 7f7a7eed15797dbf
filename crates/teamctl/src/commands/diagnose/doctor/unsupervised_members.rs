//! Checks that the daemon supervises an agent for each teammate in a team's config. A teammate
//! without an agent is only a warning, because another program may supervise the teammate.

use super::report::DoctorReport;
use protocol::control_socket::StatusReply;
use protocol::team_and_member_names::{MemberName, TeamName};
use store::Root;

/// Checks all teams. Without the daemon's status nothing is known, and nothing is reported.
pub(super) fn check(root: &Root, status: Option<&StatusReply>, report: &mut DoctorReport) {
    let Some(status) = status else { return };
    let teams = root.teams().unwrap_or_default();
    let own_teams = teams.iter().filter(|team| !team.is_claude_session());
    let unsupervised: Vec<String> =
        own_teams.flat_map(|team| members_without_agent(root, team, status)).collect();
    if unsupervised.is_empty() {
        return report.ok("members", "every teammate in a pane has a living agent");
    }
    report.warn(
        "members",
        format!("entries without an agent of ours: {}", unsupervised.join(", ")),
        "the program that started such a member ends it; if teamd started it: teamctl down, then teamctl up",
    );
}

fn members_without_agent(root: &Root, name: &TeamName, status: &StatusReply) -> Vec<String> {
    let Ok(open_team) = root.team(name) else { return Vec::new() };
    let Ok(config) = open_team.config() else { return Vec::new() };
    let team = status.teams.iter().find(|team| team.name == *name);
    let has_agent =
        |member: &MemberName| team.is_some_and(|team| team.members.iter().any(|agent| agent.name == *member));
    let members = config.members.into_iter();
    let missing =
        members.filter(|member| !member.name.is_lead() && member.host.is_none() && !has_agent(&member.name));
    missing.map(|member| format!("{}@{name}", member.name)).collect()
}

//! Members that nobody lives for: an entry in a config with a pane, and no agent of ours in it. It may be
//! another program's, so this is news and no more; without a daemon nobody can say.

use super::report::DoctorReport;
use protocol::control::StatusReply;
use protocol::name::{AgentName, TeamName};
use store::Root;

pub(super) fn check(root: &Root, status: Option<&StatusReply>, report: &mut DoctorReport) {
    let Some(status) = status else { return };
    let names = root.teams().unwrap_or_default();
    let ours = names.iter().filter(|team| !team.is_claude_session());
    let absent: Vec<String> = ours.flat_map(|team| members_without_agent(root, team, status)).collect();
    if absent.is_empty() {
        return report.ok("members", "every teammate in a pane has a living agent");
    }
    let message = format!("entries without an agent of ours: {}", absent.join(", "));
    report.warn(
        "members",
        message,
        "other programs' agents are theirs to end; else restart teamd, which repairs its own",
    );
}

fn members_without_agent(root: &Root, name: &TeamName, status: &StatusReply) -> Vec<String> {
    let Ok(config) = root.team(name).and_then(|team| team.config()) else { return Vec::new() };
    let living = status.teams.iter().find(|team| team.name == *name);
    let lives = |member: &AgentName| {
        living.is_some_and(|team| team.members.iter().any(|agent| agent.name == *member))
    };
    let members = config.members.into_iter();
    let absent = members.filter(|member| !member.name.is_lead() && !lives(&member.name));
    absent.map(|member| format!("{}@{name}", member.name)).collect()
}

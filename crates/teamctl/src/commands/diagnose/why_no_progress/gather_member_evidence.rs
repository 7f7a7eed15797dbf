//! Gathers the evidence about one member. Evidence that cannot be read is left out and does not
//! make `why` fail, because `why` must also work for teams with damaged files.

use super::member_event_history::MemberHistory;
use super::member_evidence::MemberEvidence;
use super::probe_servers_processes_and_disks;
use super::team_evidence::TeamEvidence;
use protocol::control_socket::{MemberStatus, PastMember};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HOME_HOST;
use protocol::state_file_names::agent_log_path;
use protocol::team_and_member_names::{MemberName, strip_team};
use protocol::team_config::Member;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use store::now;

/// The default of `--no-output-after`: how long a turn may run without output before `why` reports
/// the missing output as a cause.
pub(super) const NO_OUTPUT_DEFAULT: Duration = Duration::from_secs(300);

/// Gathers the evidence about the member that `address` names. `no_output_after` is how long a turn
/// may run without output before `why` reports the missing output as a cause.
pub(super) fn gather_evidence(
    team: &TeamEvidence<'_>,
    address: &str,
    no_output_after: Duration,
) -> MemberEvidence {
    let MemberLookup { name, agent, past_member, member } = look_up_member(team, address);
    let snapshot = team.snapshot;
    let log = agent_log_path(&team.state_dir, team.team.name(), &name);
    let stopped_below =
        |pid: u32| probe_servers_processes_and_disks::stopped_processes(&snapshot.processes, pid);
    let inboxes = team.inboxes_of(&name);
    MemberEvidence {
        now: now(),
        team: team.team.name().clone(),
        caller: team.caller.clone(),
        commands: team.commands.clone(),
        members: Arc::clone(&team.members),
        history: MemberHistory::select(&team.events, team.team.name(), &name),
        stopped_processes: agent.as_ref().and_then(|agent| agent.pid).map(stopped_below).unwrap_or_default(),
        tmux: snapshot.tmux.clone(),
        daemon: snapshot.daemon.clone(),
        other_host: other_host(team, agent.as_ref(), &member),
        agent,
        past_member,
        exhausted_budget: team.status.and_then(|status| status.budget.as_ref()?.exhausted_reason.clone()),
        member,
        unread: inboxes.first().map(|inbox| inbox.content.unread.clone()).unwrap_or_default(),
        open_requests: team.requests_of(&name),
        tasks: Arc::clone(&team.tasks),
        full_disks: team.full_disks.clone(),
        last_output: modified_at(&log),
        no_output_after_ms: u64::try_from(no_output_after.as_millis()).unwrap_or(u64::MAX),
        turn_failure: team.lead_inbox.content.last_turn_failure(&name),
        inboxes,
        name,
    }
}

/// The other host that runs the member, in words.
fn other_host(
    team: &TeamEvidence<'_>,
    agent: Option<&MemberStatus>,
    member: &Result<Option<Member>, ErrorReport>,
) -> Option<String> {
    let member = member.as_ref().ok()?.as_ref().filter(|_| agent.is_none())?;
    let host = member.host.as_deref()?;
    Some(match host {
        HOME_HOST => format!("the machine that is the home of {}", team.team.name()),
        host => host.to_owned(),
    })
}

/// A member as config and daemon know it.
struct MemberLookup {
    /// With the capitals that the team uses.
    name: MemberName,
    agent: Option<MemberStatus>,
    past_member: Option<PastMember>,
    member: Result<Option<Member>, ErrorReport>,
}

fn look_up_member(team: &TeamEvidence<'_>, address: &str) -> MemberLookup {
    let requested_name = MemberName::new_unchecked(strip_team(address, team.team.name()));
    let members = team.status.map(|status| &status.members);
    let agent =
        members.and_then(|members| members.iter().find(|agent| agent.name == requested_name)).cloned();
    let past_member = team.past_member(&requested_name).cloned();
    let config = team.config.as_ref();
    let member = config.map(|config| config.member(&requested_name).cloned()).map_err(Clone::clone);
    let config_name = member.as_ref().ok().and_then(Option::as_ref).map(|member| &member.name);
    let name = agent
        .as_ref()
        .map(|agent| &agent.name)
        .or(config_name)
        .or(past_member.as_ref().map(|past_member| &past_member.name));
    MemberLookup { name: name.cloned().unwrap_or(requested_name), agent, past_member, member }
}

/// When the file was last modified, in ms since the epoch.
fn modified_at(path: &Path) -> Option<u64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

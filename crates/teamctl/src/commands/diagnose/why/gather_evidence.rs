//! Gathers the evidence about one member. Evidence that cannot be read is left out and does not
//! make `why` fail, because `why` must also work for teams with damaged files.

use super::evidence::{Evidence, InboxState, OpenRequestEvidence};
use super::member_history::MemberHistory;
use super::shared_evidence::SystemSnapshot;
use super::system_probe::{self, LockHolder};
use crate::context::CommandContext;
use crate::suggested_command_options::suggested_commands_for_team;
use client::request_view::{self, RequestView};
use protocol::control::{MemberStatus, PastMember, TeamStatus};
use protocol::error::ErrorReport;
use protocol::member_request::MemberRequest;
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, strip_team};
use protocol::payload::Payload;
use protocol::policy::{Approver, PolicyDecision};
use protocol::team_config::{Member, TeamConfig};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use store::{LockState, Team, now};

/// How long a turn may run without output before that is reported as a cause, if the user gives no
/// other time.
pub(super) const NO_OUTPUT_DEFAULT: Duration = Duration::from_secs(300);

/// Gathers the evidence about the member that `address` names. `no_output_after` is how long a turn
/// may run without output before `why` reports the missing output as a cause.
pub(super) fn gather_evidence(
    context: &CommandContext,
    snapshot: &SystemSnapshot,
    team: &Team,
    address: &str,
    no_output_after: Duration,
) -> Result<Evidence, ErrorReport> {
    let config = team.config().map_err(ErrorReport::from);
    let status = snapshot.teams.iter().find(|status| status.name == *team.name());
    let MemberLookup { name, agent, past, member } = look_up_member(team, address, status, config.as_ref());
    let state = context.directories()?.state_dir;
    let log = store::agent_log_path(&state, team.name(), &name);
    let stopped = |pid: u32| system_probe::stopped_processes(&snapshot.processes, pid);
    let inboxes = inbox_states(team, &name);
    let lead_inbox = inboxes.last();
    Ok(Evidence {
        now: now(),
        team: team.name().clone(),
        caller: context.caller_name(),
        commands: suggested_commands_for_team(context, team.name())?,
        members: member_names(config.ok(), status),
        history: MemberHistory::read(&snapshot.log, team.name(), &name),
        stopped_processes: agent.as_ref().and_then(|agent| agent.pid).map(stopped).unwrap_or_default(),
        tmux: snapshot.tmux.clone(),
        daemon: snapshot.daemon.clone(),
        agent,
        past,
        exhausted_budget: status.and_then(|status| status.budget.as_ref()?.exhausted_reason.clone()),
        member,
        unread: inboxes.first().map(unread_messages).unwrap_or_default(),
        open_requests: lead_inbox.map_or_else(Vec::new, |inbox| open_requests(context, team, &name, inbox)),
        tasks: team.tasks().list().unwrap_or_default(),
        full_disks: system_probe::full_disks(&[team.path(), state]),
        last_output: modified_at(&log),
        no_output_after_ms: u64::try_from(no_output_after.as_millis()).unwrap_or(u64::MAX),
        turn_failure: lead_inbox.and_then(|inbox| last_turn_failure(&inbox.entries, &name)),
        inboxes,
        name,
    })
}

/// A member as config and daemon know it.
struct MemberLookup {
    /// With the capitals that the team uses.
    name: AgentName,
    agent: Option<MemberStatus>,
    past: Option<PastMember>,
    member: Result<Option<Member>, ErrorReport>,
}

fn look_up_member(
    team: &Team,
    address: &str,
    status: Option<&TeamStatus>,
    config: Result<&TeamConfig, &ErrorReport>,
) -> MemberLookup {
    let wanted = AgentName::new_unchecked(strip_team(address, team.name()));
    let agent = status.and_then(|status| status.members.iter().find(|agent| agent.name == wanted)).cloned();
    let past =
        status.and_then(|status| status.past_members.iter().rev().find(|past| past.name == wanted)).cloned();
    let member = config.map(|config| config.member(&wanted).cloned()).map_err(Clone::clone);
    let listed = member.as_ref().ok().and_then(Option::as_ref).map(|member| &member.name);
    let name = agent.as_ref().map(|agent| &agent.name).or(listed).or(past.as_ref().map(|past| &past.name));
    MemberLookup { name: name.cloned().unwrap_or(wanted), agent, past, member }
}

fn member_names(config: Option<TeamConfig>, status: Option<&TeamStatus>) -> Vec<AgentName> {
    let listed = config.into_iter().flat_map(|config| config.members).map(|member| member.name);
    let past = status.into_iter().flat_map(|status| &status.past_members);
    let respawning = past.filter(|past| past.has_respawn()).map(|past| past.name.clone());
    listed.chain(respawning).collect()
}

/// The states of the member's inbox and the lead's.
fn inbox_states(team: &Team, name: &AgentName) -> Vec<InboxState> {
    let lead = (!name.is_lead()).then(AgentName::lead);
    std::iter::once(name.clone()).chain(lead).map(|owner| inbox_state(team, owner)).collect()
}

fn inbox_state(team: &Team, owner: AgentName) -> InboxState {
    let inbox = team.inbox(&owner);
    let lock_state = inbox.lock_state().unwrap_or(LockState::Free);
    let lock_holder = match &lock_state {
        LockState::Held(lock) => LockHolder::find(lock.inode),
        _ => None,
    };
    let (entries, damage) = match inbox.read() {
        Ok(entries) => (entries, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    InboxState { owner, entries, damage, lock_state, lock_holder }
}

fn unread_messages(inbox: &InboxState) -> Vec<Message> {
    inbox.entries.iter().filter_map(|entry| entry.unread().cloned()).collect()
}

/// The open requests of the member, or of all members if it is the lead.
fn open_requests(
    context: &CommandContext,
    team: &Team,
    name: &AgentName,
    lead_inbox: &InboxState,
) -> Vec<OpenRequestEvidence> {
    // The scan for open requests reads the lead's inbox. For a damaged inbox the scan would wait
    // until the file becomes readable, and the read above has waited for that already.
    if lead_inbox.damage.is_some() {
        return Vec::new();
    }
    let policy = context.caller_in(team.clone()).and_then(|caller| caller.policy()).unwrap_or_default();
    let open = request_view::open_requests(&policy, team.requests().scan().unwrap_or_default());
    let own = open.into_iter().filter(|view| name.is_lead() || view.request.from == *name);
    let to_evidence = |RequestView { request, policy_answer }: RequestView| OpenRequestEvidence {
        id: request.request.id().to_string(),
        kind: request.request.kind(),
        description: request_description(&request.request),
        since: request.asked_at,
        needs_person: policy.decide(&request.request, &request.cwd) == PolicyDecision::Ask(Approver::Person),
        policy_answer,
    };
    own.map(to_evidence).collect()
}

fn request_description(request: &MemberRequest) -> String {
    match request {
        MemberRequest::Permission(permission) if !permission.input.is_null() => {
            format!("{}: {}", request.summary(), permission.input)
        }
        _ => request.summary(),
    }
}

/// The failure in the member's last report to the lead. `None` if its last turn did not fail.
fn last_turn_failure(entries: &[InboxEntry], name: &AgentName) -> Option<String> {
    let messages = entries.iter().rev().filter_map(|entry| entry.message.as_ref().ok());
    let mut reports =
        messages.filter(|message| message.from == name.as_str()).filter_map(|message| match Payload::parse(
            &message.text,
        )? {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        });
    reports.next()?.failure_reason
}

/// When the file was last modified, in ms since the epoch.
fn modified_at(path: &Path) -> Option<u64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

//! The evidence that is the same for all members of a team. `why` gathers it once, even if it
//! diagnoses hundreds of members. Evidence that cannot be read is left out.

use super::member_evidence::{InboxContent, InboxState, OpenRequestEvidence};
use super::probe_servers_processes_and_disks::{self, FreeSpace, LockHolder};
use super::system_snapshot::SystemSnapshot;
use crate::add_options_to_suggested_commands::suggested_commands_for_team;
use crate::command_context::CommandContext;
use client::member_request_view::{self, MemberRequestView};
use client::suggested_commands::SuggestedCommands;
use protocol::control_socket::{PastMember, TeamStatus};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::member_request::MemberRequest;
use protocol::policy::{Approver, PolicyDecision};
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::TeamConfig;
use std::path::PathBuf;
use std::sync::Arc;
use store::{LockState, Team};

/// What files and daemon say about a team.
pub(super) struct TeamEvidence<'a> {
    pub(super) snapshot: &'a SystemSnapshot,
    pub(super) team: &'a Team,
    pub(super) caller: MemberName,
    pub(super) commands: SuggestedCommands,
    pub(super) state_dir: PathBuf,
    /// The team in the daemon's status.
    pub(super) status: Option<&'a TeamStatus>,
    pub(super) config: Result<TeamConfig, ErrorReport>,
    /// All members of the team, including those that will be started again.
    pub(super) members: Arc<Vec<MemberName>>,
    pub(super) tasks: Arc<Vec<Task>>,
    /// The events that can be about the diagnosed members, oldest first.
    pub(super) events: Vec<Event>,
    pub(super) lead_inbox: Arc<InboxState>,
    /// The open requests of all members, with the members that have made them.
    pub(super) open_requests: Vec<(MemberName, OpenRequestEvidence)>,
    pub(super) full_disks: Vec<FreeSpace>,
}

impl<'a> TeamEvidence<'a> {
    pub(super) fn gather(
        context: &CommandContext,
        snapshot: &'a SystemSnapshot,
        team: &'a Team,
        events: Vec<Event>,
    ) -> Result<TeamEvidence<'a>, ErrorReport> {
        let state_dir = context.state_dir_path()?;
        let config = team.config().map_err(ErrorReport::from);
        let status = snapshot.teams.iter().find(|status| status.name == *team.name());
        let lead_inbox = inbox_state(team, MemberName::lead());
        Ok(TeamEvidence {
            snapshot,
            team,
            caller: context.caller_name(),
            commands: suggested_commands_for_team(context, team.name())?,
            status,
            members: Arc::new(member_names(config.as_ref().ok(), status)),
            config,
            tasks: Arc::new(team.tasks().list().unwrap_or_default()),
            events,
            open_requests: open_requests(team, &lead_inbox),
            lead_inbox: Arc::new(lead_inbox),
            full_disks: probe_servers_processes_and_disks::full_disks(&[team.path(), state_dir.clone()]),
            state_dir,
        })
    }

    /// The open requests of the member, or of all members if it is the lead.
    pub(super) fn requests_of(&self, name: &MemberName) -> Vec<OpenRequestEvidence> {
        let requests = self.open_requests.iter().filter(|(from, _)| name.is_lead() || from == name);
        requests.map(|(_, request)| request.clone()).collect()
    }

    /// The member's inbox, then the lead's.
    pub(super) fn inboxes_of(&self, name: &MemberName) -> Vec<Arc<InboxState>> {
        let own_inbox = (!name.is_lead()).then(|| Arc::new(inbox_state(self.team, name.clone())));
        own_inbox.into_iter().chain([Arc::clone(&self.lead_inbox)]).collect()
    }

    /// The member's last spawn that has ended.
    pub(super) fn past_member(&self, name: &MemberName) -> Option<&'a PastMember> {
        self.status?.past_members.iter().rev().find(|past| past.name == *name)
    }
}

fn member_names(config: Option<&TeamConfig>, status: Option<&TeamStatus>) -> Vec<MemberName> {
    let config_members =
        config.into_iter().flat_map(|config| &config.members).map(|member| member.name.clone());
    let past_members = status.into_iter().flat_map(|status| &status.past_members);
    let respawning = past_members
        .filter(|past_member| past_member.has_respawn())
        .map(|past_member| past_member.name.clone());
    config_members.chain(respawning).collect()
}

fn inbox_state(team: &Team, owner: MemberName) -> InboxState {
    let inbox = team.inbox(&owner);
    let lock_state = inbox.lock_state().unwrap_or(LockState::Free);
    let lock_holder = match &lock_state {
        LockState::Held(lock) => LockHolder::find(lock.inode),
        _ => None,
    };
    let (content, damage) = match inbox.fold(|content: &mut InboxContent, entry| content.add(&entry)) {
        Ok(content) => (content, None),
        Err(error) => (InboxContent::default(), Some(error.to_string())),
    };
    InboxState { owner, content, damage, lock_state, lock_holder }
}

fn open_requests(team: &Team, lead_inbox: &InboxState) -> Vec<(MemberName, OpenRequestEvidence)> {
    // If the lead's inbox is damaged, the requests in it cannot be read. Another attempt would only
    // take time: `inbox_state` has already waited for the file to become readable.
    if lead_inbox.damage.is_some() {
        return Vec::new();
    }
    let policy = team.policy().unwrap_or_default();
    let requests = member_request_view::open_requests(&policy, team.requests().scan().unwrap_or_default());
    let to_evidence = |MemberRequestView { request, policy_answer }: MemberRequestView| {
        let evidence = OpenRequestEvidence {
            id: request.request.id().to_string(),
            kind: request.request.kind(),
            description: request_description(&request.request),
            since: request.asked_at,
            needs_person: policy.decide(&request.request, &request.cwd)
                == PolicyDecision::Ask(Approver::Person),
            policy_answer,
        };
        (request.from, evidence)
    };
    requests.into_iter().map(to_evidence).collect()
}

fn request_description(request: &MemberRequest) -> String {
    match request {
        MemberRequest::Permission(permission) if !permission.input.is_null() => {
            format!("{}: {}", request.summary(), permission.input)
        }
        _ => request.summary(),
    }
}

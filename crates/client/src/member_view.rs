//! The view of one member, from the daemon's status or, for a member that the daemon does not
//! supervise, from config.json.

use crate::status_source::StatusSource;
use protocol::control_socket::{
    Activity, HostContact, HostStatus, MemberFlag, MemberStatus, PastMember, TurnPause, UsageLimit,
};
use protocol::delivery_kind::{Delivery, DeliveryPoint};
use protocol::redact_variables::redact;
use protocol::single_line::single_line;
use protocol::state_file_names::ENVIRONMENTS_DIR;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::Member;
use protocol::token_and_cost_usage::Usage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{StateDir, Team};

/// A member. `None` in a field means unknown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemberView {
    /// Name of the member.
    pub name: String,
    /// Id of the member: `NAME@TEAM`.
    pub agent_id: String,
    /// The host that runs the member. `None`: this one, or the home of a mirrored team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The state of the member's spawn, such as `running`. `lead`: the lead. `unsupervised`: the
    /// daemon does not know the member.
    pub lifecycle: String,
    /// `pending` or `running`, the names that other programs use.
    pub state: Option<String>,
    /// Conditions that need attention.
    pub flags: Vec<MemberFlag>,
    /// The question of the dialog at which the member's program waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
    /// Why turns of the member wait although there is work for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_pause: Option<TurnPause>,
    /// The usage limit that the member's program has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_limit: Option<UsageLimit>,
    /// Whether the member is in a turn.
    pub activity: Option<Activity>,
    /// When the current activity began, in milliseconds since the epoch.
    pub activity_since: Option<u64>,
    /// Why the member counts as active or idle, as a text for people.
    pub activity_reason: Option<String>,
    /// The task that the member works on.
    pub task: Option<String>,
    /// Tokens and cost, as reported by the member's program.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// Number of unread messages in the member's inbox.
    pub unread: Option<usize>,
    /// The permission mode.
    pub mode: Option<String>,
    /// How messages reach the member.
    pub delivery: Option<Delivery>,
    /// The moment at which messages reach the member.
    pub delivery_point: Option<DeliveryPoint>,
    /// The pane, such as `%14`.
    pub pane: Option<String>,
    /// Whether the pane is hidden.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// The agent's process id.
    pub pid: Option<u32>,
    /// `tmux`, `window` or `in-process`.
    pub backend: Option<String>,
    /// How often the member was started again.
    pub respawns: Option<u32>,
    /// The worktree in which the member was started.
    pub worktree: Option<PathBuf>,
    /// The branch that the worktree was created for.
    pub branch: Option<String>,
    /// Name of the member's color.
    pub color: String,
    /// The agent's environment with secrets hidden. Only loaded for the view of a single member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    /// Name of the file with the agent's environment. Empty if there is none.
    #[serde(skip)]
    pub environment_file: String,
}

impl MemberView {
    /// The lifecycle followed by the flags, such as `running!shutdown`.
    pub fn lifecycle_and_flags(&self) -> String {
        let flags = self.flags.iter().map(|flag| {
            match flag {
                MemberFlag::Limited => return self.limit_flag(),
                MemberFlag::AwaitingPlanApproval => "!plan",
                MemberFlag::AwaitingPermission => "!asks",
                MemberFlag::ShutdownRequested => "!shutdown",
                MemberFlag::AtDialog => "!dialog",
                MemberFlag::DialogUnknown => "?dialog",
                MemberFlag::NoOutput => "?waiting",
                MemberFlag::Paused => "!paused",
                MemberFlag::TurnsStopped => "!turns-stopped",
            }
            .to_owned()
        });
        std::iter::once(self.lifecycle.clone()).chain(flags).collect()
    }

    /// `!limited until 15:00`.
    fn limit_flag(&self) -> String {
        let time = self.usage_limit.as_ref().map(|limit| single_line(&limit.local_time));
        format!("!limited until {}", time.as_deref().unwrap_or("?"))
    }

    /// Reads the agent's environment, if its file exists.
    pub fn load_environment(&mut self, state: &StateDir) {
        let read_file = |file: &str| {
            state.open_subdir(ENVIRONMENTS_DIR).and_then(|directory| directory.read(file)).ok().flatten()
        };
        let bytes = Some(self.environment_file.as_str()).filter(|file| !file.is_empty()).and_then(read_file);
        let variables =
            bytes.and_then(|bytes| serde_json::from_slice::<BTreeMap<String, String>>(&bytes).ok());
        self.environment = variables.map(|variables| {
            let redacted =
                variables.iter().map(|(name, value)| (name.clone(), redact(name, value).to_owned()));
            redacted.collect()
        });
    }
}

/// A function that counts the unread messages of a member. It returns `None`, not 0, if the inbox
/// cannot be read.
pub type UnreadCounter<'a> = dyn FnMut(&Team, &MemberName) -> Option<usize> + 'a;

pub(crate) fn member_view(team: &Team, agent: &MemberStatus, unread: &mut UnreadCounter) -> MemberView {
    MemberView {
        name: agent.name.to_string(),
        agent_id: agent.agent_id.clone(),
        host: None,
        lifecycle: agent.lifecycle.clone(),
        state: Some(agent.state.clone()),
        flags: agent.flags.clone(),
        dialog: agent.dialog.clone(),
        turn_pause: agent.turn_pause.clone(),
        usage_limit: agent.usage_limit.clone(),
        activity: Some(agent.activity).filter(|_| !has_no_hook_events(agent)),
        activity_since: Some(agent.activity_since),
        activity_reason: Some(agent.activity_reason.clone()),
        task: agent.task.clone(),
        usage: agent.usage,
        unread: unread(team, &agent.name),
        mode: agent.mode.clone(),
        delivery: Some(agent.delivery),
        delivery_point: agent.delivery_point,
        pane: agent.pane.clone(),
        is_hidden: agent.is_hidden,
        pid: agent.pid,
        backend: Some(agent.backend.clone()),
        respawns: Some(agent.respawns),
        worktree: agent.worktree.clone(),
        branch: agent.branch.clone(),
        color: agent.color.clone(),
        environment: None,
        environment_file: agent.environment_file.clone(),
    }
}

/// Whether the member's program has hooks, but the daemon has received no event from them yet. It
/// is then unknown whether the program is in a turn.
fn has_no_hook_events(agent: &MemberStatus) -> bool {
    let is_on_pull = agent.delivery_point == Some(DeliveryPoint::OnPull);
    agent.delivery == Delivery::Hook && agent.activity == Activity::Active && is_on_pull
}

/// Views of the members in config.json that the daemon does not supervise. The lead is always among
/// them.
pub(crate) fn unsupervised_member_views(
    team: &Team,
    config_members: &[Member],
    supervised: &[MemberStatus],
    past_members: &[PastMember],
    source: StatusSource,
    unread: &mut UnreadCounter,
) -> Vec<MemberView> {
    // A member that waits for its respawn is shown with the past members.
    let waits_for_respawn =
        |member: &Member| past_members.iter().any(|past| past.name == member.name && past.has_respawn());
    // The daemon removes a member's entry from config.json after the member's end. If this fails,
    // for example because the disk is full, the entry remains, and the member is shown as `exited`.
    // An entry with a join time after that end belongs to a new member of the same name.
    let has_ended = |member: &Member| {
        past_members
            .iter()
            .any(|past| past.name == member.name && (1..=past.ended_at).contains(&member.joined_at))
    };
    let unsupervised = config_members.iter().filter(|member| {
        !supervised.iter().any(|agent| agent.name == member.name) && !waits_for_respawn(member)
    });
    let hosts = source.team_status(team.name()).map_or(&[][..], |team| &team.hosts);
    unsupervised
        .cloned()
        .map(|member| MemberView {
            lifecycle: match (member.name.is_lead(), source) {
                (true, _) => "lead",
                (false, StatusSource::Roster(_)) => "unknown",
                (false, StatusSource::Daemon(_)) if member.host.is_some() => remote_lifecycle(&member, hosts),
                (false, StatusSource::Daemon(_)) if has_ended(&member) => "exited",
                (false, StatusSource::Daemon(_)) => "unsupervised",
            }
            .to_owned(),
            host: member.host,
            agent_id: member.agent_id,
            state: None,
            dialog: None,
            turn_pause: None,
            usage_limit: None,
            flags: Vec::new(),
            activity: member.is_active.map(|active| if active { Activity::Active } else { Activity::Idle }),
            activity_since: None,
            activity_reason: None,
            task: None,
            usage: Usage::default(),
            unread: unread(team, &member.name),
            mode: member.mode,
            delivery: None,
            delivery_point: None,
            is_hidden: false,
            pane: Some(member.tmux_pane_id).filter(|pane| pane.starts_with('%')),
            pid: None,
            backend: member.backend_type,
            respawns: None,
            worktree: member.worktree_path.map(PathBuf::from),
            branch: None,
            color: member.color.unwrap_or_default(),
            environment: None,
            environment_file: String::new(),
            name: member.name.to_string(),
        })
        .collect()
}

/// The lifecycle of a member that another host runs. Without contact, it is unknown.
pub(crate) fn remote_lifecycle(member: &Member, hosts: &[HostStatus]) -> &'static str {
    // After a move of the home, nothing here says how its members are.
    if hosts.iter().any(|host| matches!(host.contact, HostContact::IsHome { .. })) {
        return "unknown";
    }
    let host = hosts.iter().find(|host| member.host.as_deref() == Some(host.host.as_str()));
    match host.map(|host| &host.contact) {
        Some(HostContact::NoContact { .. }) => "unknown",
        _ => "running",
    }
}

/// Counts the unread messages in a member's inbox, without a cache. Returns `None`, not 0, if the
/// inbox cannot be read.
pub fn count_unread(team: &Team, name: &MemberName) -> Option<usize> {
    team.inbox(name).count_unread().ok()
}

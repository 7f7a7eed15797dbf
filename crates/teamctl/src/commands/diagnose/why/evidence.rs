//! What can be seen of one member: in the files, from the daemon, in the event log, on the machine. Whatever of it
//! can't be had is left out and the rest is gathered all the same; it is what one looks for when things are broken.

use super::member_history::{self, MemberHistory};
use super::system_probe::{self, FreeSpace, ServerState, StoppedProcess};
use crate::context::CommandContext;
use client::event_log::EventLog;
use client::process_table::{self, ProcessStat};
use client::request_view::RequestView;
use protocol::control::{DaemonStatus, MemberStatus, PastMember, Reply, Request, StatusReply, TeamStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::member_request::{MemberRequest, MemberRequestKind};
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, TeamName, strip_team};
use protocol::payload::Payload;
use protocol::policy::{Approver, PolicyDecision};
use protocol::task::Task;
use protocol::team_config::{Member, TeamConfig};
use std::path::PathBuf;
use std::time::Duration;
use store::now;
use store::{LockState, Team};

/// All of it, as it was at one moment.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) now: u64,
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    /// Who asks, and may type what is printed: the lead, or the member itself.
    pub(super) asker: AgentName,
    /// Whoever is a member, or comes back as one.
    pub(super) members: Vec<AgentName>,
    /// Whoever else was one, as far as the event log tells.
    pub(super) former: Vec<String>,
    pub(super) daemon: DaemonProbe,
    /// As teamd supervises it.
    pub(super) agent: Option<MemberStatus>,
    /// As it ended.
    pub(super) past: Option<PastMember>,
    /// Why nobody is started for its team, where a budget is used up.
    pub(super) exhausted_budget: Option<String>,
    /// Its entry in config.json, or why that can't be read.
    pub(super) member: Result<Option<Member>, ErrorReport>,
    /// What is unread in its inbox, oldest first.
    pub(super) unread: Vec<Message>,
    /// Its inbox, then the lead's, where it has to tell how its turns end.
    pub(super) inboxes: Vec<InboxState>,
    /// What it asks, oldest first; of the lead, what it is asked.
    pub(super) asks: Vec<OpenRequestEvidence>,
    pub(super) tasks: Vec<Task>,
    pub(super) chronicle: MemberHistory,
    /// Of its processes those that are stopped.
    pub(super) stopped: Vec<StoppedProcess>,
    pub(super) tmux: ServerState,
    /// Disks that have no room.
    pub(super) full: Vec<FreeSpace>,
    /// When its output changed last, ms since the epoch.
    pub(super) last_output: Option<u64>,
    /// How long a turn may write nothing, ms.
    pub(super) no_output_after_ms: u64,
    /// What the lead was told last of a turn of its that failed.
    pub(super) failure: Option<String>,
}

/// The daemon.
#[derive(Debug, Clone)]
pub(super) enum DaemonProbe {
    Running(Box<DaemonStatus>),
    NotRunning,
    /// It is there, and says nothing.
    Unresponsive(ServerState),
}

/// How an inbox stands.
#[derive(Debug)]
pub(super) struct InboxState {
    pub(super) whose: AgentName,
    /// Its entries, oldest first.
    pub(super) entries: Vec<InboxEntry>,
    /// Why it can't be read.
    pub(super) damage: Option<String>,
    pub(super) lock_state: LockState,
    /// Who of ours holds that lock, and that in words.
    pub(super) holder: Option<(u32, String)>,
}

/// What it asks.
#[derive(Debug, Clone)]
pub(super) struct OpenRequestEvidence {
    pub(super) id: String,
    pub(super) kind: MemberRequestKind,
    /// `asks to use Bash: cargo test`.
    pub(super) about: String,
    /// Ms since the epoch; 0: not known.
    pub(super) since: u64,
    /// The team's policy leaves it to a person alone.
    pub(super) is_left_to_person: bool,
    /// When the policy answers it, ms since the epoch, and whether that is a yes.
    pub(super) ends: Option<(u64, bool)>,
}

impl Evidence {
    /// Whether it is, or ever was, a member.
    pub(super) fn is_known(&self) -> bool {
        let listed = !matches!(self.member, Ok(None));
        listed || self.agent.is_some() || self.past.is_some() || self.chronicle.has_spawned()
    }

    /// Whether it goes on as soon as somebody brings it back.
    pub(super) fn is_suspended(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.is_suspended)
    }

    pub(super) fn is_lead(&self) -> bool {
        self.name.is_lead()
    }
}

/// What all members stand on: seen once, however many are asked after.
pub(in crate::commands::diagnose) struct SystemSnapshot {
    /// As the daemon answers, else who rests as its roster tells.
    teams: Vec<TeamStatus>,
    daemon: DaemonProbe,
    tmux: ServerState,
    log: EventLog,
    /// The machine's table.
    processes: Vec<ProcessStat>,
}

impl SystemSnapshot {
    pub(in crate::commands::diagnose) fn take(
        here: &CommandContext,
        log: EventLog,
    ) -> Result<SystemSnapshot, ErrorReport> {
        let (status, daemon) = probe_daemon(here)?;
        let state = here.directories()?.state_dir;
        let teams =
            status.map_or_else(|| client::team_view::read_suspended_teams(&state), |status| status.teams);
        Ok(SystemSnapshot {
            teams,
            tmux: probe_tmux(&daemon),
            daemon,
            log,
            processes: process_table::all_processes(),
        })
    }
}

pub(super) fn gather(
    here: &CommandContext,
    ground: &SystemSnapshot,
    team: &Team,
    address: &str,
    silent: Duration,
) -> Result<Evidence, ErrorReport> {
    let config = team.config().map_err(ErrorReport::from);
    let MemberLookup { name, agent, past, member } = look_up_member(team, address, &ground.teams, &config);
    let told = ground.teams.iter().find(|told| told.name == *team.name());
    let rest = told.into_iter().flat_map(|told| &told.past_members).filter(|past| past.has_respawn());
    let state = here.directories()?.state_dir;
    let (chronicle, former) = member_history::member_history(&ground.log, team.name(), &name);
    let stopped = |pid: u32| system_probe::stopped_processes(&ground.processes, pid);
    let log = state.join(format!("logs/agents/{}/{}.log", team.name(), name.file_stem()));
    let inboxes = inboxes(team, &name);
    Ok(Evidence {
        now: now(),
        team: team.name().clone(),
        asker: here.caller_name(),
        members: config
            .map_or_else(|_| Vec::new(), |config| config.members)
            .into_iter()
            .map(|member| member.name)
            .chain(rest.map(|past| past.name.clone()))
            .collect(),
        former,
        stopped: agent.as_ref().and_then(|agent| agent.pid).map(stopped).unwrap_or_default(),
        tmux: ground.tmux.clone(),
        daemon: ground.daemon.clone(),
        agent,
        past,
        exhausted_budget: told.and_then(|told| told.budget.as_ref()?.exhausted_reason.clone()),
        member,
        unread: inboxes.first().map(InboxState::unread).unwrap_or_default(),
        asks: inboxes.last().map_or_else(Vec::new, |lead| open_requests(here, team, &name, lead)),
        tasks: team.tasks().list().unwrap_or_default(),
        chronicle,
        full: system_probe::full_disks(&[team.path(), state]),
        last_output: last_output_time(&log),
        no_output_after_ms: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
        failure: inboxes.last().and_then(|lead| last_turn_failure(&lead.entries, &name)),
        inboxes,
        name,
    })
}

/// Who is meant, by whoever knows of him.
struct MemberLookup {
    /// As the team spells it.
    name: AgentName,
    agent: Option<MemberStatus>,
    past: Option<PastMember>,
    member: Result<Option<Member>, ErrorReport>,
}

fn look_up_member(
    team: &Team,
    address: &str,
    teams: &[TeamStatus],
    config: &Result<TeamConfig, ErrorReport>,
) -> MemberLookup {
    let wanted = AgentName::new_unchecked(strip_team(address, team.name()));
    let told = teams.iter().find(|told| told.name == *team.name());
    let agent = told.and_then(|told| told.members.iter().find(|agent| agent.name == wanted)).cloned();
    let past = told.and_then(|told| told.past_members.iter().rev().find(|past| past.name == wanted)).cloned();
    let member = config.as_ref().map(|config| config.member(&wanted).cloned()).map_err(Clone::clone);
    let listed = member.as_ref().ok().and_then(Option::as_ref).map(|member| &member.name);
    let spelled = agent.as_ref().map(|agent| &agent.name).or(listed).or(past.as_ref().map(|past| &past.name));
    MemberLookup { name: spelled.cloned().unwrap_or(wanted), agent, past, member }
}

fn probe_tmux(daemon: &DaemonProbe) -> ServerState {
    match daemon {
        DaemonProbe::Running(daemon) => {
            daemon.tmux.as_deref().map_or(ServerState::Unknown, system_probe::probe_tmux)
        }
        _ => ServerState::Unknown,
    }
}

fn lock_holder(holding: &LockState) -> Option<(u32, String)> {
    match holding {
        LockState::Held(held) => system_probe::lock_holder(held.inode),
        _ => None,
    }
}

fn probe_daemon(here: &CommandContext) -> Result<(Option<StatusReply>, DaemonProbe), ErrorReport> {
    let asked = here.call_daemon(Request::StatusWithScreens);
    // Whoever teamd does not know any more may know who runs there all the same.
    let is_unknown = asked.as_ref().is_err_and(|fault| fault.kind == ErrorKind::NotPermitted);
    match if is_unknown { here.daemon_status() } else { asked } {
        Ok(Reply::Status(status)) => {
            let about = Box::new(status.daemon.clone());
            Ok((Some(status), DaemonProbe::Running(about)))
        }
        Ok(_) => Err(client::error::unexpected_reply()),
        Err(fault) if fault.kind == ErrorKind::NoDaemon => Ok((None, DaemonProbe::NotRunning)),
        Err(fault) if fault.kind == ErrorKind::Timeout => {
            Ok((None, DaemonProbe::Unresponsive(system_probe::probe_socket(&here.socket()?))))
        }
        Err(fault) => Err(fault),
    }
}

fn inboxes(team: &Team, name: &AgentName) -> Vec<InboxState> {
    let lead = (!name.is_lead()).then(AgentName::lead);
    std::iter::once(name.clone()).chain(lead).map(|whose| inbox_state(team, whose)).collect()
}

fn inbox_state(team: &Team, whose: AgentName) -> InboxState {
    let inbox = team.inbox(&whose);
    let holding = inbox.lock_state().unwrap_or(LockState::Free);
    let (entries, damage) = match inbox.read() {
        Ok(entries) => (entries, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    InboxState { whose, entries, damage, holder: lock_holder(&holding), lock_state: holding }
}

impl InboxState {
    fn unread(&self) -> Vec<Message> {
        self.entries.iter().filter_map(|entry| entry.unread().cloned()).collect()
    }
}

/// None where the lead's inbox can't be read: that has its own cause, of the lead. To the lead all are asked.
fn open_requests(
    here: &CommandContext,
    team: &Team,
    name: &AgentName,
    lead: &InboxState,
) -> Vec<OpenRequestEvidence> {
    // What can't be read is waited for, and was already.
    if lead.damage.is_some() {
        return Vec::new();
    }
    let policy = here.caller_in(team.clone()).and_then(|caller| caller.policy()).unwrap_or_default();
    let open = client::request_view::open_requests(&policy, team.requests().scan().unwrap_or_default());
    let meant = open.into_iter().filter(|waiting| name.is_lead() || waiting.request.from == *name);
    let ask = |RequestView { request, policy_answer: ends }: RequestView| OpenRequestEvidence {
        id: request.request.id().to_string(),
        kind: request.request.kind(),
        about: request_text(&request.request),
        since: request.asked_at,
        is_left_to_person: policy.decide(&request.request, &request.cwd)
            == PolicyDecision::Ask(Approver::Person),
        ends,
    };
    meant.map(ask).collect()
}

fn request_text(asked: &MemberRequest) -> String {
    match asked {
        MemberRequest::Plan(_) => asked.summary(),
        MemberRequest::Permission(request) if request.input.is_null() => asked.summary(),
        MemberRequest::Permission(request) => format!("{}: {}", asked.summary(), request.input),
    }
}

fn last_turn_failure(entries: &[InboxEntry], name: &AgentName) -> Option<String> {
    let told = entries.iter().rev().filter_map(|entry| entry.message.as_ref().ok());
    let mut idle = told.filter(|message| message.from == name.as_str()).filter_map(|message| {
        match Payload::parse(&message.text)? {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        }
    });
    idle.next()?.failure_reason
}

fn last_output_time(log: &PathBuf) -> Option<u64> {
    let modified = std::fs::metadata(log).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

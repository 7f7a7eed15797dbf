//! The state of the daemon: settings, teams, agents and waiting clients.
//!
//! Only the event loop accesses the state. The [`Roster`] holds the part that the next daemon
//! needs. The next daemon learns the rest from tmux, from the shims that reconnect, and from the
//! files.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::notifications_to_people::notice::Notice;
use crate::core::notifications_to_people::queue::NoticeQueue;
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnRecord, RespawnStart};
use crate::core::roster::{AcceptedDeletion, PidOrigin, ROSTER_VERSION, Roster};
use crate::core::state::agent::Agent;
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::state::host_links::HostLinks;
use crate::core::state::lead_session::LeadSession;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::state::queued_next_task_queries::NextTaskQueue;
use crate::core::state::queued_registration::QueuedRegistration;
use crate::core::state::repeated_calls::RetryCache;
use crate::core::state::scan_running_or_needed_again::ScanState;
use crate::core::state::team::{TeamState, WatchedTeam};
use crate::core::state::team_deletion_stage::Deletion;
use crate::core::state::team_record::TeamRecord;
use crate::core::state::time_of_last_machine_sleep::SleepClock;
use crate::core::state::waiting_clients::{ExitWaiter, InterruptWaiter, ScreenWaiters};
use crate::core::state::watcher_health_and_rescan_interval::WatcherState;
use protocol::control_socket::{Activity, Layout, PastMember};
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_color::Color;
use protocol::member_task_and_request_ids::UniqueMillis;
use protocol::policy::Policy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// The state that the event loop owns.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: DaemonSettings,
    /// Identifies the boot of the machine and the PID namespace in which this daemon runs. The pids
    /// in this state are valid only there.
    pub(crate) pid_origin: PidOrigin,
    pub(crate) teams: BTreeMap<TeamName, TeamState>,
    /// Teams of Claude Code's own sessions. The daemon watches and logs them, and changes nothing.
    pub(crate) session_teams: BTreeMap<TeamName, WatchedTeam>,
    /// What the event log has about session teams that the daemon has not found since its start.
    pub(crate) previous_cursor: EventLogCursor,
    /// The records of the teams that are recorded.
    pub(crate) team_records: BTreeMap<TeamName, TeamRecord>,
    pub(crate) agents: BTreeMap<SpawnId, Agent>,
    pub(crate) exit_waiters: Vec<ExitWaiter>,
    pub(crate) screen_waiters: ScreenWaiters,
    /// Clients that wait for the end of an agent's turn.
    pub(crate) interrupt_waiters: Vec<InterruptWaiter>,
    /// Links to other hosts.
    pub(crate) host_links: HostLinks,
    /// Spawns that can be registered, the oldest first.
    pub(crate) registration_queue: Vec<QueuedRegistration>,
    /// Members that are to be respawned or resumed.
    pub(crate) pending_respawns: Vec<PendingRespawn>,
    pub(crate) notices: NoticeQueue,
    /// When the machine woke last.
    pub(crate) sleep_clock: SleepClock,
    pub(crate) lead_sessions: BTreeMap<TeamName, LeadSession>,
    /// Calls with an idempotency key, and their replies.
    pub(crate) retry_cache: RetryCache,
    pub(crate) request_ids: UniqueMillis,
    pub(crate) watcher_state: WatcherState,
    /// Clients that ask for their next task.
    pub(crate) next_task_queue: NextTaskQueue,
    /// Whether a request for watches is under way, and whether another must follow.
    pub(crate) watch_setup: ScanState,
    /// New directories for the next request for watches. They may turn out to be session teams.
    pub(crate) new_directories: BTreeSet<TeamName>,
    pub(crate) rescan_at: u64,
    /// When the next probe is due, in milliseconds on the monotonic clock.
    pub(crate) probe_at: u64,
    /// When the last rescan was, in milliseconds on the monotonic clock.
    pub(crate) last_rescan: Option<u64>,
    pub(crate) daemon_shutdown: DaemonShutdown,
    /// The client that waits for the daemon's shutdown. Set once all agents have ended. The daemon
    /// ends after the reply to this client.
    pub(crate) final_reply_to: Option<ConnId>,
    /// Whether the roster must be saved after this event.
    pub(crate) has_roster_changed: bool,
    /// The latest wall-clock time of all events so far, in milliseconds since the epoch. After the
    /// clock was set back, this time is later than the present time.
    pub(crate) latest_wall_ms: u64,
    /// Whether the last save of the roster has failed. The next rescan saves the roster again.
    pub(crate) has_roster_save_failed: bool,
    /// Why this daemon had to end: the root could not be opened again.
    pub(crate) root_error: Option<ErrorReport>,
}

/// Whether the daemon shuts down. No agent is spawned while it shuts down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonShutdown {
    NotRequested,
    Terminate,
    /// The daemon shuts down, and its agents are suspended.
    Suspend,
}

impl DaemonShutdown {
    pub(crate) fn is_in_progress(self) -> bool {
        self != DaemonShutdown::NotRequested
    }
}

/// How many past members of a team are kept.
const MAX_PAST_MEMBERS: usize = 32;

impl State {
    pub(crate) fn new(settings: DaemonSettings, mut roster: Roster, mut cursor: EventLogCursor) -> State {
        let agents = restore_agents(&mut roster);
        let leads = std::mem::take(&mut roster.lead_sessions).into_iter();
        let lead_sessions = leads.map(|lead| (lead.team.clone(), LeadSession::new(lead)));
        let teams = restore_teams(&mut roster, &mut cursor);
        let event_numbers = std::mem::take(&mut cursor.event_numbers);
        let record_files = std::mem::take(&mut roster.record_files).into_iter();
        let team_records = record_files.map(|(team, file)| (team, TeamRecord::new(file))).collect();
        let is_known = |notice: &Notice| notice.team.is_claude_session() || teams.contains_key(&notice.team);
        let notices = NoticeQueue::from_saved(roster.pending_notices.into_iter().filter(is_known));
        State {
            settings,
            pid_origin: roster.pid_origin,
            teams,
            session_teams: BTreeMap::new(),
            previous_cursor: cursor,
            team_records,
            agents,
            exit_waiters: Vec::new(),
            screen_waiters: ScreenWaiters::default(),
            interrupt_waiters: Vec::new(),
            host_links: HostLinks { event_numbers, ..HostLinks::default() },
            registration_queue: Vec::new(),
            pending_respawns: roster.pending_respawns,
            notices,
            sleep_clock: SleepClock::default(),
            lead_sessions: lead_sessions.collect(),
            retry_cache: RetryCache::default(),
            request_ids: UniqueMillis::default(),
            watcher_state: WatcherState::Unproven,
            next_task_queue: NextTaskQueue::default(),
            watch_setup: ScanState::default(),
            new_directories: BTreeSet::new(),
            rescan_at: 0,
            probe_at: 0,
            last_rescan: None,
            daemon_shutdown: DaemonShutdown::NotRequested,
            final_reply_to: None,
            has_roster_changed: false,
            latest_wall_ms: 0,
            has_roster_save_failed: false,
            root_error: None,
        }
    }

    /// Restores from config.json which agents were idle.
    pub(crate) fn restore_activity(&mut self, is_active: impl Fn(&TeamName, &MemberName) -> Option<bool>) {
        for agent in self.agents.values_mut() {
            if is_active(&agent.record.request.team, &agent.record.request.name) == Some(false) {
                agent.activity = Activity::Idle;
            }
        }
    }

    /// Loads the policies of all teams.
    pub(crate) fn load_policies(&mut self, policy: impl Fn(&TeamName) -> Policy) {
        self.teams.iter_mut().for_each(|(team, team_state)| team_state.policy = policy(team));
    }

    /// A supervised team or a session team.
    pub(crate) fn watched_team_mut(&mut self, team: &TeamName) -> Option<&mut WatchedTeam> {
        match team.is_claude_session() {
            true => self.session_teams.get_mut(team),
            false => self.teams.get_mut(team).map(|team_state| &mut team_state.watched),
        }
    }

    /// The names of all teams, the supervised ones first.
    pub(crate) fn team_names(&self) -> Vec<TeamName> {
        self.teams.keys().chain(self.session_teams.keys()).cloned().collect()
    }

    /// The member of the given name, until its cleanup is done. Upper and lower case are the same.
    pub(crate) fn member(&self, team: &TeamName, name: &MemberName) -> Option<&Agent> {
        self.agents
            .values()
            .find(|agent| agent.record.request.team == *team && agent.record.request.name == *name)
    }

    /// The members of a team, in the order in which they joined. Members that joined in the same
    /// millisecond are in the order of their names.
    pub(crate) fn members(&self, team: &TeamName) -> Vec<&Agent> {
        let mut members: Vec<&Agent> =
            self.agents.values().filter(|agent| agent.record.request.team == *team).collect();
        members.sort_by_key(|agent| (agent.record.spawned_at, agent.record.request.name.clone()));
        members
    }

    /// The agent that a call's token identifies. `None` after its exit.
    pub(crate) fn agent_by_token(&self, token: Option<&str>) -> Option<&Agent> {
        let mut living = self.agents.values().filter(|agent| !agent.record.lifecycle.is_exited());
        living.find(|agent| token == Some(agent.record.token.as_str()))
    }

    /// The agent whose shim uses this connection.
    pub(crate) fn agent_by_conn(&mut self, conn: ConnId) -> Option<&mut Agent> {
        self.agents.values_mut().find(|agent| agent.record.lifecycle.conn() == Some(conn))
    }

    /// The color of the next member. `None` if the team was deleted meanwhile.
    pub(crate) fn next_color(&mut self, team: &TeamName) -> Option<Color> {
        let team = self.teams.get_mut(team)?;
        team.joined_count += 1;
        Some(Color::for_joined_count(team.joined_count - 1))
    }

    /// Adds a past member for `status`, in place of the one of the same name.
    pub(crate) fn add_past_member(&mut self, team: &TeamName, past: PastMember) {
        let Some(team) = self.teams.get_mut(team) else { return };
        team.past_members.retain(|other| other.name != past.name);
        // Members that are to be respawned are kept, however many there are.
        let ended_count = team.past_members.iter().filter(|past| !past.has_respawn()).count();
        if let Some(oldest) = team
            .past_members
            .iter()
            .position(|past| !past.has_respawn())
            .filter(|_| ended_count >= MAX_PAST_MEMBERS)
        {
            team.past_members.remove(oldest);
        }
        team.past_members.push(past);
        self.has_roster_changed = true;
    }

    pub(crate) fn to_roster(&self) -> Roster {
        Roster {
            version: ROSTER_VERSION,
            pid_origin: self.pid_origin.clone(),
            joined_counts: self.teams.iter().map(|(name, team)| (name.clone(), team.joined_count)).collect(),
            layouts: self
                .teams
                .iter()
                .filter(|(_, team)| team.layout != Layout::default())
                .map(|(name, team)| (name.clone(), team.layout))
                .collect(),
            person_panes: self
                .teams
                .iter()
                .filter_map(|(name, team)| Some((name.clone(), team.person_pane.clone()?)))
                .collect(),
            records: self
                .agents
                .values()
                .filter(|agent| !agent.record.lifecycle.is_opening())
                .map(|agent| agent.record.clone())
                .collect(),
            past_members: self
                .teams
                .iter()
                .map(|(name, team)| (name.clone(), team.past_members.clone()))
                .collect(),
            pending_respawns: self
                .pending_respawns
                .iter()
                .cloned()
                .chain(self.agents.values().filter_map(unsaved_respawn))
                .collect(),
            worktrees: self.teams.iter().map(|(name, team)| (name.clone(), team.worktrees.clone())).collect(),
            usage: self.teams.iter().map(|(name, team)| (name.clone(), team.usage.clone())).collect(),
            record_files: self
                .team_records
                .iter()
                .filter(|(_, record)| record.is_open())
                .map(|(name, record)| (name.clone(), record.file.clone()))
                .collect(),
            deletions: self.teams.values().filter_map(TeamState::accepted_deletion).cloned().collect(),
            lead_sessions: self
                .lead_sessions
                .values()
                .map(|lead_session| lead_session.lead.clone())
                .collect(),
            ended_lead_sessions: self
                .teams
                .iter()
                .filter_map(|(name, team)| Some((name.clone(), team.lead_session_ended_at?)))
                .collect(),
            pending_notices: self.notices.pending(),
        }
    }
}

fn restore_agents(roster: &mut Roster) -> BTreeMap<SpawnId, Agent> {
    let records = std::mem::take(&mut roster.records).into_iter();
    let agents = records.map(|record| {
        let since = record.spawned_at;
        (record.spawn_id.clone(), Agent::new(record, since))
    });
    agents.collect()
}

/// Creates the state of each team in the roster. `cursor` has the logged tasks and requests of all
/// teams, as read from the event log. This function moves those of each team into the team's state.
fn restore_teams(roster: &mut Roster, cursor: &mut EventLogCursor) -> BTreeMap<TeamName, TeamState> {
    let joined_counts = std::mem::take(&mut roster.joined_counts);
    let teams = joined_counts.into_iter().map(|(name, joined_count)| {
        let team = TeamState {
            watched: WatchedTeam::with_logged_state(cursor, &name),
            joined_count,
            past_members: roster.past_members.remove(&name).unwrap_or_default(),
            worktrees: roster.worktrees.remove(&name).unwrap_or_default(),
            layout: roster.layouts.remove(&name).unwrap_or_default(),
            person_pane: roster.person_panes.remove(&name),
            usage: roster.usage.remove(&name).unwrap_or_default(),
            deletion: restore_deletion(&roster.deletions, &name),
            lead_session_ended_at: roster.ended_lead_sessions.remove(&name),
            ..TeamState::default()
        };
        (name, team)
    });
    teams.collect()
}

fn restore_deletion(saved: &[AcceptedDeletion], team: &TeamName) -> Option<Deletion> {
    let accepted = saved.iter().find(|accepted| accepted.request.team == *team)?.clone();
    Some(Deletion::Accepted { accepted, killed: Vec::new(), joined: Vec::new() })
}

/// If the agent is a respawn whose pane is still being opened, returns a pending respawn, which the
/// roster saves instead of the agent. So if the daemon dies before the pane is open, the next
/// daemon starts the respawn again. `None` for any other agent.
fn unsaved_respawn(agent: &Agent) -> Option<PendingRespawn> {
    let record = &agent.record;
    if !record.lifecycle.is_opening() || !record.can_respawn() {
        return None;
    }
    let respawns = record.respawn.respawns.checked_sub(1)?;
    Some(PendingRespawn {
        request: record.request.clone(),
        respawn: RespawnRecord { respawns, ..record.respawn.clone() },
        respawn_at: agent.record.spawned_at,
        start: RespawnStart::At(0),
    })
}

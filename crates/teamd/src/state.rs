//! What the daemon knows: its teams and the roster of their agents, each with the phase of its life.
//!
//! Owned by the loop alone. What must outlive a crash is the [`Roster`]; everything else is learned again
//! from tmux, from the joins that reconnect, and from the files.

use crate::event::ConnId;
use crate::files::Which;
use crate::notices::Notices;
use crate::roster::{Comeback, Ground, ROSTER_VERSION, Record, Resting, Roster, SpawnId};
use crate::tale::{Tale, TaskTale};
use protocol::asked::AskedKind;
use protocol::color::Color;
use protocol::control::{Activity, Delete, EndedAgent, Layout, Lead, PastAgent, Response, Spawn, TurnNow};
use protocol::id::{Mint, RequestId, TaskId};
use protocol::name::{AgentName, TeamName};
use protocol::policy::{By, Policy};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use store::OpenRequest;

/// One supervised agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) record: Record,
    pub(crate) phase: Phase,
    pub(crate) activity: Activity,
    /// Since when the activity is what it is, ms since the epoch.
    pub(crate) since: u64,
    /// The subject of the task it has in progress.
    pub(crate) task: Option<String>,
    /// What its join says of its turns, where join runs them.
    pub(crate) turn: Option<TurnNow>,
    /// It said itself whether it is in a turn.
    pub(crate) has_said: bool,
    /// What its client wrote of its activity when config.json was looked at last.
    pub(crate) wrote: Option<Activity>,
    /// It was woken for this task, and has not moved since.
    pub(crate) offered: Option<TaskId>,
    /// What it asks and somebody has to answer.
    pub(crate) asks: BTreeSet<AskedKind>,
    /// What the hooks of its program have told.
    pub(crate) hooks: Hooks,
}

impl Agent {
    pub(crate) fn new(record: Record, phase: Phase, since: u64) -> Agent {
        Agent {
            record,
            phase,
            activity: Activity::Active,
            since,
            task: None,
            turn: None,
            has_said: false,
            wrote: None,
            offered: None,
            asks: BTreeSet::new(),
            hooks: Hooks::default(),
        }
    }
}

/// Hooks of one program.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// The connection of the one that waits for mail.
    pub(crate) parked: Option<ConnId>,
    /// Something may have come while none was parked: the next one is to look. So it is too while nobody knows.
    pub(crate) look: bool,
    /// The end of the turn has been told.
    pub(crate) ended: bool,
    /// The dialog that the program waits at.
    pub(crate) dialog: Option<String>,
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks { parked: None, look: true, ended: false, dialog: None }
    }
}

/// A session that leads a team.
#[derive(Debug)]
pub(crate) struct Leading {
    pub(crate) lead: Lead,
    /// What its process is watched by.
    pub(crate) life: SpawnId,
    /// When its turn began, ms since the epoch.
    pub(crate) since: u64,
    pub(crate) hooks: Hooks,
}

impl Leading {
    pub(crate) fn new(lead: Lead) -> Leading {
        Leading { lead, life: SpawnId::fresh(), since: 0, hooks: Hooks::default() }
    }
}

/// An agent's life; each variant carries just what exists in it.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Asked for; no agent runs yet.
    Starting(Starting),
    /// Its join has, or had, its agent running.
    Running(Link),
    /// It is to end.
    Stopping(Link, Stopping),
    /// It ended; pane and files are being put in order.
    Gone(Gone),
}

/// On the way from the request to the agent.
#[derive(Debug)]
pub(crate) struct Starting {
    pub(crate) spawn: Box<Spawn>,
    /// Who asked; none once they have their answer.
    pub(crate) client: Option<ConnId>,
    pub(crate) conn: Option<ConnId>,
    /// The first process's pid, once tmux told it, or whoever started it without a pane.
    pub(crate) first_pid: Option<u32>,
    pub(crate) stage: StartStage,
    /// Milliseconds on [`crate::event::Now::mono`].
    pub(crate) until: u64,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    /// tmux makes the pane (or we a process), join connects: in either order.
    Opening,
    /// The files are written.
    Registering,
    /// join has the green light.
    Going,
}

/// How we reach a running agent's join.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// None after a crash of ours, until it reconnects.
    pub(crate) conn: Option<ConnId>,
}

/// On the way out.
#[derive(Debug)]
pub(crate) enum Stopping {
    /// The request is in its inbox.
    Asked(Asked),
    /// It said yes and may end by itself until then.
    Approved { until: u64 },
    /// join is ending it: TERM, then KILL; at `until` join itself is killed.
    Ending { until: u64, forced: bool },
}

/// A shutdown request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) reason: Option<String>,
    pub(crate) until: u64,
    pub(crate) again: u64,
    pub(crate) force: bool,
}

/// After the end.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) how: String,
    pub(crate) pane_closed: bool,
    pub(crate) filed: Filed,
}

/// How far the files are in order after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filed {
    /// Under way.
    Pending,
    /// A file could not be changed; tried again at the next rescan.
    Failed,
    /// Nothing there speaks of it as living.
    Done,
}

/// One team of ours.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// How many teammates ever joined: decides the next colour.
    pub(crate) joined: u64,
    /// A look at the tasks is under way / another is wanted after it.
    pub(crate) looking: Look,
    /// What the next look is to take in.
    pub(crate) unseen: Which,
    /// The same for inboxes, by the name of the file.
    pub(crate) reading: BTreeMap<String, Look>,
    /// The tasks as the event log has told them.
    pub(crate) told: BTreeMap<TaskId, TaskTale>,
    /// Members whose life has ended, the latest last.
    pub(crate) past: Vec<PastAgent>,
    /// The worktrees of its members, of those that have ended too.
    pub(crate) grounds: Vec<Ground>,
    /// Names that are taken by a worktree that is made, or was made just now.
    pub(crate) held: BTreeMap<AgentName, Held>,
    /// Its worktrees are being removed: nobody is started meanwhile.
    pub(crate) sweeping: bool,
    /// Of its windows.
    pub(crate) layout: Layout,
    /// Who answers what its members ask.
    pub(crate) policy: Policy,
    /// A look at what they ask is under way / another is wanted after it.
    pub(crate) asking: Look,
    /// What they ask and nobody has answered, by who and under which id.
    pub(crate) asked: BTreeMap<(AgentName, RequestId), Pending>,
    /// The requests that the event log has told.
    pub(crate) opened: BTreeSet<RequestId>,
}

/// How far the way from a worktree to its agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Git is at work.
    Making,
    /// It is there, and its agent is to be started until then, on [`crate::event::Now::mono`].
    Until(u64),
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Box<OpenRequest>,
    pub(crate) stage: Asking,
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Somebody is to answer; at `until`, on the daemon's own clock, the policy does.
    Waits { until: Option<u64> },
    /// The policy's answer is being written.
    Answering(Given),
    /// It could not be: again at the next look.
    Failed,
}

/// An answer, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) by: By,
    pub(crate) approved: bool,
}

impl Pending {
    pub(crate) fn until(&self) -> Option<u64> {
        match self.stage {
            Asking::Waits { until } => until,
            Asking::Answering(_) | Asking::Failed => None,
        }
    }
}

/// Collapses a storm of changes into at most two looks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing under way.
    #[default]
    Rest,
    /// A look is under way.
    Looking,
    /// Something changed since it began.
    Again,
}

impl Look {
    /// Whether one is to begin now; else the one under way is followed by another.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = *self == Look::Rest;
        *self = if due { Look::Looking } else { Look::Again };
        due
    }
}

/// A client that waits for several ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) client: ConnId,
    pub(crate) pending: BTreeSet<SpawnId>,
    pub(crate) ended: Vec<EndedAgent>,
    pub(crate) then: Then,
}

impl Waiting {
    /// A wait for these; `ended` are those that need none.
    pub(crate) fn of(client: ConnId, ids: &BTreeSet<SpawnId>, ended: Vec<EndedAgent>, then: Then) -> Waiting {
        Waiting { client, pending: ids.clone(), ended, then }
    }
}

/// What follows when all that was waited for has ended.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// The answer.
    Reply,
    /// The team's worktrees and files go.
    Delete(Delete),
    /// The daemon goes.
    Down,
}

/// What does not change while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) root: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The program that is the first process of every pane.
    pub(crate) pane_program: PathBuf,
    /// Everything of ours that outlives the daemon.
    pub(crate) state: PathBuf,
    pub(crate) pid: u32,
}

impl Setting {
    /// Where an agent's output goes.
    pub(crate) fn log_of(&self, team: &TeamName, name: &AgentName) -> PathBuf {
        self.state.join("logs").join("agents").join(team.as_str()).join(format!("{name}.log"))
    }
}

/// How changes of files come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nobody has told of our probe: by looking, until somebody does.
    Rescan,
    /// By events; a look now and then is the net behind them.
    Events,
}

impl Watch {
    /// Between two looks at all files, ms.
    pub(crate) fn rescan_every(self) -> u64 {
        match self {
            Watch::Rescan => 2_000,
            Watch::Events => 30_000,
        }
    }

    /// For `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Watch::Rescan => "rescan",
            Watch::Events => "events",
        }
    }
}

/// Everything the loop owns.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) setting: Setting,
    pub(crate) teams: BTreeMap<TeamName, Team>,
    /// Those of Claude Code's own sessions: watched, told of, and left alone.
    pub(crate) sessions: BTreeMap<TeamName, Team>,
    /// What an earlier daemon told of tasks of sessions that have not been seen yet.
    pub(crate) told_before: BTreeMap<TeamName, BTreeMap<TaskId, TaskTale>>,
    pub(crate) agents: BTreeMap<SpawnId, Agent>,
    pub(crate) waiting: Vec<Waiting>,
    /// Clients that wait for the end of an agent's turn.
    pub(crate) interrupting: Vec<(SpawnId, ConnId)>,
    /// Members that are to be started again.
    pub(crate) resting: Vec<Resting>,
    /// What people are to be told.
    pub(crate) notices: Notices,
    /// The sessions that lead teams.
    pub(crate) leads: BTreeMap<TeamName, Leading>,
    /// Answers by the caller's own token, newest last, so that a retry does not act twice.
    pub(crate) answered: VecDeque<(String, Response)>,
    /// The tokens of calls that are under way.
    pub(crate) calls: BTreeMap<ConnId, String>,
    /// Clients that asked again what is under way already.
    pub(crate) also: Vec<(ConnId, String)>,
    pub(crate) mint: Mint,
    pub(crate) watch: Watch,
    pub(crate) rescan_at: u64,
    /// No new agents: the daemon is going down.
    pub(crate) closing: bool,
    /// The roster on disk is older than this one.
    pub(crate) dirty: bool,
    /// It could not be written: again at the next rescan.
    pub(crate) unsaved: bool,
}

/// How many answers are kept for retries.
const ANSWERS: usize = 256;

/// How many members whose life has ended a team shows.
const PAST: usize = 32;

impl State {
    pub(crate) fn new(setting: Setting, roster: Roster, mut tale: Tale) -> State {
        let agents = roster.agents.into_iter().map(|record| {
            let phase = Phase::Running(Link::default());
            let since = record.born;
            (record.spawn.clone(), Agent::new(record, phase, since))
        });
        let (mut past, mut grounds, mut layouts) = (roster.past, roster.worktrees, roster.layouts);
        let teams = roster.teams.into_iter().map(|(name, joined)| {
            let told = tale.tasks.remove(&name).unwrap_or_default();
            let past = past.remove(&name).unwrap_or_default();
            let opened = tale.requests.remove(&name).unwrap_or_default();
            let grounds = grounds.remove(&name).unwrap_or_default();
            let layout = layouts.remove(&name).unwrap_or_default();
            (name, Team { joined, told, past, opened, grounds, layout, ..Team::default() })
        });
        State {
            setting,
            teams: teams.collect(),
            sessions: BTreeMap::new(),
            told_before: tale.tasks,
            agents: agents.collect(),
            waiting: Vec::new(),
            interrupting: Vec::new(),
            resting: roster.resting,
            notices: Notices::default(),
            leads: roster.leads.into_iter().map(|lead| (lead.team.clone(), Leading::new(lead))).collect(),
            answered: VecDeque::new(),
            calls: BTreeMap::new(),
            also: Vec::new(),
            mint: Mint::default(),
            watch: Watch::Rescan,
            rescan_at: 0,
            closing: false,
            dirty: false,
            unsaved: false,
        }
    }

    /// After a crash: whether each agent was idle, as config.json had it.
    pub(crate) fn recall(&mut self, is_active: impl Fn(&TeamName, &AgentName) -> Option<bool>) {
        for agent in self.agents.values_mut() {
            if is_active(&agent.record.team, &agent.record.name) == Some(false) {
                agent.activity = Activity::Idle;
            }
        }
    }

    /// After a start: what each team's policy was.
    pub(crate) fn recall_policies(&mut self, policy: impl Fn(&TeamName) -> Policy) {
        self.teams.iter_mut().for_each(|(team, known)| known.policy = policy(team));
    }

    /// A team whose files are watched, ours or not.
    pub(crate) fn watched_mut(&mut self, team: &TeamName) -> Option<&mut Team> {
        if team.is_foreign() { self.sessions.get_mut(team) } else { self.teams.get_mut(team) }
    }

    /// Their names, ours first.
    pub(crate) fn watched(&self) -> Vec<TeamName> {
        self.teams.keys().chain(self.sessions.keys()).cloned().collect()
    }

    /// The living member of that name, whatever its case.
    pub(crate) fn member(&self, team: &TeamName, name: &AgentName) -> Option<&Agent> {
        self.agents.values().find(|agent| agent.record.team == *team && agent.record.name == *name)
    }

    /// The members of a team, in the order in which they joined.
    pub(crate) fn members(&self, team: &TeamName) -> Vec<&Agent> {
        let mut members: Vec<&Agent> =
            self.agents.values().filter(|agent| agent.record.team == *team).collect();
        members.sort_by_key(|agent| agent.record.born);
        members
    }

    /// The agent whose join talks over this connection.
    pub(crate) fn by_conn(&mut self, conn: ConnId) -> Option<&mut Agent> {
        self.agents.values_mut().find(|agent| agent.phase.conn() == Some(conn))
    }

    /// The colour of the next teammate; none where the team has been deleted meanwhile.
    pub(crate) fn next_color(&mut self, team: &TeamName) -> Option<Color> {
        let team = self.teams.get_mut(team)?;
        team.joined += 1;
        Some(Color::nth(team.joined - 1))
    }

    /// Remembers an answer for a caller that asks again.
    pub(crate) fn remember(&mut self, once: String, response: Response) {
        if self.answered.len() == ANSWERS {
            self.answered.pop_front();
        }
        self.answered.push_back((once, response));
    }

    /// For `status`; of one name the latest life alone.
    pub(crate) fn remember_past(&mut self, team: &TeamName, past: PastAgent) {
        let Some(team) = self.teams.get_mut(team) else { return };
        team.past.retain(|other| other.name != past.name);
        if team.past.len() == PAST {
            team.past.remove(0);
        }
        team.past.push(past);
        self.dirty = true;
    }

    pub(crate) fn roster(&self) -> Roster {
        Roster {
            version: ROSTER_VERSION,
            teams: self.teams.iter().map(|(name, team)| (name.clone(), team.joined)).collect(),
            layouts: self
                .teams
                .iter()
                .filter(|(_, team)| team.layout != Layout::default())
                .map(|(name, team)| (name.clone(), team.layout))
                .collect(),
            agents: self
                .agents
                .values()
                .filter(|a| !a.phase.is_starting_unseen())
                .map(|a| a.record.clone())
                .collect(),
            past: self.teams.iter().map(|(name, team)| (name.clone(), team.past.clone())).collect(),
            resting: self
                .resting
                .iter()
                .cloned()
                .chain(self.agents.values().filter_map(begins_again))
                .collect(),
            worktrees: self.teams.iter().map(|(name, team)| (name.clone(), team.grounds.clone())).collect(),
            leads: self.leads.values().map(|leading| leading.lead.clone()).collect(),
        }
    }
}

/// A further life that the roster does not know yet: after a crash of ours it is begun once more.
fn begins_again(agent: &Agent) -> Option<Resting> {
    let comeback = agent.record.comeback.clone().filter(|_| agent.phase.is_starting_unseen())?;
    let restarts = comeback.restarts.checked_sub(1)?;
    Some(Resting { comeback: Comeback { restarts, ..comeback }, at: agent.record.born, due: 0 })
}

impl Phase {
    /// It has ended and been told of; only files wait to be put in order.
    pub(crate) fn is_past(&self) -> bool {
        matches!(self, Phase::Gone(gone) if gone.filed == Filed::Failed)
    }

    /// The connection of its join.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            Phase::Starting(starting) => starting.conn,
            Phase::Running(link) | Phase::Stopping(link, _) => link.conn,
            Phase::Gone(_) => None,
        }
    }

    /// Not worth a line on disk: its join waits for a green light that only this daemon can give.
    fn is_starting_unseen(&self) -> bool {
        matches!(self, Phase::Starting(starting) if starting.stage == StartStage::Opening)
    }

    /// The word for `status`.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Phase::Starting(_) => "starting",
            Phase::Running(Link { conn: None }) => "unknown",
            Phase::Running(_) => "running",
            Phase::Stopping(..) => "stopping",
            Phase::Gone(_) => "gone",
        }
    }
}

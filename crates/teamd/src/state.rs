//! What the daemon knows: its teams and the roster of their agents, each with the phase of its life.
//!
//! Owned by the loop alone. What must outlive a crash is the [`Roster`]; everything else is learned again
//! from tmux, from the joins that reconnect, and from the files.

mod agent;
mod awake;
mod board;
mod phase;
mod setting;
mod team;
mod waiting;

pub(crate) use agent::{Agent, Hooks, Leading};
pub(crate) use awake::Awake;
pub(crate) use board::Board;
pub(crate) use phase::{Asked, Gone, Heir, Link, Order, Phase, StartStage, Starting, Stopping};
pub(crate) use setting::{Setting, Watch};
pub(crate) use team::{Asking, Deleting, Given, Held, Look, Pending, Team};
pub(crate) use waiting::{Onlooker, Onlookers, Then, Waiting};

use crate::event::ConnId;
use crate::notices::{Notice, Notices};
use crate::roster::{Comeback, ROSTER_VERSION, Resting, Roster, SpawnId};
use crate::step::Asks;
use crate::tale::Tale;
use protocol::color::Color;
use protocol::control::{Activity, Layout, PastMember, Response};
use protocol::error::ErrorReport;
use protocol::id::UniqueMillis;
use protocol::name::{AgentName, TeamName};
use protocol::policy::Policy;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Everything the loop owns.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) setting: Setting,
    /// As in the roster.
    pub(crate) boot: Option<String>,
    pub(crate) teams: BTreeMap<TeamName, Team>,
    /// Those of Claude Code's own sessions: watched, told of, and left alone.
    pub(crate) sessions: BTreeMap<TeamName, Team>,
    /// What an earlier daemon told of sessions that have not been seen yet.
    pub(crate) told_before: Tale,
    pub(crate) agents: BTreeMap<SpawnId, Agent>,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) onlookers: Onlookers,
    /// Clients that wait for the end of an agent's turn.
    pub(crate) interrupting: Vec<(SpawnId, ConnId)>,
    /// Agents that can be put on their teams, and since when, ms on [`crate::event::Now::mono`]; the oldest first.
    pub(crate) enrolling: Vec<(u64, SpawnId)>,
    /// Members that are to be started again.
    pub(crate) resting: Vec<Resting>,
    /// What people are to be told.
    pub(crate) notices: Notices,
    /// Since when anybody could do anything.
    pub(crate) awake: Awake,
    /// The sessions that lead teams.
    pub(crate) leads: BTreeMap<TeamName, Leading>,
    /// Answers by the caller's own token, newest last, so that a retry does not act twice.
    pub(crate) answered: VecDeque<(String, Response)>,
    /// The tokens of calls that are under way.
    pub(crate) calls: BTreeMap<ConnId, String>,
    /// Clients that asked again what is under way already.
    pub(crate) also: Vec<(ConnId, String)>,
    pub(crate) mint: UniqueMillis,
    pub(crate) watch: Watch,
    /// Who asks which task is next.
    pub(crate) asks: Asks,
    /// The watcher was asked to watch all that is to be looked at, and has not said that it does / is to be asked again.
    pub(crate) arming: Look,
    /// What it is to be asked to watch besides, the next time: nobody knows yet whether there is a team in it.
    pub(crate) newcomers: BTreeSet<TeamName>,
    pub(crate) rescan_at: u64,
    /// When the watcher is asked again whether it tells.
    pub(crate) probe_at: u64,
    /// When everything was looked at last, ms.
    pub(crate) looked_at: Option<u64>,
    pub(crate) closing: Closing,
    /// Who waits for the daemon's end, the last of them: with the answer it ends.
    pub(crate) leaves_with: Option<ConnId>,
    /// The roster on disk is older than this one.
    pub(crate) dirty: bool,
    /// The latest time that was seen, ms since the epoch: ahead of the clock where that was set back.
    pub(crate) latest: u64,
    /// It could not be written: again at the next rescan.
    pub(crate) unsaved: bool,
    /// Why nobody can be served at this root any more.
    pub(crate) lost: Option<ErrorReport>,
}

/// Whether the daemon is going down: then there are no new agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    Not,
    Down,
    /// And its agents are put to rest.
    Rest,
}

impl Closing {
    pub(crate) fn is_under_way(self) -> bool {
        self != Closing::Not
    }
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
        let mut spent = roster.spent;
        let teams = roster.teams.into_iter().map(|(name, joined)| {
            let told = tale.tasks.remove(&name).unwrap_or_default();
            let past = past.remove(&name).unwrap_or_default();
            let told_asked = tale.requests.remove(&name).unwrap_or_default();
            let grounds = grounds.remove(&name).unwrap_or_default();
            let layout = layouts.remove(&name).unwrap_or_default();
            let spent = spent.remove(&name).unwrap_or_default();
            (name, Team { joined, told, past, told_asked, grounds, layout, spent, ..Team::default() })
        });
        let teams: BTreeMap<TeamName, Team> = teams.collect();
        let is_there = |notice: &Notice| notice.team.is_claude_session() || teams.contains_key(&notice.team);
        let notices = Notices::of(roster.untold.into_iter().filter(is_there));
        State {
            setting,
            boot: roster.boot,
            teams,
            sessions: BTreeMap::new(),
            told_before: tale,
            agents: agents.collect(),
            waiting: Vec::new(),
            onlookers: Onlookers::default(),
            interrupting: Vec::new(),
            enrolling: Vec::new(),
            resting: roster.resting,
            notices,
            awake: Awake::default(),
            leads: roster.leads.into_iter().map(|lead| (lead.team.clone(), Leading::new(lead))).collect(),
            answered: VecDeque::new(),
            calls: BTreeMap::new(),
            also: Vec::new(),
            mint: UniqueMillis::default(),
            watch: Watch::Rescan,
            asks: Asks::default(),
            arming: Look::default(),
            newcomers: BTreeSet::new(),
            rescan_at: 0,
            probe_at: 0,
            looked_at: None,
            closing: Closing::Not,
            leaves_with: None,
            dirty: false,
            latest: 0,
            unsaved: false,
            lost: None,
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
        if team.is_claude_session() { self.sessions.get_mut(team) } else { self.teams.get_mut(team) }
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

    /// The living agent that a caller speaks for.
    pub(crate) fn by_token(&self, token: Option<&str>) -> Option<&Agent> {
        let mut living = self.agents.values().filter(|agent| !matches!(agent.phase, Phase::Gone(_)));
        living.find(|agent| token == Some(agent.record.token.as_str()))
    }

    /// The agent whose join talks over this connection.
    pub(crate) fn by_conn(&mut self, conn: ConnId) -> Option<&mut Agent> {
        self.agents.values_mut().find(|agent| agent.phase.conn() == Some(conn))
    }

    /// The colour of the next teammate; none where the team has been deleted meanwhile.
    pub(crate) fn next_color(&mut self, team: &TeamName) -> Option<Color> {
        let team = self.teams.get_mut(team)?;
        team.joined += 1;
        Some(Color::for_joined_count(team.joined - 1))
    }

    /// Remembers an answer for a caller that asks again.
    pub(crate) fn remember(&mut self, once: String, response: Response) {
        if self.answered.len() == ANSWERS {
            self.answered.pop_front();
        }
        self.answered.push_back((once, response));
    }

    /// For `status`; of one name the latest life alone.
    pub(crate) fn remember_past(&mut self, team: &TeamName, past: PastMember) {
        let Some(team) = self.teams.get_mut(team) else { return };
        team.past.retain(|other| other.name != past.name);
        // Who comes back is not forgotten, however many they are.
        let gone = team.past.iter().filter(|past| !past.has_respawn()).count();
        if let Some(oldest) = team.past.iter().position(|past| !past.has_respawn()).filter(|_| gone >= PAST) {
            team.past.remove(oldest);
        }
        team.past.push(past);
        self.dirty = true;
    }

    pub(crate) fn roster(&self) -> Roster {
        Roster {
            version: ROSTER_VERSION,
            boot: self.boot.clone(),
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
            spent: self.teams.iter().map(|(name, team)| (name.clone(), team.spent.clone())).collect(),
            leads: self.leads.values().map(|leading| leading.lead.clone()).collect(),
            untold: self.notices.untold(),
        }
    }
}

/// A further life that the roster does not know yet: after a crash of ours it is begun once more.
fn begins_again(agent: &Agent) -> Option<Resting> {
    let comeback = agent.record.comeback.as_ref().filter(|_| agent.phase.is_starting_unseen())?;
    let restarts = comeback.restarts.checked_sub(1)?;
    let comeback = Comeback { restarts, ..comeback.clone() };
    Some(Resting { comeback, at: agent.record.born, due: 0, put_away: false })
}

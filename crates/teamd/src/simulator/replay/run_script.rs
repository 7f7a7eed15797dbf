//! Runs a script: the core of today, in a simulated world without faults, on a virtual clock.

use crate::core::connection_spawn_and_watch_ids::set_uuid_counter;
use crate::core::deadlines::next_deadline;
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::replay::comparable_history::TimedEvent;
use crate::simulator::replay::conditions_of_record::ConditionsOfRecord;
use crate::simulator::replay::script_from_record::{
    BEFORE_FIRST_REPORT, OutsideAction, Script, ScriptedTurn,
};
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::{AgentIdentity, REQUEST_ID_VARIABLE};
use crate::simulator::simulation::Simulation;
use protocol::control_socket::{Activity, Request};
use protocol::event_log_line::Event;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::parse_iso8601;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest time that a shim is held back in the replay, in milliseconds. If a shim could look
/// for work slightly earlier than in the record, it is held back until the recorded time. If the
/// difference is larger than this limit, a decision of the daemon has changed. The replay must show
/// the change, so the shim is not held back any longer.
const MAX_HOLD: u64 = 1_000;
/// How long the replay goes on after the last line of the record, in milliseconds.
const SETTLING_TIME: u64 = 1_000;
/// Maximum number of actions of a replay: `MAX_STEPS.0` for each line of the record, plus
/// `MAX_STEPS.1`. If a replay has more actions, it repeats some of them without end, or its record
/// covers more than a year.
const MAX_STEPS: (usize, usize) = (100, 20_000_000);

/// Runs a script. Returns the event log of the team.
///
/// # Errors
///
/// The replay does not end.
pub(super) fn run_script(script: Script) -> Result<Vec<TimedEvent>, String> {
    set_uuid_counter(1 << 40);
    let max_steps = MAX_STEPS.0 * script.lines + MAX_STEPS.1;
    let mut replay = Replay::new(script);
    replay.simulation.start();
    for _ in 0..max_steps {
        if replay.act_now() {
            continue;
        }
        let Some(next) = replay.next_time() else { return Ok(replay.into_log()) };
        let now = replay.simulation.now.mono;
        replay.simulation.advance_clock(next.max(now + 1) - now);
    }
    Err(format!("the replay does not end within {max_steps} steps"))
}

/// A replay that is running.
struct Replay {
    simulation: Simulation<ConditionsOfRecord>,
    /// When the record starts, on the monotonic clock.
    start: u64,
    /// When the record starts, on the wall clock.
    wall_start: u64,
    script: Script,
    /// The running turns, by the pid of the shim.
    turns: BTreeMap<u32, RunningTurn>,
    /// The activity and the turn number that each shim has reported last.
    reported: BTreeMap<u32, (Activity, u64)>,
    /// The shims that could scan for their next work.
    waiting: BTreeMap<u32, WaitingShim>,
}

/// A shim that could scan for its next work.
struct WaitingShim {
    /// Since when, in milliseconds since the start of the replay.
    since: u64,
    /// Whether the agent must report "idle" next. Set when the shim would find no work and the next
    /// report of the agent in the record is "idle". Stays set if work comes later, because a real
    /// shim sends this report some milliseconds after it has looked for work.
    is_idle: bool,
}

/// A turn that is replayed.
struct RunningTurn {
    /// When the turn starts in the replay, in milliseconds since the start of the replay. The
    /// messages and the end of the turn have times relative to this start.
    start: u64,
    turn: ScriptedTurn,
}

impl Replay {
    fn new(mut script: Script) -> Replay {
        let conditions = ConditionsOfRecord { agents: std::mem::take(&mut script.replayed) };
        let mut simulation = Simulation::new(conditions, SimulatedDisk::with_event_log());
        let (start, wall_start) = (simulation.now.mono, simulation.now.wall);
        simulation.conditions.agents.delay(start);
        let (turns, reported, waiting) = Default::default();
        Replay { simulation, start, wall_start, script, turns, reported, waiting }
    }

    fn elapsed(&self) -> u64 {
        self.simulation.now.mono - self.start
    }

    /// Does the first thing that is due. Returns false if nothing is.
    fn act_now(&mut self) -> bool {
        self.wake_for_messages();
        if self.run_daemon() {
            return true;
        }
        self.update_waiting_shims();
        self.run_turn_action() || self.run_first_shim() || self.run_outside_action()
    }

    fn run_daemon(&mut self) -> bool {
        let action = self.simulation.due_daemon_actions().into_iter().next();
        action.iter().for_each(|action| action(&mut self.simulation));
        self.follow_turns();
        action.is_some()
    }

    /// Follows which shims could scan for their next work.
    fn update_waiting_shims(&mut self) {
        let elapsed = self.elapsed();
        let scanning: Vec<u32> = self.simulation.due_shims().filter(|pid| self.scans(*pid)).collect();
        self.waiting.retain(|pid, _| scanning.contains(pid));
        for pid in scanning {
            let finds_nothing = self.is_idle_next(pid) && self.finds_nothing(pid);
            let waiting = self.waiting.entry(pid).or_insert(WaitingShim { since: elapsed, is_idle: false });
            waiting.is_idle |= finds_nothing;
        }
    }

    /// Runs the next shim that may act now. Shims that may look for work run in the order of the
    /// record. Returns false if no shim may act now.
    fn run_first_shim(&mut self) -> bool {
        let elapsed = self.elapsed();
        let due = self.simulation.due_shims();
        let due = due.map(|pid| (self.hold_until(pid), self.is_idle_next(pid), pid));
        let Some((.., pid)) = due.filter(|(until, ..)| *until <= elapsed).min() else { return false };
        let pid = self.recorded_claimer(pid).unwrap_or(pid);
        if self.waiting.get(&pid).is_some_and(|waiting| waiting.is_idle) && !self.has_message(pid) {
            self.waiting.remove(&pid);
            self.simulation.become_idle(pid);
        } else {
            self.simulation.run_shim(pid);
        }
        self.follow_turns();
        true
    }

    /// Wakes the agents whose next recorded turn on messages is due. The daemon does not wake them:
    /// in the record, the shim's own timer started the turn, or the agent was not idle yet.
    fn wake_for_messages(&mut self) {
        let now = self.simulation.now.mono;
        let starts = |name: &MemberName| {
            self.simulation.conditions.agents.next_message_turn(name).filter(|start| *start <= now)
        };
        let is_due = |identity: &AgentIdentity| {
            starts(&identity.name).is_some() && self.simulation.next_message(identity).is_some()
        };
        let pids: Vec<u32> = self
            .simulation
            .running_shims()
            .filter(|(_, shim)| shim.identity.as_ref().is_some_and(is_due))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in pids {
            let shim = self.simulation.shims.get_mut(&pid);
            let turn_agent = shim.and_then(|shim| shim.turn_agent.as_mut());
            turn_agent.into_iter().for_each(|turn_agent| turn_agent.is_awake = true);
        }
    }

    /// Whether the next step of this shim is a scan for its next work.
    fn scans(&self, pid: u32) -> bool {
        let shim = &self.simulation.shims[&pid];
        shim.inbox.is_empty() && shim.conn.is_some() && shim.must_scan()
    }

    /// When this shim may act. A shim that scans for its next work waits for the recorded time, but
    /// at most [`MAX_HOLD`]. Other shims act at once.
    fn hold_until(&self, pid: u32) -> u64 {
        let Some(waiting) = self.waiting.get(&pid) else { return 0 };
        let recorded = self.next_report(pid).map_or(u64::MAX, |(recorded, _)| recorded - self.start);
        recorded.min(waiting.since + MAX_HOLD)
    }

    /// When the agent of a shim next reports something, on the monotonic clock.
    fn next_report(&self, pid: u32) -> Option<(u64, Activity)> {
        let identity = self.simulation.shims.get(&pid)?.identity.as_ref()?;
        self.simulation.conditions.agents.next_report(&identity.name)
    }

    fn is_idle_next(&self, pid: u32) -> bool {
        matches!(self.next_report(pid), Some((_, Activity::Idle)))
    }

    /// Whether an agent that scans now finds no text and no task. Other messages start no turn.
    fn finds_nothing(&self, pid: u32) -> bool {
        let Some(identity) = self.simulation.agent_identity(pid) else { return false };
        let files = self.simulation.disk.teams.get(&self.script.team);
        let task = files.and_then(|files| files.next_task(&identity.name, &BTreeSet::new()));
        let message = self.simulation.next_message(&identity);
        task.is_none() && message.is_none_or(|message| message.payload.is_some())
    }

    /// If the shim `pid` would now find a task that another waiting shim claims in the record,
    /// returns that other shim, which must look for work first. `None` if `pid` itself claims this
    /// task in the record.
    ///
    /// The recorded times do not give this order, because a shim claims a task some milliseconds
    /// before the daemon records the claim.
    fn recorded_claimer(&self, pid: u32) -> Option<u32> {
        let waiting = self.waiting.get(&pid)?;
        let identity = self.simulation.agent_identity(pid).filter(|_| !waiting.is_idle)?;
        let files = self.simulation.disk.teams.get(&self.script.team)?;
        let task = files.next_task(&identity.name, &BTreeSet::new())?;
        let claims = |pid: &u32| self.next_claim(*pid) == Some(task);
        self.waiting.keys().copied().find(|pid| claims(pid)).filter(|_| !claims(&pid))
    }

    fn next_claim(&self, pid: u32) -> Option<TaskId> {
        let identity = self.simulation.shims.get(&pid)?.identity.as_ref()?;
        self.simulation.conditions.agents.next_claim(&identity.name)
    }

    fn has_message(&self, pid: u32) -> bool {
        let identity = self.simulation.agent_identity(pid);
        identity.is_some_and(|identity| self.simulation.next_message(&identity).is_some())
    }

    /// Finds the shims that have begun a turn since the last call, and takes the recorded turn for
    /// each of them. The replay then does what the agent did in the recorded turn.
    fn follow_turns(&mut self) {
        let statuses: Vec<_> = self
            .simulation
            .running_shims()
            .filter_map(|(pid, shim)| Some((*pid, shim.turn_agent.as_ref()?.status.clone())))
            .collect();
        for (pid, status) in statuses {
            let reported = (status.activity, status.turn_number);
            let known = self.reported.insert(pid, reported).unwrap_or(BEFORE_FIRST_REPORT);
            if known == reported {
                continue;
            }
            if status.activity == Activity::Active {
                let turn = self.take_turn(pid, status.task());
                self.drop_message_turn(pid, &turn);
                self.turns.insert(pid, RunningTurn::new(self.elapsed(), turn));
            }
        }
    }

    fn drop_message_turn(&mut self, pid: u32, turn: &ScriptedTurn) {
        let name = self.simulation.agent_identity(pid).map(|identity| identity.name);
        let message_turns = &mut self.simulation.conditions.agents.message_turns;
        let starts = name.filter(|_| turn.task.is_none()).and_then(|name| message_turns.get_mut(&name));
        starts.into_iter().for_each(|starts| {
            starts.pop_front();
        });
    }

    /// Takes the recorded turn on `task` from the script, even if the task had another owner in the
    /// record. If `task` is `None`, takes the member's next recorded turn on messages. If there is
    /// no such turn, returns a turn that ends at once.
    fn take_turn(&mut self, pid: u32, task: Option<TaskId>) -> ScriptedTurn {
        let name = self.simulation.agent_identity(pid).map(|identity| identity.name);
        let take = |turns: &mut Vec<ScriptedTurn>| {
            let index = turns.iter().position(|turn| turn.task == task)?;
            Some(turns.remove(index))
        };
        let own = name.and_then(|name| take(self.script.turns.get_mut(&name)?));
        let of_others = || self.script.turns.values_mut().filter(|_| task.is_some()).find_map(take);
        own.or_else(of_others).unwrap_or(ScriptedTurn { end: Some(0), ..ScriptedTurn::new(0, task) })
    }

    /// Lets a running turn do its next action if it is due: send a message, or end with the result
    /// of its task. Returns false if none is due.
    fn run_turn_action(&mut self) -> bool {
        let elapsed = self.elapsed();
        let is_due = |running: &RunningTurn| running.next_time().is_some_and(|next| next <= elapsed);
        let due = self.turns.iter_mut().filter(|(_, running)| is_due(running));
        let due = due.min_by_key(|(_, running)| running.turn.end_reported);
        let Some((&pid, running)) = due else { return false };
        if !running.turn.sent.is_empty() {
            let (_, inbox, message) = running.turn.sent.remove(0);
            self.send(&inbox, &message);
            return true;
        }
        let reason = running.turn.reason;
        running.turn.end = None;
        self.simulation.end_turn(pid, reason);
        true
    }

    fn run_outside_action(&mut self) -> bool {
        if self.script.actions.front().is_none_or(|(at, _)| *at > self.elapsed()) {
            return false;
        }
        match self.script.actions.pop_front().map(|(_, action)| action) {
            Some(OutsideAction::Call { caller, request }) => self.call(caller.as_ref(), *request),
            Some(OutsideAction::WriteTask(task)) => self.write_task(*task),
            Some(OutsideAction::RemoveTask(id)) => {
                self.change_tasks(id, |tasks| tasks.retain(|task| task.id != id));
            }
            Some(OutsideAction::Send { inbox, message }) => self.send(&inbox, &message),
            Some(OutsideAction::Exit { member, report }) => {
                if let Some((pid, _)) = self.running_agent(&member) {
                    self.simulation.end_agent(pid, report);
                }
            }
            None => {}
        }
        true
    }

    /// Sends a call of a person, or of a running agent.
    fn call(&mut self, caller: Option<&MemberName>, mut request: Request) {
        let agent = caller.map(|name| self.running_agent(name));
        let token = match agent {
            // The agent does not run in the replay, so it cannot call.
            Some(None) => return,
            Some(Some((_, identity))) => Some(identity.token),
            None => None,
        };
        if let Request::Spawn(spawn) = &mut request {
            let id = self.simulation.next_pid().to_string();
            spawn.env.insert(REQUEST_ID_VARIABLE.to_owned(), id);
        }
        self.simulation.send_call_as(None, token, request);
    }

    fn running_agent(&self, name: &MemberName) -> Option<(u32, AgentIdentity)> {
        self.simulation.running_shims().find_map(|(pid, shim)| {
            let identity = shim.identity.clone().filter(|identity| identity.name == *name)?;
            Some((*pid, identity))
        })
    }

    fn write_task(&mut self, task: Task) {
        self.change_tasks(task.id, |tasks| {
            match tasks.iter_mut().find(|other| other.id == task.id) {
                Some(existing) => *existing = Arc::new(task),
                None => tasks.push(Arc::new(task)),
            }
            tasks.sort_by_key(|task| task.id);
        });
    }

    fn change_tasks(&mut self, id: TaskId, change: impl FnOnce(&mut Vec<Arc<Task>>)) {
        if let Some(files) = self.simulation.disk.teams.get_mut(&self.script.team) {
            change(&mut files.tasks);
            self.simulation.disk.record_change(&self.script.team, TeamFile::Task(id));
        }
    }

    /// Puts a message into an inbox. Answers to shutdown requests are not in an inbox of the
    /// simulated disk, but kept apart.
    fn send(&mut self, inbox: &MemberName, message: &Message) {
        let (team, from) = (self.script.team.clone(), MemberName::new_unchecked(&message.from));
        let payload = Payload::parse(&message.text);
        let rejection = match &payload {
            Some(Payload::ShutdownApproved(_)) => None,
            Some(Payload::ShutdownRejected(rejected)) => Some(rejected.reason.clone()),
            _ => {
                let at = self.simulation.now.wall;
                self.simulation.disk.send(&team, inbox, &from, payload, at);
                return;
            }
        };
        if let Some(request) = self.last_shutdown_request(&team, &from) {
            self.simulation.write_shutdown_answer(&team, from, request, rejection);
        }
    }

    fn last_shutdown_request(&self, team: &TeamName, member: &MemberName) -> Option<RequestId> {
        self.simulation.disk.teams.get(team)?.shutdown_requests.get(member)?.last().cloned()
    }

    /// The time of the next thing that happens. `None` when the record is over and nothing runs.
    fn next_time(&self) -> Option<u64> {
        let action = self.script.actions.front().map(|(at, _)| *at);
        let turn = self.turns.values().filter_map(RunningTurn::next_time).min();
        let held = self.simulation.due_shims().map(|pid| self.hold_until(pid)).min();
        let message_turn = self.next_message_turn();
        let next = action.into_iter().chain(turn).chain(held).chain(message_turn).min();
        let next = next.map(|elapsed| elapsed + self.start);
        let deadline = self.simulation.daemon.as_ref().map(|daemon| next_deadline(&daemon.state));
        let last = self.start + self.script.end + SETTLING_TIME;
        next.into_iter().chain(deadline).min().filter(|next| *next <= last)
    }

    /// When an agent that runs starts its next turn on messages.
    fn next_message_turn(&self) -> Option<u64> {
        let agents = &self.simulation.conditions.agents;
        let names = self.simulation.running_shims().filter_map(|(_, shim)| shim.identity.as_ref());
        let starts = names.filter_map(|identity| agents.next_message_turn(&identity.name));
        starts.filter(|start| *start > self.simulation.now.mono).min().map(|start| start - self.start)
    }

    fn into_log(self) -> Vec<TimedEvent> {
        let lines = self.simulation.disk.log.iter().flatten();
        let events = lines.filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let events = events.filter(|event| event.team.as_ref() == Some(&self.script.team));
        let elapsed = |event: &Event| Some(parse_iso8601(&event.time)?.saturating_sub(self.wall_start));
        events.map(|event| (elapsed(&event).unwrap_or_default(), event)).collect()
    }
}

impl RunningTurn {
    /// Starts a turn in the replay at the time `elapsed`, or at its recorded start if that is later
    /// by at most [`MAX_HOLD`]. The recorded start is usually some milliseconds later, because a
    /// shim starts a turn after its claim. So the turns of several members end in the order of the
    /// record.
    fn new(elapsed: u64, turn: ScriptedTurn) -> RunningTurn {
        let start = if turn.start <= elapsed + MAX_HOLD { turn.start.max(elapsed) } else { elapsed };
        RunningTurn { start, turn }
    }

    /// When the turn next does something. `None` if it has ended, or if the record ends before it.
    fn next_time(&self) -> Option<u64> {
        let end = self.turn.end.map(|end| end.saturating_sub(self.turn.start));
        let next = self.turn.sent.first().map(|(after, ..)| *after).or(end)?;
        Some(self.start + end.map_or(next, |end| next.min(end)))
    }
}

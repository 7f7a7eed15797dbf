//! Runs a script: the core of today, in a simulated world without faults, on a virtual clock.

use crate::core::connection_spawn_and_watch_ids::set_uuid_counter;
use crate::core::deadlines::next_deadline;
use crate::simulator::clients::CallOrigin;
use crate::simulator::random_calls::REQUEST_ID_VARIABLE;
use crate::simulator::replay::script_from_record::{
    BEFORE_FIRST_REPORT, OutsideAction, Script, ScriptedTurn,
};
use crate::simulator::scans_and_watcher_events::TeamFile;
use crate::simulator::shim::AgentIdentity;
use crate::simulator::simulation::Simulation;
use protocol::control_socket::{Activity, Request};
use protocol::event_log_line::Event;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A shim that could look for work earlier than in the record waits for the recorded time, but at
/// most this long, in milliseconds. An agent that is awake much earlier than in the record was
/// woken by a decision that has changed, so it is not held back.
const MAX_HOLD: u64 = 1_000;
/// How long the replay goes on after the last line of the record, in milliseconds.
const SETTLING_TIME: u64 = 1_000;
/// Maximum number of actions of a replay. More actions are a livelock.
const MAX_STEPS: usize = 1_000_000;

/// Runs a script. Returns the event log of the team, as JSON lines.
pub(super) fn run_script(script: Script) -> Vec<String> {
    set_uuid_counter(1 << 40);
    let mut replay = Replay::new(script);
    replay.simulation.start();
    for _ in 0..MAX_STEPS {
        if replay.act_now() {
            continue;
        }
        let Some(next) = replay.next_time() else { return replay.into_log() };
        let now = replay.simulation.now.mono;
        replay.simulation.advance_clock(next.max(now + 1) - now);
    }
    panic!("the replay does not end");
}

/// A replay that is running.
struct Replay {
    simulation: Simulation,
    /// When the record starts, on the monotonic clock.
    start: u64,
    script: Script,
    /// The running turns, by the pid of the shim.
    turns: BTreeMap<u32, RunningTurn>,
    /// The activity and the turn number that each shim has reported last.
    reported: BTreeMap<u32, (Activity, u64)>,
    /// Since when each shim could have scanned for its next work.
    waiting_since: BTreeMap<u32, u64>,
}

/// A turn that is replayed.
struct RunningTurn {
    /// The recorded start, or the start in the replay if that is much earlier or later. In
    /// milliseconds since the start of the replay.
    start: u64,
    turn: ScriptedTurn,
}

impl Replay {
    fn new(mut script: Script) -> Replay {
        let mut simulation = Simulation::for_replay();
        let start = simulation.now.mono;
        script.replayed.delay(start);
        simulation.replayed = Some(std::mem::take(&mut script.replayed));
        let (turns, reported, waiting_since) = Default::default();
        Replay { simulation, start, script, turns, reported, waiting_since }
    }

    fn elapsed(&self) -> u64 {
        self.simulation.now.mono - self.start
    }

    /// Does the first thing that is due. Returns false if nothing is.
    fn act_now(&mut self) -> bool {
        self.wake_for_messages();
        self.run_daemon() || self.run_first_shim() || self.run_turn_action() || self.run_outside_action()
    }

    fn run_daemon(&mut self) -> bool {
        let action = self.simulation.due_daemon_actions().into_iter().next();
        action.iter().for_each(|action| action(&mut self.simulation));
        self.follow_turns();
        action.is_some()
    }

    /// Runs the shim that acts next. Shims that could scan at the same time take the order of the
    /// record. Returns whether there was one.
    fn run_first_shim(&mut self) -> bool {
        let elapsed = self.elapsed();
        let scanning: Vec<u32> = self.simulation.due_shims().filter(|pid| self.scans(*pid)).collect();
        self.waiting_since.retain(|pid, _| scanning.contains(pid));
        for pid in scanning {
            self.waiting_since.entry(pid).or_insert(elapsed);
        }
        let due = self.simulation.due_shims().map(|pid| (self.hold_until(pid), pid));
        let Some((_, pid)) = due.filter(|(until, _)| *until <= elapsed).min() else { return false };
        self.simulation.run_shim(pid);
        self.follow_turns();
        true
    }

    /// Wakes the agents that start a turn on messages now. In the record, the shim's own timer has
    /// woken them, or the agent was not idle yet.
    fn wake_for_messages(&mut self) {
        let now = self.simulation.now.mono;
        let starts = |name: &MemberName| {
            self.simulation.replayed.as_ref()?.next_message_turn(name).filter(|start| *start <= now)
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

    /// When this shim may act: at once, or if it scans for its next work, when it did in the
    /// record.
    fn hold_until(&self, pid: u32) -> u64 {
        let Some(since) = self.waiting_since.get(&pid) else { return 0 };
        let name = self.simulation.agent_identity(pid).map(|identity| identity.name);
        let replayed = self.simulation.replayed.as_ref();
        let recorded = name.and_then(|name| replayed?.next_report(&name));
        recorded.map_or(0, |recorded| (recorded - self.start).min(since + MAX_HOLD))
    }

    /// Compares what the shims report of their turns with what they reported before. A new turn
    /// gets its script.
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
                let is_on_time = self.elapsed().abs_diff(turn.start) <= MAX_HOLD;
                let start = if is_on_time { turn.start } else { self.elapsed() };
                self.turns.insert(pid, RunningTurn { start, turn });
            }
        }
    }

    fn drop_message_turn(&mut self, pid: u32, turn: &ScriptedTurn) {
        let name = self.simulation.agent_identity(pid).map(|identity| identity.name);
        let replayed = self.simulation.replayed.as_mut().filter(|_| turn.task.is_none());
        if let Some(starts) = name.and_then(|name| replayed?.message_turns.get_mut(&name)) {
            starts.pop_front();
        }
    }

    /// Takes the recorded turn of this task, even if another member had it. Without a task, takes
    /// the member's next recorded turn on messages. A turn that the record does not have ends at
    /// once.
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

    /// Does the next thing that a running turn does now: writes the result of its task, sends a
    /// message, or ends. Returns whether there was one.
    fn run_turn_action(&mut self) -> bool {
        let elapsed = self.elapsed();
        let is_due = |running: &RunningTurn| running.next_time().is_some_and(|next| next <= elapsed);
        let due = self.turns.iter_mut().find(|(_, running)| is_due(running));
        let Some((&pid, running)) = due else { return false };
        if running.turn.result.is_some_and(|after| running.start + after <= elapsed) {
            running.turn.result = None;
            self.simulation.finish_task_of_turn(pid);
            return true;
        }
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
        self.simulation.send_call_as(CallOrigin::Person, token, request);
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

    /// Puts a message into an inbox. An answer to a shutdown request goes to where the simulated
    /// disk keeps such answers.
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
        let last = self.start + self.script.end + SETTLING_TIME;
        let deadline = self.simulation.daemon.as_ref().map(|daemon| next_deadline(&daemon.state));
        next.into_iter().chain(deadline.filter(|deadline| *deadline <= last)).min()
    }

    /// When an agent that runs starts its next turn on messages.
    fn next_message_turn(&self) -> Option<u64> {
        let replayed = self.simulation.replayed.as_ref()?;
        let names = self.simulation.running_shims().filter_map(|(_, shim)| shim.identity.as_ref());
        let starts = names.filter_map(|identity| replayed.next_message_turn(&identity.name));
        starts.filter(|start| *start > self.simulation.now.mono).min().map(|start| start - self.start)
    }

    fn into_log(self) -> Vec<String> {
        let is_of_team = |line: &String| {
            serde_json::from_str::<Event>(line)
                .is_ok_and(|event| event.team.as_ref() == Some(&self.script.team))
        };
        self.simulation.disk.log.into_iter().flatten().filter(is_of_team).collect()
    }
}

impl RunningTurn {
    /// When the turn next does something. `None` if it has ended, or if the record ends before it.
    fn next_time(&self) -> Option<u64> {
        let end = self.turn.end.map(|end| end - self.turn.start);
        let sent = self.turn.sent.first().map(|(after, ..)| *after);
        let next = sent.into_iter().chain(self.turn.result).min().or(end)?;
        Some(self.start + end.map_or(next, |end| next.min(end)))
    }
}

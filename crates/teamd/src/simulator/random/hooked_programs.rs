//! Simulates the programs of agents and lead sessions whose hooks call the daemon. The hooks report
//! turns, and wait in long polls for messages and tasks.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::simulator::random::clients::CallOrigin;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::AgentIdentity;
use protocol::control_socket::{
    HookEvent, HookReply, HookReport, LongPollEnd, LongPollRequest, Process, Reply, Request, Response,
};
use protocol::delivery_kind::Delivery;
use protocol::inbox_message_payload::{IdleReason, Payload};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;

/// What a program or its hook does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramState {
    /// No hook of the program has reported yet.
    NotStarted,
    Turn,
    /// The hook has reported the end of the turn on this connection and waits for the reply.
    EndReported(ConnId),
    /// The hook reads the inbox and the tasks.
    Scanning,
    /// The hook found nothing and will start a long poll.
    Retrying,
    LongPolling(ConnId),
    /// No hook runs. The program waits for a user's prompt.
    Prompt,
}

/// A program with hooks.
#[derive(Debug)]
pub(super) struct HookedProgram {
    pub(super) team: TeamName,
    pub(super) name: MemberName,
    /// The agent that the program belongs to. `None` for a lead session.
    pub(super) identity: Option<AgentIdentity>,
    /// The pid of the agent's shim. 0 for a lead session.
    shim_pid: u32,
    pub(super) state: ProgramState,
    /// The program's plan waits for an answer.
    has_open_plan: bool,
    /// A hook started the current turn.
    is_turn_from_hook: bool,
    /// When a user last typed a prompt, on the monotonic clock.
    last_typed_at: u64,
}

impl HookedProgram {
    fn is_planning(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.first_argument == "plan")
    }
}

impl RandomSimulation {
    /// Adds the program of a started agent, if it has hooks.
    pub(super) fn start_program(&mut self, shim_pid: u32) {
        let Some(identity) = self.agent_identity(shim_pid) else { return };
        let Some(pid) = self.shims[&shim_pid].agent_pid() else { return };
        if identity.delivery == Delivery::Hook {
            let program = HookedProgram {
                team: identity.team.clone(),
                name: identity.name.clone(),
                identity: Some(identity),
                shim_pid,
                state: ProgramState::NotStarted,
                has_open_plan: false,
                is_turn_from_hook: false,
                last_typed_at: 0,
            };
            self.conditions.programs.insert(pid, program);
        }
    }

    /// Adds the program of a session that has taken the lead of a team.
    pub(super) fn start_lead(&mut self, pid: u32, team: TeamName) {
        let name = MemberName::lead();
        let program = HookedProgram {
            team,
            name,
            identity: None,
            shim_pid: 0,
            state: ProgramState::NotStarted,
            has_open_plan: false,
            is_turn_from_hook: false,
            last_typed_at: 0,
        };
        self.conditions.programs.insert(pid, program);
    }

    /// Ends a program and its hook.
    pub(super) fn end_program(&mut self, pid: u32) {
        self.kill_hook(pid);
        self.conditions.programs.remove(&pid);
    }

    /// Ends the hook of a program: it is killed, or its time limit has passed.
    pub(super) fn kill_hook(&mut self, pid: u32) {
        let Some(program) = self.conditions.programs.get_mut(&pid) else { return };
        let previous = program.state;
        if !matches!(previous, ProgramState::Turn | ProgramState::NotStarted) {
            program.state = ProgramState::Prompt;
        }
        if let ProgramState::EndReported(conn) | ProgramState::LongPolling(conn) = previous
            && self.clients.remove(&conn).is_some()
        {
            self.conditions.dropped_clients.insert(conn);
            self.send_event(CoreEvent::ConnectionClosed { conn });
        }
    }

    /// Continues the hooks that waited for a reply of a killed daemon.
    pub(super) fn disconnect_hooks(&mut self) {
        for program in self.conditions.programs.values_mut() {
            match program.state {
                ProgramState::EndReported(_) => program.state = ProgramState::Scanning,
                ProgramState::LongPolling(_) => program.state = ProgramState::Retrying,
                _ => {}
            }
        }
    }

    /// The programs whose hook has something to do without a user.
    pub(super) fn due_hooks(&self) -> impl Iterator<Item = u32> {
        let is_due = |program: &HookedProgram| match program.state {
            ProgramState::NotStarted | ProgramState::Retrying => self.daemon.is_some(),
            ProgramState::Scanning => true,
            // Work that no hook has taken is found at the end of a user's turn.
            ProgramState::Prompt => {
                self.conditions.is_fault_free
                    && program.last_typed_at != self.now.mono
                    && self.lacks_hook(program)
            }
            ProgramState::Turn => self.conditions.is_fault_free,
            ProgramState::EndReported(_) | ProgramState::LongPolling(_) => false,
        };
        self.conditions.programs.iter().filter(move |(_, program)| is_due(program)).map(|(pid, _)| *pid)
    }

    /// Whether a running agent or lead session has no waiting hook.
    fn lacks_hook(&self, program: &HookedProgram) -> bool {
        let Some(daemon) = &self.daemon else { return false };
        match &program.identity {
            Some(identity) => daemon.state.agent_by_token(Some(&identity.token)).is_some(),
            None => daemon.state.lead_sessions.contains_key(&program.team),
        }
    }

    pub(super) fn run_hook(&mut self) {
        let pids: Vec<u32> = self.due_hooks().collect();
        let Some(pid) = self.conditions.rng.choice(pids) else { return };
        match self.conditions.programs[&pid].state {
            ProgramState::NotStarted => self.start_session(pid),
            ProgramState::Retrying => {
                let request = LongPollRequest { leads_team: self.lead_team(pid), hook_started_at: 0 };
                let long_poll = Request::LongPoll(request);
                let conn = self.send_hook_call(pid, long_poll);
                self.set_state(pid, conn.map_or(ProgramState::Retrying, ProgramState::LongPolling));
            }
            ProgramState::Scanning => self.scan_for_work(pid),
            ProgramState::Prompt => self.type_prompt(pid),
            ProgramState::Turn => self.end_program_turn(pid),
            ProgramState::EndReported(_) | ProgramState::LongPolling(_) => {}
        }
    }

    fn set_state(&mut self, pid: u32, state: ProgramState) {
        self.conditions.programs.get_mut(&pid).into_iter().for_each(|program| program.state = state);
    }

    fn lead_team(&self, pid: u32) -> Option<TeamName> {
        let program = &self.conditions.programs[&pid];
        program.identity.is_none().then(|| program.team.clone())
    }

    fn send_hook_call(&mut self, pid: u32, request: Request) -> Option<ConnId> {
        let token = self.conditions.programs[&pid].identity.as_ref().map(|identity| identity.token.clone());
        self.send_call_as(CallOrigin::Hook(pid), token, request)
    }

    /// Sends a report of a program's hook.
    fn send_hook_event(&mut self, pid: u32, event: HookEvent) -> Option<ConnId> {
        let program = &self.conditions.programs[&pid];
        let ancestors = [pid, program.shim_pid].map(|pid| Process { pid, start_time: 1 }).to_vec();
        let session_id = Some(format!("session {pid}"));
        let report =
            HookReport { leads_team: self.lead_team(pid), session_id, ancestors, usage: None, event };
        self.send_hook_call(pid, Request::ReportHook(report))
    }

    /// Sends a hook report of a nested program. The agent's program has started the nested program,
    /// which has the same hooks.
    pub(super) fn send_nested_event(&mut self, pid: u32) {
        let ancestors = [1, pid, self.conditions.programs[&pid].shim_pid]
            .map(|pid| Process { pid, start_time: 1 })
            .to_vec();
        let session_id = Some("another".to_owned());
        let event = if self.conditions.rng.bool() { HookEvent::SessionStarted } else { HookEvent::TurnEnded };
        let lead = self.lead_team(pid);
        let report = HookReport { leads_team: lead, session_id, ancestors, usage: None, event };
        let token = self.conditions.programs[&pid].identity.as_ref().map(|identity| identity.token.clone());
        self.send_call_as(CallOrigin::Person, token, Request::ReportHook(report));
    }

    fn start_session(&mut self, pid: u32) {
        self.send_hook_event(pid, HookEvent::SessionStarted);
        let is_lead = self.conditions.programs[&pid].identity.is_none();
        self.set_state(pid, if is_lead { ProgramState::Scanning } else { ProgramState::Turn });
    }

    /// A user types a prompt into a program.
    pub(super) fn type_prompt(&mut self, pid: u32) {
        let mono = self.now.mono;
        let Some(program) =
            self.conditions.programs.get_mut(&pid).filter(|program| program.state == ProgramState::Prompt)
        else {
            return;
        };
        (program.last_typed_at, program.is_turn_from_hook, program.state) = (mono, false, ProgramState::Turn);
        self.send_hook_event(
            pid,
            HookEvent::TurnStarted { summary: "a person's prompt".to_owned(), delivered_ids: Vec::new() },
        );
    }

    pub(super) fn end_program_turn(&mut self, pid: u32) {
        if self.conditions.programs.get(&pid).is_none_or(|program| program.state != ProgramState::Turn) {
            return;
        }
        let conn = self.send_hook_event(pid, HookEvent::TurnEnded);
        self.set_state(pid, conn.map_or(ProgramState::Scanning, ProgramState::EndReported));
    }

    /// A program shows a dialog, or its session ends.
    pub(super) fn send_other_event(&mut self, pid: u32) {
        let text = "May I?".to_owned();
        let event = if self.conditions.rng.bool() {
            HookEvent::DialogShown { text }
        } else {
            HookEvent::SessionEnded
        };
        self.send_hook_event(pid, event);
    }

    /// Handles the daemon's response to a hook's call.
    pub(super) fn handle_hook_response(&mut self, pid: u32, conn: ConnId, response: &Response) {
        let Some(program) = self.conditions.programs.get(&pid) else { return };
        let is_waiting = matches!(
            program.state,
            ProgramState::EndReported(waiting) | ProgramState::LongPolling(waiting) if waiting == conn
        );
        match response {
            Response::Done(reply) => match &**reply {
                Reply::ReportHook(reply) => {
                    self.mark_hook_messages(pid, reply, if is_waiting { &reply.delivered_ids } else { &[] });
                    if is_waiting {
                        self.end_hook_turn(pid, reply);
                    }
                }
                Reply::LongPoll(LongPollEnd::WorkMayWait) if is_waiting => {
                    self.set_state(pid, ProgramState::Scanning);
                }
                Reply::LongPoll(_) if is_waiting => self.set_state(pid, ProgramState::Prompt),
                _ => {}
            },
            Response::Failed(_) if is_waiting => self.set_state(pid, ProgramState::Prompt),
            Response::Failed(_) => {}
        }
    }

    /// Marks as read the messages that the program has received: the messages in its arguments, and
    /// the messages that were delivered for the turn that has ended.
    fn mark_hook_messages(&mut self, pid: u32, reply: &HookReply, delivered: &[u64]) {
        let Some(program) = self.conditions.programs.get(&pid) else { return };
        let (team, name, is_turn_from_hook) =
            (program.team.clone(), program.name.clone(), program.is_turn_from_hook);
        let files = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full);
        if let Some(files) = files {
            if reply.prompt_in_args.is_some() || reply.approval_in_args {
                let from_lead = files.unread(&name).filter(|message| message.from.is_lead());
                let message_ids: Vec<u64> = from_lead.map(|message| message.id).take(1).collect();
                files.mark_delivered(&name, &message_ids);
                files.mark_read(&name, &message_ids);
            }
            if is_turn_from_hook && !delivered.is_empty() {
                files.mark_read(&name, delivered);
            }
            self.disk.record_change(&team, TeamFile::Inbox(name));
        }
        if reply.prompt_in_args.is_some() || reply.approval_in_args {
            self.send_hook_event(pid, HookEvent::PromptRead);
        }
    }

    fn end_hook_turn(&mut self, pid: u32, reply: &HookReply) {
        let Some(program) = self.conditions.programs.get(&pid) else { return };
        let (is_turn_from_hook, identity) = (program.is_turn_from_hook, program.identity.clone());
        if let Some(identity) = identity.filter(|_| reply.delivers_by_hook && reply.is_first_report) {
            if let Some(task) = reply.task.filter(|_| is_turn_from_hook && identity.first_argument != "plan")
            {
                self.finish_task(&identity, task, IdleReason::Available);
            }
            self.submit_program_plan(pid, &identity);
            self.notify_lead(&identity, IdleReason::Available);
        }
        self.set_state(
            pid,
            if reply.delivers_by_hook { ProgramState::Scanning } else { ProgramState::Prompt },
        );
    }

    /// A planning program submits its plan, if it has none open.
    fn submit_program_plan(&mut self, pid: u32, identity: &AgentIdentity) {
        let must_submit = self
            .conditions
            .programs
            .get(&pid)
            .is_some_and(|program| program.is_planning() && !program.has_open_plan);
        if must_submit && self.write_plan_request(identity).is_some() {
            self.conditions
                .programs
                .get_mut(&pid)
                .into_iter()
                .for_each(|program| program.has_open_plan = true);
        }
    }

    /// Returns what a hook can deliver to its program: all unread messages, or one task if there
    /// are no unread messages. A program in plan mode does not receive the approval of its plan:
    /// the member's next spawn receives it.
    fn deliverable(&self, program: &HookedProgram) -> (Vec<u64>, Option<TaskId>) {
        let Some(files) = self.disk.teams.get(&program.team) else { return (Vec::new(), None) };
        let is_approval =
            |payload: &Payload| matches!(payload, Payload::PlanApprovalResponse(answer) if answer.approved);
        let unread = files.unread(&program.name);
        let unread = unread
            .filter(|message| !(program.is_planning() && message.payload.as_ref().is_some_and(is_approval)));
        let messages: Vec<u64> = unread.map(|message| message.id).collect();
        let can_take_task = program.identity.is_some() && messages.is_empty() && !program.has_open_plan;
        let task = can_take_task.then(|| files.next_task(&program.name, &BTreeSet::new())).flatten();
        (messages, task)
    }

    /// Whether a program's hook waits although there is a message or task for the program.
    pub(super) fn misses_work(&self, program: &HookedProgram) -> bool {
        let (messages, task) = self.deliverable(program);
        matches!(program.state, ProgramState::LongPolling(_)) && (!messages.is_empty() || task.is_some())
    }

    fn scan_for_work(&mut self, pid: u32) {
        let (messages, task) = self.deliverable(&self.conditions.programs[&pid]);
        let summary = match (&task, messages.is_empty()) {
            (None, true) => return self.set_state(pid, ProgramState::Retrying),
            (Some(id), _) => format!("task {id}: count"),
            _ => "message from bob".to_owned(),
        };
        // Some programs have ended their hook in the meantime.
        let is_delivered = self.conditions.is_fault_free || self.conditions.rng.u8(..) < 220;
        let Some(program) = self.conditions.programs.get_mut(&pid) else { return };
        (program.is_turn_from_hook, program.state) =
            (is_delivered, if is_delivered { ProgramState::Turn } else { ProgramState::Prompt });
        let (team, name, identity) = (program.team.clone(), program.name.clone(), program.identity.clone());
        if let Some(identity) = &identity {
            task.into_iter().for_each(|id| self.claim(identity, id));
        }
        if let Some(files) = self.disk.teams.get_mut(&team).filter(|_| is_delivered) {
            files.mark_delivered(&name, &messages);
            // Any of the messages may be the answer to the plan.
            self.conditions
                .programs
                .get_mut(&pid)
                .into_iter()
                .for_each(|program| program.has_open_plan &= messages.is_empty());
        }
        // Some hooks are killed before they report the turn.
        if self.conditions.is_fault_free || self.conditions.rng.u8(..) < 240 {
            self.send_hook_event(pid, HookEvent::TurnStarted { summary, delivered_ids: messages });
        }
    }
}

//! Programs with hooks, an agent's or those of a session that leads: what their hooks tell, and how they wait for mail.

use crate::core::event::CoreEvent;
use crate::core::id::ConnId;
use crate::simulator::clients::CallOrigin;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::AgentIdentity;
use crate::simulator::simulation::Simulation;
use protocol::control::{
    HookEvent, HookReply, HookReport, HookSource, LongPollEnd, LongPollRequest, PaneInput, Process, Reply,
    Request, Response,
};
use protocol::delivery::Delivery;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::{IdleReason, Payload};
use std::collections::BTreeSet;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramState {
    /// Nobody has heard of it yet.
    NotStarted,
    Turn,
    /// Its hook has told that the turn has ended, and hears what follows.
    EndReported(ConnId),
    Scanning,
    /// Its hook found nothing, and is to wait.
    Retrying,
    LongPolling(ConnId),
    /// No hook of it runs: a person has the word.
    Prompt,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct HookedProgram {
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    /// An agent's; none of a lead.
    pub(super) identity: Option<AgentIdentity>,
    /// Its join's pid.
    shim_pid: u32,
    pub(super) state: ProgramState,
    /// Its plan waits for an answer.
    has_open_plan: bool,
    /// Its turn was made by its hook.
    is_turn_from_hook: bool,
    /// When a person typed into it last.
    last_typed_at: u64,
}

impl HookedProgram {
    fn is_planning(&self) -> bool {
        self.identity.as_ref().is_some_and(|who| who.first_argument == "plan")
    }
}

impl Simulation {
    /// Its agent has begun.
    pub(super) fn start_program(&mut self, pid: u32, who: &AgentIdentity, join: u32) {
        if who.delivery.has_hooks() {
            let (team, name) = (who.team.clone(), who.name.clone());
            let who = Some(who.clone());
            let program = HookedProgram {
                team,
                name,
                identity: who,
                shim_pid: join,
                state: ProgramState::NotStarted,
                has_open_plan: false,
                is_turn_from_hook: false,
                last_typed_at: 0,
            };
            self.programs.insert(pid, program);
        }
    }

    /// A session has taken the lead.
    pub(super) fn start_lead(&mut self, pid: u32, team: TeamName) {
        let name = AgentName::lead();
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
        self.programs.insert(pid, program);
    }

    /// It is no more, and no hook of it.
    pub(super) fn end_program(&mut self, pid: u32) {
        self.kill_hook(pid);
        self.programs.remove(&pid);
    }

    /// Its hook is killed, or has waited long enough.
    pub(super) fn kill_hook(&mut self, pid: u32) {
        let Some(program) = self.programs.get_mut(&pid) else { return };
        let was = program.state;
        if !matches!(was, ProgramState::Turn | ProgramState::NotStarted) {
            program.state = ProgramState::Prompt;
        }
        if let ProgramState::EndReported(conn) | ProgramState::LongPolling(conn) = was
            && self.clients.remove(&conn).is_some()
        {
            self.dropped_clients.insert(conn);
            self.send_event(CoreEvent::ConnectionClosed { conn });
        }
    }

    /// A daemon was killed: whoever waited for its word goes on without.
    pub(super) fn disconnect_hooks(&mut self) {
        for program in self.programs.values_mut() {
            match program.state {
                ProgramState::EndReported(_) => program.state = ProgramState::Scanning,
                ProgramState::LongPolling(_) => program.state = ProgramState::Retrying,
                _ => {}
            }
        }
    }

    /// Whose hook has something to do by itself.
    pub(super) fn due_hooks(&self) -> impl Iterator<Item = u32> {
        let due = |program: &HookedProgram| match program.state {
            ProgramState::NotStarted | ProgramState::Retrying => self.daemon.is_some(),
            ProgramState::Scanning => true,
            // What nobody has taken is found at the end of a person's turn.
            ProgramState::Prompt => {
                self.is_fault_free && program.last_typed_at != self.now.mono && self.lacks_hook(program)
            }
            ProgramState::Turn => self.is_fault_free,
            ProgramState::EndReported(_) | ProgramState::LongPolling(_) => false,
        };
        self.programs.iter().filter(move |(_, program)| due(program)).map(|(pid, _)| *pid)
    }

    /// No hook of it waits, and its place is still there.
    fn lacks_hook(&self, program: &HookedProgram) -> bool {
        let Some(daemon) = &self.daemon else { return false };
        match &program.identity {
            Some(who) => daemon.state.agent_by_token(Some(&who.token)).is_some(),
            None => daemon.state.lead_sessions.contains_key(&program.team),
        }
    }

    pub(super) fn run_hook(&mut self) {
        let pids: Vec<u32> = self.due_hooks().collect();
        let Some(pid) = self.rng.choice(pids) else { return };
        match self.programs[&pid].state {
            ProgramState::NotStarted => self.start_session(pid),
            ProgramState::Retrying => {
                let park = Request::LongPoll(LongPollRequest { leads_team: self.lead_team(pid) });
                let conn = self.send_hook_call(pid, park);
                self.set_activity(pid, conn.map_or(ProgramState::Retrying, ProgramState::LongPolling));
            }
            ProgramState::Scanning => self.scan_for_work(pid),
            ProgramState::Prompt => self.type_prompt(pid),
            ProgramState::Turn => self.end_program_turn(pid),
            ProgramState::EndReported(_) | ProgramState::LongPolling(_) => {}
        }
    }

    fn set_activity(&mut self, pid: u32, doing: ProgramState) {
        self.programs.get_mut(&pid).into_iter().for_each(|program| program.state = doing);
    }

    fn lead_team(&self, pid: u32) -> Option<TeamName> {
        let program = &self.programs[&pid];
        program.identity.is_none().then(|| program.team.clone())
    }

    fn send_hook_call(&mut self, pid: u32, request: Request) -> Option<ConnId> {
        let token = self.programs[&pid].identity.as_ref().map(|who| who.token.clone());
        self.send_call_as(CallOrigin::Hook(pid), token, request)
    }

    /// What its hook says, from where it runs.
    fn send_hook_event(&mut self, pid: u32, said: HookEvent) -> Option<ConnId> {
        let program = &self.programs[&pid];
        let typed = program.identity.as_ref().is_some_and(|who| who.delivery == Delivery::Keys);
        let above = [pid, program.shim_pid].map(|pid| Process { pid, start_time: 1 }).to_vec();
        let speaker = if typed { HookSource::Typist } else { HookSource::Program };
        let session = Some(format!("session {pid}"));
        let hooked = HookReport {
            leads_team: self.lead_team(pid),
            session_id: session,
            ancestors: above,
            source: speaker,
            usage: None,
            event: said,
        };
        self.send_hook_call(pid, Request::ReportHook(hooked))
    }

    /// A program that the agent's own runs has the same hooks.
    pub(super) fn send_nested_event(&mut self, pid: u32) {
        let above = [1, pid, self.programs[&pid].shim_pid].map(|pid| Process { pid, start_time: 1 }).to_vec();
        let session = Some("another".to_owned());
        let said = if self.rng.bool() { HookEvent::SessionStarted } else { HookEvent::TurnEnded };
        let lead = self.lead_team(pid);
        let hooked = HookReport {
            leads_team: lead,
            session_id: session,
            ancestors: above,
            source: HookSource::Program,
            usage: None,
            event: said,
        };
        let token = self.programs[&pid].identity.as_ref().map(|who| who.token.clone());
        self.send_call_as(CallOrigin::Person, token, Request::ReportHook(hooked));
    }

    fn start_session(&mut self, pid: u32) {
        self.send_hook_event(pid, HookEvent::SessionStarted);
        let typed = self.programs[&pid].identity.as_ref().is_none_or(|who| who.delivery == Delivery::Keys);
        self.set_activity(pid, if typed { ProgramState::Scanning } else { ProgramState::Turn });
    }

    /// A person does, at its prompt.
    pub(super) fn type_prompt(&mut self, pid: u32) {
        let mono = self.now.mono;
        let Some(program) = self.programs.get_mut(&pid).filter(|it| it.state == ProgramState::Prompt) else {
            return;
        };
        (program.last_typed_at, program.is_turn_from_hook, program.state) = (mono, false, ProgramState::Turn);
        self.send_hook_event(
            pid,
            HookEvent::TurnStarted { summary: "a person's words".to_owned(), delivered_ids: Vec::new() },
        );
    }

    pub(super) fn end_program_turn(&mut self, pid: u32) {
        if self.programs.get(&pid).is_none_or(|program| program.state != ProgramState::Turn) {
            return;
        }
        let conn = self.send_hook_event(pid, HookEvent::TurnEnded);
        self.set_activity(pid, conn.map_or(ProgramState::Scanning, ProgramState::EndReported));
    }

    /// In the middle of a turn it opens a dialog, or its session ends.
    pub(super) fn send_other_event(&mut self, pid: u32) {
        let text = "May I?".to_owned();
        let said = if self.rng.bool() { HookEvent::DialogShown { text } } else { HookEvent::SessionEnded };
        self.send_hook_event(pid, said);
    }

    /// The daemon's word to a hook.
    pub(super) fn handle_hook_response(&mut self, pid: u32, conn: ConnId, response: &Response) {
        let Some(program) = self.programs.get(&pid) else { return };
        let waits = matches!(program.state, ProgramState::EndReported(its) | ProgramState::LongPolling(its) if its == conn);
        match response {
            Response::Done(reply) => match &**reply {
                Reply::ReportHook(reply) => self.handle_hook_reply(pid, reply, waits),
                Reply::LongPoll(LongPollEnd::WorkMayWait) if waits => {
                    self.set_activity(pid, ProgramState::Scanning);
                }
                Reply::LongPoll(_) if waits => self.set_activity(pid, ProgramState::Prompt),
                _ => {}
            },
            Response::Failed(_) if waits => self.set_activity(pid, ProgramState::Prompt),
            Response::Failed(_) => {}
        }
    }

    fn handle_hook_reply(&mut self, pid: u32, reply: &HookReply, turn_ended: bool) {
        let Some(program) = self.programs.get(&pid) else { return };
        let (team, name, took) = (program.team.clone(), program.name.clone(), program.is_turn_from_hook);
        let who = program.identity.clone();
        let files = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full);
        if let Some(files) = files {
            if reply.prompt_in_args.is_some() || reply.approval_in_args {
                let had = files.unread(&name).filter(|letter| letter.from.is_lead());
                let had: Vec<u64> = had.map(|letter| letter.id).take(1).collect();
                files.mark_taken(&name, &had);
                files.mark_read(&name, &had);
            }
            if took && turn_ended {
                files.mark_read(&name, &reply.delivered_ids);
            }
            self.disk.record_change(&team, TeamFile::Inbox(name));
        }
        if reply.prompt_in_args.is_some() || reply.approval_in_args {
            self.send_hook_event(pid, HookEvent::PromptRead);
        }
        if !turn_ended {
            return;
        }
        if let Some(who) = who.filter(|_| reply.delivers_by_hook && reply.is_first_report) {
            if let Some(task) = reply.task.filter(|_| took && who.first_argument != "plan") {
                self.finish_task(&who, task, IdleReason::Available);
            }
            self.submit_program_plan(pid, &who);
            self.notify_lead(&who, IdleReason::Available);
        }
        self.set_activity(
            pid,
            if reply.delivers_by_hook { ProgramState::Scanning } else { ProgramState::Prompt },
        );
    }

    /// What it has planned, once.
    fn submit_program_plan(&mut self, pid: u32, who: &AgentIdentity) {
        let plans =
            self.programs.get(&pid).is_some_and(|program| program.is_planning() && !program.has_open_plan);
        if plans && self.write_plan_request(who).is_some() {
            self.programs.get_mut(&pid).into_iter().for_each(|program| program.has_open_plan = true);
        }
    }

    /// What its hook would hand over: all mail, but what is for its next life; else a task.
    fn deliverable(&self, program: &HookedProgram) -> (Vec<u64>, Option<TaskId>) {
        let Some(files) = self.disk.teams.get(&program.team) else { return (Vec::new(), None) };
        let is_yes =
            |payload: &Payload| matches!(payload, Payload::PlanApprovalResponse(answer) if answer.approved);
        let unread = files.unread(&program.name);
        let unread = unread.filter(|it| !(program.is_planning() && it.payload.as_ref().is_some_and(is_yes)));
        let letters: Vec<u64> = unread.map(|letter| letter.id).collect();
        let waits = program.has_open_plan;
        let free = program.identity.is_some() && letters.is_empty() && !waits;
        let task = free.then(|| files.next_task(&program.name, &BTreeSet::new())).flatten();
        (letters, task)
    }

    /// Whether it waits, and should not.
    pub(super) fn misses_work(&self, program: &HookedProgram) -> bool {
        let (letters, task) = self.deliverable(program);
        matches!(program.state, ProgramState::LongPolling(_)) && (!letters.is_empty() || task.is_some())
    }

    fn scan_for_work(&mut self, pid: u32) {
        let (letters, task) = self.deliverable(&self.programs[&pid]);
        let about = match (&task, letters.is_empty()) {
            (None, true) => return self.set_activity(pid, ProgramState::Retrying),
            (Some(id), _) => format!("task {id}: count"),
            _ => "message from bob".to_owned(),
        };
        // Some have given up on their hook by then.
        let takes = self.is_fault_free || self.rng.u8(..) < 220;
        let Some(program) = self.programs.get_mut(&pid) else { return };
        (program.is_turn_from_hook, program.state) =
            (takes, if takes { ProgramState::Turn } else { ProgramState::Prompt });
        let (team, name, who) = (program.team.clone(), program.name.clone(), program.identity.clone());
        if let Some(who) = &who {
            task.into_iter().for_each(|id| self.claim(who, id));
            if who.delivery == Delivery::Keys {
                let text = about.clone();
                self.send_hook_call(pid, Request::TypeInPane(PaneInput::Type { cursor: (0, 0), text }));
            }
        }
        if let Some(files) = self.disk.teams.get_mut(&team).filter(|_| takes) {
            files.mark_taken(&name, &letters);
            // Any may be the answer.
            self.programs.get_mut(&pid).into_iter().for_each(|it| it.has_open_plan &= letters.is_empty());
        }
        // Killed in between, nobody hears of it.
        if self.is_fault_free || self.rng.u8(..) < 240 {
            self.send_hook_event(pid, HookEvent::TurnStarted { summary: about, delivered_ids: letters });
        }
    }
}

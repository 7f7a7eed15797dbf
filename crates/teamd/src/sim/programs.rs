//! Programs with hooks, an agent's or those of a session that leads: what their hooks tell, and how they wait for mail.

use super::clients::Asker;
use super::join::Who;
use super::world::World;
use crate::event::{ConnId, Event};
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
pub(super) enum Doing {
    /// Nobody has heard of it yet.
    Begins,
    Turn,
    /// Its hook has told that the turn has ended, and hears what follows.
    Told(ConnId),
    Looks,
    /// Its hook found nothing, and is to wait.
    Waits,
    Parked(ConnId),
    /// No hook of it runs: a person has the word.
    Prompt,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    /// An agent's; none of a lead.
    pub(super) who: Option<Who>,
    /// Its join's pid.
    join: u32,
    pub(super) doing: Doing,
    /// Its plan waits for an answer.
    asked: bool,
    /// Its turn was made by its hook.
    took: bool,
    /// When a person typed into it last.
    typed: u64,
}

impl Program {
    fn plans(&self) -> bool {
        self.who.as_ref().is_some_and(|who| who.first == "plan")
    }
}

impl World {
    /// Its agent has begun.
    pub(super) fn program_starts(&mut self, pid: u32, who: &Who, join: u32) {
        if who.feed.has_hooks() {
            let (team, name) = (who.team.clone(), who.name.clone());
            let who = Some(who.clone());
            let program =
                Program { team, name, who, join, doing: Doing::Begins, asked: false, took: false, typed: 0 };
            self.programs.insert(pid, program);
        }
    }

    /// A session has taken the lead.
    pub(super) fn lead_starts(&mut self, pid: u32, team: TeamName) {
        let name = AgentName::lead();
        let program = Program {
            team,
            name,
            who: None,
            join: 0,
            doing: Doing::Begins,
            asked: false,
            took: false,
            typed: 0,
        };
        self.programs.insert(pid, program);
    }

    /// It is no more, and no hook of it.
    pub(super) fn program_ends(&mut self, pid: u32) {
        self.hook_dies(pid);
        self.programs.remove(&pid);
    }

    /// Its hook is killed, or has waited long enough.
    pub(super) fn hook_dies(&mut self, pid: u32) {
        let Some(program) = self.programs.get_mut(&pid) else { return };
        let was = program.doing;
        if !matches!(was, Doing::Turn | Doing::Begins) {
            program.doing = Doing::Prompt;
        }
        if let Doing::Told(conn) | Doing::Parked(conn) = was
            && self.clients.remove(&conn).is_some()
        {
            self.gone.insert(conn);
            self.tell(Event::Closed { conn });
        }
    }

    /// A daemon was killed: whoever waited for its word goes on without.
    pub(super) fn hooks_are_alone(&mut self) {
        for program in self.programs.values_mut() {
            match program.doing {
                Doing::Told(_) => program.doing = Doing::Looks,
                Doing::Parked(_) => program.doing = Doing::Waits,
                _ => {}
            }
        }
    }

    /// Whose hook has something to do by itself.
    pub(super) fn hooks(&self) -> impl Iterator<Item = u32> {
        let due = |program: &Program| match program.doing {
            Doing::Begins | Doing::Waits => self.daemon.is_some(),
            Doing::Looks => true,
            // What nobody has taken is found at the end of a person's turn.
            Doing::Prompt => self.calm && program.typed != self.now.mono && self.is_alone(program),
            Doing::Turn => self.calm,
            Doing::Told(_) | Doing::Parked(_) => false,
        };
        self.programs.iter().filter(move |(_, program)| due(program)).map(|(pid, _)| *pid)
    }

    /// No hook of it waits, and its place is still there.
    fn is_alone(&self, program: &Program) -> bool {
        let Some(daemon) = &self.daemon else { return false };
        match &program.who {
            Some(who) => daemon.state.by_token(Some(&who.token)).is_some(),
            None => daemon.state.leads.contains_key(&program.team),
        }
    }

    pub(super) fn a_hook(&mut self) {
        let pids: Vec<u32> = self.hooks().collect();
        let Some(pid) = self.rng.choice(pids) else { return };
        match self.programs[&pid].doing {
            Doing::Begins => self.program_begins(pid),
            Doing::Waits => {
                let park = Request::LongPoll(LongPollRequest { leads_team: self.leads(pid) });
                let conn = self.hook_asks(pid, park);
                self.does(pid, conn.map_or(Doing::Waits, Doing::Parked));
            }
            Doing::Looks => self.hook_looks(pid),
            Doing::Prompt => self.person_types(pid),
            Doing::Turn => self.program_turn_ends(pid),
            Doing::Told(_) | Doing::Parked(_) => {}
        }
    }

    fn does(&mut self, pid: u32, doing: Doing) {
        self.programs.get_mut(&pid).into_iter().for_each(|program| program.doing = doing);
    }

    fn leads(&self, pid: u32) -> Option<TeamName> {
        let program = &self.programs[&pid];
        program.who.is_none().then(|| program.team.clone())
    }

    fn hook_asks(&mut self, pid: u32, request: Request) -> Option<ConnId> {
        let token = self.programs[&pid].who.as_ref().map(|who| who.token.clone());
        self.ask_as(Asker::Hook(pid), token, request)
    }

    /// What its hook says, from where it runs.
    fn hook_says(&mut self, pid: u32, said: HookEvent) -> Option<ConnId> {
        let program = &self.programs[&pid];
        let typed = program.who.as_ref().is_some_and(|who| who.feed == Delivery::Keys);
        let above = [pid, program.join].map(|pid| Process { pid, start_time: 1 }).to_vec();
        let speaker = if typed { HookSource::Typist } else { HookSource::Program };
        let session = Some(format!("session {pid}"));
        let hooked = HookReport {
            leads_team: self.leads(pid),
            session_id: session,
            ancestors: above,
            source: speaker,
            usage: None,
            event: said,
        };
        self.hook_asks(pid, Request::ReportHook(hooked))
    }

    /// A program that the agent's own runs has the same hooks.
    pub(super) fn nested_speaks(&mut self, pid: u32) {
        let above = [1, pid, self.programs[&pid].join].map(|pid| Process { pid, start_time: 1 }).to_vec();
        let session = Some("another".to_owned());
        let said = if self.rng.bool() { HookEvent::SessionStarted } else { HookEvent::TurnEnded };
        let lead = self.leads(pid);
        let hooked = HookReport {
            leads_team: lead,
            session_id: session,
            ancestors: above,
            source: HookSource::Program,
            usage: None,
            event: said,
        };
        let token = self.programs[&pid].who.as_ref().map(|who| who.token.clone());
        self.ask_as(Asker::Person, token, Request::ReportHook(hooked));
    }

    fn program_begins(&mut self, pid: u32) {
        self.hook_says(pid, HookEvent::SessionStarted);
        let typed = self.programs[&pid].who.as_ref().is_none_or(|who| who.feed == Delivery::Keys);
        self.does(pid, if typed { Doing::Looks } else { Doing::Turn });
    }

    /// A person does, at its prompt.
    pub(super) fn person_types(&mut self, pid: u32) {
        let mono = self.now.mono;
        let Some(program) = self.programs.get_mut(&pid).filter(|it| it.doing == Doing::Prompt) else {
            return;
        };
        (program.typed, program.took, program.doing) = (mono, false, Doing::Turn);
        self.hook_says(
            pid,
            HookEvent::TurnStarted { summary: "a person's words".to_owned(), delivered_ids: Vec::new() },
        );
    }

    pub(super) fn program_turn_ends(&mut self, pid: u32) {
        if self.programs.get(&pid).is_none_or(|program| program.doing != Doing::Turn) {
            return;
        }
        let conn = self.hook_says(pid, HookEvent::TurnEnded);
        self.does(pid, conn.map_or(Doing::Looks, Doing::Told));
    }

    /// In the middle of a turn it opens a dialog, or its session ends.
    pub(super) fn program_tells(&mut self, pid: u32) {
        let text = "May I?".to_owned();
        let said = if self.rng.bool() { HookEvent::DialogShown { text } } else { HookEvent::SessionEnded };
        self.hook_says(pid, said);
    }

    /// The daemon's word to a hook.
    pub(super) fn hook_hears(&mut self, pid: u32, conn: ConnId, response: &Response) {
        let Some(program) = self.programs.get(&pid) else { return };
        let waits = matches!(program.doing, Doing::Told(its) | Doing::Parked(its) if its == conn);
        match response {
            Response::Done(reply) => match &**reply {
                Reply::ReportHook(reply) => self.hook_answered(pid, reply, waits),
                Reply::LongPoll(LongPollEnd::WorkMayWait) if waits => self.does(pid, Doing::Looks),
                Reply::LongPoll(_) if waits => self.does(pid, Doing::Prompt),
                _ => {}
            },
            Response::Failed(_) if waits => self.does(pid, Doing::Prompt),
            Response::Failed(_) => {}
        }
    }

    fn hook_answered(&mut self, pid: u32, reply: &HookReply, turn_ended: bool) {
        let Some(program) = self.programs.get(&pid) else { return };
        let (team, name, took) = (program.team.clone(), program.name.clone(), program.took);
        let who = program.who.clone();
        let files = self.disk.teams.get_mut(&team).filter(|_| !self.disk.full);
        if let Some(files) = files {
            if reply.prompt_in_args.is_some() || reply.approval_in_args {
                let had = files.unread(&name).filter(|letter| letter.from.is_lead());
                let had: Vec<u64> = had.map(|letter| letter.digest).take(1).collect();
                files.take(&name, &had);
                files.mark(&name, &had);
            }
            if took && turn_ended {
                files.mark(&name, &reply.delivered_ids);
            }
            self.disk.touch(&team, super::looks::Part::Inbox(name));
        }
        if reply.prompt_in_args.is_some() || reply.approval_in_args {
            self.hook_says(pid, HookEvent::PromptRead);
        }
        if !turn_ended {
            return;
        }
        if let Some(who) = who.filter(|_| reply.delivers_by_hook && reply.is_first_report) {
            if let Some(task) = reply.task.filter(|_| took && who.first != "plan") {
                self.settles(&who, task, IdleReason::Available);
            }
            self.program_hands_in(pid, &who);
            self.tells_lead(&who, IdleReason::Available);
        }
        self.does(pid, if reply.delivers_by_hook { Doing::Looks } else { Doing::Prompt });
    }

    /// What it has planned, once.
    fn program_hands_in(&mut self, pid: u32, who: &Who) {
        let plans = self.programs.get(&pid).is_some_and(|program| program.plans() && !program.asked);
        if plans && self.asks_for_approval(who).is_some() {
            self.programs.get_mut(&pid).into_iter().for_each(|program| program.asked = true);
        }
    }

    /// What its hook would hand over: all mail, but what is for its next life; else a task.
    fn due_for(&self, program: &Program) -> (Vec<u64>, Option<TaskId>) {
        let Some(files) = self.disk.teams.get(&program.team) else { return (Vec::new(), None) };
        let is_yes =
            |payload: &Payload| matches!(payload, Payload::PlanApprovalResponse(answer) if answer.approved);
        let unread = files.unread(&program.name);
        let unread = unread.filter(|it| !(program.plans() && it.payload.as_ref().is_some_and(is_yes)));
        let letters: Vec<u64> = unread.map(|letter| letter.digest).collect();
        let waits = program.asked;
        let free = program.who.is_some() && letters.is_empty() && !waits;
        let task = free.then(|| files.next_task(&program.name, &BTreeSet::new())).flatten();
        (letters, task)
    }

    /// Whether it waits, and should not.
    pub(super) fn overlooks(&self, program: &Program) -> bool {
        let (letters, task) = self.due_for(program);
        matches!(program.doing, Doing::Parked(_)) && (!letters.is_empty() || task.is_some())
    }

    fn hook_looks(&mut self, pid: u32) {
        let (letters, task) = self.due_for(&self.programs[&pid]);
        let about = match (&task, letters.is_empty()) {
            (None, true) => return self.does(pid, Doing::Waits),
            (Some(id), _) => format!("task {id}: count"),
            _ => "message from bob".to_owned(),
        };
        // Some have given up on their hook by then.
        let takes = self.calm || self.rng.u8(..) < 220;
        let Some(program) = self.programs.get_mut(&pid) else { return };
        (program.took, program.doing) = (takes, if takes { Doing::Turn } else { Doing::Prompt });
        let (team, name, who) = (program.team.clone(), program.name.clone(), program.who.clone());
        if let Some(who) = &who {
            task.into_iter().for_each(|id| self.claim(who, id));
            if who.feed == Delivery::Keys {
                let text = about.clone();
                self.hook_asks(pid, Request::TypeInPane(PaneInput::Type { cursor: (0, 0), text }));
            }
        }
        if let Some(files) = self.disk.teams.get_mut(&team).filter(|_| takes) {
            files.take(&name, &letters);
            // Any may be the answer.
            self.programs.get_mut(&pid).into_iter().for_each(|it| it.asked &= letters.is_empty());
        }
        // Killed in between, nobody hears of it.
        if self.calm || self.rng.u8(..) < 240 {
            self.hook_says(pid, HookEvent::TurnStarted { summary: about, delivered_ids: letters });
        }
    }
}

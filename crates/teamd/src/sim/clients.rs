//! Who asks the daemon, and what follows from its answers.

use super::world::World;
use crate::event::{ConnId, Event};
use protocol::control::{
    Call, LeadProcess, PROTOCOL_VERSION, Reply, Request, Response, SetLeadRequest, WorktreeReply,
};
use protocol::name::TeamName;

/// Whose request it is.
#[derive(Debug, Clone)]
pub(super) enum Asker {
    /// A person's, or a program's of whom no more is known.
    Person,
    /// A hook's of that program.
    Hook(u32),
    /// That of an agent that is run a turn at a time, by its join.
    Turner(u32),
    /// That of a session that wants to lead, by its first process.
    Leader(TeamName, u32),
    /// Somebody's who spawns a member into the worktree that they ask for.
    Spawner(TeamName),
}

impl World {
    /// Somebody asks.
    pub(super) fn ask(&mut self, request: Request) {
        self.ask_as(Asker::Person, None, request);
    }

    /// An agent does, by its token. None where there is no daemon.
    pub(super) fn ask_as(&mut self, who: Asker, token: Option<String>, request: Request) -> Option<ConnId> {
        let client = self.next_conn();
        self.daemon.as_ref()?;
        self.clients.insert(client, who);
        // Some ask with a token of their own, and ask again with it.
        let once = matches!(request, Request::Spawn(_)).then(|| format!("once-{}", client / 2));
        let call = Call { version: PROTOCOL_VERSION, token, idempotency_key: once, request };
        self.tell(Event::Request { client, call: Box::new(call) });
        Some(client)
    }

    /// Something that is no request of ours.
    pub(super) fn babble(&mut self) {
        let client = self.next_conn();
        if self.daemon.is_some() {
            self.clients.insert(client, Asker::Person);
            let version = self.rng.bool().then_some(PROTOCOL_VERSION + 1);
            self.tell(Event::Unreadable { client, version, why: "no JSON".to_owned() });
        }
    }

    /// A client does not wait any longer.
    pub(super) fn leave(&mut self) {
        let who = self.clients.iter().find(|(_, asker)| !matches!(asker, Asker::Hook(_)));
        let Some(client) = who.map(|(client, _)| *client) else { return };
        let who = self.clients.remove(&client);
        self.gone.insert(client);
        self.tell(Event::Closed { conn: client });
        if let Some(Asker::Turner(pid)) = who {
            self.looks_itself(pid);
        }
    }

    /// Whoever asks is answered once.
    pub(super) fn replied(&mut self, client: ConnId, response: &Response) {
        self.note(|| format!("reply to {client}: {response:?}"));
        let asker = self.clients.remove(&client);
        assert!(
            asker.is_some() || self.gone.remove(&client),
            "{client} is answered, and did not ask, or was answered already"
        );
        match (asker, response) {
            (Some(Asker::Spawner(team)), Response::Done(reply)) => {
                if let Reply::CreateWorktree(reply) = &**reply {
                    self.spawn_into(team, reply);
                }
            }
            (Some(Asker::Leader(team, pid)), Response::Done(_)) => self.lead_starts(pid, team),
            (Some(Asker::Turner(pid)), response) => self.is_told(pid, response),
            (Some(Asker::Hook(pid)), response) => self.hook_hears(pid, client, response),
            _ => {}
        }
    }

    /// The second half of `spawn --worktree`; some are killed before it.
    fn spawn_into(&mut self, team: TeamName, reply: &WorktreeReply) {
        if self.rng.u8(..) < 220 {
            let order = self.order(team, Some(reply));
            self.ask(order);
        }
    }

    /// A session takes the lead of a team, or leaves it.
    pub(super) fn somebody_leads(&mut self, team: TeamName) {
        if self.rng.u8(..) < 50 {
            return self.ask(Request::SetLead(SetLeadRequest::Release(team)));
        }
        let pid = self.next_pid();
        let (pane, tmux, session) = (None, None, None);
        let lead = LeadProcess {
            team: team.clone(),
            pid,
            start_time: 1,
            pane,
            tmux_socket: tmux,
            session_id: session,
        };
        self.leaders.insert(pid);
        self.ask_as(Asker::Leader(team, pid), None, Request::SetLead(SetLeadRequest::Take(lead)));
    }

    /// The first process of a lead's terminal ends.
    pub(super) fn a_leader_dies(&mut self) {
        let leaders: Vec<u32> = self.leaders.iter().copied().collect();
        if let Some(pid) = self.rng.choice(leaders) {
            self.note(|| format!("the session of {pid} ends"));
            self.leaders.remove(&pid);
            self.program_ends(pid);
        }
    }
}

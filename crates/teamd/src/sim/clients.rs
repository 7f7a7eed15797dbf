//! Who asks the daemon, and what follows from its answers.

use super::world::World;
use crate::event::{ConnId, Event};
use protocol::control::{Call, Reply, Request, Response, VERSION, WorktreeReply};
use protocol::name::TeamName;

/// Whose request it is.
#[derive(Debug, Clone)]
pub(super) enum Asker {
    /// A person's, or a program's of whom no more is known.
    Person,
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
        let call = Call { v: VERSION, token, once, request };
        self.tell(Event::Request { client, call: Box::new(call) });
        Some(client)
    }

    /// Something that is no request of ours.
    pub(super) fn babble(&mut self) {
        let client = self.next_conn();
        if self.daemon.is_some() {
            self.clients.insert(client, Asker::Person);
            let version = self.rng.bool().then_some(VERSION + 1);
            self.tell(Event::Unreadable { client, version, why: "no JSON".to_owned() });
        }
    }

    /// A client does not wait any longer.
    pub(super) fn leave(&mut self) {
        let Some((client, _)) = self.clients.pop_first() else { return };
        self.gone.insert(client);
        self.tell(Event::Closed { conn: client });
    }

    /// Whoever asks is answered once.
    pub(super) fn replied(&mut self, client: ConnId, response: &Response) {
        self.note(|| format!("reply to {client}: {response:?}"));
        let asker = self.clients.remove(&client);
        assert!(
            asker.is_some() || self.gone.remove(&client),
            "{client} is answered, and did not ask, or was answered already"
        );
        if let (Some(Asker::Spawner(team)), Response::Done(reply)) = (asker, response)
            && let Reply::Worktree(reply) = &**reply
        {
            self.spawn_into(team, reply);
        }
    }

    /// The second half of `spawn --worktree`; some are killed before it.
    fn spawn_into(&mut self, team: TeamName, reply: &WorktreeReply) {
        if self.rng.u8(..) < 220 {
            let order = self.order(team, Some(reply));
            self.ask(order);
        }
    }
}

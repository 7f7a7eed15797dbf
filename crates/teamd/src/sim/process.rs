//! The processes of the world: joins with their agents, as the real ones behave, and their ends.

use super::join::{Join, PATIENCE, Stage, Who};
use super::tmux::Whose;
use super::turns::Turner;
use super::world::World;
use crate::event::{ConnId, Event};
use crate::roster::Process;
use protocol::control::{ExitReport, FromShim, ShimHello, ToShim};
use protocol::payload::IdleReason;

impl World {
    pub(super) fn tell(&mut self, event: Event) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.push_back(event);
        }
    }

    /// A join does what is next for it.
    pub(super) fn join(&mut self, pid: u32) {
        let daemon = self.daemon.is_some();
        let Some(join) = self.joins.get_mut(&pid) else { return };
        if let Some(word) = join.heard.pop_front() {
            return self.heard(pid, word);
        }
        match join.stage.clone() {
            Stage::Waits if self.now.mono >= join.born + PATIENCE => self.close_and_die(pid),
            Stage::Reports(how) if join.conn.is_none() => self.is_unheard(pid, &how),
            Stage::Waits | Stage::Runs { .. } if daemon && join.conn.is_none() && !join.disowned => {
                self.hello(pid);
            }
            Stage::Runs { .. } if join.looks() && !self.disk.full => self.looks(pid),
            _ => {}
        }
    }

    fn hello(&mut self, pid: u32) {
        let conn = self.next_conn();
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.conn = Some(conn);
        let turn = join.turner.as_ref().map(|turner| turner.now.clone());
        let hello = ShimHello {
            spawn_id: join.spawn.as_str().to_owned(),
            agent_pid: join.agent(),
            turn_status: turn,
        };
        self.tell(Event::Joined { conn, hello, process: Process { pid, start_time: 1 } });
    }

    fn heard(&mut self, pid: u32, word: ToShim) {
        self.note(|| format!("join {pid} hears {word:?}"));
        let agent = self.next_pid();
        let cannot = self.rng.u8(..) < 12;
        let Some(join) = self.joins.get_mut(&pid) else { return };
        match (word, &join.stage) {
            (ToShim::StartAgent(go), Stage::Waits) => {
                let conn = join.conn;
                if cannot {
                    self.report(conn, FromShim::Failed { message: "no such program".to_owned() });
                    return self.die(pid);
                }
                let record = self.disk.roster.agents.iter().find(|record| record.spawn == join.spawn);
                join.who = record.map(|record| Who::of(&go, record.feed));
                join.turner = go.setup.as_ref().map(|turns| Turner::new(turns, self.now.wall));
                let agent = if join.turner.is_some() { pid } else { agent };
                join.stage = Stage::Runs { agent };
                self.agent_starts(pid);
                self.report(conn, FromShim::Started { pid: agent });
                if let Some(who) = self.who(pid) {
                    self.program_starts(agent, &who, pid);
                }
            }
            (ToShim::End { .. }, Stage::Runs { .. }) => self.agent_ends(pid, ExitReport::Signal(15)),
            (ToShim::Refused | ToShim::End { .. }, Stage::Waits) => self.close_and_die(pid),
            (ToShim::Refused, Stage::Runs { .. }) => join.disowned = true,
            (ToShim::Interrupt, Stage::Runs { .. }) => {
                let conn = join.conn;
                let turn = self.turn_ends(pid, IdleReason::Interrupted);
                self.report(conn, FromShim::Interrupted { was_in_turn: turn });
            }
            (ToShim::ExitRecorded, Stage::Reports(_)) => {
                self.disk.words.remove(&join.spawn);
                self.die(pid);
            }
            _ => {}
        }
    }

    pub(super) fn report(&mut self, conn: Option<ConnId>, said: FromShim) {
        if let Some(conn) = conn {
            self.tell(Event::JoinSaid { conn, said });
        }
    }

    /// Its agent ends, by itself or not; left in writing, and told to the daemon.
    pub(super) fn agent_ends(&mut self, pid: u32, how: ExitReport) {
        self.note(|| format!("the agent of join {pid} ends: {how}"));
        let agent = self.joins.get(&pid).and_then(Join::agent);
        agent.into_iter().for_each(|agent| self.program_ends(agent));
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.stage = Stage::Reports(how.clone());
        if !self.disk.full {
            self.disk.words.insert(join.spawn.clone(), how.clone());
        }
        match join.conn {
            Some(_) => {
                let conn = join.conn;
                self.report(conn, FromShim::Exited(how));
            }
            None => self.is_unheard(pid, &how),
        }
    }

    fn is_unheard(&mut self, pid: u32, how: &ExitReport) {
        match how {
            ExitReport::TerminalGone => self.die(pid),
            _ => self.close_and_die(pid),
        }
    }

    /// Where nobody may know of its pane, that goes with it.
    fn close_and_die(&mut self, pid: u32) {
        if let Some(pane) = self.joins.get(&pid).and_then(|join| join.pane)
            && pane.0 == self.tmux.server
        {
            self.tmux.panes.remove(&pane.1);
        }
        self.die(pid);
    }

    /// Its terminal is gone.
    pub(super) fn hang_up(&mut self, pid: u32) {
        match self.joins.get(&pid).map(|join| join.stage.clone()) {
            Some(Stage::Waits) => self.die(pid),
            Some(Stage::Runs { .. }) => self.agent_ends(pid, ExitReport::TerminalGone),
            _ => {}
        }
    }

    /// kill -9.
    pub(super) fn kill(&mut self, pid: u32) {
        if let Some(join) = self.joins.get_mut(&pid) {
            join.killed_early = join.stage == Stage::Waits;
        }
        self.die(pid);
    }

    /// Its process is no more.
    pub(super) fn die(&mut self, pid: u32) {
        self.note(|| format!("join {pid} is dead"));
        let agent = self.joins.get(&pid).and_then(Join::agent);
        agent.into_iter().for_each(|agent| self.program_ends(agent));
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.stage = Stage::Dead;
        let conn = join.conn.take();
        if let Some(conn) = conn {
            self.tell(Event::Closed { conn });
        }
    }

    /// The server dies with all in it.
    pub(super) fn restart_tmux(&mut self, strangers: u32) {
        self.note(|| "another tmux server".to_owned());
        let joins: Vec<u32> = self
            .tmux
            .panes
            .values()
            .filter_map(|whose| match whose {
                Whose::Ours(_, pid) => Some(*pid),
                Whose::Stranger => None,
            })
            .collect();
        self.tmux.restart(strangers);
        joins.into_iter().for_each(|pid| self.hang_up(pid));
    }
}

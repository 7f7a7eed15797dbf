//! The processes of the world: joins with their agents, as the real ones behave, and their ends.

use crate::core::event::CoreEvent;
use crate::core::id::ConnId;
use crate::simulator::shim::{AgentIdentity, START_TIMEOUT, ShimStage, SimulatedShim};
use crate::simulator::simulation::Simulation;
use crate::simulator::tmux::PaneOwner;
use crate::simulator::turn_agents::SimulatedTurnAgent;
use protocol::control::{ExitReport, FromShim, Process, ShimHello, ToShim};
use protocol::payload::IdleReason;

impl Simulation {
    pub(super) fn send_event(&mut self, event: CoreEvent) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.push_back(event);
        }
    }

    /// A join does what is next for it.
    pub(super) fn run_shim(&mut self, pid: u32) {
        let daemon = self.daemon.is_some();
        let Some(join) = self.shims.get_mut(&pid) else { return };
        if let Some(word) = join.inbox.pop_front() {
            return self.handle_daemon_message(pid, word);
        }
        match join.stage.clone() {
            ShimStage::Waiting if self.now.mono >= join.started_at + START_TIMEOUT => {
                self.close_pane_and_exit(pid);
            }
            ShimStage::Reporting(how) if join.conn.is_none() => self.exit_unconnected(pid, &how),
            ShimStage::Waiting | ShimStage::Running { .. }
                if daemon && join.conn.is_none() && !join.is_disowned =>
            {
                self.send_hello(pid);
            }
            ShimStage::Running { .. } if join.must_scan() && !self.disk.is_full => self.scan_or_query(pid),
            _ => {}
        }
    }

    fn send_hello(&mut self, pid: u32) {
        let conn = self.next_conn();
        let Some(join) = self.shims.get_mut(&pid) else { return };
        join.conn = Some(conn);
        let turn = join.turn_agent.as_ref().map(|turner| turner.status.clone());
        let hello = ShimHello {
            spawn_id: join.spawn.as_str().to_owned(),
            agent_pid: join.agent_pid(),
            turn_status: turn,
        };
        self.send_event(CoreEvent::ShimConnected { conn, hello, peer: Process { pid, start_time: 1 } });
    }

    fn handle_daemon_message(&mut self, pid: u32, word: ToShim) {
        self.log(|| format!("join {pid} hears {word:?}"));
        let agent = self.next_pid();
        let cannot = self.rng.u8(..) < 12;
        let Some(join) = self.shims.get_mut(&pid) else { return };
        match (word, &join.stage) {
            (ToShim::StartAgent(go), ShimStage::Waiting) => {
                let conn = join.conn;
                if cannot {
                    self.send_report(conn, FromShim::Failed { message: "no such program".to_owned() });
                    return self.exit(pid);
                }
                let record = self.disk.roster.records.iter().find(|record| record.spawn_id == join.spawn);
                join.identity = record.map(|record| AgentIdentity::from_launch(&go, record.delivery));
                join.turn_agent =
                    go.setup.as_ref().map(|turns| SimulatedTurnAgent::new(turns, self.now.wall));
                let agent = if join.turn_agent.is_some() { pid } else { agent };
                join.stage = ShimStage::Running { agent };
                self.check_agent_start(pid);
                self.send_report(conn, FromShim::Started { pid: agent });
                if let Some(who) = self.agent_identity(pid) {
                    self.start_program(agent, &who, pid);
                }
            }
            (ToShim::End { .. }, ShimStage::Running { .. }) => self.end_agent(pid, ExitReport::Signal(15)),
            (ToShim::Refused | ToShim::End { .. }, ShimStage::Waiting) => self.close_pane_and_exit(pid),
            (ToShim::Refused, ShimStage::Running { .. }) => join.is_disowned = true,
            (ToShim::Interrupt, ShimStage::Running { .. }) => {
                let conn = join.conn;
                let turn = self.end_turn(pid, IdleReason::Interrupted);
                self.send_report(conn, FromShim::Interrupted { was_in_turn: turn });
            }
            (ToShim::ExitRecorded, ShimStage::Reporting(_)) => {
                self.disk.exit_reports.remove(&join.spawn);
                self.exit(pid);
            }
            _ => {}
        }
    }

    pub(super) fn send_report(&mut self, conn: Option<ConnId>, said: FromShim) {
        if let Some(conn) = conn {
            self.send_event(CoreEvent::ShimReported { conn, report: said });
        }
    }

    /// Its agent ends, by itself or not; left in writing, and told to the daemon.
    pub(super) fn end_agent(&mut self, pid: u32, how: ExitReport) {
        self.log(|| format!("the agent of join {pid} ends: {how}"));
        let agent = self.shims.get(&pid).and_then(SimulatedShim::agent_pid);
        agent.into_iter().for_each(|agent| self.end_program(agent));
        let Some(join) = self.shims.get_mut(&pid) else { return };
        join.stage = ShimStage::Reporting(how.clone());
        if !self.disk.is_full {
            self.disk.exit_reports.insert(join.spawn.clone(), how.clone());
        }
        match join.conn {
            Some(_) => {
                let conn = join.conn;
                self.send_report(conn, FromShim::Exited(how));
            }
            None => self.exit_unconnected(pid, &how),
        }
    }

    fn exit_unconnected(&mut self, pid: u32, how: &ExitReport) {
        match how {
            ExitReport::TerminalGone => self.exit(pid),
            _ => self.close_pane_and_exit(pid),
        }
    }

    /// Where nobody may know of its pane, that goes with it.
    fn close_pane_and_exit(&mut self, pid: u32) {
        if let Some(pane) = self.shims.get(&pid).and_then(|join| join.pane)
            && pane.0 == self.tmux.server
        {
            self.tmux.panes.remove(&pane.1);
        }
        self.exit(pid);
    }

    /// Its terminal is gone.
    pub(super) fn hang_up_terminal(&mut self, pid: u32) {
        match self.shims.get(&pid).map(|join| join.stage.clone()) {
            Some(ShimStage::Waiting) => self.exit(pid),
            Some(ShimStage::Running { .. }) => self.end_agent(pid, ExitReport::TerminalGone),
            _ => {}
        }
    }

    /// kill -9.
    pub(super) fn kill(&mut self, pid: u32) {
        if let Some(join) = self.shims.get_mut(&pid) {
            join.was_killed_early = join.stage == ShimStage::Waiting;
        }
        self.exit(pid);
    }

    /// Its process is no more.
    pub(super) fn exit(&mut self, pid: u32) {
        self.log(|| format!("join {pid} is dead"));
        let agent = self.shims.get(&pid).and_then(SimulatedShim::agent_pid);
        agent.into_iter().for_each(|agent| self.end_program(agent));
        let Some(join) = self.shims.get_mut(&pid) else { return };
        join.stage = ShimStage::Dead;
        let conn = join.conn.take();
        if let Some(conn) = conn {
            self.send_event(CoreEvent::ConnectionClosed { conn });
        }
    }

    /// The server dies with all in it.
    pub(super) fn restart_tmux(&mut self, strangers: u32) {
        self.log(|| "another tmux server".to_owned());
        let joins: Vec<u32> = self
            .tmux
            .panes
            .values()
            .filter_map(|whose| match whose {
                PaneOwner::Teamd(_, pid) => Some(*pid),
                PaneOwner::Foreign => None,
            })
            .collect();
        self.tmux.restart(strangers);
        joins.into_iter().for_each(|pid| self.hang_up_terminal(pid));
    }
}

//! Simulates the processes: how shims and their agents start, run and exit.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::{AgentIdentity, START_TIMEOUT, ShimStage, SimulatedShim};
use crate::simulator::simulation::{Conditions, Simulation};
use crate::simulator::turn_agent_state::SimulatedTurnAgent;
use protocol::control_socket::{ExitReport, FromShim, Process, ShimHello, ToShim};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_message_payload::IdleReason;
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::{MemberName, TeamName};

impl<C: Conditions> Simulation<C> {
    /// A shim handles its next message from the daemon or takes its next step.
    pub(super) fn run_shim(&mut self, pid: u32) {
        let has_daemon = self.daemon.is_some();
        let Some(shim) = self.shims.get_mut(&pid) else { return };
        if let Some(message) = shim.inbox.pop_front() {
            return self.handle_daemon_message(pid, message);
        }
        match shim.stage.clone() {
            ShimStage::Waiting if self.now.mono >= shim.started_at + START_TIMEOUT => {
                self.close_pane_and_exit(pid);
            }
            ShimStage::Reporting(exit) if shim.conn.is_none() => self.exit_unconnected(pid, &exit),
            ShimStage::Waiting | ShimStage::Running { .. }
                if has_daemon && shim.conn.is_none() && !shim.is_disowned =>
            {
                self.send_hello(pid);
            }
            ShimStage::Running { .. } if shim.must_scan() && !self.disk.is_full => self.scan_or_query(pid),
            _ => {}
        }
    }

    fn send_hello(&mut self, pid: u32) {
        let conn = self.next_conn();
        let Some(shim) = self.shims.get_mut(&pid) else { return };
        shim.conn = Some(conn);
        let turn = shim.turn_agent.as_ref().map(|turn_agent| turn_agent.status.clone());
        let hello = ShimHello {
            spawn_id: shim.spawn.as_str().to_owned(),
            agent_pid: shim.agent_pid(),
            turn_status: turn,
        };
        self.send_event(CoreEvent::ShimConnected { conn, hello, peer: Process { pid, start_time: 1 } });
    }

    fn handle_daemon_message(&mut self, pid: u32, message: ToShim) {
        self.log(|| format!("shim {pid} receives {message:?}"));
        let agent = self.next_pid();
        let fails = self.conditions.goes_wrong(12);
        let Some(shim) = self.shims.get_mut(&pid) else { return };
        match (message, &shim.stage) {
            (ToShim::StartAgent(start_agent), ShimStage::Waiting) => {
                let conn = shim.conn;
                if fails {
                    let error = ErrorReport::new(ErrorKind::MissingPath, "no such program");
                    self.send_report(conn, FromShim::Failed(error));
                    return self.exit(pid);
                }
                let record = self.disk.roster.records.iter().find(|record| record.spawn_id == shim.spawn);
                shim.identity = record.map(|record| AgentIdentity::from_launch(&start_agent, record));
                shim.turn_agent = start_agent
                    .turn_setup
                    .as_ref()
                    .map(|turn_setup| SimulatedTurnAgent::new(turn_setup, self.now.wall));
                let agent = if shim.turn_agent.is_some() { pid } else { agent };
                shim.stage = ShimStage::Running { agent };
                self.send_report(conn, FromShim::Started { pid: agent });
                C::agent_started(self, pid);
            }
            (ToShim::End { .. }, ShimStage::Running { .. }) => self.end_agent(pid, ExitReport::Signal(15)),
            (ToShim::Refused | ToShim::End { .. }, ShimStage::Waiting) => self.close_pane_and_exit(pid),
            (ToShim::Refused, ShimStage::Running { .. }) => shim.is_disowned = true,
            (ToShim::Interrupt, ShimStage::Running { .. }) => {
                let conn = shim.conn;
                let was_in_turn = self.end_turn(pid, IdleReason::Interrupted);
                self.send_report(conn, FromShim::Interrupted { was_in_turn });
            }
            (ToShim::ExitRecorded, ShimStage::Reporting(_)) => {
                self.disk.exit_reports.remove(&shim.spawn);
                self.exit(pid);
            }
            _ => {}
        }
    }

    pub(super) fn send_report(&mut self, conn: Option<ConnId>, report: FromShim) {
        if let Some(conn) = conn {
            self.send_event(CoreEvent::ShimReported { conn, report });
        }
    }

    /// The shims that can act now.
    pub(super) fn due_shims(&self) -> impl Iterator<Item = u32> {
        let (daemon, mono) = (self.daemon.as_ref(), self.now.mono);
        let due = move |(pid, shim): (&u32, &SimulatedShim)| shim.is_due(daemon, mono).then_some(*pid);
        self.shims.iter().filter_map(due)
    }

    /// A member answers a shutdown request: it agrees, or rejects the request with this reason.
    pub(super) fn write_shutdown_answer(
        &mut self,
        team: &TeamName,
        member: MemberName,
        request: RequestId,
        rejection: Option<String>,
    ) {
        self.log(|| format!("{member} answers {request}: {rejection:?}"));
        if let Some(files) = self.disk.teams.get_mut(team).filter(|_| !self.disk.is_full) {
            files.shutdown_answers.entry(request).or_insert((member, rejection));
            self.disk.record_change(team, TeamFile::Inbox(MemberName::lead()));
        }
    }

    /// Ends the agent of a shim. The shim writes the exit report and sends it to the daemon.
    pub(super) fn end_agent(&mut self, pid: u32, report: ExitReport) {
        self.log(|| format!("the agent of shim {pid} ends: {report}"));
        let agent = self.shims.get(&pid).and_then(SimulatedShim::agent_pid);
        agent.into_iter().for_each(|agent| C::program_ended(self, agent));
        let Some(shim) = self.shims.get_mut(&pid) else { return };
        shim.stage = ShimStage::Reporting(report.clone());
        if !self.disk.is_full {
            self.disk.exit_reports.insert(shim.spawn.clone(), report.clone());
        }
        match shim.conn {
            Some(_) => {
                let conn = shim.conn;
                self.send_report(conn, FromShim::Exited(report));
            }
            None => self.exit_unconnected(pid, &report),
        }
    }

    fn exit_unconnected(&mut self, pid: u32, report: &ExitReport) {
        match report {
            ExitReport::TerminalGone => self.exit(pid),
            _ => self.close_pane_and_exit(pid),
        }
    }

    /// Closes the pane of a shim and ends the shim. The daemon may not know the pane.
    fn close_pane_and_exit(&mut self, pid: u32) {
        if let Some(pane) = self.shims.get(&pid).and_then(|shim| shim.pane)
            && pane.0 == self.tmux.server
        {
            self.tmux.panes.remove(&pane.1);
        }
        self.exit(pid);
    }

    /// Handles the end of a shim's terminal.
    pub(super) fn hang_up_terminal(&mut self, pid: u32) {
        match self.shims.get(&pid).map(|shim| shim.stage.clone()) {
            Some(ShimStage::Waiting) => self.exit(pid),
            Some(ShimStage::Running { .. }) => self.end_agent(pid, ExitReport::TerminalGone),
            _ => {}
        }
    }

    /// Ends the process of a shim and its agent's program, and closes its connection.
    pub(super) fn exit(&mut self, pid: u32) {
        self.log(|| format!("shim {pid} has exited"));
        let agent = self.shims.get(&pid).and_then(SimulatedShim::agent_pid);
        agent.into_iter().for_each(|agent| C::program_ended(self, agent));
        let Some(shim) = self.shims.get_mut(&pid) else { return };
        shim.stage = ShimStage::Dead;
        let conn = shim.conn.take();
        if let Some(conn) = conn {
            self.send_event(CoreEvent::ConnectionClosed { conn });
        }
    }
}

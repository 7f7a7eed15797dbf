//! `join`: the first process in every pane, and the parent of its agent.
//!
//! Says hello to the daemon and waits for the green light; starts the agent, or lives a teammate's life and starts
//! it for each turn; stays until nothing of it is left, and tells how it ended. The daemon may die and come back
//! meanwhile: the agent never notices, since both ends of its wake line are held here. Blocking, without an async
//! runtime, small.

use crate::args::ShimArgs;
use crate::child_process;
use crate::child_process::PaneMode;
use crate::daemon_connection::{DaemonConnection, ShimEvent};
use crate::descendants::{Remaining, end_all};
use crate::own_pane::close_own_pane;
use crate::pre_exec::close_inherited;
use crate::pty::OutputPty;
use crate::signals::ShimSignals;
use crate::turn_executor;
use crate::turns::turn_loop::TurnLoopEnd;
use nix::sys::signal::Signal;
use protocol::control::{ExitReport, FromShim, StartAgent, ToShim, TurnSetup};
use protocol::error::ErrorReport;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// Without a green light nothing runs, and the pane closes by itself.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Between TERM and KILL for what an agent leaves behind.
const DESCENDANT_GRACE: Duration = Duration::from_millis(500);
/// How long a daemon may take to note a report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
pub(crate) fn run(args: &ShimArgs) -> Result<ExitCode, ErrorReport> {
    if args.headless.is_some() {
        // What the daemon inherited itself. In a pane tmux has seen to it.
        close_inherited();
    }
    // First of all descriptors, so that it gets the number 3: a shell can redirect from one digit only.
    let (near, far) = UnixStream::pair().map_err(|error| {
        ErrorReport::new(protocol::error::ErrorKind::Io, format!("cannot make a wake line: {error}"))
    })?;
    if args.headless.is_some() {
        // The daemon's terminal is none of the agent's. It fails only for who leads a session already.
        nix::unistd::setsid().ok();
    }
    let signals = ShimSignals::install()?;
    nix::sys::prctl::set_child_subreaper(true).map_err(|errno| {
        ErrorReport::new(
            protocol::error::ErrorKind::Internal,
            format!("cannot become the parent of orphans: {errno}"),
        )
    })?;
    let mut link = DaemonConnection::new(args.socket.clone(), &args.spawn, far.into());
    failpoint::hit("join.begin");
    let Some(go) = wait_for_start_agent(&mut link, &signals) else {
        failpoint::hit("join.refused");
        // A daemon that was killed before it wrote us down leaves nobody who knows of this pane.
        close_own_pane(&args.spawn);
        return Ok(ExitCode::from(75));
    };
    failpoint::hit("join.go");
    let life = match &go.setup {
        Some(turns) => run_turn_agent(&mut link, &signals, (&go, turns), near, args.headless.as_deref()),
        None => run_long_lived_agent(&mut link, &signals, &go, near, args.headless.as_deref()),
    };
    Ok(life.unwrap_or_else(|message| {
        // The daemon must hear why before it sees that we are dead.
        match link.send(&FromShim::Failed { message }) {
            true => drop(link.next_event_on_connection(&signals, Instant::now() + REPORT_TIMEOUT)),
            false => close_own_pane(&args.spawn),
        }
        ExitCode::from(72)
    }))
}

/// An agent that is one process for its whole life. The text of an error says why there is none.
fn run_long_lived_agent(
    link: &mut DaemonConnection,
    signals: &ShimSignals,
    go: &StartAgent,
    line: UnixStream,
    log: Option<&Path>,
) -> Result<ExitCode, String> {
    let mut terminal = log.map(OutputPty::to_log).transpose().map_err(pty_error)?;
    let agent = child_process::start_agent(go, &line.into(), terminal.as_ref())?;
    Ok(run_agent(link, signals, go, agent, &mut terminal))
}

/// An agent whose turns are run here. The text of an error says why there is none.
fn run_turn_agent(
    link: &mut DaemonConnection,
    signals: &ShimSignals,
    (go, turns): (&StartAgent, &TurnSetup),
    line: UnixStream,
    log: Option<&Path>,
) -> Result<ExitCode, String> {
    let place = if log.is_some() { PaneMode::Headless } else { PaneMode::Pane };
    let stands_on = turn_executor::prepare(go, turns, link.next_task_client())?;
    let terminal = log.map_or_else(OutputPty::to_pane, OutputPty::to_log).map_err(pty_error)?;
    line.set_nonblocking(true).map_err(pty_error)?;
    let mut lived =
        turn_executor::run_turns((link, signals), (go, turns), stands_on, (terminal, place), line);
    let grace = lived.grace.unwrap_or(DESCENDANT_GRACE);
    let left = end_all(signals, grace, &link.exempt_processes(), &mut |_, _| {}, &mut || {
        lived.terminal.copy_available();
    });
    let last = lived.terminal.drain_and_take_tail();
    if let (turn_executor::StartReport::NotSent, TurnLoopEnd::NotStarted(why)) = (&lived.birth, &lived.over) {
        return Err(if last.is_empty() { why.clone() } else { format!("{why}: {last}") });
    }
    let (how, code) = match lived.over {
        _ if signals.is_hung_up() => (ExitReport::TerminalGone, 129),
        TurnLoopEnd::ShutdownApproved => (ExitReport::Exit(0), 0),
        TurnLoopEnd::Terminated => (ExitReport::Signal(Signal::SIGTERM as i32), 143),
        TurnLoopEnd::NotStarted(why) => (ExitReport::TurnNotStarted(why), 72),
    };
    report_unless_descendants_remain(left, link, signals, &go.state_dir, &how);
    Ok(ExitCode::from(code))
}

fn pty_error(error: std::io::Error) -> String {
    format!("cannot open a terminal for the agent: {error}")
}

/// Waits for it; a refusal, or 15 s without, is the end.
fn wait_for_start_agent(link: &mut DaemonConnection, signals: &ShimSignals) -> Option<Box<StartAgent>> {
    let until = Instant::now() + START_TIMEOUT;
    loop {
        match link.next_event(signals, Some(until), &[]) {
            ShimEvent::Message(ToShim::StartAgent(go)) => return Some(go),
            ShimEvent::Message(ToShim::Refused | ToShim::End { .. }) | ShimEvent::Deadline => return None,
            ShimEvent::Signal if signals.is_hung_up() || signals.is_terminated() => return None,
            ShimEvent::Message(_) | ShimEvent::Signal | ShimEvent::DescriptorReady => {}
        }
    }
}

/// From the agent's first breath to the last of its descendants.
fn run_agent(
    link: &mut DaemonConnection,
    signals: &ShimSignals,
    go: &StartAgent,
    agent: Child,
    terminal: &mut Option<OutputPty>,
) -> ExitCode {
    failpoint::hit("join.agent");
    link.agent = Some(agent.id());
    link.send(&FromShim::Started { pid: agent.id() });
    failpoint::hit("join.told");
    let mut family = AgentProcess { agent: agent.id(), status: None };
    let grace = wait_for_end(link, signals, &mut family, terminal);
    let copy = &mut || terminal.iter_mut().for_each(OutputPty::copy_available);
    let left = end_all(
        signals,
        grace,
        &link.exempt_processes(),
        &mut |pid, status| family.note_exit(pid, status),
        copy,
    );
    terminal.iter_mut().for_each(|terminal| drop(terminal.drain_and_take_tail()));
    let how = family.end_reason(signals.is_hung_up());
    report_unless_descendants_remain(left, link, signals, &go.state_dir, &how);
    family.exit_code()
}

/// Until the agent ends or is to end; gives the time between TERM and KILL for what is left.
fn wait_for_end(
    link: &mut DaemonConnection,
    signals: &ShimSignals,
    family: &mut AgentProcess,
    terminal: &mut Option<OutputPty>,
) -> Duration {
    loop {
        terminal.iter_mut().for_each(OutputPty::copy_available);
        let beside: Vec<_> = terminal.iter().map(OutputPty::watched_descriptor).collect();
        match link.next_event(signals, None, &beside) {
            ShimEvent::Message(ToShim::End { grace_ms }) => return Duration::from_millis(grace_ms),
            ShimEvent::Message(ToShim::Interrupt) => {
                // Its turns are its own affair: there is none that we could end.
                link.send(&FromShim::Interrupted { was_in_turn: false });
            }
            ShimEvent::Message(_) | ShimEvent::DescriptorReady | ShimEvent::Deadline => {}
            ShimEvent::Signal => {
                crate::descendants::reap(&mut |pid, status| family.note_exit(pid, status));
                if family.status.is_some() || signals.is_hung_up() || signals.is_terminated() {
                    return DESCENDANT_GRACE;
                }
            }
        }
    }
}

/// The agent and what became of it.
struct AgentProcess {
    agent: u32,
    status: Option<ExitStatus>,
}

impl AgentProcess {
    fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.agent {
            self.status = Some(status);
        }
    }

    /// A hang-up comes before the deaths that it causes, so it is the cause.
    fn end_reason(&self, hung_up: bool) -> ExitReport {
        match self.status {
            _ if hung_up => ExitReport::TerminalGone,
            Some(status) => ExitReport::from_status(status),
            None => ExitReport::ShimKilled,
        }
    }

    fn exit_code(&self) -> ExitCode {
        let status = self.status.unwrap_or_default();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}

/// Of an agent that has left somebody whom we could not end there is no word: the daemon that misses it looks for them,
/// and no other does.
fn report_unless_descendants_remain(
    left: Remaining,
    link: &mut DaemonConnection,
    signals: &ShimSignals,
    state: &Path,
    how: &ExitReport,
) {
    if left == Remaining::Nothing {
        report_end(link, signals, state, how);
    }
}

/// Tells the daemon, and leaves word for the next one first: whoever hears of the end takes the word away, and where
/// the answer is lost nobody can know whether it was heard. One that was put away before drops its own.
fn report_end(link: &mut DaemonConnection, signals: &ShimSignals, state: &Path, how: &ExitReport) {
    failpoint::hit("join.report");
    let words = serde_json::to_vec(how).expect("an end has nothing that JSON cannot hold");
    let file = format!("end-{}.json", link.spawn_id());
    let state = store::StateDir::open(state);
    if !link.is_refused_before_start() {
        // Where it can't be left the daemon that listens needs none.
        state.iter().for_each(|state| drop(state.overwrite(&file, &words)));
    }
    failpoint::hit("join.left");
    let noted = wait_until_exit_recorded(link, signals, how);
    failpoint::hit("join.heard");
    if noted || link.is_refused_before_start() {
        state.iter().for_each(|state| drop(state.remove(&file)));
    }
    // The pane closes with us: there is nobody to complain to.
    if !noted && *how != ExitReport::TerminalGone {
        failpoint::hit("join.close");
        close_own_pane(link.spawn_id());
    }
}

fn wait_until_exit_recorded(link: &mut DaemonConnection, signals: &ShimSignals, how: &ExitReport) -> bool {
    let until = Instant::now() + REPORT_TIMEOUT;
    if link.send(&FromShim::Exited(how.clone())) {
        while let ShimEvent::Message(word) = link.next_event_on_connection(signals, until) {
            if matches!(word, ToShim::ExitRecorded) {
                return true;
            }
        }
    }
    false
}

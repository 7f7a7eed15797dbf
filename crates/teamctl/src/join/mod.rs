//! `join`: the first process in every pane, and the parent of its agent.
//!
//! Says hello to the daemon and waits for the green light; starts the agent, or lives a teammate's life and starts
//! it for each turn; stays until nothing of it is left, and tells how it ended. The daemon may die and come back
//! meanwhile: the agent never notices, since both ends of its wake line are held here. Blocking, without an async
//! runtime, small.

mod descendants;
mod interrupt;
mod link;
mod running;
mod signals;
mod standing;
mod start;
mod terminal;
mod turns;
mod wire;

use crate::exec::close_inherited;
use crate::teammate::Over;
use descendants::{Left, end_all};
use link::{Heard, Link};
use nix::sys::signal::Signal;
use protocol::control::{ExitReport, FromShim, StartAgent, ToShim, TurnSetup};
use protocol::error::ErrorReport;
use signals::Signals;
use start::Place;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use terminal::Terminal;

/// Be the first process in a pane; started by teamd alone
#[derive(Debug, clap::Args)]
pub(crate) struct Join {
    /// The id of this life, from teamd
    #[arg(value_name = "SPAWN")]
    spawn: String,
    /// There is no pane: the agent's output goes into this file
    #[arg(long, value_name = "LOGPATH")]
    headless: Option<PathBuf>,
}

/// Without a green light nothing runs, and the pane closes by itself.
const GREEN_LIGHT: Duration = Duration::from_secs(15);
/// Between TERM and KILL for what an agent leaves behind.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// The process beside an agent has begun once it has lived for so long; one that ended by itself before would end again.
const BEGUN: Duration = Duration::from_secs(1);
/// How long a daemon may take to note a report.
const NOTED: Duration = Duration::from_secs(2);
impl Join {
    /// `join SPAWN --socket PATH [--headless LOGPATH]`, as teamd writes it: the parser of all verbs would make up most
    /// of the memory that this process holds for as long as its agent lives.
    pub(crate) fn of(words: &[OsString]) -> Option<(Join, PathBuf)> {
        let (spawn, path, headless) = match words {
            [join, spawn, socket, path] if join == "join" && socket == "--socket" => (spawn, path, None),
            [join, spawn, socket, path, headless, log]
                if join == "join" && socket == "--socket" && headless == "--headless" =>
            {
                (spawn, path, Some(log.into()))
            }
            _ => return None,
        };
        Some((Join { spawn: spawn.clone().into_string().ok()?, headless }, path.into()))
    }
}

pub(crate) fn run(args: &Join, socket: &Path) -> Result<ExitCode, ErrorReport> {
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
    let signals = Signals::catch()?;
    nix::sys::prctl::set_child_subreaper(true).map_err(|errno| {
        ErrorReport::new(
            protocol::error::ErrorKind::Internal,
            format!("cannot become the parent of orphans: {errno}"),
        )
    })?;
    let mut link = Link::new(socket.to_owned(), &args.spawn, far.into());
    failpoint::hit("join.begin");
    let Some(go) = green_light(&mut link, &signals) else {
        failpoint::hit("join.refused");
        // A daemon that was killed before it wrote us down leaves nobody who knows of this pane.
        close_our_pane(&args.spawn);
        return Ok(ExitCode::from(75));
    };
    failpoint::hit("join.go");
    let life = match &go.setup {
        Some(turns) => in_turns(&mut link, &signals, (&go, turns), near, args.headless.as_deref()),
        None => at_once(&mut link, &signals, &go, near, args.headless.as_deref()),
    };
    Ok(life.unwrap_or_else(|message| {
        // The daemon must hear why before it sees that we are dead.
        match link.tell(&FromShim::Failed { message }) {
            true => drop(link.hear_once(&signals, Instant::now() + NOTED)),
            false => close_our_pane(&args.spawn),
        }
        ExitCode::from(72)
    }))
}

/// An agent that is one process for its whole life. The text of an error says why there is none.
fn at_once(
    link: &mut Link,
    signals: &Signals,
    go: &StartAgent,
    line: UnixStream,
    log: Option<&Path>,
) -> Result<ExitCode, String> {
    let mut terminal = log.map(Terminal::of_the_log).transpose().map_err(no_terminal)?;
    let agent = start::agent(go, &line.into(), terminal.as_ref())?;
    Ok(live(link, signals, go, agent, &mut terminal))
}

/// An agent whose turns are run here. The text of an error says why there is none.
fn in_turns(
    link: &mut Link,
    signals: &Signals,
    (go, turns): (&StartAgent, &TurnSetup),
    line: UnixStream,
    log: Option<&Path>,
) -> Result<ExitCode, String> {
    let place = if log.is_some() { Place::Headless } else { Place::Pane };
    let stands_on = turns::prepared(go, turns, link.hints())?;
    let terminal = log.map_or_else(Terminal::of_the_pane, Terminal::of_the_log).map_err(no_terminal)?;
    line.set_nonblocking(true).map_err(no_terminal)?;
    let mut lived = turns::live((link, signals), (go, turns), stands_on, (terminal, place), line);
    let grace = lived.grace.unwrap_or(LEFTOVER_GRACE);
    let left = end_all(signals, grace, &link.daemons(), &mut |_, _| {}, &mut || lived.terminal.copy());
    let last = lived.terminal.drain();
    if let (turns::Birth::Never, Over::NotStarted(why)) = (&lived.birth, &lived.over) {
        return Err(if last.is_empty() { why.clone() } else { format!("{why}: {last}") });
    }
    let (how, code) = match lived.over {
        _ if signals.hung_up() => (ExitReport::TerminalGone, 129),
        Over::Approved => (ExitReport::Exit(0), 0),
        Over::Ended => (ExitReport::Signal(Signal::SIGTERM as i32), 143),
        Over::NotStarted(why) => (ExitReport::TurnNotStarted(why), 72),
    };
    report_of(left, link, signals, &go.state_dir, &how);
    Ok(ExitCode::from(code))
}

fn no_terminal(error: std::io::Error) -> String {
    format!("cannot open a terminal for the agent: {error}")
}

/// Waits for it; a refusal, or 15 s without, is the end.
fn green_light(link: &mut Link, signals: &Signals) -> Option<Box<StartAgent>> {
    let until = Instant::now() + GREEN_LIGHT;
    loop {
        match link.hear(signals, Some(until), &[]) {
            Heard::Word(ToShim::StartAgent(go)) => return Some(go),
            Heard::Word(ToShim::Refused | ToShim::End { .. }) | Heard::Deadline => return None,
            Heard::Signal if signals.hung_up() || signals.told_to_end() => return None,
            Heard::Word(_) | Heard::Signal | Heard::Beside => {}
        }
    }
}

/// From the agent's first breath to the last of its descendants.
fn live(
    link: &mut Link,
    signals: &Signals,
    go: &StartAgent,
    agent: Child,
    terminal: &mut Option<Terminal>,
) -> ExitCode {
    failpoint::hit("join.agent");
    link.agent = Some(agent.id());
    link.tell(&FromShim::Started { pid: agent.id() });
    failpoint::hit("join.told");
    let mut family = Family { agent: agent.id(), status: None, beside: Beside::begin(go) };
    let grace = supervise(link, signals, go, &mut family, terminal);
    let copy = &mut || terminal.iter_mut().for_each(Terminal::copy);
    let left = end_all(signals, grace, &link.daemons(), &mut |pid, status| family.reaped(pid, status), copy);
    terminal.iter_mut().for_each(|terminal| drop(terminal.drain()));
    let how = family.how(signals.hung_up());
    report_of(left, link, signals, &go.state_dir, &how);
    family.exit_code()
}

/// Until the agent ends or is to end; gives the time between TERM and KILL for what is left.
fn supervise(
    link: &mut Link,
    signals: &Signals,
    go: &StartAgent,
    family: &mut Family,
    terminal: &mut Option<Terminal>,
) -> Duration {
    loop {
        terminal.iter_mut().for_each(Terminal::copy);
        let beside: Vec<_> = terminal.iter().map(Terminal::beside).collect();
        match link.hear(signals, None, &beside) {
            Heard::Word(ToShim::End { grace_ms }) => return Duration::from_millis(grace_ms),
            Heard::Word(ToShim::Interrupt) => {
                // Its turns are its own affair: there is none that we could end.
                link.tell(&FromShim::Interrupted { was_in_turn: false });
            }
            Heard::Word(_) | Heard::Beside | Heard::Deadline => {}
            Heard::Signal => {
                descendants::reap(&mut |pid, status| family.reaped(pid, status));
                if family.status.is_some() || signals.hung_up() || signals.told_to_end() {
                    return LEFTOVER_GRACE;
                }
                if let Some(ended) = family.beside.as_ref().and_then(|beside| beside.ended.as_ref()) {
                    family.beside = Beside::after(ended, go);
                }
            }
        }
    }
}

/// The agent and what became of it.
struct Family {
    agent: u32,
    status: Option<ExitStatus>,
    beside: Option<Beside>,
}

impl Family {
    fn reaped(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.agent {
            self.status = Some(status);
        }
        if let Some(beside) = self.beside.as_mut().filter(|beside| beside.pid == pid) {
            let begun = status.signal().is_some() || beside.began.elapsed() >= BEGUN;
            beside.ended = Some(if begun { Begun::Yes } else { Begun::No });
        }
    }

    /// A hang-up comes before the deaths that it causes, so it is the cause.
    fn how(&self, hung_up: bool) -> ExitReport {
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

/// The process beside the agent; reaped with all descendants.
struct Beside {
    pid: u32,
    began: Instant,
    /// It has ended.
    ended: Option<Begun>,
}

/// Whether it had begun what it is there for: then another may go on with it.
enum Begun {
    Yes,
    No,
}

impl Beside {
    fn begin(go: &StartAgent) -> Option<Beside> {
        let pid = start::beside(go)?.id();
        Some(Beside { pid, began: Instant::now(), ended: None })
    }

    /// Another in its place, which feeds the agent: but for one that could not even begin.
    fn after(ended: &Begun, go: &StartAgent) -> Option<Beside> {
        match ended {
            Begun::Yes => Beside::begin(go),
            Begun::No => None,
        }
    }
}

/// Of an agent that has left somebody whom we could not end there is no word: the daemon that misses it looks for them,
/// and no other does.
fn report_of(left: Left, link: &mut Link, signals: &Signals, state: &Path, how: &ExitReport) {
    if left == Left::Nobody {
        report(link, signals, state, how);
    }
}

/// Tells the daemon, and leaves word for the next one first: whoever hears of the end takes the word away, and where
/// the answer is lost nobody can know whether it was heard. One that was put away before drops its own.
fn report(link: &mut Link, signals: &Signals, state: &Path, how: &ExitReport) {
    failpoint::hit("join.report");
    let words = serde_json::to_vec(how).expect("an end has nothing that JSON cannot hold");
    let file = format!("end-{}.json", link.spawn());
    let state = store::StateDir::open(state);
    if !link.is_put_away() {
        // Where it can't be left the daemon that listens needs none.
        state.iter().for_each(|state| drop(state.overwrite(&file, &words)));
    }
    failpoint::hit("join.left");
    let noted = is_noted(link, signals, how);
    failpoint::hit("join.heard");
    if noted || link.is_put_away() {
        state.iter().for_each(|state| drop(state.remove(&file)));
    }
    // The pane closes with us: there is nobody to complain to.
    if !noted && *how != ExitReport::TerminalGone {
        failpoint::hit("join.close");
        close_our_pane(link.spawn());
    }
}

fn is_noted(link: &mut Link, signals: &Signals, how: &ExitReport) -> bool {
    let until = Instant::now() + NOTED;
    if link.tell(&FromShim::Exited(how.clone())) {
        while let Heard::Word(word) = link.hear_once(signals, until) {
            if matches!(word, ToShim::ExitRecorded) {
                return true;
            }
        }
    }
    false
}

/// The daemon closes the panes of agents that have ended; where there is none, we close our own. By a command, not by
/// our end: see docs/ARCHITECTURE.md, deviation 7.
fn close_our_pane(spawn: &str) {
    if !spawn.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        // tmux would read more than a word into it.
        return;
    }
    let variable = |name| crate::here::variable(name);
    let (Some(tmux), Some(pane)) = (variable("TMUX"), variable("TMUX_PANE")) else { return };
    let socket = tmux.split(',').next().unwrap_or_default();
    let mut command = Command::new("tmux");
    // Whoever starts the pane anew hangs us up, and has it as theirs.
    let ours = format!("#{{&&:#{{==:#{{@teamd}},{spawn}}},#{{==:#{{pane_pid}},{}}}}}", std::process::id());
    command.args(["-S", socket, "if-shell", "-F", "-t", &pane, &ours, &format!("kill-pane -t {pane}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_words_are_read_without_the_parser_of_all_verbs() {
        let of = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Join::of(&words).map(|(join, socket)| (join.spawn, socket, join.headless))
        };
        let pane = of(&["join", "x-1", "--socket", "/s"]);
        assert_eq!(pane, Some(("x-1".into(), "/s".into(), None)));
        let headless = of(&["join", "x-1", "--socket", "/s", "--headless", "/l"]);
        assert_eq!(headless, Some(("x-1".into(), "/s".into(), Some("/l".into()))));
        assert_eq!(of(&["join", "x-1"]), None);
        assert_eq!(of(&["send", "x-1", "--socket", "/s"]), None);
    }
}

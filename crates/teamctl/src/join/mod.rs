//! `teamctl join`: the first process in every pane, and the parent of its agent.
//!
//! Says hello to the daemon and waits for the green light; starts the agent; stays until nothing of it is
//! left, and tells how it ended. The daemon may die and come back meanwhile: the agent never notices, since
//! both ends of its wake line are held here. Blocking, without an async runtime, small.

mod descendants;
mod link;
mod signals;

use crate::exec::foreground;
use descendants::end_all;
use link::{Heard, Link};
use protocol::control::{Ended, FromJoin, Go, ToJoin};
use protocol::fault::Fault;
use signals::Signals;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Be the first process in a pane; started by teamd alone
#[derive(Debug, clap::Args)]
pub(crate) struct Join {
    /// The id of this life, from teamd
    #[arg(value_name = "SPAWN")]
    spawn: String,
}

/// Without a green light nothing runs, and the pane closes by itself.
const GREEN_LIGHT: Duration = Duration::from_secs(15);
/// Between TERM and KILL for what an agent leaves behind.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// How long a daemon may take to note a report.
const NOTED: Duration = Duration::from_secs(2);
/// What the terminal in this pane can do, and which pane it is: known here, not where the agent was ordered.
const OF_THE_PANE: [&str; 6] =
    ["TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

impl Join {
    /// `join SPAWN --socket PATH`, read without the parser of all verbs: its tables would make up most of the
    /// memory that this process holds for as long as its agent lives.
    pub(crate) fn as_teamd_writes_it() -> Option<(Join, PathBuf)> {
        let mut words = std::env::args_os().skip(1);
        let join = words.next()? == "join";
        let spawn = words.next()?.into_string().ok()?;
        let socket = words.next()? == "--socket";
        let path = words.next()?.into();
        (join && socket && words.next().is_none()).then_some((Join { spawn }, path))
    }
}

pub(crate) fn run(args: &Join, socket: &Path) -> Result<ExitCode, Fault> {
    // First of all descriptors, so that it gets the number 3: a shell can redirect from one digit only.
    let (near, far) = std::os::unix::net::UnixStream::pair().map_err(|error| {
        Fault::new(protocol::fault::Kind::Io, format!("cannot make a wake line: {error}"))
    })?;
    let signals = Signals::catch()?;
    nix::sys::prctl::set_child_subreaper(true).map_err(|errno| {
        Fault::new(protocol::fault::Kind::Internal, format!("cannot become the parent of orphans: {errno}"))
    })?;
    let mut link = Link::new(socket.to_owned(), &args.spawn, far.into());
    let Some(go) = green_light(&mut link, &signals) else { return Ok(ExitCode::from(75)) };
    match start(&go, &near.into()) {
        Err(message) => {
            // The daemon must hear why before it sees that we are dead.
            if link.tell(&FromJoin::Failed { message }) {
                link.hear_once(&signals, Instant::now() + NOTED);
            }
            Ok(ExitCode::from(72))
        }
        Ok(agent) => Ok(live(&mut link, &signals, &go, agent)),
    }
}

/// Waits for it; a refusal, or 15 s without, is the end.
fn green_light(link: &mut Link, signals: &Signals) -> Option<Box<Go>> {
    let until = Instant::now() + GREEN_LIGHT;
    loop {
        match link.hear(signals, Some(until)) {
            Heard::Word(ToJoin::Go(go)) => return Some(go),
            Heard::Word(ToJoin::Refused | ToJoin::End { .. }) | Heard::Deadline => return None,
            Heard::Signal if signals.hung_up() || signals.told_to_end() => return None,
            Heard::Word(_) | Heard::Signal => {}
        }
    }
}

/// The agent, in the foreground of this terminal. The text of an error names what is missing.
fn start(go: &Go, line: &OwnedFd) -> Result<Child, String> {
    if !go.cwd.is_dir() {
        return Err(format!("cannot start in {}: no such directory", go.cwd.display()));
    }
    let (program, arguments) = go.argv.split_first().ok_or("cannot start an agent without a program")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&go.cwd).env_clear().envs(&go.env).env("PWD", &go.cwd);
    command.env("TEAMD_WAKE_FD", line.as_raw_fd().to_string());
    for name in OF_THE_PANE {
        match std::env::var_os(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    foreground(&mut command, line);
    command.spawn().map_err(|error| format!("cannot start {program}: {error}"))
}

/// From the agent's first breath to the last of its descendants.
fn live(link: &mut Link, signals: &Signals, go: &Go, agent: Child) -> ExitCode {
    link.agent = Some(agent.id());
    link.tell(&FromJoin::Started { pid: agent.id() });
    let mut family = Family { agent: agent.id(), status: None };
    let grace = supervise(link, signals, &mut family);
    end_all(signals, grace, &mut |pid, status| family.reaped(pid, status));
    let how = family.how(signals.hung_up());
    report(link, signals, &go.state, &how);
    family.exit_code()
}

/// Until the agent ends or is to end; gives the time between TERM and KILL for what is left.
fn supervise(link: &mut Link, signals: &Signals, family: &mut Family) -> Duration {
    loop {
        match link.hear(signals, None) {
            Heard::Word(ToJoin::End { grace_ms }) => return Duration::from_millis(grace_ms),
            Heard::Word(_) | Heard::Deadline => {}
            Heard::Signal => {
                descendants::reap(&mut |pid, status| family.reaped(pid, status));
                if family.status.is_some() || signals.hung_up() || signals.told_to_end() {
                    return LEFTOVER_GRACE;
                }
            }
        }
    }
}

/// The agent and what became of it.
struct Family {
    agent: u32,
    status: Option<ExitStatus>,
}

impl Family {
    fn reaped(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.agent {
            self.status = Some(status);
        }
    }

    /// A hang-up comes before the deaths that it causes, so it is the cause.
    fn how(&self, hung_up: bool) -> Ended {
        match self.status {
            _ if hung_up => Ended::Hangup,
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exit(code),
                (None, Some(signal)) => Ended::Signal(signal),
                (None, None) => Ended::Lost,
            },
            None => Ended::Lost,
        }
    }

    fn exit_code(&self) -> ExitCode {
        let status = self.status.unwrap_or_default();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}

/// Tells the daemon; where there is none, leaves word for the next one.
fn report(link: &mut Link, signals: &Signals, state: &Path, how: &Ended) {
    let until = Instant::now() + NOTED;
    if link.tell(&FromJoin::Ended(how.clone())) {
        while let Heard::Word(word) = link.hear_once(signals, until) {
            if matches!(word, ToJoin::Noted) {
                return;
            }
        }
    }
    let words = serde_json::to_vec(how).expect("an end has nothing that JSON cannot hold");
    let left = store::StateDir::open(state)
        .and_then(|state| state.replace(&format!("end-{}.json", link.spawn()), &words));
    // The pane closes with us: there is nobody to complain to.
    left.ok();
    if *how != Ended::Hangup {
        close_after_us();
    }
}

/// The daemon closes the panes of agents that have ended; where there is none, this one is to go with us.
fn close_after_us() {
    let variable = |name| crate::here::variable(name);
    let (Some(tmux), Some(pane)) = (variable("TMUX"), variable("TMUX_PANE")) else { return };
    let socket = tmux.split(',').next().unwrap_or_default();
    let mut command = Command::new("tmux");
    command.args(["-S", socket, "set-option", "-p", "-t", &pane, "remain-on-exit", "off"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}

//! What can be seen of one member: in the files, from the daemon, in the event log, on the machine. Whatever of it
//! can't be had is left out and the rest is gathered all the same; it is what one looks for when things are broken.

use super::chronicle::{self, Chronicle};
use super::machine::{self, Room, Server};
use crate::here::{Here, fault, now};
use crate::process::Process;
use protocol::asked::{Asked, AskedKind};
use protocol::config::Member;
use protocol::control::{AgentStatus, DaemonStatus, PastAgent, Reply, Request, StatusReply};
use protocol::fault::{Fault, Kind};
use protocol::message::Message;
use protocol::name::{AgentName, TeamName, bare};
use protocol::task::Task;
use std::path::PathBuf;
use std::time::Duration;
use store::{Holding, Team};

/// All of it, as it was at one moment.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) now: u64,
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    /// Whoever is a member.
    pub(super) members: Vec<AgentName>,
    /// Whoever else was one, as far as the event log tells.
    pub(super) former: Vec<String>,
    pub(super) daemon: Daemon,
    /// As teamd supervises it.
    pub(super) agent: Option<AgentStatus>,
    /// As it ended.
    pub(super) past: Option<PastAgent>,
    /// Its entry in config.json, or why that can't be read.
    pub(super) member: Result<Option<Member>, Fault>,
    pub(super) mail: Mail,
    pub(super) holding: Holding,
    /// Who of ours holds that lock.
    pub(super) holder: Option<(u32, String)>,
    /// What it asks, oldest first.
    pub(super) asks: Vec<Ask>,
    pub(super) tasks: Vec<Task>,
    pub(super) chronicle: Chronicle,
    /// Of its processes those that are stopped, and what each is called.
    pub(super) stopped: Vec<(Process, String)>,
    pub(super) tmux: Server,
    /// Disks that have no room.
    pub(super) full: Vec<Room>,
    /// When its output changed last, ms since the epoch.
    pub(super) wrote: Option<u64>,
    /// How long a turn may write nothing, ms.
    pub(super) silent: u64,
    /// What the lead was told last of a turn of its that failed.
    pub(super) failure: Option<String>,
}

/// The daemon.
#[derive(Debug)]
pub(super) enum Daemon {
    Answers(Box<DaemonStatus>),
    Absent,
    /// It is there, and says nothing.
    Silent(Server),
}

/// Its inbox.
#[derive(Debug)]
pub(super) enum Mail {
    /// What is unread, oldest first.
    Unread(Vec<Message>),
    /// It can't be read, as the text says.
    Damaged(String),
}

/// What it asks.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) id: String,
    pub(super) kind: AskedKind,
    /// `asks to use Bash: cargo test`.
    pub(super) about: String,
    /// Ms since the epoch; 0: not known.
    pub(super) since: u64,
}

impl Evidence {
    /// Whether it is, or ever was, a member.
    pub(super) fn is_known(&self) -> bool {
        let listed = !matches!(self.member, Ok(None));
        listed || self.agent.is_some() || self.past.is_some() || self.chronicle.has_lived()
    }

    pub(super) fn unread(&self) -> &[Message] {
        match &self.mail {
            Mail::Unread(messages) => messages,
            Mail::Damaged(_) => &[],
        }
    }

    pub(super) fn is_lead(&self) -> bool {
        self.name.is_lead()
    }
}

pub(super) fn gather(here: &Here, team: &Team, address: &str, silent: Duration) -> Result<Evidence, Fault> {
    let (status, daemon) = daemon(here)?;
    let of_team =
        status.as_ref().and_then(|status| status.teams.iter().find(|known| known.name == *team.name()));
    let wanted = AgentName::foreign(bare(address, team.name()));
    let config = team.config().map_err(fault);
    let member = config.as_ref().map(|config| config.member(&wanted).cloned()).map_err(Clone::clone);
    let agent = of_team.and_then(|known| known.members.iter().find(|agent| agent.name == wanted)).cloned();
    let past = of_team.and_then(|known| known.past.iter().rev().find(|past| past.name == wanted)).cloned();
    // As the team spells it.
    let spelled = [
        agent.as_ref().map(|agent| agent.name.clone()),
        member.as_ref().ok().and_then(|member| Some(member.as_ref()?.name.clone())),
        past.as_ref().map(|past| past.name.clone()),
    ];
    let name = spelled.into_iter().flatten().next().unwrap_or(wanted);
    let state = here.place()?.state;
    let (chronicle, former) = chronicle::read(&state, team.name(), &name);
    let members = config.iter().flat_map(|config| config.members.iter().map(|member| member.name.clone()));
    let log = state.join(format!("logs/agents/{}/{}.log", team.name(), name.as_str()));
    let inbox = team.inbox(&name);
    let holding = inbox.holding().unwrap_or(Holding::Free);
    let tmux = match &daemon {
        Daemon::Answers(daemon) => daemon.tmux.as_deref().map_or(Server::Unknown, machine::tmux),
        _ => Server::Unknown,
    };
    Ok(Evidence {
        now: now(),
        team: team.name().clone(),
        members: members.collect(),
        former,
        stopped: agent.as_ref().and_then(|agent| agent.pid).map(machine::stopped_of).unwrap_or_default(),
        daemon,
        agent,
        past,
        member,
        holder: holder(&holding),
        holding,
        mail: mail(&inbox),
        asks: asks(team, &name),
        tasks: team.tasks().list().unwrap_or_default(),
        chronicle,
        tmux,
        full: machine::full(&[team.path(), state.clone()]),
        wrote: changed(&log),
        silent: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
        failure: failure(team, &name),
        name,
    })
}

fn holder(holding: &Holding) -> Option<(u32, String)> {
    match holding {
        Holding::Held(held) => machine::holder(held.inode),
        _ => None,
    }
}

fn daemon(here: &Here) -> Result<(Option<StatusReply>, Daemon), Fault> {
    match here.ask(Request::StatusOnScreen) {
        Ok(Reply::Status(status)) => {
            let about = Box::new(status.daemon.clone());
            Ok((Some(status), Daemon::Answers(about)))
        }
        Ok(_) => Err(crate::here::misunderstood()),
        Err(fault) if fault.kind == Kind::NoDaemon => Ok((None, Daemon::Absent)),
        Err(fault) if fault.kind == Kind::Timeout => {
            Ok((None, Daemon::Silent(machine::server(&here.socket()?))))
        }
        Err(fault) => Err(fault),
    }
}

fn mail(inbox: &store::Inbox) -> Mail {
    match inbox.read() {
        Ok(entries) => Mail::Unread(entries.iter().filter_map(|entry| entry.unread().cloned()).collect()),
        Err(error) => Mail::Damaged(error.to_string()),
    }
}

/// None where the lead's inbox can't be read: that has its own cause, of the lead.
fn asks(team: &Team, name: &AgentName) -> Vec<Ask> {
    let open = team.requests().open().unwrap_or_default();
    let hers = open.into_iter().filter(|request| request.from == *name);
    let ask = |request: store::OpenRequest| Ask {
        id: request.asked.id().to_string(),
        kind: request.asked.kind(),
        about: about(&request.asked),
        since: request.since,
    };
    hers.map(ask).collect()
}

fn about(asked: &Asked) -> String {
    match asked {
        Asked::Plan(_) => asked.about(),
        Asked::Permission(request) if request.input.is_null() => asked.about(),
        Asked::Permission(request) => format!("{}: {}", asked.about(), request.input),
    }
}

fn failure(team: &Team, name: &AgentName) -> Option<String> {
    use protocol::payload::Payload;
    let entries = team.inbox(&AgentName::lead()).read().ok()?;
    let told = entries.iter().rev().filter_map(|entry| entry.message.as_ref().ok());
    let mut idle = told.filter(|message| message.from == name.as_str()).filter_map(|message| {
        match Payload::parse(&message.text)? {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        }
    });
    idle.next()?.failure_reason
}

fn changed(log: &PathBuf) -> Option<u64> {
    let modified = std::fs::metadata(log).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

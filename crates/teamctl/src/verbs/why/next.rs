//! What to type next: each a command that works as it is printed, in the shell and at the place of whoever asked.

use super::cause::Cause;
use super::evidence::{Ask, Evidence};
use super::machine::Server;
use super::tasks::Wait;
use crate::here::{Here, fault, variable};
use protocol::fault::Fault;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use std::path::Path;
use store::Team;

/// How `teamctl` is to be typed here: with the options that whoever asked has typed, and the team where it takes that to
/// be understood.
#[derive(Debug, Default)]
pub(super) struct Typed {
    options: Vec<String>,
    by: By,
}

/// Who asks, and so may type what is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum By {
    /// The lead, or a person.
    #[default]
    Lead,
    /// The member, about itself.
    Itself,
}

impl Typed {
    pub(super) fn of(here: &Here, team: &Team) -> Result<Typed, Fault> {
        let mut options = Vec::new();
        for (option, variable_name, given) in
            [("--root", "TEAMD_ROOT", &here.global.root), ("--socket", "TEAMD_SOCKET", &here.global.socket)]
        {
            let typed = given.as_ref().map(|path| path.display().to_string());
            if let Some(path) = typed.filter(|path| variable(variable_name).as_deref() != Some(path)) {
                options.extend([option.to_owned(), path]);
            }
        }
        let is_only = here.root()?.teams().map_err(fault)?.iter().filter(|name| !name.is_foreign()).count()
            == 1
            && !team.name().is_foreign();
        if !is_only && variable("TEAMD_TEAM").as_deref() != Some(team.name().as_str()) {
            options.extend(["-t".to_owned(), team.name().to_string()]);
        }
        let by = if here.me().is_lead() { By::Lead } else { By::Itself };
        Ok(Typed { options, by })
    }

    fn teamctl(&self, words: &[&str]) -> String {
        let all = std::iter::once("teamctl").chain(words[..1].iter().copied());
        let all = all.chain(self.options.iter().map(String::as_str)).chain(words[1..].iter().copied());
        all.map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The first is the one to type; the others are ways besides.
pub(super) fn commands(cause: &Cause, e: &Evidence, typed: &Typed) -> Vec<String> {
    match typed.by {
        By::Lead => of_lead(cause, e, typed),
        By::Itself => of_itself(cause, e, typed),
    }
}

/// A member answers and mends nothing: its lead does, once that knows.
fn of_itself(cause: &Cause, e: &Evidence, typed: &Typed) -> Vec<String> {
    match cause {
        Cause::Unfed(_) => vec![typed.teamctl(&["inbox", e.name.as_str(), "--unread"])],
        Cause::Blocked(_) | Cause::BlockersUnowned(_) | Cause::OthersTasks(_) => {
            vec![typed.teamctl(&["task", "list"])]
        }
        cause if !cause.keeps() => Vec::new(),
        _ => vec![typed.teamctl(&["send", AgentName::lead().as_str(), "TEXT"])],
    }
}

fn of_lead(cause: &Cause, e: &Evidence, typed: &Typed) -> Vec<String> {
    let name = e.name.as_str();
    let one = |words: &[&str]| vec![typed.teamctl(words)];
    match cause {
        Cause::DiskFull(room) => vec![format!("df -h {}", path(&room.path))],
        Cause::NoDaemon => one(&["up"]),
        Cause::DaemonSilent(server) | Cause::TmuxSilent(server) => go_on(server, typed),
        Cause::ConfigDamaged(_)
        | Cause::InboxDamaged(..)
        | Cause::NotOurs
        | Cause::InboxLocked(_, _, None) => one(&["doctor"]),
        Cause::InboxLocked(_, _, Some((pid, _))) => vec![format!("ps -o pid,stat,etime,args -p {pid}")],
        Cause::InboxAbandoned(..) => one(&["doctor", "--fix"]),
        Cause::InboxBarred(_, place) => vec![format!("ls -la {}", path(place))],
        Cause::GivenUp(_) | Cause::Restarting { .. } | Cause::ProgramMissing { .. } => vec![logs(e, typed)],
        Cause::AtRest(_) => one(&["up", "--resume"]),
        Cause::TmuxGone(_) if e.past.as_ref().is_some_and(|past| past.rests) => one(&["up", "--resume"]),
        Cause::Ended { .. } | Cause::TmuxGone(_) | Cause::PaneClosed(_) => left(e, typed),
        Cause::Lead | Cause::PlanApproval(None) | Cause::Permission(None) => one(&["requests"]),
        Cause::Permission(Some(ask)) | Cause::PlanApproval(Some(ask)) => answers(ask, typed),
        Cause::Starting | Cause::Ending => one(&["events", "--since", "2m"]),
        Cause::CutOff => stopped(e).unwrap_or_else(|| one(&["doctor"])),
        Cause::ShuttingDown(_) => one(&["shutdown", name, "--force"]),
        Cause::ProcessStopped { pid, .. } => vec![format!("kill -CONT {pid}")],
        Cause::Dialog(_) => vec![typed.teamctl(&["capture", name]), typed.teamctl(&["attach", name])],
        Cause::NeverReady | Cause::Silent(_) | Cause::Works => look(e, typed),
        Cause::TurnsFailed { task, .. } | Cause::Interrupted { task, .. } => {
            given_back(task.as_ref(), e, typed)
        }
        Cause::Unfed(_) => one(&["inbox", name, "--unread"]),
        Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => blocker(waits, e, typed),
        Cause::OthersTasks(tasks) => tasks.first().map_or_else(Vec::new, |task| assign(task, e, typed)),
        Cause::Hidden => one(&["show", name]),
        // It hands in its plan at the end of its next turn.
        Cause::PlanMode | Cause::Rests => one(&["send", name, "TEXT"]),
    }
}

fn path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn go_on(server: &Server, typed: &Typed) -> Vec<String> {
    match server {
        Server::Silent { pid: Some(pid), stopped: true } => vec![format!("kill -CONT {pid}")],
        Server::Silent { pid: Some(pid), .. } => vec![format!("ps -o pid,stat,wchan,etime,args -p {pid}")],
        _ => vec![typed.teamctl(&["doctor"])],
    }
}

fn stopped(e: &Evidence) -> Option<Vec<String>> {
    Some(vec![format!("kill -CONT {}", e.stopped.first()?.pid)])
}

/// What it left is given back first.
fn left(e: &Evidence, typed: &Typed) -> Vec<String> {
    let task = super::tasks::works_on(&e.tasks, &e.name).or_else(|| super::tasks::failed(&e.tasks, &e.name));
    given_back(task, e, typed)
}

fn given_back(task: Option<&Task>, e: &Evidence, typed: &Typed) -> Vec<String> {
    let release = task.map(|task| typed.teamctl(&["task", "release", &task.id.to_string()]));
    release.into_iter().chain([logs(e, typed)]).collect()
}

/// Shown whole first: nobody should say yes to what he has not read.
fn answers(ask: &Ask, typed: &Typed) -> Vec<String> {
    let deny = typed.teamctl(&["deny", &ask.id, "--reason", "R"]);
    vec![typed.teamctl(&["requests"]), typed.teamctl(&["approve", &ask.id]), deny]
}

/// Where it has a pane that is its screen, else what it has written.
fn look(e: &Evidence, typed: &Typed) -> Vec<String> {
    let pane = e.agent.as_ref().is_some_and(|agent| agent.pane.is_some());
    vec![if pane { typed.teamctl(&["capture", e.name.as_str()]) } else { logs(e, typed) }]
}

/// Who has written nothing has no log.
fn logs(e: &Evidence, typed: &Typed) -> String {
    match e.wrote {
        Some(_) => typed.teamctl(&["logs", e.name.as_str()]),
        None => typed.teamctl(&["events", "--since", "10m"]),
    }
}

/// About the first thing that stands in the way: a failed one is given back, one without an owner given to somebody,
/// else its owner is asked after.
fn blocker(waits: &[Wait], e: &Evidence, typed: &Typed) -> Vec<String> {
    let all: Vec<&Task> = waits.iter().flat_map(|wait| &wait.blockers).collect();
    // What waits itself is not what everything waits for.
    let root = all.iter().find(|task| task.open_blockers(&e.tasks).is_empty()).or(all.first());
    let Some(task) = root else { return vec![typed.teamctl(&["task", "list"])] };
    let lives = |name: &&AgentName| e.members.contains(name);
    match task.owner.as_ref() {
        _ if task.failure().is_some() => given_back(Some(task), e, typed)[..1].to_vec(),
        Some(owner) if lives(&owner) => vec![typed.teamctl(&["why", owner.as_str()])],
        Some(_) if task.status == TaskStatus::InProgress => {
            vec![typed.teamctl(&["task", "release", &task.id.to_string()])]
        }
        _ => assign(task, e, typed),
    }
}

fn assign(task: &Task, e: &Evidence, typed: &Typed) -> Vec<String> {
    vec![typed.teamctl(&["task", "update", &task.id.to_string(), "--owner", e.name.as_str()])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_typed_as_it_is_printed() {
        let options = ["--root", "/tmp/a b", "-t", "survey"].map(str::to_owned).to_vec();
        let typed = Typed { options, ..Typed::default() };
        assert_eq!(typed.teamctl(&["why", "ann"]), "teamctl why --root '/tmp/a b' -t survey ann");
        assert_eq!(Typed::default().teamctl(&["logs", "a'b; rm -r ~"]), r"teamctl logs 'a'\''b; rm -r ~'");
        assert_eq!(quoted(""), "''");
    }
}

//! What is waited for, as a look at the files answers it: nothing is missing, or this is. The names are
//! looked up once, before the wait, so that a slip of the pen does not wait for ever.

use super::{WaitArgs, WaitFor};
use crate::context::CommandContext;
use client::team_context::member_name;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::{AgentName, strip_team};
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use std::path::PathBuf;
use store::{Error, Inbox, Team};

/// One thing to wait for.
pub(super) enum WaitCondition {
    Message { inbox: Inbox, from: Vec<AgentName> },
    Idle { team: Team, names: Vec<AgentName> },
    Exit { team: Team, names: Vec<AgentName> },
    TasksDone { team: Team },
}

impl WaitCondition {
    /// What the user asks for.
    pub(super) fn from_args(here: &CommandContext, args: &WaitArgs) -> Result<WaitCondition, ErrorReport> {
        let team = here.team()?;
        let all = |find: fn(&Team, &str) -> Result<AgentName, ErrorReport>| {
            args.names.iter().map(|name| find(&team, name)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match args.what {
            WaitFor::Message => {
                let inbox = team.inbox(&here.caller_name());
                let from = args
                    .names
                    .iter()
                    .map(|name| known_sender(&team, &inbox, name))
                    .collect::<Result<_, _>>()?;
                WaitCondition::Message { inbox, from }
            }
            WaitFor::Idle => WaitCondition::Idle { names: names_or_all(&team, all(member_name)?)?, team },
            WaitFor::Exit => {
                WaitCondition::Exit { names: names_or_all(&team, all(current_or_past_member)?)?, team }
            }
            WaitFor::TasksDone if args.names.is_empty() => WaitCondition::TasksDone { team },
            WaitFor::TasksDone => {
                let message = "cannot wait for the tasks of some: --for tasks-done takes no names";
                return Err(ErrorReport::new(ErrorKind::Usage, message)
                    .with_help("for all: teamctl wait --for tasks-done"));
            }
        })
    }

    /// Where a change can make it so.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        match self {
            WaitCondition::Message { inbox, .. } => {
                inbox.path().parent().map(ToOwned::to_owned).into_iter().collect()
            }
            WaitCondition::Idle { team, .. } | WaitCondition::Exit { team, .. } => vec![team.path()],
            WaitCondition::TasksDone { team } => vec![team.tasks().path()],
        }
    }

    /// What is not so yet, in words; nothing: it is so.
    pub(super) fn unmet_conditions(&self) -> Result<Vec<String>, ErrorReport> {
        match self {
            WaitCondition::Message { inbox, from } => missing_message(inbox, from),
            WaitCondition::Idle { team, names } => unmet_idle(&team.config()?, names),
            WaitCondition::Exit { team, names } => unmet_exit(team, names),
            WaitCondition::TasksDone { team } => {
                let tasks = team.tasks().list()?;
                check_tasks_possible(&tasks)?;
                Ok(unmet_tasks(&tasks))
            }
        }
    }

    /// For people, once it is so.
    pub(super) fn result_text(&self) -> String {
        match self {
            WaitCondition::Message { .. } => "A message is there.".to_owned(),
            WaitCondition::Idle { names, .. } => met_text(names, "idle"),
            WaitCondition::Exit { names, .. } => met_text(names, "gone"),
            WaitCondition::TasksDone { .. } => "All tasks are done.".to_owned(),
        }
    }
}

fn met_text(names: &[AgentName], how: &str) -> String {
    let listed = names.iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "There are no teammates.".to_owned(),
        1 => format!("{listed} is {how}."),
        _ => format!("{listed} are {how}."),
    }
}

/// A member now, or one that left an inbox or a tracking task behind.
fn current_or_past_member(team: &Team, name: &str) -> Result<AgentName, ErrorReport> {
    let unknown = match team.member(name) {
        Ok(member) => return Ok(member.name),
        Err(unknown) => unknown,
    };
    let former = AgentName::new_unchecked(strip_team(name, team.name()));
    let tracked = |task: &Task| task.is_internal() && task.subject.eq_ignore_ascii_case(former.as_str());
    let known = team.inbox(&former).path().exists() || team.tasks().list()?.iter().any(tracked);
    if known { Ok(former) } else { Err(ErrorReport::from(unknown)) }
}

/// A member, or whoever wrote already: a person, a task list, one that has gone.
fn known_sender(team: &Team, inbox: &Inbox, name: &str) -> Result<AgentName, ErrorReport> {
    let plain = AgentName::new_unchecked(strip_team(name, team.name()));
    let wrote = missing_message(inbox, std::slice::from_ref(&plain))?.is_empty();
    if wrote || plain.is_reserved() { Ok(plain) } else { member_name(team, name) }
}

fn names_or_all(team: &Team, names: Vec<AgentName>) -> Result<Vec<AgentName>, ErrorReport> {
    if !names.is_empty() {
        return Ok(names);
    }
    let members = team.config()?.members;
    Ok(members.into_iter().map(|member| member.name).filter(|name| !name.is_lead()).collect())
}

fn missing_message(inbox: &Inbox, from: &[AgentName]) -> Result<Vec<String>, ErrorReport> {
    let entries = inbox.read_unread()?;
    let mut messages = entries.iter().filter_map(|entry| entry.unread());
    let there =
        messages.any(|message| from.is_empty() || from.contains(&AgentName::new_unchecked(&message.from)));
    Ok(if there { Vec::new() } else { vec!["message".to_owned()] })
}

/// One that left will never be idle again: that ends the wait.
fn unmet_idle(config: &TeamConfig, names: &[AgentName]) -> Result<Vec<String>, ErrorReport> {
    let mut active = Vec::new();
    for name in names {
        let gone = || {
            ErrorReport::new(ErrorKind::NotFound, format!("cannot wait for {name} to be idle: it is gone"))
                .with_help(format!("how it ended: teamctl status {name}"))
        };
        if config.member(name).ok_or_else(gone)?.is_active != Some(false) {
            active.push(format!("idle {name}"));
        }
    }
    Ok(active)
}

fn unmet_exit(team: &Team, names: &[AgentName]) -> Result<Vec<String>, ErrorReport> {
    let config = match team.config() {
        Ok(config) => config,
        // The team was deleted, and its members with it.
        Err(Error::NoSuchTeam { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(ErrorReport::from(error)),
    };
    let there = names.iter().filter(|name| config.member(name).is_some());
    Ok(there.map(|name| format!("end of {name}")).collect())
}

/// Where all that is open has failed, or waits for what has, waiting longer is for nothing.
fn check_tasks_possible(tasks: &[Task]) -> Result<(), ErrorReport> {
    let open = || tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    let failed: Vec<TaskId> = open().filter(|task| task.failure().is_some()).map(|task| task.id).collect();
    let mut hopeless = failed.clone();
    loop {
        let waits = |task: &&Task| task.open_blockers(tasks).iter().any(|blocker| hopeless.contains(blocker));
        let more: Vec<TaskId> =
            open().filter(|t| !hopeless.contains(&t.id)).filter(waits).map(|t| t.id).collect();
        if more.is_empty() {
            break;
        }
        hopeless.extend(more);
    }
    if failed.is_empty() || hopeless.len() < open().count() {
        return Ok(());
    }
    let names: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let message =
        format!("cannot wait for all tasks: {} failed, and nothing else can be done", names.join(", "));
    Err(ErrorReport::new(ErrorKind::Partial, message)
        .with_help("see: teamctl task get ID; after mending it: teamctl task release ID"))
}

fn unmet_tasks(tasks: &[Task]) -> Vec<String> {
    let open = tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    open.map(|task| format!("end of task {}", task.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::Message;
    use store::{Durability, NewTask, Root};

    const CONFIG: &str = r#"{"name":"t","members":[{"name":"team-lead"},{"name":"ann","isActive":true},
        {"name":"bob","isActive":false},{"name":"new"}]}"#;

    fn name(name: &str) -> AgentName {
        AgentName::new_unchecked(name)
    }

    #[test]
    fn what_has_failed_and_what_waits_for_it_is_not_waited_for() {
        let task = |id: u32, failed: bool, blocked_by: &str| {
            let metadata = if failed { r#","metadata":{"failure":"exit 1"}"# } else { "" };
            let text = format!(
                r#"{{"id":"{id}","subject":"x","status":"pending","blocks":[],"blockedBy":[{blocked_by}]{metadata}}}"#
            );
            Task::parse(&text).unwrap()
        };
        assert!(check_tasks_possible(&[]).is_ok());
        assert!(check_tasks_possible(&[task(1, false, "")]).is_ok());
        let mut tasks = vec![task(3, false, r#""2""#), task(2, false, r#""1""#), task(1, true, "")];
        assert_eq!(check_tasks_possible(&tasks).unwrap_err().kind, ErrorKind::Partial);
        tasks.push(task(4, false, ""));
        assert!(check_tasks_possible(&tasks).is_ok(), "4 can be done, and then somebody looks");
    }

    #[test]
    fn only_who_says_so_is_idle_and_who_is_gone_ends_the_wait() {
        let config = TeamConfig::parse(CONFIG).unwrap();
        assert_eq!(unmet_idle(&config, &[name("bob")]), Ok(vec![]));
        assert_eq!(unmet_idle(&config, &[name("ann"), name("new")]).map(|active| active.len()), Ok(2));
        assert_eq!(unmet_idle(&config, &[name("zed")]).map_err(|fault| fault.kind), Err(ErrorKind::NotFound));
    }

    #[test]
    fn the_files_answer_and_a_name_that_never_was_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
        let team = root.create_team(&TeamConfig::parse(CONFIG).unwrap()).unwrap();
        assert_eq!(unmet_exit(&team, &[name("ann"), name("zed")]).map(|there| there.len()), Ok(1));
        let inbox = team.inbox(&name("team-lead"));
        inbox.append(&Message::new(&name("eve"), "x".into(), 1)).unwrap();
        assert_eq!(missing_message(&inbox, &[]), Ok(vec![]));
        assert_eq!(missing_message(&inbox, &[name("ann")]).map(|missing| missing.len()), Ok(1));
        assert_eq!(known_sender(&team, &inbox, "EVE"), Ok(name("eve")));
        assert!(known_sender(&team, &inbox, "adam").is_err());
        team.tasks().create_internal(&name("cat"), "").unwrap();
        assert_eq!(current_or_past_member(&team, "cat"), Ok(name("cat")));
        assert!(current_or_past_member(&team, "dog").is_err());
        assert!(unmet_tasks(&team.tasks().list().unwrap()).is_empty());
        team.tasks().create(NewTask::new("x", &name("team-lead"))).unwrap();
        assert_eq!(unmet_tasks(&team.tasks().list().unwrap()).len(), 1);
        team.delete().unwrap();
        assert_eq!(unmet_exit(&team, &[name("ann")]), Ok(vec![]));
    }
}

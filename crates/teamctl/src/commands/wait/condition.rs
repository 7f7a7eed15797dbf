//! The conditions that `wait` can wait for, and how each is checked in the files.

use crate::command_context::CommandContext;
use client::root_socket_team_and_caller::member_name;
use client::suggested_commands::SuggestedCommands;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, WaitCycle, wait_cycles};
use protocol::team_and_member_names::{MemberName, strip_team};
use protocol::team_config::TeamConfig;
use std::path::PathBuf;
use store::{Error, Inbox, Team, UNREADABLE_STATUS};

/// The values of `--for`. Doc comments on them would become part of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum WaitFor {
    Message,
    Idle,
    Exit,
    TasksDone,
}

impl WaitFor {
    /// The value's name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            WaitFor::Message => "message",
            WaitFor::Idle => "idle",
            WaitFor::Exit => "exit",
            WaitFor::TasksDone => "tasks-done",
        }
    }
}

/// A condition with the members that it is about.
pub(super) enum WaitCondition {
    Message { inbox: Inbox, from: Vec<MemberName> },
    Idle { team: Team, names: Vec<MemberName> },
    Exit { team: Team, names: Vec<MemberName> },
    TasksDone { team: Team },
}

impl WaitCondition {
    /// Resolves the names before the wait, so that a misspelled name does not wait forever.
    pub(super) fn new(
        context: &CommandContext,
        wait_for: WaitFor,
        names: &[String],
    ) -> Result<WaitCondition, ErrorReport> {
        let root = context.root()?;
        let team = root.team(&context.team_of_members(&root, names)?)?;
        let resolve = |find: fn(&Team, &str) -> Result<MemberName, ErrorReport>| {
            let members = names.iter().map(|name| find(&team, name)).collect::<Result<Vec<_>, _>>()?;
            names_or_teammates(&team, members)
        };
        Ok(match wait_for {
            WaitFor::Message => {
                let inbox = team.inbox(&context.caller_name());
                let from = names.iter().map(|name| known_sender(&team, &inbox, name));
                WaitCondition::Message { from: from.collect::<Result<_, _>>()?, inbox }
            }
            WaitFor::Idle => WaitCondition::Idle { names: resolve(member_name)?, team },
            WaitFor::Exit => WaitCondition::Exit { names: resolve(current_or_past_member)?, team },
            WaitFor::TasksDone if names.is_empty() => WaitCondition::TasksDone { team },
            WaitFor::TasksDone => {
                let message = "cannot wait for the tasks of some: --for tasks-done takes no names";
                return Err(ErrorReport::new(ErrorKind::Usage, message)
                    .with_help("for all: teamctl wait --for tasks-done"));
            }
        })
    }

    /// The directories in which the condition can become true.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        match self {
            WaitCondition::Message { inbox, .. } => {
                inbox.path().parent().map(ToOwned::to_owned).into_iter().collect()
            }
            WaitCondition::Idle { team, .. } | WaitCondition::Exit { team, .. } => vec![team.path()],
            WaitCondition::TasksDone { team } => vec![team.tasks().path()],
        }
    }

    /// The parts of the condition that do not hold yet, such as `idle ann`. Empty if it holds.
    pub(super) fn unmet_conditions(&self) -> Result<Vec<String>, ErrorReport> {
        match self {
            WaitCondition::Message { inbox, from } => missing_message(inbox, from),
            WaitCondition::Idle { team, names } => unmet_idle(&team.config()?, names),
            WaitCondition::Exit { team, names } => unmet_exit(team, names),
            WaitCondition::TasksDone { team } => {
                let tasks = team.tasks().list()?;
                check_tasks_possible(&tasks)?;
                let unmet = unmet_tasks(&tasks);
                if unmet.is_empty() {
                    check_no_misnamed_files(team)?;
                }
                Ok(unmet)
            }
        }
    }

    /// What prevents the condition until a person mends it: files of tasks that can't be used.
    pub(super) fn warnings(&self) -> Result<Vec<String>, ErrorReport> {
        let WaitCondition::TasksDone { team } = self else { return Ok(Vec::new()) };
        let misnamed = team.tasks().misnamed_files().unwrap_or_default().into_iter();
        let misnamed = misnamed.map(|name| format!("{name} makes this fail: its name is not a number"));
        let tasks = team.tasks().list()?.into_iter().filter(is_unreadable);
        let unreadable = tasks.map(|task| format!("task {} keeps this waiting: {}", task.id, task.subject));
        Ok(unreadable.chain(misnamed).collect())
    }

    /// The result for people, once the condition holds.
    pub(super) fn result_text(&self) -> String {
        match self {
            WaitCondition::Message { .. } => "received a message".to_owned(),
            WaitCondition::Idle { names, .. } => met_text(names, "idle"),
            WaitCondition::Exit { names, .. } => met_text(names, "gone"),
            WaitCondition::TasksDone { .. } => "All tasks are done.".to_owned(),
        }
    }
}

fn met_text(names: &[MemberName], state: &str) -> String {
    let names_text = names.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "There are no teammates.".to_owned(),
        1 => format!("{names_text} is {state}."),
        _ => format!("{names_text} are {state}."),
    }
}

/// A current member, or a past member whose inbox or internal task still exists.
fn current_or_past_member(team: &Team, name: &str) -> Result<MemberName, ErrorReport> {
    let unknown = match team.member(name) {
        Ok(member) => return Ok(member.name),
        Err(unknown) => unknown,
    };
    let past_name = MemberName::new_unchecked(strip_team(name, team.name()));
    let is_of_member =
        |task: &Task| task.is_internal() && task.subject.eq_ignore_ascii_case(past_name.as_str());
    let is_known = team.inbox(&past_name).path().exists() || team.tasks().list()?.iter().any(is_of_member);
    if is_known { Ok(past_name) } else { Err(ErrorReport::from(unknown)) }
}

/// A member, or any other sender with a message in the inbox, such as a person or a past member.
fn known_sender(team: &Team, inbox: &Inbox, name: &str) -> Result<MemberName, ErrorReport> {
    let sender = MemberName::new_unchecked(strip_team(name, team.name()));
    let has_written = missing_message(inbox, std::slice::from_ref(&sender))?.is_empty();
    if has_written || sender.is_reserved() { Ok(sender) } else { member_name(team, name) }
}

/// The names, or all teammates if there are none.
fn names_or_teammates(team: &Team, names: Vec<MemberName>) -> Result<Vec<MemberName>, ErrorReport> {
    if !names.is_empty() {
        return Ok(names);
    }
    let members = team.config()?.members;
    Ok(members.into_iter().map(|member| member.name).filter(|name| !name.is_lead()).collect())
}

fn missing_message(inbox: &Inbox, senders: &[MemberName]) -> Result<Vec<String>, ErrorReport> {
    let entries = inbox.read_unread()?;
    let mut messages = entries.iter().filter_map(|entry| entry.unread());
    let is_received = messages
        .any(|message| senders.is_empty() || senders.contains(&MemberName::new_unchecked(&message.from)));
    Ok(if is_received { Vec::new() } else { vec!["message".to_owned()] })
}

/// Fails if one of the members has left the team, because it will never be idle again.
fn unmet_idle(config: &TeamConfig, names: &[MemberName]) -> Result<Vec<String>, ErrorReport> {
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

fn unmet_exit(team: &Team, names: &[MemberName]) -> Result<Vec<String>, ErrorReport> {
    let config = match team.config() {
        Ok(config) => config,
        // The team was deleted, and its members with it.
        Err(Error::NoSuchTeam { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(ErrorReport::from(error)),
    };
    let remaining_members = names.iter().filter(|name| config.member(name).is_some());
    Ok(remaining_members.map(|name| format!("end of {name}")).collect())
}

/// Fails if there is a task file that no program sees, because its name is no number.
fn check_no_misnamed_files(team: &Team) -> Result<(), ErrorReport> {
    let names = team.tasks().misnamed_files().unwrap_or_default();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "cannot tell whether all tasks of {} are done: the name of a task file is a number, not {}",
        team.name(),
        names.join(", ")
    );
    Err(ErrorReport::new(ErrorKind::Partial, message).with_help("rename it to ID.json, or remove it"))
}

/// Fails if tasks are open and none of them can be completed. A task cannot be completed if it has
/// failed, or if it is in a cycle of tasks that wait for each other. A task that waits for such a
/// task cannot be completed either.
fn check_tasks_possible(tasks: &[Task]) -> Result<(), ErrorReport> {
    let open_tasks = || tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    let failed: Vec<TaskId> =
        open_tasks().filter(|task| task.failure().is_some()).map(|task| task.id).collect();
    let cycles = wait_cycles(tasks);
    let mut impossible = failed.clone();
    impossible.extend(cycles.iter().flat_map(WaitCycle::tasks));
    loop {
        let is_blocked =
            |task: &&Task| task.open_blockers(tasks).iter().any(|blocker| impossible.contains(blocker));
        let newly_blocked: Vec<TaskId> =
            open_tasks().filter(|t| !impossible.contains(&t.id)).filter(is_blocked).map(|t| t.id).collect();
        if newly_blocked.is_empty() {
            break;
        }
        impossible.extend(newly_blocked);
    }
    if impossible.is_empty() || open_tasks().any(|task| !impossible.contains(&task.id)) {
        return Ok(());
    }
    if let Some(cycle) = cycles.first().filter(|_| failed.is_empty()) {
        let message = format!("cannot wait for all tasks: {cycle}");
        return Err(ErrorReport::new(ErrorKind::Partial, message)
            .with_help(format!("remove one link: {}", SuggestedCommands::default().command_to_cut(cycle))));
    }
    let ids: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let noun = if ids.len() == 1 { "task" } else { "tasks" };
    let message =
        format!("cannot wait for all tasks: {noun} {} failed, and no other task can run", ids.join(", "));
    Err(ErrorReport::new(ErrorKind::Partial, message)
        .with_help("see: teamctl task get ID; after fixing it: teamctl task release ID"))
}

fn is_unreadable(task: &Task) -> bool {
    task.status.as_str() == UNREADABLE_STATUS
}

fn unmet_tasks(tasks: &[Task]) -> Vec<String> {
    let open_tasks = tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    let note = |task: &Task| if is_unreadable(task) { ", whose file cannot be read" } else { "" };
    open_tasks.map(|task| format!("end of task {}{}", task.id, note(task))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::inbox_file::Message;
    use store::{Durability, NewTask, Root};

    const CONFIG: &str = r#"{"name":"t","members":[{"name":"team-lead"},{"name":"ann","isActive":true},
        {"name":"bob","isActive":false},{"name":"new"}]}"#;

    fn name(name: &str) -> MemberName {
        MemberName::new_unchecked(name)
    }

    #[test]
    fn wait_for_failed_tasks_and_their_dependents_fails() {
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
        let error = check_tasks_possible(&tasks).unwrap_err();
        let expected = "cannot wait for all tasks: task 1 failed, and no other task can run";
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Partial, expected));
        tasks.push(task(4, false, ""));
        assert!(check_tasks_possible(&tasks).is_ok(), "task 4 can still be completed");
        let cycle = [task(5, false, r#""6""#), task(6, false, r#""5""#), task(7, false, r#""6""#)];
        let error = check_tasks_possible(&cycle).unwrap_err();
        assert!(error.message.contains("tasks 5, 6 wait for each other"), "{error}");
        assert!(error.help.unwrap().contains("task update 5 --remove-blocked-by 6"));
    }

    #[test]
    fn past_member_is_an_error_in_a_wait_for_idle_members() {
        let config = TeamConfig::parse(CONFIG).unwrap();
        assert_eq!(unmet_idle(&config, &[name("bob")]), Ok(vec![]));
        assert_eq!(unmet_idle(&config, &[name("ann"), name("new")]).map(|active| active.len()), Ok(2));
        assert_eq!(unmet_idle(&config, &[name("zed")]).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    }

    #[test]
    fn conditions_are_checked_in_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
        let team = root.create_team(&TeamConfig::parse(CONFIG).unwrap()).unwrap();
        assert_eq!(unmet_exit(&team, &[name("ann"), name("zed")]).map(|conditions| conditions.len()), Ok(1));
        let inbox = team.inbox(&name("team-lead"));
        inbox.append(&Message::new(&name("eve"), "x".into(), 1)).unwrap();
        assert_eq!(missing_message(&inbox, &[]), Ok(vec![]));
        assert_eq!(missing_message(&inbox, &[name("ann")]).map(|conditions| conditions.len()), Ok(1));
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

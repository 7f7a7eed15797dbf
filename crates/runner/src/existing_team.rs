//! A team that is there already: whether this file made it, what is left to do in it, and where the file says
//! something else by now. It only looks.

use crate::run_file::{RunFile, TaskSpec};
use crate::task_fate::{MemberState, MemberStates, RetryRules, TaskFate, evaluate, run_file_key};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use protocol::team_config::TeamConfig;
use serde_json::Value;
use store::{Root, Team};

/// What a run does if the file's team exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfTeamExists {
    /// It is an error.
    Fail,
    /// `--resume`: the run goes on with the team.
    Resume,
}

/// What there is of the file's team.
pub(crate) enum ExistingTeam {
    /// Nothing: it is to be made.
    Missing,
    /// It can be gone on with. It is cut where its members have ended, or never came, and some of its tasks are not there:
    /// it was being deleted, or made.
    Unfinished { team: Team, is_incomplete: bool },
    /// It was kept: its members have ended, and nothing in it can be done.
    Finished(Team),
}

/// Looks for it; one that may not be taken up is a error.
pub(crate) fn find_team(
    root: &Root,
    file: &RunFile,
    if_team_exists: IfTeamExists,
) -> Result<ExistingTeam, ErrorReport> {
    let team = match root.team(&file.name) {
        Ok(team) => team,
        Err(store::Error::NoSuchTeam { .. }) => return Ok(ExistingTeam::Missing),
        Err(error) => return Err(ErrorReport::from(error)),
    };
    let config = team.config()?;
    let tasks = team.tasks().list()?;
    let stranger = foreign_team_error(file, &config, &tasks);
    let is_empty = config.members.iter().all(|member| member.name.is_lead());
    let finished = stranger.is_none() && is_empty && is_complete(file, &tasks);
    let is_cut = is_empty && !has_all_tasks(file, &tasks);
    match stranger {
        _ if if_team_exists == IfTeamExists::Fail => Err(team_exists_error(file, finished)),
        Some(stranger) => Err(stranger),
        None if finished => Ok(ExistingTeam::Finished(team)),
        None => Ok(ExistingTeam::Unfinished { team, is_incomplete: is_cut }),
    }
}

fn team_exists_error(file: &RunFile, finished: bool) -> ErrorReport {
    let name = &file.name;
    let hint = match finished {
        true => format!(
            "nothing is left to do in it; {}; to begin anew: teamctl delete {name}",
            retry_help(name.as_str(), &[])
        ),
        false => format!(
            "to go on with a run that was killed: teamctl run FILE --resume; else: teamctl delete {name}"
        ),
    };
    ErrorReport::new(ErrorKind::AlreadyExists, format!("cannot create team {name}: it exists already"))
        .with_help(hint)
}

/// How failed tasks are tried again; the table knows them by their keys alone.
pub(crate) fn retry_help(team: &str, failed: &[TaskId]) -> String {
    let ids: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    format!("its failed tasks{ids}: teamctl task release ID -t {team}, then: teamctl run FILE --resume")
}

/// What shows that another than this file made the team.
fn foreign_team_error(file: &RunFile, config: &TeamConfig, tasks: &[Task]) -> Option<ErrorReport> {
    let refused = |why: String| {
        ErrorReport::new(ErrorKind::Refused, format!("cannot take up team {}: {why}", file.name))
    };
    let known = |name: &AgentName| name.is_lead() || file.members.iter().any(|member| member.name == *name);
    if let Some(other) = config.members.iter().find(|member| !known(&member.name)) {
        let name = &other.name;
        let error = refused(format!("{name} is on it, and the file has no such member (any more)"));
        return Some(error.with_help(format!(
            "put it back into the file, or end it: teamctl shutdown {name} -t {}",
            file.name
        )));
    }
    let mut tasks = tasks.iter().filter(|task| !task.is_internal()).peekable();
    let ours =
        |task: &Task| run_file_key(task).is_some_and(|key| file.tasks.iter().any(|plan| plan.key == key));
    (tasks.peek().is_some() && !tasks.any(ours)).then(|| {
        let error = refused("this file did not make it: none of its tasks is in the file".to_owned());
        error.with_help("give the team in the file another name")
    })
}

/// Whether all that the file wants is there and over, were all its members there again.
pub(crate) fn is_complete(file: &RunFile, tasks: &[Task]) -> bool {
    let decision = evaluate(&RetryRules::from_file(file), tasks, &all_running(file));
    has_all_tasks(file, tasks)
        && decision.releases.is_empty()
        && decision.fates.values().all(TaskFate::is_final)
}

/// Whether each task of the file is there; not, where the file has none.
fn has_all_tasks(file: &RunFile, tasks: &[Task]) -> bool {
    let is_there = |plan: &TaskSpec| tasks.iter().any(|task| run_file_key(task) == Some(&plan.key));
    !file.tasks.is_empty() && file.tasks.iter().all(is_there)
}

/// All members of the file, as if they lived.
pub(crate) fn all_running(file: &RunFile) -> MemberStates {
    let all = file.members.iter().map(|member| (member.name.clone(), MemberState::Running));
    MemberStates(all.collect(), Default::default())
}

/// A sentence for each task of the team that the file has otherwise by now.
pub(crate) fn difference_warnings(file: &RunFile, tasks: &[Task]) -> Vec<String> {
    let sentence = |(plan, task): (&TaskSpec, &Task)| {
        let what = changed_fields(plan, task);
        let all = what.join(", ");
        (!what.is_empty())
            .then(|| format!("task {} differs from the file ({all}): the team's stays", plan.key))
    };
    matched_tasks(file, tasks).filter_map(sentence).collect()
}

/// Whose each task is alone by the file, unless the team says otherwise.
pub(crate) fn rules_for_existing(file: &RunFile, tasks: &[Task]) -> RetryRules {
    let mut rules = RetryRules::from_file(file);
    for (plan, task) in matched_tasks(file, tasks).filter(|(plan, task)| has_other_owner(plan, task)) {
        // Of one that was begun it is not known any more whether it was its worker's alone.
        match task.owner.clone().filter(|_| task.status == TaskStatus::Pending) {
            Some(owner) => rules.owners.insert(plan.key.clone(), owner),
            None => rules.owners.remove(&plan.key),
        };
    }
    rules
}

fn matched_tasks<'a>(file: &'a RunFile, tasks: &'a [Task]) -> impl Iterator<Item = (&'a TaskSpec, &'a Task)> {
    file.tasks
        .iter()
        .filter_map(|plan| Some((plan, tasks.iter().find(|task| run_file_key(task) == Some(&plan.key))?)))
}

fn changed_fields(plan: &TaskSpec, task: &Task) -> Vec<&'static str> {
    let command = |metadata: Option<&serde_json::Map<String, Value>>| metadata?.get("command").cloned();
    let all = [
        ("subject", plan.subject != task.subject),
        ("description", plan.description != task.description),
        ("command", command(Some(&plan.metadata)) != command(task.metadata.as_ref())),
        ("owner", has_other_owner(plan, task)),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

/// Whoever takes a task that is nobody's becomes its owner, and that is no difference.
fn has_other_owner(plan: &TaskSpec, task: &Task) -> bool {
    match (&task.status, &plan.owner) {
        (TaskStatus::Completed | TaskStatus::Deleted, _) => false,
        (TaskStatus::Pending, owner) => *owner != task.owner,
        (_, Some(owner)) => task.owner.as_ref() != Some(owner),
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_file;

    fn file(tasks: &str) -> RunFile {
        let members = "name = 't'\n[[member]]\nname = 'ann'\ncommand = ['sh']\n[[member]]\nname = 'bob'\ncommand = ['sh']\n";
        run_file::parse_valid(&format!("{members}{tasks}"))
    }

    fn task(key: &str, status: &str, rest: &str) -> Task {
        let text = format!(
            r#"{{"id":"1","subject":"s","description":"","status":"{status}",{rest}"metadata":{{"key":"{key}","command":"c"}}}}"#
        );
        Task::parse(&text).unwrap()
    }

    #[test]
    fn what_the_file_has_otherwise_is_told_and_the_teams_stays() {
        let a = |rest: &str| file(&format!("[[task]]\nkey = 'a'\n{rest}\n"));
        let told = |rest: &str, task: Task| difference_warnings(&a(rest), &[task]);
        let pending = || task("a", "pending", "");
        assert!(told("subject = 's'\ncommand = 'c'", pending()).is_empty());
        assert_eq!(
            told("subject = 'x'\ndescription = 'd'\ncommand = 'y'\nowner = 'ann'", pending()),
            ["task a differs from the file (subject, description, command, owner): the team's stays"]
        );
        let bobs = |status: &str| task("a", status, r#""owner":"bob","#);
        let hers = "subject = 's'\ncommand = 'c'\nowner = 'ann'";
        assert!(told("subject = 's'\ncommand = 'c'", bobs("in_progress")).is_empty(), "who took it");
        assert!(told(hers, bobs("completed")).is_empty());
        assert_eq!(told(hers, bobs("in_progress")).len(), 1);
        assert_eq!(
            rules_for_existing(&a(hers), &[bobs("pending")]).owners["a"],
            AgentName::new_unchecked("bob")
        );
        assert!(rules_for_existing(&a(hers), &[bobs("in_progress")]).owners.is_empty());
        assert_eq!(rules_for_existing(&a(hers), &[]).owners["a"], AgentName::new_unchecked("ann"));
    }

    #[test]
    fn nothing_is_left_where_all_are_there_and_none_can_be_done() {
        let file = file("[[task]]\nkey = 'a'\nsubject = 's'\ncommand = 'c'\n");
        assert!(is_complete(&file, &[task("a", "completed", "")]));
        for left in ["pending", "in_progress"] {
            assert!(!is_complete(&file, &[task("a", left, r#""owner":"ann","#)]), "{left}");
        }
        assert!(!is_complete(&file, &[]) && !is_complete(&file, &[task("b", "completed", "")]));
    }
}

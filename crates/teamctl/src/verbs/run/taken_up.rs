//! A team that is there already: whether this file made it, what is left to do in it, and where the file says
//! something else by now. It only looks.

use super::decide::{Fate, Life, Lives, Rules, decide, key};
use super::file::{Plan, RunFile};
use crate::here::fault;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use protocol::team_config::TeamConfig;
use serde_json::Value;
use store::{Root, Team};

/// What there is of the file's team.
pub(super) enum Found {
    /// Nothing: it is to be made.
    Nothing,
    /// It can be gone on with. It is cut where its members have ended, or never came, and some of its tasks are not there:
    /// it was being deleted, or made.
    Unfinished { team: Team, is_cut: bool },
    /// It was kept: its members have ended, and nothing in it can be done.
    Finished(Team),
}

/// Looks for it; one that may not be taken up is a fault.
pub(super) fn found(root: &Root, file: &RunFile, resume: bool) -> Result<Found, ErrorReport> {
    let team = match root.team(&file.name) {
        Ok(team) => team,
        Err(store::Error::NoSuchTeam { .. }) => return Ok(Found::Nothing),
        Err(error) => return Err(fault(error)),
    };
    let config = team.config().map_err(fault)?;
    let tasks = team.tasks().list().map_err(fault)?;
    let stranger = stranger(file, &config, &tasks);
    let is_empty = config.members.iter().all(|member| member.name.is_lead());
    let finished = stranger.is_none() && is_empty && is_nothing_left(file, &tasks);
    let is_cut = is_empty && !has_all(file, &tasks);
    match stranger {
        _ if !resume => Err(taken(file, finished)),
        Some(stranger) => Err(stranger),
        None if finished => Ok(Found::Finished(team)),
        None => Ok(Found::Unfinished { team, is_cut }),
    }
}

fn taken(file: &RunFile, finished: bool) -> ErrorReport {
    let name = &file.name;
    let hint = match finished {
        true => format!(
            "nothing is left to do in it; {}; to begin anew: teamctl delete {name}",
            try_again(name.as_str(), &[])
        ),
        false => format!(
            "to go on with a run that was killed: teamctl run FILE --resume; else: teamctl delete {name}"
        ),
    };
    ErrorReport::new(ErrorKind::AlreadyExists, format!("cannot create team {name}: it exists already"))
        .with_help(hint)
}

/// How failed tasks are tried again; the table knows them by their keys alone.
pub(super) fn try_again(team: &str, failed: &[TaskId]) -> String {
    let ids: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    format!("its failed tasks{ids}: teamctl task release ID -t {team}, then: teamctl run FILE --resume")
}

/// What shows that another than this file made the team.
fn stranger(file: &RunFile, config: &TeamConfig, tasks: &[Task]) -> Option<ErrorReport> {
    let refused = |why: String| {
        ErrorReport::new(ErrorKind::Refused, format!("cannot take up team {}: {why}", file.name))
    };
    let known = |name: &AgentName| name.is_lead() || file.members.iter().any(|member| member.name == *name);
    if let Some(other) = config.members.iter().find(|member| !known(&member.name)) {
        let name = &other.name;
        let fault = refused(format!("{name} is on it, and the file has no such member (any more)"));
        return Some(fault.with_help(format!(
            "put it back into the file, or end it: teamctl shutdown {name} -t {}",
            file.name
        )));
    }
    let mut tasks = tasks.iter().filter(|task| !task.is_internal()).peekable();
    let ours = |task: &Task| key(task).is_some_and(|key| file.tasks.iter().any(|plan| plan.key == key));
    (tasks.peek().is_some() && !tasks.any(ours)).then(|| {
        let fault = refused("this file did not make it: none of its tasks is in the file".to_owned());
        fault.with_help("give the team in the file another name")
    })
}

/// Whether all that the file wants is there and over, were all its members there again.
pub(super) fn is_nothing_left(file: &RunFile, tasks: &[Task]) -> bool {
    let decision = decide(&Rules::of(file), tasks, &everybody(file));
    has_all(file, tasks) && decision.give_back.is_empty() && decision.fates.values().all(Fate::is_over)
}

/// Whether each task of the file is there; not, where the file has none.
fn has_all(file: &RunFile, tasks: &[Task]) -> bool {
    let is_there = |plan: &Plan| tasks.iter().any(|task| key(task) == Some(&plan.key));
    !file.tasks.is_empty() && file.tasks.iter().all(is_there)
}

/// All members of the file, as if they lived.
pub(super) fn everybody(file: &RunFile) -> Lives {
    let all = file.members.iter().map(|member| (member.name.clone(), Life::Lives));
    Lives(all.collect(), Default::default())
}

/// A sentence for each task of the team that the file has otherwise by now.
pub(super) fn differing(file: &RunFile, tasks: &[Task]) -> Vec<String> {
    let sentence = |(plan, task): (&Plan, &Task)| {
        let what = different(plan, task);
        let all = what.join(", ");
        (!what.is_empty())
            .then(|| format!("task {} differs from the file ({all}): the team's stays", plan.key))
    };
    pairs(file, tasks).filter_map(sentence).collect()
}

/// Whose each task is alone by the file, unless the team says otherwise.
pub(super) fn rules(file: &RunFile, tasks: &[Task]) -> Rules {
    let mut rules = Rules::of(file);
    for (plan, task) in pairs(file, tasks).filter(|(plan, task)| is_of_another(plan, task)) {
        // Of one that was begun it is not known any more whether it was its worker's alone.
        match task.owner.clone().filter(|_| task.status == TaskStatus::Pending) {
            Some(owner) => rules.owners.insert(plan.key.clone(), owner),
            None => rules.owners.remove(&plan.key),
        };
    }
    rules
}

fn pairs<'a>(file: &'a RunFile, tasks: &'a [Task]) -> impl Iterator<Item = (&'a Plan, &'a Task)> {
    file.tasks.iter().filter_map(|plan| Some((plan, tasks.iter().find(|task| key(task) == Some(&plan.key))?)))
}

fn different(plan: &Plan, task: &Task) -> Vec<&'static str> {
    let command = |metadata: Option<&serde_json::Map<String, Value>>| metadata?.get("command").cloned();
    let all = [
        ("subject", plan.subject != task.subject),
        ("description", plan.description != task.description),
        ("command", command(Some(&plan.metadata)) != command(task.metadata.as_ref())),
        ("owner", is_of_another(plan, task)),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

/// Whoever takes a task that is nobody's becomes its owner, and that is no difference.
fn is_of_another(plan: &Plan, task: &Task) -> bool {
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
    use crate::verbs::run::file;

    fn file(tasks: &str) -> RunFile {
        let members = "name = 't'\n[[member]]\nname = 'ann'\ncommand = ['sh']\n[[member]]\nname = 'bob'\ncommand = ['sh']\n";
        file::of_text(&format!("{members}{tasks}"))
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
        let told = |rest: &str, task: Task| differing(&a(rest), &[task]);
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
        assert_eq!(rules(&a(hers), &[bobs("pending")]).owners["a"], AgentName::new_unchecked("bob"));
        assert!(rules(&a(hers), &[bobs("in_progress")]).owners.is_empty());
        assert_eq!(rules(&a(hers), &[]).owners["a"], AgentName::new_unchecked("ann"));
    }

    #[test]
    fn nothing_is_left_where_all_are_there_and_none_can_be_done() {
        let file = file("[[task]]\nkey = 'a'\nsubject = 's'\ncommand = 'c'\n");
        assert!(is_nothing_left(&file, &[task("a", "completed", "")]));
        for left in ["pending", "in_progress"] {
            assert!(!is_nothing_left(&file, &[task("a", left, r#""owner":"ann","#)]), "{left}");
        }
        assert!(!is_nothing_left(&file, &[]) && !is_nothing_left(&file, &[task("b", "completed", "")]));
    }
}

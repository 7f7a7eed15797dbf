//! Examines a team that existed before the run, without changing it. Determines whether the run
//! file created the team, what is left to do, and how the team's tasks differ from the tasks in the
//! file.

use crate::decide_task_retries::{MemberState, MemberStates, RetryRules, TaskFate, evaluate, run_file_key};
use crate::run_file::{RunFile, TaskSpec};
use protocol::control_socket::SpawnRequest;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeamConfig};
use serde_json::Value;
use store::{Root, Team};

/// What a run does if the run file's team already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfTeamExists {
    /// The run fails.
    Fail,
    /// The run continues with the team (`--resume`).
    Resume,
}

/// Whether the run file's team exists, and how far it is.
pub(crate) enum ExistingTeam {
    /// There is no such team.
    Missing,
    /// The team has work left, so the run can continue with it.
    ///
    /// `is_incomplete` is true if the team has no members and lacks some of the file's tasks. This
    /// happens if an earlier run was killed while it created or deleted the team.
    Unfinished { team: Team, is_incomplete: bool },
    /// An earlier run kept the team. Its members have ended, and all of its tasks are final.
    Finished(Team),
}

/// Looks for the run file's team.
///
/// # Errors
///
/// `AlreadyExists` if the team exists and `if_team_exists` is `Fail`. `Refused` if the team belongs
/// to another run file.
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
    let foreign_error = foreign_team_error(file, &config, &tasks);
    let is_empty = config.members.iter().all(|member| member.name.is_lead());
    let is_finished = foreign_error.is_none() && is_empty && is_complete(file, &tasks);
    let is_incomplete = is_empty && !has_all_tasks(file, &tasks);
    let existing_team = match is_finished {
        true => ExistingTeam::Finished(team),
        false => ExistingTeam::Unfinished { team, is_incomplete },
    };
    match foreign_error {
        _ if if_team_exists == IfTeamExists::Fail => Err(team_exists_error(file, &existing_team)),
        Some(error) => Err(error),
        None => Ok(existing_team),
    }
}

fn team_exists_error(file: &RunFile, existing_team: &ExistingTeam) -> ErrorReport {
    let name = &file.name;
    let help = match existing_team {
        ExistingTeam::Finished(_) => format!(
            "nothing is left to do in it; {}; to begin anew: teamctl delete {name}",
            retry_help(name.as_str(), &[])
        ),
        _ => format!(
            "to go on with a run that was killed: teamctl run FILE --resume; else: teamctl delete {name}"
        ),
    };
    ErrorReport::new(ErrorKind::AlreadyExists, format!("cannot create team {name}: it exists already"))
        .with_help(help)
}

/// The text that says how to retry failed tasks. It contains the ids of the tasks, which `teamctl
/// task release` needs. The printed results show only the keys by which the run file names the
/// tasks.
pub(crate) fn retry_help(team: &str, failed: &[TaskId]) -> String {
    let ids: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    format!("its failed tasks{ids}: teamctl task release ID -t {team}, then: teamctl run FILE --resume")
}

/// The error for a team that another run file created. `None` if the team belongs to this file.
fn foreign_team_error(file: &RunFile, config: &TeamConfig, tasks: &[Task]) -> Option<ErrorReport> {
    let refusal = |reason: String| {
        ErrorReport::new(ErrorKind::Refused, format!("cannot take up team {}: {reason}", file.name))
    };
    let mut tasks = tasks.iter().filter(|task| !task.is_internal()).peekable();
    let is_in_file =
        |task: &Task| run_file_key(task).is_some_and(|key| file.tasks.iter().any(|spec| spec.key == key));
    let mut members = config.members.iter().filter(|member| !member.name.is_lead()).peekable();
    // If one of the team's tasks is also in the run file, an earlier run of this file created the
    // team. A person may have added other tasks. If the team has no tasks, its members are compared
    // with the file instead.
    let foreign_entries = match (tasks.peek().is_some(), members.peek().is_some()) {
        (true, _) => (!tasks.any(is_in_file)).then_some("tasks"),
        (false, true) => (!members.any(|member| spec_of(file, &member.name).is_some())).then_some("members"),
        (false, false) => None,
    };
    foreign_entries.map(|foreign_entries| {
        let error =
            refusal(format!("this file did not make it: none of its {foreign_entries} is in the file"));
        error.with_help("give the team in the file another name")
    })
}

/// The member of the file with this name.
fn spec_of<'a>(file: &'a RunFile, name: &MemberName) -> Option<&'a SpawnRequest> {
    file.members.iter().find(|member| member.name == *name)
}

/// Whether the team has every task of the run file, and no task of the team is left to do.
///
/// Members that have ended count as running, because the run can spawn them again. So a task that
/// only such a member can do is still left to do.
pub(crate) fn is_complete(file: &RunFile, tasks: &[Task]) -> bool {
    let decision = evaluate(&RetryRules::from_file(file), tasks, &all_running(file));
    has_all_tasks(file, tasks)
        && decision.releases.is_empty()
        && decision.fates.values().all(TaskFate::is_final)
}

/// Whether every task of the run file exists in the team. `false` if the file has no tasks.
fn has_all_tasks(file: &RunFile, tasks: &[Task]) -> bool {
    let is_in_team = |spec: &TaskSpec| tasks.iter().any(|task| run_file_key(task) == Some(&spec.key));
    !file.tasks.is_empty() && file.tasks.iter().all(is_in_team)
}

/// Member states in which every member of the run file counts as running.
pub(crate) fn all_running(file: &RunFile) -> MemberStates {
    let states = file.members.iter().map(|member| (member.name.clone(), MemberState::Running));
    MemberStates { states: states.collect(), ..MemberStates::default() }
}

/// A warning for each member and each task of the team that differs from the run file.
pub(crate) fn difference_warnings(file: &RunFile, config: &TeamConfig, tasks: &[Task]) -> Vec<String> {
    let members = config.members.iter().filter(|member| !member.name.is_lead());
    members.filter_map(|member| member_warning(file, member)).chain(task_warnings(file, tasks)).collect()
}

/// The warning for a member in the team's config that is not in the run file, or that was spawned
/// with other options than the file says. `None` if there is no difference.
///
/// Members that have ended get no warning: they are no longer in the config, and the run spawns
/// them again with the options in the file.
fn member_warning(file: &RunFile, member: &Member) -> Option<String> {
    let (name, team) = (&member.name, &file.name);
    let Some(spec) = spec_of(file, name) else {
        return Some(format!("{name} is on the team and not in the file: the run ends it with the team"));
    };
    let fields = [
        ("model", spec.model.clone().unwrap_or_default() != member.model),
        ("prompt", member.prompt.as_ref().is_some_and(|prompt| *prompt != spec.prompt)),
        ("agent_type", spec.agent_type.as_ref().is_some_and(|agent_type| *agent_type != member.agent_type)),
    ];
    let fields: Vec<&str> =
        fields.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect();
    let fields = (!fields.is_empty()).then(|| fields.join(", "))?;
    Some(format!(
        "member {name} differs from the file ({fields}): it goes on as it was spawned; to spawn it from the file: \
         teamctl kill {name} -t {team}, then: teamctl run FILE --resume"
    ))
}

fn task_warnings(file: &RunFile, tasks: &[Task]) -> Vec<String> {
    let warning = |(spec, task): (&TaskSpec, &Task)| {
        let fields = changed_fields(spec, task).join(", ");
        (!fields.is_empty())
            .then(|| format!("task {} differs from the file ({fields}): the team's stays", spec.key))
    };
    matched_tasks(file, tasks).filter_map(warning).collect()
}

/// The retry rules of the run file, but with the owners that the tasks have in the existing team.
pub(crate) fn rules_for_existing(file: &RunFile, tasks: &[Task]) -> RetryRules {
    let mut rules = RetryRules::from_file(file);
    for (spec, task) in matched_tasks(file, tasks).filter(|(spec, task)| has_other_owner(spec, task)) {
        // The owner of the team's task is not the owner in the run file. If the task is pending, a
        // person or an agent has chosen the new owner, so only the new owner may do the task. If
        // the task is in progress, the new owner may just have claimed it. So when the run makes
        // the task pending again, any member may do it.
        match task.owner.clone().filter(|_| task.status == TaskStatus::Pending) {
            Some(owner) => rules.owners.insert(spec.key.clone(), owner),
            None => rules.owners.remove(&spec.key),
        };
    }
    rules
}

/// Each task of the file with the task of the team that has the same key.
fn matched_tasks<'a>(file: &'a RunFile, tasks: &'a [Task]) -> impl Iterator<Item = (&'a TaskSpec, &'a Task)> {
    file.tasks
        .iter()
        .filter_map(|spec| Some((spec, tasks.iter().find(|task| run_file_key(task) == Some(&spec.key))?)))
}

fn changed_fields(spec: &TaskSpec, task: &Task) -> Vec<&'static str> {
    let command = |metadata: Option<&serde_json::Map<String, Value>>| metadata?.get("command").cloned();
    let fields = [
        ("subject", spec.subject != task.subject),
        ("description", spec.description != task.description),
        ("command", command(Some(&spec.metadata)) != command(task.metadata.as_ref())),
        ("owner", has_other_owner(spec, task)),
    ];
    fields.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

/// Whether the owner of the team's task differs from the owner in the run file. Always `false` for
/// a completed or deleted task. Also `false` for a task in progress if the file names no owner,
/// because the owner is then the member that claimed the task.
fn has_other_owner(spec: &TaskSpec, task: &Task) -> bool {
    match (&task.status, &spec.owner) {
        (TaskStatus::Completed | TaskStatus::Deleted, _) => false,
        (TaskStatus::Pending, owner) => *owner != task.claimer(),
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
    fn differences_from_the_file_are_warnings_and_the_teams_tasks_stay() {
        let file_with_task = |rest: &str| file(&format!("[[task]]\nkey = 'a'\n{rest}\n"));
        let warnings = |rest: &str, task: Task| task_warnings(&file_with_task(rest), &[task]);
        let pending = || task("a", "pending", "");
        assert!(warnings("subject = 's'\ncommand = 'c'", pending()).is_empty());
        assert_eq!(
            warnings("subject = 'x'\ndescription = 'd'\ncommand = 'y'\nowner = 'ann'", pending()),
            ["task a differs from the file (subject, description, command, owner): the team's stays"]
        );
        let owned_by_bob = |status: &str| task("a", status, r#""owner":"bob","#);
        let for_ann = "subject = 's'\ncommand = 'c'\nowner = 'ann'";
        let unowned = "subject = 's'\ncommand = 'c'";
        assert!(warnings(unowned, owned_by_bob("in_progress")).is_empty(), "bob has claimed the task");
        assert!(warnings(for_ann, owned_by_bob("completed")).is_empty());
        assert_eq!(warnings(for_ann, owned_by_bob("in_progress")).len(), 1);
        assert_eq!(
            rules_for_existing(&file_with_task(for_ann), &[owned_by_bob("pending")]).owners["a"],
            MemberName::new_unchecked("bob")
        );
        assert!(
            rules_for_existing(&file_with_task(for_ann), &[owned_by_bob("in_progress")]).owners.is_empty()
        );
        assert_eq!(
            rules_for_existing(&file_with_task(for_ann), &[]).owners["a"],
            MemberName::new_unchecked("ann")
        );
    }

    #[test]
    fn changed_and_added_members_are_warnings() {
        let file = run_file::parse_valid(
            "name = 't'\n[[member]]\nname = 'ann'\ncommand = ['sh']\nmodel = 'new'\nprompt = 'p'\n",
        );
        let config =
            |members: &str| TeamConfig::parse(&format!(r#"{{"name":"t","members":[{members}]}}"#)).unwrap();
        let warnings = |members: &str| difference_warnings(&file, &config(members), &[]);
        let lead = r#"{"name":"team-lead"}"#;
        assert_eq!(warnings(&format!(r#"{lead},{{"name":"ann","model":"new","prompt":"p"}}"#)), [""; 0]);
        assert_eq!(
            warnings(&format!(r#"{lead},{{"name":"ann","model":"old","prompt":"q"}},{{"name":"eve"}}"#)),
            [
                "member ann differs from the file (model, prompt): it goes on as it was spawned; to spawn it from \
                 the file: teamctl kill ann -t t, then: teamctl run FILE --resume",
                "eve is on the team and not in the file: the run ends it with the team"
            ]
        );
        let is_foreign = |members: &str| foreign_team_error(&file, &config(members), &[]).is_some();
        assert!(!is_foreign(lead) && !is_foreign(r#"{"name":"ann"},{"name":"eve"}"#));
        assert!(is_foreign(r#"{"name":"eve"}"#), "the file has none of the members");
    }

    #[test]
    fn team_is_complete_if_all_tasks_exist_and_are_final() {
        let file = file("[[task]]\nkey = 'a'\nsubject = 's'\ncommand = 'c'\n");
        assert!(is_complete(&file, &[task("a", "completed", "")]));
        for status in ["pending", "in_progress"] {
            assert!(!is_complete(&file, &[task("a", status, r#""owner":"ann","#)]), "{status}");
        }
        assert!(!is_complete(&file, &[]) && !is_complete(&file, &[task("b", "completed", "")]));
    }
}

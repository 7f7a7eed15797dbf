//! Creates the task that asks a member to resolve the conflicts of its branch. While this task is
//! open, no second task is created for the same conflict.

use crate::command_context::CommandContext;
use protocol::control_socket::WorktreeStatus;
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::member_task_and_request_ids::TaskId;
use protocol::shell_quote::shell_quote;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use store::{NewTask, Team};
use worktree::{MergeMethod, escape_controls};

/// How many files the description names.
const LISTED_FILES: usize = 100;

/// A branch that cannot be merged without a person or its member.
pub(super) struct Conflict<'a> {
    pub(super) member: &'a WorktreeStatus,
    /// The host of the member's worktree, if it is not this one.
    pub(super) host: Option<&'a HostName>,
    /// The branch into which the member's branch was to be merged.
    pub(super) into: &'a str,
    /// The name of this branch in git commands. git cannot mistake it for the name of a tag.
    pub(super) into_ref: &'a str,
    pub(super) method: MergeMethod,
    /// Relative to the top of the working tree.
    pub(super) files: Vec<PathBuf>,
}

/// The task for a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum ConflictTask {
    Created {
        id: TaskId,
    },
    /// An earlier merge has created the task.
    Open {
        id: TaskId,
    },
    /// There is no task, because the member can't resolve conflicts.
    None {
        reason: String,
        /// What a person types instead.
        command: String,
    },
}

impl Display for ConflictTask {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ConflictTask::Created { id } => write!(f, "task {id}"),
            ConflictTask::Open { id } => write!(f, "task {id} is still open"),
            ConflictTask::None { reason, command } => write!(f, "no task: {reason}; by hand: {command}"),
        }
    }
}

/// Creates tasks for conflicts.
pub(super) struct ConflictTasks<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) team: &'a Team,
}

impl ConflictTasks<'_> {
    /// Creates the task that asks the member to resolve the conflict. Creates no task if an earlier
    /// task for this conflict is open, or if the member can't do the task: it has left the team, is
    /// on another host, or is a built-in worker.
    ///
    /// # Errors
    ///
    /// The errors of reading the team's files, and of creating the task.
    pub(super) fn ensure_task(&self, conflict: &Conflict<'_>) -> Result<ConflictTask, ErrorReport> {
        let name = &conflict.member.member;
        if let Some(reason) = self.reason_for_no_task(conflict)? {
            return Ok(ConflictTask::None { reason, command: conflict.command_by_hand() });
        }
        let subject = conflict.subject();
        let tasks = self.team.tasks().list()?;
        let is_same = |owner: &Option<_>, other: &str| owner.as_ref() == Some(name) && other == subject;
        let open = tasks.iter().find(|task| !task.status.is_closed() && is_same(&task.owner, &task.subject));
        if let Some(open) = open {
            return Ok(ConflictTask::Open { id: open.id });
        }
        let new = NewTask {
            description: conflict.description(),
            owner: Some(name.clone()),
            ..NewTask::new(&subject, &self.context.caller_name())
        };
        let task = self.context.caller_in(self.team.clone()).create_task(new)?;
        Ok(ConflictTask::Created { id: task.id })
    }

    fn reason_for_no_task(&self, conflict: &Conflict<'_>) -> Result<Option<String>, ErrorReport> {
        let name = &conflict.member.member;
        if let Some(host) = conflict.host {
            return Ok(Some(format!("{host} does not have {}", conflict.into)));
        }
        if self.team.config()?.member(name).is_none() {
            return Ok(Some(format!("{name} is not in the team now")));
        }
        let roster = store::read_roster_file(&self.context.state_dir_path()?).unwrap_or_default();
        let is_worker = roster.needs_task_commands(self.team.name(), name);
        Ok(is_worker.then(|| format!("{name} is a worker, which runs only commands")))
    }
}

impl Conflict<'_> {
    fn subject(&self) -> String {
        format!("resolve conflicts of {} with {}", self.member.branch, self.into)
    }

    /// The commands for the member, which works in its worktree.
    fn description(&self) -> String {
        let line = |file: &PathBuf| format!("  {}", escape_controls(&file.display().to_string()));
        let mut files: Vec<String> = self.files.iter().take(LISTED_FILES).map(line).collect();
        if self.files.len() > LISTED_FILES {
            files.push(format!("  and {} more", self.files.len() - LISTED_FILES));
        }
        format!(
            "The branch {} has conflicts with {} in these files:\n{}\n\n\
             Commit your work, and type in {}:\n  {}\n\
             Resolve the conflicts in the files, git add them, and finish with:\n  {}\n\
             Run the tests again. Then complete this task.",
            self.member.branch,
            self.into,
            files.join("\n"),
            self.member.path.display(),
            self.command(),
            self.finish_command()
        )
    }

    fn command(&self) -> String {
        let verb = match self.method {
            MergeMethod::Merge => "merge",
            MergeMethod::Rebase => "rebase",
        };
        format!("git {verb} {}", shell_quote(self.into_ref))
    }

    fn finish_command(&self) -> &'static str {
        match self.method {
            MergeMethod::Merge => "git commit --no-edit",
            MergeMethod::Rebase => "git rebase --continue",
        }
    }

    fn command_by_hand(&self) -> String {
        if self.host.is_some() {
            let (into, branch) = (shell_quote(self.into), shell_quote(&self.member.branch));
            return format!("git switch {into} && git merge {branch}");
        }
        format!("cd {} && {}", shell_quote(&self.member.path.to_string_lossy()), self.command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_and_member_names::MemberName;

    #[test]
    fn description_names_files_and_commands() {
        let member = WorktreeStatus {
            member: MemberName::new_unchecked("ann"),
            path: "/w".into(),
            branch: "teamd/t/ann".to_owned(),
            repository: "/r/.git".into(),
        };
        let description = |method| {
            let files = vec!["a".into(), "sub/b\nc".into()];
            let (into, into_ref) = ("teamd/t/merged", "heads/teamd/t/merged");
            Conflict { member: &member, host: None, into, into_ref, method, files }.description()
        };
        let merge = description(MergeMethod::Merge);
        for text in [
            "  a\n  sub/b\\nc\n",
            "type in /w:\n  git merge heads/teamd/t/merged\n",
            "  git commit --no-edit\n",
        ] {
            assert!(merge.contains(text), "{merge}");
        }
        let rebase = description(MergeMethod::Rebase);
        assert!(
            rebase.contains("  git rebase heads/teamd/t/merged\n") && rebase.contains("rebase --continue"),
            "{rebase}"
        );
    }
}

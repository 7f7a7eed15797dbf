//! The state of a run's tasks and members for display. All text is safe to print.

use crate::decide_task_retries::TaskFate;
use crate::run_file::RunFile;
use protocol::control_socket::{Activity, MemberFlag, MemberStatus};
use protocol::escape_control_chars::visible;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;

/// The state of a run.
#[derive(Debug, Default)]
pub struct RunProgress {
    /// The team's name.
    pub team: String,
    /// Why the run is ending. `None` if the run is not ending.
    pub ending: Option<String>,
    /// The tasks, in the order of their ids.
    pub tasks: Vec<TaskProgress>,
    /// The members: active ones first, then the others. Both groups are in the order of the run
    /// file.
    pub members: Vec<MemberProgress>,
}

/// One task.
#[derive(Debug)]
pub struct TaskProgress {
    /// The task's key in the run file, or its id if it has no key.
    pub name: String,
    /// The task's subject.
    pub subject: String,
    /// The owner's name. Empty if the task has no owner.
    pub owner: String,
    /// The task's state, as far as the run is concerned.
    pub fate: TaskFate,
    /// How long an agent has worked on the task, in milliseconds. `None` if no agent has started
    /// it.
    pub duration_ms: Option<u64>,
}

/// One running member.
#[derive(Debug)]
pub struct MemberProgress {
    /// The member's name.
    pub name: String,
    /// What the member does, as a word for the screen: `idle`, `paused`, `turns-stopped`,
    /// `active: TASK`, `needs-answer: TASK`, or a lifecycle such as `starting`.
    pub activity: String,
    /// Whether the member has an open plan or permission request.
    pub is_awaiting_answer: bool,
}

/// The running members for display. Active members come first, because a small screen shows only
/// the first members. Both groups are in the order of the run file.
pub(crate) fn member_progress(file: &RunFile, running: &[MemberStatus]) -> Vec<MemberProgress> {
    sort_members(file, running).into_iter().map(one_member).collect()
}

fn sort_members<'a>(file: &RunFile, running: &'a [MemberStatus]) -> Vec<&'a MemberStatus> {
    let position = |name: &MemberName| file.members.iter().position(|member| member.name == *name);
    let mut members: Vec<&MemberStatus> = running.iter().collect();
    members.sort_by_key(|agent| {
        (agent.activity == Activity::Idle, position(&agent.name).unwrap_or(file.members.len()))
    });
    members
}

fn one_member(agent: &MemberStatus) -> MemberProgress {
    let is_awaiting_answer = agent
        .flags
        .iter()
        .any(|flag| matches!(flag, MemberFlag::AwaitingPlanApproval | MemberFlag::AwaitingPermission));
    let activity = match (agent.lifecycle.as_str(), agent.activity, &agent.task) {
        ("running", _, Some(task)) if is_awaiting_answer => format!("needs-answer: {task}"),
        ("running", _, None) if is_awaiting_answer => "needs-answer".to_owned(),
        ("running", Activity::Idle, _) if agent.flags.contains(&MemberFlag::Limited) => {
            let time = agent.usage_limit.as_ref().map(|limit| limit.local_time.as_str());
            format!("limited until {}", time.unwrap_or("?"))
        }
        ("running", Activity::Idle, _) if agent.flags.contains(&MemberFlag::Paused) => "paused".to_owned(),
        ("running", Activity::Idle, _) if agent.flags.contains(&MemberFlag::TurnsStopped) => {
            "turns-stopped".to_owned()
        }
        ("running", Activity::Idle, _) => "idle".to_owned(),
        ("running", Activity::Active, Some(task)) => format!("active: {task}"),
        ("running", Activity::Active, None) => "active".to_owned(),
        (lifecycle, _, _) => lifecycle.to_owned(),
    };
    MemberProgress {
        name: printable_line(agent.name.as_str()),
        activity: printable_line(&activity),
        is_awaiting_answer,
    }
}

/// `text` on one line, with control characters escaped.
pub(crate) fn printable_line(text: &str) -> String {
    visible(&single_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_with_an_open_request_needs_an_answer() {
        let agent = r#"{"name":"ann","agent_id":"","lifecycle":"running","activity":"active","activity_since":0,"delivery":"turn","backend":"","color":"","task":"x","flags":["awaiting_permission"]}"#;
        let mut agent: MemberStatus = serde_json::from_str(agent).unwrap();
        let progress = one_member(&agent);
        assert_eq!((progress.activity.as_str(), progress.is_awaiting_answer), ("needs-answer: x", true));
        agent.flags.clear();
        let progress = one_member(&agent);
        assert_eq!((progress.activity.as_str(), progress.is_awaiting_answer), ("active: x", false));
    }

    #[test]
    fn active_members_come_first_in_file_order() {
        let member = |name: &str| format!("[[member]]\nname = '{name}'\ncommand = ['sh']\n");
        let members: String = ["zoe", "cat", "bob", "ann"].map(member).concat();
        let file = crate::run_file::parse_valid(&format!("name = 't'\n{members}"));
        let agent = |(name, activity): (&str, &str)| {
            let text = format!(
                r#"{{"name":"{name}","agent_id":"","lifecycle":"running","activity":"{activity}","activity_since":0,"delivery":"turn","backend":"","color":""}}"#
            );
            serde_json::from_str::<MemberStatus>(&text).unwrap()
        };
        let running =
            [("ann", "active"), ("bob", "idle"), ("eve", "active"), ("zoe", "idle"), ("cat", "active")];
        let running = running.map(agent);
        let names: Vec<_> = sort_members(&file, &running).iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["cat", "ann", "eve", "zoe", "bob"]);
    }
}

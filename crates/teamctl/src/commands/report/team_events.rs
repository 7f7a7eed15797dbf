//! Collects what the event log says about a team: which tasks ended, which turns the members
//! carried out, and what failed.

use client::read_event_log::event_time;
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_message_payload::IdleReason;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use runner::WorkTimes;
use std::collections::BTreeMap;

/// The events of the latest team with a given name. Failures, and the counts of what members did,
/// begin at the time `since`. All times are in milliseconds since the epoch.
#[derive(Debug, Default)]
pub(super) struct TeamEvents {
    /// `None` if the log has no event of the team.
    pub(super) first_at: Option<u64>,
    /// Whether the first event is the creation of the team. If it is, no earlier events of the team
    /// are missing.
    pub(super) has_creation: bool,
    /// `None` if the log does not have the deletion of the team.
    pub(super) deleted_at: Option<u64>,
    pub(super) tasks: BTreeMap<TaskId, TaskEvents>,
    pub(super) members: BTreeMap<MemberName, MemberEvents>,
    pub(super) exhausted_budgets: Vec<ExhaustedBudget>,
    pub(super) times: WorkTimes,
    since: u64,
}

/// The events of a task.
#[derive(Debug, Default)]
pub(super) struct TaskEvents {
    pub(super) subject: String,
    pub(super) owner: Option<MemberName>,
    pub(super) end: Option<LoggedTaskEnd>,
    /// How often the work on the task failed.
    pub(super) failures: u32,
    /// When and why it failed last.
    pub(super) last_failure: Option<(u64, String)>,
}

/// How the last work on a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedTaskEnd {
    CompletedAt(u64),
    FailedAt(u64),
}

/// The events of a member.
#[derive(Debug, Default)]
pub(super) struct MemberEvents {
    /// How many turns have begun.
    pub(super) turns: u64,
    /// The activity after the last event. A restarted daemon logs a turn that it finds again.
    activity: LoggedActivity,
    pub(super) failed_turns: u64,
    /// How often the member failed a task.
    pub(super) failed_tasks: u64,
    /// Why turns failed, according to the last report of several failed turns in a row.
    pub(super) turn_failure: Option<String>,
    /// The ends of its spawns, the latest last, except those of a suspension.
    exits: Vec<LoggedExit>,
    /// When and why the member could not be started, the latest.
    pub(super) spawn_failure: Option<(u64, String)>,
    /// Why the member is not started again.
    pub(super) respawn_refusal: Option<String>,
}

/// Whether a member is in a turn, as far as the log says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LoggedActivity {
    InTurn,
    #[default]
    BetweenTurns,
}

/// The end of a spawn.
#[derive(Debug)]
pub(super) struct LoggedExit {
    pub(super) at: u64,
    /// `completed`, `failed` or `killed`.
    pub(super) outcome: String,
    pub(super) description: String,
}

/// The budget of a team, or the share of a member, that was used up.
#[derive(Debug)]
pub(super) struct ExhaustedBudget {
    pub(super) at: u64,
    /// `None` for the budget of the team.
    pub(super) member: Option<MemberName>,
    pub(super) reason: String,
}

impl TeamEvents {
    /// Evaluates `events`, which are the events of all teams that have had this name, oldest first.
    /// The result is about the last of these teams. Events before `since` count only for the state
    /// of tasks.
    pub(super) fn new(events: &[Event], since: Option<u64>) -> TeamEvents {
        let since = since.unwrap_or(0);
        let mut team = TeamEvents { since, ..TeamEvents::default() };
        for event in events {
            // Earlier events are about an earlier team of the same name.
            let is_creation = matches!(event.kind, EventKind::TeamCreated);
            if is_creation || (team.deleted_at.is_some() && begins_life(&event.kind)) {
                team = TeamEvents { has_creation: is_creation, since, ..TeamEvents::default() };
            }
            team.add(event);
        }
        team
    }

    /// Called for a team that exists. If the team in `self` was deleted, it is an earlier team of
    /// the same name, and the existing team has no events. Then the result is empty.
    pub(super) fn for_existing_team(self) -> TeamEvents {
        if self.deleted_at.is_some() { TeamEvents::default() } else { self }
    }

    fn add(&mut self, event: &Event) {
        let at = event_time(event);
        self.first_at.get_or_insert(at);
        self.times.record(event);
        match &event.kind {
            EventKind::TeamDeleted => self.deleted_at = Some(at),
            EventKind::BudgetExhausted { reason } if at >= self.since => {
                let (member, reason) = (event.member.clone(), reason.clone());
                self.exhausted_budgets.push(ExhaustedBudget { at, member, reason });
            }
            kind => {
                self.add_task_event(kind, at);
                if let Some(member) = event.member.as_ref().filter(|_| at >= self.since) {
                    self.members.entry(member.clone()).or_default().add(kind, at);
                }
            }
        }
    }

    fn add_task_event(&mut self, kind: &EventKind, at: u64) {
        let since = self.since;
        match kind {
            EventKind::TaskCreated { task, subject } | EventKind::TaskReleased { task, subject } => {
                self.task(*task, subject, None).end = None;
            }
            EventKind::TaskStarted { task, subject, owner } => {
                self.task(*task, subject, owner.as_ref()).end = None;
            }
            EventKind::TaskCompleted { task, subject, owner } => {
                self.task(*task, subject, owner.as_ref()).end = Some(LoggedTaskEnd::CompletedAt(at));
            }
            EventKind::TaskFailed { task, subject, owner, reason } => {
                let task = self.task(*task, subject, owner.as_ref());
                task.end = Some(LoggedTaskEnd::FailedAt(at));
                if at >= since {
                    task.failures += 1;
                    task.last_failure = Some((at, reason.clone()));
                    if let Some(owner) = owner {
                        self.members.entry(owner.clone()).or_default().failed_tasks += 1;
                    }
                }
            }
            EventKind::TaskDeleted { task } => {
                // Another program may delete the files of completed tasks.
                let is_completed =
                    |task: &TaskEvents| matches!(task.end, Some(LoggedTaskEnd::CompletedAt(_)));
                if !self.tasks.get(task).is_some_and(is_completed) {
                    self.tasks.remove(task);
                }
            }
            _ => {}
        }
    }

    /// The events of a task, with its latest subject and owner.
    fn task(&mut self, id: TaskId, subject: &str, owner: Option<&MemberName>) -> &mut TaskEvents {
        let task = self.tasks.entry(id).or_default();
        subject.clone_into(&mut task.subject);
        task.owner = owner.cloned();
        task
    }
}

/// Whether an event after the deletion of a team shows that there is a new team of the same name.
/// Only the spawn of a member and the creation of a task show that. Other events may still be about
/// the deleted team. The event `TeamCreated` cannot be used, because it is missing if another
/// program creates the new team.
fn begins_life(kind: &EventKind) -> bool {
    matches!(kind, EventKind::MemberSpawned { .. } | EventKind::TaskCreated { .. })
}

impl MemberEvents {
    fn add(&mut self, kind: &EventKind, at: u64) {
        self.add_activity(kind);
        match kind {
            EventKind::MemberIdle { reason: Some(IdleReason::Failed) } => self.failed_turns += 1,
            EventKind::MemberTurnsFailed { reason, .. } | EventKind::MemberLimited { reason, .. } => {
                self.turn_failure = Some(reason.clone());
            }
            EventKind::MemberSpawned { .. } => (self.spawn_failure, self.respawn_refusal) = (None, None),
            EventKind::MemberSpawnFailed { reason } => self.spawn_failure = Some((at, reason.clone())),
            EventKind::MemberRespawnsExhausted { reason } => self.respawn_refusal = Some(reason.clone()),
            EventKind::MemberExited { outcome, description } => {
                let (outcome, description) = (outcome.clone(), description.clone());
                self.exits.push(LoggedExit { at, outcome, description });
            }
            // The daemon ended this spawn to suspend the member.
            EventKind::MemberSuspended => drop(self.exits.pop()),
            _ => {}
        }
    }

    fn add_activity(&mut self, kind: &EventKind) {
        match kind {
            EventKind::MemberActive { .. } => {
                self.turns += u64::from(self.activity == LoggedActivity::BetweenTurns);
                self.activity = LoggedActivity::InTurn;
            }
            EventKind::MemberIdle { .. }
            | EventKind::MemberSpawned { .. }
            | EventKind::MemberExited { .. } => self.activity = LoggedActivity::BetweenTurns,
            _ => {}
        }
    }

    /// The spawns that failed or were killed, the latest last.
    pub(super) fn bad_exits(&self) -> Vec<&LoggedExit> {
        self.exits.iter().filter(|exit| exit.outcome != "completed").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::timestamp::iso8601;

    fn events(lines: &[(u64, &str)]) -> Vec<Event> {
        let parse = |(ms, rest): &(u64, &str)| {
            let line = format!(r#"{{"time":"{}","team":"t",{rest}}}"#, iso8601(*ms));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        lines.iter().map(parse).collect()
    }

    fn id(number: u32) -> TaskId {
        TaskId::from_number(number).unwrap()
    }

    const FAILED: &str = r#""event":"task_failed","task":"1","subject":"s","owner":"ann","reason":"exit 1""#;
    const COMPLETED: &str = r#""event":"task_completed","task":"1","subject":"s","owner":"bob""#;

    #[test]
    fn only_the_latest_team_of_the_name_counts() {
        let lines = [
            (1, FAILED),
            (2, r#""event":"team_deleted""#),
            (3, r#""event":"team_created""#),
            (4, r#""event":"member_active","member":"ann""#),
        ];
        let team = TeamEvents::new(&events(&lines), None);
        assert_eq!((team.first_at, team.has_creation, team.deleted_at), (Some(3), true, None));
        assert!(team.tasks.is_empty());
        let foreign = [lines[0], lines[1], (3, r#""event":"task_created","task":"2","subject":"s""#)];
        let foreign = TeamEvents::new(&events(&foreign), None);
        assert_eq!((foreign.first_at, foreign.has_creation, foreign.tasks.len()), (Some(3), false, 1));
        let earlier = TeamEvents::new(&events(&lines[..2]), None);
        assert_eq!((earlier.first_at, earlier.has_creation, earlier.deleted_at), (Some(1), false, Some(2)));
        assert_eq!(earlier.for_existing_team().first_at, None);
    }

    #[test]
    fn failures_before_the_time_are_not_counted() {
        let lines = [(1, FAILED), (3, FAILED), (5, COMPLETED)];
        let task = |since| TeamEvents::new(&events(&lines), since).tasks.remove(&id(1)).unwrap();
        let whole = task(None);
        assert_eq!((whole.failures, whole.end), (2, Some(LoggedTaskEnd::CompletedAt(5))));
        assert_eq!(whole.owner.unwrap().as_str(), "bob");
        assert_eq!((task(Some(2)).failures, task(Some(4)).failures), (1, 0));
    }

    #[test]
    fn turns_and_bad_exits_of_members_are_counted() {
        let exited = |outcome| {
            format!(r#""event":"member_exited","member":"ann","outcome":"{outcome}","description":"d""#)
        };
        let [killed, completed] = ["killed", "completed"].map(exited);
        let lines = [
            (1, r#""event":"member_active","member":"ann""#),
            (2, r#""event":"member_idle","member":"ann","reason":"failed""#),
            (3, killed.as_str()),
            (4, completed.as_str()),
            (5, r#""event":"member_exited","member":"bob","outcome":"killed","description":"d""#),
            (5, r#""event":"member_suspended","member":"bob""#),
        ];
        let team = TeamEvents::new(&events(&lines), None);
        let [ann, bob] = ["ann", "bob"].map(|name| &team.members[&MemberName::new_unchecked(name)]);
        assert_eq!((ann.turns, ann.failed_turns, ann.bad_exits().len()), (1, 1, 1));
        assert!(bob.bad_exits().is_empty(), "a suspended member has not failed");
    }

    #[test]
    fn turn_that_a_restarted_daemon_finds_again_counts_once() {
        let active = r#""event":"member_active","member":"ann""#;
        let turns = |between: &str| {
            let lines = [(1, active), (2, between), (3, active)];
            TeamEvents::new(&events(&lines), None).members[&MemberName::new_unchecked("ann")].turns
        };
        assert_eq!(turns(r#""event":"member_adopted","member":"ann","pid":7"#), 1);
        assert_eq!(turns(r#""event":"member_idle","member":"ann""#), 2);
        assert_eq!(turns(r#""event":"member_spawned","member":"ann","pid":7,"pane":"%1""#), 2);
    }

    #[test]
    fn deleted_task_stays_only_if_it_was_completed() {
        let deleted = r#""event":"task_deleted","task":"1""#;
        let has_task = |line| TeamEvents::new(&events(&[(1, line), (2, deleted)]), None).tasks.len();
        assert_eq!((has_task(COMPLETED), has_task(FAILED)), (1, 0));
    }
}

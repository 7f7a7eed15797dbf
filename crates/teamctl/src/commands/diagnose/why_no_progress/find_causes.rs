//! Derives the causes from the evidence; reads no files. The strongest cause comes first: the order
//! of the calls in this module is the order of the result. First come causes that can hide other
//! causes, such as a full disk. Then come causes that a person must remove, and last those that go
//! away without a person.

use super::agent_starting_ending_or_stopped_causes::{
    disconnected_cause, shutdown_cause, stopped_process_cause, transition_cause,
};
use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::disk_daemon_tmux_and_config_causes::{config_cause, daemon_cause, disk_causes, tmux_cause};
use super::member_evidence::MemberEvidence;
use super::no_running_agent_causes::{exit_cause, other_host_cause, unsupervised_cause};
use super::request_and_dialog_causes::{lead_cause, request_causes};
use super::suggested_next_commands::commands_for_member;
use super::system_snapshot::DaemonProbe;
use super::turn_message_and_task_causes::add_work_causes;
use super::unreadable_or_locked_inbox_causes::inbox_causes;
use protocol::control_socket::MemberStatus;

/// The causes, with commands for the caller. There is always at least one.
pub(super) fn find_causes(evidence: &MemberEvidence) -> Vec<Diagnosis> {
    let mut causes: Vec<Diagnosis> =
        disk_causes(evidence).chain(daemon_cause(evidence)).chain(config_cause(evidence)).collect();
    causes.extend(evidence.inboxes.iter().flat_map(|inbox| inbox_causes(evidence, inbox)));
    match &evidence.agent {
        _ if evidence.name.is_lead() => causes.push(lead_cause(evidence)),
        Some(agent) => add_causes_if_running(evidence, agent, &mut causes),
        None => causes.extend(causes_if_not_running(evidence)),
    }
    if !evidence.caller.is_lead() {
        causes
            .iter_mut()
            .for_each(|diagnosis| diagnosis.next = commands_for_member(diagnosis.cause, evidence));
    }
    causes
}

fn causes_if_not_running(evidence: &MemberEvidence) -> Vec<Diagnosis> {
    let is_listed = matches!(evidence.member, Ok(Some(_)));
    match &evidence.daemon {
        _ if evidence.other_host.is_some() => vec![other_host_cause(evidence)],
        DaemonProbe::Running(_) if is_listed && evidence.past_member.is_none() => {
            vec![unsupervised_cause(evidence)]
        }
        // Without the daemon it is unknown whether the agent runs.
        DaemonProbe::NotRunning | DaemonProbe::Unresponsive(_) if is_listed => request_causes(evidence, &[]),
        _ => vec![exit_cause(evidence)],
    }
}

fn add_causes_if_running(evidence: &MemberEvidence, agent: &MemberStatus, causes: &mut Vec<Diagnosis>) {
    match agent.lifecycle.as_str() {
        "starting" => return causes.push(transition_cause(evidence, Cause::Starting, "started")),
        "disconnected" => causes.push(disconnected_cause(evidence)),
        _ => {}
    }
    causes.extend(stopped_process_cause(evidence));
    causes.extend(shutdown_cause(evidence, agent));
    causes.extend(request_causes(evidence, &agent.flags));
    causes.extend(tmux_cause(evidence));
    add_work_causes(evidence, agent, causes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::diagnose::why_no_progress::member_event_history::MemberHistory;
    use crate::commands::diagnose::why_no_progress::member_evidence::{
        InboxContent, InboxState, OpenRequestEvidence, UnreadMessage,
    };
    use crate::commands::diagnose::why_no_progress::probe_servers_processes_and_disks::{
        FreeSpace, ServerState, StoppedProcess,
    };
    use crate::commands::diagnose::why_no_progress::task_waits_and_unfinished_tasks::task_waits;
    use client::suggested_commands::SuggestedCommands;
    use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
    use protocol::event_log_line::{Event, EventKind};
    use protocol::inbox_file::Message;
    use protocol::inbox_message_payload::IdleReason;
    use protocol::member_request::MemberRequestKind;
    use protocol::task::{Task, TaskStatus};
    use protocol::team_and_member_names::{MemberName, TeamName};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use store::LockState;

    fn agent(fields: &Value) -> MemberStatus {
        let mut agent = json!({"name": "ann", "agent_id": "ann@t", "lifecycle": "running", "activity": "idle", "activity_since": 1,
            "task": null, "delivery": "turn", "delivery_point": "turn-end", "pane": "%1", "pid": 7, "backend": "tmux", "color": ""});
        agent.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(agent).unwrap()
    }

    fn evidence(fields: &Value) -> MemberEvidence {
        let daemon = json!({"pid": 1, "version": "", "root": "/", "tmux": null, "watch_mode": "events"});
        MemberEvidence {
            now: 1_000_000,
            team: TeamName::parse("t").unwrap(),
            name: MemberName::new_unchecked("ann"),
            caller: MemberName::lead(),
            commands: SuggestedCommands::default(),
            members: Arc::new(vec![MemberName::new_unchecked("ann"), MemberName::new_unchecked("bob")]),
            daemon: DaemonProbe::Running(serde_json::from_value(daemon).unwrap()),
            agent: Some(agent(fields)),
            past_member: None,
            exhausted_budget: None,
            member: Ok(None),
            other_host: None,
            unread: Vec::new(),
            inboxes: vec![inbox("ann", None), inbox("team-lead", None)],
            open_requests: Vec::new(),
            tasks: Arc::default(),
            history: MemberHistory::default(),
            stopped_processes: Vec::new(),
            tmux: ServerState::Responsive,
            full_disks: Vec::new(),
            last_output: None,
            no_output_after_ms: 300_000,
            turn_failure: None,
        }
    }

    fn task(id: u32, owner: &str, blocked_by: &[&str]) -> Task {
        let task = json!({"id": id.to_string(), "subject": "x", "status": "pending", "owner": owner, "blockedBy": blocked_by});
        Task::parse(&task.to_string()).unwrap()
    }

    fn tasks_mut(evidence: &mut MemberEvidence) -> &mut Vec<Task> {
        Arc::make_mut(&mut evidence.tasks)
    }

    fn inbox(owner: &str, damage: Option<&str>) -> Arc<InboxState> {
        Arc::new(InboxState {
            owner: MemberName::new_unchecked(owner),
            content: InboxContent::default(),
            damage: damage.map(str::to_owned),
            lock_state: LockState::Free,
            lock_holder: None,
        })
    }

    fn unread(text: String, sent_at: u64) -> UnreadMessage {
        UnreadMessage::new(&Message::new(&MemberName::lead(), text, sent_at))
    }

    fn open_request() -> OpenRequestEvidence {
        OpenRequestEvidence {
            id: "p".to_owned(),
            kind: MemberRequestKind::Permission,
            description: "asks".to_owned(),
            since: 0,
            needs_person: false,
            policy_answer: None,
        }
    }

    fn causes(evidence: &MemberEvidence) -> Vec<Cause> {
        find_causes(evidence).iter().map(|diagnosis| diagnosis.cause).collect()
    }

    #[test]
    fn causes_that_hide_others_come_first() {
        let mut evidence =
            evidence(&json!({"flags": [Cause::AtDialog, "shutdown_requested"], "is_hidden": true}));
        evidence.open_requests = vec![open_request()];
        evidence.stopped_processes = vec![StoppedProcess { pid: 7, name: "sh".into(), is_essential: true }];
        evidence.inboxes = vec![inbox("ann", Some("x")), inbox("team-lead", None)];
        evidence.full_disks = vec![FreeSpace { path: "/".into(), bytes: 0, files: None }];
        evidence.tmux = ServerState::Unresponsive { pid: None, stopped: false };
        evidence.member = Err(ErrorReport::new(ErrorKind::InvalidData, "x"));
        let expected = [
            Cause::DiskFull,
            Cause::ConfigDamaged,
            Cause::InboxDamaged,
            Cause::ProcessStopped,
            Cause::ShuttingDown,
            Cause::AwaitingPermission,
            Cause::AtDialog,
            Cause::TmuxUnresponsive,
            Cause::Hidden,
        ];
        assert_eq!(causes(&evidence), expected);
        evidence.daemon = DaemonProbe::NotRunning;
        assert_eq!(causes(&evidence)[1], Cause::NoDaemon);
    }

    #[test]
    fn missing_output_is_the_only_cause_in_a_turn() {
        let mut evidence = evidence(&json!({"activity": "active", "activity_since": 900_000}));
        evidence.tasks = Arc::new(vec![task(1, "bob", &[]), task(2, "ann", &["1"])]);
        assert_eq!(causes(&evidence), [Cause::Working]);
        evidence.no_output_after_ms = 100_000;
        assert_eq!(causes(&evidence), [Cause::NoOutput]);
        let next = |evidence: &MemberEvidence| json!(find_causes(evidence)[0])["next"].clone();
        assert_eq!(next(&evidence), json!(["teamctl capture ann", "teamctl interrupt ann"]));
        evidence.agent =
            Some(agent(&json!({"activity": "active", "activity_since": 900_000, "delivery": "native"})));
        assert_eq!(
            next(&evidence),
            json!(["teamctl capture ann"]),
            "only a program with turns is interrupted"
        );
        evidence.stopped_processes = vec![StoppedProcess { pid: 7, name: "sh".into(), is_essential: false }];
        assert_eq!(causes(&evidence), [Cause::NoOutput, Cause::ProcessStopped]);
        evidence.stopped_processes.clear();
        evidence.last_output = Some(900_001);
        assert_eq!(causes(&evidence), [Cause::Working]);
        evidence.last_output = None;
        evidence.agent =
            Some(agent(&json!({"activity": "active", "activity_since": 900_000, "backend": "iterm2"})));
        assert_eq!(causes(&evidence), [Cause::Working], "the output in iTerm2 is not logged");
    }

    #[test]
    fn assignment_of_a_blocked_task_counts_as_delivered() {
        let mut evidence = evidence(&json!({}));
        evidence.tasks = Arc::new(vec![task(1, "bob", &[]), task(2, "ann", &["1"])]);
        let assignment = json!({"type": "task_assignment", "taskId": "2", "subject": "x", "description": "", "assignedBy": "team-lead", "timestamp": ""});
        evidence.unread = vec![unread(assignment.to_string(), 1)];
        assert_eq!(causes(&evidence), [Cause::Blocked]);
        evidence.unread = vec![unread("x".into(), 1)];
        assert_eq!(causes(&evidence)[0], Cause::Undelivered);
        evidence.unread = vec![unread("x".into(), evidence.now)];
        evidence.tasks = Arc::new(vec![task(1, "", &[]), task(2, "ann", &["1"])]);
        assert_eq!(causes(&evidence), [Cause::BlockersUnowned], "a new message is still being delivered");
        tasks_mut(&mut evidence).push(task(3, "ann", &[]));
        assert_eq!(causes(&evidence), [Cause::Idle], "task 3 can start");
    }

    #[test]
    fn only_tasks_of_others_that_can_start_are_offered() {
        let mut evidence = evidence(&json!({}));
        evidence.tasks = Arc::new(vec![task(1, "bob", &[]), task(2, "bob", &["1"])]);
        let cause = json!(find_causes(&evidence)[0]);
        let expected = "ann has nothing to do: the one task that can start belongs to other members, who have not begun.";
        assert_eq!(
            (&cause["cause"], &cause["sentence"]),
            (&json!("tasks_owned_by_others"), &json!(expected))
        );
        tasks_mut(&mut evidence)[0].status = TaskStatus::InProgress;
        assert_eq!(causes(&evidence), [Cause::Idle], "task 2 could not start with another owner");
    }

    #[test]
    fn blockers_are_followed_to_the_last_one() {
        let mut evidence = evidence(&json!({}));
        evidence.tasks = Arc::new(vec![task(4, "bob", &[]), task(5, "", &["4"]), task(6, "ann", &["5"])]);
        let blockers = |evidence: &MemberEvidence| -> Vec<_> {
            task_waits(&evidence.tasks, &evidence.name)[0]
                .blockers
                .iter()
                .map(|task| task.id.number())
                .collect()
        };
        assert_eq!(
            (causes(&evidence), blockers(&evidence)),
            (vec![Cause::Blocked], vec![4]),
            "task 5 has no owner and waits for task 4"
        );
        tasks_mut(&mut evidence)[0] = task(4, "", &[]);
        assert_eq!((causes(&evidence), blockers(&evidence)), (vec![Cause::BlockersUnowned], vec![4]));
        tasks_mut(&mut evidence).insert(0, task(3, "bob", &[]));
        tasks_mut(&mut evidence)[2] = task(5, "", &["3", "4"]);
        assert_eq!(
            (causes(&evidence), blockers(&evidence)),
            (vec![Cause::BlockersUnowned], vec![3, 4]),
            "task 4 has no owner"
        );
        evidence.tasks = Arc::new(vec![task(4, "bob", &["5"]), task(5, "", &["4"]), task(6, "ann", &["5"])]);
        assert_eq!(
            (causes(&evidence), blockers(&evidence)),
            (vec![Cause::TaskCycle], vec![]),
            "tasks 4 and 5 wait for each other"
        );
    }

    #[test]
    fn cause_names_the_cycle_that_the_member_waits_for() {
        let mut evidence = evidence(&json!({}));
        evidence.tasks = Arc::new(vec![
            task(1, "bob", &["2"]),
            task(2, "bob", &["1"]),
            task(5, "ann", &["6"]),
            task(6, "", &["5"]),
        ]);
        let sentence = json!(find_causes(&evidence)[0])["sentence"].clone();
        assert_eq!(sentence, "ann has nothing that it can start: tasks 5, 6 wait for each other.");
    }

    #[test]
    fn pause_after_failed_turns_names_the_reason_and_what_ends_it() {
        let mut evidence = evidence(
            &json!({"turn_pause": {"cause": "failed_turns", "failed_turns": 3, "reason": "exit 1: limit", "until": 1_090_000}}),
        );
        evidence.unread = vec![unread("x".into(), 1)];
        assert_eq!(causes(&evidence), [Cause::TurnsFailed], "the message is not reported as undelivered");
        let cause = json!(find_causes(&evidence)[0]);
        assert_eq!(cause["sentence"], "The last 3 turns of ann have failed.");
        let expected = [
            "exit 1: limit",
            "the next turn starts in 90s, or at a message of the lead or a person",
            "1 message unread until a turn succeeds",
        ];
        assert_eq!(cause["evidence"], json!(expected));
    }

    #[test]
    fn usage_limit_is_named_with_its_end_until_the_turns_stop() {
        let limit = json!({"until": 1_080_000, "local_time": "15:00", "tries": 1});
        let pause = |until: Option<u64>| {
            json!({"turn_pause": {"cause": "failed_turns", "failed_turns": 1, "reason": "exit 1: wait",
                "until": until, "limit": limit}})
        };
        let cause = json!(find_causes(&evidence(&pause(Some(1_090_000))))[0]);
        assert_eq!(cause["sentence"], "The program of ann is limited until 15:00.");
        assert_eq!(cause["evidence"][0], "exit 1: wait");
        assert_eq!(causes(&evidence(&pause(None))), [Cause::TurnsFailed]);
    }

    #[test]
    fn member_of_another_host_is_not_called_unsupervised() {
        let mut evidence = evidence(&json!({}));
        (evidence.agent, evidence.other_host) = (None, Some("devbox".to_owned()));
        let cause = json!(find_causes(&evidence)[0]);
        assert_eq!(cause["sentence"], "ann runs on devbox.");
        assert_eq!(cause["next"], json!(["teamctl why ann"]));
        assert!(!find_causes(&evidence)[0].is_blocking());
    }

    #[test]
    fn idle_member_is_reported_with_its_failed_task() {
        let mut evidence = evidence(&json!({}));
        let failed = Task { status: TaskStatus::InProgress, ..task(2, "ann", &[]) };
        let metadata = serde_json::from_value(json!({"failure": "interrupted"})).unwrap();
        tasks_mut(&mut evidence).push(Task { metadata: Some(metadata), ..failed });
        let cause = json!(find_causes(&evidence)[0]);
        assert_eq!(cause["cause"], "idle");
        assert_eq!(cause["evidence"][1], "task 2 (x), which is ann's, has failed (interrupted)");
        let commands = ["teamctl send ann TEXT", "teamctl task release 2", "teamctl events --since 10m"];
        assert_eq!(cause["next"], json!(commands));
    }

    #[test]
    fn normal_turn_ends_a_streak_of_failed_turns() {
        let (team, name) = (TeamName::parse("t").unwrap(), MemberName::new_unchecked("ann"));
        let idle = |reason| Event::for_member(&team, &name, EventKind::MemberIdle { reason: Some(reason) });
        let mut evidence = evidence(&json!({}));
        let failed = || vec![idle(IdleReason::Available), idle(IdleReason::Failed), idle(IdleReason::Failed)];
        evidence.history = MemberHistory::from_events(failed());
        assert_eq!(causes(&evidence), [Cause::TurnsFailed]);
        assert_eq!(json!(find_causes(&evidence)[0])["sentence"], "The last 2 turns of ann have failed.");
        evidence.history = MemberHistory::from_events([failed(), vec![idle(IdleReason::Available)]].concat());
        assert_eq!(causes(&evidence), [Cause::Idle]);
    }
}

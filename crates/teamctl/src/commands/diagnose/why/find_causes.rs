//! From the evidence to the causes, the strongest first: what makes the others unknowable or pointless to mend, then
//! what only a person mends, then what ends by itself. Pure.

use super::cause::Cause;
use super::evidence::{DaemonProbe, Evidence, InboxState, OpenRequestEvidence};
use super::system_probe::ServerState;
use super::task_waits::{failed_task, task_waits, tasks_of_others};
use protocol::control::{Activity, MemberFlag, MemberStatus};
use protocol::delivery::{Delivery, DeliveryPoint};
use protocol::event::EventKind;
use protocol::member_request::MemberRequestKind;
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::payload::{IdleReason, Payload};
use protocol::task::find_task;
use protocol::timestamp::parse_iso8601;
use store::LockState;

/// Mail that is younger may be on its way, ms.
const IDLE_DELIVERY_MS: u64 = 2_000;
/// So long a program that looks in the middle of its turn may be in a step of it, ms.
const MID_TURN_DELIVERY_MS: u64 = 60_000;
/// A lock is held for some milliseconds: that long is long, ms.
const LONG_LOCK_MS: u64 = 1_000;

/// Never empty.
pub(super) fn find_causes(e: &Evidence) -> Vec<Cause> {
    let mut causes: Vec<Cause> = e.full.iter().cloned().map(Cause::DiskFull).collect();
    causes.extend(daemon_cause(e));
    causes.extend(e.member.as_ref().err().map(|fault| Cause::ConfigDamaged(fault.message.clone())));
    causes.extend(e.inboxes.iter().flat_map(|state| inbox_causes(e, state)));
    match (&e.agent, e.is_lead()) {
        (_, true) => causes.push(Cause::Lead),
        (Some(agent), false) => causes_if_running(e, agent, &mut causes),
        (None, false) => causes_if_not_running(e, &mut causes),
    }
    causes
}

fn daemon_cause(e: &Evidence) -> Option<Cause> {
    match &e.daemon {
        DaemonProbe::Running(_) => None,
        // Whoever brings it back starts teamd too.
        DaemonProbe::NotRunning if e.is_suspended() => None,
        DaemonProbe::NotRunning => Some(Cause::NoDaemon),
        DaemonProbe::Unresponsive(server) => Some(Cause::DaemonUnresponsive(server.clone())),
    }
}

fn inbox_causes(e: &Evidence, inbox: &InboxState) -> Vec<Cause> {
    let whose = || inbox.whose.clone();
    let lock = match &inbox.lock_state {
        LockState::Free => None,
        LockState::NotALock(path) => Some(Cause::InboxLockBlocked(whose(), path.clone())),
        LockState::Stale(held) => Some(Cause::InboxLockStale(whose(), held.clone())),
        LockState::Held(held) => {
            let long = e.now.saturating_sub(held.touched_at) >= LONG_LOCK_MS;
            long.then(|| Cause::InboxLocked(whose(), held.clone(), inbox.holder.clone()))
        }
    };
    let damage = inbox.damage.clone().map(|why| Cause::InboxDamaged(whose(), why));
    damage.into_iter().chain(lock).collect()
}

/// No agent of that name lives, as far as can be told.
fn causes_if_not_running(e: &Evidence, causes: &mut Vec<Cause>) {
    let listed = matches!(e.member, Ok(Some(_)));
    if !matches!(e.daemon, DaemonProbe::Running(_)) {
        if listed {
            return request_causes(e, None, causes);
        }
    } else if listed && e.past.is_none() {
        return causes.push(Cause::Unsupervised);
    }
    causes.push(end_cause(e));
}

/// As the daemon spells it.
const TMUX_GONE: &str = "tmux gone";

fn end_cause(e: &Evidence) -> Cause {
    let told =
        e.past.as_ref().map(|past| (past.description.clone(), past.ended_at)).or_else(|| e.chronicle.end());
    let (how, at) = told.unwrap_or_else(|| ("nobody has told how".to_owned(), 0));
    if let Some(again) = e.past.as_ref().and_then(|past| past.respawns_at) {
        return Cause::Restarting { at: again, how };
    }
    if let Some(why) = e.exhausted_budget.clone().filter(|_| e.is_suspended()) {
        return Cause::BudgetExhausted(why, how);
    }
    if e.is_suspended() && !how.contains(TMUX_GONE) {
        return Cause::Suspended(how);
    }
    if let Some(why) = e.chronicle.respawn_refusal() {
        return Cause::RespawnsExhausted(why);
    }
    match how.as_str() {
        how if how.contains(TMUX_GONE) => Cause::TmuxGone(at),
        how if how.contains("pane killed") => Cause::PaneClosed(at),
        how if how.starts_with("cannot start") || how.contains("no such program") => {
            Cause::ProgramMissing { why: how.to_owned(), at }
        }
        _ => Cause::Ended { how, at },
    }
}

fn causes_if_running(e: &Evidence, agent: &MemberStatus, causes: &mut Vec<Cause>) {
    match agent.lifecycle.as_str() {
        "starting" => return causes.push(Cause::Starting),
        "disconnected" => causes.push(Cause::ShimDisconnected),
        _ => {}
    }
    causes.extend(stopped_process(e));
    if agent.flags.contains(&MemberFlag::ShutdownRequested) {
        causes.push(Cause::ShuttingDown(e.chronicle.find_last(shutdown_request_id)));
    } else if agent.lifecycle == "stopping" {
        causes.push(Cause::Stopping);
    }
    request_causes(e, Some(agent), causes);
    if let ServerState::Unresponsive { .. } = e.tmux {
        causes.push(Cause::TmuxUnresponsive(e.tmux.clone()));
    }
    work_causes(e, agent, causes);
}

fn shutdown_request_id(what: &EventKind) -> Option<String> {
    match what {
        EventKind::ShutdownRequested { request_id: request } => Some(request.clone()),
        _ => None,
    }
}

fn stopped_process(e: &Evidence) -> Option<Cause> {
    let halted = e.stopped.iter().find(|halted| halted.is_essential)?;
    Some(Cause::ProcessStopped { pid: halted.pid, name: halted.name.clone() })
}

/// What it waits for a person or the lead for.
fn request_causes(e: &Evidence, agent: Option<&MemberStatus>, causes: &mut Vec<Cause>) {
    let flag = |flag: MemberFlag| agent.is_some_and(|agent| agent.flags.contains(&flag));
    let ask = |kind: MemberRequestKind| e.asks.iter().find(|ask| ask.kind == kind).cloned();
    let asks = |kind, of: fn(Option<OpenRequestEvidence>) -> Cause, flagged: bool| {
        let ask = ask(kind);
        (ask.is_some() || flagged).then(|| of(ask))
    };
    causes.extend(asks(
        MemberRequestKind::Permission,
        Cause::AwaitingPermission,
        flag(MemberFlag::AwaitingPermission),
    ));
    causes.extend(asks(
        MemberRequestKind::Plan,
        Cause::AwaitingPlanApproval,
        flag(MemberFlag::AwaitingPlanApproval),
    ));
    if flag(MemberFlag::AtDialog) {
        causes.push(Cause::AtDialog(e.chronicle.find_last(dialog_text).map(|(text, _)| text)));
    }
}

fn dialog_text(what: &EventKind) -> Option<String> {
    match what {
        EventKind::MemberAtDialog { text } => Some(text.clone()),
        _ => None,
    }
}

/// Nobody is asked for anything: its turns, its mail, its tasks.
fn work_causes(e: &Evidence, agent: &MemberStatus, causes: &mut Vec<Cause>) {
    let idle = agent.activity == Activity::Idle;
    // Of an agent that looks by itself nobody may know whether it is in a turn.
    let free = idle || agent.delivery == Delivery::Pull;
    let silent_hooks = has_no_hook_events(agent);
    if silent_hooks {
        causes.push(Cause::NoHookEvents);
    } else if idle {
        causes.extend(last_turn_cause(e));
    }
    causes.extend(undelivered_messages(e, agent));
    let keeps = causes.iter().any(Cause::blocks_member);
    if free {
        causes.extend(task_cause(e));
    }
    if idle && e.asks.is_empty() && is_planning(e, agent) {
        causes.push(Cause::PlanMode);
    }
    if !free && !silent_hooks {
        causes.extend(no_output_cause(e, agent));
        causes.extend(stopped_descendant(e));
    }
    if free && !keeps {
        let others = tasks_of_others(&e.tasks, &e.name);
        causes.extend((!others.is_empty()).then_some(Cause::TasksOwnedByOthers(others)));
    }
    causes.extend(agent.is_hidden.then_some(Cause::Hidden));
    if !causes.iter().any(Cause::blocks_member) {
        causes.push(if idle { Cause::Idle } else { Cause::Working });
    }
}

/// With the approval of its plan it gets another mode.
fn is_planning(e: &Evidence, agent: &MemberStatus) -> bool {
    let begins = || {
        e.member
            .as_ref()
            .is_ok_and(|member| member.as_ref().is_some_and(|m| m.plan_mode_required == Some(true)))
    };
    agent.mode.as_deref().map_or_else(begins, |mode| mode == "plan")
}

/// A program with hooks, none of which has said anything: mail and tasks wait for that.
fn has_no_hook_events(agent: &MemberStatus) -> bool {
    agent.delivery == Delivery::Hook
        && agent.activity == Activity::Active
        && agent.delivery_point == Some(DeliveryPoint::OnPull)
}

fn last_turn_cause(e: &Evidence) -> Option<Cause> {
    let task = failed_task(&e.tasks, &e.name).cloned();
    if let Some((count, since)) = e.chronicle.turns_in_row(IdleReason::Failed) {
        return Some(Cause::TurnsFailed { count, since, task });
    }
    let (_, at) = e.chronicle.turns_in_row(IdleReason::Interrupted)?;
    Some(Cause::Interrupted { at, task })
}

/// What an idle one has not read, or one that looks by itself. In a turn it gets its mail at the end, or in its middle.
fn undelivered_messages(e: &Evidence, agent: &MemberStatus) -> Option<Cause> {
    let waits = match (agent.activity, agent.delivery_point) {
        (Activity::Idle, _) | (_, Some(DeliveryPoint::OnPull)) => IDLE_DELIVERY_MS,
        (_, Some(DeliveryPoint::MidTurn)) => MID_TURN_DELIVERY_MS,
        _ => return None,
    };
    let old = |message: &&Message| {
        parse_iso8601(&message.timestamp).is_none_or(|at| e.now.saturating_sub(at) >= waits)
    };
    let due = |message: &&Message| old(message) && !is_assignment_of_blocked_task(e, message);
    let unread: Vec<Message> = e.unread.iter().filter(due).cloned().collect();
    (!unread.is_empty()).then_some(Cause::Undelivered(unread))
}

/// The word of a task that it can't start is nothing to be fed.
fn is_assignment_of_blocked_task(e: &Evidence, message: &Message) -> bool {
    let Some(Payload::TaskAssignment(given)) = Payload::parse(&message.text) else { return false };
    let task = find_task(&e.tasks, given.task_id);
    task.is_some_and(|task| !task.open_blockers(&e.tasks).is_empty())
}

fn task_cause(e: &Evidence) -> Option<Cause> {
    let waits = task_waits(&e.tasks, &e.name);
    let lives = |owner: &AgentName| e.members.contains(owner);
    match waits.iter().all(|wait| wait.has_unowned_blocker(lives)) {
        _ if waits.is_empty() => None,
        true => Some(Cause::BlockersUnowned(waits)),
        false => Some(Cause::Blocked(waits)),
    }
}

/// What its program has started, and may wait for.
fn stopped_descendant(e: &Evidence) -> Option<Cause> {
    let halted = e.stopped.iter().find(|halted| !halted.is_essential)?;
    Some(Cause::ProcessStopped { pid: halted.pid, name: halted.name.clone() })
}

fn no_output_cause(e: &Evidence, agent: &MemberStatus) -> Option<Cause> {
    let since = e.last_output.unwrap_or(0).max(agent.activity_since);
    (e.now.saturating_sub(since) >= e.no_output_after_ms).then_some(Cause::NoOutput(since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::diagnose::why::member_history::MemberHistory;
    use crate::commands::diagnose::why::system_probe::{FreeSpace, StoppedProcess};
    use protocol::error::{ErrorKind, ErrorReport};
    use protocol::event::Event;
    use protocol::name::TeamName;
    use protocol::task::Task;
    use serde_json::{Value, json};

    fn agent(more: &Value) -> MemberStatus {
        let mut agent = json!({"name": "ann", "agent_id": "ann@t", "lifecycle": "running", "activity": "idle", "activity_since": 1,
            "task": null, "delivery": "turn", "delivery_point": "turn-end", "pane": "%1", "pid": 7, "backend": "tmux", "color": ""});
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(agent).unwrap()
    }

    fn evidence(more: &Value) -> Evidence {
        let daemon = json!({"pid": 1, "version": "", "root": "/", "tmux": null, "watch_mode": "events"});
        Evidence {
            now: 1_000_000,
            team: TeamName::parse("t").unwrap(),
            name: AgentName::new_unchecked("ann"),
            asker: AgentName::lead(),
            members: vec![AgentName::new_unchecked("ann"), AgentName::new_unchecked("bob")],
            former: Vec::new(),
            daemon: DaemonProbe::Running(serde_json::from_value(daemon).unwrap()),
            agent: Some(agent(more)),
            past: None,
            exhausted_budget: None,
            member: Ok(None),
            unread: Vec::new(),
            inboxes: vec![inbox_of("ann", None), inbox_of("team-lead", None)],
            asks: Vec::new(),
            tasks: Vec::new(),
            chronicle: MemberHistory::default(),
            stopped: Vec::new(),
            tmux: ServerState::Responsive,
            full: Vec::new(),
            last_output: None,
            no_output_after_ms: 300_000,
            failure: None,
        }
    }

    fn task(id: u32, owner: &str, blocked_by: &[&str]) -> Task {
        let task = json!({"id": id.to_string(), "subject": "x", "status": "pending", "owner": owner, "blockedBy": blocked_by});
        Task::parse(&task.to_string()).unwrap()
    }

    fn inbox_of(whose: &str, damage: Option<&str>) -> InboxState {
        let whose = AgentName::new_unchecked(whose);
        InboxState {
            whose,
            entries: Vec::new(),
            damage: damage.map(str::to_owned),
            lock_state: LockState::Free,
            holder: None,
        }
    }

    fn ask() -> OpenRequestEvidence {
        let (id, about) = ("p".to_owned(), "asks".to_owned());
        OpenRequestEvidence {
            id,
            kind: MemberRequestKind::Permission,
            about,
            since: 0,
            is_left_to_person: false,
            ends: None,
        }
    }

    fn words(e: &Evidence) -> Vec<&'static str> {
        find_causes(e).iter().map(Cause::code).collect()
    }

    #[test]
    fn what_makes_the_others_pointless_to_mend_comes_first() {
        let mut e = evidence(&json!({"flags": ["at_dialog", "shutdown_requested"], "is_hidden": true}));
        e.asks = vec![ask()];
        e.stopped = vec![StoppedProcess { pid: 7, name: "sh".into(), is_essential: true }];
        e.inboxes = vec![inbox_of("ann", Some("x")), inbox_of("team-lead", None)];
        e.full = vec![FreeSpace { path: "/".into(), bytes: 0, files: None }];
        e.tmux = ServerState::Unresponsive { pid: None, stopped: false };
        e.member = Err(ErrorReport::new(ErrorKind::InvalidData, "x"));
        let all = [
            "disk_full",
            "config_damaged",
            "inbox_damaged",
            "process_stopped",
            "shutting_down",
            "awaiting_permission",
            "at_dialog",
            "tmux_unresponsive",
            "hidden",
        ];
        assert_eq!(words(&e), all);
        e.daemon = DaemonProbe::NotRunning;
        assert_eq!(words(&e)[1], "no_daemon");
    }

    #[test]
    fn in_a_turn_nothing_but_silence_is_worth_a_word() {
        let mut e = evidence(&json!({"activity": "active", "activity_since": 900_000}));
        e.tasks = vec![task(1, "bob", &[]), task(2, "ann", &["1"])];
        assert_eq!(words(&e), ["working"]);
        e.no_output_after_ms = 100_000;
        assert_eq!(words(&e), ["no_output"]);
        e.stopped = vec![StoppedProcess { pid: 7, name: "sh".into(), is_essential: false }];
        assert_eq!(words(&e), ["no_output", "process_stopped"]);
        e.stopped.clear();
        e.last_output = Some(900_001);
        assert_eq!(words(&e), ["working"]);
    }

    #[test]
    fn tasks_keep_who_is_idle_and_the_word_of_one_that_waits_is_no_mail() {
        let mut e = evidence(&json!({}));
        e.tasks = vec![task(1, "bob", &[]), task(2, "ann", &["1"])];
        let given = json!({"type": "task_assignment", "taskId": "2", "subject": "x", "description": "", "assignedBy": "team-lead", "timestamp": ""});
        e.unread = vec![Message::new(&AgentName::lead(), given.to_string(), 1)];
        assert_eq!(words(&e), ["blocked"]);
        e.unread = vec![Message::new(&AgentName::lead(), "x".into(), 1)];
        assert_eq!(words(&e)[0], "undelivered");
        e.unread = vec![Message::new(&AgentName::lead(), "x".into(), e.now)];
        e.tasks = vec![task(1, "", &[]), task(2, "ann", &["1"])];
        assert_eq!(words(&e), ["blockers_unowned"], "mail that came just now is on its way");
        e.tasks.push(task(3, "ann", &[]));
        assert_eq!(words(&e), ["idle"], "there is one that it can start");
    }

    #[test]
    fn a_chain_is_followed_to_what_stands_in_the_way() {
        let mut e = evidence(&json!({}));
        e.tasks = vec![task(4, "bob", &[]), task(5, "", &["4"]), task(6, "ann", &["5"])];
        let roots = |e: &Evidence| match &find_causes(e)[0] {
            Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => {
                waits[0].blockers.iter().map(|task| task.id.number()).collect()
            }
            _ => Vec::new(),
        };
        assert_eq!((words(&e), roots(&e)), (vec!["blocked"], vec![4]), "5 is nobody's, and 4 is in its way");
        e.tasks[0] = task(4, "", &[]);
        assert_eq!((words(&e), roots(&e)), (vec!["blockers_unowned"], vec![4]));
        e.tasks.insert(0, task(3, "bob", &[]));
        e.tasks[2] = task(5, "", &["3", "4"]);
        assert_eq!(
            (words(&e), roots(&e)),
            (vec!["blockers_unowned"], vec![3, 4]),
            "bob's alone does not help"
        );
        e.tasks = vec![task(4, "bob", &["5"]), task(5, "", &["4"]), task(6, "ann", &["5"])];
        assert_eq!((words(&e), roots(&e)), (vec!["blockers_unowned"], vec![5]), "in a circle");
    }

    #[test]
    fn turns_in_a_row_count_and_a_good_one_ends_the_row() {
        let (team, name) = (TeamName::parse("t").unwrap(), AgentName::new_unchecked("ann"));
        let idle = |reason| Event::for_member(&team, &name, EventKind::MemberIdle { reason: Some(reason) });
        let mut e = evidence(&json!({}));
        let failed = || vec![idle(IdleReason::Available), idle(IdleReason::Failed), idle(IdleReason::Failed)];
        e.chronicle = MemberHistory::from_events(failed());
        assert!(matches!(find_causes(&e)[0], Cause::TurnsFailed { count: 2, .. }), "{:?}", find_causes(&e));
        e.chronicle = MemberHistory::from_events([failed(), vec![idle(IdleReason::Available)]].concat());
        assert_eq!(words(&e), ["idle"]);
    }
}

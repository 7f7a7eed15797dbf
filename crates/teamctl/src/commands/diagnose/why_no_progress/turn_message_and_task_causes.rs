//! Causes in the work of a running agent: its turns, its messages and its tasks.

use super::agent_starting_ending_or_stopped_causes::stopped_descendant_cause;
use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::{activity_line, count_noun, task_label, with_time};
use super::member_evidence::{MemberEvidence, UnreadMessage};
use super::suggested_next_commands::{assign_task, look_at_output, release_and_logs, resolve_blocker};
use super::task_waits_and_unfinished_tasks::{
    TaskWait, failed_task, is_unowned, task_waits, tasks_of_others,
};
use client::short_duration::short_duration;
use protocol::control_socket::{
    Activity, Backend, ExchangePause, FailedTurnsPause, MemberFlag, MemberStatus, NoContactPause, TurnPause,
};
use protocol::delivery_kind::{Delivery, DeliveryPoint};
use protocol::inbox_message_payload::IdleReason;
use protocol::single_line::single_line;
use protocol::task::{Task, TaskStatus, WaitCycle, find_task, wait_cycles};
use protocol::team_and_member_names::MemberName;

/// How long a message to an idle member may stay unread, in ms, before `why` reports it as
/// undelivered.
const IDLE_DELIVERY_MS: u64 = 2_000;
/// How long a message may stay unread, in ms, before `why` reports it as undelivered. This limit is
/// for programs that accept messages during a turn. They do so only between two steps of the turn,
/// and one step may take this long.
const MID_TURN_DELIVERY_MS: u64 = 60_000;

/// Adds causes from the member's messages, tasks and turns to the list `causes`. If no cause in the
/// list keeps the member from working, also adds the cause `Working` or `Idle`.
pub(super) fn add_work_causes(evidence: &MemberEvidence, agent: &MemberStatus, causes: &mut Vec<Diagnosis>) {
    let is_idle = agent.activity == Activity::Idle;
    // If a program asks for its messages itself, it may be unknown whether it is in a turn.
    let is_free = is_idle || agent.delivery == Delivery::Pull;
    let hooks = no_hook_events_cause(evidence, agent);
    let hooks_work = hooks.is_none();
    causes.extend(hooks);
    if is_idle && hooks_work {
        causes.extend(last_turn_cause(evidence, agent));
    }
    causes.extend(undelivered_cause(evidence, agent));
    let was_stuck = is_stuck(causes);
    if is_free {
        causes.extend(blocked_tasks_cause(evidence));
    }
    if is_idle && evidence.open_requests.is_empty() && is_planning(evidence, agent) {
        causes.push(plan_mode_cause(evidence));
    }
    if !is_free && hooks_work {
        causes.extend(no_output_cause(evidence, agent));
        causes.extend(stopped_descendant_cause(evidence));
    }
    if is_free && !was_stuck {
        causes.extend(others_tasks_cause(evidence));
    }
    if agent.is_hidden {
        causes.push(hidden_cause(evidence, agent));
    }
    if !is_stuck(causes) {
        causes.push(if is_idle { idle_cause(evidence) } else { working_cause(evidence, agent) });
    }
}

fn is_stuck(causes: &[Diagnosis]) -> bool {
    causes.iter().any(|diagnosis| diagnosis.is_blocking())
}

/// Returns a cause if no hook of the member's program has sent a report yet. The daemon learns from
/// these reports when a turn ends. Before the first report, the daemon delivers neither messages
/// nor tasks to the program.
fn no_hook_events_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Option<Diagnosis> {
    let is_silent = agent.delivery == Delivery::Hook
        && agent.activity == Activity::Active
        && agent.delivery_point == Some(DeliveryPoint::OnPull);
    let sentence = format!(
        "The program of {} runs, and none of its hooks has reported yet: messages and tasks wait for the first report.",
        evidence.name
    );
    let diagnosis = || Diagnosis::new(Cause::NoHookEvents, sentence);
    is_silent
        .then(|| diagnosis().with_evidence(activity_line(evidence)).with_next([look_at_output(evidence)]))
}

/// How the last turn ended, unless it ended normally.
fn last_turn_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Option<Diagnosis> {
    match &agent.turn_pause {
        Some(TurnPause::FailedTurns(pause)) => return Some(failed_turns_pause_cause(evidence, pause)),
        Some(TurnPause::Exchange(pause)) => return Some(exchange_cause(evidence, pause)),
        Some(TurnPause::NoContact(pause)) => return Some(no_contact_cause(evidence, pause)),
        None => {}
    }
    let (name, task) = (&evidence.name, failed_task(&evidence.tasks, &evidence.name));
    let label = task.map(task_label);
    let diagnosis = if let Some(turns) = evidence.history.count_turns_ended_by(IdleReason::Failed) {
        let sentence = failed_turns_sentence(name, turns.count);
        let first = with_time("the first of them ended", turns.since, evidence);
        Diagnosis::new(Cause::TurnsFailed, sentence).with_evidence([
            evidence.turn_failure.clone(),
            label,
            Some(first),
        ])
    } else {
        let turns = evidence.history.count_turns_ended_by(IdleReason::Interrupted)?;
        Diagnosis::new(Cause::Interrupted, format!("The last turn of {name} was interrupted."))
            .with_evidence([Some(with_time("ended", turns.since, evidence)), label])
    };
    Some(diagnosis.with_next(release_and_logs(task, evidence)))
}

fn failed_turns_sentence(name: &MemberName, count: usize) -> String {
    match count {
        1 => format!("The last turn of {name} has failed."),
        count => format!("The last {count} turns of {name} have failed."),
    }
}

/// The exchange with another member that is paused.
fn exchange_cause(evidence: &MemberEvidence, pause: &ExchangePause) -> Diagnosis {
    let (name, peer) = (&evidence.name, single_line(pause.with.as_str()));
    let period = short_duration(pause.within_ms);
    let sentence = format!("{name} answered {peer} in {} turns within {period}.", pause.turns);
    let remaining = short_duration(pause.until.saturating_sub(evidence.now));
    let wait_line =
        format!("more messages from {peer} wait {remaining}, or until the lead or a person writes to {name}");
    let limit =
        "the limits are exchange_turns_per_minute and exchange_turns_per_hour of the policy".to_owned();
    Diagnosis::new(Cause::ExchangePaused, sentence)
        .with_evidence([wait_line, limit])
        .with_next([look_at_output(evidence), send_command(evidence)])
}

/// The lease that has ended without contact with the home of the team.
fn no_contact_cause(evidence: &MemberEvidence, pause: &NoContactPause) -> Diagnosis {
    let sentence = format!("{} begins no turn without contact with the home of its team.", evidence.name);
    let contact = format!("no contact for {}", short_duration(evidence.now.saturating_sub(pause.since)));
    let next = "its turns go on when the home connects; the lease is in config.toml".to_owned();
    Diagnosis::new(Cause::NoContact, sentence)
        .with_evidence([contact, next])
        .with_next([look_at_output(evidence)])
}

/// The failed turns after which the member pauses.
fn failed_turns_pause_cause(evidence: &MemberEvidence, pause: &FailedTurnsPause) -> Diagnosis {
    let name = &evidence.name;
    let (cause, sentence) = match pause.limit.as_ref().filter(|_| pause.until.is_some()) {
        Some(limit) => {
            let time = single_line(&limit.local_time);
            (Cause::UsageLimit, format!("The program of {name} is limited until {time}."))
        }
        None => (Cause::TurnsFailed, failed_turns_sentence(name, pause.failed_turns as usize)),
    };
    let next_turn = match pause.until {
        Some(next_turn_at) => {
            let time = short_duration(next_turn_at.saturating_sub(evidence.now));
            format!("the next turn starts in {time}, or at a message of the lead or a person")
        }
        None => "no further turn starts by itself: it waits for a message of the lead or a person".to_owned(),
    };
    let unread = (!evidence.unread.is_empty())
        .then(|| format!("{} unread until a turn succeeds", count_noun(evidence.unread.len(), "message")));
    let task = failed_task(&evidence.tasks, name);
    let commands = release_and_logs(task, evidence).into_iter().chain([send_command(evidence)]);
    Diagnosis::new(cause, sentence)
        .with_evidence([Some(pause.reason.clone()), task.map(task_label), Some(next_turn), unread])
        .with_next(commands)
}

/// Whether a message stays unread until a pause of the member ends.
fn waits_for_pause(agent: &MemberStatus, message: &UnreadMessage) -> bool {
    match &agent.turn_pause {
        None => false,
        Some(TurnPause::FailedTurns(_) | TurnPause::NoContact(_)) => true,
        Some(TurnPause::Exchange(pause)) => MemberName::new_unchecked(&message.from) == pause.with,
    }
}

/// Messages that are unread for longer than their delivery usually takes.
fn undelivered_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Option<Diagnosis> {
    let usual_ms = match (agent.activity, agent.delivery_point) {
        (Activity::Idle, _) | (_, Some(DeliveryPoint::OnPull)) => IDLE_DELIVERY_MS,
        (_, Some(DeliveryPoint::MidTurn)) => MID_TURN_DELIVERY_MS,
        // The message is delivered at the end of the turn.
        _ => return None,
    };
    let is_old = |message: &UnreadMessage| {
        message.sent_at.is_none_or(|sent_at| evidence.now.saturating_sub(sent_at) >= usual_ms)
    };
    let is_due = |message: &&UnreadMessage| {
        is_old(message)
            && !is_assignment_of_blocked_task(evidence, message)
            && !waits_for_pause(agent, message)
    };
    let overdue: Vec<&UnreadMessage> = evidence.unread.iter().filter(is_due).collect();
    let oldest = overdue.first()?;
    let sent_at = oldest.sent_at.unwrap_or(0);
    let delivery = match agent.delivery {
        Delivery::Pull => "its delivery is pull: its program has to read its inbox itself".to_owned(),
        delivery => format!("its delivery is {}; {}", delivery.as_str(), agent.activity_reason),
    };
    let unread = count_noun(overdue.len(), "message");
    let sentence = format!("{} has {unread} unread, which teamd has not delivered.", evidence.name);
    let oldest = with_time(&format!("the oldest is from {},", oldest.from), sent_at, evidence);
    Some(
        Diagnosis::new(Cause::Undelivered, sentence)
            .with_evidence([oldest, delivery])
            .with_next([evidence.command("inbox", &["--unread"])]),
    )
}

/// The assignment of a task is delivered when the task can start.
fn is_assignment_of_blocked_task(evidence: &MemberEvidence, message: &UnreadMessage) -> bool {
    let task = message.assigned_task.and_then(|id| find_task(&evidence.tasks, id));
    task.is_some_and(|task| !task.open_blockers(&evidence.tasks).is_empty())
}

fn blocked_tasks_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let waits = task_waits(&evidence.tasks, &evidence.name);
    let ids: Vec<String> = waits.iter().map(|wait| wait.task.to_string()).collect();
    let waiting_tasks = match ids.as_slice() {
        [] => return None,
        [id] => format!("task {id} waits"),
        _ => format!("tasks {} wait", ids.join(", ")),
    };
    let cycles = wait_cycles(&evidence.tasks);
    let is_awaited = |cycle: &&WaitCycle| waits.iter().any(|wait| wait.waits_for(cycle));
    if let Some(cycle) = cycles.iter().find(is_awaited)
        && waits.iter().all(|wait| wait.blockers.is_empty())
    {
        let sentence = format!("{} has nothing that it can start: {cycle}.", evidence.name);
        let command = evidence.commands.command_to_cut(cycle);
        return Some(Diagnosis::new(Cause::TaskCycle, sentence).with_next([command]));
    }
    let (cause, awaited) = match waits.iter().all(|wait| wait.has_unowned_blocker(&evidence.members)) {
        true => (Cause::BlockersUnowned, "tasks that no member works on"),
        false => (Cause::Blocked, "others"),
    };
    let sentence = format!("{} has nothing that it can start: {waiting_tasks} for {awaited}.", evidence.name);
    Some(
        Diagnosis::new(cause, sentence)
            .with_evidence(waits.iter().flat_map(|wait| blocker_lines(wait, evidence)))
            .with_next([resolve_blocker(&waits, evidence)]),
    )
}

fn blocker_lines(wait: &TaskWait, evidence: &MemberEvidence) -> impl Iterator<Item = String> {
    wait.blockers
        .iter()
        .map(|blocker| format!("task {} waits for {}", wait.task, task_text(blocker, evidence)))
}

/// The task with its owner and progress.
fn task_text(task: &Task, evidence: &MemberEvidence) -> String {
    let progress = match (&task.status, task.failure()) {
        (_, Some(failure)) => format!(", has failed ({failure})"),
        (TaskStatus::InProgress, None) => ", in progress".to_owned(),
        _ => ", not begun".to_owned(),
    };
    let owner = match &task.owner {
        None => "which has no owner".to_owned(),
        Some(owner) if is_unowned(task, &evidence.members) => format!("which {owner} left"),
        Some(owner) => format!("which is {owner}'s"),
    };
    format!("task {} ({}), {owner}{progress}", task.id, task.subject)
}

/// Whether the member is in plan mode. It leaves plan mode when its plan is approved.
fn is_planning(evidence: &MemberEvidence, agent: &MemberStatus) -> bool {
    let starts_planning = || {
        let member = evidence.member.as_ref().ok().and_then(Option::as_ref);
        member.is_some_and(|member| member.plan_mode_required == Some(true))
    };
    agent.mode.as_deref().map_or_else(starts_planning, |mode| mode == "plan")
}

fn plan_mode_cause(evidence: &MemberEvidence) -> Diagnosis {
    let sentence =
        format!("{} is in plan mode: it changes nothing until its plan is approved.", evidence.name);
    // A message starts a turn, at whose end the member submits its plan.
    Diagnosis::new(Cause::PlanMode, sentence)
        .with_evidence(activity_line(evidence))
        .with_next([send_command(evidence)])
}

fn no_output_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Option<Diagnosis> {
    let since = evidence.last_output.unwrap_or(0).max(agent.activity_since);
    let silent_ms = evidence.now.saturating_sub(since);
    let sentence =
        format!("{} is in a turn, and has written nothing for {}.", evidence.name, short_duration(silent_ms));
    let diagnosis = || Diagnosis::new(Cause::NoOutput, sentence);
    // In iTerm2, the output is not logged.
    let has_log = agent.backend != Backend::Iterm2.as_str();
    let is_silent =
        has_log && silent_ms >= evidence.no_output_after_ms || agent.flags.contains(&MemberFlag::NoOutput);
    // The daemon can end a turn only if it has started the turn's program.
    let has_turns = matches!(agent.delivery, Delivery::Turn | Delivery::Acp);
    let commands = std::iter::once(look_at_output(evidence))
        .chain(has_turns.then(|| evidence.command("interrupt", &[])));
    is_silent.then(|| diagnosis().with_evidence(activity_line(evidence)).with_next(commands))
}

fn others_tasks_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let tasks = tasks_of_others(&evidence.tasks, &evidence.name);
    let first = tasks.first()?;
    let task_count_text = match tasks.len() {
        1 => "the one task that can start belongs".to_owned(),
        count => format!("all {count} tasks that can start belong"),
    };
    let sentence = format!(
        "{} has nothing to do: {task_count_text} to other members, who have not begun.",
        evidence.name
    );
    Some(
        Diagnosis::new(Cause::TasksOwnedByOthers, sentence)
            .with_evidence(tasks.iter().map(|task| task_label(task)))
            .with_next([assign_task(first, evidence)]),
    )
}

fn hidden_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Diagnosis {
    let sentence = format!("The pane of {} is hidden; its agent keeps working.", evidence.name);
    let pane = agent.pane.as_ref().map(|pane| format!("pane {pane}"));
    Diagnosis::new(Cause::Hidden, sentence).with_evidence(pane).with_next([evidence.command("show", &[])])
}

fn idle_cause(evidence: &MemberEvidence) -> Diagnosis {
    let sentence = format!("{} is idle and waits for a message or a task.", evidence.name);
    // The member's failed task is named here too. Other causes name it only if it failed in the
    // last turn or blocks another task of the member.
    let failed = failed_task(&evidence.tasks, &evidence.name);
    let commands = failed.map(|task| release_and_logs(Some(task), evidence)).into_iter().flatten();
    Diagnosis::new(Cause::Idle, sentence)
        .with_evidence([activity_line(evidence), failed.map(|task| task_text(task, evidence))])
        .with_next(std::iter::once(send_command(evidence)).chain(commands))
}

fn working_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Diagnosis {
    let sentence = match (&agent.task, agent.delivery) {
        (Some(task), _) => format!("{} works: {task}.", evidence.name),
        (None, Delivery::Pull) => format!("{} runs, and looks for mail by itself.", evidence.name),
        (None, _) => format!("{} is in a turn.", evidence.name),
    };
    Diagnosis::new(Cause::Working, sentence)
        .with_evidence(activity_line(evidence))
        .with_next([look_at_output(evidence)])
}

fn send_command(evidence: &MemberEvidence) -> String {
    format!("{} TEXT", evidence.command("send", &[]))
}

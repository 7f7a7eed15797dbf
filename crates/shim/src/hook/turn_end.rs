//! The turn-end hook. It reports the end of the turn, completes the turn's task, and delivers the
//! next messages. If there are none, the hook waits for messages.
//!
//! A message counts as delivered when it was written to standard output. But the program may ignore
//! the message, for example because it no longer waits for the hook. So the message is marked read
//! only at the end of the next turn, when the hook can see whether the program has used it. If the
//! program has not used it, a later hook delivers the message again.

use super::hook_owner::HookOwner;
use super::long_poll::{LongPoll, WaitEnd};
use super::report_event_to_daemon::{HookInvocation, open_agent_team_files};
use super::response::{continue_response, write_response};
use crate::stderr_messages;
use crate::turns::agent_team_files::AgentTeamFiles;
use crate::turns::prompt_for_hooks::NextPrompt;
use client::find_terminal_and_ancestors_of_caller::controlling_terminal;
use nix::time::{ClockId, clock_gettime};
use protocol::control_socket::{Call, HookEvent, HookReply, LongPollRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::InboxEntry;
use protocol::plan_mode_prompts::PLAN_PROMPT;
use std::time::{Duration, Instant};
use store::now;

/// The time until a task that was not confirmed is asked about again.
const CONFIRM_RETRY_DELAY: Duration = Duration::from_secs(3);

pub(super) fn handle_turn_end(invocation: &HookInvocation<'_>) -> Result<(), ErrorReport> {
    let started_at = Instant::now();
    let reply = report_turn_end(invocation, started_at)?;
    if !reply.delivers_by_hook && reply.delivered_ids.is_empty() {
        return Ok(());
    }
    let mut files = open_agent_team_files(invocation)?;
    if !reply.delivers_by_hook {
        mark_delivered_read(invocation, &mut files, &reply)?;
        // The hook has nothing to deliver here, but the daemon expects a long poll. The long poll
        // says that the hook writes no more team files. Only then may the daemon respawn an agent
        // whose plan was approved.
        long_poll(invocation, started_at)?.map(|mut poll| poll.run());
        return Ok(());
    }
    settle_previous_turn(invocation, &mut files, &reply)
        .unwrap_or_else(|error| stderr_messages::print_warning(&error.to_string()));
    let Some(mut poll) = long_poll(invocation, started_at)? else { return Ok(()) };
    let mut holds_turns = reply.holds_turns;
    loop {
        let prompt = match invocation.owner {
            // The daemon ends the long poll once turns may begin again.
            _ if std::mem::take(&mut holds_turns) => Ok(None),
            HookOwner::Teammate => files.next_prompt(PLAN_PROMPT),
            HookOwner::Lead(_) => files.next_lead_prompt(),
        };
        let end = match prompt {
            Ok(Some(prompt)) => return deliver(invocation, &mut files, prompt),
            Ok(None) => poll.run(),
            // The home of a mirrored team may not have confirmed the next task yet.
            Err(error)
                if matches!(error.kind, ErrorKind::Timeout | ErrorKind::NoDaemon)
                    && files.team().is_mirror() =>
            {
                poll.wait(CONFIRM_RETRY_DELAY).unwrap_or(WaitEnd::MessagesMayWait)
            }
            Err(error) => return Err(error),
        };
        let reason = match end {
            WaitEnd::MessagesMayWait => continue,
            WaitEnd::NoDaemon => "teamd is not running",
            WaitEnd::AgentExited => "its agent has ended",
            WaitEnd::NoDelivery(reason) => reason,
        };
        stderr_messages::print_warning(&format!("delivered no message: {reason}"));
        return Ok(());
    }
}

/// Reports the end of the turn, and returns the daemon's reply. Only the daemon knows whether the
/// turn was about the agent's task in progress. So if the agent has such a task and no daemon runs,
/// this function waits for a daemon.
fn report_turn_end(invocation: &HookInvocation<'_>, started_at: Instant) -> Result<HookReply, ErrorReport> {
    let report = || invocation.send_report(HookEvent::TurnEnded);
    let mut reply = report();
    if is_without_daemon(&reply)
        && invocation.owner == HookOwner::Teammate
        && open_agent_team_files(invocation)?.unfinished_task()?.is_some()
        && long_poll(invocation, started_at)?.is_some_and(|mut poll| poll.wait_for_daemon())
    {
        reply = report();
    }
    // The team files can be read without a daemon, and the later long poll waits for a daemon.
    if is_without_daemon(&reply) { Ok(reply_without_daemon(invocation)) } else { reply }
}

fn is_without_daemon(reply: &Result<HookReply, ErrorReport>) -> bool {
    reply.as_ref().is_err_and(|error| error.kind == ErrorKind::NoDaemon)
}

/// The reply that the hook assumes if there is no daemon. Without a daemon, no task of the turn is
/// known, and the hook itself decides whether it delivers messages.
fn reply_without_daemon(invocation: &HookInvocation<'_>) -> HookReply {
    let delivers_by_hook = match &invocation.owner {
        HookOwner::Teammate => invocation.hook_settings.is_own_profile,
        HookOwner::Lead(lead) => {
            lead.session_id.is_none()
                || invocation.input.session.is_none()
                || lead.session_id == invocation.input.session
        }
    };
    HookReply {
        delivers_by_hook,
        holds_turns: false,
        turn_started_at: now(),
        is_first_report: true,
        task: None,
        prompt_in_args: None,
        approval_in_args: false,
        delivered_ids: Vec::new(),
    }
}

fn settle_previous_turn(
    invocation: &HookInvocation<'_>,
    files: &mut AgentTeamFiles,
    reply: &HookReply,
) -> Result<(), ErrorReport> {
    invocation.mark_launch_prompt_read(files, reply)?;
    mark_delivered_read(invocation, files, reply)?;
    if !reply.is_first_report {
        return Ok(());
    }
    // The daemon's reply names the task that the previous turn-end hook delivered for this turn. If
    // the program has ignored that delivery, it has not worked on the task. So the task is not
    // completed now, and a later hook delivers it again.
    files.finish_turn(
        reply.task.filter(|_| invocation.input.has_continued()),
        reply.turn_started_at,
        invocation.input.last_message.as_deref(),
    )
}

fn mark_delivered_read(
    invocation: &HookInvocation<'_>,
    files: &mut AgentTeamFiles,
    reply: &HookReply,
) -> Result<(), ErrorReport> {
    if invocation.input.has_continued() { files.mark_delivered_read(&reply.delivered_ids) } else { Ok(()) }
}

fn long_poll(invocation: &HookInvocation<'_>, started_at: Instant) -> Result<Option<LongPoll>, ErrorReport> {
    let request = LongPollRequest {
        leads_team: invocation.owner.led_team(),
        hook_started_at: monotonic_milliseconds_ago(started_at.elapsed()),
    };
    let call = Call { token: invocation.context.token(), ..Call::new(Request::LongPoll(request)) };
    Ok(LongPoll::new(
        invocation.context.daemon_address()?,
        call,
        started_at + invocation.hook_settings.max_wait(),
        &controlling_terminal(),
    ))
}

/// The time `duration` ago, in milliseconds of the monotonic clock, which is the same in all
/// processes. 0 if the clock cannot be read.
fn monotonic_milliseconds_ago(duration: Duration) -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    now.saturating_sub(duration).as_millis() as u64
}

fn deliver(
    invocation: &HookInvocation<'_>,
    files: &mut AgentTeamFiles,
    prompt: NextPrompt,
) -> Result<(), ErrorReport> {
    write_response(&continue_response(&prompt.text, &invocation.hook_settings.delivery.response_template))?;
    // The report says that the next turn has started: the program starts it when this hook exits.
    let delivered_ids = prompt.entries.iter().map(InboxEntry::message_id).collect();
    match invocation.send_report(HookEvent::TurnStarted { summary: prompt.summary, delivered_ids }) {
        // Usually the next hook marks the delivered messages read, because the daemon tells it
        // which they are. Here the daemon did not get the report, so this hook marks them read.
        Err(error) => files.mark_read(prompt.entries).and(Err(error)),
        Ok(_) => Ok(()),
    }
}

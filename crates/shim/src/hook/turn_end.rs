//! The end of a turn: told once, its task settled; then what is due is handed over, at once or when it comes.
//!
//! Handed over means written to our standard output. That the program has taken it is seen at the end of the turn that
//! it made of it, and only then it is marked read: a program may have given up on this hook, or may take no more such
//! answers in a row than so many, and finds its mail at its next turn's end.

use super::hook_owner::HookOwner;
use super::invocation::{HookInvocation, open_team_files};
use super::long_poll::{LongPoll, WaitEnd};
use super::response::{continue_response, write_response};
use crate::output;
use crate::turns::next_prompt::NextPrompt;
use crate::turns::team_files::TeamFiles;
use client::controlling_terminal::controlling_terminal;
use protocol::control::{Call, HookEvent, HookReply, LongPollRequest, PROTOCOL_VERSION, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::plan_prompts::PLAN_PROMPT;
use protocol::policy::Policy;
use std::time::Instant;
use store::now;

pub(super) fn handle_turn_end(invocation: &HookInvocation<'_>) -> Result<(), ErrorReport> {
    let began = Instant::now();
    let reply = match invocation.send_report(HookEvent::TurnEnded) {
        // The files work without a daemon; that it is away is waited out below.
        Err(error) if error.kind == ErrorKind::NoDaemon => reply_without_daemon(invocation),
        reply => reply?,
    };
    if !reply.delivers_by_hook && reply.delivered_ids.is_empty() {
        return Ok(());
    }
    let mut files = open_team_files(invocation)?;
    if !reply.delivers_by_hook {
        mark_delivered_read(invocation, &mut files, &reply)?;
        // Its life ends once nothing of it is written any more.
        long_poll(invocation, began)?.map(|mut poll| poll.run());
        return Ok(());
    }
    settle_previous_turn(invocation, &mut files, &reply)
        .unwrap_or_else(|error| output::print_warning(&error.to_string()));
    let Some(mut poll) = long_poll(invocation, began)? else { return Ok(()) };
    loop {
        let due = match invocation.owner {
            HookOwner::Teammate => files.next_prompt(PLAN_PROMPT)?,
            HookOwner::Lead(_) => files.next_lead_prompt(&policy(invocation)?)?,
        };
        if let Some(due) = due {
            return deliver(invocation, &mut files, due);
        }
        let why = match poll.run() {
            WaitEnd::MessagesMayWait => continue,
            WaitEnd::NoDaemon => "there is no teamd",
            WaitEnd::AgentExited => "its agent has ended",
            WaitEnd::NoDelivery(why) => why,
        };
        output::print_warning(&format!("hands over nothing: {why}"));
        return Ok(());
    }
}

/// Nobody remembers what the turn was about, and whether it is this hook that feeds is seen from here alone.
fn reply_without_daemon(invocation: &HookInvocation<'_>) -> HookReply {
    let fed = match &invocation.owner {
        HookOwner::Teammate => invocation.protocol.is_own_profile,
        HookOwner::Lead(lead) => {
            lead.session_id.is_none()
                || invocation.input.session.is_none()
                || lead.session_id == invocation.input.session
        }
    };
    HookReply {
        delivers_by_hook: fed,
        turn_started_at: now(),
        is_first_report: true,
        task: None,
        prompt_in_args: None,
        approval_in_args: false,
        delivered_ids: Vec::new(),
    }
}

/// Of the team that it leads.
fn policy(invocation: &HookInvocation<'_>) -> Result<Policy, ErrorReport> {
    let Some(team) = invocation.owner.led_team() else { return Ok(Policy::default()) };
    let team = invocation.context.root()?.team(&team)?;
    invocation.context.caller_in(team)?.policy()
}

fn settle_previous_turn(
    invocation: &HookInvocation<'_>,
    files: &mut TeamFiles,
    reply: &HookReply,
) -> Result<(), ErrorReport> {
    invocation.mark_launch_prompt_read(files, reply)?;
    mark_delivered_read(invocation, files, reply)?;
    if !reply.is_first_report {
        return Ok(());
    }
    // A task that it did not take is handed over once more.
    files.finish_turn(
        reply.task.filter(|_| invocation.input.has_continued()),
        reply.turn_started_at,
        invocation.input.last_message.as_deref(),
    )
}

fn mark_delivered_read(
    invocation: &HookInvocation<'_>,
    files: &mut TeamFiles,
    reply: &HookReply,
) -> Result<(), ErrorReport> {
    if invocation.input.has_continued() { files.mark_delivered_read(&reply.delivered_ids) } else { Ok(()) }
}

fn long_poll(invocation: &HookInvocation<'_>, began: Instant) -> Result<Option<LongPoll>, ErrorReport> {
    let park = Request::LongPoll(LongPollRequest { leads_team: invocation.owner.led_team() });
    let call = Call {
        version: PROTOCOL_VERSION,
        token: invocation.context.token(),
        idempotency_key: None,
        request: park,
    };
    Ok(LongPoll::new(
        invocation.context.socket()?,
        call,
        began + invocation.protocol.max_wait(),
        &controlling_terminal(),
    ))
}

fn deliver(
    invocation: &HookInvocation<'_>,
    files: &mut TeamFiles,
    due: NextPrompt,
) -> Result<(), ErrorReport> {
    write_response(&continue_response(&due.text, &invocation.protocol.delivery.response_template))?;
    // The turn begins as soon as we are gone.
    let handed = due.entries.iter().map(InboxEntry::message_id).collect();
    match invocation.send_report(HookEvent::TurnStarted { summary: due.about, delivered_ids: handed }) {
        // Nobody would remember it.
        Err(error) => files.mark_read(due.entries).and(Err(error)),
        Ok(_) => Ok(()),
    }
}

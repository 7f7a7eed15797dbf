//! The end of a turn: told once, its task settled; then what is due is handed over, at once or when it comes.
//!
//! Handed over means written to our standard output. That the program has taken it is seen at the end of the turn that
//! it made of it, and only then it is marked read: a program may have given up on this hook, or may take no more such
//! answers in a row than so many, and finds its mail at its next turn's end.

use super::ancestors::terminal;
use super::answer::go_on;
use super::park::{Over, Wait};
use super::{Caller, Stand};
use crate::here::{fault, now};
use crate::output;
use crate::teammate::{ASKED, Due, Post};
use protocol::control::{Call, HookEvent, HookReply, LongPollRequest, PROTOCOL_VERSION, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::policy::Policy;
use std::time::Instant;

pub(super) fn run(stand: &Stand<'_>) -> Result<(), ErrorReport> {
    let began = Instant::now();
    let reply = match stand.tell(HookEvent::TurnEnded) {
        // The files work without a daemon; that it is away is waited out below.
        Err(fault) if fault.kind == ErrorKind::NoDaemon => without_daemon(stand),
        reply => reply?,
    };
    if !reply.delivers_by_hook && reply.delivered_ids.is_empty() {
        return Ok(());
    }
    let mut post = post(stand)?;
    if !reply.delivers_by_hook {
        took(stand, &mut post, &reply)?;
        // Its life ends once nothing of it is written any more.
        wait(stand, began)?.map(|mut wait| wait.wait());
        return Ok(());
    }
    settle(stand, &mut post, &reply).unwrap_or_else(|fault| output::complain(&fault.to_string()));
    let Some(mut wait) = wait(stand, began)? else { return Ok(()) };
    loop {
        let due = match stand.caller {
            Caller::Teammate => post.due(ASKED)?,
            Caller::Lead(_) => post.due_for_lead(&policy(stand)?)?,
        };
        if let Some(due) = due {
            return hand_over(stand, &mut post, due);
        }
        let why = match wait.wait() {
            Over::Look => continue,
            Over::Away => "there is no teamd",
            Over::Ended => "its agent has ended",
            Over::Nothing(why) => why,
        };
        output::complain(&format!("hands over nothing: {why}"));
        return Ok(());
    }
}

/// Nobody remembers what the turn was about, and whether it is this hook that feeds is seen from here alone.
fn without_daemon(stand: &Stand<'_>) -> HookReply {
    let fed = match &stand.caller {
        Caller::Teammate => stand.manner.feeds,
        Caller::Lead(lead) => {
            lead.session_id.is_none()
                || stand.input.session.is_none()
                || lead.session_id == stand.input.session
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
fn policy(stand: &Stand<'_>) -> Result<Policy, ErrorReport> {
    let Some(team) = stand.caller.lead() else { return Ok(Policy::default()) };
    let team = stand.here.root()?.team(&team).map_err(fault)?;
    stand.here.caller_at(team)?.policy()
}

/// The own place in the team's files.
pub(super) fn post(stand: &Stand<'_>) -> Result<Post, ErrorReport> {
    let root = stand.here.root()?;
    let team = match stand.caller.lead() {
        Some(team) => root.team(&team).map_err(fault)?,
        None => stand.here.team()?,
    };
    let me = stand.caller.name(stand.here);
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    Ok(Post::new(team, me, color).told_by(stand.here.hints()?))
}

fn settle(stand: &Stand<'_>, post: &mut Post, reply: &HookReply) -> Result<(), ErrorReport> {
    stand.had(post, reply)?;
    took(stand, post, reply)?;
    if !reply.is_first_report {
        return Ok(());
    }
    // A task that it did not take is handed over once more.
    post.turn_over(
        reply.task.filter(|_| stand.input.took()),
        reply.turn_started_at,
        stand.input.last.as_deref(),
    )
}

fn took(stand: &Stand<'_>, post: &mut Post, reply: &HookReply) -> Result<(), ErrorReport> {
    if stand.input.took() { post.took(&reply.delivered_ids) } else { Ok(()) }
}

fn wait(stand: &Stand<'_>, began: Instant) -> Result<Option<Wait>, ErrorReport> {
    let park = Request::LongPoll(LongPollRequest { leads_team: stand.caller.lead() });
    let call =
        Call { version: PROTOCOL_VERSION, token: stand.here.token(), idempotency_key: None, request: park };
    Ok(Wait::new(stand.here.socket()?, call, began + stand.manner.park, &terminal()))
}

fn hand_over(stand: &Stand<'_>, post: &mut Post, due: Due) -> Result<(), ErrorReport> {
    output::answer(&go_on(&due.text, &stand.manner.answer))?;
    // The turn begins as soon as we are gone.
    let handed = due.entries.iter().map(InboxEntry::message_id).collect();
    match stand.tell(HookEvent::TurnStarted { summary: due.about, delivered_ids: handed }) {
        // Nobody would remember it.
        Err(fault) => post.mark(due.entries).and(Err(fault)),
        Ok(_) => Ok(()),
    }
}

//! Causes that only a person or the lead can remove: open requests and dialogs.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::{count_noun, with_time};
use super::member_evidence::{MemberEvidence, OpenRequestEvidence};
use super::suggested_next_commands::answer_commands;
use client::short_duration::short_duration;
use protocol::control_socket::MemberFlag;
use protocol::event_log_line::EventKind;
use protocol::member_request::MemberRequestKind;

/// The requests and dialogs of a member. `flags` are those of its agent, empty if none is known.
pub(super) fn request_causes(evidence: &MemberEvidence, flags: &[MemberFlag]) -> Vec<Diagnosis> {
    let requests = [MemberRequestKind::Permission, MemberRequestKind::Plan];
    let causes = requests.into_iter().filter_map(|kind| request_cause(evidence, flags, kind));
    causes.chain(dialog_cause(evidence, flags)).collect()
}

fn request_cause(
    evidence: &MemberEvidence,
    flags: &[MemberFlag],
    kind: MemberRequestKind,
) -> Option<Diagnosis> {
    let (cause, flag, default_description) = match kind {
        MemberRequestKind::Permission => {
            (Cause::AwaitingPermission, MemberFlag::AwaitingPermission, "asks for permission")
        }
        MemberRequestKind::Plan => {
            (Cause::AwaitingPlanApproval, MemberFlag::AwaitingPlanApproval, "submits a plan")
        }
    };
    let request = evidence.open_requests.iter().find(|request| request.kind == kind);
    if request.is_none() && !flags.contains(&flag) {
        return None;
    }
    let description = request.map_or(default_description, |request| &request.description);
    let needs_person = request.is_some_and(|request| request.needs_person);
    let answerer = if needs_person { "a person" } else { "the lead or a person" };
    let sentence = format!("{} {description}, and waits for the answer of {answerer}.", evidence.name);
    let diagnosis = Diagnosis::new(cause, sentence);
    Some(match request {
        Some(request) => diagnosis
            .with_evidence(request_lines(request, evidence))
            .with_next(answer_commands(request, evidence)),
        None => diagnosis.with_next([evidence.commands.command(&["requests"])]),
    })
}

fn request_lines(request: &OpenRequestEvidence, evidence: &MemberEvidence) -> [Option<String>; 2] {
    let asked_line =
        with_time(&format!("request {} in the inbox of team-lead,", request.id), request.since, evidence);
    let timeout = request.policy_answer.map(|(at, is_approved)| {
        let answers = if is_approved { "approves" } else { "denies" };
        format!("the team's policy {answers} it in {}", short_duration(at.saturating_sub(evidence.now)))
    });
    [Some(asked_line), timeout]
}

fn dialog_cause(evidence: &MemberEvidence, flags: &[MemberFlag]) -> Option<Diagnosis> {
    if !flags.contains(&MemberFlag::AtDialog) {
        return None;
    }
    let text = evidence.history.find_last(|event| match event {
        EventKind::MemberAtDialog { text } => Some(text.clone()),
        _ => None,
    });
    let agent = evidence.agent.as_ref();
    let dialog = agent.and_then(|agent| agent.dialog.clone());
    let limit = agent.and_then(|agent| agent.usage_limit.as_ref());
    let limit = limit.map(|limit| format!("it is limited until {}", limit.local_time));
    let text = dialog.or(text.map(|(text, _)| text)).unwrap_or_else(|| "its screen shows it".to_owned());
    let diagnosis = Diagnosis::new(
        Cause::AtDialog,
        format!("The program of {} waits at a dialog of its own.", evidence.name),
    );
    Some(
        diagnosis
            .with_evidence([Some(text), limit])
            .with_next([evidence.command("capture", &[]), evidence.command("attach", &[])]),
    )
}

/// The cause for the lead, with the number of open requests and unread messages as evidence.
pub(super) fn lead_cause(evidence: &MemberEvidence) -> Diagnosis {
    let sentence = format!("{} is the lead: a person, or a program that teamd does not run.", evidence.name);
    let requests =
        format!("{} of members without an answer", count_noun(evidence.open_requests.len(), "request"));
    let messages = format!("{} unread in its inbox", count_noun(evidence.unread.len(), "message"));
    Diagnosis::new(Cause::Lead, sentence)
        .with_evidence([requests, messages])
        .with_next([evidence.commands.command(&["requests"])])
}

//! Decides whether a hook report comes from the agent's own program. A user's hooks run in every
//! session of a program, also in a session that an agent starts in a shell. Such a nested session
//! inherits the agent's environment, so its hook reports have the agent's token. The daemon ignores
//! these reports, because the turns and messages of a nested session are not the agent's.

use crate::core::roster::agent_record::{AgentRecord, HookState};
use crate::core::state::lead_session::LeadSession;
use protocol::control_socket::{HookEvent, HookReply, HookReport, Process};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// How a hook report relates to the agent or lead in whose environment the hook ran.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookSession {
    /// The report is from the program of the agent or lead, in the known session.
    SameSession,
    /// The report is from the program of the agent or lead, in a new session with this id.
    NewSession(String),
    /// The report is from another program.
    OtherProgram,
}

/// How a hook report with an agent's token relates to the agent.
pub(crate) fn agent_hook_session(record: &AgentRecord, report: &HookReport) -> HookSession {
    if record.request.delivery != Delivery::Hook {
        return HookSession::OtherProgram;
    }
    let ran_below =
        |pid: Option<u32>| pid.is_some_and(|pid| report.ancestors.iter().any(|ancestor| ancestor.pid == pid));
    let process = record.lifecycle.process();
    if ran_below(process.shim.map(|shim| shim.pid))
        && process.agent_pid.is_some()
        && !ran_below(process.agent_pid)
    {
        // The hook is a descendant of the shim, but not of the agent's process. So another program
        // ran it: one that the agent started in a shell, and that became a child of the shim when
        // the shell ended.
        return HookSession::OtherProgram;
    }
    identify_session(&record.hook_state, record.session.as_deref(), report)
}

/// How a hook report for a lead session relates to the lead.
pub(crate) fn lead_hook_session(lead_session: &LeadSession, report: &HookReport) -> HookSession {
    identify_session(&lead_session.hook_state, lead_session.lead.session_id.as_deref(), report)
}

fn identify_session(hook_state: &HookState, session: Option<&str>, report: &HookReport) -> HookSession {
    let is_first = hook_state.ancestors.is_empty();
    match &report.session_id {
        Some(reported) if session == Some(reported) => HookSession::SameSession,
        _ if !is_first && is_nested(&report.ancestors, &hook_state.ancestors) => HookSession::OtherProgram,
        None => HookSession::SameSession,
        // A program can begin another session only when it starts or when its user types a prompt.
        Some(reported)
            if is_first
                || matches!(report.event, HookEvent::SessionStarted | HookEvent::TurnStarted { .. }) =>
        {
            HookSession::NewSession(reported.clone())
        }
        // The report comes from a subagent with a session of its own.
        Some(_) => HookSession::OtherProgram,
    }
}

/// Whether a hook was run by a nested program: one that the program of the agent or lead has
/// started. `ancestors` are the ancestor processes of the hook, the parent first. `known_ancestors`
/// are the ancestor processes of an earlier hook that was not nested: the first one that the
/// program itself ran.
///
/// The hook of a nested program has more ancestors than that first hook, and has all of the
/// `known_ancestors`. Only the parent of the first hook may be missing: it may be a shell that ran
/// nothing but this hook.
fn is_nested(ancestors: &[Process], known_ancestors: &[Process]) -> bool {
    let common_count = ancestors
        .iter()
        .rev()
        .zip(known_ancestors.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    ancestors.len() > known_ancestors.len() && known_ancestors.len() - common_count <= 1
}

/// The reply to a hook of another program.
pub(crate) fn ignored_reply(turn_started_at: u64) -> HookReply {
    HookReply {
        delivers_by_hook: false,
        holds_turns: false,
        turn_started_at,
        is_first_report: false,
        task: None,
        prompt_in_args: None,
        approval_in_args: false,
        delivered_ids: Vec::new(),
    }
}

pub(crate) fn unknown_caller_error() -> ErrorReport {
    ErrorReport::new(
        ErrorKind::NotPermitted,
        "cannot accept the hook: it belongs to no running agent and to no lead",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ancestors(pids: &[u32]) -> Vec<Process> {
        pids.iter().map(|pid| Process { pid: *pid, start_time: u64::from(*pid) }).collect()
    }

    /// Returns how the report of a hook with the ancestors `pids` relates to the agent's own
    /// program. In these tests, that program is process 20, with the session `old`. It is a child
    /// of the shell 10, and its first hook ran in the shell 21.
    fn session_after(session: &str, pids: &[u32], event: HookEvent) -> HookSession {
        let hook_state = HookState { ancestors: ancestors(&[21, 20, 10]), ..HookState::default() };
        let session = Some(session.to_owned()).filter(|session| !session.is_empty());
        let report = HookReport {
            leads_team: None,
            session_id: session,
            ancestors: ancestors(pids),
            usage: None,
            event,
        };
        identify_session(&hook_state, Some("old"), &report)
    }

    #[test]
    fn report_of_a_nested_program_is_from_another_program() {
        for event in [
            HookEvent::SessionStarted,
            HookEvent::TurnEnded,
            HookEvent::TurnStarted { summary: String::new(), delivered_ids: Vec::new() },
        ] {
            for session in ["new", ""] {
                assert_eq!(
                    session_after(session, &[41, 40, 30, 20, 10], event.clone()),
                    HookSession::OtherProgram,
                    "{event:?}"
                );
                assert_eq!(
                    session_after(session, &[41, 40, 20, 10], event.clone()),
                    HookSession::OtherProgram,
                    "{event:?}"
                );
            }
        }
    }

    #[test]
    fn program_may_start_a_new_session_and_may_be_replaced_by_another_program() {
        assert_eq!(session_after("old", &[22, 20, 10], HookEvent::TurnEnded), HookSession::SameSession);
        assert_eq!(session_after("", &[22, 20, 10], HookEvent::TurnEnded), HookSession::SameSession);
        assert_eq!(
            session_after("new", &[22, 20, 10], HookEvent::SessionStarted),
            HookSession::NewSession("new".into())
        );
        assert_eq!(
            session_after("new", &[22, 20, 10], HookEvent::TurnEnded),
            HookSession::OtherProgram,
            "the report of a subagent"
        );
        for pids in [&[61, 60, 10][..], &[61, 60, 59, 10], &[61, 60, 59, 58]] {
            assert_eq!(
                session_after("new", pids, HookEvent::SessionStarted),
                HookSession::NewSession("new".into()),
                "{pids:?}"
            );
        }
    }

    #[test]
    fn first_report_is_always_accepted() {
        let report = HookReport {
            leads_team: None,
            session_id: Some("new".into()),
            ancestors: ancestors(&[21, 20]),
            usage: None,
            event: HookEvent::TurnEnded,
        };
        assert_eq!(
            identify_session(&HookState::default(), Some("previous"), &report),
            HookSession::NewSession("new".into())
        );
    }
}

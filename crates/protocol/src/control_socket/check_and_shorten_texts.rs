//! Checks the lengths of all texts in a call, and shortens the texts in a shim's report.
//!
//! Each function names all fields of its type in a pattern without `..`. So a new field does not
//! compile until this file says what its limit is. Names of teams and members, ids and modes are
//! not checked here, because their types limit the length.

use super::hook_messages::{HookEvent, HookReport};
use super::host_requests::{
    AwaitHostRequest, ConfirmTaskRequest, ForgetHostRequest, MoveHomeRequest, TakeHomeRequest, UseHostRequest,
};
use super::lead_session_and_leads_file::{LeadProcess, SetLeadRequest};
use super::pane_layout_and_visibility::{PersonPane, SetPersonPaneRequest};
use super::placement::{HostCandidate, PlaceMemberRequest};
use super::request::{
    Call, CapturePaneRequest, CreateTeamRequest, DeleteTeamRequest, MemberAddress, MemberSelection, Request,
    SetModeRequest, SetPolicyRequest, ShutdownMembersRequest,
};
use super::shim_messages::{ExitReport, FromShim, ShimHello};
use super::spawn_request::SpawnRequest;
use super::turn_status::{
    ExchangePause, FailedTurnsPause, NoContactPause, PlanStage, TurnPause, TurnStatus, UsageLimit,
};
use super::worktree_messages::WorktreeRequest;
use crate::error_kind_and_report::ErrorReport;
use crate::length_limits_of_texts::{TextLimit, TextTooLong, shorten};
use crate::token_and_cost_usage::UsageReport;
use std::path::PathBuf;

impl Call {
    /// Checks the length of each text of the call.
    ///
    /// # Errors
    ///
    /// [`TextTooLong`], which names the text and its limit.
    pub fn check_text_lengths(&self) -> Result<(), TextTooLong> {
        let Call { version: _, root, token, idempotency_key, request } = self;
        TextLimit::PATH.check_all(root)?;
        TextLimit::TOKEN.check_all(token)?;
        TextLimit::IDEMPOTENCY_KEY.check_all(idempotency_key)?;
        check_request(request)
    }
}

fn check_request(request: &Request) -> Result<(), TextTooLong> {
    match request {
        Request::CreateTeam(request) => check_create_team(request),
        Request::CreateWorktree(request) => check_worktree(request),
        Request::Spawn(request) => check_spawn(request),
        Request::Shutdown(request) => check_shutdown(request),
        Request::Kill(MemberSelection { team: _, names }) => TextLimit::NAME.check_all(names),
        Request::Interrupt(MemberAddress { team: _, name })
        | Request::LocatePane(MemberAddress { team: _, name })
        | Request::HidePane(MemberAddress { team: _, name })
        | Request::ShowPane(MemberAddress { team: _, name })
        | Request::CapturePane(CapturePaneRequest { team: _, name, lines: _ })
        | Request::SetMode(SetModeRequest { team: _, name, mode: _ }) => TextLimit::NAME.check(name),
        Request::SetPolicy(SetPolicyRequest { team: _, policy }) => TextLimit::POLICY.check_json(policy),
        Request::DeleteTeam(DeleteTeamRequest { team: _, force: _, discard_worktrees, git_env }) => {
            check_paths(discard_worktrees)?;
            TextLimit::ENVIRONMENT.check_json(git_env)
        }
        Request::SetPersonPane(SetPersonPaneRequest { team: _, person_pane }) => {
            let PersonPane { pane, server_pid: _, kept_percent: _ } = person_pane;
            TextLimit::NAME.check(pane)
        }
        Request::ReportHook(report) => check_hook_report(report),
        Request::SetLead(SetLeadRequest::Take(lead)) => check_lead(lead),
        Request::ConnectShim(ShimHello { spawn_id, agent_pid: _, turn_status: _ }) => {
            TextLimit::TOKEN.check(spawn_id)
        }
        Request::PlaceMember(PlaceMemberRequest { team: _, name: _, needs, candidates }) => {
            let labels = candidates.iter().flat_map(|HostCandidate { host: _, labels, slots: _ }| labels);
            TextLimit::NAME.check_all(needs.iter().chain(labels))
        }
        Request::UseHost(UseHostRequest { team: _, host: _, command }) => {
            TextLimit::ARGUMENT.check_all(command)
        }
        Request::AwaitHost(AwaitHostRequest { team: _, host: _ })
        | Request::ConfirmTask(ConfirmTaskRequest { team: _, task: _, owner: _ })
        | Request::ForgetHost(ForgetHostRequest { host: _ })
        | Request::TakeHome(TakeHomeRequest { team: _ })
        | Request::MoveHome(MoveHomeRequest { team: _, host: _ })
        | Request::ConnectHome(_)
        | Request::Status
        | Request::StatusWithScreens
        | Request::SetLayout(_)
        | Request::NextTask(_)
        | Request::ReportActivity(_)
        | Request::LongPoll(_)
        | Request::SetLead(SetLeadRequest::Release(_))
        | Request::StopDaemon
        | Request::StopDaemonAndSuspend
        | Request::ResumeMembers(_) => Ok(()),
    }
}

fn check_paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), TextTooLong> {
    TextLimit::PATH.check_all(paths.into_iter().map(|path| path.to_string_lossy()))
}

fn check_create_team(request: &CreateTeamRequest) -> Result<(), TextTooLong> {
    let CreateTeamRequest {
        team: _,
        description,
        agent_type,
        model,
        cwd,
        unique: _,
        policy,
        lead_mode: _,
        record: _,
    } = request;
    TextLimit::TEAM_DESCRIPTION.check_all(description)?;
    TextLimit::NAME.check_all(agent_type.iter().chain(model))?;
    check_paths([cwd])?;
    TextLimit::POLICY.check_json(policy)
}

fn check_worktree(request: &WorktreeRequest) -> Result<(), TextTooLong> {
    let WorktreeRequest { team: _, name: _, unique: _, cwd, branch, env } = request;
    check_paths([cwd])?;
    TextLimit::BRANCH.check_all(branch)?;
    TextLimit::ENVIRONMENT.check_json(env)
}

fn check_spawn(request: &SpawnRequest) -> Result<(), TextTooLong> {
    let SpawnRequest {
        team: _,
        name: _,
        unique: _,
        name_placeholder: _,
        argv,
        has_deferred_variables: _,
        resume_argv,
        launches_after_approval,
        prompt_in_args: _,
        cwd,
        env,
        prompt,
        agent_type,
        model,
        mode: _,
        delivery: _,
        dialog_patterns,
        limit_patterns,
        turns,
        backend: _,
        iterm2,
        restart: _,
        earlier_messages: _,
        worktree,
    } = request;
    TextLimit::PROMPT.check(prompt)?;
    TextLimit::ARGUMENT.check_all(argv)?;
    TextLimit::COMMAND_LINES.check_json(&(argv, resume_argv, launches_after_approval, turns))?;
    TextLimit::ENVIRONMENT.check_json(env)?;
    TextLimit::NAME.check_all(agent_type.iter().chain(model))?;
    TextLimit::DIALOG_PATTERN.check_all(dialog_patterns)?;
    TextLimit::LIMIT_PATTERN.check_all(limit_patterns)?;
    TextLimit::NAME.check_all(iterm2.iter().flat_map(|iterm2| &iterm2.session))?;
    check_paths([cwd].into_iter().chain(worktree).chain(iterm2.iter().map(|iterm2| &iterm2.it2)))
}

fn check_shutdown(request: &ShutdownMembersRequest) -> Result<(), TextTooLong> {
    let ShutdownMembersRequest { targets, reason, grace_ms: _, force: _, no_wait: _ } = request;
    TextLimit::NAME.check_all(&targets.names)?;
    TextLimit::MESSAGE.check_all(reason)
}

fn check_hook_report(report: &HookReport) -> Result<(), TextTooLong> {
    let HookReport { leads_team: _, session_id, ancestors, usage, event } = report;
    let of_usage = usage.as_ref().and_then(|usage| usage.session_id.as_ref());
    TextLimit::SESSION_ID.check_all(session_id.iter().chain(of_usage))?;
    TextLimit::ANCESTORS.check_json(ancestors)?;
    match event {
        HookEvent::TurnStarted { summary, delivered_ids } => {
            TextLimit::TURN_SUMMARY.check(summary)?;
            TextLimit::MESSAGE_IDS.check_json(delivered_ids)
        }
        HookEvent::DialogShown { text } => TextLimit::NOTIFICATION.check(text),
        HookEvent::SessionStarted
        | HookEvent::PromptRead
        | HookEvent::TurnEnded
        | HookEvent::SessionEnded => Ok(()),
    }
}

fn check_lead(lead: &LeadProcess) -> Result<(), TextTooLong> {
    let LeadProcess { team: _, pid: _, start_time: _, pane, tmux_socket, session_id } = lead;
    TextLimit::NAME.check_all(pane)?;
    check_paths(tmux_socket)?;
    TextLimit::SESSION_ID.check_all(session_id)
}

impl HookEvent {
    /// The event with texts that are short enough to be kept and shown.
    #[must_use]
    pub fn with_short_texts(self) -> HookEvent {
        match self {
            HookEvent::TurnStarted { summary, delivered_ids } => {
                HookEvent::TurnStarted { summary: shorten(summary), delivered_ids }
            }
            HookEvent::DialogShown { text } => HookEvent::DialogShown { text: shorten(text) },
            event => event,
        }
    }
}

impl ShimHello {
    /// The message with long texts shortened, so that the daemon can keep and show them. See
    /// [`FromShim::with_short_texts`].
    #[must_use]
    pub fn with_short_texts(self) -> ShimHello {
        ShimHello { turn_status: self.turn_status.map(TurnStatus::with_short_texts), ..self }
    }
}

impl FromShim {
    /// The report with long texts shortened, so that the daemon can keep and show them. Texts are
    /// shortened and not refused, because a shim gets no reply to a report. A session id that is
    /// too long is left out, because a shortened id would name no session.
    #[must_use]
    pub fn with_short_texts(self) -> FromShim {
        match self {
            FromShim::TurnStatus(status) => FromShim::TurnStatus(status.with_short_texts()),
            FromShim::Failed(error) => FromShim::Failed(short_error(error)),
            FromShim::Exited(ExitReport::TurnNotStarted(reason)) => {
                FromShim::Exited(ExitReport::TurnNotStarted(shorten(reason)))
            }
            report @ (FromShim::Started { .. } | FromShim::Interrupted { .. } | FromShim::Exited(_)) => {
                report
            }
        }
    }
}

impl TurnStatus {
    fn with_short_texts(self) -> TurnStatus {
        let TurnStatus {
            activity,
            since,
            turn_number,
            summary,
            pid,
            idle_reason,
            session_id,
            usage,
            mode,
            plan_stage,
            shutdown_requested,
            pause,
        } = self;
        let session_id = session_id.filter(|id| is_session_id(id));
        let usage = usage.map(|usage| UsageReport {
            session_id: usage.session_id.filter(|id| is_session_id(id)),
            ..usage
        });
        let is_path = |stage: &PlanStage| match stage {
            PlanStage::Planning => true,
            PlanStage::AwaitingApproval { request_id: _, file } => TextLimit::PATH.check(file).is_ok(),
        };
        TurnStatus {
            activity,
            since,
            turn_number,
            summary: shorten(summary),
            pid,
            idle_reason,
            session_id,
            usage,
            mode,
            plan_stage: plan_stage.filter(is_path),
            shutdown_requested,
            pause: pause.map(TurnPause::with_short_texts),
        }
    }
}

impl TurnPause {
    fn with_short_texts(self) -> TurnPause {
        match self {
            TurnPause::FailedTurns(pause) => {
                let FailedTurnsPause { failed_turns, reason, until, limit } = pause;
                let limit = limit.map(|limit| UsageLimit { local_time: shorten(limit.local_time), ..limit });
                let reason = shorten(reason);
                TurnPause::FailedTurns(FailedTurnsPause { failed_turns, reason, until, limit })
            }
            // An `ExchangePause` has no long text: its field `with` is a member's name, and the
            // type `MemberName` limits the length.
            pause @ TurnPause::Exchange(ExchangePause { with: _, turns: _, within_ms: _, until: _ }) => pause,
            pause @ TurnPause::NoContact(NoContactPause { since: _ }) => pause,
        }
    }
}

fn short_error(error: ErrorReport) -> ErrorReport {
    ErrorReport { kind: error.kind, message: shorten(error.message), help: error.help.map(shorten) }
}

fn is_session_id(id: &str) -> bool {
    TextLimit::SESSION_ID.check(id).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length_limits_of_texts::SHOWN_TEXT_BYTES;
    use serde_json::{Value, json};

    fn check(request: Value) -> Result<(), String> {
        let request = serde_json::from_value(request).unwrap();
        Call::new(request).check_text_lengths().map_err(|error| error.to_string())
    }

    #[test]
    fn long_text_of_any_request_is_refused_by_name() {
        let long = "x".repeat(600 << 10);
        let hook = |event: Value| json!({"report_hook": {"event": event}});
        let spawn = |field: &str, value: Value| {
            let mut request = json!({"team": "t", "name": "ann", "unique": false, "argv": ["x"], "cwd": "/", "env": {},
                "prompt": "", "delivery": "pull"});
            request[field] = value;
            json!({"spawn": request})
        };
        for (request, kind) in [
            (json!({"report_hook": {"session_id": long, "event": "turn_ended"}}), "a session id"),
            (hook(json!({"dialog_shown": {"text": long}})), "a notification"),
            (hook(json!({"turn_started": {"summary": long}})), "a turn summary"),
            (
                hook(json!({"turn_started": {"summary": "", "delivered_ids": vec![u64::MAX; 20_000]}})),
                "a list of message ids",
            ),
            (spawn("prompt", json!(long)), "a prompt"),
            (spawn("argv", json!(["x", long])), "an argument"),
            (spawn("model", json!(long)), "a name"),
            (spawn("env", json!({"A": "x".repeat(5 << 20)})), "an environment"),
            (
                json!({"shutdown": {"targets": {"team": "t", "names": []}, "reason": long, "grace_ms": 1, "force": false}}),
                "a text",
            ),
            (json!({"interrupt": {"team": "t", "name": long}}), "a name"),
        ] {
            let error = check(request).unwrap_err();
            assert!(error.starts_with(&format!("cannot accept {kind} of ")), "{error}");
        }
        assert_eq!(check(spawn("prompt", json!("x".repeat(256 << 10)))), Ok(()));
        assert_eq!(check(json!("status")), Ok(()));
    }

    #[test]
    fn texts_of_a_shim_are_shortened_and_a_long_session_id_is_left_out() {
        let status = json!({"turn_status": {"activity": "active", "turn_number": 1, "pid": null, "idle_reason": null,
            "summary": "task 3: ".to_owned() + &"x".repeat(1 << 20), "session_id": "x".repeat(1 << 20),
            "pause": {"cause": "failed_turns", "failed_turns": 1, "reason": "x".repeat(1 << 20), "until": null}}});
        let report: FromShim = serde_json::from_value(status).unwrap();
        let FromShim::TurnStatus(status) = report.with_short_texts() else { panic!() };
        assert!(status.summary.len() <= SHOWN_TEXT_BYTES && status.session_id.is_none());
        assert_eq!(status.task(), crate::member_task_and_request_ids::TaskId::parse("3").ok());
        let Some(TurnPause::FailedTurns(pause)) = status.pause else { panic!() };
        assert!(pause.reason.len() <= SHOWN_TEXT_BYTES);
    }
}

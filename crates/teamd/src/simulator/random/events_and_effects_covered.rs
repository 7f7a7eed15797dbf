//! Records which events, effects, jobs and messages occur in simulations, so that a test can check
//! that each kind occurs.
//!
//! A `match` without a wildcard names every variant, so a new variant does not compile until it
//! gets a name in this file. The test reads all names from the source text of this file. With at
//! least `FULL_COVERAGE_SEEDS` seeds, it fails if a variant occurs in no simulation.

use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::jobs::worktree_jobs::{WorktreeJob, WorktreeResult};
use protocol::control_socket::{FromShim, HookEvent, Request, Response, ToShim};
use std::collections::BTreeSet;

/// The names of everything that occurred in a simulation.
#[derive(Debug, Default)]
pub(super) struct Coverage(pub(super) BTreeSet<&'static str>);

/// All names, read from the source of this file.
pub(super) fn all_names() -> BTreeSet<&'static str> {
    let arms = include_str!("events_and_effects_covered.rs")
        .split("=> \"")
        .filter_map(|arm| Some(arm.split_once('"')?.0));
    arms.filter(|name| name.contains("::") && !name.contains(' ')).collect()
}

impl Coverage {
    pub(super) fn record_event(&mut self, event: &CoreEvent) {
        self.0.insert(event_name(event));
        self.0.extend(match event {
            CoreEvent::ClientCall { call, .. } => Some(request_name(&call.request)),
            CoreEvent::ShimReported { report, .. } => Some(shim_report_name(report)),
            CoreEvent::FileJobDone(result) => Some(file_result_name(result)),
            CoreEvent::PaneJobDone(result) => Some(pane_result_name(result)),
            CoreEvent::WorktreeJobDone(result) => Some(worktree_result_name(result)),
            _ => None,
        });
        if let CoreEvent::ClientCall { call, .. } = event
            && let Request::ReportHook(report) = &call.request
        {
            self.0.insert(hook_event_name(&report.event));
        }
    }

    pub(super) fn record_effect(&mut self, effect: &Effect) {
        self.0.insert(effect_name(effect));
        self.0.extend(match effect {
            Effect::SendToShim { message, .. } => Some(shim_message_name(message)),
            Effect::Worktree(job) => Some(worktree_job_name(job)),
            Effect::Reply { response, .. } => Some(response_name(response)),
            _ => None,
        });
    }

    pub(super) fn record_pane_job(&mut self, job: &PaneJob) {
        self.0.insert(pane_job_name(job));
    }

    /// Records a job that the files thread runs. Not all of them are effects of the core.
    pub(super) fn record_file_job(&mut self, job: &FileJob) {
        self.0.insert(file_job_name(job));
    }
}

fn event_name(event: &CoreEvent) -> &'static str {
    match event {
        CoreEvent::ClientCall { .. } => "CoreEvent::ClientCall",
        CoreEvent::InvalidCall { .. } => "CoreEvent::InvalidCall",
        CoreEvent::ShimStarted { .. } => "CoreEvent::ShimStarted",
        CoreEvent::ShimConnected { .. } => "CoreEvent::ShimConnected",
        CoreEvent::ShimReported { .. } => "CoreEvent::ShimReported",
        CoreEvent::ConnectionClosed { .. } => "CoreEvent::ConnectionClosed",
        CoreEvent::ProcessDied { .. } => "CoreEvent::ProcessDied",
        CoreEvent::InboxChanged { .. } => "CoreEvent::InboxChanged",
        CoreEvent::TaskChanged { .. } => "CoreEvent::TaskChanged",
        CoreEvent::ConfigChanged { .. } => "CoreEvent::ConfigChanged",
        CoreEvent::SessionTeamChanged { .. } => "CoreEvent::SessionTeamChanged",
        CoreEvent::ProbeSeen => "CoreEvent::ProbeSeen",
        CoreEvent::BarrierReached { .. } => "CoreEvent::BarrierReached",
        CoreEvent::BarrierFailed => "CoreEvent::BarrierFailed",
        CoreEvent::WatchesAdded { .. } => "CoreEvent::WatchesAdded",
        CoreEvent::WatchFailed => "CoreEvent::WatchFailed",
        CoreEvent::RootReopened(_) => "CoreEvent::RootReopened",
        CoreEvent::WatcherOverflow => "CoreEvent::WatcherOverflow",
        CoreEvent::SocketDirectoryChanged => "CoreEvent::SocketDirectoryChanged",
        CoreEvent::FileJobDone(_) => "CoreEvent::FileJobDone",
        CoreEvent::PaneJobDone(_) => "CoreEvent::PaneJobDone",
        CoreEvent::OwnTmuxSessionsUsed => "CoreEvent::OwnTmuxSessionsUsed",
        CoreEvent::HostReported { .. } => "CoreEvent::HostReported",
        CoreEvent::WorktreeJobDone(_) => "CoreEvent::WorktreeJobDone",
        CoreEvent::DeadlineReached => "CoreEvent::DeadlineReached",
        CoreEvent::BranchFetched { .. } => "CoreEvent::BranchFetched",
        CoreEvent::NotificationFailed { .. } => "CoreEvent::NotificationFailed",
        CoreEvent::Signal(_) => "CoreEvent::Signal",
    }
}

fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Reply { .. } => "Effect::Reply",
        Effect::SendToShim { .. } => "Effect::SendToShim",
        Effect::CloseConnection { .. } => "Effect::CloseConnection",
        Effect::SuperviseShim { .. } => "Effect::SuperviseShim",
        Effect::WatchProcess { .. } => "Effect::WatchProcess",
        Effect::UnwatchProcess { .. } => "Effect::UnwatchProcess",
        Effect::RetryProcessWatches => "Effect::RetryProcessWatches",
        Effect::WakeAgent { .. } => "Effect::WakeAgent",
        Effect::KillShim { .. } => "Effect::KillShim",
        Effect::CloseHandles { .. } => "Effect::CloseHandles",
        Effect::WatchRoot => "Effect::WatchRoot",
        Effect::WatchTeam { .. } => "Effect::WatchTeam",
        Effect::UnwatchTeam { .. } => "Effect::UnwatchTeam",
        Effect::ConfirmWatches { .. } => "Effect::ConfirmWatches",
        Effect::CreateBarrier { .. } => "Effect::CreateBarrier",
        Effect::File(_) => "Effect::File",
        Effect::Pane(_) => "Effect::Pane",
        Effect::Host(_) => "Effect::Host",
        Effect::Worktree(_) => "Effect::Worktree",
        Effect::CancelSetup { .. } => "Effect::CancelSetup",
        Effect::StartShim { .. } => "Effect::StartShim",
        Effect::ShowNotice { .. } => "Effect::ShowNotice",
        Effect::FetchBranch { .. } => "Effect::FetchBranch",
        Effect::Log(_) => "Effect::Log",
        Effect::CheckSocket => "Effect::CheckSocket",
        Effect::Exit => "Effect::Exit",
    }
}

fn file_job_name(job: &FileJob) -> &'static str {
    match job {
        FileJob::SaveRoster(_) => "FileJob::SaveRoster",
        FileJob::AppendEvent(_) => "FileJob::AppendEvent",
        FileJob::AppendToRecord(_) => "FileJob::AppendToRecord",
        FileJob::CreateTeam(_) => "FileJob::CreateTeam",
        FileJob::SaveEnvironment { .. } => "FileJob::SaveEnvironment",
        FileJob::RegisterMember { .. } => "FileJob::RegisterMember",
        FileJob::SendShutdownRequest { .. } => "FileJob::SendShutdownRequest",
        FileJob::ReadShutdownAnswers { .. } => "FileJob::ReadShutdownAnswers",
        FileJob::DeregisterMember { .. } => "FileJob::DeregisterMember",
        FileJob::ReadExitReport { .. } => "FileJob::ReadExitReport",
        FileJob::ScanTasks { .. } => "FileJob::ScanTasks",
        FileJob::ScanInbox { .. } => "FileJob::ScanInbox",
        FileJob::ScanRequests { .. } => "FileJob::ScanRequests",
        FileJob::WriteAnswer { .. } => "FileJob::WriteAnswer",
        FileJob::ApplyModeChange { .. } => "FileJob::ApplyModeChange",
        FileJob::SavePolicy { .. } => "FileJob::SavePolicy",
        FileJob::WriteMode { .. } => "FileJob::WriteMode",
        FileJob::WriteActivity { .. } => "FileJob::WriteActivity",
        FileJob::CheckConfig { .. } => "FileJob::CheckConfig",
        FileJob::WriteHiddenPanes { .. } => "FileJob::WriteHiddenPanes",
        FileJob::AwaitLogged { .. } => "FileJob::AwaitLogged",
        FileJob::AwaitLoggedForMirror { .. } => "FileJob::AwaitLoggedForMirror",
        FileJob::ListTeams => "FileJob::ListTeams",
        FileJob::FindTeam { .. } => "FileJob::FindTeam",
        FileJob::ReadOutputTimes { .. } => "FileJob::ReadOutputTimes",
        FileJob::ReplyWhenSaved { .. } => "FileJob::ReplyWhenSaved",
        FileJob::WriteLeadSession { .. } => "FileJob::WriteLeadSession",
        FileJob::ProbeWatcher => "FileJob::ProbeWatcher",
        FileJob::RescanFiles { .. } => "FileJob::RescanFiles",
        FileJob::FindMissingMessages { .. } => "FileJob::FindMissingMessages",
        FileJob::AcknowledgeExit { .. } => "FileJob::AcknowledgeExit",
        FileJob::AwaitStopRecorded { .. } => "FileJob::AwaitStopRecorded",
        FileJob::ConfirmWorktreeRecorded { .. } => "FileJob::ConfirmWorktreeRecorded",
        FileJob::CheckDeletable { .. } => "FileJob::CheckDeletable",
        FileJob::DeleteTeam { .. } => "FileJob::DeleteTeam",
    }
}

fn file_result_name(result: &FileResult) -> &'static str {
    match result {
        FileResult::OutputTimes { .. } => "FileResult::OutputTimes",
        FileResult::ReplyReady { .. } => "FileResult::ReplyReady",
        FileResult::RosterNotSaved(_) => "FileResult::RosterNotSaved",
        FileResult::TeamCreated { .. } => "FileResult::TeamCreated",
        FileResult::MemberRegistered { .. } => "FileResult::MemberRegistered",
        FileResult::ShutdownRequestSent { .. } => "FileResult::ShutdownRequestSent",
        FileResult::ShutdownAnswers { .. } => "FileResult::ShutdownAnswers",
        FileResult::MemberDeregistered { .. } => "FileResult::MemberDeregistered",
        FileResult::ExitReportRead { .. } => "FileResult::ExitReportRead",
        FileResult::TasksScanned { .. } => "FileResult::TasksScanned",
        FileResult::InboxScanned { .. } => "FileResult::InboxScanned",
        FileResult::ConfigChecked { .. } => "FileResult::ConfigChecked",
        FileResult::ModeSet { .. } => "FileResult::ModeSet",
        FileResult::PolicySaved { .. } => "FileResult::PolicySaved",
        FileResult::RequestsScanned { .. } => "FileResult::RequestsScanned",
        FileResult::AnswerWritten { .. } => "FileResult::AnswerWritten",
        FileResult::ExitAcknowledged { .. } => "FileResult::ExitAcknowledged",
        FileResult::StopRecorded { .. } => "FileResult::StopRecorded",
        FileResult::WorktreeRecorded { .. } => "FileResult::WorktreeRecorded",
        FileResult::Logged { .. } => "FileResult::Logged",
        FileResult::LoggedForMirror { .. } => "FileResult::LoggedForMirror",
        FileResult::RecordNotWritten { .. } => "FileResult::RecordNotWritten",
        FileResult::TeamsListed { .. } => "FileResult::TeamsListed",
        FileResult::TeamFound { .. } => "FileResult::TeamFound",
        FileResult::HiddenPanesWritten { .. } => "FileResult::HiddenPanesWritten",
        FileResult::DeletableChecked { .. } => "FileResult::DeletableChecked",
        FileResult::TeamDeleted { .. } => "FileResult::TeamDeleted",
    }
}

fn pane_job_name(job: &PaneJob) -> &'static str {
    match job {
        PaneJob::OpenPane { .. } => "PaneJob::OpenPane",
        PaneJob::SetLabel { .. } => "PaneJob::SetLabel",
        PaneJob::InspectPane { .. } => "PaneJob::InspectPane",
        PaneJob::ClosePane { .. } => "PaneJob::ClosePane",
        PaneJob::NotifyAttached { .. } => "PaneJob::NotifyAttached",
        PaneJob::MovePane { .. } => "PaneJob::MovePane",
        PaneJob::CheckHiddenPanes { .. } => "PaneJob::CheckHiddenPanes",
        PaneJob::ApplyLayout { .. } => "PaneJob::ApplyLayout",
        PaneJob::CapturePane { .. } => "PaneJob::CapturePane",
        PaneJob::FindDialogs { .. } => "PaneJob::FindDialogs",
        PaneJob::MoveOutForeigners => "PaneJob::MoveOutForeigners",
        PaneJob::Iterm2(Iterm2Job::Open(_)) => "Iterm2Job::Open",
        PaneJob::Iterm2(Iterm2Job::Inspect { .. }) => "Iterm2Job::Inspect",
        PaneJob::Iterm2(Iterm2Job::Close { .. }) => "Iterm2Job::Close",
        PaneJob::Iterm2(Iterm2Job::Capture { .. }) => "Iterm2Job::Capture",
    }
}

fn pane_result_name(result: &PaneResult) -> &'static str {
    match result {
        PaneResult::PaneOpened { .. } => "PaneResult::PaneOpened",
        PaneResult::AttachedNotified { .. } => "PaneResult::AttachedNotified",
        PaneResult::PaneInspected { .. } => "PaneResult::PaneInspected",
        PaneResult::PaneClosed { .. } => "PaneResult::PaneClosed",
        PaneResult::PaneMoved { .. } => "PaneResult::PaneMoved",
        PaneResult::PanesVisible { .. } => "PaneResult::PanesVisible",
        PaneResult::LayoutApplied { .. } => "PaneResult::LayoutApplied",
        PaneResult::PaneCaptured { .. } => "PaneResult::PaneCaptured",
        PaneResult::DialogsFound { .. } => "PaneResult::DialogsFound",
    }
}

fn worktree_job_name(job: &WorktreeJob) -> &'static str {
    match job {
        WorktreeJob::Propose { .. } => "WorktreeJob::Propose",
        WorktreeJob::Fill(_) => "WorktreeJob::Fill",
        WorktreeJob::CheckUnsaved { .. } => "WorktreeJob::CheckUnsaved",
        WorktreeJob::RemoveAll { .. } => "WorktreeJob::RemoveAll",
    }
}

fn worktree_result_name(result: &WorktreeResult) -> &'static str {
    match result {
        WorktreeResult::Proposed { .. } => "WorktreeResult::Proposed",
        WorktreeResult::Filled { .. } => "WorktreeResult::Filled",
        WorktreeResult::UnsavedChecked { .. } => "WorktreeResult::UnsavedChecked",
        WorktreeResult::RemovedAll { .. } => "WorktreeResult::RemovedAll",
    }
}

fn request_name(request: &Request) -> &'static str {
    match request {
        Request::Status => "Request::Status",
        Request::StatusWithScreens => "Request::StatusWithScreens",
        Request::CreateTeam(_) => "Request::CreateTeam",
        Request::CreateWorktree(_) => "Request::CreateWorktree",
        Request::Spawn(_) => "Request::Spawn",
        Request::Shutdown(_) => "Request::Shutdown",
        Request::Kill(_) => "Request::Kill",
        Request::Interrupt(_) => "Request::Interrupt",
        Request::SetMode(_) => "Request::SetMode",
        Request::SetPolicy(_) => "Request::SetPolicy",
        Request::DeleteTeam(_) => "Request::DeleteTeam",
        Request::LocatePane(_) => "Request::LocatePane",
        Request::CapturePane(_) => "Request::CapturePane",
        Request::HidePane(_) => "Request::HidePane",
        Request::ShowPane(_) => "Request::ShowPane",
        Request::SetLayout(_) => "Request::SetLayout",
        Request::SetPersonPane(_) => "Request::SetPersonPane",
        Request::NextTask(_) => "Request::NextTask",
        Request::ReportActivity(_) => "Request::ReportActivity",
        Request::ReportHook(_) => "Request::ReportHook",
        Request::LongPoll(_) => "Request::LongPoll",
        Request::SetLead(_) => "Request::SetLead",
        Request::StopDaemon => "Request::StopDaemon",
        Request::StopDaemonAndSuspend => "Request::StopDaemonAndSuspend",
        Request::ResumeMembers(_) => "Request::ResumeMembers",
        Request::PlaceMember(_) => "Request::PlaceMember",
        Request::UseHost(_) => "Request::UseHost",
        Request::AwaitHost(_) => "Request::AwaitHost",
        Request::TakeHome(_) => "Request::TakeHome",
        Request::MoveHome(_) => "Request::MoveHome",
        Request::ForgetHost(_) => "Request::ForgetHost",
        Request::ConfirmTask(_) => "Request::ConfirmTask",
        Request::ConnectHome(_) => "Request::ConnectHome",
        Request::ConnectShim(_) => "Request::ConnectShim",
    }
}

fn response_name(response: &Response) -> &'static str {
    match response {
        Response::Done(_) => "Response::Done",
        Response::Failed(_) => "Response::Failed",
    }
}

fn shim_message_name(message: &ToShim) -> &'static str {
    match message {
        ToShim::StartAgent(_) => "ToShim::StartAgent",
        ToShim::Adopted => "ToShim::Adopted",
        ToShim::Refused => "ToShim::Refused",
        ToShim::End { .. } => "ToShim::End",
        ToShim::Interrupt => "ToShim::Interrupt",
        ToShim::HoldTurns { .. } => "ToShim::HoldTurns",
        ToShim::ContinueTurns => "ToShim::ContinueTurns",
        ToShim::ExitRecorded => "ToShim::ExitRecorded",
    }
}

fn shim_report_name(report: &FromShim) -> &'static str {
    match report {
        FromShim::Started { .. } => "FromShim::Started",
        FromShim::Failed(_) => "FromShim::Failed",
        FromShim::TurnStatus(_) => "FromShim::TurnStatus",
        FromShim::Interrupted { .. } => "FromShim::Interrupted",
        FromShim::Exited(_) => "FromShim::Exited",
    }
}

fn hook_event_name(event: &HookEvent) -> &'static str {
    match event {
        HookEvent::SessionStarted => "HookEvent::SessionStarted",
        HookEvent::TurnStarted { .. } => "HookEvent::TurnStarted",
        HookEvent::PromptRead => "HookEvent::PromptRead",
        HookEvent::TurnEnded => "HookEvent::TurnEnded",
        HookEvent::DialogShown { .. } => "HookEvent::DialogShown",
        HookEvent::SessionEnded => "HookEvent::SessionEnded",
    }
}

//! What the worlds have gone through: which events, jobs, effects and words, of all that there are.
//!
//! Each is named in a match that knows every variant, and the list of all is read out of this file itself: so a new
//! variant does not compile until it has a name here, and fails the test until a world goes through it.

use crate::effect::Effect;
use crate::event::Event;
use crate::files::{FileDone, FileJob};
use crate::panes::{PaneDone, PaneJob};
use crate::worktrees::{TreeDone, TreeJob};
use protocol::control::{FromShim, HookEvent, Request, Response, ToShim};
use std::collections::BTreeSet;

/// The names of what has been seen.
#[derive(Debug, Default)]
pub(super) struct Seen(pub(super) BTreeSet<&'static str>);

/// Every name there is.
pub(super) fn all() -> BTreeSet<&'static str> {
    let arms = include_str!("seen.rs").split("=> \"").filter_map(|arm| Some(arm.split_once('"')?.0));
    arms.filter(|name| name.contains("::") && !name.contains(' ')).collect()
}

impl Seen {
    pub(super) fn event(&mut self, event: &Event) {
        self.0.insert(of_event(event));
        self.0.extend(match event {
            Event::Request { call, .. } => Some(of_request(&call.request)),
            Event::JoinSaid { said, .. } => Some(of_report(said)),
            Event::Filed(done) => Some(of_file_done(done)),
            Event::Paned(done) => Some(of_pane_done(done)),
            Event::Worktree(done) => Some(of_tree_done(done)),
            _ => None,
        });
        if let Event::Request { call, .. } = event
            && let Request::ReportHook(hooked) = &call.request
        {
            self.0.insert(of_said(&hooked.event));
        }
    }

    pub(super) fn effect(&mut self, effect: &Effect) {
        self.0.insert(of_effect(effect));
        self.0.extend(match effect {
            Effect::Tell { word, .. } => Some(of_word(word)),
            Effect::Worktree(job) => Some(of_tree_job(job)),
            Effect::Reply { response, .. } => Some(of_response(response)),
            _ => None,
        });
    }

    pub(super) fn pane_job(&mut self, job: &PaneJob) {
        self.0.insert(of_pane_job(job));
    }

    /// One that the thread does; some come from elsewhere than the step.
    pub(super) fn job(&mut self, job: &FileJob) {
        self.0.insert(of_file_job(job));
    }
}

fn of_event(event: &Event) -> &'static str {
    match event {
        Event::Request { .. } => "Event::Request",
        Event::Unreadable { .. } => "Event::Unreadable",
        Event::Launched { .. } => "Event::Launched",
        Event::Joined { .. } => "Event::Joined",
        Event::JoinSaid { .. } => "Event::JoinSaid",
        Event::Closed { .. } => "Event::Closed",
        Event::Died { .. } => "Event::Died",
        Event::InboxChanged { .. } => "Event::InboxChanged",
        Event::TasksChanged { .. } => "Event::TasksChanged",
        Event::ConfigChanged { .. } => "Event::ConfigChanged",
        Event::SessionChanged { .. } => "Event::SessionChanged",
        Event::WatchProven => "Event::WatchProven",
        Event::Marked { .. } => "Event::Marked",
        Event::Unmarked => "Event::Unmarked",
        Event::Watched { .. } => "Event::Watched",
        Event::Unwatched => "Event::Unwatched",
        Event::Root(_) => "Event::Root",
        Event::Overflow => "Event::Overflow",
        Event::Filed(_) => "Event::Filed",
        Event::Paned(_) => "Event::Paned",
        Event::Worktree(_) => "Event::Worktree",
        Event::Deadline => "Event::Deadline",
        Event::Signal(_) => "Event::Signal",
    }
}

fn of_effect(effect: &Effect) -> &'static str {
    match effect {
        Effect::Reply { .. } => "Effect::Reply",
        Effect::Tell { .. } => "Effect::Tell",
        Effect::HangUp { .. } => "Effect::HangUp",
        Effect::Adopt { .. } => "Effect::Adopt",
        Effect::Watch { .. } => "Effect::Watch",
        Effect::WatchLives => "Effect::WatchLives",
        Effect::Wake { .. } => "Effect::Wake",
        Effect::KillJoin { .. } => "Effect::KillJoin",
        Effect::Forget { .. } => "Effect::Forget",
        Effect::WatchRoot => "Effect::WatchRoot",
        Effect::WatchTeam { .. } => "Effect::WatchTeam",
        Effect::UnwatchTeam { .. } => "Effect::UnwatchTeam",
        Effect::SayWatched { .. } => "Effect::SayWatched",
        Effect::Mark { .. } => "Effect::Mark",
        Effect::File(_) => "Effect::File",
        Effect::Pane(_) => "Effect::Pane",
        Effect::Worktree(_) => "Effect::Worktree",
        Effect::Launch { .. } => "Effect::Launch",
        Effect::Ring { .. } => "Effect::Ring",
        Effect::Log(_) => "Effect::Log",
        Effect::Exit => "Effect::Exit",
    }
}

fn of_file_job(job: &FileJob) -> &'static str {
    match job {
        FileJob::Roster(_) => "FileJob::Roster",
        FileJob::Log(_) => "FileJob::Log",
        FileJob::Create { .. } => "FileJob::Create",
        FileJob::Environment { .. } => "FileJob::Environment",
        FileJob::Register { .. } => "FileJob::Register",
        FileJob::Ask { .. } => "FileJob::Ask",
        FileJob::Answers { .. } => "FileJob::Answers",
        FileJob::Farewell { .. } => "FileJob::Farewell",
        FileJob::LastWords { .. } => "FileJob::LastWords",
        FileJob::Tasks { .. } => "FileJob::Tasks",
        FileJob::Inbox { .. } => "FileJob::Inbox",
        FileJob::Requests { .. } => "FileJob::Requests",
        FileJob::Answer { .. } => "FileJob::Answer",
        FileJob::Mode { .. } => "FileJob::Mode",
        FileJob::Policy { .. } => "FileJob::Policy",
        FileJob::ModeIs { .. } => "FileJob::ModeIs",
        FileJob::Activity { .. } => "FileJob::Activity",
        FileJob::Config { .. } => "FileJob::Config",
        FileJob::Hidden { .. } => "FileJob::Hidden",
        FileJob::Sessions => "FileJob::Sessions",
        FileJob::Written { .. } => "FileJob::Written",
        FileJob::Settled { .. } => "FileJob::Settled",
        FileJob::LeadSession { .. } => "FileJob::LeadSession",
        FileJob::Probe => "FileJob::Probe",
        FileJob::Rescan { .. } => "FileJob::Rescan",
        FileJob::Heard { .. } => "FileJob::Heard",
        FileJob::Recorded { .. } => "FileJob::Recorded",
        FileJob::MayDelete { .. } => "FileJob::MayDelete",
        FileJob::Delete { .. } => "FileJob::Delete",
    }
}

fn of_file_done(done: &FileDone) -> &'static str {
    match done {
        FileDone::Written { .. } => "FileDone::Written",
        FileDone::Settled { .. } => "FileDone::Settled",
        FileDone::Unsaved(_) => "FileDone::Unsaved",
        FileDone::Created { .. } => "FileDone::Created",
        FileDone::Registered { .. } => "FileDone::Registered",
        FileDone::Asked { .. } => "FileDone::Asked",
        FileDone::Answers { .. } => "FileDone::Answers",
        FileDone::Farewelled { .. } => "FileDone::Farewelled",
        FileDone::LastWords { .. } => "FileDone::LastWords",
        FileDone::Tasks { .. } => "FileDone::Tasks",
        FileDone::Inbox { .. } => "FileDone::Inbox",
        FileDone::Config { .. } => "FileDone::Config",
        FileDone::ModeSet { .. } => "FileDone::ModeSet",
        FileDone::PolicySet { .. } => "FileDone::PolicySet",
        FileDone::Requests { .. } => "FileDone::Requests",
        FileDone::Answered { .. } => "FileDone::Answered",
        FileDone::Heard { .. } => "FileDone::Heard",
        FileDone::Recorded { .. } => "FileDone::Recorded",
        FileDone::Sessions { .. } => "FileDone::Sessions",
        FileDone::Noted { .. } => "FileDone::Noted",
        FileDone::MayDelete { .. } => "FileDone::MayDelete",
        FileDone::Deleted { .. } => "FileDone::Deleted",
    }
}

fn of_pane_job(job: &PaneJob) -> &'static str {
    match job {
        PaneJob::Open { .. } => "PaneJob::Open",
        PaneJob::Label { .. } => "PaneJob::Label",
        PaneJob::Look { .. } => "PaneJob::Look",
        PaneJob::Close { .. } => "PaneJob::Close",
        // act.rs makes it of a notice.
        PaneJob::Announce { .. } => "PaneJob::Announce",
        PaneJob::Move { .. } => "PaneJob::Move",
        PaneJob::Hidden { .. } => "PaneJob::Hidden",
        PaneJob::LayOut { .. } => "PaneJob::LayOut",
        PaneJob::Keys { .. } => "PaneJob::Keys",
        PaneJob::Capture { .. } => "PaneJob::Capture",
        PaneJob::Dialogs { .. } => "PaneJob::Dialogs",
    }
}

fn of_pane_done(done: &PaneDone) -> &'static str {
    match done {
        PaneDone::Opened { .. } => "PaneDone::Opened",
        PaneDone::Announced { .. } => "PaneDone::Announced",
        PaneDone::Looked { .. } => "PaneDone::Looked",
        PaneDone::Closed { .. } => "PaneDone::Closed",
        PaneDone::Moved { .. } => "PaneDone::Moved",
        PaneDone::InSight { .. } => "PaneDone::InSight",
        PaneDone::LaidOut { .. } => "PaneDone::LaidOut",
        PaneDone::Keyed { .. } => "PaneDone::Keyed",
        PaneDone::Captured { .. } => "PaneDone::Captured",
        PaneDone::Dialogs { .. } => "PaneDone::Dialogs",
    }
}

fn of_tree_job(job: &TreeJob) -> &'static str {
    match job {
        TreeJob::Plan { .. } => "TreeJob::Plan",
        TreeJob::Add(_) => "TreeJob::Add",
        TreeJob::Look { .. } => "TreeJob::Look",
        TreeJob::Sweep { .. } => "TreeJob::Sweep",
    }
}

fn of_tree_done(done: &TreeDone) -> &'static str {
    match done {
        TreeDone::Planned { .. } => "TreeDone::Planned",
        TreeDone::Added { .. } => "TreeDone::Added",
        TreeDone::Looked { .. } => "TreeDone::Looked",
        TreeDone::Swept { .. } => "TreeDone::Swept",
    }
}

fn of_request(request: &Request) -> &'static str {
    match request {
        Request::Status => "Request::Status",
        Request::StatusWithScreens => "Request::StatusOnScreen",
        Request::CreateTeam(_) => "Request::Create",
        Request::CreateWorktree(_) => "Request::Worktree",
        Request::Spawn(_) => "Request::Spawn",
        Request::Shutdown(_) => "Request::Shutdown",
        Request::Kill(_) => "Request::Kill",
        Request::Interrupt(_) => "Request::Interrupt",
        Request::SetMode(_) => "Request::SetMode",
        Request::SetPolicy(_) => "Request::SetPolicy",
        Request::DeleteTeam(_) => "Request::Delete",
        Request::LocatePane(_) => "Request::Locate",
        Request::CapturePane(_) => "Request::Capture",
        Request::HidePane(_) => "Request::Hide",
        Request::ShowPane(_) => "Request::Show",
        Request::SetLayout(_) => "Request::Layout",
        Request::NextTask(_) => "Request::NextTask",
        Request::ReportActivity(_) => "Request::Activity",
        Request::ReportHook(_) => "Request::Hook",
        Request::LongPoll(_) => "Request::Park",
        Request::TypeInPane(_) => "Request::Keys",
        Request::SetLead(_) => "Request::Lead",
        Request::StopDaemon => "Request::Down",
        Request::StopDaemonAndSuspend => "Request::Rest",
        Request::ResumeMembers(_) => "Request::BringBack",
        Request::ConnectShim(_) => "Request::Join",
    }
}

fn of_response(response: &Response) -> &'static str {
    match response {
        Response::Done(_) => "Response::Done",
        Response::Failed(_) => "Response::Failed",
    }
}

fn of_word(word: &ToShim) -> &'static str {
    match word {
        ToShim::StartAgent(_) => "ToJoin::Go",
        ToShim::Adopted => "ToJoin::Adopted",
        ToShim::Refused => "ToJoin::Refused",
        ToShim::End { .. } => "ToJoin::End",
        ToShim::Interrupt => "ToJoin::Interrupt",
        ToShim::ExitRecorded => "ToJoin::Noted",
    }
}

fn of_report(said: &FromShim) -> &'static str {
    match said {
        FromShim::Started { .. } => "FromJoin::Started",
        FromShim::Failed { .. } => "FromJoin::Failed",
        FromShim::TurnStatus(_) => "FromJoin::Turn",
        FromShim::Interrupted { .. } => "FromJoin::Interrupted",
        FromShim::Exited(_) => "FromJoin::Ended",
    }
}

fn of_said(said: &HookEvent) -> &'static str {
    match said {
        HookEvent::SessionStarted => "Said::Session",
        HookEvent::TurnStarted { .. } => "Said::Began",
        HookEvent::PromptRead => "Said::PromptRead",
        HookEvent::TurnEnded => "Said::Ended",
        HookEvent::DialogShown { .. } => "Said::Dialog",
        HookEvent::SessionEnded => "Said::SessionEnded",
    }
}

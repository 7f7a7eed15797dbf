//! Jobs for the links to other hosts, and what the links report.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use mirror::{FileChange, MirrorNotice, TaskCheck};
use protocol::annex_link::HomeBudget;
use protocol::control_socket::{ConfirmTaskRequest, ConnectHomeRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::HomeUsage;
use std::collections::BTreeSet;

/// One link to another host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkId {
    /// This host is the home of teams. The link goes to this annex.
    ToAnnex(HostName),
    /// This host is an annex. The link comes from this home.
    ToHome(ConnectHomeRequest),
}

/// A job for the links.
#[derive(Debug)]
pub(crate) enum HostJob {
    /// Connect to a host, and mirror a team there.
    UseHost { host: HostName, command: Vec<String>, attempt: ConnectAttempt, team: TeamName, barrier: u64 },
    /// End the link to a host, forget it, deregister its members and release their tasks.
    ForgetHost(HostName),
    /// Use the connection of a client as the link to its home.
    AcceptHome { client: ConnId, home: ConnectHomeRequest },
    /// A job for the mirrors of a link.
    Mirror { link: LinkId, job: MirrorJob },
}

/// When a link that exists connects again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectAttempt {
    /// At once.
    Now,
    /// When it would connect anyway. The link has a connection, or is making one.
    WhenDue,
}

/// A job of a link between this host and another. The link mirrors team files: it copies changes in
/// both directions. The jobs of a link run in order. A job that has failed is repeated before the
/// next job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MirrorJob {
    /// Begin to mirror a team, and send a barrier afterwards.
    AddTeam { team: TeamName, barrier: u64 },
    /// Forget a team that was deleted.
    RemoveTeam(TeamName),
    /// At the annex: end the mirror of a team, because another home has the team now.
    EndTeam(TeamName),
    /// At the annex: end the mirrors of a link that the home has forgotten.
    EndTeams,
    /// At the annex: make this host the home of the team, so that the mirror becomes the team's
    /// true files. If the job fails, `client` gets the error. The job is repeated with `None` as
    /// `client`.
    TakeTeam { client: Option<ConnId>, team: TeamName },
    /// At the home: begin to move the home to the annex, and send a barrier.
    BeginMove { team: TeamName, barrier: u64 },
    /// At the home: end a move that the annex was not told of.
    CancelMove(TeamName),
    /// At the home: tell the annex to be the home, and what the team has used.
    OfferHome { team: TeamName, usage: HomeUsage },
    /// Compare a changed file with what the other host has.
    Compare { team: TeamName, change: FileChange },
    /// Compare all files.
    CompareAll,
    /// Send a barrier.
    SendBarrier(u64),
    /// Note that the link keeps the items up to this number.
    NoteAccepted(u64),
    /// At the annex: send events that it has logged.
    SendEvents { team: TeamName, events: Vec<Event> },
    /// At the home: send the budget of a team.
    SendBudget { team: TeamName, budget: HomeBudget },
    /// At the home: note that its event log has the events of the annex up to this number.
    NoteEventsLogged { team: TeamName, number: u64 },
    /// Compare a task, and find out whether the home has decided about its changes.
    CheckTask { client: ConnId, request: ConfirmTaskRequest },
}

/// What a link reports.
#[derive(Debug)]
pub(crate) enum HostEvent {
    /// These teams are mirrored now.
    TeamsChanged(BTreeSet<TeamName>),
    /// A file of the link, or a team file that the link copies between the hosts, cannot be read or
    /// written here. The link tries again, unless the link itself could not be opened.
    Failed(ErrorReport),
    /// The link works.
    Connected,
    /// The link has no connection.
    Disconnected { reason: String },
    /// The result of [`MirrorJob::TakeTeam`].
    TeamTaken { client: ConnId, result: Result<(), ErrorReport> },
    /// A [`MirrorJob::BeginMove`] has failed.
    MoveFailed { team: TeamName, error: ErrorReport },
    /// A [`MirrorJob::CancelMove`] is done.
    MoveCancelled(TeamName),
    /// A [`MirrorJob::CancelMove`] has failed. It runs again.
    CancelFailed { team: TeamName, error: ErrorReport },
    /// The result of [`HostJob::ForgetHost`].
    Forgotten(Result<(), ErrorReport>),
    /// The other host cannot write its files, for this reason, or can again.
    StorageThere { error: Option<String> },
    /// A team can't be mirrored, because its files can't be read.
    TeamNotAdded { team: TeamName, error: ErrorReport },
    /// A notice of the mirrors.
    Notice(MirrorNotice),
    /// The result of [`MirrorJob::CheckTask`]. An error if the member does not own the task.
    TaskChecked { client: ConnId, result: Result<TaskCheck, ErrorReport> },
}

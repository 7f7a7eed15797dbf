//! Decides what the record of a team gets: everything that comes from outside, and the events of
//! the team. A files thread writes the record, and masks secrets.
//!
//! Calls are recorded where they are accepted (`record_call`), and tasks where a scan finds their
//! changes. All else is recorded here: reports and messages before their event is handled, and
//! events of the event log after it. What follows from the files of the daemon alone, such as the
//! tasks that track members, is not recorded.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::PaneResult;
use crate::core::jobs::team_record_lines::{RecordBatch, RecordItem};
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{
    Call, CreateTeamReply, CreateTeamRequest, ExitReport, FromShim, Request, ResumeMembersRequest, ShimHello,
};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_file::Message;
use protocol::state_file_names::RECORDS_DIR;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::{RECORD_VERSION, RecordEntry};
use protocol::timestamp::iso8601;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How long after the end of a turn its output is read, in milliseconds. tmux writes the output of a
/// pane to the log by another process, which may be late.
const OUTPUT_DELAY_MS: u64 = 300;

/// The record of a team.
#[derive(Debug)]
pub(crate) struct TeamRecord {
    /// The name of its file in the directory of records.
    pub(crate) file: String,
    stage: RecordStage,
    /// When the output of members is read, in milliseconds on the monotonic clock.
    output_due: BTreeMap<MemberName, u64>,
}

impl TeamRecord {
    pub(crate) fn new(file: String) -> TeamRecord {
        TeamRecord { file, stage: RecordStage::Open, output_due: BTreeMap::new() }
    }

    /// Whether the team is recorded: it was not deleted.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == RecordStage::Open
    }
}

/// Whether a record gets further lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordStage {
    Open,
    /// The team is deleted. The record gets only output that is still due.
    Ending,
}

/// Whether a team is recorded.
pub(crate) fn is_recorded(state: &State, team: &TeamName) -> bool {
    state.team_records.get(team).is_some_and(TeamRecord::is_open)
}

/// The path of the record of a team. `None` if the team is not recorded.
pub(crate) fn record_path(state: &State, team: &TeamName) -> Option<PathBuf> {
    let record = state.team_records.get(team).filter(|record| record.is_open())?;
    Some(state.settings.state_dir.join(RECORDS_DIR).join(&record.file))
}

/// Starts the record of a team that was created by `request`, if the reply names one. The record of
/// an earlier team of the same name ends.
pub(crate) fn start_record(context: &mut Context, request: CreateTeamRequest, reply: &CreateTeamReply) {
    let team = &reply.team_name;
    context.state.team_records.remove(team);
    let file = reply.record.as_ref().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let Some(file) = file else { return };
    context.state.team_records.insert(team.clone(), TeamRecord::new(file));
    add(context, team, RecordEntry::Start { version: RECORD_VERSION, team: team.clone() });
    let request = Box::new(Request::CreateTeam(request));
    add(context, team, RecordEntry::Call { caller: None, request });
}

/// Records a call that is accepted, unless it only reads. A call to the whole daemon is in the
/// records of all teams.
pub(crate) fn record_call(context: &mut Context, call: &Call) {
    if context.state.team_records.is_empty() {
        return;
    }
    let caller = context.state.agents.values().find(|agent| call.token.as_ref() == Some(&agent.record.token));
    let own_team = caller.map(|agent| agent.record.request.team.clone());
    let caller = caller.map(|agent| agent.record.request.name.clone());
    for team in teams_of_call(context.state, &call.request, own_team) {
        let request = Box::new(call.request.clone());
        add(context, &team, RecordEntry::Call { caller: caller.clone(), request });
    }
}

/// The teams in whose records a call is. `own_team` is the team of the agent that calls.
fn teams_of_call(state: &State, request: &Request, own_team: Option<TeamName>) -> Vec<TeamName> {
    match request {
        Request::Status
        | Request::StatusWithScreens
        | Request::LocatePane(_)
        | Request::CapturePane(_)
        | Request::LongPoll(_)
        | Request::ConnectShim(_)
        | Request::CreateTeam(_) => Vec::new(),
        Request::StopDaemon
        | Request::StopDaemonAndSuspend
        | Request::ResumeMembers(ResumeMembersRequest { team: None }) => {
            state.team_records.keys().cloned().collect()
        }
        Request::ReportHook(report) => report.leads_team.clone().or(own_team).into_iter().collect(),
        Request::ReportActivity(_) => own_team.into_iter().collect(),
        request => request.team().cloned().into_iter().collect(),
    }
}

/// Records what an event says, before it is handled.
pub(crate) fn record_event(context: &mut Context, event: &CoreEvent) {
    if context.state.team_records.is_empty() {
        return;
    }
    match event {
        CoreEvent::ShimConnected { hello, .. } => record_hello(context, hello),
        CoreEvent::ShimReported { conn, report } => {
            let agent = context.state.agent_by_conn(*conn);
            if let Some(id) = agent.map(|agent| agent.record.spawn_id.clone()) {
                record_report(context, &id, report.clone());
            }
        }
        CoreEvent::FileJobDone(FileResult::ExitReportRead { spawn, report }) => {
            let report = report.clone().unwrap_or(ExitReport::ShimKilled);
            record_report(context, spawn, FromShim::Exited(report));
        }
        CoreEvent::FileJobDone(FileResult::InboxScanned { team, inbox, result: Ok(scan) }) => {
            record_messages(context, team, &MemberName::new_unchecked(inbox), &scan.messages);
        }
        CoreEvent::PaneJobDone(PaneResult::PaneClosed { spawn, .. }) => {
            if let Some((team, member)) = member_of_spawn(context.state, spawn) {
                schedule_output(context, &team, member);
            }
        }
        _ => {}
    }
}

/// Records what a shim reports when it connects: the start of its agent if an earlier daemon has
/// missed it, and the turn. The files thread drops a turn that the record has already.
fn record_hello(context: &mut Context, hello: &ShimHello) {
    let id = SpawnId::from_peer(&hello.spawn_id);
    let Some(agent) = context.state.agents.get(&id) else { return };
    let is_starting = matches!(agent.record.lifecycle, Lifecycle::Starting(_));
    let started = hello.agent_pid.filter(|_| is_starting).map(|pid| FromShim::Started { pid });
    let turn = hello.turn_status.clone().map(FromShim::TurnStatus);
    started.into_iter().chain(turn).for_each(|report| record_report(context, &id, report));
}

fn record_report(context: &mut Context, id: &SpawnId, report: FromShim) {
    let Some((team, member)) = member_of_spawn(context.state, id) else { return };
    if matches!(report, FromShim::Exited(_)) {
        schedule_output(context, &team, member.clone());
    }
    add(context, &team, RecordEntry::Report { member, report });
}

fn record_messages(
    context: &mut Context,
    team: &TeamName,
    inbox: &MemberName,
    messages: &[(usize, Message)],
) {
    for (index, message) in messages {
        let entry = RecordEntry::Message { inbox: inbox.clone(), index: *index, message: message.clone() };
        add(context, team, entry);
    }
}

/// Records the events among the effects, after an event was handled. Queues one job for each team.
pub(crate) fn record_effects(context: &mut Context) {
    if context.state.team_records.is_empty() {
        return context.record_items.clear();
    }
    let events: Vec<Event> = context.effects.events().cloned().collect();
    for event in events {
        record_logged_event(context, event);
    }
    record_due_outputs(context);
    let mut items: BTreeMap<TeamName, Vec<RecordItem>> = BTreeMap::new();
    for (team, item) in std::mem::take(&mut context.record_items) {
        items.entry(team).or_default().push(item);
    }
    for (team, items) in items {
        let Some(record) = context.state.team_records.get(&team) else { continue };
        let batch = RecordBatch { file: record.file.clone(), at: context.now.wall, items, team };
        context.effects.push(Effect::File(FileJob::AppendToRecord(Box::new(batch))));
    }
    forget_ended_records(context);
}

/// Forgets the records of deleted teams that have all output, and ends the threads that wrote them.
fn forget_ended_records(context: &mut Context) {
    let records = context.state.team_records.iter();
    let ended = records.filter(|(_, record)| !record.is_open() && record.output_due.is_empty());
    for team in ended.map(|(team, _)| team.clone()).collect::<Vec<_>>() {
        context.state.team_records.remove(&team);
        if !context.state.teams.contains_key(&team) {
            context.effects.push(Effect::UnwatchTeam { team });
        }
    }
}

fn record_logged_event(context: &mut Context, event: Event) {
    let Some(team) = event.team.clone() else { return };
    match (&event.kind, &event.member) {
        (EventKind::TaskDeleted { task }, _) => {
            context.record_items.push((team.clone(), RecordItem::TaskRemoved(*task)));
        }
        // The output of the turn before is read before the next turn adds to it.
        (EventKind::MemberActive { .. }, Some(member)) => read_output(context, &team, member.clone()),
        (EventKind::MemberIdle { .. } | EventKind::MemberExited { .. }, Some(member)) => {
            schedule_output(context, &team, member.clone());
        }
        _ => {}
    }
    let is_deleted = event.kind == EventKind::TeamDeleted;
    let event = Event { time: iso8601(context.now.wall), ..event }.with_short_texts();
    add(context, &team, RecordEntry::Event { event: Box::new(event) });
    if let Some(record) = context.state.team_records.get_mut(&team).filter(|_| is_deleted) {
        record.stage = RecordStage::Ending;
        context.state.has_roster_changed = true;
    }
}

fn schedule_output(context: &mut Context, team: &TeamName, member: MemberName) {
    let record = context.state.team_records.get_mut(team);
    if let Some(record) = record.filter(|record| record.is_open()) {
        record.output_due.insert(member, context.now.mono + OUTPUT_DELAY_MS);
    }
}

/// Reads the output of members whose time has come, and of all members if the daemon ends.
fn record_due_outputs(context: &mut Context) {
    let is_last = context.effects.is_exit();
    let is_due = |due: u64| is_last || due <= context.now.mono;
    let records = context.state.team_records.iter();
    let outputs = records.flat_map(|(team, record)| {
        let members = record.output_due.iter().filter(|(_, due)| is_due(**due));
        members.map(|(member, _)| (team.clone(), member.clone()))
    });
    for (team, member) in outputs.collect::<Vec<_>>() {
        read_output(context, &team, member);
    }
}

fn read_output(context: &mut Context, team: &TeamName, member: MemberName) {
    let Some(record) = context.state.team_records.get_mut(team) else { return };
    record.output_due.remove(&member);
    let log = context.state.settings.output_log(team, &member);
    context.record_items.push((team.clone(), RecordItem::Output { member, log }));
}

/// When the next output must be read, in milliseconds on the monotonic clock.
pub(crate) fn next_output_deadline(state: &State) -> Option<u64> {
    state.team_records.values().flat_map(|record| record.output_due.values()).min().copied()
}

/// Logs that lines could not be written. They are written together with the next line.
pub(crate) fn handle_record_not_written(context: &mut Context, team: &TeamName, error: &ErrorReport) {
    let message = format!("{}; the team works on, and its record gets these lines later", error.message);
    context.effects.push(Effect::log_team(team, EventKind::Error { message }));
}

/// The team and the name of the member of a spawn.
fn member_of_spawn(state: &State, spawn: &SpawnId) -> Option<(TeamName, MemberName)> {
    let request = &state.agents.get(spawn)?.record.request;
    Some((request.team.clone(), request.name.clone()))
}

/// Adds a line to the record of a team. Does nothing if the team is not recorded.
fn add(context: &mut Context, team: &TeamName, entry: RecordEntry) {
    if is_recorded(context.state, team) {
        context.record_items.push((team.clone(), entry.into()));
    }
}

//! Records the calls of clients, the reports of shims and the messages in inboxes.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::core_event::CoreEvent;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::PaneResult;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state::team_record::TeamRecord;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::team_records::record_events_and_outputs::end_earlier_record;
use crate::core::team_records::recorded_teams::add_entry;
use protocol::control_socket::{
    Call, CreateTeamReply, CreateTeamRequest, ExitReport, FromShim, Request, ResumeMembersRequest, ShimHello,
};
use protocol::inbox_file::Message;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::{RECORD_VERSION, RecordEntry};

/// Starts the record of the team that `request` has created: the file that `teamctl replay` plays.
/// The record's path is in `reply`. Without a path, the team is not recorded.
///
/// Also ends the record of an earlier team of the same name.
pub(crate) fn start_record(context: &mut Context, request: CreateTeamRequest, reply: &CreateTeamReply) {
    let team = &reply.team_name;
    end_earlier_record(context, team);
    let file = reply.record.as_ref().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let Some(file) = file else { return };
    context.state.team_records.insert(team.clone(), TeamRecord::new(file));
    add_entry(context, team, RecordEntry::Start { version: RECORD_VERSION, team: team.clone() });
    let request = Box::new(Request::CreateTeam(request));
    add_entry(context, team, RecordEntry::Call { caller: None, request });
}

/// Records a call that is accepted, unless it only reads. A call that concerns the whole daemon,
/// such as its shutdown, is in the records of all teams.
pub(crate) fn record_call(context: &mut Context, call: &Call) {
    if context.state.team_records.is_empty() {
        return;
    }
    let caller = context.state.agents.values().find(|agent| call.token.as_ref() == Some(&agent.record.token));
    let own_team = caller.map(|agent| agent.record.request.team.clone());
    let caller = caller.map(|agent| agent.record.request.name.clone());
    for team in teams_of_call(context.state, &call.request, own_team) {
        let request = Box::new(call.request.clone());
        add_entry(context, &team, RecordEntry::Call { caller: caller.clone(), request });
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

/// Records what a shim reports when it connects: the agent's turn, and also the agent's start if
/// the daemon does not know of it yet. The files thread drops a turn that the record has already.
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
    add_entry(context, &team, RecordEntry::Report { member, report });
}

fn record_messages(
    context: &mut Context,
    team: &TeamName,
    inbox: &MemberName,
    messages: &[(usize, Message)],
) {
    for (index, message) in messages {
        let entry = RecordEntry::Message { inbox: inbox.clone(), index: *index, message: message.clone() };
        add_entry(context, team, entry);
    }
}

/// The team and the name of the member of a spawn.
fn member_of_spawn(state: &State, spawn: &SpawnId) -> Option<(TeamName, MemberName)> {
    let request = &state.agents.get(spawn)?.record.request;
    Some((request.team.clone(), request.name.clone()))
}

fn schedule_output(context: &mut Context, team: &TeamName, member: MemberName) {
    if let Some(record) = context.state.team_records.get_mut(team) {
        record.schedule_output(member, context.now.mono);
    }
}

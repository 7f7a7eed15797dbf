//! Adds lines to the record of a team: the file that `teamctl replay` plays. The lines are the
//! team's events in the event log, and the output of its members. The core only queues jobs; the
//! threads that run these jobs write the lines.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::team_record_lines::{OutputExtent, RecordBatch, RecordItem};
use crate::core::state::core_state::State;
use crate::core::state::team_record::TeamRecord;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::team_records::recorded_teams::{add_entry, is_recorded};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::RecordEntry;
use std::collections::BTreeMap;

/// Records the events among the effects, after an event was handled. Queues one job for each team.
pub(crate) fn record_effects(context: &mut Context) {
    if context.state.team_records.is_empty() {
        return;
    }
    let is_recorded =
        |event: &&Event| event.team.as_ref().is_some_and(|team| is_recorded(context.state, team));
    let events: Vec<Event> = context.effects.events().filter(is_recorded).cloned().collect();
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
    forget_complete_records(context);
}

/// Forgets the records of deleted teams that have all output, and ends the threads that wrote them.
fn forget_complete_records(context: &mut Context) {
    let records = context.state.team_records.iter().filter(|(_, record)| record.is_complete());
    for team in records.map(|(team, _)| team.clone()).collect::<Vec<_>>() {
        context.state.team_records.remove(&team);
        if !context.state.teams.contains_key(&team) {
            context.effects.push(Effect::UnwatchTeam { team });
        }
    }
}

fn record_logged_event(context: &mut Context, event: Event) {
    let Some(team) = event.team.clone() else { return };
    let is_deleted = event.kind == EventKind::TeamDeleted;
    match (&event.kind, &event.member) {
        // The output of the member is on its host.
        _ if event.on_host.is_some() => {}
        (EventKind::TaskDeleted { task }, _) => {
            context.record_items.push((team.clone(), RecordItem::TaskRemoved(*task)));
        }
        // The output of the turn before is read before the next turn adds to it.
        (EventKind::MemberActive { .. }, Some(member)) => {
            read_output(context, &team, member.clone(), OutputExtent::WholeLines);
        }
        (EventKind::MemberIdle { .. } | EventKind::MemberExited { .. }, Some(member)) => {
            let record = context.state.team_records.get_mut(&team);
            record.into_iter().for_each(|record| record.schedule_output(member.clone(), context.now.mono));
        }
        _ => {}
    }
    let event = event.with_time(context.now.wall).with_short_texts();
    add_entry(context, &team, RecordEntry::Event { event: Box::new(event) });
    if let Some(record) = context.state.team_records.get_mut(&team).filter(|_| is_deleted) {
        record.end();
        context.state.has_roster_changed = true;
    }
}

/// Reads the output of members whose time has come, and of all members if the daemon ends.
fn record_due_outputs(context: &mut Context) {
    let time = if context.effects.is_exit() { u64::MAX } else { context.now.mono };
    let records = context.state.team_records.iter_mut();
    let outputs: Vec<(TeamName, MemberName)> = records
        .flat_map(|(team, record)| {
            record.take_due_outputs(time).into_iter().map(|member| (team.clone(), member))
        })
        .collect();
    for (team, member) in outputs {
        read_output(context, &team, member, OutputExtent::All);
    }
}

fn read_output(context: &mut Context, team: &TeamName, member: MemberName, extent: OutputExtent) {
    let Some(record) = context.state.team_records.get_mut(team) else { return };
    record.forget_output(&member);
    let item = output_item(context.state, team, member, extent);
    context.record_items.push((team.clone(), item));
}

fn output_item(state: &State, team: &TeamName, member: MemberName, extent: OutputExtent) -> RecordItem {
    let log = state.settings.output_log(team, &member);
    RecordItem::Output { member, log, extent }
}

/// Ends the record of an earlier team of the same name, so that it gets no lines of the new team.
/// The remaining output of the earlier team is recorded first.
pub(crate) fn end_earlier_record(context: &mut Context, team: &TeamName) {
    let Some(mut record) = context.state.team_records.remove(team) else { return };
    let members = record.take_due_outputs(u64::MAX).into_iter();
    let items: Vec<RecordItem> =
        members.map(|member| output_item(context.state, team, member, OutputExtent::All)).collect();
    if !items.is_empty() {
        let batch = RecordBatch { team: team.clone(), file: record.file, at: context.now.wall, items };
        context.effects.push(Effect::File(FileJob::AppendToRecord(Box::new(batch))));
    }
}

/// When the next output must be read, in milliseconds on the monotonic clock.
pub(crate) fn next_output_deadline(state: &State) -> Option<u64> {
    state.team_records.values().filter_map(TeamRecord::next_output).min()
}

/// Logs that lines could not be written to the record of a team. Called only for the first of
/// several failures in a row. At most 4 MiB of unwritten lines are kept for the next write.
pub(crate) fn handle_record_not_written(context: &mut Context, team: &TeamName, error: &ErrorReport) {
    let message = format!(
        "{}; the team works on, and its record gets at most 4 MiB of these lines later",
        error.message
    );
    context.effects.push(Effect::log_team(team, EventKind::Error { message }));
}

//! At the home: logs the events of the members on an annex, and notifies people of them. The annex has
//! acted on these events already.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::{Event, EventKind};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::{iso8601, parse_iso8601};

/// Logs the events that the event log lacks. The mirror forgets them once the log has them.
pub(crate) fn log_events_of_annex(context: &mut Context, link: &LinkId, team: &TeamName, events: Vec<Event>) {
    let (LinkId::ToAnnex(host), Some(number)) = (link, events.last().and_then(|event| event.number)) else {
        return;
    };
    for event in events {
        let logged_at = Some(iso8601(context.now.wall));
        let has_time = parse_iso8601(&event.time).is_some();
        let time = if has_time { event.time.clone() } else { iso8601(context.now.wall) };
        log_event(context, host, Event { on_host: Some(host.to_string()), logged_at, time, ..event }, team);
    }
    let job = MirrorJob::NoteEventsLogged { team: team.clone(), number };
    context.effects.push(Effect::File(FileJob::AwaitLoggedForMirror { link: link.clone(), job }));
}

fn log_event(context: &mut Context, host: &HostName, event: Event, team: &TeamName) {
    let logged = context.state.host_links.event_numbers.logged.get(&(team.clone(), host.to_string()));
    let is_logged = event.number <= logged.copied();
    if is_logged || event.team.as_ref() != Some(team) || !may_report(context.state, host, &event) {
        return;
    }
    context.state.host_links.event_numbers.note_logged(&event);
    if let Some(kind) = NoticeKind::of_event(&event.kind).filter(|_| event.notifies) {
        match &event.member {
            Some(member) => context.state.notices.add(team, member, None, kind),
            None if matches!(event.kind, EventKind::BudgetExhausted { .. }) => {
                context.state.notices.add_budget_exhausted(team);
            }
            None => {}
        }
    }
    context.effects.push(Effect::Log(event));
}

/// Whether the annex may report this event. It may only report what its own members do. The team may
/// have been deleted meanwhile.
fn may_report(state: &State, host: &HostName, event: &Event) -> bool {
    let is_of_other_host = |team: &TeamName, member: &MemberName| {
        let links = state.host_links.links.iter().filter(|(id, _)| **id != LinkId::ToAnnex(host.clone()));
        let mut members = links.filter_map(|(_, link)| link.members.get(team));
        member.is_lead()
            || state.member(team, member).is_some()
            || members.any(|members| members.contains(member))
    };
    let Some(team) = event.team.as_ref().filter(|team| state.teams.contains_key(*team)) else { return false };
    event.kind.is_sent_to_home() && event.member.as_ref().is_none_or(|member| !is_of_other_host(team, member))
}

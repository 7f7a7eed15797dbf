//! At the home: logs the events of the members on an annex, and notifies people of them. The annex
//! has acted on these events already.

use crate::core::effect::Effect;
use crate::core::hosts::count_usage_of_annex::count_event_of_annex;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::Event;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::{iso8601, parse_iso8601};

/// Logs the events that the event log lacks. The mirror forgets them once the log has them.
pub(crate) fn log_events_of_annex(context: &mut Context, link: &LinkId, team: &TeamName, events: Vec<Event>) {
    let (LinkId::ToAnnex(host), Some(number)) = (link, events.last().and_then(|event| event.number)) else {
        return;
    };
    let logged = &context.state.host_links.event_numbers.logged;
    let last = logged.get(&(team.clone(), host.to_string())).copied();
    let now = iso8601(context.now.wall);
    for event in events {
        if !may_report(context.state, link, team, &event) {
            continue;
        }
        if event.number > last {
            let time = if parse_iso8601(&event.time).is_some() { event.time.clone() } else { now.clone() };
            let (on_host, logged_at) = (Some(host.to_string()), Some(now.clone()));
            log_event(context, team, Event { on_host, logged_at, time, ..event.clone() });
        }
        count_event_of_annex(context, host.as_str(), team, &event);
    }
    let job = MirrorJob::NoteEventsLogged { team: team.clone(), number };
    context.effects.push(Effect::File(FileJob::AwaitLoggedForMirror { link: link.clone(), job }));
}

fn log_event(context: &mut Context, team: &TeamName, event: Event) {
    context.state.host_links.event_numbers.note_logged(&event);
    if let Some(kind) = NoticeKind::of_event(&event.kind).filter(|_| event.notifies)
        && let Some(member) = &event.member
    {
        context.state.notices.add(team, member, None, kind);
    }
    context.effects.push(Effect::Log(event));
}

/// Whether the annex may report this event. It may not report an event of a member on another host,
/// or of a team that was deleted meanwhile.
fn may_report(state: &State, link: &LinkId, team: &TeamName, event: &Event) -> bool {
    let is_of_other_host = |member: &MemberName| {
        let others = state.host_links.links.iter().filter(|(id, _)| *id != link);
        let mut members = others.filter_map(|(_, other)| other.members.get(team));
        member.is_lead()
            || state.member(team, member).is_some()
            || members.any(|members| members.contains(member))
    };
    state.teams.contains_key(team)
        && event.team.as_ref() == Some(team)
        && event.kind.is_sent_to_home()
        && event.member.as_ref().is_none_or(|member| !is_of_other_host(member))
}

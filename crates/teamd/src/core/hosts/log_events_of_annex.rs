//! At the home: logs the events of the members on an annex, and tells people of them. The annex has
//! acted on these events already.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::Event;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::timestamp::iso8601;

/// Logs the events that the event log lacks. The mirror forgets them once the log has them.
pub(crate) fn log_events_of_annex(context: &mut Context, link: &LinkId, team: &TeamName, events: Vec<Event>) {
    let (LinkId::ToAnnex(host), Some(number)) = (link, events.last().and_then(|event| event.number)) else {
        return;
    };
    for event in events {
        let logged_at = Some(iso8601(context.now.wall));
        log_event(context, host, Event { on_host: Some(host.to_string()), logged_at, ..event }, team);
    }
    let job = MirrorJob::NoteEventsLogged { team: team.clone(), number };
    context.effects.push(Effect::File(FileJob::AwaitLoggedForMirror { link: link.clone(), job }));
}

fn log_event(context: &mut Context, host: &HostName, event: Event, team: &TeamName) {
    let numbers = &mut context.state.host_links.event_numbers;
    let logged = numbers.logged.get(&(team.clone(), host.to_string())).copied();
    // The annex may only report what its own members do. The team may have been deleted meanwhile.
    let is_known = context.state.teams.contains_key(team);
    if !is_known
        || event.number <= logged
        || event.team.as_ref() != Some(team)
        || !event.kind.is_sent_to_home()
    {
        return;
    }
    numbers.note_logged(&event);
    if let Some(kind) = NoticeKind::of_event(&event.kind).filter(|_| event.notifies) {
        match &event.member {
            Some(member) => context.state.notices.add(team, member, None, kind),
            None => context.state.notices.add_budget_exhausted(team),
        }
    }
    context.effects.push(Effect::Log(event));
}

//! At the annex: sends the logged events of mirrored teams to their home, which also notifies
//! people of them.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::MirrorJob;
use crate::core::notifications_to_people::notice::{Notice, NoticeKind};
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;
use std::mem::discriminant;

/// Gives a number to each event for the home, and sends the event once it is in the event log of
/// this host. After a crash, the next daemon finds the unsent events in the log.
pub(crate) fn send_logged_events(context: &mut Context) {
    let Context { state, effects, now, .. } = context;
    let is_sent = |event: &&mut Event| {
        event.team.as_ref().is_some_and(|team| state.host_links.home_of(team).is_some())
            && event.number.is_none()
            && event.kind.is_sent_to_home()
            && !is_told_by_home(event)
            && (!is_of_inbox(event) || is_of_own_member(state, event))
    };
    let mut events: Vec<&mut Event> = effects.events_mut().filter(is_sent).collect();
    let links = &state.host_links;
    state
        .notices
        .retain(|notice| links.home_of(&notice.team).is_none() || !leave_notice_to_home(&mut events, notice));
    let mut sent: BTreeMap<TeamName, Vec<Event>> = BTreeMap::new();
    for event in events {
        event.number = Some(state.host_links.event_numbers.next(now.wall));
        *event = event.clone().with_time(now.wall).with_short_texts();
        event.team.clone().into_iter().for_each(|team| sent.entry(team).or_default().push(event.clone()));
    }
    for (team, events) in sent {
        let Some(link) = state.host_links.home_of(&team).cloned() else { continue };
        let job = MirrorJob::SendEvents { team, events };
        effects.push(Effect::File(FileJob::AwaitLoggedForMirror { link, job }));
    }
}

fn is_of_inbox(event: &Event) -> bool {
    use EventKind::{MessageRead, MessageRestored, MessageStored};
    matches!(event.kind, MessageStored { .. } | MessageRead { .. } | MessageRestored { .. })
}

/// Whether the home has told the annex this: that the budget of the whole team is exhausted.
fn is_told_by_home(event: &Event) -> bool {
    event.member.is_none() && matches!(event.kind, EventKind::BudgetExhausted { .. })
}

/// Whether the event is about a member that runs on this host. The mirror also has the inboxes of
/// members on other hosts, but events about these inboxes are not sent to the home.
fn is_of_own_member(state: &State, event: &Event) -> bool {
    let (team, member) = (event.team.as_ref(), event.member.as_ref());
    team.zip(member).is_some_and(|(team, member)| state.member(team, member).is_some())
}

/// Lets the home show a notice to people, instead of this host. For this, the event that the notice
/// is about is marked in `events`. Returns false if `events` has no such event.
///
/// The notice that all tasks are done needs no event, because the home finds this out by itself.
fn leave_notice_to_home(events: &mut [&mut Event], notice: &Notice) -> bool {
    matches!(notice.kind, NoticeKind::AllTasksDone(_)) || mark_event(events, notice)
}

/// Marks the event of a notice. Returns false if there is no such event.
fn mark_event(events: &mut [&mut Event], notice: &Notice) -> bool {
    let belongs = |event: &&mut &mut Event| {
        let kind = NoticeKind::of_event(&event.kind).map(|kind| discriminant(&kind));
        event.team.as_ref() == Some(&notice.team)
            && event.member == notice.member
            && kind == Some(discriminant(&notice.kind))
    };
    let event = events.iter_mut().rev().find(belongs);
    event.map(|event| event.notifies = true).is_some()
}

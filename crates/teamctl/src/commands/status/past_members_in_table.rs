//! Which past members the table shows.

use client::team_view::TeamView;
use protocol::control_socket::PastMember;

/// How many of the past members that need no attention the table shows.
pub(super) const MAX_UNREMARKABLE_PAST_MEMBERS: usize = 10;

/// The past members that the table shows: those that need attention, and the last ones that
/// completed their work or were killed. The others are left out, because hundreds of them would
/// fill the screen.
pub(super) fn shown_past_members(team: &TeamView) -> impl Iterator<Item = &PastMember> {
    let mut unremarkable_count =
        team.past_members.iter().filter(|past_member| !needs_attention(past_member)).count();
    team.past_members.iter().filter(move |past_member| {
        let is_shown = needs_attention(past_member) || unremarkable_count <= MAX_UNREMARKABLE_PAST_MEMBERS;
        unremarkable_count -= usize::from(!needs_attention(past_member));
        is_shown
    })
}

fn needs_attention(past_member: &PastMember) -> bool {
    past_member.outcome == "failed" || past_member.is_suspended || past_member.has_respawn()
}

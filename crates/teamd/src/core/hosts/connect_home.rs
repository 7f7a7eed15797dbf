//! At the annex: accepts the connection that a home has made. The annex never connects itself.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::jobs::host_jobs::{HostJob, LinkId, MirrorJob};
use crate::core::reply_to_client::error_reply;
use crate::core::state::host_links::HostLink;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::ConnectHomeRequest;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// Accepts the connection of a home. Refuses it if a link with a higher generation exists: the home
/// has then forgotten this host, and made a new link to it later. The refused connection belongs to
/// the forgotten link.
///
/// If links with a lower generation have left mirrors here, these mirrors are ended, together with
/// their members on this host.
pub(crate) fn connect_home(context: &mut Context, client: ConnId, home: ConnectHomeRequest) {
    let others = other_generations(context, &home);
    if others.iter().any(|other| other.generation > home.generation) {
        let message = format!("cannot use this link: its home has forgotten {} since", home.annex);
        context.effects.push(error_reply(client, ErrorReport::new(ErrorKind::Refused, message)));
        return context.effects.push(Effect::CloseConnection { conn: client });
    }
    others.into_iter().for_each(|earlier| push_job(context, LinkId::ToHome(earlier), MirrorJob::EndTeams));
    let links = &mut context.state.host_links.links;
    links.entry(LinkId::ToHome(home.clone())).or_insert_with(|| HostLink::new(context.now.wall));
    context.effects.push(Effect::Host(HostJob::AcceptHome { client, home }));
}

/// The other links from this home that mirror a team or have a higher generation.
fn other_generations(context: &Context, home: &ConnectHomeRequest) -> Vec<ConnectHomeRequest> {
    let links = context.state.host_links.links.iter();
    let others = links.filter_map(|(id, link)| match id {
        LinkId::ToHome(other) if (&other.home, &other.annex) == (&home.home, &home.annex) => {
            let is_relevant = other.generation > home.generation || !link.teams.is_empty();
            (is_relevant && other.generation != home.generation).then(|| other.clone())
        }
        _ => None,
    });
    others.collect()
}

//! At the annex: accepts the connection that a home has made. The annex never connects itself.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::host_jobs::{HostJob, LinkId};
use crate::core::state::host_links::HostLink;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::ConnectHomeRequest;

pub(crate) fn connect_home(context: &mut Context, client: ConnId, home: ConnectHomeRequest) {
    let links = &mut context.state.host_links.links;
    links.entry(LinkId::ToHome(home.clone())).or_insert_with(|| HostLink::new(context.now.wall));
    context.effects.push(Effect::Host(HostJob::AcceptHome { client, home }));
}

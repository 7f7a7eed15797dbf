//! The context of one event: the daemon's state, the time, the effects that were added so far, and
//! the work that follows the event.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effects;
use crate::core::event_time::Now;
use crate::core::jobs::team_record_lines::RecordItem;
use crate::core::state::core_state::State;
use crate::core::stop_and_exit_of_spawn::NameWaiter;
use protocol::control_socket::DeleteTeamRequest;
use protocol::team_and_member_names::TeamName;
use std::collections::VecDeque;

/// The context of one event. Only `handle_event` and `recover` create one.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Now,
    pub(crate) effects: Effects,
    /// The team of each turn that has started in this event. A team is listed once for each turn.
    pub(crate) started_turns: Vec<TeamName>,
    /// The lines that this event adds to the records of teams.
    pub(crate) record_items: Vec<(TeamName, RecordItem)>,
    /// The work that is done after the event, in this order.
    pub(crate) follow_ups: VecDeque<FollowUp>,
}

/// Work that a handler queues, and that is done after the handler has returned. The handler can't
/// do the work itself, because the work needs a module that the handler's module must not import.
#[derive(Debug)]
pub(crate) enum FollowUp {
    /// Handles again a call that has waited for the name of an exited member, because the cleanup
    /// of that member is done or has failed. After a failed cleanup the client gets an error.
    RetryForName(NameWaiter),
    /// Continues a deletion, because all members of the team have exited.
    DeleteTeam { client: Option<ConnId>, request: DeleteTeamRequest },
}

impl Context<'_> {
    pub(crate) fn new(state: &mut State, now: Now) -> Context<'_> {
        Context {
            state,
            now,
            effects: Effects::default(),
            started_turns: Vec::new(),
            record_items: Vec::new(),
            follow_ups: VecDeque::new(),
        }
    }
}

//! From the order to the running agent, and how its join comes back.

use super::*;
use crate::core::deadlines::next_deadline;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::id::{SpawnId, WatchId};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::tests::turns::worker_request;
use protocol::error::ErrorReport;
use protocol::permission_mode::PermissionMode;

fn count_start_messages(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::SendToShim { message: ToShim::StartAgent(_), .. })).count()
}

#[test]
fn the_green_light_comes_after_the_files_and_the_answer_after_the_start() {
    for pane_first in [true, false] {
        let mut state = new_state();
        let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
        let mut events = vec![pane_opened(&spawn, 40), shim_connected(&spawn, 50, 40, None)];
        if !pane_first {
            events.reverse();
        }
        let second = events.pop().unwrap();
        let effects = handle_event(&mut state, events.pop().unwrap(), NOW);
        assert!(!has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
        let effects = handle_event(&mut state, second, NOW);
        assert!(has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
        assert!(
            matches!(effects[0], Effect::File(FileJob::SaveRoster(_))),
            "the roster is first: {effects:?}"
        );
        assert_eq!(count_start_messages(&effects), 0);
        let effects = handle_event(&mut state, member_registered(&spawn), NOW);
        assert_eq!((count_start_messages(&effects), reply(&effects, 1).is_some()), (1, false));
        let effects = handle_event(&mut state, agent_started(50), NOW);
        let [Effect::File(FileJob::SaveRoster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(
            (roster.records[0].lifecycle.process().agent_pid, reply(&effects, 1).is_some()),
            (Some(99), false)
        );
        let effects = handle_event(&mut state, reply_ready(effects), NOW);
        assert!(matches!(reply_value(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
    }
}

fn registering_spawns(effects: &[Effect]) -> Vec<SpawnId> {
    let mut all = Vec::new();
    for effect in effects {
        if let Effect::File(FileJob::RegisterMember { record, .. }) = effect {
            all.push(record.spawn_id.clone());
        }
    }
    all
}

/// Three whose panes are asked for, and the first two of which are there, with a join in each.
fn two_of_three_connected() -> (State, Vec<SpawnId>) {
    let mut state = new_state();
    let all: Vec<SpawnId> = ["ann", "bob", "cid"]
        .iter()
        .map(|name| opened_spawn_id(&send_call(&mut state, 1, spawn_request(name))))
        .collect();
    for (at, spawn) in all[..2].iter().enumerate() {
        let (conn, pid) = (50 + at as u64, 40 + at as u32);
        assert!(
            registering_spawns(&handle_event(&mut state, shim_connected(spawn, conn, pid, None), NOW))
                .is_empty()
        );
        assert!(registering_spawns(&handle_event(&mut state, pane_opened(spawn, pid), NOW)).is_empty());
    }
    (state, all)
}

#[test]
fn those_who_come_at_once_are_put_on_the_team_in_one_change_once_nobody_waits_for_a_pane() {
    let (mut state, all) = two_of_three_connected();
    let effects = handle_event(&mut state, pane_opened(&all[2], 42), NOW);
    assert_eq!(registering_spawns(&effects), all[..2], "nobody waits for a join that has not spoken");
    assert!(matches!(effects[0], Effect::File(FileJob::SaveRoster(_))), "the roster is first: {effects:?}");
    assert_eq!(
        registering_spawns(&handle_event(&mut state, shim_connected(&all[2], 52, 42, None), NOW)),
        all[2..]
    );
}

#[test]
fn nobody_waits_long_for_anothers_pane() {
    let (mut state, all) = two_of_three_connected();
    state.rescan_at = 1_000_000;
    let due = next_deadline(&state);
    assert!(due <= NOW.mono + 50, "{due}");
    assert!(registering_spawns(&handle_event(&mut state, CoreEvent::ProbeSeen, now_at(due - 1))).is_empty());
    assert_eq!(
        registering_spawns(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(due))),
        all[..2]
    );
    assert!(next_deadline(&state) > due, "that is done");
}

#[test]
fn who_is_given_up_while_it_waits_for_another_is_not_put_on_the_team() {
    let (mut state, all) = two_of_three_connected();
    handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(all[0].clone()) }, NOW);
    let gone = Err(ErrorReport::new(ErrorKind::Timeout, "no pane"));
    let effects = handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: all[2].clone(), result: gone }),
        NOW,
    );
    assert_eq!(registering_spawns(&effects), all[1..2]);
}

#[test]
fn a_stranger_in_the_new_pane_gets_nothing() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, shim_connected(&spawn, 50, 41, None), NOW);
    let effects = handle_event(&mut state, pane_opened(&spawn, 40), NOW);
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::NotPermitted));
    assert!(!has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
    assert!(state.agents.is_empty());
}

#[test]
fn an_unknown_join_is_refused() {
    let mut state = new_state();
    let effects = handle_event(&mut state, shim_connected(&SpawnId::generate(), 50, 40, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::SendToShim { conn: 50, message: ToShim::Refused }));
}

#[test]
fn a_second_join_can_not_take_a_living_ones_place() {
    let mut state = new_state();
    let spawn = start_member(&mut state, "ann", 50);
    let effects = handle_event(&mut state, shim_connected(&spawn, 66, 666, Some(99)), NOW);
    assert!(matches!(effects[..], [Effect::CloseConnection { conn: 66 }]), "{effects:?}");
}

#[test]
fn a_start_that_takes_too_long_is_given_up_and_taken_back() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&spawn, 40), NOW);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000_000));
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::Timeout));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ClosePane { .. }))));
    assert!(state.agents.is_empty());
}

/// Behind many others: its pane has as long as any.
#[test]
fn a_start_that_waited_for_its_pane_is_given_the_time_from_there() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&spawn, 40), now_at(15_000));
    assert!(
        handle_event(&mut state, CoreEvent::DeadlineReached, now_at(29_000))
            .iter()
            .all(|effect| !matches!(effect, Effect::Pane(_)))
    );
    assert_eq!(
        error_kind(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(31_000)), 1),
        Some(ErrorKind::Timeout)
    );
}

#[test]
fn a_start_whose_word_was_lost_is_told_by_the_next_hello() {
    let mut state = new_state();
    let ann = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&ann, 40), NOW);
    handle_event(&mut state, shim_connected(&ann, 50, 40, None), NOW);
    handle_event(&mut state, member_registered(&ann), NOW);
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW);
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 40, Some(99)), NOW);
    let effects = handle_event(&mut state, reply_ready(effects), NOW);
    assert!(matches!(reply_value(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
}

/// It lost its connection while its files were written, and comes back when it is put away for that.
#[test]
fn who_waits_for_a_green_light_that_does_not_come_is_refused() {
    let mut state = new_state();
    let ann = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&ann, 40), NOW);
    handle_event(&mut state, shim_connected(&ann, 50, 40, None), NOW);
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW);
    assert_eq!(error_kind(&handle_event(&mut state, member_registered(&ann), NOW), 1), Some(ErrorKind::Io));
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 40, None), NOW);
    let refused =
        |effect: &Effect| matches!(effect, Effect::SendToShim { conn: 51, message: ToShim::Refused });
    assert!(effects.iter().any(refused), "{effects:?}");
}

#[test]
fn a_closed_connection_is_no_death_and_a_dead_join_is() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    assert!(handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW).is_empty());
    assert_eq!(state.agents[&ann].record.lifecycle.as_str(), "disconnected");
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 50, Some(99)), NOW);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::SendToShim { conn: 51, message: ToShim::Adopted }))
    );
    let effects = handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(ann.clone()) }, NOW);
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::ReadExitReport { .. })));
}

#[test]
fn permission_mode_of_the_spawn_is_in_status_and_config_from_the_first_moment() {
    let mut state = new_state();
    let request = worker_request("ann", |request| request.mode = Some(PermissionMode::BypassPermissions));
    let ann = opened_spawn_id(&send_call(&mut state, 1, request));
    handle_event(&mut state, pane_opened(&ann, 50), NOW);
    let mut effects = handle_event(&mut state, shim_connected(&ann, 50, 50, None), NOW);
    let later = crate::core::event_time::Now { mono: NOW.mono + 1_000, wall: NOW.wall + 1_000 };
    effects.extend(handle_event(&mut state, CoreEvent::DeadlineReached, later));
    let registers_mode = |job: &FileJob| matches!(job, FileJob::RegisterMember { record, .. } if record.config_mode.as_deref() == Some("bypassPermissions"));
    assert!(has_file_job(&effects, registers_mode), "{effects:?}");
}

//! Tests of the start of a member, from the spawn request to the running agent, and of
//! reconnections of its shim.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::connection_spawn_and_watch_ids::{SpawnId, WatchId};
use crate::core::core_event::CoreEvent;
use crate::core::deadlines::next_deadline;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::recovery;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use protocol::control_socket::{Backend, LocatePaneReply, MemberAddress};
use protocol::error_kind_and_report::ErrorReport;
use protocol::permission_mode::PermissionMode;

fn count_start_messages(effects: &[Effect]) -> usize {
    effects
        .iter()
        .filter(|effect| matches!(effect, Effect::SendToShim { message: ToShim::StartAgent(_), .. }))
        .count()
}

#[test]
fn agent_starts_after_its_registration_and_the_reply_follows_the_start() {
    for pane_first in [true, false] {
        let mut state = new_state();
        let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
        let mut events = vec![pane_opened(&spawn, 40), shim_connected(&spawn, 50, 40, None)];
        if !pane_first {
            events.reverse();
        }
        let last_event = events.pop().unwrap();
        let effects = handle_event(&mut state, events.pop().unwrap(), NOW);
        assert!(!has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
        let effects = handle_event(&mut state, last_event, NOW);
        assert!(has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
        assert!(
            matches!(effects[0], Effect::File(FileJob::SaveRoster(_))),
            "the roster is saved first: {effects:?}"
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

#[test]
fn path_of_the_agent_ends_with_the_directory_of_teamctl() {
    for (path, expected) in
        [(Some("/usr/bin"), Some("/usr/bin:/bin")), (Some("/bin:/x"), Some("/bin:/x")), (None, None)]
    {
        let mut state = new_state();
        let Request::Spawn(mut request) = spawn_request("ann") else { unreachable!("it is a spawn") };
        request.env.extend(path.map(|path| ("PATH".to_owned(), path.to_owned())));
        let spawn = opened_spawn_id(&send_call(&mut state, 1, Request::Spawn(request)));
        handle_event(&mut state, pane_opened(&spawn, 40), NOW);
        handle_event(&mut state, shim_connected(&spawn, 50, 40, None), NOW);
        let effects = handle_event(&mut state, member_registered(&spawn), NOW);
        let env = effects.iter().find_map(|effect| match effect {
            Effect::SendToShim { message: ToShim::StartAgent(start), .. } => Some(&start.env),
            _ => None,
        });
        assert_eq!(env.unwrap().get("PATH").map(String::as_str), expected);
    }
}

fn registering_spawns(effects: &[Effect]) -> Vec<SpawnId> {
    let mut spawns = Vec::new();
    for effect in effects {
        if let Effect::File(FileJob::RegisterMember { record, .. }) = effect {
            spawns.push(record.spawn_id.clone());
        }
    }
    spawns
}

/// Three members that start. The panes of the first two are open, and their shims have connected.
fn two_of_three_connected() -> (State, Vec<SpawnId>) {
    let mut state = new_state();
    let spawns: Vec<SpawnId> = ["ann", "bob", "cid"]
        .iter()
        .map(|name| opened_spawn_id(&send_call(&mut state, 1, spawn_request(name))))
        .collect();
    for (index, spawn) in spawns[..2].iter().enumerate() {
        let (conn, pid) = (50 + index as u64, 40 + index as u32);
        assert!(
            registering_spawns(&handle_event(&mut state, shim_connected(spawn, conn, pid, None), NOW))
                .is_empty()
        );
        assert!(registering_spawns(&handle_event(&mut state, pane_opened(spawn, pid), NOW)).is_empty());
    }
    (state, spawns)
}

#[test]
fn members_that_start_together_are_registered_together_once_no_pane_is_pending() {
    let (mut state, spawns) = two_of_three_connected();
    let effects = handle_event(&mut state, pane_opened(&spawns[2], 42), NOW);
    assert_eq!(
        registering_spawns(&effects),
        spawns[..2],
        "the registration does not wait for the third shim"
    );
    assert!(
        matches!(effects[0], Effect::File(FileJob::SaveRoster(_))),
        "the roster is saved first: {effects:?}"
    );
    assert_eq!(
        registering_spawns(&handle_event(&mut state, shim_connected(&spawns[2], 52, 42, None), NOW)),
        spawns[2..]
    );
}

#[test]
fn registration_waits_only_shortly_for_other_panes() {
    let (mut state, spawns) = two_of_three_connected();
    state.rescan_at = 1_000_000;
    let deadline = next_deadline(&state);
    assert!(deadline <= NOW.mono + 50, "{deadline}");
    assert!(
        registering_spawns(&handle_event(&mut state, CoreEvent::ProbeSeen, now_at(deadline - 1))).is_empty()
    );
    assert_eq!(
        registering_spawns(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(deadline))),
        spawns[..2]
    );
    assert!(next_deadline(&state) > deadline, "the deadline has passed");
}

#[test]
fn failed_start_is_not_registered_with_the_others() {
    let (mut state, spawns) = two_of_three_connected();
    handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(spawns[0].clone()) }, NOW);
    let failure = Err(ErrorReport::new(ErrorKind::Timeout, "no pane"));
    let effects = handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: spawns[2].clone(), result: failure }),
        NOW,
    );
    assert_eq!(registering_spawns(&effects), spawns[1..2]);
}

#[test]
fn unexpected_process_in_the_new_pane_fails_the_spawn() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, shim_connected(&spawn, 50, 41, None), NOW);
    let effects = handle_event(&mut state, pane_opened(&spawn, 40), NOW);
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::NotPermitted));
    assert!(!has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })));
    assert!(state.agents.is_empty());
}

#[test]
fn unknown_shim_is_refused() {
    let mut state = new_state();
    let effects = handle_event(&mut state, shim_connected(&SpawnId::generate(), 50, 40, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::SendToShim { conn: 50, message: ToShim::Refused }));
}

#[test]
fn second_shim_cannot_replace_a_connected_shim() {
    let mut state = new_state();
    let spawn = start_member(&mut state, "ann", 50);
    let effects = handle_event(&mut state, shim_connected(&spawn, 66, 666, Some(99)), NOW);
    assert!(matches!(effects[..], [Effect::CloseConnection { conn: 66 }]), "{effects:?}");
}

#[test]
fn start_is_given_up_after_its_timeout_and_its_pane_is_closed() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&spawn, 40), NOW);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000_000));
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::Timeout));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ClosePane { .. }))));
    assert!(state.agents.is_empty());
}

#[test]
fn shim_in_iterm2_has_any_pid_and_its_session_is_closed() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    let request = worker_request("ann", |request| request.backend = Backend::Iterm2);
    let effects = send_call(&mut state, 1, request);
    let [Effect::Pane(PaneJob::Iterm2(Iterm2Job::Open(spec)))] = &effects[..] else { panic!("{effects:?}") };
    let spawn = spec.spawn.clone();
    handle_event(&mut state, shim_connected(&spawn, 50, 77, None), NOW);
    let CoreEvent::PaneJobDone(PaneResult::PaneOpened { result: Ok(mut opened), .. }) =
        pane_opened(&spawn, 40)
    else {
        panic!()
    };
    (opened.pane.id, opened.pane.it2) = ("A-B".to_owned(), Some("/bin/it2".into()));
    opened.shim = ExpectedShim::AnyPid;
    let opened = CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn, result: Ok(opened) });
    let effects = handle_event(&mut state, opened, NOW);
    assert!(
        has_file_job(&effects, |job| matches!(job, FileJob::RegisterMember { .. })),
        "the pid is not compared"
    );
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000_000));
    let closes = |effect: &Effect| matches!(effect, Effect::Pane(PaneJob::Iterm2(Iterm2Job::Close { session, .. })) if session.id == "A-B");
    assert!(effects.iter().any(closes), "{effects:?}");
    let Some(Response::Failed(error)) = reply(&effects, 1) else { panic!("{effects:?}") };
    assert!(error.message.contains("the shell in the new session of iTerm2"), "{error:?}");
}

/// A pane that opens late, after many others, leaves the shim the full time to connect.
#[test]
fn start_timeout_begins_when_the_pane_is_open() {
    let mut state = new_state();
    let spawn = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&spawn, 40), now_at(15_000));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(29_000));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ClosePane { .. }))));
    assert_eq!(
        error_kind(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(31_000)), 1),
        Some(ErrorKind::Timeout)
    );
}

#[test]
fn lost_start_report_is_replaced_by_the_next_hello() {
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

/// The shim loses its connection during the registration. The start fails, and the shim connects
/// again during the cleanup.
#[test]
fn shim_that_reconnects_after_its_start_has_failed_is_refused() {
    let mut state = new_state();
    let ann = opened_spawn_id(&send_call(&mut state, 1, spawn_request("ann")));
    handle_event(&mut state, pane_opened(&ann, 40), NOW);
    handle_event(&mut state, shim_connected(&ann, 50, 40, None), NOW);
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW);
    assert_eq!(error_kind(&handle_event(&mut state, member_registered(&ann), NOW), 1), Some(ErrorKind::Io));
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 40, None), NOW);
    let is_refused =
        |effect: &Effect| matches!(effect, Effect::SendToShim { conn: 51, message: ToShim::Refused });
    assert!(effects.iter().any(is_refused), "{effects:?}");
}

#[test]
fn closed_connection_is_not_an_exit_and_a_dead_shim_is() {
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

#[test]
fn unique_name_that_would_be_too_long_is_refused_with_help() {
    let mut state = new_state();
    let longest = "a".repeat(64);
    start_member_with(&mut state, worker_request(&longest, |_| ()), 50);
    let effects = send_call(&mut state, 9, worker_request(&longest, |request| request.unique = true));
    let Some(protocol::control_socket::Response::Failed(error)) = reply(&effects, 9) else {
        panic!("{effects:?}")
    };
    assert!(error.help.as_ref().unwrap().starts_with("choose a shorter name"), "{error:?}");
}

#[test]
fn start_that_is_reported_to_the_next_daemon_is_saved() {
    let mut state = new_state();
    let ann = started_spawn_id(&send_call(&mut state, 1, worker_request("ann", |_| {})));
    handle_event(&mut state, pane_opened(&ann, 60), NOW);
    handle_event(&mut state, shim_connected(&ann, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let effects = handle_event(&mut state, shim_connected(&ann, 3, 60, Some(99)), NOW);
    assert!(has_file_job(
        &effects,
        |job| matches!(job, FileJob::SaveRoster(roster) if roster.records[0].lifecycle.process().agent_pid == Some(99))
    ));
}

#[test]
fn agent_without_a_pane_needs_no_tmux() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    assert!(
        matches!(reply(&effects, 1), Some(Response::Failed(error)) if error.kind == ErrorKind::MissingPath)
    );
    let bob = start_member_with(
        &mut state,
        worker_request("bob", |request| request.backend = Backend::InProcess),
        50,
    );
    assert!(state.agents[&bob].record.pane.is_none());
    let effects = send_call(
        &mut state,
        9,
        Request::LocatePane(MemberAddress { team: survey_team(), name: "bob".into() }),
    );
    let Some(Reply::LocatePane(LocatePaneReply::Log { path })) = reply_value(&effects, 9) else {
        panic!("{effects:?}")
    };
    assert_eq!(path, &PathBuf::from("/state/logs/agents/survey/bob.log"));
    report_exit(&mut state, &bob, 50, ExitReport::Exit(0));
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::MemberDeregistered {
            spawn: bob.clone(),
            approval: ShutdownApproval::NotGiven,
            error: None,
        }),
        NOW,
    );
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::CloseHandles { .. })),
        "the cleanup does not wait for a pane"
    );
}

#[test]
fn shim_that_cannot_be_started_fails_the_spawn() {
    let mut state = new_state();
    let spawn = started_spawn_id(&send_call(
        &mut state,
        1,
        worker_request("bob", |request| request.backend = Backend::InProcess),
    ));
    let result = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "no"));
    let effects = handle_event(&mut state, CoreEvent::ShimStarted { spawn, result }, NOW);
    assert!(matches!(reply(&effects, 1), Some(Response::Failed(_))));
    assert!(state.agents.is_empty());
}

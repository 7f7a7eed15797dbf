//! Tests of notices: what causes a notice, and that each is shown once.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::recovery;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::tests::hooks_and_lead_sessions;
use protocol::control_socket::{HookEvent, RestartPolicy, TurnStatus};
use protocol::task::Task;
use std::num::NonZeroU16;

/// The texts of the notices that tmux shows to attached clients.
fn shown_notices(effects: &[Effect]) -> Vec<String> {
    let notice_text = |effect: &Effect| match effect {
        Effect::Pane(PaneJob::NotifyAttached { text, .. }) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(notice_text).collect()
}

/// The number of notices after the exit of a member.
fn exit_notice_count(exit: ExitReport, restart: RestartPolicy) -> usize {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |request| request.restart = restart), 50);
    shown_notices(&report_exit(&mut state, &ann, 50, exit)).len()
}

#[test]
fn unexpected_exit_without_a_respawn_causes_a_notice() {
    assert_eq!(exit_notice_count(ExitReport::Exit(1), RestartPolicy::Never), 1);
    assert_eq!(exit_notice_count(ExitReport::Signal(9), RestartPolicy::Never), 1);
    assert_eq!(
        exit_notice_count(ExitReport::Exit(1), RestartPolicy::OnFailure(None)),
        0,
        "a respawn follows"
    );
    assert_eq!(
        exit_notice_count(ExitReport::Exit(0), RestartPolicy::Never),
        0,
        "exit code 0 is not a failure"
    );
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert!(
        shown_notices(&report_exit(&mut state, &ann, 50, ExitReport::Signal(15))).is_empty(),
        "a client killed the member"
    );
}

#[test]
fn closed_pane_causes_no_notice() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let exited = |exit| CoreEvent::ShimReported { conn: 50, report: FromShim::Exited(exit) };
    handle_event(&mut state, exited(ExitReport::TerminalGone), NOW);
    let inspected =
        CoreEvent::PaneJobDone(PaneResult::PaneInspected { spawn: ann, presence: PanePresence::Absent });
    assert!(shown_notices(&handle_event(&mut state, inspected, NOW)).is_empty());
}

fn tasks_with(statuses: &[&str]) -> Vec<Task> {
    statuses.iter().zip(1..).map(|(status, id)| new_task(id, status, "")).collect()
}

#[test]
fn completion_of_all_tasks_causes_one_notice_and_none_by_the_next_daemon() {
    let mut state = new_state();
    assert!(shown_notices(&scan_tasks(&mut state, vec![])).is_empty());
    assert!(shown_notices(&scan_tasks(&mut state, tasks_with(&["completed", "in_progress"]))).is_empty());
    let done = shown_notices(&scan_tasks(&mut state, tasks_with(&["completed", "completed"])));
    assert_eq!(done, ["all 2 tasks of survey are done"]);
    assert!(shown_notices(&scan_tasks(&mut state, tasks_with(&["completed", "completed"]))).is_empty());
    state.rescan_at = 1_000_000;
    assert!(
        shown_notices(&scan_tasks(&mut state, tasks_with(&["completed", "completed", "pending"]))).is_empty()
    );
    scan_tasks(&mut state, tasks_with(&["completed", "completed", "completed"]));
    assert_eq!(
        shown_notices(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(5_000))).len(),
        1,
        "a new completed task causes another notice"
    );
    let mut next_state = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    next_state.teams.get_mut(&survey_team()).unwrap().watched.logged_tasks =
        state.teams[&survey_team()].watched.logged_tasks.clone();
    assert!(
        shown_notices(&scan_tasks(&mut next_state, tasks_with(&["completed", "completed", "completed"])))
            .is_empty()
    );
}

#[test]
fn turn_without_output_causes_one_notice() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    let cat = start_member(&mut state, "cat", 52);
    for conn in [50, 51] {
        let turn = turn_state(Activity::Active, 1);
        handle_event(&mut state, CoreEvent::ShimReported { conn, report: FromShim::TurnStatus(turn) }, NOW);
    }
    let later = Now { wall: NOW.wall + 700_000, mono: 700_000 };
    let checked_spawns = |effects: &[Effect]| -> Vec<SpawnId> {
        let spawns = effects.iter().find_map(|effect| match effect {
            Effect::File(FileJob::ReadOutputTimes { logs }) => {
                Some(logs.iter().map(|(id, _)| id.clone()).collect())
            }
            _ => None,
        });
        spawns.unwrap_or_default()
    };
    assert!(checked_spawns(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000))).is_empty());
    let checked = checked_spawns(&handle_event(&mut state, CoreEvent::DeadlineReached, later));
    assert!(checked.contains(&ann) && checked.contains(&bob), "{checked:?}");
    assert!(!checked.contains(&cat), "turns of cat are not reported");
    let times = vec![(ann.clone(), NOW.wall), (bob, later.wall - 1)];
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::OutputTimes { times: times.clone() }),
        later,
    );
    assert_eq!(
        shown_notices(&effects),
        ["ann@survey has written nothing for 11 min: teamctl why ann -t survey"]
    );
    assert!(
        shown_notices(&handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::OutputTimes { times }),
            later
        ))
        .is_empty()
    );
}

/// The state of the next daemon after its recovery.
pub(super) fn restart_daemon(state: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut next_state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut next_state, now_at(800_000));
    next_state.rescan_at = u64::MAX;
    next_state
}

#[test]
fn turn_without_output_causes_one_notice_across_daemons_once_its_shim_has_reconnected() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    report_turn(&mut state, 50, turn_state(Activity::Active, 1));
    let notices_without_output = |state: &mut State, mono| {
        let times = vec![(ann.clone(), NOW.wall)];
        shown_notices(&handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::OutputTimes { times }),
            now_at(mono),
        ))
    };
    let mut next_before_notice = restart_daemon(&state);
    assert!(
        notices_without_output(&mut next_before_notice, 800_100).is_empty(),
        "the shim has not reported the turn yet"
    );
    assert_eq!(notices_without_output(&mut state, 700_000).len(), 1);
    handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { text_outside_tmux: None }),
        now_at(700_000),
    );
    let reconnect_shim = |state: &mut State, number, since| {
        let turn = TurnStatus { since, ..turn_state(Activity::Active, number) };
        let hello =
            ShimHello { spawn_id: ann.as_str().to_owned(), agent_pid: Some(50), turn_status: Some(turn) };
        handle_event(
            state,
            CoreEvent::ShimConnected { conn: 3, hello, peer: Process { pid: 50, start_time: 5 } },
            now_at(800_200),
        );
    };
    let mut next_state = restart_daemon(&state);
    reconnect_shim(&mut next_state, 1, NOW.wall);
    assert!(
        notices_without_output(&mut next_state, 800_300).is_empty(),
        "the earlier daemon showed the notice"
    );
    reconnect_shim(&mut next_before_notice, 1, NOW.wall);
    assert_eq!(
        notices_without_output(&mut next_before_notice, 800_300).len(),
        1,
        "no daemon had shown the notice"
    );
    reconnect_shim(&mut next_state, 2, NOW.wall + 1);
    assert_eq!(
        notices_without_output(&mut next_state, 800_300).len(),
        1,
        "another turn causes another notice"
    );
}

#[test]
fn sleep_of_the_machine_does_not_count_as_time_without_output() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    report_turn(&mut state, 50, turn_state(Activity::Active, 1));
    let checks_output = |state: &mut State, now| {
        state.rescan_at = 0;
        has_file_job(&handle_event(state, CoreEvent::DeadlineReached, now), |job| {
            matches!(job, FileJob::ReadOutputTimes { .. })
        })
    };
    let wake_time = Now { wall: NOW.wall + 28_800_000, mono: 20_000 };
    assert!(!checks_output(&mut state, wake_time), "the machine has slept for eight hours");
    let times = CoreEvent::FileJobDone(FileResult::OutputTimes { times: vec![(ann, NOW.wall)] });
    assert!(shown_notices(&handle_event(&mut state, times, wake_time)).is_empty());
    let after = |ms| Now { wall: wake_time.wall + ms, mono: wake_time.mono + ms };
    assert!(!checks_output(&mut state, after(599_000)));
    assert!(checks_output(&mut state, after(600_000)));
}

#[test]
fn next_daemon_shows_the_notices_that_were_not_shown() {
    let mut state = new_state();
    for name in ["ann", "bob"] {
        state.notices.add(
            &survey_team(),
            &MemberName::new_unchecked(name),
            Some("%3".parse().unwrap()),
            NoticeKind::Exited,
        );
    }
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    let texts = shown_notices(&effects);
    let [Effect::File(FileJob::SaveRoster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(roster.pending_notices.len(), 2, "the roster is saved before the notice is shown");
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let deleted = TeamName::parse("gone").unwrap();
    state.notices.add_budget_exhausted(&deleted);
    assert_eq!(
        shown_notices(&handle_event(&mut restart_daemon(&state), CoreEvent::ProbeSeen, NOW)),
        ["2 members have ended, 1 team is done: teamctl status -t survey"],
        "a deleted team gets no notice"
    );
    let effects = handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { text_outside_tmux: Some(texts[0].clone()) }),
        NOW,
    );
    let [Effect::File(FileJob::SaveRoster(roster)), Effect::ShowNotice { .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(roster.pending_notices.len(), 2, "the later notices are still pending");
}

/// The notices are shown now, because the next daemon may start much later.
#[test]
fn pending_notices_are_shown_before_the_daemon_exits() {
    let mut state = new_state();
    handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let effects = send_call(&mut state, 9, Request::StopDaemon);
    let effects = with_replies(&mut state, effects);
    let shown_count = effects.iter().filter(|effect| matches!(effect, Effect::ShowNotice { .. })).count();
    assert!(shown_count == 1 && matches!(effects.last(), Some(Effect::Exit)), "{effects:?}");
    assert!(state.to_roster().pending_notices.is_empty());
}

#[test]
fn dialog_causes_one_notice_across_daemons() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = Delivery::Hook;
    let token = state.agents[&ann].record.token.clone();
    let report_hook = |state: &mut State, event: HookEvent| {
        let request = Request::ReportHook(hooks_and_lead_sessions::hook_report(Some("s-1"), event));
        let call = Call { token: Some(token.clone()), ..*new_call(request) };
        handle_event(state, CoreEvent::ClientCall { client: 70, call: Box::new(call) }, now_at(900_000))
    };
    let dialog = || HookEvent::DialogShown { text: "may it?".to_owned() };
    assert_eq!(shown_notices(&report_hook(&mut state, dialog())).len(), 1);
    handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { text_outside_tmux: None }),
        NOW,
    );
    let mut next_state = restart_daemon(&state);
    assert!(shown_notices(&report_hook(&mut next_state, dialog())).is_empty());
    report_hook(&mut next_state, HookEvent::TurnEnded);
    assert_eq!(
        shown_notices(&report_hook(&mut next_state, dialog())).len(),
        1,
        "another dialog causes another notice"
    );
}

#[test]
fn notice_follows_when_all_respawns_have_failed() {
    let mut state = new_state();
    state.rescan_at = u64::MAX;
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(NonZeroU16::new(5))),
        50,
    );
    assert!(
        shown_notices(&report_exit(&mut state, &ann, 50, ExitReport::Exit(1))).is_empty(),
        "a respawn follows"
    );
    finish_cleanup(&mut state, &ann);
    let notices = (1..=5).flat_map(|attempt| {
        let respawn =
            started_spawn_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(attempt * 60_000)));
        let result = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "no"));
        shown_notices(&handle_event(
            &mut state,
            CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: respawn, result }),
            now_at(attempt * 60_000),
        ))
    });
    assert_eq!(notices.collect::<Vec<_>>(), [""; 0]);
    // The notice waits for the suspensions of other members.
    let shown = shown_notices(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(400_000)));
    assert_eq!(shown, ["ann@survey is suspended: teamctl up --resume -t survey"]);
}

#[test]
fn notice_is_shown_outside_tmux_only_if_no_attached_client_has_seen_it() {
    let mut state = new_state();
    let ann = MemberName::new_unchecked("ann");
    state.notices.add(&survey_team(), &ann, Some("%3".parse().unwrap()), NoticeKind::Exited);
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    let panes = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::NotifyAttached { panes, .. }) => Some(panes.clone()),
        _ => None,
    });
    assert_eq!(panes, Some(vec!["%3".parse().unwrap()]));
    let shows_notice =
        |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::ShowNotice { .. }));
    assert!(!shows_notice(&effects));
    let notice_outside_tmux =
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { text_outside_tmux: Some("x".into()) });
    assert!(shows_notice(&handle_event(&mut state, notice_outside_tmux, NOW)));
}

/// Without tmux, no client is attached.
#[test]
fn notice_is_shown_at_once_without_tmux() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::ShowNotice { .. })), "{effects:?}");
}

//! What people are told of by themselves, once each.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::notice_queue::NoticeKind;
use crate::core::recovery;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::tests::hooks;
use protocol::control::RestartPolicy;
use protocol::control::{HookEvent, TurnStatus};
use protocol::task::Task;

/// The words for those who are attached.
fn shown_notice(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Pane(PaneJob::NotifyAttached { text, .. }) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(word).collect()
}

fn exits_with(how: ExitReport, restart: RestartPolicy) -> usize {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |order| order.restart = restart), 50);
    shown_notice(&report_exit(&mut state, &ann, 50, how)).len()
}

#[test]
fn a_death_is_told_that_nobody_wanted_and_that_nothing_follows() {
    assert_eq!(exits_with(ExitReport::Exit(1), RestartPolicy::Never), 1);
    assert_eq!(exits_with(ExitReport::Signal(9), RestartPolicy::Never), 1);
    assert_eq!(exits_with(ExitReport::Exit(1), RestartPolicy::OnFailure), 0, "it is started again");
    assert_eq!(exits_with(ExitReport::Exit(0), RestartPolicy::Never), 0, "it has done what it was for");
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    assert!(
        shown_notice(&report_exit(&mut state, &ann, 50, ExitReport::Signal(15))).is_empty(),
        "somebody has killed it"
    );
}

#[test]
fn a_pane_that_a_person_closed_is_no_news() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let ended = |how| CoreEvent::ShimReported { conn: 50, report: FromShim::Exited(how) };
    handle_event(&mut state, ended(ExitReport::TerminalGone), NOW);
    let looked = CoreEvent::PaneJobDone(PaneResult::PaneInspected { spawn: ann, seen: PanePresence::Absent });
    assert!(shown_notice(&handle_event(&mut state, looked, NOW)).is_empty());
}

fn tasks_with(statuses: &[&str]) -> Vec<Task> {
    statuses.iter().zip(1..).map(|(status, id)| new_task(id, status, "")).collect()
}

#[test]
fn that_all_is_done_is_told_when_it_becomes_so_and_not_by_the_next_daemon() {
    let mut state = new_state();
    assert!(shown_notice(&scan_tasks(&mut state, vec![])).is_empty());
    assert!(shown_notice(&scan_tasks(&mut state, tasks_with(&["completed", "in_progress"]))).is_empty());
    let done = shown_notice(&scan_tasks(&mut state, tasks_with(&["completed", "completed"])));
    assert_eq!(done, ["all 2 tasks of survey are done: teamctl task list -t survey"]);
    assert!(shown_notice(&scan_tasks(&mut state, tasks_with(&["completed", "completed"]))).is_empty());
    state.rescan_at = 1_000_000;
    assert!(
        shown_notice(&scan_tasks(&mut state, tasks_with(&["completed", "completed", "pending"]))).is_empty()
    );
    scan_tasks(&mut state, tasks_with(&["completed", "completed", "completed"]));
    assert_eq!(
        shown_notice(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(5_000))).len(),
        1,
        "again, with something new"
    );
    let mut next = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    next.teams.get_mut(&survey_team()).unwrap().watched.logged_tasks =
        state.teams[&survey_team()].watched.logged_tasks.clone();
    assert!(
        shown_notice(&scan_tasks(&mut next, tasks_with(&["completed", "completed", "completed"]))).is_empty()
    );
}

#[test]
fn a_turn_that_writes_nothing_for_long_is_told_once() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    let bob = start_member_with(&mut state, worker_request("bob", |_| {}), 51);
    let silent = start_member(&mut state, "cat", 52);
    for conn in [50, 51] {
        let turn = turn_state(Activity::Active, 1);
        handle_event(&mut state, CoreEvent::ShimReported { conn, report: FromShim::TurnStatus(turn) }, NOW);
    }
    let later = Now { wall: NOW.wall + 700_000, mono: 700_000 };
    let asks = |effects: &[Effect]| -> Vec<SpawnId> {
        let asked = effects.iter().find_map(|effect| match effect {
            Effect::File(FileJob::ReadOutputTimes { logs }) => {
                Some(logs.iter().map(|(id, _)| id.clone()).collect())
            }
            _ => None,
        });
        asked.unwrap_or_default()
    };
    assert!(asks(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000))).is_empty());
    let asked = asks(&handle_event(&mut state, CoreEvent::DeadlineReached, later));
    assert!(asked.contains(&ann) && asked.contains(&bob), "{asked:?}");
    assert!(!asked.contains(&silent), "nobody knows whether that one is in a turn");
    let written = vec![(ann.clone(), NOW.wall), (bob, later.wall - 1)];
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::OutputTimes { written: written.clone() }),
        later,
    );
    assert_eq!(
        shown_notice(&effects),
        ["ann@survey has written nothing for 11 min: teamctl why ann -t survey"]
    );
    assert!(
        shown_notice(&handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::OutputTimes { written }),
            later
        ))
        .is_empty()
    );
}

/// The daemon that takes up what this one has left.
fn restart_daemon(state: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut next = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut next, now_at(800_000));
    next.rescan_at = u64::MAX;
    next
}

#[test]
fn a_turn_that_is_stuck_is_told_by_one_daemon_and_not_before_its_join_has_come_back() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    report_turn(&mut state, 50, turn_state(Activity::Active, 1));
    let seen = |state: &mut State, mono| {
        let written = vec![(ann.clone(), NOW.wall)];
        shown_notice(&handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::OutputTimes { written }),
            now_at(mono),
        ))
    };
    let mut quick = restart_daemon(&state);
    assert!(seen(&mut quick, 800_100).is_empty(), "nobody has told it of that turn");
    assert_eq!(seen(&mut state, 700_000).len(), 1);
    handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { unseen: None }),
        now_at(700_000),
    );
    let back = |state: &mut State, number, since| {
        let turn = TurnStatus { since, ..turn_state(Activity::Active, number) };
        let hello =
            ShimHello { spawn_id: ann.as_str().to_owned(), agent_pid: Some(50), turn_status: Some(turn) };
        handle_event(
            state,
            CoreEvent::ShimConnected { conn: 3, hello, peer: Process { pid: 50, start_time: 5 } },
            now_at(800_200),
        );
    };
    let mut next = restart_daemon(&state);
    back(&mut next, 1, NOW.wall);
    assert!(seen(&mut next, 800_300).is_empty(), "it was told");
    back(&mut quick, 1, NOW.wall);
    assert_eq!(seen(&mut quick, 800_300).len(), 1, "it was not");
    back(&mut next, 2, NOW.wall + 1);
    assert_eq!(seen(&mut next, 800_300).len(), 1, "another turn");
}

#[test]
fn while_the_machine_sleeps_nobody_is_silent() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| {}), 50);
    report_turn(&mut state, 50, turn_state(Activity::Active, 1));
    let asks = |state: &mut State, now| {
        state.rescan_at = 0;
        has_file_job(&handle_event(state, CoreEvent::DeadlineReached, now), |job| {
            matches!(job, FileJob::ReadOutputTimes { .. })
        })
    };
    let awake = Now { wall: NOW.wall + 28_800_000, mono: 20_000 };
    assert!(!asks(&mut state, awake), "it has slept for eight hours");
    let written = CoreEvent::FileJobDone(FileResult::OutputTimes { written: vec![(ann, NOW.wall)] });
    assert!(shown_notice(&handle_event(&mut state, written, awake)).is_empty());
    let after = |ms| Now { wall: awake.wall + ms, mono: awake.mono + ms };
    assert!(!asks(&mut state, after(599_000)));
    assert!(asks(&mut state, after(600_000)));
}

#[test]
fn what_was_decided_and_not_rung_is_the_next_daemons_to_tell() {
    let mut state = new_state();
    for name in ["ann", "bob"] {
        state.notices.add(
            &survey_team(),
            &AgentName::new_unchecked(name),
            Some("%3".parse().unwrap()),
            NoticeKind::Exited,
        );
    }
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    let word = shown_notice(&effects);
    let [Effect::File(FileJob::SaveRoster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(roster.pending_notices.len(), 2, "the roster goes ahead of the word");
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let gone = TeamName::parse("gone").unwrap();
    state.notices.add_budget_exhausted(&gone);
    assert_eq!(
        shown_notice(&handle_event(&mut restart_daemon(&state), CoreEvent::ProbeSeen, NOW)),
        ["2 members have ended, 1 team is done: teamctl status -t survey"],
        "nobody is told of a team that is gone"
    );
    let effects = handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::AttachedNotified { unseen: Some(word[0].clone()) }),
        NOW,
    );
    let [Effect::File(FileJob::SaveRoster(roster)), Effect::ShowNotice { .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(roster.pending_notices.len(), 2, "what waits for the word before");
}

/// Nobody knows when the next one comes.
#[test]
fn whoever_takes_teamd_down_leaves_nothing_to_be_told() {
    let mut state = new_state();
    handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let effects = send_call(&mut state, 9, Request::StopDaemon);
    let effects = with_replies(&mut state, effects);
    let rung = effects.iter().filter(|effect| matches!(effect, Effect::ShowNotice { .. })).count();
    assert!(rung == 1 && matches!(effects.last(), Some(Effect::Exit)), "{effects:?}");
    assert!(state.to_roster().pending_notices.is_empty());
}

#[test]
fn a_dialog_is_told_by_one_daemon_and_is_there_for_the_next() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.request_mut().delivery = Delivery::Hook;
    let token = state.agents[&ann].record.token.clone();
    let says = |state: &mut State, said: HookEvent| {
        let request = Request::ReportHook(hooks::hook_report_in(Some("s-1"), said));
        let call = Call { token: Some(token.clone()), ..*new_call(request) };
        handle_event(state, CoreEvent::ClientCall { client: 70, call: Box::new(call) }, now_at(900_000))
    };
    let dialog = || HookEvent::DialogShown { text: "may it?".to_owned() };
    assert_eq!(shown_notice(&says(&mut state, dialog())).len(), 1);
    handle_event(&mut state, CoreEvent::PaneJobDone(PaneResult::AttachedNotified { unseen: None }), NOW);
    let mut next = restart_daemon(&state);
    assert!(shown_notice(&says(&mut next, dialog())).is_empty());
    says(&mut next, HookEvent::TurnEnded);
    assert_eq!(shown_notice(&says(&mut next, dialog())).len(), 1, "another");
}

#[test]
fn that_nothing_follows_after_all_is_told() {
    let mut state = new_state();
    state.rescan_at = u64::MAX;
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |order| order.restart = RestartPolicy::OnFailure),
        50,
    );
    assert!(
        shown_notice(&report_exit(&mut state, &ann, 50, ExitReport::Exit(1))).is_empty(),
        "it comes back"
    );
    finish_cleanup(&mut state, &ann);
    let words = (1..=5).flat_map(|n| {
        let again =
            started_spawn_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(n * 60_000)));
        let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
        shown_notice(&handle_event(
            &mut state,
            CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: again, result }),
            now_at(n * 60_000),
        ))
    });
    assert_eq!(words.collect::<Vec<_>>(), ["ann@survey has ended: teamctl why ann -t survey"]);
}

#[test]
fn whoever_looks_at_it_is_not_rung_for() {
    let mut state = new_state();
    let ann = AgentName::new_unchecked("ann");
    state.notices.add(&survey_team(), &ann, Some("%3".parse().unwrap()), NoticeKind::Exited);
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    let panes = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::NotifyAttached { panes, .. }) => Some(panes.clone()),
        _ => None,
    });
    assert_eq!(panes, Some(vec!["%3".parse().unwrap()]));
    let rung = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::ShowNotice { .. }));
    assert!(!rung(&effects));
    let announced = CoreEvent::PaneJobDone(PaneResult::AttachedNotified { unseen: Some("x".into()) });
    assert!(rung(&handle_event(&mut state, announced, NOW)));
}

/// Without tmux nobody is attached.
#[test]
fn without_tmux_it_is_rung_at_once() {
    let mut state = new_state();
    state.settings.tmux_socket = None;
    state.notices.add_all_tasks_done(&survey_team(), 1);
    let effects = handle_event(&mut state, CoreEvent::ProbeSeen, NOW);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::ShowNotice { .. })), "{effects:?}");
}

//! Plays a night, compressed into less than a minute: a run file with 20 tasks, and eight members of three
//! makes in worktrees beside workers and a planner. Two programs crash, one waits at a dialog, one reaches its
//! usage limit, a turn hangs, and two members answer each other without end. The daemon, the tmux server and
//! the run are killed, and the machine reboots. In the morning, the answers of the commands are compared with
//! what happened. `report` names every task, and `merge` brings home every branch whose tests pass and names
//! the others. Then the same file runs for a second night.
//!
//! The programs of the members record in `out/log` when a task begins and ends, and in `out/messages`
//! which messages they got. So the test checks that each task is done once and each message taken once.

mod evening;
mod faults;
mod merges;
mod messages;
mod morning;
mod programs;
mod records;
mod second_night;
mod team;

use harness::record_result;

#[test]
fn nights_with_faults_complete_each_task_once() {
    let env = programs::prepare_environment();
    let mut run = team::start_run(&env, &["--keep-team"]);
    let plan = evening::play(&env);
    faults::kill_daemon(&env);
    faults::kill_tmux_server(&env);
    faults::kill_run(&env, &mut run);
    let run = faults::reboot(&env);
    morning::check_answers(&env, &plan);
    morning::approve_plan(&env, run, &plan);
    morning::check_report(&env);
    records::assert_tasks_done_once(&env);
    messages::assert_messages_taken_once(&env);
    merges::merge_first_night(&env);
    merges::merge_and_delete(&env);
    second_night::play(&env);
    merges::merge_and_delete(&env);
    env.shut_down_after_kills();
    record_result("nights", 2);
}

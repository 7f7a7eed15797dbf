//! Plays a night, compressed into about a minute: a run file with nine members of three kinds, three of
//! them in worktrees, and 20 tasks. A program reaches its usage limit, a turn hangs, and two members
//! answer each other without end. The daemon, the tmux server and the run are killed, and the machine
//! reboots. In the morning the answers of the commands are compared with what happened. The branches are
//! merged, and the same file runs for a second night.
//!
//! The programs of the members record in `out/log` when a task begins and ends, and in `out/messages`
//! which messages they got. So the test checks that each task is done once and each message taken once.

mod evening;
mod faults;
mod messages;
mod morning;
mod records;
mod second_night;
mod team;

use harness::record_result;

#[test]
fn nights_with_faults_complete_each_task_once() {
    let env = team::prepare_environment();
    let mut run = team::start_run(&env, &["--keep-team"]);
    let plan = evening::play(&env);
    faults::kill_daemon(&env);
    faults::kill_tmux_server(&env);
    faults::kill_run(&env, &mut run);
    let run = faults::reboot(&env);
    morning::check_answers(&env, &plan);
    morning::approve_plan(&env, run, &plan);
    records::assert_tasks_done_once(&env);
    messages::assert_messages_taken_once(&env);
    second_night::merge_and_delete(&env);
    second_night::play(&env);
    second_night::merge_and_delete(&env);
    env.shut_down_after_kills();
    record_result("nights", 2);
}

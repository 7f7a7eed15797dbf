//! Checks what the lists and the first line of `teamctl top` say about spawns, tasks and messages.

use crate::top::TopPane;
use harness::TestEnv;

#[test]
fn new_spawn_has_no_line_of_an_earlier_one() {
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "echo earlier line; exec sleep 3600"]).expect_success();
    top.wait_for_text("earlier line");
    env.teamctl(["kill", "ann"]).expect_success();
    top.wait_for_text("ann          killed ");
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let screen = top.wait_for_text("ann          active");
    assert!(!screen.contains("earlier line"), "{screen}");
    env.shut_down();
}

#[test]
fn assignment_is_shown_once_and_a_failed_task_is_counted() {
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    for (subject, command) in [("count", "true"), ("break", "false")] {
        env.teamctl(["task", "create", subject, "--owner", "ann", "--command", command]).expect_success();
    }
    top.wait_for_text("done    ann          count");
    let screen = env.wait_until("a failed task and the lead's messages are shown", || {
        let screen = top.screen_text();
        let header = screen.lines().next().unwrap_or_default();
        (header.contains("1 task failed") && header.contains("  lead: ")).then(|| screen.clone())
    });
    assert_eq!(screen.matches(" is yours: count").count(), 1, "{screen}");
    env.shut_down();
}

//! A second night of the same run file without faults.

use super::evening::wait_for_plan;
use super::records::{assert_tasks_undisturbed, recorded_keys, wait_until_done};
use super::team::{TASKS, WORKTREE_MEMBERS, git, start_run};
use harness::TestEnv;

/// Runs the same file again: every task is done, once, and every branch has commits of this night.
pub(super) fn play(env: &TestEnv) {
    env.write_file("out/night", "second night\n");
    env.write_file("out/mended", "");
    env.write_file("out/log", "");
    let mut run = start_run(env, &[]);
    // The planner is the last to end: else it might take a task of the others, and record nothing.
    wait_until_done(env, &recorded_keys().collect::<Vec<_>>());
    env.teamctl(["approve", &wait_for_plan(env)]).expect_success();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", env.read("out/run"));
    let output = env.read("out/run");
    assert!(output.contains(&format!("{0} of {0} tasks are completed.", TASKS.len())), "{output}");
    // The branches are not merged yet, so the run keeps the team without being told to.
    assert!(output.contains("unsaved work"), "{output}");
    assert_tasks_undisturbed(env);
    for (key, owner, _) in TASKS.iter().filter(|(_, owner, _)| WORKTREE_MEMBERS.contains(owner)) {
        let file = git(env, &["show", &format!("teamd/night/{owner}:{key}.txt")]);
        assert_eq!(file, "first night\nsecond night", "{key}");
    }
}

//! Commands about a member, without `-t`, while there are several teams.

use harness::TestEnv;

#[test]
fn name_that_only_one_team_has_needs_no_team_option() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    for (team, name) in [("survey", "ann"), ("other", "bob"), ("survey", "cat"), ("other", "cat")] {
        env.teamctl(["spawn", name, "-t", team, "--", "sh", "-c", "echo hello; exec cat"]).expect_success();
    }
    env.teamctl(["send", "ann", "hi"]).expect_success();
    assert_eq!(env.inbox("survey", "ann").len(), 1);
    for command in ["why", "inbox", "hide", "show", "capture"] {
        env.teamctl([command, "ann"]).expect_success();
        env.teamctl([command, "BOB"]).expect_success();
    }
    env.wait_until("the log is written", || {
        env.teamctl(["logs", "bob"]).stdout.contains("hello").then_some(())
    });
    let error = env.teamctl(["send", "cat", "hi"]).expect_failure(64);
    assert!(error.contains("cat is in other, survey") && error.contains("-t TEAM"), "{error}");
    env.teamctl(["send", "cat@other", "hi"]).expect_success();
    let error = env.teamctl(["kill", "ann", "bob"]).expect_failure(64);
    assert!(error.contains("other, survey"), "{error}");
    env.teamctl(["wait", "--for", "idle", "ann", "--timeout", "1ms"]).expect_failure(75);
    env.teamctl(["kill", "bob"]).expect_success();
    // A past member of one team is enough if no team has a current one.
    assert!(env.teamctl(["logs", "bob"]).stdout.contains("hello"));
    env.teamctl(["shutdown", "ann", "--force", "--grace", "100ms"]).expect_success();
    for team in ["survey", "other"] {
        env.teamctl(["kill", "cat", "-t", team]).expect_success();
    }
    env.shut_down();
}

//! Our own files are another release's, an earlier day's, or gone: nobody is hurt by that.

use harness::{TestEnv, start_time};
use serde_json::Value;
use std::path::PathBuf;

/// The state directory of the environment's root.
pub(crate) fn state_directory(env: &TestEnv, name: &str) -> PathBuf {
    let home = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap();
    home.path().join(name)
}

fn panes(env: &TestEnv) -> String {
    env.tmux(["list-panes", "-a", "-F", "#{pane_id}"])
}

fn start(env: &TestEnv) -> (i32, String) {
    let mut command = env.command("teamd");
    let output = command.arg("--root").arg(env.root()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn roster_of_another_version_is_left_alone() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.kill_process(env.daemon_pid());
    let (path, before) =
        (state_directory(&env, "roster.json"), std::fs::read(state_directory(&env, "roster.json")).unwrap());
    let newer = |records: &str| format!("{{\"version\": 99, \"records\": {records}}}");
    let older = include_str!("../../crates/teamd/fixtures/roster-1.json").to_owned();
    for (other, message) in [
        (newer("[]"), "a newer teamd wrote it (version 99;"),
        (newer("{\"what\": \"we can't know\"}"), "a newer teamd wrote it (version 99;"),
        (older, "an older teamd wrote it (version 1;"),
    ] {
        env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), &other);
        let (code, stderr) = start(&env);
        assert_eq!(code, 78, "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), &before);
    env.start_daemon();
    env.wait_until("ann is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
    env.shut_down();
}

#[test]
fn restored_roster_kills_no_reused_pid() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let (path, backup) =
        (state_directory(&env, "roster.json"), std::fs::read(state_directory(&env, "roster.json")).unwrap());
    env.teamctl(["shutdown", "ann", "--force", "--grace", "0s"]).expect_success();
    // In the backup ann's process is one that somebody else has by now, and her pane is a person's.
    let mut stranger = env.start_teamctl(["events", "-f"]);
    let pane = env.tmux(["split-window", "-t", "=user:", "-d", "-P", "-F", "#{pane_id}", "cat"]);
    assert!(panes(&env).contains(pane.trim()));
    let mut roster: Value = serde_json::from_slice(&backup).unwrap();
    let process = &mut roster["records"][0]["lifecycle"]["running"];
    process["shim"]["pid"] = stranger.id().into();
    process["agent_pid"] = stranger.id().into();
    roster["records"][0]["pane"]["id"] = pane.trim().into();
    env.kill_process(env.daemon_pid());
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), roster.to_string());
    env.start_daemon();
    env.wait_until("ann is told as ended", || {
        env.events()
            .iter()
            .rev()
            .find(|event| event["event"] == "member_exited" && event["description"] != "approved")
            .map(drop)
    });
    env.wait_until("she is off the team", || {
        env.member("ann").is_none_or(|ann| ann["lifecycle"] != "running").then_some(())
    });
    assert!(start_time(stranger.id()).is_some(), "the stranger lives");
    assert!(panes(&env).contains(pane.trim()), "the pane is there: {pane} {}", panes(&env));
    stranger.kill().and_then(|()| stranger.wait()).unwrap();
    env.shut_down();
}

#[test]
fn second_daemon_is_rejected_after_the_lock_was_removed() {
    let env = TestEnv::with_team();
    std::fs::remove_file(state_directory(&env, "teamd.lock")).unwrap();
    let (code, said) = start(&env);
    assert_eq!(code, 69, "{said}");
    env.json(["status"]);
    env.shut_down();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the somebody")]
fn removed_team_directory_keeps_agents_and_is_not_recreated() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let pid = env.member("ann").unwrap()["pid"].as_u64().unwrap() as u32;
    let team = env.root().join("teams/survey");
    std::fs::remove_dir_all(&team).unwrap();
    env.wait_until("its files are looked at", || {
        (env.teamctl(["send", "ann", "x"]).code == 67).then_some(())
    });
    // A daemon that starts looks at everything.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let adopted = |event: Value| event["event"] == "member_adopted";
    env.wait_until("ann is adopted", || env.events().into_iter().any(adopted).then_some(()));
    assert!(start_time(pid).is_some() && !team.exists());
    // Whoever makes a team of that name anew has not to do with the members of the one before.
    env.teamctl(["create", "survey"]).expect_success();
    env.wait_until("she has ended", || start_time(pid).is_none().then_some(()));
    env.shut_down();
}

#[test]
fn daemon_requires_flock() {
    let env = TestEnv::new();
    if !harness::can_trace("no-flock") {
        return;
    }
    let mut command = env.command("strace");
    command
        .args(["-f", "-o", "/dev/null", "-einject=flock:error=ENOLCK"])
        .arg(harness::programs().join("teamd"));
    let output = command.arg("--root").arg(env.root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(74) && said.contains("cannot lock") && said.contains("teamd.lock"),
        "{said}"
    );
    env.shut_down();
}

//! Checks that agents and foreign processes are safe when files of teamd are of another version,
//! restored from a backup or removed.

use harness::{TestEnv, start_time};
use serde_json::Value;
use std::path::PathBuf;

/// The path of the file `name` in the state directory of the environment's root.
pub(crate) fn state_directory(env: &TestEnv, name: &str) -> PathBuf {
    let root_state = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap();
    root_state.path().join(name)
}

fn panes(env: &TestEnv) -> String {
    env.tmux(["list-panes", "-a", "-F", "#{pane_id}"])
}

/// Runs teamd, which must end by itself. Returns its exit code and its stderr.
fn run_daemon(env: &TestEnv) -> (i32, String) {
    let mut command = env.command("teamd");
    let output = command.arg("--root").arg(env.root()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn roster_of_another_version_is_left_alone() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.kill_process(env.daemon_pid());
    let (path, roster) =
        (state_directory(&env, "roster.json"), std::fs::read(state_directory(&env, "roster.json")).unwrap());
    let newer = |records: &str| format!("{{\"version\": 99, \"records\": {records}}}");
    let older = include_str!("../../crates/teamd/fixtures/roster-1.json").to_owned();
    for (text, message) in [
        (newer("[]"), "a newer teamd wrote it (version 99;"),
        (newer("{\"what\": \"we can't know\"}"), "a newer teamd wrote it (version 99;"),
        (older, "an older teamd wrote it (version 1;"),
    ] {
        env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), &text);
        let (code, stderr) = run_daemon(&env);
        assert_eq!(code, 78, "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), &roster);
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
    // In the backup, ann's pid is now the pid of a foreign process, and ann's pane is the user's.
    let mut foreign_process = env.start_teamctl(["events", "-f"]);
    let pane = env.tmux(["split-window", "-t", "=user:", "-d", "-P", "-F", "#{pane_id}", "cat"]);
    assert!(panes(&env).contains(pane.trim()));
    let mut roster: Value = serde_json::from_slice(&backup).unwrap();
    let process = &mut roster["records"][0]["lifecycle"]["running"];
    process["shim"]["pid"] = foreign_process.id().into();
    process["agent_pid"] = foreign_process.id().into();
    roster["records"][0]["pane"]["id"] = pane.trim().into();
    env.kill_process(env.daemon_pid());
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), roster.to_string());
    env.start_daemon();
    env.wait_until("the exit of ann is in the event log", || {
        env.events()
            .iter()
            .rev()
            .find(|event| {
                let is_approved = |text: &str| text.starts_with("approved");
                event["event"] == "member_exited" && !event["description"].as_str().is_some_and(is_approved)
            })
            .map(drop)
    });
    env.wait_until("ann is not running", || {
        env.member("ann").is_none_or(|ann| ann["lifecycle"] != "running").then_some(())
    });
    assert!(start_time(foreign_process.id()).is_some(), "the foreign process is running");
    assert!(panes(&env).contains(pane.trim()), "the pane is open: {pane} {}", panes(&env));
    foreign_process.kill().and_then(|()| foreign_process.wait()).unwrap();
    env.shut_down();
}

#[test]
fn second_daemon_is_rejected_after_the_lock_was_removed() {
    let env = TestEnv::with_team();
    std::fs::remove_file(state_directory(&env, "teamd.lock")).unwrap();
    let (code, stderr) = run_daemon(&env);
    assert_eq!(code, 69, "{stderr}");
    env.json(["status"]);
    env.shut_down();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test acts as another program")]
fn removed_team_directory_keeps_agents_and_is_not_recreated() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let pid = env.member("ann").unwrap()["pid"].as_u64().unwrap() as u32;
    let team = env.root().join("teams/survey");
    std::fs::remove_dir_all(&team).unwrap();
    env.wait_until("ann cannot be found", || (env.teamctl(["send", "ann", "x"]).code == 67).then_some(()));
    // A new daemon scans all files when it starts.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let is_adoption = |event: Value| event["event"] == "member_adopted";
    env.wait_until("ann is adopted", || env.events().into_iter().any(is_adoption).then_some(()));
    assert!(start_time(pid).is_some() && !team.exists());
    // A new team of the same name does not get the members of the removed team, so ann's agent is
    // ended.
    env.teamctl(["create", "survey"]).expect_success();
    env.wait_until("ann's process has exited", || start_time(pid).is_none().then_some(()));
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(74) && stderr.contains("cannot lock") && stderr.contains("teamd.lock"),
        "{stderr}"
    );
    env.shut_down();
}

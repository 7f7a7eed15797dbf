//! Our own files are another release's, an earlier day's, or gone: nobody is hurt by that.

use harness::{TestEnv, start_time};
use serde_json::Value;
use std::path::PathBuf;

/// The state directory of the house's root.
pub(crate) fn state_directory(house: &TestEnv, name: &str) -> PathBuf {
    let home = std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap();
    home.path().join(name)
}

fn panes(house: &TestEnv) -> String {
    house.tmux(["list-panes", "-a", "-F", "#{pane_id}"])
}

fn start(house: &TestEnv) -> (i32, String) {
    let mut command = house.command("teamd");
    let output = command.arg("--root").arg(house.root()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn roster_of_another_version_is_left_alone() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    house.kill_process(house.daemon_pid());
    let (path, before) = (
        state_directory(&house, "roster.json"),
        std::fs::read(state_directory(&house, "roster.json")).unwrap(),
    );
    let newer = |records: &str| format!("{{\"version\": 99, \"records\": {records}}}");
    let older = include_str!("../../crates/teamd/fixtures/roster-1.json").to_owned();
    for (other, message) in [
        (newer("[]"), "a newer teamd wrote it (version 99;"),
        (newer("{\"what\": \"we can't know\"}"), "a newer teamd wrote it (version 99;"),
        (older, "an older teamd wrote it (version 1;"),
    ] {
        house.write_file(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), &other);
        let (code, stderr) = start(&house);
        assert_eq!(code, 78, "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }
    house.write_file(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), &before);
    house.start_daemon();
    house.wait_until("ann is adopted", || (house.member("ann")?["lifecycle"] == "running").then_some(()));
    house.shut_down();
}

#[test]
fn restored_roster_kills_no_reused_pid() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    let (path, backup) = (
        state_directory(&house, "roster.json"),
        std::fs::read(state_directory(&house, "roster.json")).unwrap(),
    );
    house.teamctl(["shutdown", "ann", "--force", "--grace", "0s"]).expect_success();
    // In the backup ann's process is one that somebody else has by now, and her pane is a person's.
    let mut stranger = house.start_teamctl(["events", "-f"]);
    let pane = house.tmux(["split-window", "-t", "=user:", "-d", "-P", "-F", "#{pane_id}", "cat"]);
    assert!(panes(&house).contains(pane.trim()));
    let mut roster: Value = serde_json::from_slice(&backup).unwrap();
    let process = &mut roster["records"][0]["lifecycle"]["running"];
    process["shim"]["pid"] = stranger.id().into();
    process["agent_pid"] = stranger.id().into();
    roster["records"][0]["pane"]["id"] = pane.trim().into();
    house.kill_process(house.daemon_pid());
    house.write_file(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), roster.to_string());
    house.start_daemon();
    house.wait_until("ann is told as ended", || {
        house
            .events()
            .iter()
            .rev()
            .find(|event| event["event"] == "member_exited" && event["description"] != "approved")
            .map(drop)
    });
    house.wait_until("she is off the team", || {
        house.member("ann").is_none_or(|ann| ann["lifecycle"] != "running").then_some(())
    });
    assert!(start_time(stranger.id()).is_some(), "the stranger lives");
    assert!(panes(&house).contains(pane.trim()), "the pane is there: {pane} {}", panes(&house));
    stranger.kill().and_then(|()| stranger.wait()).unwrap();
    house.shut_down();
}

#[test]
fn second_daemon_is_rejected_after_the_lock_was_removed() {
    let house = TestEnv::with_team();
    std::fs::remove_file(state_directory(&house, "teamd.lock")).unwrap();
    let (code, said) = start(&house);
    assert_eq!(code, 69, "{said}");
    house.json(["status"]);
    house.shut_down();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the somebody")]
fn removed_team_directory_keeps_agents_and_is_not_recreated() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap() as u32;
    let team = house.root().join("teams/survey");
    std::fs::remove_dir_all(&team).unwrap();
    house.wait_until("its files are looked at", || {
        (house.teamctl(["send", "ann", "x"]).code == 67).then_some(())
    });
    // A daemon that starts looks at everything.
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    let adopted = |event: Value| event["event"] == "member_adopted";
    house.wait_until("ann is adopted", || house.events().into_iter().any(adopted).then_some(()));
    assert!(start_time(pid).is_some() && !team.exists());
    // Whoever makes a team of that name anew has not to do with the members of the one before.
    house.teamctl(["create", "survey"]).expect_success();
    house.wait_until("she has ended", || start_time(pid).is_none().then_some(()));
    house.shut_down();
}

#[test]
fn daemon_requires_flock() {
    let house = TestEnv::new();
    if !harness::can_trace("no-flock") {
        return;
    }
    let mut command = house.command("strace");
    command
        .args(["-f", "-o", "/dev/null", "-einject=flock:error=ENOLCK"])
        .arg(harness::programs().join("teamd"));
    let output = command.arg("--root").arg(house.root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(74) && said.contains("cannot lock") && said.contains("teamd.lock"),
        "{said}"
    );
    house.shut_down();
}

//! Our own files are another release's, an earlier day's, or gone: nobody is hurt by that.

use harness::{House, start_time};
use serde_json::Value;
use std::path::PathBuf;

/// The state directory of the house's root.
pub(crate) fn state(house: &House, name: &str) -> PathBuf {
    let home = std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap();
    home.path().join(name)
}

fn panes(house: &House) -> String {
    house.tmux(["list-panes", "-a", "-F", "#{pane_id}"])
}

fn start(house: &House) -> (i32, String) {
    let mut command = house.command("teamd");
    let output = command.arg("--root").arg(house.root()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_roster_of_a_newer_teamd_is_left_as_it_is() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.kill_9(house.daemon());
    let (path, before) = (state(&house, "roster.json"), std::fs::read(state(&house, "roster.json")).unwrap());
    let of = |agents: &str| format!("{{\"version\": 2, \"teams\": {{}}, \"agents\": {agents}}}");
    for newer in [of("[]"), of("{\"what\": \"we can't know\"}")] {
        house.put(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), &newer);
        let (code, said) = start(&house);
        assert_eq!(code, 78, "{said}");
        assert!(said.contains("a newer teamd wrote it (version 2)"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    }
    house.put(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), &before);
    house.start_daemon();
    house.until("ann is adopted", || (house.member("ann")?["phase"] == "running").then_some(()));
    house.end();
}

#[test]
fn a_roster_from_a_backup_ends_nobody_by_its_old_numbers() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let (path, backup) = (state(&house, "roster.json"), std::fs::read(state(&house, "roster.json")).unwrap());
    house.teamctl(["shutdown", "ann", "--force", "--grace", "0s"]).ok();
    // In the backup ann's process is one that somebody else has by now, and her pane is a person's.
    let mut stranger = house.teamctl_running(["events", "-f"]);
    let pane = house.tmux(["split-window", "-t", "=user:", "-d", "-P", "-F", "#{pane_id}", "cat"]);
    assert!(panes(&house).contains(pane.trim()));
    let mut roster: Value = serde_json::from_slice(&backup).unwrap();
    roster["agents"][0]["join"]["pid"] = stranger.id().into();
    roster["agents"][0]["agent"] = stranger.id().into();
    roster["agents"][0]["pane"]["pane"] = pane.trim().into();
    house.kill_9(house.daemon());
    house.put(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), roster.to_string());
    house.start_daemon();
    house.until("ann is told as ended", || {
        house
            .events()
            .iter()
            .rev()
            .find(|event| event["event"] == "member_ended" && event["how"] != "approved")
            .map(drop)
    });
    house.until("she is off the team", || {
        house.member("ann").is_none_or(|ann| ann["phase"] != "running").then_some(())
    });
    assert!(start_time(stranger.id()).is_some(), "the stranger lives");
    assert!(panes(&house).contains(pane.trim()), "the pane is there: {pane} {}", panes(&house));
    stranger.kill().and_then(|()| stranger.wait()).unwrap();
    house.end();
}

#[test]
fn a_second_daemon_is_refused_where_somebody_removed_the_firsts_lock() {
    let house = House::with_team();
    std::fs::remove_file(state(&house, "teamd.lock")).unwrap();
    let (code, said) = start(&house);
    assert_eq!(code, 69, "{said}");
    house.json(["status"]);
    house.end();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the somebody")]
fn a_team_whose_directory_somebody_removed_keeps_its_agents_and_is_not_made_anew() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap() as u32;
    let team = house.root().join("teams/survey");
    std::fs::remove_dir_all(&team).unwrap();
    house.until("its files are looked at", || (house.teamctl(["send", "ann", "x"]).code == 67).then_some(()));
    // A daemon that starts looks at everything.
    house.kill_9(house.daemon());
    house.start_daemon();
    let adopted = |event: Value| event["event"] == "member_adopted";
    house.until("ann is adopted", || house.events().into_iter().any(adopted).then_some(()));
    assert!(start_time(pid).is_some() && !team.exists());
    // Whoever makes a team of that name anew has not to do with the members of the one before.
    house.teamctl(["create", "survey"]).ok();
    house.until("she has ended", || start_time(pid).is_none().then_some(()));
    house.end();
}

#[test]
fn where_there_is_no_flock_no_daemon_starts() {
    let house = House::empty();
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
    house.end();
}

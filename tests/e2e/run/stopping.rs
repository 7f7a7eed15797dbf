//! A run that is to end before its tasks are done.

use super::{HELD, ended, gone, held, let_go, log, outcomes, run_until_held, team};
use harness::House;
use serde_json::Value;

fn signal(pid: u32, name: &str) {
    std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
}

/// `teamctl run …` in a pane of its own, which stays when it has ended.
fn in_a_pane(house: &House, words: &str) -> String {
    // Into a file, since nobody is told of what comes on the screen.
    let run = format!("trap : INT; teamctl run {words}; echo \"exit $?\" >out/ended; read _");
    house.tmux(["new-session", "-d", "-x90", "-y30", "-PF", "#{pane_id}", "--", "sh", "-c", &run])
}

fn screen(house: &House, pane: &str) -> String {
    house.tmux(["capture-pane", "-p", "-t", pane])
}

#[test]
fn ctrl_c_asks_the_team_to_stop_and_lets_it_finish_what_it_is_in() {
    let house = House::start();
    let file =
        team(["ann"]).task("slow", HELD, "").task("next", "", "blocked_by = ['slow']").in_house(&house);
    let run = run_until_held(&house, &file, &["--json"]);
    signal(run.id(), "INT");
    house.until("it is asked", || {
        let asked =
            |message: &Value| message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
        house.inbox("survey", "ann").iter().any(asked).then_some(())
    });
    let_go(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let result = ran.json();
    assert_eq!(outcomes(&result)[0], "slow completed");
    assert!(!log(&house).contains(&"next".to_owned()));
    assert_eq!((&result["ok"], &result["error"]["kind"]), (&false.into(), &"partly".into()));
    gone(&house);
    house.end();
}

#[test]
fn the_table_goes_on_while_the_team_is_asked_to_stop() {
    let house = House::start();
    house.gate("out/gate");
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let pane = in_a_pane(&house, &file);
    held(&house);
    house.tmux(["send-keys", "-t", &pane, "C-c"]);
    let stops = "stopping: the members are asked, 30s at most; Ctrl-C again ends it at once";
    let row = || {
        let screen = screen(&house, &pane);
        let row = screen.lines().find(|line| line.starts_with("running "))?.to_owned();
        screen.contains(stops).then_some(row)
    };
    let first = house.until("it says that it stops", row);
    house.until("the clock goes on", || row().filter(|row| *row != first));
    let_go(&house);
    house.until("it has ended", || (house.read("out/ended") == "exit 1\n").then_some(()));
    gone(&house);
    house.end();
}

#[test]
fn ctrl_c_twice_ends_it() {
    let house = House::start();
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = run_until_held(&house, &file, &["--json"]);
    signal(run.id(), "INT");
    house.until("it is asked", || (house.member("ann")?["phase"] == "stopping").then_some(()));
    signal(run.id(), "TERM");
    let ran = ended(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["slow not_done: it was not finished"]);
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let house = House::start();
    house.gate("out/gate");
    let file = team(["ann"]).policy("grace = '100ms'").task("slow", HELD, "").in_house(&house);
    let ran = house.teamctl(["run", &file, "--timeout", "2s", "--json"]);
    assert_eq!(ran.code, 75, "{ran:#?}");
    assert_eq!(ran.json()["error"]["kind"], "timeout");
    gone(&house);
    let ran = house.teamctl(["run", &file, "--timeout", "1ms"]);
    let said = "the time is over: the members are asked, 0.1s at most; Ctrl-C ends it at once";
    assert!(ran.code == 75 && ran.stdout.contains(said), "{ran:#?}");
    house.end();
}

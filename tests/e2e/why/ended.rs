//! It does not live: how it ended, from whoever knows.

use super::{first_process, idle, says, stays, task, types};
use harness::House;

#[test]
fn it_was_put_to_rest() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.teamctl(["down", "--keep"]).ok();
    house.start_daemon();
    let told = types(&house, &says(&house, "at_rest"));
    assert!(told.contains("ann runs again in pane"), "{told}");
    house.end();
}

#[test]
fn its_teams_budget_is_used_up() {
    let house = House::empty();
    house.start_daemon();
    let policy = house.put("out/policy.toml", "[policy]\nturns = 1\n");
    house.teamctl(["create", "survey", "--policy", &policy]).ok();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    task(&house, "true");
    let told = says(&house, "budget_spent");
    assert_eq!(told["next"], serde_json::json!(["teamctl policy FILE", "teamctl up --resume"]), "{told}");
    house.end();
}

#[test]
fn by_order_and_so_it_is_known_to_the_next_daemon() {
    let house = House::with_team();
    stays(&house);
    house.teamctl(["kill", "ann"]).ok();
    types(&house, &says(&house, "ended"));
    house.kill_9(house.daemon());
    house.start_daemon();
    let told = says(&house, "ended");
    assert!(told["evidence"][0].as_str().unwrap().contains("ended"), "{told}");
    house.end();
}

#[test]
fn by_failures_again_and_again() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", "echo no; exit 3"]).ok();
    types(&house, &says(&house, "restarting"));
    let told = says(&house, "given_up");
    assert!(told["evidence"][1].as_str().unwrap().contains("exit 3"), "{told}");
    assert!(types(&house, &told).contains("no"));
    house.end();
}

#[test]
fn its_pane_was_closed_by_hand() {
    let house = House::with_team();
    stays(&house);
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["kill-pane", "-t", &pane]);
    assert!(types(&house, &says(&house, "pane_closed")).contains("here"));
    house.end();
}

#[test]
fn its_program_went_away() {
    let house = House::with_team();
    let program = house.script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    house.profile("brief", &format!("feed = 'turn'\nprogram = '{program}'\n"));
    house.teamctl(["spawn", "ann", "--agent", "brief", "--prompt", "one"]).ok();
    idle(&house);
    house.teamctl(["send", "ann", "two"]).ok();
    let told = says(&house, "program_missing");
    assert!(told["evidence"][0].as_str().unwrap().contains("prog"), "{told}");
    types(&house, &told);
    house.end();
}

#[test]
fn its_tmux_server_went_away() {
    let house = House::empty();
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    stays(&house);
    assert!(first_process(&house) > 0);
    house.kill_9(house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    let told = says(&house, "tmux_gone");
    house.tmux(["new-session", "-d", "-s", "user", "--", "cat", "-"]);
    assert!(types(&house, &told).contains("ann runs again in pane"));
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

//! It waits for somebody, or for itself.

use super::{Stopped, idle, says, says_with, stays, task, types, works};
use harness::House;
use serde_json::json;

fn ask(house: &House, text: &str) {
    let ran = house.command(harness::programs().join("agent")).args(["ask", "ann", text]).status();
    assert!(ran.unwrap().success());
}

#[test]
fn for_an_answer_about_permission_or_a_plan() {
    let house = House::with_team();
    stays(&house);
    ask(
        &house,
        r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"cargo test"},"permission_suggestions":[]}"#,
    );
    let told = says(&house, "permission");
    assert!(told["sentence"].as_str().unwrap().contains("Bash: {\"command\":\"cargo test\"}"), "{told}");
    assert!(told["evidence"][0].as_str().unwrap().contains("perm-1-abcdefg"), "{told}");
    assert!(types(&house, &told).contains("cargo test"));
    let ann = [("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")];
    let herself = house.teamctl_with(&["--json", "why", "ann"], &ann).json();
    assert_eq!(herself["causes"][0]["cause"], "permission");
    assert_eq!(herself["causes"][0]["next"], json!(["teamctl send team-lead TEXT"]), "she may not answer it");
    let answer = told["next"][1].as_str().unwrap();
    assert!(house.command("sh").args(["-c", answer]).status().unwrap().success(), "{answer}");
    ask(
        &house,
        r#"{"type":"plan_approval_request","from":"ann","timestamp":"2026-01-01T00:00:00.000Z","planFilePath":"","planContent":"count","requestId":"plan-1-abcdefg"}"#,
    );
    let told = says(&house, "plan_approval");
    assert!(types(&house, &told).contains("hands in a plan"));
    house.end();
}

#[test]
fn for_a_person_alone_and_not_for_ever_where_the_policy_has_it_so() {
    let house = House::start();
    let policy =
        house.put("policy.toml", "[policy]\npermissions = 'person'\ntimeout = '10m'\nafter = 'deny'\n");
    house.teamctl(["create", "survey", "--policy", &policy]).ok();
    stays(&house);
    ask(
        &house,
        r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":null,"permission_suggestions":[]}"#,
    );
    let told = house.until("it waits", || {
        let told = house.teamctl(["why", "ann"]).ok();
        told.contains("asks to use Bash, and waits for the answer of a person.").then_some(told)
    });
    assert!(told.contains("the team's policy denies it in"), "{told}");
    let lead = house.teamctl(["why", "team-lead"]).ok();
    assert!(lead.contains("1 request of members without an answer"), "{lead}");
    let ann = [("TEAMD_AGENT", "ann")];
    assert!(house.teamctl_with(&["why", "ann"], &ann).ok().contains("asks to use Bash"));
    house.teamctl_with(&["why", "team-lead"], &ann).fails(77);
    house.end();
}

#[test]
fn at_a_dialog_on_its_screen() {
    let house = House::with_team();
    let script = house.script("asks", "#!/bin/sh\nprintf 'Do you trust it?\\n1. Yes\\n'\nexec sleep 3600\n");
    let profile = format!(
        "feed = 'pull'\nprogram = '{}'\ndialog = ['''Do you trust it?\n1. Yes''']\n",
        script.display()
    );
    house.profile("asker", &profile);
    house.teamctl(["spawn", "ann", "--agent", "asker"]).ok();
    assert!(types(&house, &says(&house, "dialog")).contains("1. Yes"));
    house.end();
}

#[test]
fn in_plan_mode_with_nothing_to_plan() {
    let house = House::with_team();
    house.profile("planner", "feed = 'turn'\nprogram = 'true'\n[modes]\nplan = ['p']\ndefault = []\n");
    house.teamctl(["spawn", "ann", "--agent", "planner", "--mode", "plan"]).ok();
    idle(&house);
    types(&house, &says(&house, "plan_mode"));
    house.end();
}

#[test]
fn for_the_answer_to_a_shutdown() {
    let house = House::with_team();
    stays(&house);
    let mut asked = house.teamctl_running(["shutdown", "ann", "--grace", "1m"]);
    let mut told = house.until("the request is in the event log", || {
        let told = says(&house, "shutting_down");
        told["evidence"][0].as_str()?.contains("request shutdown-").then_some(told)
    });
    // As it stands it waits for half a minute first.
    told["next"][0] = format!("{} --grace 100ms", told["next"][0].as_str().unwrap()).into();
    types(&house, &told);
    asked.wait().unwrap();
    house.end();
}

#[test]
fn for_a_hook_of_its_program() {
    let house = House::with_team();
    house.profile("deaf", "feed = \"hook\"\nprogram = \"sleep\"\nargs = [\"3600\"]\n");
    house.teamctl(["spawn", "ann", "--agent", "deaf"]).ok();
    types(&house, &says(&house, "never_ready"));
    house.end();
}

#[test]
fn for_its_program_to_begin() {
    let house = House::with_team();
    house
        .profile("mute", "feed = \"acp\"\nprogram = \"sleep\"\nargs = [\"3600\"]\ninstructions = \"none\"\n");
    let mut asked = house.teamctl_running(["spawn", "ann", "--agent", "mute"]);
    types(&house, &says(&house, "starting"));
    house.teamctl(["kill", "ann"]).ok();
    asked.wait().unwrap();
    house.end();
}

#[test]
fn after_turns_that_failed_and_one_that_was_interrupted() {
    let house = House::with_team();
    works(&house);
    for count in [1, 2] {
        task(&house, "echo the reason; exit 3");
        house.until("the turn has failed", || {
            (house.told("ann", "idle_notification").len() == count).then_some(())
        });
        idle(&house);
    }
    let told = says(&house, "turns_failed");
    assert!(told["sentence"].as_str().unwrap().contains("last 2 turns"), "{told}");
    assert!(told["evidence"][0].as_str().unwrap().contains("exit 3"), "{told}");
    types(&house, &told);
    house.until("it has failed again", || (house.told("ann", "idle_notification").len() == 3).then_some(()));
    idle(&house);
    task(&house, "true");
    says(&house, "rests");
    task(&house, "sleep 3600");
    house.until("it works", || (house.member("ann")?["activity"] == "active").then_some(()));
    types(&house, &says(&house, "works"));
    types(&house, &says_with(&house, "silent", &["--silent", "1s"]));
    house.teamctl(["interrupt", "ann"]).ok();
    let told = says(&house, "interrupted");
    assert!(told["next"][0].as_str().unwrap().starts_with("teamctl task release"), "{told}");
    types(&house, &told);
    house.end();
}

#[test]
fn out_of_sight_and_at_rest() {
    let house = House::with_team();
    works(&house);
    house.teamctl(["hide", "ann"]).ok();
    types(&house, &says(&house, "hidden"));
    types(&house, &says(&house, "rests"));
    house.end();
}

#[test]
fn for_mail_that_nobody_gives_it() {
    let house = House::with_team();
    stays(&house);
    house.teamctl(["send", "ann", "one"]).ok();
    house.teamctl(["send", "ann", "two"]).ok();
    let told = says(&house, "unfed");
    assert!(types(&house, &told).contains("two"));
    house.end();
}

#[test]
fn for_a_process_of_its_that_is_stopped() {
    let house = House::with_team();
    let stopped = Stopped::new(stays(&house));
    let told = says(&house, "process_stopped");
    types(&house, &told);
    says(&house, "works");
    drop(stopped);
    house.end();
}

#[test]
fn for_the_process_of_its_turn_that_is_stopped() {
    let house = House::with_team();
    works(&house);
    task(&house, "exec sleep 3600");
    let turn = house.until("the turn has its process", || {
        let evidence = house.member("ann")?["evidence"].as_str()?.to_owned();
        evidence.split_once("pid ")?.1.split(':').next()?.parse().ok()
    });
    let stopped = Stopped::new(turn);
    types(&house, &says(&house, "process_stopped"));
    says(&house, "works");
    drop(stopped);
    house.end();
}

/// Whoever is stopped in a pane of its own tmux lets go on at once.
#[test]
fn for_its_first_process_that_a_new_daemon_does_not_hear() {
    let house = House::with_team();
    let spawned = house.json(["spawn", "ann", "--backend", "in-process", "--", &house.agent(), "stay"]);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", spawned["pid"])).unwrap();
    let first = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    let stopped = Stopped::new(first);
    house.until("the roster has its process", || {
        let state = std::fs::read_dir(house.path("state/teamd")).ok()?.flatten().next()?.path();
        let roster = std::fs::read_to_string(state.join("roster.json")).ok()?;
        roster.contains(&format!("\"agent\":{}", spawned["pid"])).then_some(())
    });
    house.kill_9(house.daemon());
    house.start_daemon();
    types(&house, &says(&house, "cut_off"));
    says(&house, "works");
    drop(stopped);
    house.end();
}

//! The mode in which somebody works, as an answer or a run's file has it.

use super::{PERMISSION, answer, ask, house};
use harness::House;
use serde_json::{Value, json};

#[test]
fn a_plan_goes_on_in_the_leads_mode_where_the_policy_approves_it() {
    let house = house("plans = 'auto'\n");
    ask(
        &house,
        r#"{"type":"plan_approval_request","from":"ann","timestamp":"","planFilePath":"p","planContent":"c","requestId":"plan-1"}"#,
    );
    let yes = answer(&house, "ann");
    assert_eq!((&yes["approved"], &yes["permissionMode"]), (&json!(true), &json!("default")));
    house.end();
}

#[test]
fn a_program_that_is_run_a_turn_at_a_time_plans_first_and_leaves_that_by_approval_alone() {
    let house = House::start();
    house.teamctl(["create", "survey", "--lead-mode", "acceptEdits"]).ok();
    let profile = "feed = 'turn'\nprogram = 'sh'\nargs = ['-c', 'cat >>out/seen; echo mode $1 >>out/seen; echo the plan', 'x', '{options}']\n[modes]\nplan = ['reads']\nacceptEdits = ['edits']\ndefault = ['asks']\n";
    house.profile("planner", profile);
    house.teamctl(["spawn", "ann", "--agent", "planner", "--mode", "plan", "--prompt", "count"]).ok();
    let open = || house.json(["requests"])["requests"].as_array().unwrap().first().cloned();
    let first = house.until("a plan is handed in", open);
    assert_eq!(
        (&first["body"]["planContent"], &first["kind"]),
        (&json!("the plan"), &json!("plan_approval_request"))
    );
    let file = std::path::PathBuf::from(first["body"]["planFilePath"].as_str().unwrap());
    assert!(file.starts_with(house.root().join("plans")) && file.exists());
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_plan_approval"])).then_some(()));
    assert_eq!(house.teamctl(["mode", "ann", "acceptEdits"]).code, 76, "by approval alone");
    house.teamctl(["deny", "plan", "--reason", "smaller"]).ok();
    let second = house.until("another is handed in", || open().filter(|open| open["id"] != first["id"]));
    assert!(!house.read("out/seen").contains("mode edits"));
    house.teamctl(["approve", second["id"].as_str().unwrap()]).ok();
    let seen = || house.read("out/seen");
    house.until("it is carried out", || seen().contains("mode edits").then_some(()));
    assert_eq!(seen().matches("mode reads").count(), 2, "{}", seen());
    assert!(seen().contains("smaller") && seen().contains("Your plan is approved"), "{}", seen());
    let config = || house.read("root/teams/survey/config.json");
    house.until("config.json follows", || config().contains("\"mode\": \"acceptEdits\"").then_some(()));
    house.until("it may be changed now", || {
        (house.teamctl(["mode", "ann", "default"]).code == 0).then_some(())
    });
    house.teamctl(["send", "ann", "go on"]).ok();
    house.until("the next turn is in it", || seen().contains("mode asks").then_some(()));
    house.end();
}

#[test]
fn a_mode_that_can_not_be_kept_is_refused_and_the_leads_is_written() {
    let house = house("permissions = 'person'\n");
    assert_eq!(house.teamctl(["mode", "ann", "acceptEdits"]).code, 76, "it takes a mode at its start alone");
    assert_eq!(house.teamctl(["mode", "nobody", "plan"]).code, 67);
    assert_eq!(house.teamctl(["mode", "ann", "mad"]).code, 64);
    house.teamctl(["mode", "team-lead", "delegate"]).ok();
    let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"][0]["mode"], "delegate");
    house.end();
}

#[test]
fn a_run_that_is_taken_up_is_led_as_its_file_says_by_then() {
    let house = House::start();
    let file = |permissions: &str| {
        let member = format!("[[member]]\nname = 'ann'\ncommand = ['{}', 'stay']\n", house.agent());
        let task = "[[task]]\nkey = 'x'\nsubject = 'x'\nowner = 'ann'\n";
        house.put(
            "team.toml",
            format!("name = 'survey'\n[policy]\npermissions = '{permissions}'\n{member}{task}"),
        )
    };
    let killed = |mut run: std::process::Child| {
        house.kill_9(run.id());
        run.wait().unwrap();
    };
    let path = file("person");
    let run = house.teamctl_running(["run", &path]);
    house.until("ann runs", || house.member("ann").filter(|ann| ann["phase"] == "running"));
    ask(&house, PERMISSION);
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    killed(run);
    file("auto");
    let run = house.teamctl_running(["run", &path, "--resume"]);
    assert_eq!(answer(&house, "ann")["subtype"], "success");
    killed(run);
    house.end();
}

//! The mode in which somebody works, as an answer or a run's file has it.

use super::{PERMISSION, env_with_policy, wait_for_answer, write_request};
use harness::TestEnv;
use serde_json::{Value, json};

#[test]
fn approved_plan_uses_the_leads_mode() {
    let house = env_with_policy("plans = 'auto'\n");
    write_request(
        &house,
        r#"{"type":"plan_approval_request","from":"ann","timestamp":"","planFilePath":"p","planContent":"c","requestId":"plan-1"}"#,
    );
    let yes = wait_for_answer(&house, "ann");
    assert_eq!((&yes["approved"], &yes["permissionMode"]), (&json!(true), &json!("default")));
    house.shut_down();
}

#[test]
fn turn_program_leaves_plan_mode_by_approval_only() {
    let house = TestEnv::with_daemon();
    house.teamctl(["create", "survey", "--lead-mode", "acceptEdits"]).expect_success();
    let profile = "delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', 'cat >>out/seen; echo mode $1 >>out/seen; echo the plan', 'x', '{options}']\n[modes]\nplan = ['reads']\nacceptEdits = ['edits']\ndefault = ['asks']\n";
    house.write_profile("planner", profile);
    house
        .teamctl(["spawn", "ann", "--profile", "planner", "--mode", "plan", "--prompt", "count"])
        .expect_success();
    let open = || house.json(["requests"])["requests"].as_array().unwrap().first().cloned();
    let first = house.wait_until("a plan is handed in", open);
    assert_eq!(
        (&first["body"]["planContent"], &first["kind"]),
        (&json!("the plan"), &json!("plan_approval_request"))
    );
    let file = std::path::PathBuf::from(first["body"]["planFilePath"].as_str().unwrap());
    assert!(file.starts_with(house.root().join("plans")) && file.exists());
    house.wait_until("it waits", || (house.flags("ann") == json!(["awaiting_plan_approval"])).then_some(()));
    assert_eq!(house.teamctl(["mode", "ann", "acceptEdits"]).code, 76, "by approval alone");
    house.teamctl(["deny", "plan", "--reason", "smaller"]).expect_success();
    let second = house.wait_until("another is handed in", || open().filter(|open| open["id"] != first["id"]));
    assert!(!house.read("out/seen").contains("mode edits"));
    house.teamctl(["approve", second["id"].as_str().unwrap()]).expect_success();
    let seen = || house.read("out/seen");
    house.wait_until("it is carried out", || seen().contains("mode edits").then_some(()));
    assert_eq!(seen().matches("mode reads").count(), 2, "{}", seen());
    assert!(seen().contains("smaller") && seen().contains("Your plan is approved"), "{}", seen());
    let config = || house.read("root/teams/survey/config.json");
    house.wait_until("config.json follows", || config().contains("\"mode\": \"acceptEdits\"").then_some(()));
    house.wait_until("it may be changed now", || {
        (house.teamctl(["mode", "ann", "default"]).code == 0).then_some(())
    });
    house.teamctl(["send", "ann", "go on"]).expect_success();
    house.wait_until("the next turn is in it", || seen().contains("mode asks").then_some(()));
    house.shut_down();
}

#[test]
fn unsupported_mode_is_rejected_and_the_leads_is_saved() {
    let house = env_with_policy("permissions = 'person'\n");
    assert_eq!(house.teamctl(["mode", "ann", "acceptEdits"]).code, 76, "it takes a mode at its start alone");
    assert_eq!(house.teamctl(["mode", "nobody", "plan"]).code, 67);
    assert_eq!(house.teamctl(["mode", "ann", "mad"]).code, 64);
    house.teamctl(["mode", "team-lead", "delegate"]).expect_success();
    let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"][0]["mode"], "delegate");
    house.shut_down();
}

#[test]
fn resumed_run_uses_the_files_lead_mode() {
    let house = TestEnv::with_daemon();
    let file = |permissions: &str| {
        let member =
            format!("[[member]]\nname = 'ann'\ncommand = ['{}', 'stay']\n", house.scripted_agent_path());
        let task = "[[task]]\nkey = 'x'\nsubject = 'x'\nowner = 'ann'\n";
        house.write_file(
            "team.toml",
            format!("name = 'survey'\n[policy]\npermissions = '{permissions}'\n{member}{task}"),
        )
    };
    let killed = |mut run: std::process::Child| {
        house.kill_process(run.id());
        run.wait().unwrap();
    };
    let path = file("person");
    let run = house.start_teamctl(["run", &path]);
    house.wait_until("ann runs", || house.member("ann").filter(|ann| ann["lifecycle"] == "running"));
    write_request(&house, PERMISSION);
    house.wait_until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    killed(run);
    file("auto");
    let run = house.start_teamctl(["run", &path, "--resume"]);
    assert_eq!(wait_for_answer(&house, "ann")["subtype"], "success");
    killed(run);
    house.shut_down();
}

//! Checks the permission mode of members and of the lead: set by the answer to a plan, by
//! `teamctl mode` and by a run file.

use super::{PERMISSION, env_with_policy, wait_for_answer, write_request};
use harness::TestEnv;
use serde_json::{Value, json};

#[test]
fn approved_plan_uses_the_leads_mode() {
    let env = env_with_policy("plans = 'auto'\n");
    write_request(
        &env,
        r#"{"type":"plan_approval_request","from":"ann","timestamp":"","planFilePath":"p","planContent":"c","requestId":"plan-1"}"#,
    );
    let answer = wait_for_answer(&env, "ann");
    assert_eq!((&answer["approved"], &answer["permissionMode"]), (&json!(true), &json!("default")));
    env.shut_down();
}

#[test]
fn turn_program_leaves_plan_mode_by_approval_only() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey", "--lead-mode", "acceptEdits"]).expect_success();
    let profile = "delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', 'cat >>out/seen; echo mode $1 >>out/seen; echo the plan', 'x', '{options}']\n[modes]\nplan = ['reads']\nacceptEdits = ['edits']\ndefault = ['asks']\n";
    env.write_profile("planner", profile);
    env.teamctl(["spawn", "ann", "--profile", "planner", "--mode", "plan", "--prompt", "count"])
        .expect_success();
    let first_request = || env.json(["requests"])["requests"].as_array().unwrap().first().cloned();
    let first = env.wait_until("ann has submitted a plan", first_request);
    assert_eq!(
        (&first["body"]["planContent"], &first["kind"]),
        (&json!("the plan"), &json!("plan_approval_request"))
    );
    let file = std::path::PathBuf::from(first["body"]["planFilePath"].as_str().unwrap());
    assert!(file.starts_with(env.root().join("plans")) && file.exists());
    env.wait_until("ann awaits the approval", || {
        (env.flags("ann") == json!(["awaiting_plan_approval"])).then_some(())
    });
    assert_eq!(env.teamctl(["mode", "ann", "acceptEdits"]).code, 76, "only an approval ends plan mode");
    env.teamctl(["deny", "plan", "--reason", "smaller"]).expect_success();
    let second = env.wait_until("ann has submitted another plan", || {
        first_request().filter(|request| request["id"] != first["id"])
    });
    assert!(!env.read("out/seen").contains("mode edits"));
    env.teamctl(["approve", second["id"].as_str().unwrap()]).expect_success();
    let read_turns = || env.read("out/seen");
    env.wait_until("ann carries out the plan", || read_turns().contains("mode edits").then_some(()));
    assert_eq!(read_turns().matches("mode reads").count(), 2, "{}", read_turns());
    assert!(
        read_turns().contains("smaller") && read_turns().contains("Your plan is approved"),
        "{}",
        read_turns()
    );
    let read_config = || env.read("root/teams/survey/config.json");
    env.wait_until("config.json has the new mode", || {
        read_config().contains("\"mode\": \"acceptEdits\"").then_some(())
    });
    env.wait_until("the mode can be changed", || {
        (env.teamctl(["mode", "ann", "default"]).code == 0).then_some(())
    });
    env.teamctl(["send", "ann", "go on"]).expect_success();
    env.wait_until("the next turn is in the mode default", || {
        read_turns().contains("mode asks").then_some(())
    });
    env.shut_down();
}

#[test]
fn unsupported_mode_is_rejected_and_the_leads_is_saved() {
    let env = env_with_policy("permissions = 'person'\n");
    assert_eq!(
        env.teamctl(["mode", "ann", "acceptEdits"]).code,
        76,
        "the program takes a mode only when it starts"
    );
    assert_eq!(env.teamctl(["mode", "nobody", "plan"]).code, 67);
    assert_eq!(env.teamctl(["mode", "ann", "mad"]).code, 64);
    env.teamctl(["mode", "team-lead", "delegate"]).expect_success();
    let config: Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"][0]["mode"], "delegate");
    env.shut_down();
}

#[test]
fn resumed_run_uses_the_files_lead_mode() {
    let env = TestEnv::with_daemon();
    let write_run_file = |permissions: &str| {
        let member =
            format!("[[member]]\nname = 'ann'\ncommand = ['{}', 'stay']\n", env.scripted_agent_path());
        let task = "[[task]]\nkey = 'x'\nsubject = 'x'\nowner = 'ann'\n";
        env.write_file(
            "team.toml",
            format!("name = 'survey'\n[policy]\npermissions = '{permissions}'\n{member}{task}"),
        )
    };
    let kill_run = |mut run: std::process::Child| {
        env.kill_process(run.id());
        run.wait().unwrap();
    };
    let path = write_run_file("person");
    let run = env.start_teamctl(["run", &path]);
    env.wait_until("ann is running", || env.member("ann").filter(|ann| ann["lifecycle"] == "running"));
    write_request(&env, PERMISSION);
    env.wait_until("ann's request is open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    kill_run(run);
    write_run_file("auto");
    let run = env.start_teamctl(["run", &path, "--resume"]);
    assert_eq!(wait_for_answer(&env, "ann")["subtype"], "success");
    kill_run(run);
    // The second run can be killed while it writes an inbox.
    env.shut_down_after_kills();
}

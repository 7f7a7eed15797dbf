//! Checks plan mode: a member in it only reads, submits a plan, and leaves the mode only when its
//! plan is approved.

use crate::acp;
use crate::hooks::wait_until_idle;
use harness::TestEnv;
use serde_json::{Value, json};

/// Waits for plan request `number` of ann, from 1, in the inbox of the lead.
fn wait_for_plan_request(env: &TestEnv, number: usize) -> Value {
    let all = || acp::payloads_to_lead(env, "plan_approval_request");
    env.wait_until(&format!("ann submits plan {number}"), || all().get(number - 1).cloned())
}

fn request_id(request: &Value) -> &str {
    request["requestId"].as_str().unwrap()
}

#[test]
fn acp_agent_leaves_plan_mode_by_approval_only() {
    for backend in acp::BACKENDS {
        let env = acp::env_with_acp_profile(&[]);
        acp::spawn(&env, &["--backend", backend, "--mode", "plan", "--prompt", "do talk"]);
        let first = wait_for_plan_request(&env, 1);
        let text = first["planContent"].as_str().unwrap();
        assert!(text.starts_with("turn 1 in mode read: ") && !text.contains("hm"), "{text}");
        for mode in ["acceptEdits", "default"] {
            let error = env.teamctl(["mode", "ann", mode]).expect_failure(76);
            assert!(error.contains("it plans, and leaves that by the approval of its plan"), "{error}");
        }
        env.teamctl(["deny", request_id(&first), "--reason", "smaller"]).expect_success();
        let second = wait_for_plan_request(&env, 2);
        assert_ne!(first["requestId"], second["requestId"]);
        assert!(second["planContent"].as_str().unwrap().starts_with("turn 2 in mode read: "), "{second}");
        env.teamctl(["approve", request_id(&second), "--mode", "acceptEdits"]).expect_success();
        acp::wait_for_output(&env, "turn 3 in mode code");
        acp::turn_notification(&env, 3);
        assert_eq!(acp::payloads_to_lead(&env, "plan_approval_request").len(), 2);
        acp::shut_down_member(env);
    }
}

#[test]
fn acp_agent_cannot_write_or_leave_plan_mode() {
    let env = acp::env_with_acp_profile(&[]);
    let work = env.path("out/work");
    std::fs::create_dir(&work).unwrap();
    acp::spawn(&env, &["--cwd", work.to_str().unwrap(), "--mode", "plan", "--prompt", "do leave step one"]);
    let first = wait_for_plan_request(&env, 1);
    assert!(first["planContent"].as_str().unwrap().contains("step one"), "{first}");
    assert_eq!(acp::payloads_to_lead(&env, "permission_request"), Vec::<Value>::new());
    for (number, order) in
        [(2, format!("do write {}", work.join("new").display())), (3, "do drift code".to_owned())]
    {
        let request = wait_for_plan_request(&env, number - 1);
        env.teamctl(["deny", request_id(&request), "--reason", &format!("x\n{order}")]).expect_success();
        wait_for_plan_request(&env, number);
    }
    acp::wait_for_output(&env, "cannot write: in this mode it only reads");
    env.wait_until("the agent is set back to the mode read", || {
        let modes = acp::received_calls(&env, "session/set_mode");
        modes.iter().map(|set| &set["params"]["modeId"]).eq(["read", "read"]).then_some(())
    });
    assert!(!work.join("new").exists());
    env.teamctl(["approve", request_id(&wait_for_plan_request(&env, 3))]).expect_success();
    acp::turn_notification(&env, 4);
    acp::send(&env, &format!("do write {}", work.join("new").display()));
    acp::turn_notification(&env, 5);
    assert!(work.join("new").exists());
    acp::shut_down_member(env);
}

/// Kills the shim of ann.
fn kill_shim(env: &TestEnv) {
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let shim = env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    env.kill_process(shim.parse().unwrap());
}

#[test]
fn acp_respawn_keeps_the_mode() {
    let env = acp::env_with_acp_profile(&[]);
    let modes = || -> Vec<Value> {
        acp::received_calls(&env, "session/set_mode")
            .iter()
            .map(|set| set["params"]["modeId"].clone())
            .collect()
    };
    acp::spawn(&env, &["--restart", "on-failure", "--mode", "plan", "--prompt", "do talk"]);
    wait_for_plan_request(&env, 1);
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    kill_shim(&env);
    let second = wait_for_plan_request(&env, 2);
    assert_eq!(modes(), ["read", "read"]);
    env.teamctl(["approve", request_id(&second), "--mode", "acceptEdits"]).expect_success();
    acp::turn_notification(&env, 2);
    env.wait_until("ann is idle after the approval", || {
        (env.member("ann")?["activity"] == "idle").then_some(())
    });
    kill_shim(&env);
    env.wait_until("the new agent is set to the modes read and code", || {
        (modes() == ["read", "read", "code", "code"]).then_some(())
    });
    env.wait_until("the new agent is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    acp::shut_down_member(env);
}

/// An environment with the team `survey` and the profile `planner`, which starts the scripted
/// agent. Its mode is an argument of its command line.
fn env_with_planner() -> TestEnv {
    let env = TestEnv::with_team();
    write_profile(&env, &env.scripted_agent_path(), "");
    env
}

fn write_profile(env: &TestEnv, program: &str, more: &str) {
    let out = env.path("out/ann").display().to_string();
    let text = format!(
        "delivery = \"hook\"\nprogram = \"{program}\"\nargs = [\"hooked\", \"{out}\", \"{{options}}\", \"{{prompt_args}}\"]\n\
         prompt_args = [\"{{prompt}}\"]\n{more}\n[modes]\nplan = [\"--mode=read\"]\ndefault = [\"--mode=ask\"]\n\
         acceptEdits = [\"--mode=edit\"]\n"
    );
    write_profile_file(env, "planner", &text);
}

fn write_profile_file(env: &TestEnv, name: &str, profile: &str) {
    env.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), profile);
}

/// The line of the profile with which the program resumes its session.
fn resume_args(env: &TestEnv) -> String {
    let out = env.path("out/ann").display().to_string();
    format!(
        "resume_args = [\"hooked\", \"{out}\", \"--session={{session}}\", \"{{options}}\", \"{{prompt_args}}\"]"
    )
}

fn spawn(env: &TestEnv, more: &[&str]) {
    let args = ["spawn", "ann", "--profile", "planner", "--mode", "plan"];
    let output = env.teamctl_with(&[&args, more].concat(), &[]);
    assert_eq!(output.code, 0, "{output:#?}\n{}", env.dump_state());
}

/// Waits for a turn of ann whose text contains `part`, and returns its record.
fn turn_containing(env: &TestEnv, part: &str) -> Value {
    let parse_turn = |line: &str| serde_json::from_str::<Value>(line).ok();
    let has_part = |turn: &Value| turn["text"].as_str().is_some_and(|text| text.contains(part));
    env.wait_until(&format!("ann has a turn on {part:?}"), || {
        env.read("out/ann").lines().filter_map(parse_turn).find(has_part)
    })
}

/// Whether ann has read all messages of the lead.
fn all_messages_read(env: &TestEnv) -> Option<()> {
    let inbox = env.inbox("survey", "ann").into_iter();
    inbox
        .filter(|message| message["from"] == "team-lead")
        .all(|message| message["read"] == true)
        .then_some(())
}

/// Waits until ann runs in `mode`, according to the config and the daemon. Checks that the lead was
/// sent no exit message for the respawn.
fn wait_for_plan_execution(env: &TestEnv, mode: &str) {
    env.wait_until(&format!("ann runs in the mode {mode}"), || {
        let config: Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).ok()?;
        let ann = config["members"].as_array()?.iter().find(|member| member["name"] == "ann")?.clone();
        (ann["mode"] == mode && env.member("ann")?["lifecycle"] == "running").then_some(())
    });
    assert_eq!(acp::payloads_to_lead(env, "teammate_terminated"), Vec::<Value>::new());
}

#[test]
fn hook_program_submits_its_reply_and_respawns_on_approval() {
    for backend in acp::BACKENDS {
        let env = TestEnv::with_team();
        write_profile(&env, &env.scripted_agent_path(), &resume_args(&env));
        spawn(&env, &["--backend", backend, "--prompt", "begin"]);
        let first = wait_for_plan_request(&env, 1);
        assert_eq!(first["planContent"], "turn 1 is done");
        let turn = turn_containing(&env, "begin");
        assert_eq!(turn["options"], json!(["--mode=read"]));
        assert!(turn["text"].as_str().unwrap().contains("You are in plan mode"), "{turn}");
        env.teamctl(["mode", "ann", "acceptEdits"]).expect_failure(76);
        env.json(["task", "create", "later"]);
        env.teamctl(["deny", request_id(&first), "--reason", "smaller"]).expect_success();
        let second = wait_for_plan_request(&env, 2);
        assert_eq!(second["planContent"], "turn 2 is done");
        assert_eq!(turn_containing(&env, "smaller")["options"], json!(["--mode=read"]));
        let output = env.teamctl(["approve", request_id(&second), "--mode", "dontAsk"]);
        assert!(output.code == 76 && output.stderr.contains("default, acceptEdits"), "{output:#?}");
        env.teamctl(["approve", request_id(&second), "--mode", "acceptEdits"]).expect_success();
        let turn = turn_containing(&env, "Your plan is approved.");
        assert_eq!((&turn["turn"], &turn["options"]), (&json!(1), &json!(["--session=s-1", "--mode=edit"])));
        wait_for_plan_execution(&env, "acceptEdits");
        turn_containing(&env, "later");
        env.wait_until("all messages of the lead are read", || all_messages_read(&env));
        assert_eq!(acp::payloads_to_lead(&env, "plan_approval_request").len(), 2);
        assert!(
            !env.read("out/ann").contains("Your plan is approved. Carry it out;"),
            "the approval is in one prompt only"
        );
        wait_until_idle(&env, "ann");
        env.shut_down();
    }
}

#[test]
fn immediate_approval_leaves_no_lock() {
    let env = TestEnv::with_daemon();
    env.write_file("policy.toml", "[policy]\nplans = 'auto'\n");
    env.teamctl(["create", "survey", "--policy", env.path("policy.toml").to_str().unwrap()]).expect_success();
    write_profile(&env, &env.scripted_agent_path(), &resume_args(&env));
    spawn(&env, &["--prompt", "begin"]);
    turn_containing(&env, "Your plan is approved.");
    wait_until_idle(&env, "ann");
    // Each of the two spawns has sent its idle notification.
    assert_eq!(
        (
            acp::payloads_to_lead(&env, "plan_approval_request").len(),
            acp::payloads_to_lead(&env, "idle_notification").len()
        ),
        (1, 2)
    );
    env.shut_down();
}

#[test]
fn approval_without_session_is_sent_as_a_message() {
    let env = env_with_planner();
    spawn(&env, &["--prompt", "begin"]);
    env.teamctl(["approve", request_id(&wait_for_plan_request(&env, 1))]).expect_success();
    assert_eq!(turn_containing(&env, "You submitted a plan earlier")["options"], json!(["--mode=ask"]));
    let turn = turn_containing(&env, "Your plan is approved.");
    assert!(turn["text"].as_str().unwrap().contains("turn 1 is done"), "{turn}");
    wait_for_plan_execution(&env, "default");
    env.wait_until("all messages of the lead are read", || all_messages_read(&env));
    wait_until_idle(&env, "ann");
    env.shut_down();
}

#[test]
fn empty_turn_submits_no_plan() {
    let env = env_with_planner();
    spawn(&env, &["--prompt", "mute"]);
    let notification = acp::turn_notification(&env, 1);
    assert_eq!(notification["idleReason"], "failed");
    assert!(notification["failureReason"].as_str().unwrap().contains("there is no plan"), "{notification}");
    let ann = [("TEAMD_MEMBER", "ann")];
    let submit_plan = |text: &str| {
        env.write_script("out/plan", text);
        env.teamctl_with(&["submit-plan", env.path("out/plan").to_str().unwrap()], &ann)
    };
    assert_eq!(submit_plan(" \n").code, 64);
    assert_eq!(submit_plan("1. read").code, 0);
    let output = submit_plan("2. write");
    assert!(output.code == 76 && output.stderr.contains("has no answer yet"), "{output:#?}");
    assert_eq!(wait_for_plan_request(&env, 1)["planContent"], "1. read");
    // A turn before the answer submits no second plan.
    acp::send(&env, "what is it?");
    acp::turn_notification(&env, 2);
    assert_eq!(acp::payloads_to_lead(&env, "plan_approval_request").len(), 1);
    assert_eq!(env.teamctl(["submit-plan", "/dev/null"]).code, 77, "a lead submits no plans");
    env.teamctl(["approve", "plan_approval"]).expect_success();
    wait_for_plan_execution(&env, "default");
    assert_eq!(submit_plan("3. more").code, 76, "ann is not in plan mode");
    wait_until_idle(&env, "ann");
    env.shut_down();
}

#[test]
fn pull_program_respawns_in_the_approved_mode() {
    let env = TestEnv::with_team();
    let out = env.path("out/ann").display().to_string();
    let text = format!(
        "delivery = \"pull\"\nprogram = \"sh\"\nargs = [\"-c\", \"echo $1 >>{out}; exec sleep 1000\", \"x\", \"{{options}}\"]\n\
         [modes]\nplan = [\"read\"]\ndefault = [\"ask\"]\nacceptEdits = [\"edit\"]\n"
    );
    write_profile_file(&env, "planner", &text);
    spawn(&env, &[]);
    let ann = [("TEAMD_MEMBER", "ann")];
    let instructions = env.teamctl_with(&["instructions"], &ann);
    assert!(instructions.stdout.contains("teamctl submit-plan"), "{instructions:#?}");
    env.write_script("out/plan", "1. look");
    env.teamctl_with(&["submit-plan", env.path("out/plan").to_str().unwrap()], &ann).expect_success();
    let first = wait_for_plan_request(&env, 1);
    env.teamctl(["approve", request_id(&first), "--mode", "bypassPermissions"]).expect_failure(76);
    env.teamctl(["mode", "team-lead", "bypassPermissions"]).expect_success();
    env.teamctl(["approve", request_id(&first)]).expect_success();
    env.wait_until("ann is respawned in the mode ask", || {
        (env.read("out/ann") == "read\nask\n").then_some(())
    });
    let mut unread = env.inbox("survey", "ann").into_iter().filter(|message| message["read"] != true);
    assert!(unread.next_back().unwrap()["text"].as_str().unwrap().contains("plan_approval_response"));
    env.shut_down();
}

/// An environment with ann, whose program ignores SIGTERM, so that ending it takes the whole grace
/// period.
fn env_ignoring_term() -> TestEnv {
    let env = TestEnv::with_team();
    let script = format!("#!/bin/sh\ntrap '' TERM\nexec {} \"$@\"\n", env.scripted_agent_path());
    let program = env.write_script("out/stubborn", &script).display().to_string();
    write_profile(&env, &program, &resume_args(&env));
    spawn(&env, &["--prompt", "begin"]);
    env
}

fn wait_until_stopping(env: &TestEnv) {
    env.wait_until("ann is stopping, or was started again", || {
        let ann = env.member("ann")?;
        (ann["lifecycle"] == "stopping" || ann["respawns"] == 1).then_some(())
    });
}

#[test]
fn approval_survives_the_daemon() {
    let kill_before_approval = |env: &TestEnv| {
        let first = wait_for_plan_request(env, 1);
        env.kill_process(env.daemon_pid());
        env.teamctl(["approve", request_id(&first), "--mode", "acceptEdits"]).expect_success();
    };
    let kill_during_respawn = |env: &TestEnv| {
        env.teamctl(["approve", request_id(&wait_for_plan_request(env, 1)), "--mode", "acceptEdits"])
            .expect_success();
        wait_until_stopping(env);
        env.kill_process(env.daemon_pid());
    };
    for kill_daemon in [&kill_before_approval as &dyn Fn(&TestEnv), &kill_during_respawn] {
        let env = env_ignoring_term();
        kill_daemon(&env);
        env.start_daemon();
        assert_eq!(
            turn_containing(&env, "Your plan is approved.")["options"],
            json!(["--session=s-1", "--mode=edit"])
        );
        wait_for_plan_execution(&env, "acceptEdits");
        let turns = env.read("out/ann").matches("Your plan is approved.").count();
        assert_eq!((turns, acp::payloads_to_lead(&env, "plan_approval_request").len()), (1, 1));
        wait_until_idle(&env, "ann");
        env.shut_down();
    }
}

#[test]
fn kill_during_respawn_is_final() {
    let env = env_ignoring_term();
    env.teamctl(["approve", request_id(&wait_for_plan_request(&env, 1))]).expect_success();
    wait_until_stopping(&env);
    env.teamctl(["kill", "ann"]).expect_success();
    env.wait_until("ann has exited", || {
        env.member("ann").is_none_or(|ann| ann["lifecycle"] == "exited").then_some(())
    });
    assert!(!env.read("out/ann").contains("started again"));
    env.shut_down();
}

#[test]
fn respawn_before_approval_stays_in_plan_mode() {
    let env = TestEnv::with_team();
    write_profile(&env, &env.scripted_agent_path(), &resume_args(&env));
    spawn(&env, &["--restart", "on-failure", "--prompt", "begin"]);
    wait_for_plan_request(&env, 1);
    wait_until_idle(&env, "ann");
    let pid = env.member("ann").unwrap()["pid"].as_u64().unwrap();
    env.kill_process(u32::try_from(pid).unwrap());
    assert_eq!(
        turn_containing(&env, "You were started again")["options"],
        json!(["--session=s-1", "--mode=read"])
    );
    env.teamctl(["approve", request_id(&wait_for_plan_request(&env, 2))]).expect_success();
    assert_eq!(
        turn_containing(&env, "Your plan is approved.")["options"],
        json!(["--session=s-1", "--mode=ask"])
    );
    wait_until_idle(&env, "ann");
    env.shut_down();
}

#[test]
fn profile_without_plan_mode_is_rejected() {
    let env = TestEnv::with_team();
    write_profile_file(&env, "open", "delivery = \"pull\"\nprogram = \"sh\"\nmodes = { default = [] }\n");
    for (args, message) in [
        (&["--profile", "worker"][..], "makes no plans"),
        (&["--profile", "shell"], "no plan in `modes`"),
        (&["--profile", "open"], "no plan in `modes`"),
        (&["--", "sleep", "1000"], "nothing says how it only reads"),
    ] {
        let output = env.teamctl_with(&[&["spawn", "ann", "--mode", "plan"], args].concat(), &[]);
        assert!(output.code == 64 && output.stderr.contains(message), "{output:#?}");
    }
    assert_eq!(env.member("ann"), None);
    env.shut_down();
}

//! Plan mode: who begins in it reads, hands in a plan, and leaves it by the approval of the plan alone.

use crate::acp;
use crate::hooks::wait_until_idle;
use harness::TestEnv;
use serde_json::{Value, json};

/// The plan request of ann with that number, from 1.
fn wait_for_plan_request(house: &TestEnv, number: usize) -> Value {
    let all = || acp::payloads_to_lead(house, "plan_approval_request");
    house.wait_until(&format!("ann hands in plan {number}"), || all().get(number - 1).cloned())
}

fn request_id(request: &Value) -> &str {
    request["requestId"].as_str().unwrap()
}

#[test]
fn acp_agent_leaves_plan_mode_by_approval_only() {
    for backend in acp::BACKENDS {
        let house = acp::env_with_acp_profile(&[]);
        acp::spawn(&house, &["--backend", backend, "--mode", "plan", "--prompt", "do talk"]);
        let first = wait_for_plan_request(&house, 1);
        let text = first["planContent"].as_str().unwrap();
        assert!(text.starts_with("turn 1 in mode read: ") && !text.contains("hm"), "{text}");
        house.teamctl(["mode", "ann", "acceptEdits"]).expect_failure(76);
        house.teamctl(["deny", request_id(&first), "--reason", "smaller"]).expect_success();
        let second = wait_for_plan_request(&house, 2);
        assert_ne!(first["requestId"], second["requestId"]);
        assert!(second["planContent"].as_str().unwrap().starts_with("turn 2 in mode read: "), "{second}");
        house.teamctl(["approve", request_id(&second), "--mode", "acceptEdits"]).expect_success();
        acp::wait_for_output(&house, "turn 3 in mode code");
        acp::turn_notification(&house, 3);
        assert_eq!(acp::payloads_to_lead(&house, "plan_approval_request").len(), 2);
        acp::shut_down_member(house);
    }
}

#[test]
fn acp_agent_cannot_write_or_leave_plan_mode() {
    let house = acp::env_with_acp_profile(&[]);
    let work = house.path("out/work");
    std::fs::create_dir(&work).unwrap();
    acp::spawn(&house, &["--cwd", work.to_str().unwrap(), "--mode", "plan", "--prompt", "do leave step one"]);
    let first = wait_for_plan_request(&house, 1);
    assert!(first["planContent"].as_str().unwrap().contains("step one"), "{first}");
    assert_eq!(acp::payloads_to_lead(&house, "permission_request"), Vec::<Value>::new());
    for (number, order) in
        [(2, format!("do write {}", work.join("new").display())), (3, "do drift code".to_owned())]
    {
        let before = wait_for_plan_request(&house, number - 1);
        house.teamctl(["deny", request_id(&before), "--reason", &format!("x\n{order}")]).expect_success();
        wait_for_plan_request(&house, number);
    }
    acp::wait_for_output(&house, "cannot write: in this mode it only reads");
    house.wait_until("it is set back", || {
        let modes = acp::received_calls(&house, "session/set_mode");
        modes.iter().map(|set| &set["params"]["modeId"]).eq(["read", "read"]).then_some(())
    });
    assert!(!work.join("new").exists());
    house.teamctl(["approve", request_id(&wait_for_plan_request(&house, 3))]).expect_success();
    acp::turn_notification(&house, 4);
    acp::send(&house, &format!("do write {}", work.join("new").display()));
    acp::turn_notification(&house, 5);
    assert!(work.join("new").exists());
    acp::shut_down_member(house);
}

/// Kills the shim of ann.
fn kill_shim(house: &TestEnv) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let shim = house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    house.kill_process(shim.parse().unwrap());
}

#[test]
fn acp_respawn_keeps_the_mode() {
    let house = acp::env_with_acp_profile(&[]);
    let modes = || -> Vec<Value> {
        acp::received_calls(&house, "session/set_mode")
            .iter()
            .map(|set| set["params"]["modeId"].clone())
            .collect()
    };
    acp::spawn(&house, &["--restart", "on-failure", "--mode", "plan", "--prompt", "do talk"]);
    wait_for_plan_request(&house, 1);
    house.wait_until("it waits", || (house.member("ann")?["activity"] == "idle").then_some(()));
    kill_shim(&house);
    let again = wait_for_plan_request(&house, 2);
    assert_eq!(modes(), ["read", "read"]);
    house.teamctl(["approve", request_id(&again), "--mode", "acceptEdits"]).expect_success();
    acp::turn_notification(&house, 2);
    house.wait_until("it idles", || (house.member("ann")?["activity"] == "idle").then_some(()));
    kill_shim(&house);
    house.wait_until("it is there again", || (modes() == ["read", "read", "code", "code"]).then_some(()));
    house.wait_until("it idles again", || (house.member("ann")?["activity"] == "idle").then_some(()));
    acp::shut_down_member(house);
}

/// A team, and a profile `planner` for the scripted program of that name, whose mode is an argument of its start.
fn env_with_planner() -> TestEnv {
    let house = TestEnv::with_team();
    write_profile(&house, &house.scripted_agent_path(), "");
    house
}

fn write_profile(house: &TestEnv, program: &str, more: &str) {
    let out = house.path("out/ann").display().to_string();
    let text = format!(
        "delivery = \"hook\"\nprogram = \"{program}\"\nargs = [\"hooked\", \"{out}\", \"{{options}}\", \"{{prompt_args}}\"]\n\
         prompt_args = [\"{{prompt}}\"]\n{more}\n[modes]\nplan = [\"--mode=read\"]\ndefault = [\"--mode=ask\"]\n\
         acceptEdits = [\"--mode=edit\"]\n"
    );
    put(house, "planner", &text);
}

fn put(house: &TestEnv, name: &str, profile: &str) {
    house.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), profile);
}

/// The profile's line for a program that goes on with its session.
fn resume_args(house: &TestEnv) -> String {
    let out = house.path("out/ann").display().to_string();
    format!(
        "resume_args = [\"hooked\", \"{out}\", \"--session={{session}}\", \"{{options}}\", \"{{prompt_args}}\"]"
    )
}

fn spawn(house: &TestEnv, more: &[&str]) {
    let words = ["spawn", "ann", "--profile", "planner", "--mode", "plan"];
    let ran = house.teamctl_with(&[&words, more].concat(), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", house.dump_state());
}

/// Its turn on a text with that in it.
fn turn_containing(house: &TestEnv, part: &str) -> Value {
    let turn = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is = |turn: &Value| turn["text"].as_str().is_some_and(|text| text.contains(part));
    house.wait_until(&format!("a turn on {part}"), || house.read("out/ann").lines().filter_map(turn).find(is))
}

/// What its lead wrote.
fn all_messages_read(house: &TestEnv) -> Option<()> {
    let inbox = house.inbox("survey", "ann").into_iter();
    inbox
        .filter(|message| message["from"] == "team-lead")
        .all(|message| message["read"] == true)
        .then_some(())
}

/// It carries its plan out in that mode: seen from outside.
fn wait_for_plan_execution(house: &TestEnv, mode: &str) {
    house.wait_until("it is a member in that mode", || {
        let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).ok()?;
        let ann = config["members"].as_array()?.iter().find(|member| member["name"] == "ann")?.clone();
        (ann["mode"] == mode && house.member("ann")?["lifecycle"] == "running").then_some(())
    });
    assert_eq!(acp::payloads_to_lead(house, "teammate_terminated"), Vec::<Value>::new());
}

#[test]
fn hook_program_submits_its_reply_and_respawns_on_approval() {
    for backend in acp::BACKENDS {
        let house = TestEnv::with_team();
        write_profile(&house, &house.scripted_agent_path(), &resume_args(&house));
        spawn(&house, &["--backend", backend, "--prompt", "begin"]);
        let first = wait_for_plan_request(&house, 1);
        assert_eq!(first["planContent"], "turn 1 is done");
        let begun = turn_containing(&house, "begin");
        assert_eq!(begun["options"], json!(["--mode=read"]));
        assert!(begun["text"].as_str().unwrap().contains("You are in plan mode"), "{begun}");
        house.teamctl(["mode", "ann", "acceptEdits"]).expect_failure(76);
        house.json(["task", "create", "later"]);
        house.teamctl(["deny", request_id(&first), "--reason", "smaller"]).expect_success();
        let second = wait_for_plan_request(&house, 2);
        assert_eq!(second["planContent"], "turn 2 is done");
        assert_eq!(turn_containing(&house, "smaller")["options"], json!(["--mode=read"]));
        let refused = house.teamctl(["approve", request_id(&second), "--mode", "dontAsk"]);
        assert!(refused.code == 76 && refused.stderr.contains("default, acceptEdits"), "{refused:#?}");
        house.teamctl(["approve", request_id(&second), "--mode", "acceptEdits"]).expect_success();
        let begun = turn_containing(&house, "Your plan is approved.");
        assert_eq!(
            (&begun["turn"], &begun["options"]),
            (&json!(1), &json!(["--session=s-1", "--mode=edit"]))
        );
        wait_for_plan_execution(&house, "acceptEdits");
        turn_containing(&house, "later");
        house.wait_until("all is read", || all_messages_read(&house));
        assert_eq!(acp::payloads_to_lead(&house, "plan_approval_request").len(), 2);
        assert!(!house.read("out/ann").contains("Your plan is approved. Carry it out;"), "it is told once");
        wait_until_idle(&house, "ann");
        house.shut_down();
    }
}

#[test]
fn immediate_approval_leaves_no_lock() {
    let house = TestEnv::with_daemon();
    house.write_file("policy.toml", "[policy]\nplans = 'auto'\n");
    house
        .teamctl(["create", "survey", "--policy", house.path("policy.toml").to_str().unwrap()])
        .expect_success();
    write_profile(&house, &house.scripted_agent_path(), &resume_args(&house));
    spawn(&house, &["--prompt", "begin"]);
    turn_containing(&house, "Your plan is approved.");
    wait_until_idle(&house, "ann");
    // What was written before the life ended is whole, and the next one has been idle since.
    assert_eq!(
        (
            acp::payloads_to_lead(&house, "plan_approval_request").len(),
            acp::payloads_to_lead(&house, "idle_notification").len()
        ),
        (1, 2)
    );
    house.shut_down();
}

#[test]
fn approval_without_session_is_sent_as_a_message() {
    let house = env_with_planner();
    spawn(&house, &["--prompt", "begin"]);
    house.teamctl(["approve", request_id(&wait_for_plan_request(&house, 1))]).expect_success();
    assert_eq!(turn_containing(&house, "You submitted a plan earlier")["options"], json!(["--mode=ask"]));
    let turn = turn_containing(&house, "Your plan is approved.");
    assert!(turn["text"].as_str().unwrap().contains("turn 1 is done"), "{turn}");
    wait_for_plan_execution(&house, "default");
    house.wait_until("all is read", || all_messages_read(&house));
    wait_until_idle(&house, "ann");
    house.shut_down();
}

#[test]
fn empty_turn_submits_no_plan() {
    let house = env_with_planner();
    spawn(&house, &["--prompt", "mute"]);
    let told = acp::turn_notification(&house, 1);
    assert_eq!(told["idleReason"], "failed");
    assert!(told["failureReason"].as_str().unwrap().contains("there is no plan"), "{told}");
    let ann = [("TEAMD_MEMBER", "ann")];
    let plan_of = |text: &str| {
        house.write_script("out/plan", text);
        house.teamctl_with(&["submit-plan", house.path("out/plan").to_str().unwrap()], &ann)
    };
    assert_eq!(plan_of(" \n").code, 64);
    assert_eq!(plan_of("1. read").code, 0);
    let again = plan_of("2. write");
    assert!(again.code == 76 && again.stderr.contains("has no answer yet"), "{again:#?}");
    assert_eq!(wait_for_plan_request(&house, 1)["planContent"], "1. read");
    // A turn while it waits is no other plan.
    acp::send(&house, "what is it?");
    acp::turn_notification(&house, 2);
    assert_eq!(acp::payloads_to_lead(&house, "plan_approval_request").len(), 1);
    assert_eq!(house.teamctl(["submit-plan", "/dev/null"]).code, 77, "a lead has none");
    house.teamctl(["approve", "plan_approval"]).expect_success();
    wait_for_plan_execution(&house, "default");
    assert_eq!(plan_of("3. more").code, 76, "it plans no more");
    wait_until_idle(&house, "ann");
    house.shut_down();
}

#[test]
fn pull_program_respawns_in_the_approved_mode() {
    let house = TestEnv::with_team();
    let out = house.path("out/ann").display().to_string();
    let text = format!(
        "delivery = \"pull\"\nprogram = \"sh\"\nargs = [\"-c\", \"echo $1 >>{out}; exec sleep 1000\", \"x\", \"{{options}}\"]\n\
         [modes]\nplan = [\"read\"]\ndefault = [\"ask\"]\nacceptEdits = [\"edit\"]\n"
    );
    put(&house, "planner", &text);
    spawn(&house, &[]);
    let ann = [("TEAMD_MEMBER", "ann")];
    let asked = house.teamctl_with(&["instructions"], &ann);
    assert!(asked.stdout.contains("teamctl submit-plan"), "{asked:#?}");
    house.write_script("out/plan", "1. look");
    house.teamctl_with(&["submit-plan", house.path("out/plan").to_str().unwrap()], &ann).expect_success();
    let first = wait_for_plan_request(&house, 1);
    house.teamctl(["approve", request_id(&first), "--mode", "bypassPermissions"]).expect_failure(76);
    house.teamctl(["mode", "team-lead", "bypassPermissions"]).expect_success();
    house.teamctl(["approve", request_id(&first)]).expect_success();
    house.wait_until("it begins again", || (house.read("out/ann") == "read\nask\n").then_some(()));
    let mut unread = house.inbox("survey", "ann").into_iter().filter(|message| message["read"] != true);
    assert!(unread.next_back().unwrap()["text"].as_str().unwrap().contains("plan_approval_response"));
    house.shut_down();
}

/// A program that does not heed TERM, so that its end takes the grace.
fn env_ignoring_term() -> TestEnv {
    let house = TestEnv::with_team();
    let script = format!("#!/bin/sh\ntrap '' TERM\nexec {} \"$@\"\n", house.scripted_agent_path());
    let program = house.write_script("out/stubborn", &script).display().to_string();
    write_profile(&house, &program, &resume_args(&house));
    spawn(&house, &["--prompt", "begin"]);
    house
}

fn wait_until_stopping(house: &TestEnv) {
    house.wait_until("its life ends", || (house.member("ann")?["lifecycle"] == "stopping").then_some(()));
}

#[test]
fn approval_survives_the_daemon() {
    let before = |house: &TestEnv| {
        let first = wait_for_plan_request(house, 1);
        house.kill_process(house.daemon_pid());
        house.teamctl(["approve", request_id(&first), "--mode", "acceptEdits"]).expect_success();
    };
    let between = |house: &TestEnv| {
        house
            .teamctl(["approve", request_id(&wait_for_plan_request(house, 1)), "--mode", "acceptEdits"])
            .expect_success();
        wait_until_stopping(house);
        house.kill_process(house.daemon_pid());
    };
    for dies in [&before as &dyn Fn(&TestEnv), &between] {
        let house = env_ignoring_term();
        dies(&house);
        house.start_daemon();
        assert_eq!(
            turn_containing(&house, "Your plan is approved.")["options"],
            json!(["--session=s-1", "--mode=edit"])
        );
        wait_for_plan_execution(&house, "acceptEdits");
        let begun = house.read("out/ann").matches("Your plan is approved.").count();
        assert_eq!((begun, acp::payloads_to_lead(&house, "plan_approval_request").len()), (1, 1));
        wait_until_idle(&house, "ann");
        house.shut_down();
    }
}

#[test]
fn kill_during_respawn_is_final() {
    let house = env_ignoring_term();
    house.teamctl(["approve", request_id(&wait_for_plan_request(&house, 1))]).expect_success();
    wait_until_stopping(&house);
    house.teamctl(["kill", "ann"]).expect_success();
    house.wait_until("it is gone", || {
        house.member("ann").is_none_or(|ann| ann["lifecycle"] == "exited").then_some(())
    });
    assert!(!house.read("out/ann").contains("started again"));
    house.shut_down();
}

#[test]
fn respawn_before_approval_stays_in_plan_mode() {
    let house = TestEnv::with_team();
    write_profile(&house, &house.scripted_agent_path(), &resume_args(&house));
    spawn(&house, &["--restart", "on-failure", "--prompt", "begin"]);
    wait_for_plan_request(&house, 1);
    wait_until_idle(&house, "ann");
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap();
    house.kill_process(u32::try_from(pid).unwrap());
    assert_eq!(
        turn_containing(&house, "You were started again")["options"],
        json!(["--session=s-1", "--mode=read"])
    );
    house.teamctl(["approve", request_id(&wait_for_plan_request(&house, 2))]).expect_success();
    assert_eq!(
        turn_containing(&house, "Your plan is approved.")["options"],
        json!(["--session=s-1", "--mode=ask"])
    );
    wait_until_idle(&house, "ann");
    house.shut_down();
}

#[test]
fn profile_without_plan_mode_is_rejected() {
    let house = TestEnv::with_team();
    put(&house, "open", "delivery = \"pull\"\nprogram = \"sh\"\nmodes = { default = [] }\n");
    for (words, told) in [
        (&["--profile", "worker"][..], "makes no plans"),
        (&["--profile", "shell"], "no plan in `modes`"),
        (&["--profile", "open"], "no plan in `modes`"),
        (&["--", "sleep", "1000"], "nothing says how it only reads"),
    ] {
        let ran = house.teamctl_with(&[&["spawn", "ann", "--mode", "plan"], words].concat(), &[]);
        assert!(ran.code == 64 && ran.stderr.contains(told), "{ran:#?}");
    }
    assert_eq!(house.member("ann"), None);
    house.shut_down();
}

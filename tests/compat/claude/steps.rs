//! What a native teammate is taken through, each step on the ground of those before it.

use crate::claude_env::ClaudeEnv;
use crate::claude_home::put;
use serde_json::Value;

/// A step.
type ClaudeStep = fn(&ClaudeEnv);

/// In this order.
pub(crate) const ALL: [(&str, ClaudeStep); 11] = [
    ("spawn", check_spawn),
    ("reply", check_reply),
    ("idle", check_idle_notifications),
    ("allow", check_allow),
    ("deny", check_deny),
    ("plan", check_plan_approval),
    ("config", check_config),
    ("again", respawn),
    ("lost", resend_lost_request),
    ("ask", check_ask),
    ("shutdown", check_shutdown),
];

/// Registered, in a pane of ours, and its prompt taken out of its inbox.
fn check_spawn(world: &ClaudeEnv) {
    world.spawn("ann", &["--restart", "on-failure"], "SAY ready");
    let entry = world.member_entry("ann").expect("ann is on the team");
    assert!(entry["tmuxPaneId"].as_str().unwrap().starts_with('%'), "{entry}");
    assert_eq!(entry["color"], "blue");
    world
        .env
        .wait_until("the model is asked", || world.env.read("out/model").contains("\"ready\"").then_some(()));
    world.wait_for_idle("ann", 0);
    let unread = world.inbox("ann").into_iter().filter(|message| message["read"] != true);
    assert_eq!(unread.count(), 0, "it marks its own mail, or takes it out");
}

fn check_reply(world: &ClaudeEnv) {
    world.run_turn("ann", "SEND team-lead hi there", || {
        let message = world.env.wait_until("its reply", || world.message_to_lead("ann", "hi there"));
        assert_eq!(message["color"], "blue", "{message}");
    });
}

/// One notification a turn; active while it works, idle then.
fn check_idle_notifications(world: &ClaudeEnv) {
    let told = || world.payloads_to_lead("ann", "idle_notification").len();
    let ended = || world.env.read("out/model").matches("\"doing\":\"").count();
    let before = (told(), ended());
    world.run_turn("ann", "SAY once more", || ());
    assert_eq!(told() - before.0, ended() - before.1, "one for each turn");
    let ann = world.env.member("ann").unwrap();
    assert_eq!((&ann["delivery"], &ann["delivery_point"]), (&"native".into(), &"mid-turn".into()), "{ann}");
}

/// Asks the model to make a file, which takes a permission; gives the request's id.
fn request_permission(world: &ClaudeEnv, name: &str) -> String {
    let request = world.env.wait_until("it asks", || world.open_request("ann", "permission_request"));
    assert_eq!(request["body"]["tool_name"], "Bash", "{request}");
    assert!(request["body"]["input"]["command"].as_str().unwrap().contains(name), "{request}");
    request["id"].as_str().unwrap().to_owned()
}

fn touch(world: &ClaudeEnv, name: &str) -> String {
    let command = format!("touch {}", world.work_path(name).display());
    format!("CALL Bash {}", serde_json::json!({"command": command, "description": "make a file"}))
}

fn check_allow(world: &ClaudeEnv) {
    world.run_turn("ann", &touch(world, "allowed"), || {
        let id = request_permission(world, "allowed");
        world.teamctl(&["approve", &id]).expect_success();
        world.env.wait_until("the tool runs", || world.work_path("allowed").exists().then_some(()));
    });
}

fn check_deny(world: &ClaudeEnv) {
    world.run_turn("ann", &touch(world, "denied"), || {
        let id = request_permission(world, "denied");
        world.teamctl(&["deny", &id, "--reason", "not today"]).expect_success();
    });
    assert!(!world.work_path("denied").exists(), "it has done what it was denied");
}

fn submitted_plan(world: &ClaudeEnv, text: &str) -> String {
    let plan = world.env.wait_until("a plan", || world.open_request("pam", "plan_approval_request"));
    assert_eq!(plan["body"]["planContent"].as_str().unwrap().trim(), text, "{plan}");
    let flags = |pam: &Value| pam["flags"].to_string().contains("awaiting_plan_approval");
    world.env.wait_until("status says so", || world.env.member("pam").filter(flags));
    plan["id"].as_str().unwrap().to_owned()
}

/// Rejected with feedback, then approved: and only then may it write.
fn check_plan_approval(world: &ClaudeEnv) {
    world.spawn("pam", &["--mode", "plan"], "PLAN first plan");
    assert_eq!(world.member_entry("pam").expect("pam is on the team")["planModeRequired"], true);
    let first = submitted_plan(world, "first plan");
    world.wait_for_idle("pam", 0);
    world.teamctl(&["deny", &first, "--reason", "PLAN second plan"]).expect_success();
    world.env.wait_until("another", || world.open_request("pam", "plan_approval_request"));
    let second = submitted_plan(world, "second plan");
    assert_ne!(first, second, "a new id");
    world.wait_for_idle("pam", 1);
    world.teamctl(&["approve", &second, "--mode", "acceptEdits"]).expect_success();
    world.env.wait_until("it has taken up the mode", || {
        world.env.teamctl(["capture", "pam"]).expect_success().contains("accept edits").then_some(())
    });
    world.wait_until_model_idle();
    let write = serde_json::json!({"file_path": world.work_path("planned"), "content": "done"});
    world.teamctl(&["send", "pam", &format!("CALL Write {write}")]).expect_success();
    world.env.wait_until("it writes", || world.work_path("planned").exists().then_some(()));
    assert_eq!(world.payloads_to_lead("pam", "permission_request").len(), 0, "its mode lets it");
}

/// Left empty, as the oldest do now and then when they end.
fn check_config(world: &ClaudeEnv) {
    let members = |config: Value| {
        let members = config["members"].as_array().cloned().unwrap_or_default();
        members
            .iter()
            .map(|member| member["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let before = members(world.env.wait_until("a whole config", || world.config()));
    put(&world.file("teams/survey/config.json"), "");
    let after = members(world.env.wait_until("a whole config", || world.config()));
    assert_eq!((before.len(), after.len()), (3, 3), "{after:?}");
    world.run_turn("ann", "SEND team-lead still here", || {
        world.env.wait_until("its reply", || world.message_to_lead("ann", "still here"));
    });
}

/// Killed: its next life has its name and its conversation.
fn respawn(world: &ClaudeEnv) {
    let before = world.env.member("ann").unwrap()["pid"].as_u64().unwrap();
    world.env.kill_process(u32::try_from(before).unwrap());
    world.env.wait_until("another life", || {
        let ann = world.env.member("ann")?;
        let pid = ann["pid"].as_u64()?;
        (pid != before && ann["lifecycle"] == "running").then_some(())
    });
    world.run_turn("ann", "RECALL team-lead still here", || {
        world.env.wait_until("its reply", || world.message_to_lead("ann", "I remember still here"));
    });
}

/// Marks what waits for its shutdown as read, as an old client does to what came after it looked; its id.
fn mark_request_read(world: &ClaudeEnv) -> Option<String> {
    let mut inbox = world.inbox("ann");
    let request = inbox.iter_mut().find(|message| {
        message["read"] != true
            && message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"))
    })?;
    request["read"] = true.into();
    let payload: Value = serde_json::from_str(request["text"].as_str()?).ok()?;
    let (path, beside) = (world.file("teams/survey/inboxes/ann.json"), world.env.path("out/inbox"));
    put(&beside, &serde_json::to_string_pretty(&inbox).unwrap());
    #[allow(clippy::disallowed_methods, reason = "the test is the client here")]
    std::fs::rename(beside, path).unwrap();
    payload["requestId"].as_str().map(str::to_owned)
}

/// The request is eaten, and asked again under a fresh id.
fn resend_lost_request(world: &ClaudeEnv) {
    let asking = world.env.start_teamctl(["shutdown", "ann", "--grace", "60s"]);
    let eaten = world.env.wait_until("the request", || mark_request_read(world));
    let ended = asking.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let approved = world.payloads_to_lead("ann", "shutdown_approved");
    assert_eq!(approved.len(), 1, "{approved:?}");
    // Unless the client was faster than we.
    let ids = (approved[0]["requestId"].as_str().unwrap(), eaten.as_str());
    assert!(ids.0.starts_with("shutdown-"), "{ids:?}");
    assert_exited(world, "ann");
}

fn assert_exited(world: &ClaudeEnv, name: &str) {
    world.env.wait_until("it is off the team", || {
        (world.env.member(name).is_none() && world.config().is_some() && world.member_entry(name).is_none())
            .then_some(())
    });
    let panes = world.env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
    assert!(!panes.lines().any(|line| line == name), "its pane is closed: {panes}");
}

/// `teamctl ask` gets an answer, and continues its session. The profile `claude` stands for `claude-turn`.
fn check_ask(world: &ClaudeEnv) {
    let work = world.work_path("").display().to_string();
    let options = ["--profile", "claude", "--model", "sonnet", "--cwd", &work, "--timeout", "60s"];
    let first = world.teamctl(&[&["--json", "ask", "SAY the first answer"], &options[..]].concat()).json();
    // The model ends every turn with a word of its own.
    assert!(first["answer"].as_str().is_some_and(|answer| !answer.is_empty()), "{first}");
    let id = first["id"].as_str().unwrap();
    let second = world.teamctl(&["ask", "--resume", id, "SAY the second answer"]).expect_success();
    assert!(!second.trim().is_empty(), "{second}");
    let asked = world.env.read("out/model");
    assert!(asked.contains("the first answer") && asked.contains("the second answer"));
    let error =
        world.teamctl(&["ask", "--timeout", "10ms", "SAY late", "--profile", "claude"]).expect_failure(75);
    assert!(error.contains("timeout"), "{error}");
}

/// It approves and goes, and leaves nothing.
fn check_shutdown(world: &ClaudeEnv) {
    let said = world.teamctl(&["shutdown", "--all", "--reason", "that was all"]).expect_success();
    assert!(said.contains("pam has ended: approved"), "{said}");
    assert_exited(world, "pam");
    let tracking = std::fs::read_dir(world.file("tasks/survey")).unwrap().filter_map(|file| {
        let path = file.unwrap().path();
        path.extension().is_some_and(|kind| kind == "json").then(|| std::fs::read_to_string(path).unwrap())
    });
    for task in tracking {
        assert!(task.contains("\"completed\""), "{task}");
    }
    assert!(world.payloads_to_lead("ann", "teammate_terminated").len() <= 1, "its one crash");
    world.teamctl(&["delete", "survey"]).expect_success();
    world.teamctl(&["down"]).expect_success();
    // Not the harness's own audit: a client that is killed leaves a socket of its own.
    let left = harness::TaggedProcesses::with_tag(&world.env.process_tag()).list();
    let left: Vec<&String> = left.iter().filter(|process| process.contains("--agent-id")).collect();
    assert!(left.is_empty() && !world.file("teams/survey").exists(), "left behind: {left:?}");
}

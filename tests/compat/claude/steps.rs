//! The steps of the test with Claude Code. Each step continues from the state of the previous one.

use crate::Step;
use crate::claude_env::ClaudeEnv;
use crate::claude_home::write_in_place;
use serde_json::Value;

/// The names and functions of all steps, in order.
pub(crate) const ALL: [Step<ClaudeEnv>; 11] = [
    ("spawn", check_spawn),
    ("reply", check_reply),
    ("idle", check_idle_notifications),
    ("allow", check_allow),
    ("deny", check_deny),
    ("plan", check_plan_approval),
    ("config", check_config),
    ("again", check_respawn),
    ("lost", resend_lost_request),
    ("ask", check_ask),
    ("shutdown", check_shutdown),
];

/// Spawns ann. Checks her pane and color in config.json, and that she has read her prompt.
fn check_spawn(claude: &ClaudeEnv) {
    claude.spawn("ann", &["--restart", "on-failure"], "SAY ready");
    let entry = claude.member_entry("ann").expect("ann is on the team");
    assert!(entry["tmuxPaneId"].as_str().unwrap().starts_with('%'), "{entry}");
    assert_eq!(entry["color"], "blue");
    claude.env.wait_until("the model gets the prompt", || {
        claude.env.read("out/model").contains("\"ready\"").then_some(())
    });
    claude.wait_for_idle("ann", 0);
    let unread = claude.inbox("ann").into_iter().filter(|message| message["read"] != true);
    assert_eq!(unread.count(), 0, "unread messages are left in ann's inbox");
}

/// Checks that a message from ann reaches the lead, with her color.
fn check_reply(claude: &ClaudeEnv) {
    claude.run_turn("ann", "SEND team-lead hi there", || {
        let message =
            claude.env.wait_until("the lead has the reply", || claude.message_to_lead("ann", "hi there"));
        assert_eq!(message["color"], "blue", "{message}");
    });
}

/// Checks that each turn ends with one idle notification, and that the delivery is native.
fn check_idle_notifications(claude: &ClaudeEnv) {
    let notifications = || claude.payloads_to_lead("ann", "idle_notification").len();
    let turns = || claude.env.read("out/model").matches("\"doing\":\"").count();
    let before = (notifications(), turns());
    claude.run_turn("ann", "SAY once more", || ());
    assert_eq!(notifications() - before.0, turns() - before.1, "one notification for each turn");
    let ann = claude.env.member("ann").unwrap();
    assert_eq!((&ann["delivery"], &ann["delivery_point"]), (&"native".into(), &"mid-turn".into()), "{ann}");
}

/// Waits for ann's permission request for a command that contains `name`. Returns the id of the
/// request.
fn wait_for_permission_request(claude: &ClaudeEnv, name: &str) -> String {
    let request = claude
        .env
        .wait_until("ann requests a permission", || claude.open_request("ann", "permission_request"));
    assert_eq!(request["body"]["tool_name"], "Bash", "{request}");
    assert!(request["body"]["input"]["command"].as_str().unwrap().contains(name), "{request}");
    request["id"].as_str().unwrap().to_owned()
}

/// A step for the model that creates a file. Claude Code requests a permission for it.
fn touch_step(claude: &ClaudeEnv, name: &str) -> String {
    let command = format!("touch {}", claude.work_path(name).display());
    format!("CALL Bash {}", serde_json::json!({"command": command, "description": "make a file"}))
}

/// Approves a permission request. Checks that the command then runs.
fn check_allow(claude: &ClaudeEnv) {
    claude.run_turn("ann", &touch_step(claude, "allowed"), || {
        let id = wait_for_permission_request(claude, "allowed");
        claude.teamctl(&["approve", &id]).expect_success();
        claude.env.wait_until("the tool runs", || claude.work_path("allowed").exists().then_some(()));
    });
}

/// Denies a permission request. Checks that the command does not run.
fn check_deny(claude: &ClaudeEnv) {
    claude.run_turn("ann", &touch_step(claude, "denied"), || {
        let id = wait_for_permission_request(claude, "denied");
        claude.teamctl(&["deny", &id, "--reason", "not today"]).expect_success();
    });
    assert!(!claude.work_path("denied").exists(), "the denied command has run");
}

/// Waits for pam's plan and checks its text. Returns the id of the request.
fn wait_for_plan(claude: &ClaudeEnv, text: &str) -> String {
    let plan =
        claude.env.wait_until("pam submits a plan", || claude.open_request("pam", "plan_approval_request"));
    assert_eq!(plan["body"]["planContent"].as_str().unwrap().trim(), text, "{plan}");
    let awaits_approval = |pam: &Value| pam["flags"].to_string().contains("awaiting_plan_approval");
    claude.env.wait_until("status shows that pam waits for approval", || {
        claude.env.member("pam").filter(awaits_approval)
    });
    plan["id"].as_str().unwrap().to_owned()
}

/// Rejects pam's first plan with feedback and approves her second one. Checks that pam can then
/// write a file without a permission request.
fn check_plan_approval(claude: &ClaudeEnv) {
    claude.spawn("pam", &["--mode", "plan"], "PLAN first plan");
    assert_eq!(claude.member_entry("pam").expect("pam is on the team")["planModeRequired"], true);
    let first = wait_for_plan(claude, "first plan");
    claude.wait_for_idle("pam", 0);
    claude.teamctl(&["deny", &first, "--reason", "PLAN second plan"]).expect_success();
    claude.env.wait_until("pam submits another plan", || claude.open_request("pam", "plan_approval_request"));
    let second = wait_for_plan(claude, "second plan");
    assert_ne!(first, second, "both plans have the same id");
    claude.wait_for_idle("pam", 1);
    claude.teamctl(&["approve", &second, "--mode", "acceptEdits"]).expect_success();
    claude.env.wait_until("pam shows the new mode", || {
        claude.env.teamctl(["capture", "pam"]).expect_success().contains("accept edits").then_some(())
    });
    claude.wait_until_model_idle();
    let write = serde_json::json!({"file_path": claude.work_path("planned"), "content": "done"});
    claude.teamctl(&["send", "pam", &format!("CALL Write {write}")]).expect_success();
    claude.env.wait_until("pam writes the file", || claude.work_path("planned").exists().then_some(()));
    assert_eq!(
        claude.payloads_to_lead("pam", "permission_request").len(),
        0,
        "pam requested a permission that her mode gives her"
    );
}

/// Truncates config.json, as the oldest versions sometimes do when they exit. Checks that the
/// daemon restores its members.
fn check_config(claude: &ClaudeEnv) {
    let members = |config: Value| {
        let members = config["members"].as_array().cloned().unwrap_or_default();
        members
            .iter()
            .map(|member| member["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let before = members(claude.env.wait_until("config.json is valid", || claude.config()));
    write_in_place(&claude.file("teams/survey/config.json"), "");
    let after = members(claude.env.wait_until("the daemon restores config.json", || claude.config()));
    assert_eq!((before.len(), after.len()), (3, 3), "{after:?}");
    claude.run_turn("ann", "SEND team-lead still here", || {
        claude.env.wait_until("the lead has the reply", || claude.message_to_lead("ann", "still here"));
    });
}

/// Kills ann's process. Checks that the respawned ann has the same name and conversation.
fn check_respawn(claude: &ClaudeEnv) {
    let before = claude.env.member("ann").unwrap()["pid"].as_u64().unwrap();
    claude.env.kill_process(u32::try_from(before).unwrap());
    claude.env.wait_until("ann is respawned", || {
        let ann = claude.env.member("ann")?;
        let pid = ann["pid"].as_u64()?;
        (pid != before && ann["lifecycle"] == "running").then_some(())
    });
    claude.run_turn("ann", "RECALL team-lead still here", || {
        claude
            .env
            .wait_until("the lead has the reply", || claude.message_to_lead("ann", "I remember still here"));
    });
}

/// Marks ann's unread shutdown request as read. An old client does this to a message that arrives
/// after its last scan. Returns the id of the request, or `None` if there is none.
fn mark_request_read(claude: &ClaudeEnv) -> Option<String> {
    let mut inbox = claude.inbox("ann");
    let request = inbox.iter_mut().find(|message| {
        message["read"] != true
            && message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"))
    })?;
    request["read"] = true.into();
    let payload: Value = serde_json::from_str(request["text"].as_str()?).ok()?;
    let (path, temporary) = (claude.file("teams/survey/inboxes/ann.json"), claude.env.path("out/inbox"));
    write_in_place(&temporary, &serde_json::to_string_pretty(&inbox).unwrap());
    #[allow(clippy::disallowed_methods, reason = "the test acts as the client")]
    std::fs::rename(temporary, path).unwrap();
    payload["requestId"].as_str().map(str::to_owned)
}

/// Marks a shutdown request as read before ann reads it. Checks that the shutdown still succeeds,
/// because the daemon sends the request again.
fn resend_lost_request(claude: &ClaudeEnv) {
    let shutdown = claude.env.start_teamctl(["shutdown", "ann", "--grace", "60s"]);
    let lost = claude.env.wait_until("ann has the shutdown request", || mark_request_read(claude));
    let output = shutdown.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let approved = claude.payloads_to_lead("ann", "shutdown_approved");
    assert_eq!(approved.len(), 1, "{approved:?}");
    // The id is that of the second request, or of the first one if ann read it before it was
    // marked.
    let ids = (approved[0]["requestId"].as_str().unwrap(), lost.as_str());
    assert!(ids.0.starts_with("shutdown-"), "{ids:?}");
    assert_exited(claude, "ann");
}

/// Waits until a member is off the team. Checks that its pane is closed.
fn assert_exited(claude: &ClaudeEnv, name: &str) {
    claude.env.wait_until("the member is off the team", || {
        (claude.env.member(name).is_none()
            && claude.config().is_some()
            && claude.member_entry(name).is_none())
        .then_some(())
    });
    let panes = claude.env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
    assert!(!panes.lines().any(|line| line == name), "the pane of {name} is open: {panes}");
}

/// Checks that `teamctl ask` gets an answer, continues its session and has a timeout. In this
/// command, `claude` stands for the profile `claude-turn`.
fn check_ask(claude: &ClaudeEnv) {
    let work = claude.work_path("").display().to_string();
    let options = ["--profile", "claude", "--model", "sonnet", "--cwd", &work, "--timeout", "60s"];
    let first = claude.teamctl(&[&["--json", "ask", "SAY the first answer"], &options[..]].concat()).json();
    assert_eq!(first["answer"], "the first answer", "{first}");
    let id = first["id"].as_str().unwrap();
    let second = claude.teamctl(&["ask", "--resume", id, "SAY the second answer"]).expect_success();
    assert_eq!(second, "the second answer\n");
    let error =
        claude.teamctl(&["ask", "--timeout", "10ms", "SAY late", "--profile", "claude"]).expect_failure(75);
    assert!(error.contains("timeout"), "{error}");
}

/// Shuts the team down. Checks that pam approves, and that no process and no file of the team is
/// left.
fn check_shutdown(claude: &ClaudeEnv) {
    let output = claude.teamctl(&["shutdown", "--all", "--reason", "that was all"]).expect_success();
    assert!(output.contains("pam has ended: approved"), "{output}");
    assert_exited(claude, "pam");
    let tracking_tasks = std::fs::read_dir(claude.file("tasks/survey")).unwrap().filter_map(|file| {
        let path = file.unwrap().path();
        path.extension().is_some_and(|kind| kind == "json").then(|| std::fs::read_to_string(path).unwrap())
    });
    for task in tracking_tasks {
        assert!(task.contains("\"completed\""), "{task}");
    }
    assert!(
        claude.payloads_to_lead("ann", "teammate_terminated").len() <= 1,
        "more terminations than the kill of this test"
    );
    claude.teamctl(&["delete", "survey"]).expect_success();
    claude.teamctl(&["down"]).expect_success();
    // The leak check of the harness would find the socket that a killed client leaves.
    let left = harness::TaggedProcesses::with_tag(&claude.env.process_tag()).list();
    let left: Vec<&String> = left.iter().filter(|process| process.contains("--agent-id")).collect();
    assert!(left.is_empty() && !claude.file("teams/survey").exists(), "left behind: {left:?}");
}

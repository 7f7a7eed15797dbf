//! What a native teammate is taken through, each step on the ground of those before it.

use crate::home::put;
use crate::world::World;
use serde_json::Value;

/// A step.
type Step = fn(&World);

/// In this order.
pub(crate) const ALL: [(&str, Step); 10] = [
    ("spawn", spawn),
    ("reply", reply),
    ("idle", idle),
    ("allow", allow),
    ("deny", deny),
    ("plan", plan),
    ("config", config),
    ("again", again),
    ("lost", lost),
    ("shutdown", shutdown),
];

/// Registered, in a pane of ours, and its prompt taken out of its inbox.
fn spawn(world: &World) {
    world.spawn("ann", &["--restart", "on-failure"], "SAY ready");
    let entry = world.entry("ann").expect("ann is on the team");
    assert!(entry["tmuxPaneId"].as_str().unwrap().starts_with('%'), "{entry}");
    assert_eq!(entry["color"], "blue");
    world
        .house
        .until("the model is asked", || world.house.read("out/model").contains("\"ready\"").then_some(()));
    world.ended("ann", 0);
    let unread = world.inbox("ann").into_iter().filter(|message| message["read"] != true);
    assert_eq!(unread.count(), 0, "it marks its own mail, or takes it out");
}

fn reply(world: &World) {
    world.turn("ann", "SEND team-lead hi there", || {
        let message = world.house.until("its reply", || world.said("ann", "hi there"));
        assert_eq!(message["color"], "blue", "{message}");
    });
}

/// One notification a turn; active while it works, idle then.
fn idle(world: &World) {
    let told = || world.told("ann", "idle_notification").len();
    let ended = || world.house.read("out/model").matches("\"doing\":\"").count();
    let before = (told(), ended());
    world.turn("ann", "SAY once more", || ());
    assert_eq!(told() - before.0, ended() - before.1, "one for each turn");
    let ann = world.house.member("ann").unwrap();
    assert_eq!((&ann["feed"], &ann["reaches"]), (&"native".into(), &"mid-turn".into()), "{ann}");
}

/// Asks the model to make a file, which takes a permission; gives the request's id.
fn wants(world: &World, name: &str) -> String {
    let request = world.house.until("it asks", || world.asked("ann", "permission_request"));
    assert_eq!(request["body"]["tool_name"], "Bash", "{request}");
    assert!(request["body"]["input"]["command"].as_str().unwrap().contains(name), "{request}");
    request["id"].as_str().unwrap().to_owned()
}

fn touch(world: &World, name: &str) -> String {
    let command = format!("touch {}", world.work(name).display());
    format!("CALL Bash {}", serde_json::json!({"command": command, "description": "make a file"}))
}

fn allow(world: &World) {
    world.turn("ann", &touch(world, "allowed"), || {
        let id = wants(world, "allowed");
        world.teamctl(&["approve", &id]).ok();
        world.house.until("the tool runs", || world.work("allowed").exists().then_some(()));
    });
}

fn deny(world: &World) {
    world.turn("ann", &touch(world, "denied"), || {
        let id = wants(world, "denied");
        world.teamctl(&["deny", &id, "--reason", "not today"]).ok();
    });
    assert!(!world.work("denied").exists(), "it has done what it was denied");
}

fn planned(world: &World, text: &str) -> String {
    let plan = world.house.until("a plan", || world.asked("pam", "plan_approval_request"));
    assert_eq!(plan["body"]["planContent"].as_str().unwrap().trim(), text, "{plan}");
    let flags = |pam: &Value| pam["flags"].to_string().contains("awaiting_plan_approval");
    world.house.until("status says so", || world.house.member("pam").filter(flags));
    plan["id"].as_str().unwrap().to_owned()
}

/// Rejected with feedback, then approved: and only then may it write.
fn plan(world: &World) {
    world.spawn("pam", &["--mode", "plan"], "PLAN first plan");
    assert_eq!(world.entry("pam").expect("pam is on the team")["planModeRequired"], true);
    let first = planned(world, "first plan");
    world.ended("pam", 0);
    world.teamctl(&["deny", &first, "--reason", "PLAN second plan"]).ok();
    world.house.until("another", || world.asked("pam", "plan_approval_request"));
    let second = planned(world, "second plan");
    assert_ne!(first, second, "a new id");
    world.ended("pam", 1);
    world.teamctl(&["approve", &second, "--mode", "acceptEdits"]).ok();
    world.house.until("it has taken up the mode", || {
        world.house.teamctl(["capture", "pam"]).ok().contains("accept edits").then_some(())
    });
    world.quiet();
    let write = serde_json::json!({"file_path": world.work("planned"), "content": "done"});
    world.teamctl(&["send", "pam", &format!("CALL Write {write}")]).ok();
    world.house.until("it writes", || world.work("planned").exists().then_some(()));
    assert_eq!(world.told("pam", "permission_request").len(), 0, "its mode lets it");
}

/// Left empty, as the oldest do now and then when they end.
fn config(world: &World) {
    let members = |config: Value| {
        let members = config["members"].as_array().cloned().unwrap_or_default();
        members
            .iter()
            .map(|member| member["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let before = members(world.house.until("a whole config", || world.config()));
    put(&world.file("teams/survey/config.json"), "");
    let after = members(world.house.until("a whole config", || world.config()));
    assert_eq!((before.len(), after.len()), (3, 3), "{after:?}");
    world.turn("ann", "SEND team-lead still here", || {
        world.house.until("its reply", || world.said("ann", "still here"));
    });
}

/// Killed: its next life has its name and its conversation.
fn again(world: &World) {
    let before = world.house.member("ann").unwrap()["pid"].as_u64().unwrap();
    world.house.kill_9(u32::try_from(before).unwrap());
    world.house.until("another life", || {
        let ann = world.house.member("ann")?;
        let pid = ann["pid"].as_u64()?;
        (pid != before && ann["phase"] == "running").then_some(())
    });
    world.turn("ann", "RECALL team-lead still here", || {
        world.house.until("its reply", || world.said("ann", "I remember still here"));
    });
}

/// Marks what waits for its shutdown as read, as an old client does to what came after it looked; its id.
fn eat(world: &World) -> Option<String> {
    let mut inbox = world.inbox("ann");
    let request = inbox.iter_mut().find(|message| {
        message["read"] != true
            && message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"))
    })?;
    request["read"] = true.into();
    let payload: Value = serde_json::from_str(request["text"].as_str()?).ok()?;
    let (path, beside) = (world.file("teams/survey/inboxes/ann.json"), world.house.path("out/inbox"));
    put(&beside, &serde_json::to_string_pretty(&inbox).unwrap());
    #[allow(clippy::disallowed_methods, reason = "the test is the client here")]
    std::fs::rename(beside, path).unwrap();
    payload["requestId"].as_str().map(str::to_owned)
}

/// The request is eaten, and asked again under a fresh id.
fn lost(world: &World) {
    let asking = world.house.teamctl_running(["shutdown", "ann", "--grace", "60s"]);
    let eaten = world.house.until("the request", || eat(world));
    let ended = asking.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let approved = world.told("ann", "shutdown_approved");
    assert_eq!(approved.len(), 1, "{approved:?}");
    // Unless the client was faster than we.
    let ids = (approved[0]["requestId"].as_str().unwrap(), eaten.as_str());
    assert!(ids.0.starts_with("shutdown-"), "{ids:?}");
    gone(world, "ann");
}

fn gone(world: &World, name: &str) {
    world.house.until("it is off the team", || {
        (world.house.member(name).is_none() && world.config().is_some() && world.entry(name).is_none())
            .then_some(())
    });
    let panes = world.house.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
    assert!(!panes.lines().any(|line| line == name), "its pane is closed: {panes}");
}

/// It approves and goes, and leaves nothing.
fn shutdown(world: &World) {
    let said = world.teamctl(&["shutdown", "--all", "--reason", "that was all"]).ok();
    assert!(said.contains("pam has ended: approved"), "{said}");
    gone(world, "pam");
    let tracking = std::fs::read_dir(world.file("tasks/survey")).unwrap().filter_map(|file| {
        let path = file.unwrap().path();
        path.extension().is_some_and(|kind| kind == "json").then(|| std::fs::read_to_string(path).unwrap())
    });
    for task in tracking {
        assert!(task.contains("\"completed\""), "{task}");
    }
    assert!(world.told("ann", "teammate_terminated").len() <= 1, "its one crash");
    world.teamctl(&["delete", "survey"]).ok();
    world.teamctl(&["down"]).ok();
    // Not the harness's own audit: a client that is killed leaves a socket of its own.
    let left = harness::Processes::marked(&world.house.mark()).list();
    let left: Vec<&String> = left.iter().filter(|process| process.contains("--agent-id")).collect();
    assert!(left.is_empty() && !world.file("teams/survey").exists(), "left behind: {left:?}");
}

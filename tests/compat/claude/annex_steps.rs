//! The steps of the test with Claude Code as a member on another host. Each step continues from the
//! state of the previous one.

use crate::Step;
use crate::claude_annex::ClaudeAnnex;
use serde_json::Value;

/// The names and functions of all steps, in order.
pub(crate) const ALL: [Step<ClaudeAnnex>; 4] = [
    ("far-spawn", check_spawn),
    ("far-reply", check_reply),
    ("far-task", check_task),
    ("far-end", check_shutdown),
];

/// Spawns ann on devbox. Checks that she has read her prompt, and that `status` shows her host.
fn check_spawn(claude: &ClaudeAnnex) {
    let work = claude.devbox.work_path("").display().to_string();
    let options = [
        "--host",
        "devbox",
        "--profile",
        "claude",
        "--model",
        "sonnet",
        "--cwd",
        &work,
        "--allow",
        "Bash(teamctl:*)",
    ];
    let arguments = [&["spawn", "ann", "--prompt", "SEND team-lead ready"], &options[..]].concat();
    claude.home.teamctl_with(&arguments, &[]).expect_success();
    claude.wait_for_message("team-lead", "ready");
    claude.wait_for_idle(0);
    let status = claude.home.teamctl(["status"]).expect_success();
    assert!(status.lines().any(|line| line.starts_with("ann") && line.contains("devbox")), "{status}");
}

/// Checks that ann gets bob's message from the home once, and that bob gets her answer once.
fn check_reply(claude: &ClaudeAnnex) {
    claude.run_turn(|| {
        claude.home.teamctl_as(&claude.bob, &["send", "ann", "SEND bob hi there"]).expect_success();
        claude.wait_for_message("bob", "hi there");
    });
    let answers = claude.home.inbox("survey", "bob");
    assert_eq!(answers.len(), 1, "{answers:?}");
    claude.home.wait_until("the home knows that ann has read the message", || {
        let inbox = claude.home.inbox("survey", "ann").into_iter();
        inbox.filter(|message| message["from"] == "bob").all(|message| message["read"] == true).then_some(())
    });
}

/// Lets ann claim a task and complete it. Then assigns another one, which she completes too.
fn check_task(claude: &ClaudeAnnex) {
    let create = |subject: &str, description: &str| {
        let task = claude.home.json(["task", "create", subject, "--description", description]);
        task["task"]["id"].as_str().expect("a task has an id").to_owned()
    };
    let wait_until_done = |id: &str| -> Value {
        claude.home.wait_until("the task is completed", || {
            Some(claude.task(id)).filter(|task| task["status"] == "completed")
        })
    };
    let id = create("open to all", "nothing");
    claude.run_turn(|| {
        let steps = format!("CLAIM {id}\nCOMPLETE {id}");
        claude.home.teamctl_as(&claude.bob, &["send", "ann", &steps]).expect_success();
        assert_eq!(wait_until_done(&id)["owner"], "ann");
    });
    let id = create("for ann", "SEND bob at work");
    claude.run_turn(|| {
        claude.home.teamctl(["task", "update", &id, "--owner", "ann"]).expect_success();
        claude.wait_for_message("bob", "at work");
        assert_eq!(wait_until_done(&id)["owner"], "ann");
    });
    let events = claude.home.events();
    for kind in ["task_started", "task_completed"] {
        let is_anns = |event: &&Value| event["event"] == kind && event["owner"] == "ann";
        assert_eq!(events.iter().filter(is_anns).count(), 2, "{kind}: {events:?}");
    }
}

/// Shuts ann down from the home. Checks that she approves, and that nothing of her is left.
fn check_shutdown(claude: &ClaudeAnnex) {
    let output = claude.home.teamctl(["shutdown", "ann", "--grace", "60s"]).expect_success();
    assert!(output.contains("ann has ended: approved"), "{output}");
    assert!(!claude.home.read_config()["members"].to_string().contains("\"ann\""));
    let devbox = &claude.devbox.env;
    assert!(devbox.member("ann").is_none());
    claude.home.teamctl(["kill", "bob"]).expect_success();
    claude.home.teamctl(["delete", "survey"]).expect_success();
    devbox.wait_until("the mirror is deleted", || claude.devbox.config().is_none().then_some(()));
    devbox.teamctl(["down"]).expect_success();
    claude.home.teamctl(["down"]).expect_success();
    let left = harness::TaggedProcesses::with_tag(&devbox.process_tag()).list();
    let left: Vec<&String> = left.iter().filter(|process| process.contains("--agent-id")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

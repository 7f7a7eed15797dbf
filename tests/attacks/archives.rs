//! Archives for `teamctl import` that run commands, take the memory, or write elsewhere.

use crate::attack_log::{AttackLog, check_refused};
use harness::TestEnv;
use serde_json::{Value, json};
use std::process::Command;

/// The most memory that an import may use, in KiB. It is less than a hostile entry has.
const MAX_IMPORT_KB: u32 = 500_000;

/// The exit codes that say that the archive was refused: invalid, or not without --yes.
const REFUSED: [i32; 2] = [65, 76];

/// A kind of hostile archive, and the shell script that makes `out/evil.tar` from the directory
/// `out/x`, which has the files of a small team.
const ARCHIVES: [(&str, &str); 22] = [
    ("a task with a command", "cp x/command.json x/tasks/t/1.json; tar -cf evil.tar -C x teams tasks"),
    (
        "a policy with commands: any",
        "cp x/open.json x/teamd/policy.json; tar -cf evil.tar -C x teams tasks teamd",
    ),
    ("a policy twice", "tar --hard-dereference -cf evil.tar -C x teams tasks teamd teamd"),
    ("a policy twice, by ./", "tar -cf evil.tar -C x teams tasks teamd ./teamd"),
    (
        "a task twice, second with a command",
        "mkdir y && cp -r x/tasks y && cp x/command.json y/tasks/t/1.json && tar -cf evil.tar -C x teams \
            tasks -C ../y tasks",
    ),
    ("a config twice", "tar --hard-dereference -cf evil.tar -C x teams teams tasks"),
    (
        "an entry of 2 GiB",
        "truncate -s 2G x/teams/t/config.json; tar -cf - -C x teams | head -c 10000 >evil.tar; truncate \
            -s 2G evil.tar",
    ),
    (
        "a sparse entry of 2 GiB",
        "truncate -s 2G x/teams/t/config.json; tar --sparse -cf evil.tar -C x \
        teams",
    ),
    (
        "a sparse entry of 2 GiB, old format",
        "truncate -s 2G x/teams/t/config.json; tar --sparse --format=oldgnu -cf evil.tar -C x teams",
    ),
    (
        "inboxes of 2 GiB together",
        "for n in 1 2 3 4 5 6 7 8 9; do truncate -s 250M x/teams/t/inboxes/a$n.json; done; tar -cf - -C x \
            teams | head -c 300M >evil.tar; truncate -s 2G evil.tar",
    ),
    (
        "a name of 100 kB",
        "long=$(head -c 100000 /dev/zero | tr '\\0' a); tar --transform \"s,^tasks/t/1,$long,\" -cf \
            evil.tar -C x teams tasks",
    ),
    ("a compressed archive", "truncate -s 1G x/teams/t/config.json; tar -czf evil.tar -C x teams"),
    (
        "a high-water mark of 4294967295",
        "echo 4294967295 >x/tasks/t/.highwatermark; tar -cf evil.tar -C x teams tasks",
    ),
    (
        "a task id of 999999999",
        "sed 's/\"1\"/\"999999999\"/' x/tasks/t/1.json >x/tasks/t/999999999.json; tar -cf evil.tar -C x \
            teams tasks",
    ),
    (
        "a request of the year 2099",
        "cp x/request.json x/teams/t/inboxes/team-lead.json; tar -cf evil.tar -C x teams tasks",
    ),
    (
        "a path with ..",
        "echo '[]' >x/victim.json; tar -P --transform 's,victim,../../victim,' -cf evil.tar -C x teams \
            tasks victim.json",
    ),
    (
        "an inbox with ..",
        "echo '[]' >x/victim.json; tar -P --transform 's,victim,teams/t/inboxes/../../../victim,' -cf \
            evil.tar -C x teams tasks victim.json",
    ),
    (
        "an absolute path",
        "echo '[]' >victim.json; tar -P -cf evil.tar -C x teams tasks \
        \"$PWD/victim.json\"",
    ),
    (
        "a link",
        "rm x/tasks/t/1.json; ln -s /etc/passwd x/tasks/t/1.json; tar -cf evil.tar -C x teams \
        tasks",
    ),
    ("a hard link", "ln x/tasks/t/1.json x/tasks/t/2.json; tar -cf evil.tar -C x teams tasks"),
    ("a pipe", "mkfifo x/tasks/t/2.json; tar -cf evil.tar -C x teams tasks"),
    (
        "a session's team",
        "mv x/teams/t x/teams/session-1; mv x/tasks/t x/tasks/session-1; tar -cf evil.tar -C x teams tasks",
    ),
];

/// Writes the files of the team `t`, and those that the scripts use.
fn write_team(env: &TestEnv) {
    let task = |metadata: Value| {
        json!({"id": "1", "subject": "dig", "description": "",
        "status": "pending", "blocks": [], "blockedBy": [], "metadata": metadata})
    };
    let payload = json!({"type": "permission_request", "request_id": "perm-1-aaaaaaa", "agent_id": "ann",
        "tool_name": "Bash",
        "tool_use_id": "t", "description": "d", "input": {}, "permission_suggestions": []});
    let request = json!([{"from": "ann", "text": payload.to_string(),
        "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let files = [
        ("teams/t/config.json", json!({"name": "t", "members": [{"name": "team-lead"}]})),
        ("teams/t/inboxes/ann.json", json!([])),
        ("tasks/t/1.json", task(json!({}))),
        ("teamd/policy.json", json!({})),
        ("command.json", task(json!({"command": "touch out/evil"}))),
        ("open.json", json!({"commands": "any"})),
        ("request.json", request),
    ];
    for (name, value) in files {
        env.write_file(&format!("out/x/{name}"), value.to_string());
    }
}

/// Runs a shell command in the directory `out`.
fn shell(env: &TestEnv, script: &str) -> Command {
    let mut shell = env.command("sh");
    shell.current_dir(env.path("out")).args(["-c", script]);
    shell
}

fn import(env: &TestEnv, script: &str) -> Result<String, String> {
    write_team(env);
    assert!(shell(env, &format!("set -e; {script}")).status().unwrap().success(), "{script}");
    let import = shell(env, &format!("ulimit -v {MAX_IMPORT_KB}; exec teamctl import evil.tar"));
    let output = harness::run_command(import);
    let team_exists = ["t", "session-1"].iter().any(|team| env.root().join("teams").join(team).exists());
    match team_exists {
        true => Err(format!("the team is created: {}", output.stdout)),
        false => check_refused(&output, &REFUSED),
    }
}

/// Checks that the archive is accepted without a hostile entry. Otherwise every attack would fail.
fn check_valid_archive() {
    let env = TestEnv::with_daemon();
    let outcome = import(&env, "tar -cf evil.tar -C x teams tasks teamd");
    assert!(outcome.is_err(), "the archive is refused: {outcome:?}");
    env.shut_down();
}

pub(crate) fn attack(log: &mut AttackLog) {
    check_valid_archive();
    for (what, script) in ARCHIVES {
        let env = TestEnv::with_daemon();
        log.record(format!("imports an archive with {what}"), import(&env, script));
        env.shut_down();
    }
}

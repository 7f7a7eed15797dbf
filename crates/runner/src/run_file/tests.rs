//! Tests of the validation errors of run files, and of the result for valid run files.

use super::*;
use protocol::control_socket::{Backend, RestartPolicy};
use protocol::hosts_file_entry::HostName;
use protocol::permission_mode::PermissionMode;
use protocol::policy::{Approver, ExchangeLimits, PolicyRule, RuleAction, TimeoutAction};
use protocol::policy::{TaskCommandPolicy, WorktreeCommand};
use std::time::Duration;

fn parse_in(text: &str, directory: &Path) -> Result<RunFile, Vec<ValidationError>> {
    let root = Path::new("/root-of-teams");
    parse(text, &FileContext { directory, caller_cwd: directory, root, hosts_file: None })
}

const MEMBER: &str = "[[member]]\nname = 'ann'\ncommand = ['sh']\n";

fn errors(text: &str) -> Vec<String> {
    match parse_in(text, &std::env::temp_dir()) {
        Ok(run) => panic!("no errors in {run:?}"),
        Err(errors) => {
            errors.iter().map(|error| format!("{}:{}: {}", error.line, error.column, error.message)).collect()
        }
    }
}

/// Asserts that a file with a valid name and member in lines 1 to 4 and `rest` after them has one
/// error.
#[track_caller]
fn assert_error(rest: &str, expected: &str) {
    assert_eq!(errors(&format!("name = 't'\n{MEMBER}{rest}")), [expected]);
}

/// Asserts that a second member, whose name is in line 6 and `rest` after it, has one error.
#[track_caller]
fn assert_member_error(rest: &str, expected: &str) {
    assert_error(&format!("[[member]]\nname = 'bob'\n{rest}"), expected);
}

/// Asserts that a run file has only the error `expected`. Its task has a key in line 6, a subject
/// in line 7, and then the lines `rest`.
#[track_caller]
fn assert_task_error(rest: &str, expected: &str) {
    assert_error(&format!("[[task]]\nkey = 'a'\nsubject = 's'\n{rest}"), expected);
}

#[test]
fn all_keys_are_read() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    let text = r#"
name = "survey"
description = "counts"
model = "m1"
profile = "worker"
cwd = "src"
[policy]
plans = "auto"
permissions = "lead"
commands = "any"
max_turns = 500
max_time = "8h"
answer_timeout = "10m"
on_timeout = "deny"
grace = "5s"
retries = 2
max_tokens = 5_000_000_000
max_cost = 2.50
exchange_turns_per_minute = 0
exchange_turns_per_hour = 60
member_share = 40
[[policy.rule]]
tool = "Bash"
pattern = "cargo *"
directory = "src"
answer = "allow"
[[policy.rule]]
tool = "Bash"
answer = "ask"
[[member]]
name = "ann"
agent_type = "counter"
mode = "acceptEdits"
env = { A = "1" }
restart = "on-failure"
backend = "in-process"
[[member]]
name = "bob"
command = ["sh", "-c", "true"]
prompt = "go"
model = "m2"
cwd = "."
[[task]]
key = "count"
subject = "count the lines"
command = "wc -l"
metadata = { priority = 2, tags = ["a", 1.5, true], at = 2026-01-02 }
[[task]]
key = "report"
subject = "write it down"
description = "all of it"
active_form = "writing"
owner = "Bob"
blocked_by = ["count", "count"]
"#;
    let run = parse_in(text, directory.path()).unwrap();
    let src = directory.path().join("src").canonicalize().unwrap();
    assert_eq!((run.name.as_str(), run.description.as_deref(), &run.cwd), ("survey", Some("counts"), &src));
    let grace = Duration::from_secs(5);
    let rule = PolicyRule {
        tool: "Bash".to_owned(),
        pattern: Some("cargo *".to_owned()),
        directory: Some(directory.path().join("src")),
        answer: RuleAction::Allow,
    };
    let team = TeamPolicy {
        task_commands: TaskCommandPolicy::Any,
        plan_approver: Approver::Auto,
        permission_approver: Approver::Lead,
        answer_timeout_ms: Some(600_000),
        on_timeout: TimeoutAction::Deny,
        rules: vec![
            rule.clone(),
            PolicyRule { pattern: None, directory: None, answer: RuleAction::Ask, ..rule },
        ],
        max_turns: Some(500),
        max_tokens: Some(5_000_000_000),
        max_microdollars: Some(2_500_000),
        member_share: Some(40),
        max_time_ms: Some(8 * 3_600_000),
        exchange: ExchangeLimits { turns_per_minute: 0, turns_per_hour: 60 },
        ..TeamPolicy::default()
    };
    assert_eq!(run.policy, RunPolicy { team: team.clone(), grace, retries: 2 });
    assert_eq!(parse_policy(text, directory.path()), Ok(team));
    let [ann, bob] = run.members.as_slice() else { panic!("{:?}", run.members) };
    assert_eq!((ann.backend, ann.restart), (Backend::InProcess, RestartPolicy::OnFailure(None)));
    assert_eq!(
        (ann.model.as_deref(), ann.mode, &ann.cwd),
        (Some("m1"), Some(PermissionMode::AcceptEdits), &src)
    );
    assert_eq!((ann.env["A"].as_str(), ann.agent_type.as_deref()), ("1", Some("counter")));
    assert_eq!((bob.argv.join(" ").as_str(), bob.model.as_deref()), ("sh -c true", Some("m2")));
    assert_eq!((bob.prompt.as_str(), &bob.cwd), ("go", &directory.path().canonicalize().unwrap()));
    let [count, report] = run.tasks.as_slice() else { panic!("{:?}", run.tasks) };
    let metadata =
        r#"{"key":"count","command":"wc -l","at":"2026-01-02","priority":2,"tags":["a",1.5,true]}"#;
    assert_eq!(serde_json::Value::Object(count.metadata.clone()).to_string(), metadata);
    assert_eq!(
        (report.blocked_by.as_slice(), report.active_form.as_deref()),
        ([0].as_slice(), Some("writing"))
    );
    assert_eq!(report.owner, Some(protocol::team_and_member_names::MemberName::new_unchecked("bob")));
    assert_eq!(report.metadata["run_owner"], "Bob");
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    let text = "nam = 't'\n[policy]\ngrace = '5'\n[[member]]\nname = 'a b'\nprofile = 'worker'\n[[task]]\nkey = 'x'\nowner = 'c'\n";
    let messages = errors(text);
    let starts =
        ["1:1: a run file needs the key name", "1:1: a run file takes no key \"nam\"; the nearest is name"];
    assert_eq!(messages[..2], starts);
    for (error, start) in messages[2..].iter().zip([
        "3:9: cannot read the duration 5",
        "5:8: cannot use \"a b\"",
        "7:1: a task needs the key subject",
        "9:9: the owner \"c\" is no member",
    ]) {
        assert!(error.starts_with(start), "{error} does not start with {start}");
    }
    assert_eq!(messages.len(), 6);
}

#[test]
fn invalid_toml_is_reported_without_missing_keys() {
    let messages = errors("name = 't'\nx = \n[[member]\nname = 'ann'\n");
    assert!(messages.len() >= 2, "{messages:?}");
    assert!(
        messages.iter().any(|error| error.starts_with("2:"))
            && messages.iter().any(|error| error.starts_with("3:")),
        "{messages:?}"
    );
    assert!(!messages.iter().any(|error| error.contains("needs")), "{messages:?}");
    assert!(errors("name = 't'\nname = 'u'\n")[0].starts_with("2:1: duplicate key"));
}

#[test]
fn syntax_error_is_reported_once_and_hides_no_other_error() {
    let head = "name = 't'\n[[member]]\nname = 'ann'\n";
    let tasks = "[[task]]\nkey = 'a'\nsubject = 's'\nblocked_by = ['a']\nowner = 'ann'\n";
    let cycle = "8:15: a task would wait for itself: a → a";
    for (broken, error) in [
        ("profile = worker", "4:11: string values must be quoted, expected literal string"),
        ("profile = 'worker", "4:18: invalid literal string, expected `'`"),
    ] {
        assert_eq!(errors(&format!("{head}{broken}\n")), [error]);
        assert_eq!(errors(&format!("{head}{broken}\n{tasks}")), [error, cycle]);
    }
    assert_eq!(errors(&format!("{head}profile 'worker'\n")), ["4:9: key with no value, expected `=`"]);
    let open = "[[task]]\nkey = 'a'\nsubject = 's'\nblocked_by = ['b'\n[[task]]\nkey = 'b'\nsubject = 's'\n";
    let messages = errors(&format!("{head}profile = 'worker'\n{open}"));
    assert!(messages.len() == 1 && messages[0].starts_with("9:1: missing comma"), "{messages:?}");
}

#[test]
fn unknown_keys_are_reported() {
    assert_error("[policy]\nretry = 1\n", "6:1: the policy takes no key \"retry\"; the nearest is retries");
    assert_member_error(
        "profile = 'worker'\npromt = ''\n",
        "8:1: a member takes no key \"promt\"; the nearest is prompt",
    );
    assert_task_error(
        "blockedby = []\n",
        "8:1: a task takes no key \"blockedby\"; the nearest is blocked_by",
    );
}

#[test]
fn missing_keys_are_reported() {
    assert_eq!(
        errors(""),
        ["1:1: a run file needs at least one [[member]]", "1:1: a run file needs the key name"]
    );
    assert_error("[[member]]\nprofile = 'worker'\n", "5:1: a member needs the key name");
    assert_error("[[task]]\nsubject = 's'\n", "5:1: a task needs the key key");
    assert_error("[[task]]\nkey = 'k'\nsubject = ' '\n", "7:11: subject is empty");
}

#[test]
fn policy_errors_are_reported() {
    let rule = |text: &str, expected: &str| assert_error(&format!("[[policy.rule]]\n{text}"), expected);
    rule("answer = 'allow'\n", "5:1: a rule needs the key tool");
    rule("tool = 'Bash'\n", "5:1: a rule needs the key answer");
    rule("tool = 'Bash'\nanswer = 'yes'\n", "7:10: answer is one of allow, deny, ask, not \"yes\"");
    rule("tool = 'Bash'\nanswer = 'ask'\nmatch = 'x'\n", "8:1: a rule takes no key \"match\"");
    assert_error(
        "[policy]\nanswer_timeout = '5s'\n",
        "6:1: answer_timeout needs the key on_timeout: deny, approve or wait",
    );
    assert_error(
        "[policy]\non_timeout = 'deny'\n",
        "6:1: on_timeout needs the key answer_timeout: how long a request waits before",
    );
    assert_error(
        "[policy]\nanswer_timeout = 5\non_timeout = 'deny'\n",
        "6:18: answer_timeout takes a string such as \"10m\", not a number",
    );
    let policy_errors = parse_policy("plans = 'auto'\n", Path::new("/")).unwrap_err();
    let messages: Vec<&str> = policy_errors.iter().map(|error| error.message.as_str()).collect();
    assert!(matches!(messages[..], [message] if message.contains("needs a table [policy]")), "{messages:?}");
}

#[test]
fn values_of_the_wrong_type_are_reported() {
    assert_error(
        "[policy]\nmax_cost = -0.5\n",
        "6:12: max_cost takes an amount from 0 on, such as 2.50, not -0.5",
    );
    assert_error(
        "[policy]\nmax_cost = inf\n",
        "6:12: max_cost takes an amount from 0 on, such as 2.50, not inf",
    );
    assert_error("[policy]\nmax_cost = \"2\"\n", "6:12: max_cost takes an amount such as 2.50, not a string");
    assert_error(
        "[policy]\nmax_tokens = 1e9\n",
        "6:14: max_tokens takes a number, not a number with a fraction",
    );
    assert_error(
        "[policy]\nretries = -1\n",
        "6:11: retries takes a number from 0 to 9223372036854775807, not -1",
    );
    assert_error(
        "[policy]\nmax_cost = 1\nmember_share = 101\n",
        "7:1: member_share takes a percentage from 1 to 100, not 101",
    );
    assert_error(
        "[policy]\nmember_share = 50\n",
        "6:1: member_share needs the key max_tokens or max_cost: of what it is a share",
    );
    assert_error("[policy]\ngrace = 30\n", "6:9: grace takes a string such as \"30s\", not a number");
    assert_error("[policy]\nretries = 'x'\n", "6:11: retries takes a number, not a string");
    assert_member_error("profile = 3\n", "7:11: profile takes a string, not a number");
    assert_member_error("command = 'ls'\n", "7:11: command takes a list of strings, not a string");
    assert_member_error("command = ['ls', 1]\n", "7:18: command takes a list of strings, not a number");
    assert_member_error("profile = 'worker'\nenv = { A = 1 }\n", "8:13: A takes a string, not a number");
    assert_task_error("metadata = 'x'\n", "8:12: metadata takes a table, not a string");
    assert_task_error("metadata = { x = inf }\n", "8:18: this number does not fit into JSON");
    assert_task_error(
        "description = \"a\\u0000\"\n",
        "8:15: description holds a NUL, which nothing can be called with",
    );
    assert_eq!(
        errors("name = 't'\n[member]\nname = 'a'\n")[0],
        "2:2: member is written as [[member]], once for each; this is a table"
    );
}

#[test]
fn unknown_choices_and_invalid_durations_are_reported() {
    assert_error(
        "[policy]\ngrace = '5 s'\n",
        "6:9: cannot read the duration 5 s: write it as 500ms, 5s, 10m or 2h",
    );
    assert_error("[policy]\nplans = 'me'\n", "6:9: plans is one of person, lead, auto, not \"me\"");
    assert_error("[policy]\npermissions = ''\n", "6:15: permissions is one of person, lead, auto, not \"\"");
    assert_error("[policy]\ncommands = 'all'\n", "6:12: commands is one of lead, any, not \"all\"");
    assert_member_error(
        "profile = 'worker'\nbackend = 'screen'\n",
        "8:11: backend is one of tmux, window, in-process, iterm2, not \"screen\"",
    );
    assert_member_error(
        "profile = 'worker'\nrestart = 'always'\n",
        "8:11: restart is one of never, on-failure and on-failure:N with N from 1 to 65535, not \"always\"",
    );
    let modes = "default, acceptEdits, bypassPermissions, plan, delegate, dontAsk, auto";
    assert_member_error(
        "profile = 'worker'\nmode = 'x'\n",
        &format!("8:8: mode is one of {modes}, not \"x\""),
    );
    assert_member_error(
        "profile = 'worker'\nworktree = 3\n",
        "8:12: worktree takes true or a string, not a number",
    );
}

#[test]
fn invalid_and_duplicate_names_are_reported() {
    let name_error = |name: &str| errors(&format!("name = '{name}'\n{MEMBER}")).remove(0);
    assert!(name_error("My Team").ends_with("; my-team would do"), "{}", name_error("My Team"));
    assert_eq!(
        name_error("session-12345678"),
        "1:8: the name session-12345678 belongs to a session of Claude Code"
    );
    assert_error(
        "[[member]]\nname = 'Team-Lead'\nprofile = 'worker'\n",
        "6:8: no member can be called Team-Lead: that name is taken",
    );
    assert_error("[[member]]\nname = 'ANN'\nprofile = 'worker'\n", "6:8: there is a member \"ANN\" already");
    assert_task_error("[[task]]\nkey = 'a'\nsubject = 's'\n", "9:7: there is a task \"a\" already");
}

#[test]
fn unknown_references_and_cycles_are_reported() {
    assert_task_error("blocked_by = ['b']\n", "8:15: there is no task \"b\"");
    assert_task_error(
        "owner = 'amn'\n",
        "8:9: the owner \"amn\" is no member of this file; the nearest is ann",
    );
    assert_task_error("blocked_by = ['a']\n", "8:15: a task would wait for itself: a → a");
    let cycle_of_three = "blocked_by = ['c']\n[[task]]\nkey = 'b'\nsubject = 's'\nblocked_by = ['a']\n[[task]]\nkey = 'c'\nsubject = 's'\nblocked_by = ['b']\n";
    assert_task_error(cycle_of_three, "12:15: a task would wait for itself: a → c → b → a");
}

#[test]
fn each_cycle_is_one_error_and_a_diamond_is_none() {
    let task =
        |key: &str, blockers: &str| format!("[[task]]\nkey='{key}'\nsubject='s'\nblocked_by=[{blockers}]\n");
    let cycles: String =
        [("a", "'b'"), ("b", "'a'"), ("c", "'d'"), ("d", "'c', 'a'")].map(|(k, a)| task(k, a)).concat();
    assert_eq!(errors(&format!("name='t'\n{MEMBER}{cycles}")).len(), 2);
    let diamond: String =
        [("a", ""), ("b", "'a'"), ("c", "'a'"), ("d", "'b','c'")].map(|(k, a)| task(k, a)).concat();
    let run = parse_in(&format!("name='t'\n{MEMBER}{diamond}"), Path::new("/")).unwrap();
    assert_eq!(
        run.tasks.iter().map(|task| task.blocked_by.clone()).collect::<Vec<_>>(),
        [vec![], vec![0], vec![0], vec![1, 2]]
    );
}

#[test]
fn cycle_of_20000_tasks_is_found() {
    // A recursive search would overflow the stack.
    let task = |n: usize| format!("[[task]]\nkey='{n}'\nsubject='s'\nblocked_by=['{}']\n", (n + 1) % 20_000);
    let cycle: String = (0..20_000).map(task).collect();
    let messages = errors(&format!("name='t'\n{MEMBER}{cycle}"));
    assert_eq!(messages.len(), 1);
}

#[test]
fn missing_programs_profiles_and_directories_are_reported() {
    assert_member_error(
        "command = ['no-such-program-here', 'x']\n",
        "7:1: cannot start no-such-program-here: no such program; check its spelling, or install it; profiles with an installed program: teamctl profiles check",
    );
    assert_member_error(
        "cwd = '/no/such/place'\nprofile = 'worker'\n",
        "7:7: there is no directory \"/no/such/place\"",
    );
    assert_member_error(
        "command = []\n",
        "7:1: command needs a program: command = [\"program\", \"argument\"]",
    );
    assert_member_error(
        "profile = 'worker'\ncommand = ['sh']\n",
        "8:1: a member takes a profile or a command, not both",
    );
    for (rest, start) in [
        ("profile = 'no-such-profile'\n", "7:1: "),
        ("command = ['sh']\nallow = ['Bash']\n", "7:1: a command takes no allow and no deny"),
    ] {
        let messages = errors(&format!("name = 't'\n{MEMBER}[[member]]\nname = 'bob'\n{rest}"));
        assert!(messages.len() == 1 && messages[0].starts_with(start), "{messages:?}");
    }
    let bare = format!("name = 't'\n{MEMBER}[[member]]\nname = 'bob'\nenv = {{ PATH = '/no/such/place' }}\n");
    let expected =
        "5:1: a member needs profile = \"worker\" (or another profile) or command = [\"PROGRAM\", …]";
    assert_eq!(errors(&bare), [expected]);
    let messages = errors("name = 't'\nprofile = 'wroker'\n[[member]]\nname = 'ann'\n");
    let start = "3:1: there is no profile \"wroker\"; the nearest is worker; there are ";
    assert!(
        messages[0].starts_with(start) && messages[0].ends_with("command = [\"PROGRAM\", …]"),
        "{messages:?}"
    );
    assert_member_error(
        "profile = 'worker'\nallow = ['Bash']\n",
        "7:1: cannot start worker with allow or deny: it runs the commands of tasks as they are; leave out these options",
    );
    assert_eq!(
        errors(&format!("name = 't'\ncwd = 'x/y/z'\n{MEMBER}")),
        ["2:7: there is no directory \"x/y/z\""]
    );
}

#[test]
fn prompt_and_variable_name_errors_are_reported() {
    assert_member_error(
        "profile = 'worker'\nprompt = 'p'\nprompt_file = 'f'\n",
        "9:15: a member takes a prompt or a prompt_file, not both",
    );
    let messages = errors(&format!("name = 't'\n{MEMBER}prompt_file = 'no-such-file'\n"));
    assert!(
        messages[0].starts_with("5:15: cannot read") && messages[0].contains("no-such-file"),
        "{messages:?}"
    );
    assert_member_error(
        "profile = 'worker'\nenv = { 'A=B' = 'x' }\n",
        "8:9: \"A=B\" is no name for a variable",
    );
}

#[test]
fn task_that_only_workers_can_claim_needs_a_command() {
    let worker = "[[member]]\nname = 'bob'\nprofile = 'worker'\n";
    let task = |rest: &str| format!("[[task]]\nkey = 'a'\nsubject = 's'\n{rest}");
    let expected_errors = |line: u32| {
        [format!("{line}:1: a task for workers alone needs the key command: they do nothing else")]
    };
    assert_eq!(errors(&format!("name = 't'\n{worker}{}", task(""))), expected_errors(5));
    let ann_and_worker = format!("name = 't'\n{MEMBER}{worker}");
    assert_eq!(errors(&format!("{ann_and_worker}{}", task("owner = 'bob'\n"))), expected_errors(8));
    for rest in ["", "owner = 'ann'\n", "owner = 'bob'\ncommand = 'true'\n"] {
        parse_valid(&format!("{ann_and_worker}{}", task(rest)));
    }
}

#[test]
fn reserved_metadata_is_reported() {
    for reserved in ["_internal", "failure", "key", "command", "run_owner"] {
        assert_task_error(
            &format!("metadata = {{ {reserved} = 'x' }}\n"),
            &format!("8:14: metadata cannot hold \"{reserved}\": the task list keeps its own there"),
        );
    }
    assert_task_error("command = ''\n", "8:11: command is empty");
}

#[test]
fn examples_are_valid_run_files_except_for_missing_programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        let errors = read_run_file(&path, Path::new("/")).unwrap().err().unwrap_or_default();
        let other_errors: Vec<_> =
            errors.iter().filter(|error| !error.message.starts_with("cannot start")).collect();
        assert!(other_errors.is_empty(), "{}: {other_errors:#?}", path.display());
    }
    names.sort();
    assert_eq!(names, ["cargo-pipeline.toml", "mixed.toml", "review.toml", "survey.toml"]);
}

#[test]
fn worktree_commands_are_lines_or_lists() {
    let policy = |text: &str| parse_policy(&format!("[policy]\n{text}"), Path::new("/")).unwrap();
    let all = policy("setup = 'npm ci && make'\nteardown = ['docker', 'rm', 'x']\nteardown_timeout = '5s'\n");
    let command = |argv: &[&str], timeout_ms| {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        Some(WorktreeCommand { argv, timeout_ms })
    };
    assert_eq!(all.setup, command(&["sh", "-c", "npm ci && make"], 600_000));
    assert_eq!(all.teardown, command(&["docker", "rm", "x"], 5_000));
    assert_eq!(policy("setup = 'x'\nsetup_timeout = '1h'\n").setup, command(&["sh", "-c", "x"], 3_600_000));
    let assert_policy_error =
        |text: &str, expected: &str| assert_error(&format!("[policy]\n{text}"), expected);
    let needs_program = "6:9: setup needs a program: setup = [\"program\", \"argument\"]";
    assert_policy_error("setup = ' '\n", needs_program);
    assert_policy_error("setup = []\n", needs_program);
    assert_policy_error("setup = ['', 'x']\n", needs_program);
    assert_policy_error("setup = 1\n", "6:9: setup takes a string or a list of strings, not a number");
    assert_policy_error("setup_timeout = '1m'\n", "6:1: setup_timeout needs the key setup: the command");
    assert_policy_error(
        "teardown = 'x'\nteardown_timeout = '11m'\n",
        "7:1: teardown_timeout is too long: 10m at most",
    );
}

#[test]
fn all_keys_of_a_host_are_read() {
    let text = r#"
[host.devbox]
connect = "ssh -T 'dev box'"
[host.gpu-1]
connect = ["docker", "exec", "-i", "box"]
attach = "docker exec -it box"
root = "~/r"
teamctl = "~/.local/bin/teamctl"
labels = ["gpu", "big"]
slots = 4
"#;
    let hosts = parse_hosts_file(text).unwrap();
    let host = |name: &str| hosts.hosts[&HostName::parse(name).unwrap()].clone();
    let devbox = host("devbox");
    assert_eq!(devbox.connect, ["ssh", "-T", "dev box"]);
    assert_eq!((devbox.attach, devbox.root, devbox.teamctl), (None, None, "teamctl".to_owned()));
    let gpu = host("gpu-1");
    assert_eq!(gpu.attach.unwrap().join(" "), "docker exec -it box");
    assert_eq!((gpu.root.as_deref(), gpu.teamctl.as_str()), (Some("~/r"), "~/.local/bin/teamctl"));
    assert_eq!((gpu.labels, gpu.slots), (vec!["gpu".to_owned(), "big".to_owned()], Some(4)));
    let run = format!("name = 't'\n{MEMBER}[host.box]\nconnect = 'ssh box'\n");
    assert_eq!(parse_in(&run, &std::env::temp_dir()).unwrap().hosts.hosts.len(), 1);
}

#[test]
fn errors_in_hosts_have_their_place() {
    let host_errors = |text: &str| -> Vec<String> {
        let errors = parse_hosts_file(text).unwrap_err();
        errors.iter().map(|error| format!("{}:{}: {}", error.line, error.column, error.message)).collect()
    };
    let connect = "[host.a]\nconnect = 'ssh a'\n";
    for (text, expected) in [
        ("[hosts.a]\n", "1:2: a hosts file takes no key \"hosts\"; the nearest is host"),
        ("[host.a]\n", "1:7: a host needs the key connect, such as connect = \"ssh -T NAME\""),
        ("host = 1\n", "1:8: host takes a table, not a number"),
        ("[host]\na = 1\n", "2:5: a takes a table, not a number"),
        (
            "[host.'a b']\nconnect = 'x'\n",
            "1:7: cannot use \"a b\" as a host's name: it takes a letter or digit, then up to 63 of A-Z, a-z, 0-9, _ and -",
        ),
        (
            "[host.a]\nconnect = 'ssh a | cat'\n",
            "2:11: connect is more than a program with arguments: write connect = [\"sh\", \"-c\", \"…\", \"sh\"]",
        ),
        ("[host.a]\nconnect = []\n", "2:11: connect needs a program: connect = [\"program\", \"argument\"]"),
        ("[host.a]\nconnect = 1\n", "2:11: connect takes a string or a list of strings, not a number"),
        (&format!("{connect}conect = 'x'\n"), "3:1: a host takes no key \"conect\"; the nearest is connect"),
        (
            &format!("{connect}attach = ''\n"),
            "3:10: attach needs a program: attach = [\"program\", \"argument\"]",
        ),
        (&format!("{connect}root = 'r'\n"), "3:8: root begins with / or ~/, not \"r\""),
        (
            &format!("{connect}teamctl = 'a b'\n"),
            "3:11: teamctl is a program without arguments and without characters that a shell changes, not \"a b\"",
        ),
        (&format!("{connect}slots = 0\n"), "3:1: slots takes a number from 1 to 4294967295, not 0"),
        (&format!("{connect}labels = 'gpu'\n"), "3:10: labels takes a list of strings, not a string"),
    ] {
        assert_eq!(host_errors(text), [expected], "{text}");
    }
    assert_error(
        "[host.a]\nslots = 1\n",
        "5:7: a host needs the key connect, such as connect = \"ssh -T NAME\"",
    );
}

#[test]
fn hosts_of_members_are_read() {
    let hosts = "[host.devbox]\nconnect = 'ssh devbox'\n";
    let text = format!(
        "name = 't'\nprofile = 'worker'\n[[member]]\nname = 'ann'\nhost = 'devbox'\ncwd = '/no/such/place'\n\
         [[member]]\nname = 'bob'\ncommand = ['no-such-program']\nhost = 'any'\nneeds = ['gpu', 'big']\n\
         [[member]]\nname = 'eve'\n{hosts}"
    );
    let run = parse_in(&text, &std::env::temp_dir()).unwrap();
    let hosted = |name: &str| run.hosted_members.get(&MemberName::parse(name).unwrap());
    let ann = hosted("ann").unwrap();
    assert_eq!(ann.host, HostChoice::Named(HostName::parse("devbox").unwrap()));
    assert_eq!(ann.options.cwd.as_deref(), Some(Path::new("/no/such/place")));
    assert_eq!(ann.options.profile.as_deref(), Some("worker"));
    let bob = hosted("bob").unwrap();
    assert_eq!(bob.host, HostChoice::Any { needs: vec!["gpu".to_owned(), "big".to_owned()] });
    assert_eq!(bob.options.profile, None);
    assert!(hosted("eve").is_none());
    assert_eq!(run.members.len(), 3);
}

#[test]
fn errors_in_the_host_of_a_member_have_their_place() {
    let hosts = "[host.devbox]\nconnect = 'ssh devbox'\n";
    let task = "[[task]]\nkey = 'k'\nsubject = 's'\nowner = 'bob'\ncommand = 'c'\n";
    let no_host = |name: &str, nearest: &str| {
        format!(
            "8:8: there is no host {name:?}{nearest}; add a table [host.NAME] here or in the hosts file (teamctl help hosts)"
        )
    };
    for (keys, expected) in [
        ("host = 'devbx'\n", no_host("devbx", "; the nearest is devbox")),
        ("host = 'home'\n", "8:8: home is where a member runs without the key host: leave it out".to_owned()),
        ("host = 1\n", "8:8: host takes a string, not a number".to_owned()),
        ("needs = ['gpu']\n", "8:1: needs takes host = \"any\": only then teamd chooses the host".to_owned()),
        (
            "host = 'any'\nneeds = ['a,b']\n",
            "9:10: \"a,b\" is no label: it takes text without a comma".to_owned(),
        ),
        (
            "host = 'any'\nbackend = 'iterm2'\n",
            "9:1: a member with the key host takes no backend \"iterm2\": iTerm2 shows only members of its own machine"
                .to_owned(),
        ),
        (
            "host = 'any'\nkind = 'once'\n",
            "9:1: a member with the key host takes no kind: its host cannot end it with its task".to_owned(),
        ),
    ] {
        let text = format!("name = 't'\n{MEMBER}[[member]]\nname = 'bob'\nprofile = 'worker'\n{keys}{hosts}{task}");
        assert_eq!(errors(&text), [expected], "{keys}");
    }
    let bare = "name = 't'\n[[member]]\nname = 'bob'\nhost = 'any'\n";
    let expected =
        "2:1: a member with the key host needs a profile or a command: the default is that of its host";
    assert_eq!(errors(bare), [expected]);
}

#[test]
fn budget_goes_with_members_on_other_hosts() {
    let text = "name = 't'\n[[member]]\nname = 'bob'\ncommand = ['sh']\nhost = 'devbox'\n\
                [[member]]\nname = 'eve'\ncommand = ['sh']\nhost = 'any'\n[policy]\nmax_turns = 3\n\
                [host.devbox]\nconnect = 'ssh devbox'\n";
    assert!(parse_in(text, &std::env::temp_dir()).is_ok());
}

#[test]
fn names_that_no_host_can_have_and_the_home() {
    let parse = |text: &str| {
        let errors = parse_hosts_file(text).err().unwrap_or_default();
        errors
            .iter()
            .map(|error| format!("{}:{}: {}", error.line, error.column, error.message))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        parse("[host.any]\nconnect = 'x'\n"),
        ["1:7: cannot use \"any\" as a host's name: it lets teamd choose the host"]
    );
    assert_eq!(
        parse("[host.home]\nconnect = 'x'\n"),
        ["2:1: home is this machine, and takes only labels and slots, not connect"]
    );
    let text = "[host.b]\nconnect = 'b'\n[host.home]\nlabels = ['x']\nslots = 2\n[host.a]\nconnect = 'a'\n";
    let hosts = parse_hosts_file(text).unwrap();
    let names = |hosts: &HostTables| {
        hosts.candidates.iter().map(|candidate| candidate.host.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&hosts), ["b", "home", "a"]);
    let run = parse_hosts_file("[host.a]\nconnect = 'other'\n[host.c]\nconnect = 'c'\n").unwrap();
    let both = run.or(hosts);
    assert_eq!(names(&both), ["a", "c", "b", "home"]);
    assert_eq!(both.hosts[&HostName::parse("a").unwrap()].connect, ["other"]);
}

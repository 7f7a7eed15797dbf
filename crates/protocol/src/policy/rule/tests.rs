//! Tests of the rules of a policy: which tool calls they match, and which attempts to get around
//! them fail.

use super::*;
use serde_json::{Value, json};

fn rule(pattern: Option<&str>, directory: Option<&str>, answer: RuleAction) -> PolicyRule {
    let (pattern, directory) = (pattern.map(str::to_owned), directory.map(PathBuf::from));
    PolicyRule { tool: "B*".into(), pattern, directory, answer }
}

fn is_match(rule: &PolicyRule, input: &Value) -> bool {
    is_match_in(rule, input, "/w/src")
}

fn is_match_in(rule: &PolicyRule, input: &Value, cwd: &str) -> bool {
    let text = json!({"request_id": "p", "agent_id": "a", "tool_name": "Bash", "input": input});
    rule.is_match(&serde_json::from_value(text).unwrap(), cwd)
}

fn command(line: &str) -> Value {
    json!({"command": line})
}

fn assert_all_match(rule: &PolicyRule, inputs: &[Value]) {
    inputs.iter().for_each(|input| assert!(is_match(rule, input), "{rule:?}: {input}"));
}

fn assert_none_match(rule: &PolicyRule, inputs: &[Value]) {
    inputs.iter().for_each(|input| assert!(!is_match(rule, input), "{rule:?}: {input}"));
}

#[test]
fn star_matches_any_text() {
    for (pattern, text) in [("*", ""), ("cargo *", "cargo "), ("a*b*c", "axbxbc"), ("ab", "ab"), ("*a", "aa")]
    {
        assert!(is_wildcard_match(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("", "a"), ("cargo *", "cargo"), ("a*b", "ba"), ("ab*ba", "aba"), ("a*c", "ab")] {
        assert!(!is_wildcard_match(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn allow_rule_matches_a_single_plain_command() {
    let allow = rule(Some("cargo *"), None, RuleAction::Allow);
    assert_all_match(
        &allow,
        &[
            command("cargo test -p 'a b'"),
            command(" cargo test "),
            json!({"command": ["cargo", "test", "a; b"]}),
            json!({"cmd": "cargo test", "description": "runs /usr/bin/tests; all", "timeout": 5}),
            json!({"command": "cargo test", "workdir": "/elsewhere"}),
            json!({"command": "cargo test", "directory": "/elsewhere"}),
        ],
    );
    let other_commands = [
        "cargo x; rm -r ~",
        "cargo x && rm y",
        "cargo x || rm y",
        "cargo x | sh",
        "cargo x & rm y",
        "cargo $(rm x)",
        "cargo `rm x`",
        "cargo \"$(rm x)\"",
        "cargo $HOME",
        "cargo x\nrm y",
        "cargo x\rrm y",
        "cargo x > y",
        "cargo x < y",
        "cargo x >> ~/.bashrc",
        "cargo x 2>&1",
        "cargo x \\; rm y",
        "cargo 'x",
        "(cargo x)",
        "{ cargo x; }",
        " rm; cargo x",
        "x=1 cargo y",
        "sudo cargo x",
        "/tmp/cargo x",
        "cargo",
        "x",
        "",
    ];
    assert_none_match(&allow, &other_commands.map(command));
    assert_none_match(
        &allow,
        &[
            json!({"command": "cargo test", "cmd": ["rm", "-rf", "/"]}),
            json!({"command": "cargo test", "cmd": "rm -rf /"}),
            json!({"command": "cargo test", "script": "rm -rf /"}),
            json!({"command": ["cargo test", 5, "rm x"]}),
            json!({"command": ["rm", "-rf", "cargo x"]}),
            json!({"command": ["sh", "-c", "cargo x; rm y"]}),
            json!({"command": {"line": "rm x"}}),
            json!({"commands": ["cargo test", "rm x"]}),
            json!({"steps": [{"command": "cargo test"}, {"command": "rm x"}]}),
            json!({"Command": "rm x"}),
            json!({"command": "cargo test", "env": {"RUSTC_WRAPPER": "evil"}}),
            json!({"command": "cargo test", "output": "/etc/cron.d/x"}),
            json!({"command": "cargo test", "file_path": "/etc/passwd"}),
            json!({"command": "cargo test", "args": ["; rm x"]}),
            json!({"commandLine": "rm x"}),
            json!({"description": "cargo test"}),
            json!({"caption": "cargo test"}),
            json!({}),
            Value::Null,
            json!("cargo test"),
        ],
    );
}

#[test]
fn allow_rule_does_not_match_paths_outside_its_pattern() {
    for pattern in ["/w/src/*", "*"] {
        let allow = rule(Some(pattern), None, RuleAction::Allow);
        assert_all_match(
            &allow,
            &[
                json!({"file_path": "/w/src/a.rs", "old_string": "/etc/passwd", "new_string": "/// a"}),
                json!({"file_path": "a.rs"}),
                json!({"filePath": "/w//src/./b/../a.rs"}),
                json!({"path": "/w/src/(group)/[id]/a b.tsx"}),
                json!({"edits": [{"path": "/w/src/a"}, {"path": "b/c"}]}),
            ],
        );
    }
    let allow = rule(Some("/w/src/*"), None, RuleAction::Allow);
    assert_none_match(
        &allow,
        &[
            json!({"file_path": "/w/src/../../../../etc/passwd"}),
            json!({"file_path": "../a.rs"}),
            json!({"file_path": "/w/src/../x"}),
            json!({"file_path": "/w/srcs"}),
            json!({"file_path": "/w/src/a", "path": "/etc/passwd"}),
            json!({"file_path": "/w/src/a", "filePath": "/etc/passwd"}),
            json!({"file_path": "/w/src/a", "anything": "/etc/passwd"}),
            json!({"file_path": "/w/src/a", "anything": {"deep": ["x", "/etc/passwd"]}}),
            json!({"file_path": "/w/src/a", "content": {"path": "/etc/passwd"}}),
            json!({"path": ["/w/src/a", "/etc/passwd"]}),
            json!({"paths": "/w/src/a,/etc/passwd"}),
            json!({"paths": "/w/src/a /etc/passwd"}),
            json!({"paths": "/w/src/a\n/etc/passwd"}),
            json!({"path": " /etc/passwd"}),
            json!({"path": "~/x"}),
            json!({"path": "/w/src/$HOME"}),
            json!({"path": "/w/src/%2e%2e/%2e%2e/etc"}),
            json!({"path": "/w/src/..\\..\\x"}),
            json!({"path": "a", "cwd": "/etc"}),
            json!({"path": "a", "cwd": "~"}),
            json!({"files": {"/etc/passwd": "root::"}}),
            json!({"arguments": "{\"path\":\"/etc/passwd\"}"}),
            json!({"other": 1}),
        ],
    );
    let relative = rule(Some("src/*"), None, RuleAction::Allow);
    for (path, expected) in [("src/a", true), ("/w/src/a", true), ("src/../a", false), ("/x/src/a", false)] {
        assert_eq!(is_match_in(&relative, &json!({"path": path}), "/w"), expected, "{path}");
    }
}

#[test]
fn allow_rule_does_not_match_disguised_urls() {
    let web = rule(Some("https://docs.rs/a/*"), None, RuleAction::Allow);
    assert_all_match(&web, &[json!({"url": "https://docs.rs/a/x", "prompt": "what is at /etc?"})]);
    assert_none_match(
        &web,
        &[
            json!({"url": "https://evil.example/https://docs.rs/a/"}),
            json!({"url": "https://docs.rs/a/../b"}),
            json!({"url": "https://docs.rs/a/%2E%2e/b"}),
            json!({"url": "https://docs.rs/a/@evil.example"}),
            json!({"url": "https://docs.rs/a/x", "urls": ["https://evil.example/"]}),
            json!({"url": ["https://docs.rs/a/x", "https://evil.example/"]}),
            json!({"url": "https://docs.rs/a/x\nhttps://evil.example/"}),
            json!({"url": "https://docs.rs/a/x", "output": "/etc/x"}),
            json!({"href": "https://evil.example/"}),
            json!({"other": 1}),
        ],
    );
    let deny = rule(Some("https://evil.example/*"), None, RuleAction::Deny);
    assert_all_match(
        &deny,
        &[
            json!({"url": "HTTPS://EVIL.example/x"}),
            json!({"url": " https://me:word@evil.example/x"}),
            json!({"url": "https://docs.rs", "urls": ["https://evil.example/x"]}),
        ],
    );
    assert!(is_match(&rule(Some("*"), None, RuleAction::Allow), &json!({})));
}

#[test]
fn allow_rule_does_not_match_paths_outside_its_directory() {
    let allow = rule(None, Some("/w/src/./x/.."), RuleAction::Allow);
    assert_all_match(
        &allow,
        &[
            json!({"file_path": "a.rs"}),
            json!({"file_path": "/w/src/a.rs", "content": "/etc/passwd"}),
            json!({"file_path": "/w//src/b/../a.rs"}),
            json!({"file_path": "../src/a.rs"}),
            json!({"pattern": "fn main", "path": "/w/src"}),
            json!({"pattern": "**/*.rs"}),
            json!({"edits": [{"path": "a"}, {"path": "/w/src/b"}]}),
        ],
    );
    assert_none_match(
        &allow,
        &[
            json!({"file_path": "../a.rs"}),
            json!({"file_path": "/w/src/../a.rs"}),
            json!({"file_path": "/w/srcs/a.rs"}),
            json!({"file_path": "/"}),
            json!({"file_path": "../../../../etc/passwd"}),
            json!({"filePath": "/etc/passwd"}),
            json!({"paths": ["/etc/passwd"]}),
            json!({"path": ["/etc/passwd"]}),
            json!({"path": {"of": "/etc/passwd"}}),
            json!({"anything": "/etc/passwd"}),
            json!({"anything": "see file:///etc/passwd"}),
            json!({"edits": [{"path": "a"}, {"path": "/etc/x"}]}),
            json!({"file_path": "a", "target": "../x"}),
            json!({"file_path": "a", "outputFile": "/x"}),
            json!({"file_path": "~/x"}),
            json!({"file_path": "a", "to": "~"}),
            json!({"file_path": "/w/src/a,/etc/passwd"}),
            json!({"file_path": "\t/etc/passwd"}),
            json!({"/etc/passwd": true}),
            json!({"pattern": "/etc/**"}),
            json!({"pattern": "{a,../../etc}/*"}),
            json!({"pattern": "x", "path": ".."}),
            json!({"url": "https://docs.rs/"}),
            json!({"file_path": "a", "cwd": "/etc"}),
            json!({"file_path": "/w/src/a", "workdir": "/etc"}),
            json!({"diff": "--- a\n+++ /etc/passwd\n"}),
            command("ls"),
            command("rm -rf /home"),
            json!({"cmd": ["rm", "-rf", "/home"]}),
            json!({"script": "rm -rf /home"}),
            json!({"caption": "ls", "file_path": "a"}),
            json!({}),
        ],
    );
    let is_match_in_parent = |input: Value| is_match_in(&allow, &input, "/w");
    assert!(
        is_match_in_parent(json!({"file_path": "/w/src/a"})) && is_match_in_parent(json!({"path": "src/a"}))
    );
    assert!(is_match_in_parent(json!({"path": "a", "cwd": "src"})));
    assert!(!is_match_in_parent(json!({"pattern": "x"})) && !is_match_in_parent(json!({"file_path": "a"})));
}

#[test]
fn allow_rule_does_not_match_commands_with_paths_outside() {
    let allow = rule(Some("cargo *"), Some("/w/src"), RuleAction::Allow);
    assert_all_match(
        &allow,
        &[
            command("cargo test"),
            command("cargo test --manifest-path=/w/src/a/Cargo.toml b/c"),
            json!({"command": "cargo test", "cwd": "/w/src/b"}),
        ],
    );
    assert_none_match(
        &allow,
        &[
            command("cargo test --manifest-path=/etc/Cargo.toml"),
            command("cargo test --manifest-path /etc/Cargo.toml"),
            command("cargo test -I/etc"),
            command("cargo test '/etc/x y'"),
            command("cargo test ../x"),
            command("cargo test b/../../x"),
            command("cargo test ~"),
            json!({"command": "cargo test", "cwd": "/etc"}),
            json!({"command": "cargo test", "cwd": ".."}),
            json!({"command": ["cargo", "test", "/etc/x"]}),
        ],
    );
    assert!(!is_match_in(&allow, &command("cargo test"), "/home"));
}

#[test]
fn deny_rule_matches_commands_in_every_form() {
    let deny = rule(Some("rm *"), None, RuleAction::Deny);
    let rm_commands = [
        "rm x",
        " rm x",
        "rm\tx",
        "rm  -r  x",
        "cd y && rm x",
        "cd y&&rm x",
        "true || rm x",
        "ls; rm x",
        "ls;rm x",
        "ls | xargs rm -f",
        "ls & rm x",
        "ls\nrm x",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "for i in a; do rm $i; done",
        "! rm x",
        "/bin/rm x",
        "../../bin/rm x",
        "\\rm x",
        "'rm' x",
        "\"rm\" x",
        "r''m x",
        "r\\m x",
        "r\\\nm x",
        "sudo rm x",
        "sudo -u root rm x",
        "env A=1 rm x",
        "A=1 rm x",
        "command rm x",
        "exec rm x",
        "nohup rm x &",
        "time rm x",
        "timeout 5 rm x",
        "bash -c 'rm x'",
        "sh -c \"cd y; rm x\"",
        "find . -exec rm {} +",
        "find . | xargs -n1 rm --",
        "eval 'rm x'",
        "cat <(rm x)",
    ];
    assert_all_match(&deny, &rm_commands.map(command));
    assert_all_match(
        &deny,
        &[
            json!({"command": ["rm", "x"]}),
            json!({"command": ["bash", "-lc", "rm x"]}),
            json!({"command": "ls", "cmd": "rm x"}),
            json!({"script": "rm x"}),
            json!({"steps": [{"command": "ls"}, {"run": "rm x"}]}),
            json!({"commandLine": "rm x"}),
            json!({"caption": "rm x"}),
        ],
    );
    assert!(is_match(&deny, &command(&"ls ".repeat(20_000))), "a command that is too long to parse matches");
    assert_none_match(&deny, &["ls", "rmdir x", "farm x", "ls rm"].map(command));
    assert_none_match(&deny, &[json!({"command": "ls", "description": "no rm x"}), json!({})]);
}

#[test]
fn deny_rule_matches_every_spelling_of_a_directory() {
    let deny = rule(None, Some("/etc"), RuleAction::Deny);
    assert_all_match(
        &deny,
        &[
            json!({"edits": [{"path": "a"}, {"path": "/etc/x"}]}),
            json!({"filePath": "/etc/passwd"}),
            json!({"paths": ["a", "/etc/passwd"]}),
            json!({"anything": {"deep": "/etc/passwd"}}),
            json!({"path": "../../etc/passwd"}),
            json!({"path": "//etc//passwd"}),
            json!({"path": "/w/../etc"}),
            json!({"path": " /etc/passwd"}),
            json!({"path": "a", "cwd": "/etc"}),
            json!({"paths": "a,/etc/passwd"}),
            json!({"url": "file:///etc/passwd"}),
            json!({"/etc/passwd": "x"}),
            json!({"pattern": "/etc/*"}),
            json!({"command": "ls", "workdir": "/etc"}),
            command("cat /etc/passwd"),
            command("cat '/etc/passwd'"),
            command("cat </etc/passwd"),
            command("cd /etc && ls"),
            command("x --file=/etc/passwd"),
            command("x -f/etc/passwd"),
            command("x @/etc/passwd"),
            command("cat ../../etc/passwd"),
            json!({"command": ["cat", "/etc/passwd"]}),
        ],
    );
    assert_none_match(
        &deny,
        &[
            json!({"file_path": "a", "new_string": "/etc/passwd"}),
            json!({"path": "/etcetera"}),
            command("cat etc"),
            json!({"pattern": "x"}),
            json!({}),
        ],
    );
    let secrets = rule(None, Some("/w/src/secrets"), RuleAction::Deny);
    assert_all_match(
        &secrets,
        &[command("cat secrets"), json!({"path": "secrets/x"}), command("ls ./secrets/..//secrets")],
    );
    assert!(
        is_match_in(&secrets, &command("ls"), "/w/src/secrets")
            && is_match_in(&secrets, &json!({}), "/w/src/secrets")
    );
    let ask = rule(Some("/etc/*"), None, RuleAction::Ask);
    assert_all_match(&ask, &[json!({"path": "/w/../etc/x"}), json!({"path": "a", "to": "/etc/x"})]);
    let relative = rule(Some("secrets/*"), None, RuleAction::Deny);
    assert_all_match(&relative, &[json!({"path": "/w/src/secrets/x"}), json!({"path": "./secrets/x"})]);
}

#[test]
fn rule_does_not_match_other_tools() {
    let edit_rule = PolicyRule { tool: "Edit".into(), ..rule(None, None, RuleAction::Allow) };
    assert!(!is_match(&edit_rule, &json!({})));
}

#[test]
fn allow_rule_matches_only_if_every_key_is_understood() {
    let for_cargo = rule(Some("cargo *"), None, RuleAction::Allow);
    let in_directory = rule(None, Some("/w/src"), RuleAction::Allow);
    assert_all_match(
        &for_cargo,
        &[
            json!({"command": "cargo test", "description": "d", "timeout": 5, "run_in_background": true}),
            json!({"command": "cargo test", "dangerouslyDisableSandbox": false}),
            json!({"command": ["cargo", "test"], "call_id": "c1", "justification": "why", "extra": null}),
            json!({"command": "cargo test", "parsed_cmd": [{"type": "unknown", "cmd": "cargo test"}]}),
        ],
    );
    assert_none_match(
        &for_cargo,
        &[
            json!({"command": "cargo test", "dangerouslyDisableSandbox": true}),
            json!({"command": "cargo test", "sandbox": false}),
            json!({"command": "cargo test", "with_escalated_permissions": true}),
            json!({"command": "cargo test", "sandbox_permissions": "require_escalated"}),
            json!({"command": "cargo test", "then": "reboot"}),
            json!({"command": "cargo test", "after": {"what": "reboot"}}),
            json!({"command": "cargo test", "steps": ["reboot"]}),
            json!({"command": "cargo test", "background": "reboot"}),
            json!({"command": "cargo test", "timeout": ["reboot"]}),
            json!({"command": {"line": "cargo test", "privileged": true}}),
            json!({"command": "cargo test", "description": {"then": "reboot"}}),
            json!({"command": "cargo test", "shell": true}),
        ],
    );
    assert_all_match(
        &in_directory,
        &[
            json!({"pattern": "x", "path": "/w/src", "-n": true, "-A": 3, "output_mode": "content", "head_limit": 5}),
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}),
            json!({"notebook_path": "a", "cell_id": "c", "new_source": "x", "edit_mode": "replace"}),
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}], "view_range": [1, 5]}),
        ],
    );
    assert_none_match(
        &in_directory,
        &[json!({"file_path": "a", "follow": true}), json!({"file_path": "a", "to": "b"})],
    );
}

#[test]
fn rule_for_every_action_allows_unknown_keys_but_lifts_no_protection() {
    for allow in [rule(None, None, RuleAction::Allow), rule(Some("*"), None, RuleAction::Allow)] {
        assert_all_match(
            &allow,
            &[json!({"table": "users", "rows": 3}), json!({"command": "x", "then": "y"})],
        );
        let lifted = json!({"command": "x", "dangerouslyDisableSandbox": true});
        assert_none_match(&allow, &[lifted]);
    }
    for other in [RuleAction::Deny, RuleAction::Ask] {
        let input = json!({"command": "rm x", "dangerouslyDisableSandbox": true, "then": "reboot"});
        assert!(is_match(&rule(Some("rm *"), None, other), &input));
    }
}

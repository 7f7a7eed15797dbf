//! Who may do what: each role tries each verb.

use super::single_file_below;
use harness::{TestEnv, record_result};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whose it is, beside the lead and a person.
#[derive(Clone, Copy)]
enum CommandPermission {
    /// Theirs alone.
    Lead,
    /// The same, and the daemon alone says so: files need none, and there a member that denies its name is the lead.
    LeadAtFiles,
    /// A member's, too.
    Member,
    /// The same, and the daemon answers it: not to a token of which it knows nothing.
    KnownMember,
    /// That one's alone, as it goes by its name.
    OwnName,
    /// Another's alone.
    OtherMember,
}

impl CommandPermission {
    fn denies(self, role: Role) -> bool {
        match self {
            CommandPermission::Lead => !matches!(role, Role::Person | Role::Lead),
            CommandPermission::LeadAtFiles => matches!(role, Role::Member | Role::Forger),
            CommandPermission::Member => false,
            CommandPermission::KnownMember => matches!(role, Role::Forger),
            CommandPermission::OwnName => !matches!(role, Role::Member | Role::Forger),
            CommandPermission::OtherMember => true,
        }
    }
}

/// Who tries.
#[derive(Debug, Clone, Copy)]
enum Role {
    Person,
    Lead,
    Member,
    /// A member with a token that is none.
    Forger,
    /// A member without its name.
    WithoutName,
}

/// In a form that does no harm where it is allowed: nobody of that name, a wrong word, something that goes on; and with
/// which code it ends then.
const COMMANDS: [(&[&str], CommandPermission, &[i32]); 53] = [
    (&["create", "survey"], CommandPermission::Lead, &[73]),
    (&["spawn", "bob", "--", "true"], CommandPermission::Lead, &[73]),
    (&["shutdown", "nobody", "--grace=1s"], CommandPermission::Lead, &[67]),
    (&["kill", "nobody"], CommandPermission::Lead, &[67]),
    (&["delete", "survey"], CommandPermission::Lead, &[76]),
    (&["export", "--output", "/nowhere/x.tar"], CommandPermission::LeadAtFiles, &[74]),
    (&["import", "/nowhere.tar"], CommandPermission::LeadAtFiles, &[72]),
    (&["policy", "/nowhere.toml"], CommandPermission::LeadAtFiles, &[72]),
    (&["policy"], CommandPermission::Member, &[0]),
    (&["hide", "nobody"], CommandPermission::Lead, &[67]),
    (&["show", "nobody"], CommandPermission::Lead, &[67]),
    (&["layout", "tiled"], CommandPermission::Lead, &[0]),
    (&["lead", "--release"], CommandPermission::Lead, &[0, 67]),
    (&["interrupt", "nobody"], CommandPermission::Lead, &[67]),
    (&["mode", "nobody", "plan"], CommandPermission::Lead, &[67]),
    (&["approve", "nothing"], CommandPermission::LeadAtFiles, &[67]),
    (&["deny", "nothing", "--reason", "r"], CommandPermission::LeadAtFiles, &[67]),
    (&["task", "create", "x", "--metadata", "{\"command\": \"true\"}"], CommandPermission::LeadAtFiles, &[0]),
    (&["send", "ann", "x", "--as-user"], CommandPermission::LeadAtFiles, &[0]),
    (&["inbox", "ann", "--mark-read"], CommandPermission::OtherMember, &[]),
    (&["run", "nothing.toml"], CommandPermission::LeadAtFiles, &[72]),
    (&["send", "ann", "x"], CommandPermission::Member, &[0]),
    (&["broadcast", "x"], CommandPermission::Member, &[0]),
    (&["inbox", "bob", "--mark-read"], CommandPermission::OwnName, &[0]),
    (&["task", "create", "x"], CommandPermission::Member, &[0]),
    (&["task", "list"], CommandPermission::Member, &[0]),
    (&["task", "get", "1"], CommandPermission::Member, &[0]),
    (&["task", "update", "1", "--subject", "x"], CommandPermission::Member, &[0]),
    (&["task", "claim", "999"], CommandPermission::Member, &[67]),
    (&["task", "claim"], CommandPermission::Member, &[0, 67]),
    (&["task", "done", "999"], CommandPermission::Member, &[67]),
    (&["task", "release", "999"], CommandPermission::Member, &[67]),
    (&["task", "delete", "999"], CommandPermission::Member, &[67]),
    (&["answer-shutdown", "nothing", "--approve"], CommandPermission::OwnName, &[67]),
    (&["instructions"], CommandPermission::Member, &[0]),
    (&["doctor"], CommandPermission::Member, &[0, 1]),
    (&["why", "bob"], CommandPermission::Member, &[0]),
    (&["why", "ann"], CommandPermission::LeadAtFiles, &[0]),
    (&["trace", "0"], CommandPermission::LeadAtFiles, &[0, 64, 67]),
    (&["up"], CommandPermission::Member, &[0]),
    (&["status"], CommandPermission::KnownMember, &[0]),
    (&["capture", "ann"], CommandPermission::KnownMember, &[0, 67]),
    (&["logs", "ann"], CommandPermission::Member, &[67]),
    (&["wait", "--timeout", "0s"], CommandPermission::Member, &[0, 75]),
    (&["requests"], CommandPermission::LeadAtFiles, &[0]),
    (&["submit-plan", "out/plan.md"], CommandPermission::OwnName, &[76]),
    (&["events"], CommandPermission::Member, &[0]),
    (&["profiles"], CommandPermission::Member, &[0]),
    (&["setup", "codex"], CommandPermission::Member, &[0]),
    (&["notify", "a word"], CommandPermission::Member, &[78]),
    (&["completions", "bash"], CommandPermission::Member, &[0]),
    (&["man"], CommandPermission::Member, &[0]),
    (&["help"], CommandPermission::Member, &[0]),
];

/// Those that no role is refused and that go on for as long as somebody watches them, or serve a program, and that which
/// comes last.
const UNTESTED_COMMANDS: [&str; 4] = ["attach", "top", "mcp", "down"];

#[test]
fn every_command_is_tested() {
    let env = TestEnv::new();
    let help = env.teamctl(["--help"]).stdout;
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: BTreeSet<&str> = verbs.map(|line| line.split_whitespace().next().unwrap()).collect();
    let tried = COMMANDS.iter().map(|(words, ..)| words[0]).chain(UNTESTED_COMMANDS);
    assert_eq!(verbs, tried.collect());
    env.shut_down();
}

/// With two members.
pub(super) fn env_with_two_members() -> TestEnv {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        let agent = env.scripted_agent_path();
        env.teamctl(["spawn", name, "--backend", "in-process", "--", &agent, "stay"]).expect_success();
    }
    env
}

/// As the roster has it.
pub(super) fn token_of(env: &TestEnv, name: &str) -> String {
    let roster = std::fs::read_to_string(single_file_below(&env.path("state/teamd"), "roster.json")).unwrap();
    let roster: Value = serde_json::from_str(&roster).unwrap();
    let agent =
        roster["records"].as_array().unwrap().iter().find(|agent| agent["request"]["name"] == name).unwrap();
    agent["token"].as_str().unwrap().to_owned()
}

#[test]
fn commands_check_the_role() {
    let env = env_with_two_members();
    env.teamctl(["task", "create", "one"]).expect_success();
    env.write_file("out/plan.md", "one thing after the other");
    let token = &token_of(&env, "bob");
    let roles = [
        (Role::Person, vec![]),
        (Role::Lead, vec![("TEAMD_MEMBER", "team-lead")]),
        (Role::Member, vec![("TEAMD_MEMBER", "bob"), ("TEAMD_TOKEN", token)]),
        (Role::Forger, vec![("TEAMD_MEMBER", "bob"), ("TEAMD_TOKEN", "wrong")]),
        (Role::WithoutName, vec![("TEAMD_TOKEN", token)]),
    ];
    let (mut tried, mut wrong) = (0, Vec::new());
    for (role, variables) in &roles {
        for (verb, may, codes) in COMMANDS {
            let ran = env.teamctl_with(&[&["-t", "survey"], verb].concat(), variables);
            let expected = if may.denies(*role) { &[77] } else { codes };
            if !expected.contains(&ran.code) {
                wrong.push(format!("{role:?}: {verb:?} ended with {}: {}", ran.code, ran.stderr));
            }
            tried += 1;
        }
    }
    // Whoever may would end it.
    for (role, variables) in roles.iter().filter(|(role, _)| CommandPermission::Lead.denies(*role)) {
        let ran = env.teamctl_with(&["down"], variables);
        wrong.extend((ran.code != 77).then(|| format!("{role:?}: down: {ran:?}")));
        tried += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
    record_result("roles-verbs", tried);
}

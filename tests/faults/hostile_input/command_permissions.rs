//! Tests which role may run which command: each role tries each command.

use super::single_file_below;
use harness::{TestEnv, record_result};
use serde_json::Value;
use std::collections::BTreeSet;

/// Who may run a command.
#[derive(Clone, Copy)]
enum CommandPermission {
    /// The lead and a person. The daemon checks the token.
    Lead,
    /// The lead and a person, but no daemon checks the token. The command works on the files, so a
    /// member without its name counts as the lead.
    LeadAtFiles,
    /// Every role.
    Member,
    /// Every role whose token the daemon knows, or that has none.
    KnownMember,
    /// Only the member itself, by its name.
    OwnName,
    /// Only another member, so no tested role.
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

/// Who runs a command.
#[derive(Debug, Clone, Copy)]
enum Role {
    Person,
    Lead,
    Member,
    /// A member with an invalid token.
    Forger,
    /// A member that has removed its name from its environment and kept its token.
    WithoutName,
}

/// The arguments of each command, who may run it, and the possible exit codes if it is allowed. The
/// arguments are chosen so that an allowed command has no effect on the test, for example with an
/// unknown name.
const COMMANDS: [(&[&str], CommandPermission, &[i32]); 60] = [
    (&["create", "survey"], CommandPermission::Lead, &[73]),
    (&["spawn", "bob", "--", "true"], CommandPermission::Lead, &[73]),
    (&["shutdown", "nobody", "--grace=1s"], CommandPermission::Lead, &[67]),
    (&["kill", "nobody"], CommandPermission::Lead, &[67]),
    (&["delete", "survey"], CommandPermission::Lead, &[76]),
    (&["ask", "x", "--", "true"], CommandPermission::LeadAtFiles, &[0]),
    (&["merge", "nobody"], CommandPermission::LeadAtFiles, &[67]),
    (&["export", "--output", "/nowhere/x.tar"], CommandPermission::LeadAtFiles, &[74]),
    (&["import", "/nowhere.tar"], CommandPermission::LeadAtFiles, &[72]),
    (&["home", "take", "survey", "--yes"], CommandPermission::LeadAtFiles, &[76]),
    (&["home", "move", "survey", "nowhere"], CommandPermission::LeadAtFiles, &[64]),
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
    (&["task", "update", "3", "--subject", "x"], CommandPermission::Member, &[0]),
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
    (&["report"], CommandPermission::LeadAtFiles, &[0]),
    (&["replay", "/nowhere.jsonl"], CommandPermission::LeadAtFiles, &[72]),
    (&["trace", "0"], CommandPermission::LeadAtFiles, &[0, 64, 67]),
    (&["up"], CommandPermission::Member, &[0]),
    (&["status"], CommandPermission::KnownMember, &[0]),
    (&["capture", "ann"], CommandPermission::Lead, &[0, 67]),
    (&["logs", "ann"], CommandPermission::LeadAtFiles, &[67]),
    (&["wait", "--timeout", "0s"], CommandPermission::Member, &[0, 75]),
    (&["requests"], CommandPermission::LeadAtFiles, &[0]),
    (&["submit-plan", "out/plan.md"], CommandPermission::OwnName, &[76]),
    (&["events"], CommandPermission::Member, &[0]),
    (&["profiles"], CommandPermission::Member, &[0]),
    (&["hosts"], CommandPermission::LeadAtFiles, &[0]),
    (&["setup", "codex"], CommandPermission::Member, &[0]),
    (&["notify", "a word"], CommandPermission::Member, &[78]),
    (&["completions", "bash"], CommandPermission::Member, &[0]),
    (&["man"], CommandPermission::Member, &[0]),
    (&["help"], CommandPermission::Member, &[0]),
];

/// Commands that are not in the list above. `attach`, `top` and `mcp` are allowed for every role
/// and run until they are stopped. `down` is tried at the end.
const UNTESTED_COMMANDS: [&str; 4] = ["attach", "top", "mcp", "down"];

#[test]
fn every_command_is_tested() {
    let env = TestEnv::new();
    let help = env.teamctl(["help", "--all"]).stdout;
    let lines = help.lines().take_while(|line| *line != "Options:");
    let commands = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: BTreeSet<&str> = commands.collect();
    let listed = COMMANDS.iter().map(|(args, ..)| args[0]).chain(UNTESTED_COMMANDS);
    assert_eq!(commands, listed.collect());
    env.shut_down();
}

/// Creates a team with the members ann and bob.
pub(super) fn env_with_two_members() -> TestEnv {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        let agent = env.scripted_agent_path();
        env.teamctl(["spawn", name, "--backend", "in-process", "--", &agent, "stay"]).expect_success();
    }
    env
}

/// Returns the token of a member from the roster.
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
    let (mut count, mut failures) = (0, Vec::new());
    for (role, variables) in &roles {
        for (args, permission, codes) in COMMANDS {
            let output = env.teamctl_with(&[&["-t", "survey"], args].concat(), variables);
            let expected = if permission.denies(*role) { &[77] } else { codes };
            if !expected.contains(&output.code) {
                failures.push(format!("{role:?}: {args:?} exited with {}: {}", output.code, output.stderr));
            }
            count += 1;
        }
    }
    // Only the roles that may not stop the daemon try `down`.
    for (role, variables) in roles.iter().filter(|(role, _)| CommandPermission::Lead.denies(*role)) {
        let output = env.teamctl_with(&["down"], variables);
        failures.extend((output.code != 77).then(|| format!("{role:?}: down: {output:?}")));
        count += 1;
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
    record_result("roles-verbs", count);
}

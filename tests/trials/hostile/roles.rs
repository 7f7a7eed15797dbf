//! Who may do what: each role tries each verb.

use super::only;
use harness::{House, figure};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whose it is, beside the lead and a person.
#[derive(Clone, Copy)]
enum May {
    /// Theirs alone.
    Lead,
    /// The same, and the daemon alone says so: files need none, and there a member that denies its name is the lead.
    LeadAtFiles,
    /// A member's, too.
    Member,
    /// The same, and the daemon answers it: not to a token of which it knows nothing.
    Known,
    /// That one's alone, as it goes by its name.
    Own,
    /// Another's alone.
    Anothers,
}

impl May {
    fn refused(self, role: Role) -> bool {
        match self {
            May::Lead => !matches!(role, Role::Person | Role::Lead),
            May::LeadAtFiles => matches!(role, Role::Member | Role::Forger),
            May::Member => false,
            May::Known => matches!(role, Role::Forger),
            May::Own => !matches!(role, Role::Member | Role::Forger),
            May::Anothers => true,
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
    Nameless,
}

/// In a form that does no harm where it is allowed: nobody of that name, a wrong word, something that goes on; and with
/// which code it ends then.
const VERBS: [(&[&str], May, &[i32]); 55] = [
    (&["create", "survey"], May::Lead, &[73]),
    (&["spawn", "bob", "--", "true"], May::Lead, &[73]),
    (&["shutdown", "nobody", "--grace=1s"], May::Lead, &[67]),
    (&["kill", "nobody"], May::Lead, &[67]),
    (&["delete", "survey"], May::Lead, &[76]),
    (&["export", "--output", "/nowhere/x.tar"], May::LeadAtFiles, &[74]),
    (&["import", "/nowhere.tar"], May::LeadAtFiles, &[72]),
    (&["policy", "/nowhere.toml"], May::LeadAtFiles, &[72]),
    (&["policy"], May::Member, &[0]),
    (&["hide", "nobody"], May::Lead, &[67]),
    (&["show", "nobody"], May::Lead, &[67]),
    (&["layout", "tiled"], May::Lead, &[0]),
    (&["lead", "--release"], May::Lead, &[0, 67]),
    (&["interrupt", "nobody"], May::Lead, &[67]),
    (&["mode", "nobody", "plan"], May::Lead, &[67]),
    (&["approve", "nothing"], May::LeadAtFiles, &[67]),
    (&["deny", "nothing", "--reason", "r"], May::LeadAtFiles, &[67]),
    (&["task", "create", "x", "--metadata", "{\"command\": \"true\"}"], May::LeadAtFiles, &[0]),
    (&["send", "ann", "x", "--as-user"], May::LeadAtFiles, &[0]),
    (&["inbox", "ann", "--mark-read"], May::Anothers, &[]),
    (&["run", "nothing.toml"], May::LeadAtFiles, &[72]),
    (&["send", "ann", "x"], May::Member, &[0]),
    (&["broadcast", "x"], May::Member, &[0]),
    (&["inbox", "bob", "--mark-read"], May::Own, &[0]),
    (&["task", "create", "x"], May::Member, &[0]),
    (&["task", "list"], May::Member, &[0]),
    (&["task", "get", "1"], May::Member, &[0]),
    (&["task", "update", "1", "--subject", "x"], May::Member, &[0]),
    (&["task", "claim", "999"], May::Member, &[67]),
    (&["task", "claim"], May::Member, &[0, 67]),
    (&["task", "done", "999"], May::Member, &[67]),
    (&["task", "release", "999"], May::Member, &[67]),
    (&["task", "delete", "999"], May::Member, &[67]),
    (&["respond", "nothing", "--approve"], May::Own, &[67]),
    (&["prompt"], May::Member, &[0]),
    (&["doctor"], May::Member, &[0, 1]),
    (&["why", "bob"], May::Member, &[0]),
    (&["why", "ann"], May::LeadAtFiles, &[0]),
    (&["trace", "0"], May::LeadAtFiles, &[0, 64, 67]),
    (&["up"], May::Member, &[0]),
    (&["status"], May::Known, &[0]),
    (&["capture", "ann"], May::Known, &[0, 67]),
    (&["logs", "ann"], May::Member, &[67]),
    (&["wait", "--timeout", "0s"], May::Member, &[0, 75]),
    (&["requests"], May::LeadAtFiles, &[0]),
    (&["plan", "out/plan.md"], May::Own, &[76]),
    (&["events"], May::Member, &[0]),
    (&["agents"], May::Member, &[0]),
    (&["setup", "codex"], May::Member, &[0]),
    (&["hook", "nothing"], May::Member, &[0]),
    (&["work"], May::Member, &[64]),
    (&["notify", "a word"], May::Member, &[78]),
    (&["completions", "bash"], May::Member, &[0]),
    (&["man"], May::Member, &[0]),
    (&["help"], May::Member, &[0]),
];

/// Those that no role is refused and that go on for as long as somebody watches them, or serve a program, and that which
/// comes last.
const OTHERS: [&str; 4] = ["attach", "top", "mcp", "down"];

#[test]
fn no_verb_is_forgotten() {
    let house = House::empty();
    let help = house.teamctl(["--help"]).stdout;
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: BTreeSet<&str> = verbs.map(|line| line.split_whitespace().next().unwrap()).collect();
    let tried = VERBS.iter().map(|(words, ..)| words[0]).chain(OTHERS);
    assert_eq!(verbs, tried.collect());
    house.end();
}

/// With two members.
pub(super) fn house() -> House {
    let house = House::with_team();
    for name in ["ann", "bob"] {
        let agent = house.agent();
        house.teamctl(["spawn", name, "--backend", "in-process", "--", &agent, "stay"]).ok();
    }
    house
}

/// As the roster has it.
pub(super) fn token_of(house: &House, name: &str) -> String {
    let roster = std::fs::read_to_string(only(&house.path("state/teamd"), "roster.json")).unwrap();
    let roster: Value = serde_json::from_str(&roster).unwrap();
    let agent = roster["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap();
    agent["token"].as_str().unwrap().to_owned()
}

#[test]
fn each_role_may_do_what_is_its_own_and_no_more() {
    let house = house();
    house.teamctl(["task", "create", "one"]).ok();
    house.put("out/plan.md", "one thing after the other");
    let token = &token_of(&house, "bob");
    let roles = [
        (Role::Person, vec![]),
        (Role::Lead, vec![("TEAMD_AGENT", "team-lead")]),
        (Role::Member, vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", token)]),
        (Role::Forger, vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", "wrong")]),
        (Role::Nameless, vec![("TEAMD_TOKEN", token)]),
    ];
    let (mut tried, mut wrong) = (0, Vec::new());
    for (role, variables) in &roles {
        for (verb, may, codes) in VERBS {
            let ran = house.teamctl_with(&[&["-t", "survey"], verb].concat(), variables);
            let expected = if may.refused(*role) { &[77] } else { codes };
            if !expected.contains(&ran.code) {
                wrong.push(format!("{role:?}: {verb:?} ended with {}: {}", ran.code, ran.stderr));
            }
            tried += 1;
        }
    }
    // Whoever may would end it.
    for (role, variables) in roles.iter().filter(|(role, _)| May::Lead.refused(*role)) {
        let ran = house.teamctl_with(&["down"], variables);
        wrong.extend((ran.code != 77).then(|| format!("{role:?}: down: {ran:?}")));
        tried += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.end();
    figure("roles-verbs", tried);
}

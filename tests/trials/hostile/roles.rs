//! Who may do what: each role tries each verb that changes something.

use super::only;
use harness::{House, figure};
use serde_json::Value;

/// Whose it is, beside the lead and a person.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    /// Theirs alone.
    Lead,
    /// The same, and the daemon alone says so: files need none, and there a member that denies its name is the lead.
    LeadAtFiles,
    /// A member's, too.
    Member,
}

/// In a form that does no harm where it is allowed: nobody of that name, a wrong word, something that goes on.
const VERBS: [(&[&str], May); 31] = [
    (&["create", "survey"], May::Lead),
    (&["spawn", "bob", "--", "true"], May::Lead),
    (&["shutdown", "nobody", "--grace=1s"], May::Lead),
    (&["kill", "nobody"], May::Lead),
    (&["delete", "survey"], May::Lead),
    (&["hide", "nobody"], May::Lead),
    (&["show", "nobody"], May::Lead),
    (&["layout", "tiled"], May::Lead),
    (&["interrupt", "nobody"], May::Lead),
    (&["mode", "nobody", "plan"], May::Lead),
    (&["approve", "nothing"], May::LeadAtFiles),
    (&["deny", "nothing", "--reason", "r"], May::LeadAtFiles),
    (&["task", "create", "x", "--metadata", "{\"command\": \"true\"}"], May::LeadAtFiles),
    (&["send", "ann", "x", "--as-user"], May::LeadAtFiles),
    (&["inbox", "ann", "--mark-read"], May::Lead),
    (&["run", "nothing.toml"], May::Lead),
    (&["send", "ann", "x"], May::Member),
    (&["broadcast", "x"], May::Member),
    (&["inbox", "bob", "--mark-read"], May::Member),
    (&["task", "create", "x"], May::Member),
    (&["task", "list"], May::Member),
    (&["task", "get", "1"], May::Member),
    (&["task", "update", "1", "--subject", "x"], May::Member),
    (&["task", "claim", "999"], May::Member),
    (&["task", "done", "999"], May::Member),
    (&["task", "release", "999"], May::Member),
    (&["task", "delete", "999"], May::Member),
    (&["respond", "nothing", "--approve"], May::Member),
    (&["status"], May::Member),
    (&["prompt"], May::Member),
    (&["doctor"], May::Member),
];

#[test]
fn each_role_may_do_what_is_its_own_and_no_more() {
    let house = House::with_team();
    for name in ["ann", "bob"] {
        let agent = house.agent();
        house.teamctl(["spawn", name, "--backend", "in-process", "--", &agent, "stay"]).ok();
    }
    house.teamctl(["task", "create", "one"]).ok();
    let roster = std::fs::read_to_string(only(&house.path("state/teamd"), "roster.json")).unwrap();
    let roster: Value = serde_json::from_str(&roster).unwrap();
    let bob = roster["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "bob").unwrap();
    let token = bob["token"].as_str().unwrap();
    let roles: [(&str, Vec<(&str, &str)>); 5] = [
        ("a person", vec![]),
        ("the lead", vec![("TEAMD_AGENT", "team-lead")]),
        ("a member", vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", token)]),
        ("a member with another's token", vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", "wrong")]),
        ("a member that denies its name", vec![("TEAMD_TOKEN", token)]),
    ];
    let (mut tried, mut wrong) = (0, Vec::new());
    for (role, variables) in &roles {
        let denies = role.ends_with("name");
        for (verb, may) in VERBS {
            let is_member = variables.iter().any(|(name, _)| *name == "TEAMD_TOKEN");
            let refused = is_member && may != May::Member && !(denies && may == May::LeadAtFiles);
            let ran = house.teamctl_with(&[&["-t", "survey"], verb].concat(), variables);
            if (ran.code == 77) != refused {
                wrong.push(format!("{role}: {verb:?} ended with {}: {}", ran.code, ran.stderr));
            }
            tried += 1;
        }
    }
    assert_eq!(wrong, [""; 0], "{wrong:#?}");
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.end();
    figure("roles-verbs", tried);
}

//! Who may do what: each role tries each verb that changes something.

use super::only;
use harness::{House, figure};
use serde_json::Value;

/// Whose it is, beside the lead and a person.
#[derive(Clone, Copy)]
enum May {
    /// Theirs alone.
    Lead,
    /// The same, and the daemon alone says so: files need none, and there a member that denies its name is the lead.
    LeadAtFiles,
    /// A member's, too.
    Member,
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

/// In a form that does no harm where it is allowed: nobody of that name, a wrong word, something that goes on.
const VERBS: [(&[&str], May); 30] = [
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
    (&["inbox", "ann", "--mark-read"], May::Anothers),
    (&["run", "nothing.toml"], May::LeadAtFiles),
    (&["send", "ann", "x"], May::Member),
    (&["broadcast", "x"], May::Member),
    (&["inbox", "bob", "--mark-read"], May::Own),
    (&["task", "create", "x"], May::Member),
    (&["task", "list"], May::Member),
    (&["task", "get", "1"], May::Member),
    (&["task", "update", "1", "--subject", "x"], May::Member),
    (&["task", "claim", "999"], May::Member),
    (&["task", "done", "999"], May::Member),
    (&["task", "release", "999"], May::Member),
    (&["task", "delete", "999"], May::Member),
    (&["respond", "nothing", "--approve"], May::Own),
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
    let roles = [
        (Role::Person, vec![]),
        (Role::Lead, vec![("TEAMD_AGENT", "team-lead")]),
        (Role::Member, vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", token)]),
        (Role::Forger, vec![("TEAMD_AGENT", "bob"), ("TEAMD_TOKEN", "wrong")]),
        (Role::Nameless, vec![("TEAMD_TOKEN", token)]),
    ];
    let (mut tried, mut wrong) = (0, Vec::new());
    for (role, variables) in &roles {
        for (verb, may) in VERBS {
            let ran = house.teamctl_with(&[&["-t", "survey"], verb].concat(), variables);
            if (ran.code == 77) != may.refused(*role) {
                wrong.push(format!("{role:?}: {verb:?} ended with {}: {}", ran.code, ran.stderr));
            }
            tried += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.end();
    figure("roles-verbs", tried);
}

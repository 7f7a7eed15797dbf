//! Fuzzes the edits of a team's `config.json`: a member is added, changed and removed. The other
//! members stay unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeamConfig, with_member, with_member_fields, without_member};
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(config) = TeamConfig::parse(text) else { return };
    let Some(first) = config.members.first() else { return };
    let name = MemberName::new_unchecked("zz-new");
    if config.members.iter().any(|member| member.name == name) {
        return;
    }
    let new_member = Member { name: name.clone(), ..first.clone() };
    let extended = with_member(text, &new_member).expect("a member can be added to a valid config");
    let parsed = TeamConfig::parse(&extended).expect("the config with the new member can be parsed");
    let (last, rest) = parsed.members.split_last().expect("the config has the new member");
    assert_eq!(rest, config.members);
    assert_eq!(last.name, name);

    let edited = with_member_fields(&extended, &name, &[("mode", json!("plan")), ("color", json!(null))])
        .expect("fields of a member can be set")
        .expect("the config has the new member");
    let parsed = TeamConfig::parse(&edited).expect("the edited config can be parsed");
    let last = parsed.members.last().expect("the config has the new member");
    assert_eq!((last.mode.as_deref(), last.color.as_deref()), (Some("plan"), None));

    let restored = without_member(&edited, &name).expect("the new member can be removed");
    let parsed = TeamConfig::parse(&restored).expect("the config without the new member can be parsed");
    assert_eq!(parsed, config);
});

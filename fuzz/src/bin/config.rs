//! A team's config.json. Members come and go, and are set; the others stay as they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::name::AgentName;
use protocol::team_config::{Member, TeamConfig, with_member, with_member_fields, without_member};
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(config) = TeamConfig::parse(text) else { return };
    let Some(first) = config.members.first() else { return };
    let name = AgentName::new_unchecked("zz-new");
    if config.members.iter().any(|member| member.name == name) {
        return;
    }
    let new = Member { name: name.clone(), ..first.clone() };
    let more = with_member(text, &new).expect("a config takes a member");
    let parsed = TeamConfig::parse(&more).expect("and is one still");
    let (last, rest) = parsed.members.split_last().expect("with one more");
    assert_eq!(rest, config.members);
    assert_eq!(last.name, name);

    let set = with_member_fields(&more, &name, &[("mode", json!("plan")), ("color", json!(null))]);
    let set = set.expect("its fields can be set").expect("it is there");
    let parsed = TeamConfig::parse(&set).expect("and it is a config still");
    let last = parsed.members.last().expect("it is there");
    assert_eq!((last.mode.as_deref(), last.color.as_deref()), (Some("plan"), None));

    let gone = without_member(&set, &name).expect("it can go");
    assert_eq!(TeamConfig::parse(&gone).expect("and leaves a config"), config);
});

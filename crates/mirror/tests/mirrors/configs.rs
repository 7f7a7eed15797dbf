//! The home sends what has changed in its config. The annex has the same config.json as one that gets
//! the whole config each time.
#![allow(clippy::disallowed_methods, reason = "these are the foreign writers")]

use crate::end::{End, name, task_id, team_name};
use crate::pair::{Pair, teammate};
use mirror::{FileChange, MirrorNotice};
use protocol::annex_link::{ConfigChange, ItemPayload};
use protocol::team_config::Member;
use serde_json::json;
use store::NewTask;

fn on_host(member: &str, host: Option<&str>) -> Member {
    Member { host: host.map(str::to_owned), ..teammate(member) }
}

fn text(end: &End) -> String {
    String::from_utf8(std::fs::read(end.team().config_path()).unwrap()).unwrap()
}

/// Compares the home's config, and delivers what follows. Returns the items of the home.
fn update(pair: &mut Pair) -> Vec<ItemPayload> {
    pair.home.changed(&FileChange::Config);
    pair.home.accept_all();
    let items = pair.home.spool.iter().map(|item| item.payload.clone()).collect();
    pair.deliver_all();
    items
}

/// The only item, which is a change.
fn only_change(items: &[ItemPayload]) -> &ConfigChange {
    let [ItemPayload::TeamChange { change, .. }] = items else { panic!("{items:?}") };
    change
}

/// How many whole configs the home has sent.
fn whole_configs(end: &End) -> usize {
    let items = end.stored.iter().chain(&end.spool);
    items.filter(|item| matches!(item.payload, ItemPayload::Team { .. })).count()
}

#[test]
fn home_sends_the_members_that_have_changed() {
    let mut pair = Pair::new();
    let new = [on_host("cid", None), on_host("dan", Some("otherbox")), on_host("ann", Some("devbox"))];
    pair.home.team().add_missing_members(&new).unwrap();
    let items = update(&mut pair);
    let added: Vec<String> =
        only_change(&items).added.iter().map(|entry| entry.to_member().unwrap().name.to_string()).collect();
    assert_eq!((added, only_change(&items).removed.len()), (vec!["cid".to_owned(), "dan".to_owned()], 0));
    pair.home.team().set_member_fields(&name("cid"), &[("isActive", false.into())]).unwrap();
    let items = update(&mut pair);
    let [changed] = &only_change(&items).changed[..] else { panic!("{items:?}") };
    assert_eq!(
        (changed.name.as_str(), &changed.fields),
        ("cid", json!({"isActive": false}).as_object().unwrap())
    );
    pair.home.team().remove_member(&name("bob")).unwrap();
    assert_eq!(only_change(&update(&mut pair)).removed, ["bob"]);
    pair.home.team().set_fields(&[("description", "another".into())]).unwrap();
    let items = update(&mut pair);
    assert_eq!(&only_change(&items).fields, json!({"description": "another"}).as_object().unwrap());
    assert!(update(&mut pair).is_empty(), "nothing has changed");
    pair.home.team().set_member_fields(&name("ann"), &[("isActive", false.into())]).unwrap();
    assert!(update(&mut pair).is_empty(), "only a member of this annex has changed");
    let members = pair.annex.team().config().unwrap().members;
    let hosts: Vec<(&str, Option<&str>)> =
        members.iter().map(|member| (member.name.as_str(), member.host.as_deref())).collect();
    assert_eq!(hosts, [("team-lead", Some("home")), ("cid", Some("home")), ("dan", Some("otherbox"))]);
    assert_eq!(pair.annex.team().config().unwrap().description.as_deref(), Some("another"));
    assert_eq!(whole_configs(&pair.home), 1);
}

#[test]
fn member_that_changes_its_host_and_doubled_names_need_the_whole_config() {
    let mut pair = Pair::new();
    pair.home.team().add_member(&on_host("cid", Some("devbox"))).unwrap();
    update(&mut pair);
    pair.home.team().set_member_fields(&name("cid"), &[("host", "otherbox".into())]).unwrap();
    assert!(matches!(update(&mut pair)[..], [ItemPayload::Team { .. }]));
    pair.home.team().set_member_fields(&name("cid"), &[("host", "devbox".into())]).unwrap();
    assert_eq!(only_change(&update(&mut pair)).removed, ["cid"]);
    assert!(pair.annex.team().member("cid").is_err());
    let doubled = text(&pair.home).replace("\"name\": \"cid\"", "\"name\": \"bob\"");
    replace_config(&pair.home, &doubled);
    assert!(matches!(update(&mut pair)[..], [ItemPayload::Team { .. }]));
}

#[test]
fn annex_without_the_config_before_a_change_gets_the_whole_one() {
    let mut pair = Pair::new();
    pair.home.team().add_member(&on_host("cid", None)).unwrap();
    pair.home.changed(&FileChange::Config);
    pair.home.accept_all();
    pair.annex.restart();
    pair.deliver_all();
    assert_eq!(whole_configs(&pair.home), 2);
    assert!(pair.annex.team().member("cid").is_ok());
    // A config that is too long for the link is dropped. The annex asks once.
    pair.home.restart();
    pair.home.accept_all();
    pair.home.spool.retain(|item| !matches!(item.payload, ItemPayload::Team { .. }));
    for member in ["dan", "eve"] {
        pair.home.team().add_member(&on_host(member, None)).unwrap();
        update(&mut pair);
        assert!(pair.annex.team().member(member).is_ok(), "{member}");
    }
    assert_eq!(whole_configs(&pair.home), 3);
}

#[test]
fn lost_mirror_is_made_again_before_a_barrier_is_passed() {
    let mut pair = Pair::new();
    pair.home.team().tasks().create(NewTask::new("count", &name("team-lead"))).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    pair.deliver_all();
    let (team, tasks) = (pair.annex.team().path(), pair.annex.team().tasks().path());
    std::fs::remove_dir_all(team).unwrap();
    std::fs::remove_dir_all(tasks).unwrap();
    pair.home.add_team();
    let barrier = pair.home.mirror.send_barrier(7);
    pair.home.add_output(barrier);
    pair.home.accept_all();
    while !pair.home.notices.contains(&MirrorNotice::BarrierReached { number: 7 }) {
        pair.deliver_to_annex();
        pair.annex.accept_all();
        pair.deliver_to_home();
        pair.home.accept_all();
    }
    assert_eq!(pair.annex.task(1).subject, "count");
    assert_eq!(pair.annex.notices.iter().filter(|notice| is_team_made(notice)).count(), 2);
}

/// The home sends barriers again after each connection.
#[test]
fn barrier_that_was_sent_twice_is_not_passed_early() {
    let mut pair = Pair::new();
    let (team, tasks) = (pair.annex.team().path(), pair.annex.team().tasks().path());
    std::fs::remove_dir_all(team).unwrap();
    std::fs::remove_dir_all(tasks).unwrap();
    pair.home.add_team();
    for _ in 0..2 {
        let barrier = pair.home.mirror.send_barrier(7);
        pair.home.add_output(barrier);
    }
    pair.home.accept_all();
    while pair.deliver_to_annex() {}
    pair.annex.accept_all();
    // The annex answers both barriers before it gets the config for which it has asked.
    while pair.deliver_to_home() {}
    let reached = MirrorNotice::BarrierReached { number: 7 };
    assert!(!pair.home.notices.contains(&reached));
    pair.deliver_all();
    assert!(pair.home.notices.contains(&reached));
}

fn is_team_made(notice: &MirrorNotice) -> bool {
    matches!(notice, MirrorNotice::TeamMade { .. })
}

/// A program replaces config.json.
fn replace_config(end: &End, text: &str) {
    let path = end.team().config_path();
    std::fs::write(path.with_extension("new"), text).unwrap();
    std::fs::rename(path.with_extension("new"), path).unwrap();
}

/// One random change of the home's config, and now and then one of the annex's.
fn change(pair: &mut Pair, random: &mut fastrand::Rng, step: u64) {
    let team = pair.home.team();
    let names = ["m1", "m2", "m3", "m4", "M1"];
    let member = names[random.usize(..names.len())];
    match random.u8(..12) {
        0..=3 => {
            let host = [None, None, Some("devbox"), Some("otherbox")][random.usize(..4)];
            team.add_missing_members(&[on_host(member, host)]).unwrap();
        }
        4..=5 => team.remove_member(&name(member)).unwrap(),
        6..=7 => {
            let fields = [("model", format!("m{step}").into()), ("later key", step.into())];
            let fields = &fields[random.usize(..2)..];
            team.set_member_fields(&name(member), fields).ok();
        }
        8 => drop(team.set_member_fields(&name(member), &[("prompt", serde_json::Value::Null)])),
        9 => {
            let fields = [("description", format!("step {step}").into()), ("another key", step.into())];
            team.set_fields(&fields[random.usize(..2)..]).unwrap();
        }
        // Programs at the annex change entries of others, and keys that teamd does not know.
        10 => pair.annex.team().remove_member(&name(member)).unwrap(),
        _ => {
            let fields = [("cwd", "/elsewhere".into()), ("own key", step.into())];
            pair.annex.team().set_member_fields(&name(member), &fields).ok();
        }
    }
}

#[test]
fn annex_has_the_same_file_after_changes_as_after_whole_configs() {
    for seed in 0..12 {
        let [mut changes, mut wholes] = [Pair::new(), Pair::new()];
        for pair in [&mut changes, &mut wholes] {
            pair.annex.team().add_member(&teammate("ann")).unwrap();
            pair.annex.changed(&FileChange::Config);
            pair.deliver_all();
        }
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..40 {
            let seed_of_step = random.u64(..);
            for pair in [&mut changes, &mut wholes] {
                change(pair, &mut fastrand::Rng::with_seed(seed_of_step), step);
            }
            if random.bool() {
                changes.home.compare_all();
                changes.deliver_all();
                // A home that does not know what the annex has sends all of it.
                wholes.home.restart();
                wholes.deliver_all();
            }
            assert_eq!(text(&changes.annex), text(&wholes.annex), "seed {seed}, step {step}");
        }
        let counts = [&changes, &wholes].map(|pair| whole_configs(&pair.home));
        assert!(counts[0] < counts[1], "{counts:?}");
        assert_eq!(changes.annex.root.team(&team_name()).unwrap().config().unwrap().created_at, 1);
    }
}

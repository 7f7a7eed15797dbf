//! A team that is packed, and made again elsewhere.

use harness::House;
use serde_json::json;

fn team() -> House {
    let house = House::empty();
    house.start_daemon();
    house.put("policy.toml", "[policy]\npermissions = \"person\"\n");
    let policy = house.path("policy.toml").display().to_string();
    house.teamctl(["create", "survey", "--description", "counts", "--policy", &policy]).ok();
    // It reads nothing.
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house.teamctl(["send", "ann", "h\u{e4}llo \u{1f98a}"]).ok();
    let path = "root/teams/survey/config.json";
    let config = house.read(path).replacen('{', "{\"theirs\": {\"n\": 1.50},", 1);
    house.put(path, config);
    for subject in ["count", "report"] {
        house.teamctl(["task", "create", subject]).ok();
    }
    house.teamctl(["task", "delete", "3"]).ok();
    house
}

fn archive(house: &House) -> String {
    house.path("out/survey.tar").display().to_string()
}

#[test]
fn it_is_the_same_team_elsewhere_but_for_who_runs() {
    let house = team();
    let ran = house.teamctl(["export", "survey", "-o", &archive(&house)]).ok();
    assert!(ran.contains("survey is packed in"), "{ran}");
    assert_eq!(house.teamctl(["export", "-o", &archive(&house)]).code, 73);
    let packed = archive(&house);
    for ran in [house.teamctl(["import", &packed]), house.teamctl(["import", &packed, "-t", "survey"])] {
        let taken = ran.fails(73);
        assert!(taken.contains("with -t NAME") && !taken.contains("--unique"), "{taken}");
    }
    let other = House::start();
    let ran = other.teamctl(["import", &archive(&house)]).ok();
    assert!(ran.contains("Its members were ann: start them with teamctl spawn."), "{ran}");
    assert_eq!(other.inbox("survey", "ann"), house.inbox("survey", "ann"));
    let subjects = |house: &House| house.json(["task", "list"])["tasks"].clone();
    assert_eq!(subjects(&other), subjects(&house));
    let config = other.config();
    assert_eq!((&config["theirs"], &config["description"]), (&json!({"n": 1.5}), &"counts".into()));
    assert_eq!(config["members"].as_array().unwrap().len(), 1);
    // No id comes twice, and the policy is there.
    let made = other.json(["task", "create", "next"]);
    assert_eq!(made["task"]["id"], house.json(["task", "create", "next"])["task"]["id"]);
    other.teamctl(["export", "-o", &other.path("out/again.tar").display().to_string()]).ok();
    let list = other.command("tar").arg("-tf").arg(other.path("out/again.tar")).output().unwrap();
    assert!(String::from_utf8_lossy(&list.stdout).contains("teamd/policy.json"), "{list:?}");
    let named = other.teamctl(["import", &archive(&house), "-t", "survey-2"]).ok();
    assert!(named.contains("Team survey-2 is there"), "{named}");
    other.end();
    house.end();
}

#[test]
fn what_is_no_teams_archive_makes_nothing() {
    let house = team();
    let shell = |line: &str| {
        let ran = house.command("sh").current_dir(house.path("out")).args(["-c", line]).status().unwrap();
        assert!(ran.success(), "{line}");
    };
    house.teamctl(["export", "survey", "-o", &archive(&house)]).ok();
    shell(
        "mkdir x; cd x; tar -xf ../survey.tar; ln -sf /etc/passwd teams/survey/inboxes/bob.json; tar -cf ../link.tar .",
    );
    shell(
        "cd x; rm teams/survey/inboxes/bob.json; printf '[' >teams/survey/inboxes/bob.json; tar -cf ../half.tar .",
    );
    shell("head -c 1500 survey.tar >cut.tar; echo no >text.tar; : >empty.tar");
    let path = |name: &str| house.path(&format!("out/{name}.tar")).display().to_string();
    let passwd = house.put("out/passwd", "root:x:0:0:root:/root:/bin/sh\n".repeat(40));
    let other = House::start();
    for name in ["link", "half", "cut", "text", "empty"] {
        let ran = other.teamctl(["import", &path(name)]);
        assert_eq!(ran.code, 65, "{ran:#?}");
        assert!(!other.path("root/teams/survey").exists(), "{name} has made something");
    }
    for text in [passwd, path("cut")] {
        let said = other.teamctl(["import", &text]).fails(65);
        let line = format!("teamctl: cannot import {text}: it is no tar archive, or only a part of one\n");
        assert_eq!(said, format!("{line}  pack a team with: teamctl export TEAM\n"));
    }
    let missing = other.teamctl(["import", "/nowhere.tar"]);
    assert_eq!(missing.code, 72, "{missing:#?}");
    other.end();
    house.end();
}

//! `agents` and `setup`: what there is, whether it fits, and what its settings need.

use harness::House;

const PROFILE: &str = "about = \"mine\"\nfeed = \"hook\"\nprogram = \"own\"\nargs = [\"{options}\"]\n\
                       prompt = [\"--ask={prompt}\"]\nmodel = [\"--model\", \"{model}\"]\ntypes = { Explore = [\"-r\"] }\n\
                       version = [\"--version\"]\nhelp = [\"--help\"]\n[[setup]]\nfile = \"~/.own/settings.json\"\nformat = \"json\"\n\
                       [setup.merge.hooks]\nstop = [\"{self_sh} hook turn-end\"]\n";

fn house(help: &str) -> House {
    let mut house = House::empty();
    house.put("home/.config/teamd/agents/own.toml", PROFILE);
    std::fs::create_dir_all(house.path("out/bin")).unwrap();
    house.script(
        "out/bin/own",
        &format!("#!/bin/sh\ncase $1 in --version) echo 'own 1.2.3' ;; --help) echo '{help}' ;; esac\n"),
    );
    let path = format!(
        "{}:{}:{}",
        house.path("out/bin").display(),
        harness::programs().display(),
        std::env::var("PATH").unwrap()
    );
    house.variables.push(("PATH".to_owned(), path));
    house
}

#[test]
fn a_profile_fits_once_its_program_knows_the_options_and_its_settings_are_written() {
    let house = house("--ask TEXT, --model M, -r");
    let agents = house.json(["agents"])["agents"].clone();
    let own = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "own").unwrap();
    assert_eq!((own["feed"].as_str(), own["reaches"].as_str()), (Some("hook"), Some("turn-end")));
    assert_eq!(own["path"], house.path("out/bin/own").display().to_string());
    let shown = house.teamctl(["agents", "show", "own"]).ok();
    assert!(shown.contains("starts: own {options}") && shown.contains(PROFILE.trim_end()), "{shown}");
    let lacks = house.teamctl(["agents", "check", "own"]);
    assert!(lacks.stdout.contains("own 1.2.3") && lacks.stdout.contains("teamctl setup own"), "{lacks:#?}");
    lacks.fails(78);
    assert!(house.teamctl(["setup", "own"]).ok().contains("hook turn-end"));
    assert!(!house.path("home/.own/settings.json").exists(), "nothing is written unasked");
    house.teamctl(["setup", "own", "--write"]).ok();
    house.teamctl(["agents", "check", "own"]).ok();
    assert_eq!(house.json(["setup", "own", "--write"])["files"][0]["ready"], true);
    house.nothing_left_of_ours();
}

#[test]
fn an_option_that_the_program_does_not_know_is_told_and_so_is_a_missing_program() {
    let house = house("--ask, --models M, -rf");
    let found = house.teamctl_with(&["agents", "check", "own", "--json"], &[]);
    assert_eq!(found.code, 78);
    assert_eq!(found.json()["agents"][0]["unknown_options"], serde_json::json!(["--model", "-r"]));
    std::fs::remove_file(house.path("out/bin/own")).unwrap();
    house.teamctl(["agents", "check", "own"]).fails(72);
    let unknown = house.teamctl(["agents", "check", "nobody"]).fails(64);
    assert!(unknown.contains("cannot find the profile nobody"), "{unknown}");
    house.nothing_left_of_ours();
}

#[test]
fn settings_keep_everything_else_and_what_they_were_lies_beside_them() {
    let house = house("--ask --model -r");
    let held = "{\n  \"n\": 1e5,\n  \"hooks\": { \"stop\": [\"mine\"] }\n}\n";
    house.put("home/.own/settings.json", held);
    house.teamctl(["setup", "own", "--write"]).ok();
    let written = house.read("home/.own/settings.json");
    assert!(
        written.contains("\"n\": 1e5") && written.contains("\"mine\"") && written.contains("turn-end"),
        "{written}"
    );
    let names = std::fs::read_dir(house.path("home/.own")).unwrap().flatten();
    let copy = names
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains(".before-teamd-"))
        .unwrap();
    assert_eq!(std::fs::read_to_string(copy).unwrap(), held);
    house.put("home/.own/settings.json", "{ // a comment\n}");
    house.teamctl(["setup", "own", "--write"]).fails(65);
    assert_eq!(house.read("home/.own/settings.json"), "{ // a comment\n}");
    house.nothing_left_of_ours();
}

#[test]
fn a_program_that_fails_when_it_is_asked_does_not_fit() {
    let house = house("--ask, --model M, -r");
    house.teamctl(["setup", "own", "--write"]).ok();
    house.script("out/bin/own", "#!/bin/sh\necho 'own 1.2.3 --ask --model -r'; echo fatal >&2; exit 127\n");
    let ran = house.teamctl(["agents", "check", "own"]);
    assert!(ran.stdout.contains("failed (exit status: 127): fatal"), "{ran:#?}");
    ran.fails(78);
    let ran = house.teamctl(["agents", "check", "own", "--json"]);
    assert_eq!((ran.code, ran.json()["error"]["kind"].as_str()), (78, Some("config")));
    house.nothing_left_of_ours();
}

#[test]
fn a_profile_at_fault_is_told_and_the_others_are_checked_all_the_same() {
    let house = house("--ask, --model M, -r");
    house.teamctl(["setup", "own", "--write"]).ok();
    house.profile("broken", "feed = 1\n");
    let ran = house.teamctl(["agents", "check"]);
    assert!(
        ran.stdout.contains("own 1.2.3") && ran.stdout.contains("broken: cannot use the profile"),
        "{ran:#?}"
    );
    ran.fails(78);
    house.nothing_left_of_ours();
}

#[test]
fn settings_that_a_variable_has_moved_are_found_there_and_anothers_server_is_left_alone() {
    let mut house = house("--ask");
    let theirs = "{\"mcp\": {\"team\": {\"type\": \"local\", \"command\": [\"npx\", \"team-mcp\"]}}}";
    house.put("out/config/opencode/opencode.json", theirs);
    let config = house.path("out/config").display().to_string();
    house.variables.push(("XDG_CONFIG_HOME".to_owned(), config));
    let refused = house.teamctl(["setup", "opencode", "--write"]).fails(65);
    assert!(refused.contains("`team` is there already, and starts another program"), "{refused}");
    assert_eq!(house.read("out/config/opencode/opencode.json"), theirs);
    house.put("out/config/opencode/opencode.json", "{}");
    house.teamctl(["setup", "opencode", "--write"]).ok();
    assert!(house.read("out/config/opencode/opencode.json").contains("\"mcp\""));
    house.nothing_left_of_ours();
}

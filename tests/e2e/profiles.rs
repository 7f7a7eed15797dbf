//! Checks `teamctl profiles` and `teamctl setup`: listing and checking profiles, and writing the
//! settings that a program needs.

use harness::TestEnv;

const PROFILE: &str = "description = \"mine\"\ndelivery = \"hook\"\nprogram = \"own\"\nargs = [\"{options}\"]\n\
                       prompt_args = [\"--ask={prompt}\"]\nmodel = [\"--model\", \"{model}\"]\nagent_types = { Explore = [\"-r\"] }\n\
                       version_args = [\"--version\"]\nhelp_args = [\"--help\"]\n[[settings]]\nfile = \"~/.own/settings.json\"\nformat = \"json\"\n\
                       [settings.merge.hooks]\nstop = [\"{shim_sh} hook turn-end\"]\n";

/// An environment with the program `own`, which prints `help` for `--help`, and the profile `own`
/// for it.
fn env_with_program(help: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.write_file("home/.config/teamd/profiles/own.toml", PROFILE);
    std::fs::create_dir_all(env.path("out/bin")).unwrap();
    env.write_script(
        "out/bin/own",
        &format!("#!/bin/sh\ncase $1 in --version) echo 'own 1.2.3' ;; --help) echo '{help}' ;; esac\n"),
    );
    let path = format!(
        "{}:{}:{}",
        env.path("out/bin").display(),
        harness::programs().display(),
        std::env::var("PATH").unwrap()
    );
    env.variables.push(("PATH".to_owned(), path));
    env
}

#[test]
fn profile_check_passes_when_options_are_known_and_settings_written() {
    let env = env_with_program("--ask TEXT, --model M, -r");
    let profiles = env.json(["profiles"])["profiles"].clone();
    let own = profiles.as_array().unwrap().iter().find(|profile| profile["name"] == "own").unwrap();
    assert_eq!((own["delivery"].as_str(), own["delivery_point"].as_str()), (Some("hook"), Some("turn-end")));
    assert_eq!(own["path"], env.path("out/bin/own").display().to_string());
    let output = env.teamctl(["profiles", "show", "own"]).expect_success();
    assert!(output.contains("starts: own {options}") && output.contains(PROFILE.trim_end()), "{output}");
    let output = env.teamctl(["profiles", "check", "own"]);
    assert!(
        output.stdout.contains("own 1.2.3") && output.stdout.contains("teamctl setup own"),
        "{output:#?}"
    );
    output.expect_failure(78);
    assert!(env.teamctl(["setup", "own"]).expect_success().contains("hook turn-end"));
    assert!(!env.path("home/.own/settings.json").exists(), "setup writes nothing without --write");
    env.teamctl(["setup", "own", "--write"]).expect_success();
    env.teamctl(["profiles", "check", "own"]).expect_success();
    assert_eq!(env.json(["setup", "own", "--write"])["files"][0]["is_up_to_date"], true);
    env.assert_no_files();
}

#[test]
fn missing_options_and_missing_program_are_reported() {
    let env = env_with_program("--ask, --models M, -rf");
    let output = env.teamctl_with(&["profiles", "check", "own", "--json"], &[]);
    assert_eq!(output.code, 78);
    assert_eq!(output.json()["profiles"][0]["unknown_options"], serde_json::json!(["--model", "-r"]));
    std::fs::remove_file(env.path("out/bin/own")).unwrap();
    env.teamctl(["profiles", "check", "own"]).expect_failure(72);
    let error = env.teamctl(["profiles", "check", "nobody"]).expect_failure(64);
    assert!(error.contains("cannot find the profile nobody"), "{error}");
    env.assert_no_files();
}

#[test]
fn setup_keeps_other_settings_and_writes_a_backup() {
    let env = env_with_program("--ask --model -r");
    let original = "{\n  \"n\": 1e5,\n  \"hooks\": { \"stop\": [\"mine\"] }\n}\n";
    env.write_file("home/.own/settings.json", original);
    env.teamctl(["setup", "own", "--write"]).expect_success();
    let settings = env.read("home/.own/settings.json");
    assert!(
        settings.contains("\"n\": 1e5") && settings.contains("\"mine\"") && settings.contains("turn-end"),
        "{settings}"
    );
    let entries = std::fs::read_dir(env.path("home/.own")).unwrap().flatten();
    let backup = entries
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains(".before-teamd-"))
        .unwrap();
    assert_eq!(std::fs::read_to_string(backup).unwrap(), original);
    env.write_file("home/.own/settings.json", "{ // a comment\n}");
    env.teamctl(["setup", "own", "--write"]).expect_failure(65);
    assert_eq!(env.read("home/.own/settings.json"), "{ // a comment\n}");
    env.assert_no_files();
}

#[test]
fn failing_version_command_fails_the_check() {
    let env = env_with_program("--ask, --model M, -r");
    env.teamctl(["setup", "own", "--write"]).expect_success();
    env.write_script(
        "out/bin/own",
        "#!/bin/sh\necho 'own 1.2.3 --ask --model -r'; echo fatal >&2; exit 127\n",
    );
    let output = env.teamctl(["profiles", "check", "own"]);
    assert!(output.stdout.contains("failed (exit status: 127): fatal"), "{output:#?}");
    output.expect_failure(78);
    let output = env.teamctl(["profiles", "check", "own", "--json"]);
    assert_eq!((output.code, output.json()["error"]["kind"].as_str()), (78, Some("config")));
    env.assert_no_files();
}

#[test]
fn invalid_profile_is_reported_and_others_are_still_checked() {
    let env = env_with_program("--ask, --model M, -r");
    env.teamctl(["setup", "own", "--write"]).expect_success();
    env.write_profile("broken", "delivery = 1\n");
    let output = env.teamctl(["profiles", "check"]);
    assert!(
        output.stdout.contains("own 1.2.3") && output.stdout.contains("broken: cannot use the profile"),
        "{output:#?}"
    );
    output.expect_failure(78);
    env.assert_no_files();
}

#[test]
fn setup_follows_relocated_settings_and_keeps_other_servers() {
    let mut env = env_with_program("--ask");
    let settings = "{\"mcp\": {\"team\": {\"type\": \"local\", \"command\": [\"npx\", \"team-mcp\"]}}}";
    env.write_file("out/config/opencode/opencode.json", settings);
    let config = env.path("out/config").display().to_string();
    env.variables.push(("XDG_CONFIG_HOME".to_owned(), config));
    let error = env.teamctl(["setup", "opencode", "--write"]).expect_failure(65);
    assert!(error.contains("`team` exists already, and starts another program"), "{error}");
    assert_eq!(env.read("out/config/opencode/opencode.json"), settings);
    env.write_file("out/config/opencode/opencode.json", "{}");
    env.teamctl(["setup", "opencode", "--write"]).expect_success();
    assert!(env.read("out/config/opencode/opencode.json").contains("\"mcp\""));
    env.assert_no_files();
}

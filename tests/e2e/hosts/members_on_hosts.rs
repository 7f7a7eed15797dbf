//! Members on another host, as `teamctl` at the home treats them. The host is a script that stores the
//! arguments of the command. An entry in config.json, written by the test, says which member it runs.

use super::HOSTS_FILE;
use crate::state_files::state_directory;
use harness::TestEnv;
use serde_json::{Value, json};

/// Stores the first frame, which is the command as JSON, and prints a line.
const FAR_TEAMCTL: &str = "#!/bin/sh\nlength=$(head -c 5 | od -An -tu1 | awk '{print $4 * 256 + $5}')\n\
    head -c \"$length\" >\"$TEST_DIR/out/command\"\necho it ran there\nexit 1\n";

/// The team `survey` with the members `ann` and `eve` on the host `devbox`, and `bob` here.
fn env_with_far_members() -> TestEnv {
    let env = TestEnv::with_team();
    env.write_script("out/far", FAR_TEAMCTL);
    let far = env.path("out/far").display().to_string();
    let hosts = format!(
        "[host.devbox]\nconnect = 'env'\nteamctl = '{far}'\n[host.odd]\nconnect = 'env'\nroot = '/a b'\n"
    );
    env.write_file(HOSTS_FILE, hosts);
    let mut config = env.read_config();
    for (name, host, is_active) in
        [("ann", Some("devbox"), true), ("eve", Some("devbox"), false), ("bob", None, true)]
    {
        let mut member = json!({"agentId": format!("{name}@survey"), "name": name, "agentType": "worker", "model": "m",
            "joinedAt": 1, "tmuxPaneId": "%99", "cwd": "/", "subscriptions": [], "backendType": "tmux", "isActive": is_active});
        host.iter().for_each(|host| member["host"] = json!(host));
        config["members"].as_array_mut().unwrap().push(member);
    }
    env.write_file("root/teams/survey/config.json", config.to_string());
    env
}

/// The arguments of the command that the host got.
fn arguments_there(env: &TestEnv) -> String {
    let command: Value = serde_json::from_str(&env.read("out/command")).unwrap();
    assert_eq!(command["team"], Value::Null, "{command}");
    let arguments = command["arguments"].as_array().unwrap().iter();
    arguments.map(|argument| argument.as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_about_a_member_run_on_its_host() {
    let env = env_with_far_members();
    let root = env.path("root").display().to_string();
    for (typed, there) in [
        (&["capture", "ann", "--lines", "5"][..], "capture ann --lines 5"),
        (&["attach", "ann"], "attach ann"),
        (&["-tsurvey", "logs", "-f", "Ann@survey"], "logs -f Ann@survey"),
        (&["--root", root.as_str(), "hide", "ann"], "hide ann"),
        (&["show", "ann"], "show ann"),
        (&["mode", "ann", "plan"], "mode ann plan"),
        (&["interrupt", "ann", "--json"], "interrupt ann --json"),
        (&["why", "ann"], "why ann"),
        (&["shutdown", "ann", "eve", "--team", "survey"], "shutdown ann eve"),
        (&["kill", "ann"], "kill ann"),
    ] {
        let output = env.teamctl_with(typed, &[]);
        assert_eq!((output.stdout.as_str(), output.code), ("it ran there\n", 1), "{output:?}");
        assert_eq!(arguments_there(&env), format!("-t survey {there}"));
        std::fs::remove_file(env.path("out/command")).unwrap();
    }
    for typed in [&["why"][..], &["status", "ann"], &["send", "ann", "hi"], &["inbox", "ann"]] {
        let output = env.teamctl_with(typed, &[]);
        assert!(!output.stdout.contains("it ran there"), "{output:?}");
        assert!(!env.path("out/command").exists(), "{typed:?}");
    }
    let output = env.teamctl(["shutdown", "--all"]);
    assert!(output.stdout.starts_with("it ran there\n") && output.code == 1, "{output:?}");
    assert_eq!(arguments_there(&env), "-t survey shutdown --all");
    env.shut_down();
}

#[test]
fn command_about_members_of_several_hosts_says_what_to_type() {
    let env = env_with_far_members();
    let error = env.teamctl(["kill", "ann", "bob", "eve"]).expect_failure(64);
    assert!(error.contains("bob runs here, ann and eve run on devbox"), "{error}");
    assert!(error.contains("teamctl kill bob; teamctl kill ann eve"), "{error}");
    assert!(!env.path("out/command").exists());
    let error = env.teamctl_with(&["capture", "ann"], &[("TEAMD_HOST_OF_CALLER", "x")]).expect_failure(64);
    assert!(error.contains("this one runs on x for another machine"), "{error}");
    env.write_file(HOSTS_FILE, "");
    let error = env.teamctl(["capture", "ann"]).expect_failure(64);
    assert!(error.contains("cannot find the host devbox"), "{error}");
    env.shut_down();
}

#[test]
fn status_shows_the_hosts_of_members() {
    let env = env_with_far_members();
    let status = env.teamctl(["status"]).expect_success();
    let row = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{status}"));
        line.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("NAME"), "NAME HOST STATE ACTIVITY");
    assert_eq!(row("ann"), "ann devbox running active");
    assert_eq!(row("eve"), "eve devbox running idle");
    assert_eq!(row("bob"), "bob - unsupervised active");
    let team = env.json(["status"])["teams"][0].clone();
    let host = |name: &str| {
        let members = team["members"].as_array().unwrap();
        members.iter().find(|member| member["name"] == name).unwrap()["host"].clone()
    };
    assert_eq!((host("ann"), host("bob")), (json!("devbox"), Value::Null));
    let doctor = env.teamctl(["doctor"]);
    assert!(doctor.stdout.contains("bob@survey") && !doctor.stdout.contains("ann@survey"), "{doctor:?}");
    env.shut_down();
}

/// The file `mirrored-TEAM` says that the team's home is another machine.
#[test]
fn mirror_does_not_act_on_members_of_other_hosts() {
    let env = env_with_far_members();
    std::fs::File::create(state_directory(&env, "mirrored-survey")).unwrap();
    // In a mirror, the members of the home have this host.
    let mut config = env.read_config();
    let members = config["members"].as_array_mut().unwrap();
    members.iter_mut().filter(|member| member["name"] == "bob").for_each(|bob| bob["host"] = json!("home"));
    env.write_file("root/teams/survey/config.json", config.to_string());
    let error = env.teamctl(["capture", "ann"]).expect_failure(67);
    assert!(error.contains("cannot reach ann from here: it runs on devbox"), "{error}");
    let error = env.teamctl(["interrupt", "bob"]).expect_failure(67);
    assert!(error.contains("cannot reach bob from here: it runs at the home of survey"), "{error}");
    let why = env.teamctl(["why", "bob"]).expect_success();
    assert!(why.contains("bob runs on the machine that is the home of survey"), "{why}");
    let error = env.teamctl(["spawn", "cat", "--host", "devbox", "--", "cat"]).expect_failure(76);
    assert!(error.contains("its home is another machine"), "{error}");
    assert!(env.teamctl(["status"]).expect_success().contains("bob        home    running"));
    assert!(!env.path("out/command").exists());
    env.shut_down();
}

#[test]
fn spawn_on_a_host_checks_its_options_first() {
    let env = env_with_far_members();
    for (options, code, text) in [
        (&["zed", "--host", "devbx"][..], 64, "did you mean devbox?"),
        (&["zed", "--host", "devbox", "--backend", "iterm2"], 64, "cannot use --backend iterm2 with --host"),
        (&["zed", "--host", "devbox", "--here"], 64, "unexpected argument '--here'"),
        (&["z d", "--host", "devbox"], 64, "a name that fits: z-d"),
        (&["Ann", "--host", "devbox"], 73, "survey has a member of that name"),
        (&["zed", "--host", "odd"], 78, "would change the root \"/a b\""),
        (&["zed", "--host", "devbox", "-t", "none"], 67, "cannot find the team none"),
    ] {
        let output = env.teamctl_with(&[&["spawn"], options].concat(), &[]);
        assert!(output.code == code && output.stderr.contains(text), "{output:?}");
    }
    let error = env.teamctl_with(&["spawn", "zed", "--host", "devbox"], &[("TEAMD_MEMBER", "ann")]);
    assert!(error.expect_failure(77).contains("cannot run"));
    let output = env.teamctl(["task", "list", "--host", "devbox"]);
    let tip = "--host comes before the command: teamctl --host NAME task list";
    assert!(output.code == 64 && output.stderr.contains(tip), "{output:?}");
    assert!(!env.path("out/command").exists());
    env.shut_down();
}

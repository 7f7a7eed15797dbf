//! Whose environment an agent has, where it is kept meanwhile, and who sees what of it.

use harness::TestEnv;
use std::os::unix::fs::PermissionsExt;

/// What the caller of `spawn` has, beside what the house has.
const CALLER: [(&str, &str); 12] = [
    ("CALLERS_OWN", "yes"),
    ("SOME_TOKEN", "do-not-show"),
    ("PROXY", "http://me:do-not-show@proxy"),
    ("CLAUDECODE", "1"),
    ("CODEX_SANDBOX", "seatbelt"),
    ("TMUX_PANE", "%99"),
    ("LD_LIBRARY_PATH", "/nowhere"),
    ("BASH_ENV", "/nowhere"),
    ("GIT_DIR", "/nowhere"),
    ("GIT_OBJECT_DIRECTORY", "/nowhere"),
    ("PERL5OPT", "-Mnowhere"),
    ("RUBYOPT", "-rnowhere"),
];

fn read_dump(house: &TestEnv) -> String {
    house.wait_until("the dump", || {
        Some(house.read("out/dump")).filter(|text| text.contains("env TEAMD_TOKEN"))
    })
}

fn environment_files(house: &TestEnv) -> Vec<std::path::PathBuf> {
    let of = |path: &std::path::Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut directories = vec![house.path("state")];
    while let Some(directory) = directories.pop() {
        if directory.ends_with("environments") {
            return of(&directory);
        }
        directories.extend(of(&directory).into_iter().filter(|path| path.is_dir()));
    }
    Vec::new()
}

#[test]
fn agent_gets_the_callers_filtered_environment() {
    let house = TestEnv::with_team();
    let file = house.path("out/dump").display().to_string();
    let agent = house.scripted_agent_path();
    let script = format!("'{agent}' dump '{file}'; exec sleep 3600");
    house
        .teamctl_with(&["spawn", "ann", "--env=GIT_DIR=/mine", "--", "sh", "-c", &script], &CALLER)
        .expect_success();
    let dump = read_dump(&house);
    for there in ["CALLERS_OWN=yes", "SOME_TOKEN=do-not-show", "GIT_DIR=/mine"] {
        assert!(dump.contains(&format!("env {there}\n")), "{there}: {dump}");
    }
    let gone = [
        "CLAUDECODE=",
        "CODEX_SANDBOX=",
        "TMUX_PANE=%99",
        "LD_LIBRARY_PATH=",
        "BASH_ENV=",
        "GIT_OBJECT_DIRECTORY=",
        "PERL5OPT=",
        "RUBYOPT=",
    ];
    for gone in gone {
        assert!(!dump.contains(&format!("env {gone}")), "{gone}: {dump}");
    }
    let files = environment_files(&house);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let shown = house.teamctl(["status", "ann", "--verbose"]).expect_success();
    assert!(
        shown.contains("    CALLERS_OWN=yes\n") && shown.contains("    SOME_TOKEN=(hidden)\n"),
        "{shown}"
    );
    assert!(!shown.contains("do-not-show"), "{shown}");
    let environment = house.json(["status", "ann"])["teams"][0]["members"][0]["environment"].clone();
    assert_eq!(
        (environment["PROXY"].as_str(), environment["GIT_DIR"].as_str()),
        (Some("(hidden)"), Some("/mine"))
    );
    assert!(house.json(["status"])["teams"][0]["members"][0]["environment"].is_null());
    house.teamctl(["kill", "ann"]).expect_success();
    house.wait_until("its environment is removed", || environment_files(&house).is_empty().then_some(()));
    house.shut_down();
}

#[test]
fn profile_can_keep_filtered_variables() {
    let house = TestEnv::with_team();
    let file = house.path("out/dump").display().to_string();
    let agents = house.path("home/.config/teamd/profiles");
    std::fs::create_dir_all(&agents).unwrap();
    house.write_script(
        "home/.config/teamd/profiles/own.toml",
        &format!("delivery = \"pull\"\nprogram = \"scripted-agent\"\nargs = [\"dump\", \"{file}\"]\nkeep_env = [\"LD_LIBRARY_PATH\"]\n"),
    );
    house.teamctl_with(&["spawn", "ann", "--profile", "own"], &CALLER).expect_success();
    let dump = read_dump(&house);
    assert!(
        dump.contains("env LD_LIBRARY_PATH=/nowhere\n") && dump.contains("env TEAMD_PROFILE=own\n"),
        "{dump}"
    );
    house.shut_down();
}

#[test]
fn respawn_keeps_the_environment_and_the_roster_has_none() {
    let house = TestEnv::with_team();
    let file = house.path("out/dump").display().to_string();
    let script = format!("rm -f '{file}'; '{}' dump '{file}'; exec sleep 3600", house.scripted_agent_path());
    let spawn = ["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", &script];
    house.teamctl_with(&spawn, &CALLER).expect_success();
    read_dump(&house);
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    let pid = house.wait_until("ann is adopted", || {
        house.member("ann").filter(|ann| ann["lifecycle"] == "running").and_then(|ann| ann["pid"].as_u64())
    });
    std::fs::remove_file(house.path("out/dump")).unwrap();
    house.kill_process(u32::try_from(pid).unwrap());
    assert!(read_dump(&house).contains("env SOME_TOKEN=do-not-show\n"));
    let roster = environment_files(&house)[0].parent().unwrap().parent().unwrap().join("roster.json");
    assert!(!std::fs::read_to_string(roster).unwrap().contains("do-not-show"));
    house.shut_down();
}

#[test]
fn locale_and_time_zone_have_no_effect() {
    let greeting = "grüße ✓ 日本";
    for (name, value) in [
        ("LC_ALL", "C"),
        ("LC_ALL", "C.UTF-8"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LC_ALL", "nowhere"),
        ("TZ", "Pacific/Kiritimati"),
        ("TZ", ":/nowhere"),
    ] {
        let mut house = TestEnv::new();
        house.variables.push((name.to_owned(), value.to_owned()));
        house.start_daemon();
        house.teamctl(["create", "survey"]).expect_success();
        house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
        house.teamctl(["send", "ann", greeting]).expect_success();
        assert_eq!(house.inbox("survey", "ann")[0]["text"], greeting, "{name}={value}");
        // Who has asked is answered before it is in the log.
        house.wait_until(&format!("{name}={value}: it is in the log"), || {
            let events = house.teamctl(["--json", "events", "--since", "5m"]).expect_success();
            events.contains("member_spawned").then_some(())
        });
        house.shut_down();
    }
}

#[test]
fn non_utf8_arguments_are_rejected() {
    use std::os::unix::ffi::OsStrExt;
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    for words in
        [&["send", "ann"][..], &["spawn", "bob", "--profile"], &["spawn", "bob", "--"], &["task", "create"]]
    {
        let mut command = house.command(harness::programs().join("teamctl"));
        let ran = command.args(words).arg(std::ffi::OsStr::from_bytes(b"\xff\xfe")).output().unwrap();
        assert_eq!(ran.status.code(), Some(64), "{words:?}: {ran:?}");
    }
    assert!(house.inbox("survey", "ann").is_empty());
    house.shut_down();
}

#[test]
fn new_tmux_server_has_no_agent_variables() {
    let house = TestEnv::new();
    let tmux = format!("{},0,0", house.tmux_socket().display());
    let own = ["TEAMD_TEAM", "TEAMD_MEMBER", "TEAMD_TOKEN", "TEAMD_SPAWN", "TEAMD_WAKE_FD"];
    let mut variables = own.map(|name| (name, "ann")).to_vec();
    variables.push(("TMUX", &tmux));
    // Who it says it is that daemon does not know, and runs all the same.
    for how in ["is ready", "runs already"] {
        let up = house.teamctl_with(&["up"], &variables);
        assert!(up.code == 0 && up.stdout.contains(how), "{up:#?}");
    }
    assert_eq!(house.teamctl_with(&["status"], &variables).code, 77);
    let everybodys = house.tmux(["show-environment", "-g"]);
    assert!(everybodys.contains("HOME="), "{everybodys}");
    for name in own {
        assert!(!everybodys.contains(name), "{everybodys}");
    }
    house.shut_down();
}

/// What a daemon runs in is everybody's by then, whoever has started it.
#[test]
fn daemon_started_by_a_headless_agent_survives_it() {
    let house = TestEnv::new();
    let mut first = house.command(harness::programs().join("teamd"));
    let mut first =
        first.arg("-S").arg(house.tmux_socket()).stdout(std::process::Stdio::null()).spawn().unwrap();
    house.wait_until("the daemon answers", || (house.teamctl(["status"]).code == 0).then_some(()));
    house.teamctl(["create", "survey"]).expect_success();
    let gate = house.path("out/gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // A child in the background that would stay, and is no daemon.
    let script =
        format!("read go < {}; teamctl up > {}/up; sleep 778 &", gate.display(), house.path("out").display());
    house.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).expect_success();
    first.kill().unwrap();
    first.wait().unwrap();
    drop(std::fs::File::options().write(true).open(&gate).unwrap());
    house.wait_until("it has started the next one", || {
        house.read("out/up").contains("is ready").then_some(())
    });
    house.wait_until("it has ended", || house.member("ann").is_none().then_some(()));
    house.teamctl(["create", "next"]).expect_success();
    // That its own child is not left behind is seen at the end.
    house.shut_down();
}

/// The caller of `up` may hold a lock, as a cron job under `flock` does, and its directory may be removed.
#[test]
fn up_keeps_neither_directory_nor_descriptors_of_its_caller() {
    let house = TestEnv::new();
    let (tree, lock) = (house.path("tree"), house.path("lock"));
    std::fs::create_dir(&tree).unwrap();
    let script = format!("exec 9>{} && flock 9 && cd {} && teamctl up", lock.display(), tree.display());
    let mut shell = house.command("sh");
    shell.env("TMUX", format!("{},0,0", house.tmux_socket().display()));
    let up = shell.arg("-c").arg(script).output().unwrap();
    assert!(up.status.success(), "{up:?}");
    house.teamctl(["create", "survey"]).expect_success();
    for backend in ["tmux", "in-process"] {
        let cwd = house.path("home").display().to_string();
        house
            .teamctl(["spawn", "ann", "--backend", backend, "--cwd", &cwd, "--", "sleep", "3600"])
            .expect_success();
        std::fs::File::open(&lock).unwrap().try_lock().expect("nothing holds the lock of the caller");
        for pid in harness::TaggedProcesses::with_tag(&house.process_tag()).pids() {
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            assert!(!cwd.starts_with(&tree), "{pid} stands in {}", cwd.display());
        }
        house.teamctl(["kill", "ann"]).expect_success();
    }
    house.shut_down();
}

//! Environment variables: which variables an agent, a respawned agent, the tmux server and the
//! daemon get, where they are stored, and which values `status` shows.

use harness::TestEnv;
use std::os::unix::fs::PermissionsExt;

/// Additional variables of the caller of `spawn`.
const CALLER_VARIABLES: [(&str, &str); 12] = [
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

/// Waits until the agent has written its state to `out/dump`, and returns it.
fn read_dump(env: &TestEnv) -> String {
    env.wait_until("the dump has the environment", || {
        Some(env.read("out/dump")).filter(|text| text.contains("env TEAMD_TOKEN"))
    })
}

/// The files in which the daemon stores the environments of agents.
fn environment_files(env: &TestEnv) -> Vec<std::path::PathBuf> {
    let entries = |path: &std::path::Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut directories = vec![env.path("state")];
    while let Some(directory) = directories.pop() {
        if directory.ends_with("environments") {
            return entries(&directory);
        }
        directories.extend(entries(&directory).into_iter().filter(|path| path.is_dir()));
    }
    Vec::new()
}

#[test]
fn agent_gets_the_callers_filtered_environment() {
    let env = TestEnv::with_team();
    let file = env.path("out/dump").display().to_string();
    let agent = env.scripted_agent_path();
    let script = format!("'{agent}' dump '{file}'; exec sleep 3600");
    env.teamctl_with(&["spawn", "ann", "--env=GIT_DIR=/mine", "--", "sh", "-c", &script], &CALLER_VARIABLES)
        .expect_success();
    let dump = read_dump(&env);
    for variable in ["CALLERS_OWN=yes", "SOME_TOKEN=do-not-show", "GIT_DIR=/mine"] {
        assert!(dump.contains(&format!("env {variable}\n")), "{variable}: {dump}");
    }
    let removed_names = [
        "CLAUDECODE=",
        "CODEX_SANDBOX=",
        "TMUX_PANE=%99",
        "LD_LIBRARY_PATH=",
        "BASH_ENV=",
        "GIT_OBJECT_DIRECTORY=",
        "PERL5OPT=",
        "RUBYOPT=",
    ];
    for name in removed_names {
        assert!(!dump.contains(&format!("env {name}")), "{name}: {dump}");
    }
    let files = environment_files(&env);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let status = env.teamctl(["status", "ann", "--verbose"]).expect_success();
    assert!(
        status.contains("    CALLERS_OWN=yes\n") && status.contains("    SOME_TOKEN=(hidden)\n"),
        "{status}"
    );
    assert!(!status.contains("do-not-show"), "{status}");
    let environment = env.json(["status", "ann"])["teams"][0]["members"][0]["environment"].clone();
    assert_eq!(
        (environment["PROXY"].as_str(), environment["GIT_DIR"].as_str()),
        (Some("(hidden)"), Some("/mine"))
    );
    assert!(env.json(["status"])["teams"][0]["members"][0]["environment"].is_null());
    env.teamctl(["kill", "ann"]).expect_success();
    env.wait_until("the stored environment is removed", || environment_files(&env).is_empty().then_some(()));
    env.shut_down();
}

#[test]
fn profile_can_keep_filtered_variables() {
    let env = TestEnv::with_team();
    let file = env.path("out/dump").display().to_string();
    let directory = env.path("home/.config/teamd/profiles");
    std::fs::create_dir_all(&directory).unwrap();
    env.write_script(
        "home/.config/teamd/profiles/own.toml",
        &format!("delivery = \"pull\"\nprogram = \"scripted-agent\"\nargs = [\"dump\", \"{file}\"]\nkeep_env = [\"LD_LIBRARY_PATH\"]\n"),
    );
    env.teamctl_with(&["spawn", "ann", "--profile", "own"], &CALLER_VARIABLES).expect_success();
    let dump = read_dump(&env);
    assert!(
        dump.contains("env LD_LIBRARY_PATH=/nowhere\n") && dump.contains("env TEAMD_PROFILE=own\n"),
        "{dump}"
    );
    env.shut_down();
}

#[test]
fn respawn_keeps_the_environment_and_the_roster_has_none() {
    let env = TestEnv::with_team();
    let file = env.path("out/dump").display().to_string();
    let script = format!("rm -f '{file}'; '{}' dump '{file}'; exec sleep 3600", env.scripted_agent_path());
    let spawn = ["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", &script];
    env.teamctl_with(&spawn, &CALLER_VARIABLES).expect_success();
    read_dump(&env);
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let pid = env.wait_until("ann is adopted", || {
        env.member("ann").filter(|ann| ann["lifecycle"] == "running").and_then(|ann| ann["pid"].as_u64())
    });
    std::fs::remove_file(env.path("out/dump")).unwrap();
    env.kill_process(u32::try_from(pid).unwrap());
    assert!(read_dump(&env).contains("env SOME_TOKEN=do-not-show\n"));
    let roster = environment_files(&env)[0].parent().unwrap().parent().unwrap().join("roster.json");
    assert!(!std::fs::read_to_string(roster).unwrap().contains("do-not-show"));
    env.shut_down();
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
        let mut env = TestEnv::new();
        env.variables.push((name.to_owned(), value.to_owned()));
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
        env.teamctl(["send", "ann", greeting]).expect_success();
        assert_eq!(env.inbox("survey", "ann")[0]["text"], greeting, "{name}={value}");
        // The reply of `spawn` comes before the event is in the log.
        env.wait_until(&format!("{name}={value}: the event log has the spawn"), || {
            let events = env.teamctl(["--json", "events", "--since", "5m"]).expect_success();
            events.contains("member_spawned").then_some(())
        });
        env.shut_down();
    }
}

#[test]
fn non_utf8_arguments_are_rejected() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    for args in
        [&["send", "ann"][..], &["spawn", "bob", "--profile"], &["spawn", "bob", "--"], &["task", "create"]]
    {
        let mut command = env.command(harness::programs().join("teamctl"));
        let output = command.args(args).arg(std::ffi::OsStr::from_bytes(b"\xff\xfe")).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
    }
    assert!(env.inbox("survey", "ann").is_empty());
    env.shut_down();
}

#[test]
fn new_tmux_server_has_no_agent_variables() {
    let env = TestEnv::new();
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let names = ["TEAMD_TEAM", "TEAMD_MEMBER", "TEAMD_TOKEN", "TEAMD_SPAWN", "TEAMD_WAKE_FD"];
    let mut variables = names.map(|name| (name, "ann")).to_vec();
    variables.push(("TMUX", &tmux));
    // The daemon does not know the member of these variables, but `up` succeeds.
    for message in ["is ready", "runs already"] {
        let up = env.teamctl_with(&["up"], &variables);
        assert!(up.code == 0 && up.stdout.contains(message), "{up:#?}");
    }
    assert_eq!(env.teamctl_with(&["status"], &variables).code, 77);
    let environment = env.tmux(["show-environment", "-g"]);
    assert!(environment.contains("HOME="), "{environment}");
    for name in names {
        assert!(!environment.contains(name), "{environment}");
    }
    env.shut_down();
}

/// An agent without a pane can start the next daemon. That daemon is no process of the agent: it is
/// not ended with the agent.
#[test]
fn daemon_started_by_a_headless_agent_survives_it() {
    let env = TestEnv::new();
    let mut first_daemon = env.command(harness::programs().join("teamd"));
    let mut first_daemon =
        first_daemon.arg("-S").arg(env.tmux_socket()).stdout(std::process::Stdio::null()).spawn().unwrap();
    env.wait_until("the daemon answers", || (env.teamctl(["status"]).code == 0).then_some(()));
    env.teamctl(["create", "survey"]).expect_success();
    let gate = env.path("out/gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // The background process of the agent is no daemon, and must end with the agent.
    let script =
        format!("read go < {}; teamctl up > {}/up; sleep 778 &", gate.display(), env.path("out").display());
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).expect_success();
    first_daemon.kill().unwrap();
    first_daemon.wait().unwrap();
    drop(std::fs::File::options().write(true).open(&gate).unwrap());
    env.wait_until("the agent has started a daemon", || {
        env.read("out/up").contains("is ready").then_some(())
    });
    env.wait_until("the agent has ended", || env.member("ann").is_none().then_some(()));
    env.teamctl(["create", "next"]).expect_success();
    // `shut_down` checks that the background process has ended.
    env.shut_down();
}

/// The caller of `up` may hold a lock, as a cron job under `flock` does, and its directory may be
/// removed.
#[test]
fn up_keeps_neither_directory_nor_descriptors_of_its_caller() {
    let env = TestEnv::new();
    let (tree, lock) = (env.path("tree"), env.path("lock"));
    std::fs::create_dir(&tree).unwrap();
    let script = format!("exec 9>{} && flock 9 && cd {} && teamctl up", lock.display(), tree.display());
    let mut shell = env.command("sh");
    shell.env("TMUX", format!("{},0,0", env.tmux_socket().display()));
    let up = shell.arg("-c").arg(script).output().unwrap();
    assert!(up.status.success(), "{up:?}");
    env.teamctl(["create", "survey"]).expect_success();
    for backend in ["tmux", "in-process"] {
        let cwd = env.path("home").display().to_string();
        env.teamctl(["spawn", "ann", "--backend", backend, "--cwd", &cwd, "--", "sleep", "3600"])
            .expect_success();
        std::fs::File::open(&lock).unwrap().try_lock().expect("no process holds the lock of the caller");
        for pid in harness::TaggedProcesses::with_tag(&env.process_tag()).pids() {
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            assert!(!cwd.starts_with(&tree), "{pid} has the working directory {}", cwd.display());
        }
        env.teamctl(["kill", "ann"]).expect_success();
    }
    env.shut_down();
}

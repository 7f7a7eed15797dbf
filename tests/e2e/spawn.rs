//! Checks `teamctl spawn`: the member's entry, pane, environment and arguments, names, concurrent
//! spawns and failed spawns.

use harness::TestEnv;

#[test]
fn worker_runs_in_its_pane_and_is_a_member() {
    let env = TestEnv::with_team();
    let member = env.json(["spawn", "ann", "--profile", "worker", "--prompt", "hello"]);
    assert_eq!(member["agent_id"], "ann@survey");
    assert_eq!(member["color"], "blue");
    let pane = member["pane"].as_str().unwrap();
    let pane_info =
        env.tmux(["display-message", "-p", "-t", pane, "#{window_name} #{@teamd_name} #{pane_pid}"]);
    assert!(pane_info.starts_with("survey ann "), "{pane_info}");
    let config: serde_json::Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"][1]["tmuxPaneId"], pane);
    assert_eq!(config["members"][1]["prompt"], "hello");
    assert_eq!(env.inbox("survey", "ann")[0]["text"], "hello");
    assert_eq!(env.inbox("survey", "ann")[0].get("summary"), None);
    let tracking: serde_json::Value = serde_json::from_str(&env.read("root/tasks/survey/1.json")).unwrap();
    assert_eq!(tracking["metadata"]["_internal"], true);
    assert_eq!(tracking["status"], "in_progress");
    assert_eq!(tracking["subject"], "ann");
    env.shut_down();
}

/// Waits for the first line of `file`, to which the scripted agent writes its arguments as JSON.
fn read_dump(env: &TestEnv, file: &str) -> serde_json::Value {
    env.wait_until(&format!("the agent has written {file}"), || {
        serde_json::from_str(env.read(file).lines().next()?).ok()
    })
}

#[test]
fn unique_name_is_used_everywhere() {
    let env = TestEnv::with_team();
    let out = env.path("out").display().to_string();
    env.write_profile(
        "whole",
        &format!(
            "delivery = 'pull'\nprogram = 'scripted-agent'\nargs = ['argv', '{out}/whole', '{{name}}', '{{options}}', '{{prompt}}']\n\
             mcp = ['m={{id_json}}']\ninstructions = ['{{instructions}}']\nenv = {{ VALUE = '{{id}}' }}\n"
        ),
    );
    let turn = "delivery = 'turn'\nprogram = 'scripted-agent'\ninstructions = 'prepend'\n";
    env.write_profile("turn", &format!("{turn}args = ['argv', '{out}/turn', '{{name_sh}}']\n"));
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
    }
    let prompt = "{name} and {id} as they stand";
    let member = env.json(["spawn", "ann", "--unique", "--profile", "whole", "--prompt", prompt]);
    assert_eq!(member["name"], "ann-2");
    let whole = read_dump(&env, "out/whole");
    assert_eq!((&whole["argv"][0], &whole["argv"][1]), (&"ann-2".into(), &"m=\"ann-2@survey\"".into()));
    assert!(whole["argv"][2].as_str().unwrap().contains("You are `ann-2`, a teammate"), "{whole}");
    assert_eq!((&whole["argv"][3], &whole["value"]), (&prompt.into(), &"ann-2@survey".into()));
    env.teamctl(["spawn", "bob", "--unique", "--profile", "turn", "--prompt", prompt]).expect_success();
    let turn = read_dump(&env, "out/turn");
    assert_eq!(turn["argv"][0], "bob-2");
    let text = turn["stdin"].as_str().unwrap();
    assert!(text.contains("You are `bob-2`, a teammate") && text.ends_with(prompt), "{text}");
    env.shut_down();
}

#[test]
fn unverified_profile_is_reported() {
    let env = TestEnv::with_team();
    let profile = "delivery = 'pull'\nprogram = 'sleep'\nargs = ['3600']\n";
    env.write_profile("written", &format!("{profile}verified = false\n"));
    env.write_profile("tried", profile);
    let stderr_of = |args: [&str; 5]| env.teamctl(args).stderr;
    let warning = stderr_of(["spawn", "ann", "--profile", "written", "--json"]);
    assert!(warning.contains("warning: the profile written is written from documentation"), "{warning}");
    assert_eq!(stderr_of(["spawn", "bob", "--profile", "written", "-q"]), "");
    assert_eq!(stderr_of(["spawn", "cat", "--profile", "tried", "--json"]), "");
    env.shut_down();
}

#[test]
fn fifty_agents_spawn_survive_the_daemon_and_end() {
    if harness::skips_without(harness::Facility::FastProcessTable) {
        return;
    }
    let env = TestEnv::with_team();
    let spawns: Vec<_> = (0..50)
        .map(|n| env.start_teamctl(["spawn", &format!("a{n}"), "--json", "--", "sleep", "3600"]))
        .collect();
    for child in spawns {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(count_running(&env), 50);
    let config: serde_json::Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"].as_array().unwrap().len(), 51);
    let colors: Vec<&str> =
        config["members"].as_array().unwrap()[1..].iter().map(|m| m["color"].as_str().unwrap()).collect();
    assert_eq!(&colors[..9], ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red", "blue"]);
    // The daemon lays out the windows after it has replied to the spawns.
    env.wait_until("all panes have at least 60 columns and 11 lines", || {
        let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_spawn} #{pane_width} #{pane_height}"]);
        let sizes = panes.lines().filter(|line| !line.starts_with(' ')).map(|line| {
            let size: Vec<u32> = line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
            (size[0], size[1])
        });
        sizes.into_iter().all(|(width, height)| width >= 60 && height >= 11).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.wait_until("all agents are adopted", || (count_running(&env) == 50).then_some(()));
    env.teamctl(["shutdown", "--all", "--force", "--grace", "0s"]).expect_success();
    assert_eq!(count_running(&env), 0);
    env.shut_down();
}

/// The number of running members.
fn count_running(env: &TestEnv) -> usize {
    let status = env.json(["status"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    members.iter().filter(|member| member["lifecycle"] == "running").count()
}

#[test]
fn each_agent_gets_a_window_at_80_by_24() {
    let env = TestEnv::new();
    let teamd = harness::programs().join("teamd").display().to_string();
    let root = env.root().display().to_string();
    env.tmux(["new-session", "-d", "-s", "small", "-x", "80", "-y", "24", "--", &teamd, "--root", &root]);
    env.wait_for_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    for name in ["ann", "bob", "cat"] {
        env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
    }
    let panes = env.tmux(["list-panes", "-a", "-F", "#{window_id} #{@teamd_name}"]);
    let windows: Vec<&str> = panes
        .lines()
        .filter_map(|line| line.split_once(' ').filter(|(_, name)| !name.is_empty()))
        .map(|(window, _)| window)
        .collect();
    assert_eq!(windows.len(), 3, "{panes}");
    assert_ne!(windows[0], windows[1], "{panes}");
    env.shut_down();
}

#[test]
fn agent_has_a_clean_process_state() {
    let env = TestEnv::with_team();
    let file = env.path("out/dump").display().to_string();
    std::fs::create_dir(env.path("out/work place")).unwrap();
    let cwd = env.path("out/work place").display().to_string();
    let secret = "--env=SECRET=a b;c$(touch x)#{y}";
    env.teamctl(["spawn", "ann", "--cwd", &cwd, secret, "--", &env.scripted_agent_path(), "dump", &file])
        .expect_success();
    let dump = env.wait_until("the agent has written its environment", || {
        Some(env.read("out/dump")).filter(|text| text.contains("env TEAMD_TOKEN"))
    });
    assert!(dump.contains(&format!("cwd {cwd}\n")), "{dump}");
    assert!(dump.contains("env SECRET=a b;c$(touch x)#{y}\n"), "{dump}");
    assert!(dump.contains("env TEAMD_MEMBER=ann\n") && dump.contains("env TEAMD_TEAM=survey\n"), "{dump}");
    assert!(dump.contains("env TMUX_PANE=%"), "{dump}");
    let descriptors: Vec<&str> = dump.lines().filter(|line| line.starts_with("fd ")).collect();
    let sockets = descriptors.iter().filter(|line| line.contains("socket:")).count();
    assert_eq!(sockets, 1, "the wake socket is the only socket: {descriptors:?}");
    let others = descriptors.iter().filter(|line| !line.contains("/dev/pts/") && !line.contains("socket:"));
    assert!(others.clone().count() <= 1, "{descriptors:?}");
    assert!(dump.contains("env TEAMD_WAKE_FD=3\n"), "sh can only redirect descriptors of one digit: {dump}");
    // cp handles no signals, so its status shows the inherited state.
    let signals = env.path("out/signals").display().to_string();
    env.teamctl(["spawn", "bob", "--", "cp", "/proc/self/status", &signals]).expect_success();
    let status = env.wait_until("cp has written its status", || {
        Some(env.read("out/signals")).filter(|text| text.contains("SigCgt"))
    });
    for set in ["SigBlk:", "SigIgn:", "SigCgt:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        let set_bits = u64::from_str_radix(line.trim(), 16).unwrap();
        // The mask excludes the signals 32 and 33, which the C library uses.
        assert_eq!(set_bits & 0x7fff_ffff, 0, "{set} {line}");
    }
    env.shut_down();
}

#[test]
fn failed_spawn_leaves_nothing() {
    let env = TestEnv::with_team();
    let program = env.path("out/plain").display().to_string();
    std::fs::File::create(env.path("out/plain")).unwrap();
    for command in ["/no/such/program", "no-such-program", program.as_str()] {
        let error = env.teamctl(["spawn", "ann", "--", command]).expect_failure(72);
        assert!(error.contains(command), "{error}");
    }
    let error = env.teamctl(["spawn", "ann", "--cwd", "/no/such/place", "--", "true"]).expect_failure(72);
    assert!(error.contains("/no/such/place"), "{error}");
    // The file is executable, but its interpreter is missing. Only the shim detects that, when it
    // starts the file.
    let program = env.write_script("out/broken", "#!/no/such/interpreter\n").display().to_string();
    let error = env.teamctl(["spawn", "ann", "--", &program, "x"]).expect_failure(72);
    assert!(error.contains(&program), "{error}");
    env.wait_until("ann is not in the config", || {
        let config = env.read("root/teams/survey/config.json");
        (!config.contains("ann@survey")).then_some(())
    });
    assert_eq!(env.member("ann"), None);
    env.shut_down();
}

#[test]
fn failed_spawns_do_not_affect_concurrent_ones() {
    let env = TestEnv::with_team();
    let broken = env.write_script("out/broken", "#!/no/such/interpreter\n").display().to_string();
    let spawn = |n: usize| {
        let (name, program) = (format!("a{n}"), if n.is_multiple_of(2) { "sleep" } else { &broken });
        env.start_teamctl(["spawn", &name, "--", program, "3600"])
    };
    let spawns: Vec<_> = (0..16).map(spawn).collect();
    for (n, child) in spawns.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(if n.is_multiple_of(2) { 0 } else { 72 }), "a{n}: {output:?}");
    }
    let expected = ["team-lead", "a0", "a2", "a4", "a6", "a8", "a10", "a12", "a14"].map(str::to_owned);
    let expected = std::collections::BTreeSet::from(expected);
    env.wait_until("the config has only the members that were spawned", || {
        let members = env.read_config()["members"].as_array()?.clone();
        let names = members.iter().filter_map(|member| member["name"].as_str().map(str::to_owned));
        (names.collect::<std::collections::BTreeSet<_>>() == expected).then_some(())
    });
    env.shut_down();
}

#[test]
fn new_window_is_created_after_one_was_closed() {
    let env = TestEnv::with_team();
    for backend in ["tmux", "window"] {
        let spawn = |name: &str| {
            let member = env.json(["spawn", name, "--backend", backend, "--", "sleep", "3600"]);
            member["pane"].as_str().unwrap().to_owned()
        };
        let window_of = |pane: &str| env.tmux(["display-message", "-p", "-t", pane, "#{window_id}"]);
        let closed_window = window_of(&spawn("ann"));
        env.tmux(["kill-window", "-t", &closed_window]);
        env.wait_until("ann has exited", || env.member("ann").is_none().then_some(()));
        let next = spawn("bob");
        assert_ne!(window_of(&next), closed_window);
        env.teamctl(["kill", "bob"]).expect_success();
    }
    env.shut_down();
}

#[test]
fn invalid_names_are_rejected() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["spawn", "Ann", "--", "sleep", "3600"]).expect_failure(73);
    assert_eq!(env.json(["spawn", "ann", "--unique", "--", "sleep", "3600"])["name"], "ann-2");
    assert_eq!(env.json(["spawn", "ann", "--unique", "--", "sleep", "3600"])["name"], "ann-3");
    for name in ["team-lead", "user", "system", "task-list", "a b", "-x", "é", ""] {
        let output = env.teamctl(["spawn", "--", name]);
        assert_eq!(output.code, 64, "{output:?}");
        let output = env.teamctl(["spawn", name, "--", "sleep", "3600"]);
        assert_eq!(output.code, 64, "{output:?}");
    }
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.shut_down();
}

#[test]
fn users_tmux_is_unchanged_under_hostile_configuration() {
    let env = TestEnv::with_tmux_conf(
        "set -g base-index 1\nset -g pane-base-index 1\nset -g remain-on-exit on\nset -g default-command 'echo no'\n\
         set -g destroy-unattached off\nset -g set-titles on\nset -g mouse on\nset -g status off\n\
         set-hook -g after-new-window 'display-message -p hooked'\nset -g automatic-rename on\n",
    );
    let options = || env.tmux(["show-options", "-g"]) + &env.tmux(["show-options", "-gw"]);
    let focus = || {
        env.tmux([
            "list-windows",
            "-t",
            "user",
            "-F",
            "#{window_active} #{window_width} #{window_zoomed_flag} #{pane_id}",
        ])
    };
    let before = (options(), focus());
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--profile", "worker"]).expect_success();
    }
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.teamctl(["kill", "bob"]).expect_success();
    assert_eq!(before, (options(), focus()));
    env.shut_down();
}

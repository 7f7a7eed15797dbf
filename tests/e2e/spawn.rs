//! Agents start: registered first, in panes of the team's own, seeing what they should see.

use harness::TestEnv;

#[test]
fn worker_runs_in_its_pane_and_is_a_member() {
    let env = TestEnv::with_team();
    let spawned = env.json(["spawn", "ann", "--profile", "worker", "--prompt", "hello"]);
    assert_eq!(spawned["agent_id"], "ann@survey");
    assert_eq!(spawned["color"], "blue");
    let pane = spawned["pane"].as_str().unwrap();
    let shown = env.tmux(["display-message", "-p", "-t", pane, "#{window_name} #{@teamd_name} #{pane_pid}"]);
    assert!(shown.starts_with("survey ann "), "{shown}");
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

/// What the agent that writes down its arguments has written.
fn read_dump(env: &TestEnv, file: &str) -> serde_json::Value {
    env.wait_until(file, || serde_json::from_str(env.read(file).lines().next()?).ok())
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
    let spawned = env.json(["spawn", "ann", "--unique", "--profile", "whole", "--prompt", prompt]);
    assert_eq!(spawned["name"], "ann-2");
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
    let sleeps = "delivery = 'pull'\nprogram = 'sleep'\nargs = ['3600']\n";
    env.write_profile("written", &format!("{sleeps}verified = false\n"));
    env.write_profile("tried", sleeps);
    let said = |words: [&str; 5]| env.teamctl(words).stderr;
    let warning = said(["spawn", "ann", "--profile", "written", "--json"]);
    assert!(warning.contains("warning: the profile written is written from documentation"), "{warning}");
    assert_eq!(said(["spawn", "bob", "--profile", "written", "-q"]), "");
    assert_eq!(said(["spawn", "cat", "--profile", "tried", "--json"]), "");
    env.shut_down();
}

#[test]
fn fifty_agents_spawn_survive_the_daemon_and_end() {
    let env = TestEnv::with_team();
    let coming: Vec<_> = (0..50)
        .map(|n| env.start_teamctl(["spawn", &format!("a{n}"), "--json", "--", "sleep", "3600"]))
        .collect();
    for child in coming {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(count_running(&env), 50);
    let config: serde_json::Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).unwrap();
    assert_eq!(config["members"].as_array().unwrap().len(), 51);
    let colors: Vec<&str> =
        config["members"].as_array().unwrap()[1..].iter().map(|m| m["color"].as_str().unwrap()).collect();
    assert_eq!(&colors[..9], ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red", "blue"]);
    // Their windows are laid out behind the last of them.
    env.wait_until("all can be read", || {
        let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_spawn} #{pane_width} #{pane_height}"]);
        let sizes = panes.lines().filter(|line| !line.starts_with(' ')).map(|line| {
            let size: Vec<u32> = line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
            (size[0], size[1])
        });
        sizes.into_iter().all(|(width, height)| width >= 60 && height >= 11).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.wait_until("all are adopted", || (count_running(&env) == 50).then_some(()));
    env.teamctl(["shutdown", "--all", "--force", "--grace", "0s"]).expect_success();
    assert_eq!(count_running(&env), 0);
    env.shut_down();
}

/// Members that run.
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
    let dump = env.wait_until("the dump", || {
        Some(env.read("out/dump")).filter(|text| text.contains("env TEAMD_TOKEN"))
    });
    assert!(dump.contains(&format!("cwd {cwd}\n")), "{dump}");
    assert!(dump.contains("env SECRET=a b;c$(touch x)#{y}\n"), "{dump}");
    assert!(dump.contains("env TEAMD_MEMBER=ann\n") && dump.contains("env TEAMD_TEAM=survey\n"), "{dump}");
    assert!(dump.contains("env TMUX_PANE=%"), "{dump}");
    let descriptors: Vec<&str> = dump.lines().filter(|line| line.starts_with("fd ")).collect();
    let sockets = descriptors.iter().filter(|line| line.contains("socket:")).count();
    assert_eq!(sockets, 1, "the wake line and nothing else of ours: {descriptors:?}");
    let others = descriptors.iter().filter(|line| !line.contains("/dev/pts/") && !line.contains("socket:"));
    assert!(others.clone().count() <= 1, "{descriptors:?}");
    assert!(dump.contains("env TEAMD_WAKE_FD=3\n"), "a shell can read from one digit only: {dump}");
    // By a program that sets no signal of its own.
    let signals = env.path("out/signals").display().to_string();
    env.teamctl(["spawn", "bob", "--", "cp", "/proc/self/status", &signals]).expect_success();
    let status = env
        .wait_until("its signals", || Some(env.read("out/signals")).filter(|text| text.contains("SigCgt")));
    for set in ["SigBlk:", "SigIgn:", "SigCgt:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        let set_bits = u64::from_str_radix(line.trim(), 16).unwrap();
        // 32 and 33 are the C library's own.
        assert_eq!(set_bits & 0x7fff_ffff, 0, "{set} {line}");
    }
    env.shut_down();
}

#[test]
fn failed_spawn_leaves_nothing() {
    let env = TestEnv::with_team();
    let plain = env.path("out/plain").display().to_string();
    std::fs::File::create(env.path("out/plain")).unwrap();
    for command in ["/no/such/program", "no-such-program", plain.as_str()] {
        let said = env.teamctl(["spawn", "ann", "--", command]).expect_failure(72);
        assert!(said.contains(command), "{said}");
    }
    let said = env.teamctl(["spawn", "ann", "--cwd", "/no/such/place", "--", "true"]).expect_failure(72);
    assert!(said.contains("/no/such/place"), "{said}");
    // The file is executable, but its interpreter is missing. Only the shim detects that, when it starts the file.
    let plain = env.write_script("out/broken", "#!/no/such/interpreter\n").display().to_string();
    let said = env.teamctl(["spawn", "ann", "--", &plain, "x"]).expect_failure(72);
    assert!(said.contains(&plain), "{said}");
    env.wait_until("nobody is left", || {
        let config = env.read("root/teams/survey/config.json");
        (!config.contains("ann")).then_some(())
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
    let all: Vec<_> = (0..16).map(spawn).collect();
    for (n, child) in all.into_iter().enumerate() {
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(if n.is_multiple_of(2) { 0 } else { 72 }), "a{n}: {ran:?}");
    }
    let living = ["team-lead", "a0", "a2", "a4", "a6", "a8", "a10", "a12", "a14"].map(str::to_owned);
    let living = std::collections::BTreeSet::from(living);
    env.wait_until("nobody else is on the team", || {
        let members = env.read_config()["members"].as_array()?.clone();
        let names = members.iter().filter_map(|member| member["name"].as_str().map(str::to_owned));
        (names.collect::<std::collections::BTreeSet<_>>() == living).then_some(())
    });
    env.shut_down();
}

#[test]
fn new_window_is_created_after_one_was_closed() {
    let env = TestEnv::with_team();
    for backend in ["tmux", "window"] {
        let spawn = |name: &str| {
            let spawned = env.json(["spawn", name, "--backend", backend, "--", "sleep", "3600"]);
            spawned["pane"].as_str().unwrap().to_owned()
        };
        let window = |pane: &str| env.tmux(["display-message", "-p", "-t", pane, "#{window_id}"]);
        let closed = window(&spawn("ann"));
        env.tmux(["kill-window", "-t", &closed]);
        env.wait_until("she has ended", || env.member("ann").is_none().then_some(()));
        let next = spawn("bob");
        assert_ne!(window(&next), closed);
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
        let ran = env.teamctl(["spawn", "--", name]);
        assert_eq!(ran.code, 64, "{ran:?}");
        let ran = env.teamctl(["spawn", name, "--", "sleep", "3600"]);
        assert_eq!(ran.code, 64, "{ran:?}");
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

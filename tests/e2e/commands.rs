//! Commands without a test file of their own: profiles of the user, policies for task commands,
//! help texts, `status` and `instructions`.

use harness::TestEnv;
use std::io::Write;

/// An environment with a team and the user's profile `own`. The program of the profile writes its
/// arguments and two variables to `out/said`.
fn env_with_profile() -> TestEnv {
    let env = TestEnv::with_team();
    let output_file = env.path("out/said").display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s|' \"$@\" >{output_file}.new\necho \"$WHERE $GONE\" >>{output_file}.new\nmv {output_file}.new {output_file}\nexec sleep 3600\n"
    );
    env.write_script("out/own", &script);
    env.write_profile(
        "own",
        "delivery = \"pull\"\nprogram = \"{cwd}/own\"\nargs = [\"{id}\", \"{options}\", \"{prompt}\"]\n\
         model = [\"-m\", \"{model}\"]\nallow = [\"+{tool}\"]\ndeny = [\"-{tools}\"]\n\
         env = { WHERE = \"{team}\" }\nremove_env = [\"GONE\"]\n[modes]\nacceptEdits = [\"--edits\"]\n",
    );
    env
}

#[test]
fn help_contains_the_callers_options() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    env.teamctl([
        "spawn",
        "ann",
        "-t",
        "survey",
        "--backend",
        "in-process",
        "--",
        "sh",
        "-c",
        "echo hello; sleep 3600",
    ])
    .expect_success();
    let other_root = env.path("second root").display().to_string();
    let help_of = |args: &[&str]| {
        let output = env.teamctl_with(&[args, &["--json"]].concat(), &[]);
        let (stderr, error) = (output.stderr.clone(), output.json()["error"].clone());
        let help = error["help"].as_str().unwrap().to_owned();
        assert!(stderr.contains(&help), "{stderr}");
        help
    };
    // teamctl adds these options to the help. The daemon and the code that reads files do not know
    // the command line.
    assert_eq!(help_of(&["capture", "ann", "-t", "survey"]), "its output: teamctl logs ann -t survey");
    env.wait_until("the log is written", || {
        (env.teamctl(["logs", "ann", "-t", "survey"]).code == 0).then_some(())
    });
    let no_output = "a member that has printed nothing has none; see: teamctl status -t survey";
    assert_eq!(help_of(&["logs", "bob", "-t", "survey"]), no_output);
    let no_team = format!("to make none: teamctl create --root '{other_root}' none");
    assert_eq!(help_of(&["--root", &other_root, "-t", "none", "task", "list"]), no_team);
    let status = env.teamctl(["status", "--root", &other_root]);
    assert!(
        status.stderr.contains(&format!("start it with: teamctl up --root '{other_root}'")),
        "{status:#?}"
    );
    env.shut_down();
}

fn write_config(env: &TestEnv, name: &str, text: &str) {
    env.write_file(&format!("home/.config/teamd/{name}"), text);
}

fn output_path(env: &TestEnv) -> String {
    env.path("out").display().to_string()
}

fn program_output(env: &TestEnv) -> String {
    env.wait_until("the program has written its arguments", || {
        Some(env.read("out/said")).filter(|output| !output.is_empty())
    })
}

#[test]
fn user_profile_starts_without_a_shell() {
    let mut env = env_with_profile();
    env.variables.push(("GONE".to_owned(), "still here".to_owned()));
    let prompt = "$(touch evil) {cwd}\n`x`";
    let reply = env.json([
        "spawn",
        "ann",
        "--profile",
        "own",
        "--cwd",
        &output_path(&env),
        "--prompt",
        prompt,
        "--model",
        "m 1",
        "--mode",
        "acceptEdits",
        "--allow",
        "Edit",
        "--allow",
        "Bash(git log:*)",
        "--deny",
        "x",
        "--deny",
        "y",
    ]);
    assert_eq!(reply["model"], "m 1");
    assert_eq!(
        program_output(&env),
        format!("ann@survey|-m|m 1|--edits|+Edit|+Bash(git log:*)|-x,y|{prompt}|survey \n")
    );
    assert_eq!(env.member("ann").unwrap()["delivery"], "pull");
    env.shut_down();
}

#[test]
fn default_profile_is_used() {
    let env = env_with_profile();
    let error = env.teamctl(["spawn", "ann", "--env", "PATH=/nonexistent"]).expect_failure(64);
    assert!(error.contains("teamctl profiles check"), "{error}");
    write_config(&env, "config.toml", "default_profile = \"own\"\n");
    env.teamctl(["spawn", "ann", "--cwd", &output_path(&env), "--env", "WHERE=there"]).expect_success();
    assert_eq!(program_output(&env), "ann@survey||there \n");
    env.shut_down();
}

#[test]
fn invalid_profile_starts_nothing() {
    let env = env_with_profile();
    env.write_profile("polled", "delivery = \"poll\"\nprogram = \"p\"\n");
    env.write_profile("broken", "delivery = \"turn\"\nprogramm = \"p\"\n");
    env.write_profile("gone", "delivery = \"turn\"\nprogram = \"no-such-program\"\n");
    for (args, code, message) in [
        (&["--profile", "owm"][..], 64, "did you mean own?"),
        (&["--profile", "polled"], 78, "`delivery` must be"),
        (&["--profile", "own", "--mode", "plan"], 64, "its profile has no"),
        (&["--profile", "broken"], 78, "profiles/broken.toml: `programm` is unknown"),
        (&["--profile", "gone"], 72, "no-such-program"),
        (&["--profile", "own", "--mode", "auto"], 64, "it has: acceptEdits"),
        (&["--profile", "worker", "--allow", "Edit"], 64, "--allow"),
        (&["--deny", "Edit", "--", "true"], 64, "--deny"),
        (&["--mode", "acceptEdits", "--", "true"], 64, "--mode"),
        (&["--agent-type", "Explore", "--", "true"], 64, "nothing keeps it from writing"),
        (&["--agent-type", "Plan", "--profile", "worker"], 64, "nothing keeps it from writing"),
        (&["--backend", "screen", "--", "true"], 64, "in-process"),
        (&["--restart", "always", "--", "true"], 64, "on-failure"),
    ] {
        let output = env.teamctl_with(&[&["spawn", "ann"], args].concat(), &[]);
        assert_eq!(output.code, code, "{output:#?}");
        assert!(output.stderr.contains(message), "{message}: {output:#?}");
    }
    assert_eq!(env.member("ann"), None);
    env.shut_down();
}

#[test]
fn policy_allows_commands_of_teammates() {
    let env = TestEnv::with_team();
    let state = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().path();
    let policy = state.join("policy-survey.json");
    std::fs::File::create(policy).unwrap().write_all(br#"{"task_commands":"any"}"#).unwrap();
    let script = "teamctl task create more --metadata '{\"command\": \"true\"}'; echo $? >out/code";
    env.teamctl(["spawn", "ann", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let code = env.wait_until("ann has run the command", || {
        Some(env.read("out/code")).filter(|code| code.ends_with('\n'))
    });
    assert_eq!(code, "0\n");
    env.shut_down();
}

#[test]
fn teammate_cannot_interrupt_and_unknown_team_suggests_the_nearest() {
    let env = TestEnv::with_team();
    let script = "teamctl interrupt bob; echo $? >out/code";
    env.teamctl(["spawn", "ann", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let code = env.wait_until("ann has run the command", || {
        Some(env.read("out/code")).filter(|code| code.ends_with('\n'))
    });
    assert_eq!(code, "77\n");
    let error = env.teamctl(["interrupt", "bob", "-t", "survye"]).expect_failure(67);
    assert!(error.contains("survey"), "{error}");
    env.shut_down();
}

#[test]
fn status_shows_abandoned_and_failed_tasks() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
    }
    let mut ids = Vec::new();
    for (subject, owner) in [("hers", "ann"), ("his", "bob"), ("failed", "bob")] {
        let task = env.json(["task", "create", subject, "--owner", owner]);
        let id = task["task"]["id"].as_str().unwrap().to_owned();
        env.teamctl(["task", "update", &id, "--status", "in_progress"]).expect_success();
        ids.push(id);
    }
    env.teamctl(["task", "update", &ids[2], "--metadata", r#"{"failure": "exit 1\nlast words"}"#])
        .expect_success();
    let team = env.json(["status"])["teams"][0].clone();
    assert_eq!(
        (&team["abandoned_tasks"], team["past_members"].is_array()),
        (&serde_json::json!([]), true),
        "{team:#}"
    );
    env.teamctl(["kill", "ann"]).expect_success();
    let team = env.json(["status"])["teams"][0].clone();
    assert_eq!(
        team["abandoned_tasks"],
        serde_json::json!([{"id": ids[0], "subject": "hers", "owner": "ann"}])
    );
    assert_eq!(team["failed_tasks"][0]["failure"], "exit 1\nlast words");
    let output = env.teamctl(["status"]).expect_success();
    assert!(
        output.contains(&format!("task {0} was left by ann: teamctl task release {0}", ids[0])),
        "{output}"
    );
    assert!(output.contains(&format!("task {} failed (exit 1)\n", ids[2])), "{output}");
    assert!(output.lines().skip(1).all(|line| line.chars().count() <= 80), "{output}");
    let member_output = env.teamctl(["status", "bob"]).expect_success();
    assert!(
        member_output.contains("  pid ")
            && member_output.contains("backend tmux")
            && !member_output.contains("left by"),
        "{member_output}"
    );
    env.teamctl(["create", "other"]).expect_success();
    let release = format!("teamctl task -t survey release {}", ids[0]);
    let output = env.teamctl(["status", "-t", "survey"]).expect_success();
    assert!(output.contains(&format!("task {} was left by ann: {release}\n", ids[0])), "{output}");
    assert!(env.command("sh").args(["-c", &release]).status().unwrap().success(), "{release}");
    assert_eq!(env.json(["status", "-t", "survey"])["teams"][0]["abandoned_tasks"], serde_json::json!([]));
    env.shut_down();
}

#[test]
fn instructions_differ_for_lead_and_teammate() {
    let env = TestEnv::new();
    assert!(env.teamctl(["instructions"]).expect_success().contains("You can lead a team of agents"));
    assert!(!env.root().join("teams").exists() && !env.root().join("tasks").exists());
    env.start_daemon();
    for team in ["one", "two"] {
        env.teamctl(["create", team]).expect_success();
    }
    let text = env.teamctl(["instructions", "--for", "teammate"]).expect_success();
    assert!(
        text.starts_with("You are `a-teammate`, a teammate on a team; its lead is `team-lead`."),
        "{text}"
    );
    let error = env.teamctl(["lead", "My Team"]).expect_failure(64);
    assert!(error.contains("a name that fits: my-team"), "{error}");
    env.teamctl(["lead", "my-team"]).expect_success();
    env.teamctl(["lead", "--release"]).expect_success();
    env.shut_down();
}

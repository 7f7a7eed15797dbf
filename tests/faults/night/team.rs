//! The run file, the programs of the members, and the repository in which they work.

use harness::TestEnv;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command};

/// The members of each kind: turns of a program, queue workers, and an agent that plans.
pub(super) const TURN_MEMBERS: [&str; 5] = ["ann", "bob", "cat", "dan", "eve"];
pub(super) const WORKERS: [&str; 3] = ["wes", "wil", "wim"];
pub(super) const PLANNER: &str = "pat";
/// The members that work on a branch each.
pub(super) const WORKTREE_MEMBERS: [&str; 3] = ["ann", "bob", "cat"];
/// The member without a restart policy: the end of its tmux server suspends it.
pub(super) const UNRESTARTED: &str = "wim";

/// The tasks: key, owner (empty: any member) and blockers. The task `bad` fails until `out/mended` exists. All
/// tasks that are held wait for `b1`, so that only the turn of bob hangs in the evening.
pub(super) const TASKS: [(&str, &str, &[&str]); 20] = [
    ("a1", "ann", &[]),
    ("a2", "ann", &["a1"]),
    ("a3", "ann", &["a2", "b1"]),
    ("b1", "bob", &[]),
    ("b2", "bob", &["b1"]),
    ("b3", "bob", &["b2", "a2"]),
    ("c1", "cat", &["b1"]),
    ("c2", "cat", &["c1"]),
    ("c3", "cat", &["c2"]),
    ("d1", "dan", &[]),
    ("e1", "eve", &[]),
    ("w1", "wes", &["b1"]),
    ("w2", "wes", &["w1"]),
    ("bad", "wil", &[]),
    ("after-bad", "wil", &["bad"]),
    ("m1", "wim", &["b1"]),
    ("plan", "pat", &[]),
    ("q1", "", &[]),
    ("q2", "", &["q1"]),
    ("q3", "", &["q1"]),
];

/// The tasks whose commands or turns block until [`release`].
const HELD_TASKS: [&str; 7] = ["a3", "b1", "c1", "c2", "m1", "w1", "w2"];

/// Works on the task `$1`, and records when it begins and ends. In a worktree it also commits a line.
const WORK_SCRIPT: &str = r#"#!/bin/sh
out=DIR/out
echo "begin $1" >>$out/log
if [ -e $out/hold-$1 ]; then
    echo >>$out/held-$1
    read _ <$out/gate-$1
fi
if [ $1 = bad ] && [ ! -e $out/mended ]; then
    echo 'no such file'
    exit 1
fi
if [ -n "$TEAMD_BRANCH" ]; then
    cat $out/night >>$1.txt
    git add $1.txt && git commit --quiet --message $1 || exit
fi
echo "end $1" >>$out/log
"#;

/// One turn of a member. Its text is on standard input. The program fails at a usage limit, works on
/// tasks, answers a `ball N` with the next number, and records each message.
const TURN_PROGRAM: &str = r#"#!/bin/sh
out=DIR/out
text=$(cat)
if [ -e $out/limit-$TEAMD_MEMBER ]; then
    echo $TEAMD_MEMBER >>$out/limited
    echo 'usage limit reached'
    exit 1
fi
task=$(printf '%s\n' "$text" | sed -n 's/^Task [0-9]* is yours now: do //p')
[ -n "$task" ] && exec DIR/work $task
ball=$(printf '%s\n' "$text" | sed -n 's/^ball //p')
[ -z "$ball" ] || [ -e $out/stop ] || teamctl send $PEER "ball $((ball + 1))" || exit
printf '%s\n' "$text" | sed -n -e "s/^ball /$TEAMD_MEMBER &/p" -e "s/^note /$TEAMD_MEMBER &/p" >>$out/messages
"#;

/// Creates the environment with everything that the run needs, and starts the daemon.
pub(super) fn prepare_environment() -> TestEnv {
    let mut env = TestEnv::new();
    let heard = env.path("out/heard").display().to_string();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    env.variables = vec![variable("ACP_HEARD", &heard), variable("GIT_CONFIG_GLOBAL", "/dev/null")];
    write_programs(&env);
    create_repository(&env);
    for key in HELD_TASKS {
        env.create_gate(&format!("out/gate-{key}"));
        env.write_file(&format!("out/hold-{key}"), "");
    }
    env.write_file("out/night", "first night\n");
    env.write_file("out/limit-ann", "");
    env.write_file("night.toml", run_file(&env));
    env.start_daemon();
    env
}

fn write_programs(env: &TestEnv) {
    let dir = env.path("").display().to_string();
    let dir = dir.trim_end_matches('/');
    for (name, text) in [
        ("work", WORK_SCRIPT),
        ("turn", TURN_PROGRAM),
        ("notice", "#!/bin/sh\nprintf '%s\\n' \"$1\" >>DIR/out/notices\n"),
    ] {
        env.write_script(name, &text.replace("DIR", dir));
    }
    env.write_profile("turn", &format!("delivery = 'turn'\nprogram = '{dir}/turn'\n"));
    let acp_agent = harness::programs().join("scripted-acp-agent");
    let modes = "[modes]\ndefault = []\nplan = []\n[session_modes]\nplan = 'read'\ndefault = 'ask'\n";
    let planner =
        format!("delivery = 'acp'\nprogram = '{}'\ninstructions = 'none'\n{modes}", acp_agent.display());
    env.write_profile("planner", &planner);
    let config = format!("no_output_after = '2s'\nnotify_command = ['{dir}/notice', '{{text}}']\n");
    env.write_file("home/.config/teamd/config.toml", config);
}

/// Creates the repository `repo` with one commit.
fn create_repository(env: &TestEnv) {
    env.write_file("repo/README", "a project\n");
    git(env, &["init", "--quiet", "--initial-branch", "main"]);
    git(env, &["config", "user.name", "t"]);
    git(env, &["config", "user.email", "t@example.org"]);
    git(env, &["add", "README"]);
    git(env, &["commit", "--quiet", "--message", "first"]);
}

fn run_file(env: &TestEnv) -> String {
    let (repo, work) = (env.path("repo"), env.path("work"));
    let policy = "[policy]\nretries = 1\ngrace = '10s'\nexchange_turns_per_hour = 4\n";
    let turn_members = TURN_MEMBERS.map(|name| member(name, turn_keys(name))).concat();
    let workers = WORKERS.map(|name| member(name, worker_keys(name))).concat();
    let planner = member(PLANNER, "profile = 'planner'\nmode = 'plan'\nrestart = 'on-failure'");
    let tasks: String = TASKS.iter().map(|task| task_table(task, &work)).collect();
    format!("name = 'night'\ncwd = '{}'\n{policy}{turn_members}{workers}{planner}{tasks}", repo.display())
}

fn member(name: &str, keys: &str) -> String {
    format!("[[member]]\nname = '{name}'\n{keys}\n")
}

fn turn_keys(name: &str) -> &'static str {
    match name {
        "dan" => "profile = 'turn'\nrestart = 'on-failure'\nenv = { PEER = 'eve' }",
        "eve" => "profile = 'turn'\nrestart = 'on-failure'\nenv = { PEER = 'dan' }",
        _ => "profile = 'turn'\nrestart = 'on-failure'\nworktree = true",
    }
}

fn worker_keys(name: &str) -> &'static str {
    match name {
        "wil" => "profile = 'worker'\nrestart = 'on-failure'\nbackend = 'in-process'",
        UNRESTARTED => "profile = 'worker'",
        _ => "profile = 'worker'\nrestart = 'on-failure'",
    }
}

fn task_table((key, owner, blockers): &(&str, &str, &[&str]), work: &Path) -> String {
    let owner_line = if owner.is_empty() { String::new() } else { format!("owner = '{owner}'\n") };
    let does_work = WORKERS.contains(owner) || owner.is_empty();
    let command = if does_work { format!("command = '{} {key}'\n", work.display()) } else { String::new() };
    format!("[[task]]\nkey = '{key}'\nsubject = 'do {key}'\n{owner_line}blocked_by = {blockers:?}\n{command}")
}

/// Starts `teamctl run` on the run file. Its output goes to `out/run`.
pub(super) fn start_run(env: &TestEnv, options: &[&str]) -> Child {
    let mut command = env.command(harness::programs().join("teamctl"));
    command.arg("run").arg(env.path("night.toml")).args(options);
    start_with_output(env, command)
}

/// Types a command that teamd printed, in a shell inside tmux. Its output goes to `out/run`.
pub(super) fn start_printed_command(env: &TestEnv, printed: &str) -> Child {
    start_with_output(env, shell(env, printed))
}

/// Types a command that teamd printed, in a shell inside tmux, and waits for its success.
pub(super) fn run_printed_command(env: &TestEnv, printed: &str) {
    let output = shell(env, printed).output().unwrap();
    assert!(output.status.success(), "{printed}: {output:?}");
}

fn shell(env: &TestEnv, line: &str) -> Command {
    let mut command = env.command("sh");
    command.args(["-c", line]).env("TMUX", format!("{},0,0", env.tmux_socket().display()));
    command
}

fn start_with_output(env: &TestEnv, mut command: Command) -> Child {
    env.write_file("out/run", "");
    let output = std::fs::File::options().append(true).open(env.path("out/run")).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
}

/// Runs git in the repository, and returns its output.
pub(super) fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command("git").current_dir(env.path("repo")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Waits until the task is held. `times` is how often it was held so far.
pub(super) fn wait_until_held(env: &TestEnv, key: &str, times: usize) {
    let file = format!("out/held-{key}");
    env.wait_until(&format!("{key} is held"), || (env.read(&file).lines().count() == times).then_some(()));
}

/// Lets further attempts at the task pass.
pub(super) fn stop_holding(env: &TestEnv, key: &str) {
    std::fs::remove_file(env.path(&format!("out/hold-{key}"))).unwrap();
}

/// Lets the current attempt at the task and further ones pass.
pub(super) fn release(env: &TestEnv, key: &str) {
    stop_holding(env, key);
    env.open_gate(&format!("out/gate-{key}"));
}

/// The entry of the team in `teamctl status`. `None` if no daemon replies.
pub(super) fn team_status(env: &TestEnv) -> Option<Value> {
    let output = env.teamctl(["--json", "status"]);
    (output.code == 0).then(|| output.json()["teams"][0].clone())
}

/// The entry of a running member in `teamctl status`. `None` if no daemon replies.
pub(super) fn running_member(env: &TestEnv, name: &str) -> Option<Value> {
    let team = team_status(env)?;
    let members = team["members"].as_array()?;
    members.iter().find(|member| member["name"] == name && member["lifecycle"] == "running").cloned()
}

//! The programs of the members, and the repository in which they work.

use super::team::{HELD_TASKS, git, run_file};
use harness::TestEnv;

/// Works on the task `$1`, and records when it begins and ends. The first work on `f1` and `h1` crashes its
/// agent. In a worktree it commits a line and a test of it. Until `out/mended` exists, `bad` and the test of
/// `c2` fail.
const WORK_SCRIPT: &str = r#"#!/bin/sh
out=DIR/out
echo "begin $1" >>$out/log
if [ -e $out/hold-$1 ]; then
    echo >>$out/held-$1
    read _ <$out/gate-$1
fi
if [ -e $out/crash-$1 ]; then
    rm $out/crash-$1
    kill -KILL $PPID
    exit 1
fi
if [ $1 = bad ] && [ ! -e $out/mended ]; then
    echo 'no such file'
    exit 1
fi
if [ -n "$TEAMD_BRANCH" ]; then
    cat $out/night >>$1.txt
    echo "grep -q night $1.txt" >$1.test
    [ $1 != c2 ] || [ -e $out/mended ] || echo 'echo c2 is wrong; exit 1' >$1.test
    [ $1 != e1 ] || cat $out/night >>shared.txt
    git add --all && git commit --quiet --message $1 || exit
fi
echo "end $1" >>$out/log
"#;

/// Runs the tests of all commits.
pub(super) const TEST_COMMAND: &str = "for test in *.test; do sh $test || exit; done";

/// One turn of a member of any make. Its text is on standard input. The program fails at a usage limit, works
/// on tasks, answers a `ball N` with the next number, records each message, and ends its agent if asked to.
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
id=$(printf '%s\n' "$text" | sed -n 's/.*teamctl answer-shutdown \([^ ]*\) --approve.*/\1/p')
[ -z "$id" ] || { teamctl answer-shutdown $id --approve && kill $PPID; }
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
    env.create_gate("out/dialog");
    for name in ["limit-ann", "crash-f1", "crash-h1"] {
        env.write_file(&format!("out/{name}"), "");
    }
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
    write_profiles(env, dir);
    let config = format!("no_output_after = '2s'\nnotify_command = ['{dir}/notice', '{{text}}']\n");
    env.write_file("home/.config/teamd/config.toml", config);
}

/// The profiles of the makes. All programs with a turn's text run `turn`.
fn write_profiles(env: &TestEnv, dir: &str) {
    let programs = harness::programs().display();
    let turn = format!("env = {{ TURN_PROGRAM = '{dir}/turn' }}\n");
    env.write_profile("turn", &format!("delivery = 'turn'\nprogram = '{dir}/turn'\n"));
    let keys = format!("prompt_args = ['{{prompt}}']\ncontinued_key = 'stop_hook_active'\n{turn}");
    let args = format!("args = ['hooked', '{dir}/out/hooked-{{name}}']\n");
    let hooked = format!("delivery = 'hook'\nprogram = '{programs}/scripted-agent'\n{args}{keys}");
    env.write_profile("hooked", &hooked);
    let acp = format!("delivery = 'acp'\nprogram = '{programs}/scripted-acp-agent'\ninstructions = 'none'\n");
    env.write_profile("acp", &format!("{acp}{turn}"));
    let modes = "[modes]\ndefault = []\nplan = []\n[session_modes]\nplan = 'read'\ndefault = 'ask'\n";
    env.write_profile("planner", &format!("{acp}{modes}"));
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

//! What the commands of the documents need: a small repository with the examples, and scripts in
//! place of programs that are not installed. A script does only what the documents need.

use harness::TestEnv;

/// `claude -p` runs a turn, see [`TURN`]. Otherwise it is a teammate that stays: with
/// `--plan-mode-required` it submits a plan, without it asks for permission to run the tests.
const CLAUDE: &str = r#"#!/bin/sh
ask() { scripted-agent ask "$TEAMD_MEMBER" "{$(echo "$*" | tr "'" '"')}"; }
case " $* " in
    *" --version "*) echo "2.1.330 (Claude Code)"; exit ;;
    *" --help "*) echo "Usage: claude [options] [prompt]"; exit ;;
    *" -p "*) . "$TEST_DIR/bin/turn"; exit ;;
    *" --plan-mode-required "*)
        ask "'type':'plan_approval_request','from':'$TEAMD_MEMBER','requestId':'plan-1770977144590@$TEAMD_MEMBER'," \
            "'timestamp':'2026-11-21T14:25:45.831Z','planFilePath':'$HOME/.claude/plans/quiet-red-fox.md'," \
            "'planContent':'First the lexer.'" ;;
    *)
        ask "'type':'permission_request','request_id':'perm-1770977144590-x3k9a0b','agent_id':'$TEAMD_MEMBER'," \
            "'tool_name':'Bash','tool_use_id':'t','description':'run the tests'," \
            "'input':{'command':'cargo test'},'permission_suggestions':[]" ;;
esac
exec scripted-agent stay
"#;

/// `codex exec` runs a turn, see [`TURN`]. Otherwise it is an interactive program with hooks.
const CODEX: &str = r#"#!/bin/sh
case " $* " in
    *" --version "*) echo "codex-cli 0.169.0"; exit ;;
    *" --help "*) echo "Usage: codex [OPTIONS] [PROMPT]"; exit ;;
    *" exec "*) echo '{"type":"thread.started","thread_id":"t-1"}'; . "$TEST_DIR/bin/turn"; exit ;;
esac
exec scripted-agent hooked "$TEST_DIR/out/codex" "begin"
"#;

/// A turn. It does what its text asks for: writes a file of findings, or replaces `old_call` by
/// `new_call` below a directory and commits the change.
const TURN: &str = r#"
text=$(cat)
case $text in
    *"Which functions"*) echo 'One: nothing.'; exit ;;
    *"one of them used"*) echo 'No.'; exit ;;
    *"Write your findings to"* | *"Write target/"*)
        file=$(printf %s "$text" | grep -o 'target/[a-z/]*\.md' | tail -n 1)
        mkdir -p "$(dirname "$file")"
        echo "$(basename "$0"): nothing that anybody would notice" >"$file" ;;
    *"old_call"*)
        below=$(printf %s "$text" | grep -o 'src/[a-z]*' | head -n 1)
        sed -i s/old_call/new_call/ "$below"/*.rs
        git commit -q -a -m "$below: new_call" ;;
esac
echo "It is done."
"#;

/// `ssh HOST WORDS`: the other machine is this one with another home directory.
const SSH: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
far=$TEST_DIR/far
mkdir -p "$far/run"
chmod 700 "$far/run"
cd "$far" || exit
exec env -i TEST_DIR="$TEST_DIR" HOME="$far" PATH="$far/.local/bin:/usr/bin:/bin" XDG_STATE_HOME="$far/state" \
    XDG_RUNTIME_DIR="$far/run" TMUX_TMPDIR="$far/run" sh -c "$*"
"#;

/// `cargo` builds nothing, because the programs are already below `target`.
const CARGO: &str = "#!/bin/sh\necho '    Finished `dev` profile' >&2\n";

pub(crate) fn install_fake_programs(env: &TestEnv) {
    for directory in
        ["bin", "tmp", "cron", "target/release", "home/bin", "home/.local/bin", "home/project/src"]
    {
        std::fs::create_dir_all(env.path(directory)).unwrap();
    }
    std::os::unix::fs::symlink(harness::programs(), env.path("target/debug")).unwrap();
    for name in ["teamd", "teamctl", "teamd-shim", "teamd-acp", "teamd-mcp", "teamd-top"] {
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", harness::programs().join(name).display());
        env.write_script(&format!("target/release/{name}"), &text);
    }
    // Where a cron job of docs/machines.md has it.
    let teamctl = format!("#!/bin/sh\nexec {} \"$@\"\n", harness::programs().join("teamctl").display());
    env.write_script("home/.local/bin/teamctl", &teamctl);
    for (name, text) in [("claude", CLAUDE), ("codex", CODEX), ("cargo", CARGO), ("turn", TURN), ("ssh", SSH)]
    {
        env.write_script(&format!("bin/{name}"), text);
    }
    create_repository(env);
}

/// Creates `~/project` with one commit.
fn create_repository(env: &TestEnv) {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for (source, target) in [("examples", "."), ("scripts", "."), ("Makefile", "Makefile")] {
        let target_path = env.path("home/project").join(target);
        let status =
            env.command("cp").args(["-r", &format!("{repository}/{source}")]).arg(target_path).status();
        assert!(status.unwrap().success());
    }
    env.write_file("home/project/.gitignore", "/target\n");
    env.write_file("home/project/Cargo.toml", "[package]\nname = \"project\"\n");
    env.write_file("home/project/src/lib.rs", "//! Nothing.\npub fn nothing() {}\n");
    for part in ["lexer", "parser"] {
        env.write_file(
            &format!("home/project/src/{part}/mod.rs"),
            format!("pub fn {part}() {{ old_call() }}\n"),
        );
    }
    env.write_file(
        "home/.gitconfig",
        "[user]\nname = me\nemail = me@example.org\n[init]\ndefaultBranch = main\n",
    );
    for arguments in [&["init", "-q", "--template="][..], &["add", "."], &["commit", "-q", "-m", "the first"]]
    {
        let status = env.command("git").args(arguments).current_dir(env.path("home/project")).status();
        assert!(status.unwrap().success());
    }
}

//! What stands around the person: a small repository with the examples in it, and scripts for the programs that are not
//! installed here, each as far as the documents need it.

use harness::TestEnv;

/// A turn at a time with `-p`; else a teammate that submits a plan, where it is to plan, or asks to run the tests. In a
/// turn it does as its task says: it writes the review that is asked for, or moves the calls below a directory.
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

/// `codex exec`: a turn; else an interactive program with hooks.
const CODEX: &str = r#"#!/bin/sh
case " $* " in
    *" --version "*) echo "codex-cli 0.169.0"; exit ;;
    *" --help "*) echo "Usage: codex [OPTIONS] [PROMPT]"; exit ;;
    *" exec "*) echo '{"type":"thread.started","thread_id":"t-1"}'; . "$TEST_DIR/bin/turn"; exit ;;
esac
exec scripted-agent hooked "$TEST_DIR/out/codex" "begin"
"#;

/// What a turn's text asks for, done without any thought.
const TURN: &str = r#"
text=$(cat)
case $text in
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

/// It builds nothing: what there is to build is there already, below `target`.
const CARGO: &str = "#!/bin/sh\necho '    Finished `dev` profile' >&2\n";

pub(super) fn install_fake_programs(env: &TestEnv) {
    for directory in ["bin", "tmp", "target/release", "home/bin", "home/project/src"] {
        std::fs::create_dir_all(env.path(directory)).unwrap();
    }
    std::os::unix::fs::symlink(harness::programs(), env.path("target/debug")).unwrap();
    for name in ["teamd", "teamctl", "teamd-shim", "teamd-acp", "teamd-mcp", "teamd-top"] {
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", harness::programs().join(name).display());
        env.write_script(&format!("target/release/{name}"), &text);
    }
    for (name, text) in [("claude", CLAUDE), ("codex", CODEX), ("cargo", CARGO), ("turn", TURN)] {
        env.write_script(&format!("bin/{name}"), text);
    }
    repository(env);
}

/// `~/project`, with one commit.
fn repository(env: &TestEnv) {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for (what, place) in [("examples", "."), ("scripts", "."), ("Makefile", "Makefile")] {
        let to = env.path("home/project").join(place);
        let copied = env.command("cp").args(["-r", &format!("{here}/{what}")]).arg(to).status();
        assert!(copied.unwrap().success());
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
        let git = env.command("git").args(arguments).current_dir(env.path("home/project")).status();
        assert!(git.unwrap().success());
    }
}

//! Lists that decide which environment variables an agent, git and the daemon get from their
//! caller. The caller is the command that makes teamd start the process. docs/environment.md has
//! the same lists, and a test compares them.

/// Variables that an agent does not inherit. Some describe where the caller runs; others make
/// programs load or run code. An agent gets such a variable only if the spawn request sets it.
/// Search paths (PATH, PYTHONPATH, NODE_PATH, PERL5LIB) are inherited, because they are settings of
/// the user.
const REMOVED_VARIABLES: &[&str] = &[
    // An agent program sets these variables for its session. If a new agent inherited them, it
    // would run as part of that session.
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_ENV_FILE",
    "CODEX_CI",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "QWEN_CODE",
    "OPENCODE",
    "COPILOT_CLI",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "GOOSE_TERMINAL",
    "AGENT",
    // These variables describe the caller's terminal.
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "WINDOWID",
    "ZELLIJ",
    "ZELLIJ_PANE_ID",
    "ZELLIJ_SESSION_NAME",
    "WEZTERM_PANE",
    "KITTY_WINDOW_ID",
    "ITERM_SESSION_ID",
    "TERM_SESSION_ID",
    "COLUMNS",
    "LINES",
    // These variables change what a shell runs or how a shell works.
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "IFS",
    "CDPATH",
    "SHLVL",
    "OLDPWD",
    "_",
    // These variables make a program load code.
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "VSCODE_INSPECTOR_OPTIONS",
    "ELECTRON_RUN_AS_NODE",
    "NODE_OPTIONS",
    "BUN_INSPECT",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_ENABLE_PROFILING",
    // A desktop, a service manager, make or git sets these variables for one process that it
    // starts.
    "XDG_ACTIVATION_TOKEN",
    "DESKTOP_STARTUP_ID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "CARGO_MAKEFLAGS",
    // These variables select a git repository. The list is the output of
    // `git rev-parse --local-env-vars`, without `GIT_CONFIG_COUNT`: that variable passes on
    // settings of the user.
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    // Git sets these variables for the hooks and programs that it runs.
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_EXEC_PATH",
];

/// Prefixes of further variables that no agent inherits.
const REMOVED_PREFIXES: &[&str] = &[
    "TEAMD_",
    "CLAUDE_CODE_MESSAGING_",
    "CODEX_SANDBOX",
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "LISTEN_",
    "LUA_INIT",
    "GIT_PUSH_OPTION_",
];

/// Whether an agent inherits the caller's variable `name`.
pub fn is_inherited(name: &str) -> bool {
    !REMOVED_VARIABLES.contains(&name) && !REMOVED_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// The only variables beginning with `GIT_` that teamd passes to git. The `GIT_CONFIG_` variables
/// contain settings of the caller: containers and CI often set `safe.directory` in this way
/// (git-config(1)). `GIT_LFS_SKIP_SMUDGE` says whether git-lfs downloads files. An entry that ends
/// with `_` is the prefix of numbered variables.
const GIT_SETTINGS: &[&str] = &[
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_LFS_SKIP_SMUDGE",
];

/// Variables without the prefix `GIT_` that git gets from the caller and not from the daemon. They
/// say where git finds programs and the user's settings.
const GIT_PATHS: &[&str] = &["PATH", "HOME", "XDG_CONFIG_HOME"];

/// Whether teamd passes the variable `name` to git. A variable that begins with `GIT_` is passed
/// only if it is in `GIT_SETTINGS`. Any other `GIT_` variable could make git use another
/// repository, as `GIT_DIR` does. Variables without this prefix are all passed.
pub fn is_passed_to_git(name: &str) -> bool {
    let matches = |setting: &&str| match setting.ends_with('_') {
        true => name.starts_with(*setting),
        false => name == *setting,
    };
    !name.starts_with("GIT_") || GIT_SETTINGS.iter().any(matches)
}

/// Whether git gets the caller's value of the variable `name` when the daemon runs git for a
/// caller's command. All other variables come from the daemon, if [`is_passed_to_git`] allows them.
pub fn is_callers_for_git(name: &str) -> bool {
    GIT_PATHS.contains(&name) || name.starts_with("GIT_") && is_passed_to_git(name)
}

/// Variables that a new daemon in tmux gets from the process that starts it. Without this list, the
/// daemon would get these variables from the tmux server, which may have other values.
pub const DAEMON_VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "TEAMD_DURABILITY",
    "TEAMD_ROOT",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_for_the_caller_only_are_removed() {
        for name in [
            "CLAUDECODE",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "TMUX_PANE",
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "TEAMD_TOKEN",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "GIT_DIR",
            "GIT_OBJECT_DIRECTORY",
            "GIT_CONFIG_PARAMETERS",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "LUA_INIT_5_4",
            "JAVA_TOOL_OPTIONS",
        ] {
            assert!(!is_inherited(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "ANTHROPIC_API_KEY",
            "SSH_AUTH_SOCK",
            "CLAUDE_CONFIG_DIR",
            "EDITOR",
            "PYTHONPATH",
            "NODE_PATH",
            "NODE_EXTRA_CA_CERTS",
            "VIRTUAL_ENV",
            "GIT_AUTHOR_NAME",
            "GIT_CONFIG_GLOBAL",
            "GIT_SSH_COMMAND",
        ] {
            assert!(is_inherited(name), "{name}");
        }
    }
    #[test]
    fn only_settings_of_the_user_are_passed_to_git() {
        for name in ["LANG", "GIT_CONFIG_COUNT", "GIT_CONFIG_VALUE_12", "GIT_LFS_SKIP_SMUDGE"] {
            assert!(is_passed_to_git(name), "{name}");
        }
        for name in ["GIT_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF"] {
            assert!(!is_passed_to_git(name) && !is_callers_for_git(name), "{name}");
        }
        for name in ["PATH", "HOME", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_3", "GIT_CONFIG_GLOBAL"] {
            assert!(is_callers_for_git(name), "{name}");
        }
        assert!(!is_callers_for_git("ANTHROPIC_API_KEY"));
    }

    const PAGE: &str = include_str!("../../../docs/environment.md");

    /// The names in one column of a table in docs/environment.md, from the rows whose first cell
    /// begins with the text `row`.
    fn documented(table: &str, row: &str, column: usize) -> Vec<String> {
        let table = PAGE.split(&format!("<!-- environment: {table} -->\n")).nth(1).expect("the page has it");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|line| {
            let cells: Vec<&str> = line.split('|').skip(1).map(str::trim).collect();
            cells[0].starts_with(row).then(|| cells[column])
        });
        let mut names: Vec<String> =
            cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// The names in the lists, as docs/environment.md writes them: `*` stands for any end of a
    /// name.
    fn listed(lists: &[&[&str]], is_prefix: impl Fn(&str) -> bool) -> Vec<String> {
        let name = |name: &&str| if is_prefix(name) { format!("{name}*") } else { (*name).to_owned() };
        let mut names: Vec<String> = lists.iter().copied().flatten().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn lists_are_those_of_the_page() {
        let removed = listed(&[REMOVED_VARIABLES, REMOVED_PREFIXES], |name| REMOVED_PREFIXES.contains(&name));
        assert_eq!(documented("removed", "", 0), removed);
        let git = listed(&[GIT_SETTINGS, GIT_PATHS], |name| name.ends_with('_'));
        assert_eq!(documented("passes", "git", 1), git);
        assert_eq!(documented("passes", "the daemon", 1), listed(&[DAEMON_VARIABLES], |_| false));
    }
}

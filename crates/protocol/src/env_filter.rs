//! Selects the environment variables that an agent inherits from the process that requests its
//! spawn.

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
    // These variables are for one process, started by a desktop, a service manager, make or git.
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
    // These variables select a git repository. The list is the output of `git rev-parse
    // --local-env-vars`, without the variables that only a person sets.
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
}

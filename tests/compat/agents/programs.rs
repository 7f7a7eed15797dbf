//! The agent programs under test, and their settings: the address of the model, and no updates or
//! telemetry.

use crate::codex_config;
use serde_json::{Value, json};

/// A program under test.
#[derive(Clone, Copy)]
pub(crate) struct AgentProgram {
    /// The name of the profile.
    pub(crate) profile: &'static str,
    /// Returns the settings files of the program. Each has a path below the home directory and a
    /// content. `model` is the URL of the model, `cwd` the working directory.
    pub(crate) settings: fn(model: &str, cwd: &str) -> Vec<(&'static str, String)>,
    /// Environment variables of the program. `MODEL` in a value stands for the URL of the model.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// A dialog that the program shows once before it runs hooks: a text on its screen, and the
    /// keys that accept it.
    pub(crate) hook_dialog: Option<(&'static str, &'static [&'static str])>,
    /// Additional arguments of `teamctl spawn`.
    pub(crate) spawn_args: &'static [&'static str],
    /// Whether the program can run commands. If so, the agent sends messages to the lead itself.
    pub(crate) runs_commands: bool,
}

/// Programs under other profiles, which report their token usage.
pub(crate) fn programs_with_usage() -> [AgentProgram; 3] {
    let with_profile = |profile: &str, other| {
        let program = PROGRAMS.into_iter().find(|program| program.profile == profile);
        AgentProgram { profile: other, hook_dialog: None, ..program.expect("the table has this profile") }
    };
    [
        with_profile("codex", "codex-turn"),
        with_profile("gemini", "gemini-acp"),
        with_profile("copilot", "copilot-acp"),
    ]
}

/// All programs under test, the simplest ones first.
pub(crate) const PROGRAMS: [AgentProgram; 6] = [
    AgentProgram {
        profile: "aider",
        settings: |_, _| Vec::new(),
        variables: &[
            ("OPENAI_API_BASE", "MODEL/v1"),
            ("OPENAI_API_KEY", "dummy"),
            ("AIDER_GIT", "false"),
            ("AIDER_SHOW_MODEL_WARNINGS", "false"),
            ("AIDER_SHOW_RELEASE_NOTES", "false"),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        ],
        hook_dialog: None,
        spawn_args: &["--model", "openai/mock"],
        runs_commands: false,
    },
    AgentProgram {
        profile: "opencode",
        settings: |model, _| vec![(".config/opencode/opencode.json", opencode_settings(model).to_string())],
        variables: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1")],
        hook_dialog: None,
        spawn_args: &[],
        runs_commands: true,
    },
    AgentProgram {
        profile: "codex",
        settings: |model, cwd| vec![(".codex/config.toml", codex_config::config_toml(model, cwd))],
        variables: &[("OPENAI_API_KEY", "dummy")],
        hook_dialog: Some(("Hooks need review", &["2", "Enter"])),
        spawn_args: &["--mode", "bypassPermissions"],
        runs_commands: true,
    },
    AgentProgram {
        profile: "gemini",
        settings: |_, _| vec![(".gemini/settings.json", gemini_settings().to_string())],
        variables: &[("GEMINI_API_KEY", "dummy"), ("GOOGLE_GEMINI_BASE_URL", "MODEL")],
        hook_dialog: None,
        spawn_args: &["--mode", "bypassPermissions", "--model", "gemini-2.5-pro"],
        runs_commands: true,
    },
    AgentProgram {
        profile: "qwen",
        settings: |_, _| vec![(".qwen/settings.json", qwen_settings().to_string())],
        variables: &[("OPENAI_API_KEY", "dummy"), ("OPENAI_BASE_URL", "MODEL/v1"), ("OPENAI_MODEL", "mock")],
        hook_dialog: None,
        spawn_args: &["--mode", "bypassPermissions"],
        runs_commands: true,
    },
    AgentProgram {
        profile: "copilot",
        settings: |_, cwd| vec![(".copilot/config.json", json!({"trustedFolders": [cwd]}).to_string())],
        variables: &[
            ("COPILOT_PROVIDER_BASE_URL", "MODEL/v1"),
            ("COPILOT_MODEL", "mock"),
            ("COPILOT_OFFLINE", "true"),
        ],
        hook_dialog: None,
        spawn_args: &["--mode", "bypassPermissions"],
        runs_commands: true,
    },
];

fn opencode_settings(model: &str) -> Value {
    let options = json!({"baseURL": format!("{model}/v1"), "apiKey": "dummy"});
    let models = json!({"mock": {"name": "mock"}});
    json!({
        "autoupdate": false, "share": "disabled", "model": "mock/mock", "small_model": "mock/mock",
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models}},
        "permission": {"bash": "allow", "edit": "allow"}
    })
}

fn gemini_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
    })
}

fn qwen_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
    })
}

//! A home directory for Claude Code. Its first start shows no dialogs, and it connects only to the
//! scripted model.

use harness::TestEnv;
use serde_json::json;
use std::path::Path;

/// An API key that belongs to no account.
const KEY: &str = "sk-ant-dummy-0123456789abcdefghij";

/// Writes settings that answer the dialogs of a first start, for the working directory `work`.
pub(crate) fn install_claude_home(env: &TestEnv, version: &str, work: &Path) {
    let work = work.canonicalize().unwrap();
    let trusted = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let client = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "lastOnboardingVersion": version,
        "lastReleaseNotesSeen": version,
        "bypassPermissionsModeAccepted": true,
        "effortCalloutDismissed": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {work.display().to_string(): trusted},
    });
    write_in_place(&env.root().join(".claude.json"), &client.to_string());
    write_in_place(&env.root().join("settings.json"), r#"{"skipDangerousModePermissionPrompt": true}"#);
}

/// The environment variables for Claude Code. `model` is the URL of the model.
pub(crate) fn variables(model: &str) -> Vec<(String, String)> {
    let variables = [
        ("ANTHROPIC_BASE_URL", model),
        ("ANTHROPIC_API_KEY", KEY),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Without this variable, Claude Code refuses the mode bypassPermissions as root. In the
        // user namespace of this test, it runs as root.
        ("IS_SANDBOX", "1"),
        ("SHELL", "/bin/bash"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Writes a file in place, as a foreign writer does.
#[allow(clippy::disallowed_methods, reason = "the files of the test, and those of the foreign writer")]
pub(crate) fn write_in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

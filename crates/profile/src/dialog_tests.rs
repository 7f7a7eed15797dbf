//! Checks the dialog texts of the built-in profiles against screens of their programs.

use crate::profile::{Profile, ProfileKind};
use crate::registry::{built_in_names, built_in_profile};
use protocol::dialog_match::find_dialog;

/// Screens with an open dialog, as far as they matter, from claude 2.1.45 and 2.1.330, codex
/// 0.169.0, gemini 0.61.0 and copilot 1.0.102.
const OPEN: [(&str, &str); 16] = [
    (
        "claude",
        " Security guide\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel",
    ),
    (
        "claude",
        " Security guide\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel",
    ),
    ("claude", "  mode.\n\n   1. No, exit\n ❯ 2. Yes, I accept\n\n Enter to confirm · Esc to cancel"),
    (
        "claude",
        "  Do you want to use this API key?\n\n    Yes\n  ❯ No (recommended)\n\n  Enter to confirm · Esc to cancel",
    ),
    (
        "claude",
        " Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and always allow access to work/ from this project\n   3. No\n\n Esc to cancel · Tab to amend",
    ),
    (
        "claude",
        " Do you want to create y2?\n   1. Yes\n   2. Yes, allow all edits during this session (shift+tab)\n ❯ 3. No\n\n Esc to cancel · Tab to amend",
    ),
    (
        "claude",
        " Claude has written up a plan and is ready to execute. Would you like to proceed?\n\n ❯ 1. Yes, and use auto mode\n   2. Yes, manually approve edits",
    ),
    (
        "claude",
        "   Exit plan mode?\n\n    Claude wants to exit plan mode\n\n    ❯ 1. Yes, and switch to default\n      2. No",
    ),
    (
        "codex",
        "  Hooks need review\n› 1. Review hooks\n  2. Trust all and continue\n  3. Continue without trusting (hooks won't run)\n\n  enter confirm · esc skip",
    ),
    (
        "codex",
        "  3. Sign in another way\n     Use an API key or another provider\n\n  Press enter to continue",
    ),
    (
        "codex",
        "  $ touch x1\n\n› 1. Yes, proceed (y)\n  2. Yes, and don't ask again for commands that start with\n     `touch x1` (p)\n  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel",
    ),
    (
        "gemini",
        " │ Do you trust the files in this folder?      │\n │                                             │\n │ Trusting a folder allows Gemini CLI to load │\n │ its local configurations                    │",
    ),
    (
        "gemini",
        "│ Allow execution of [Shell]?    │\n│                                │\n│   1. Allow once                │\n│ ● 2. Allow for this session    │\n│   3. No, suggest changes (esc) │\n╰────────────────────────────────╯",
    ),
    (
        "gemini",
        "│ Apply this change?\n│\n│ ● 1. Allow once\n│   2. Allow for this session\n│   3. Modify with external editor",
    ),
    (
        "copilot",
        "│ Do you trust the files in this folder? │\n│                                        │\n│   1. Yes                               │\n│ ❯ 2. Yes, and remember this folder     │",
    ),
    (
        "copilot",
        "│ Do you want to run this command?\n│\n│ ❯ 1. Yes\n│   3. No, and tell Copilot what to do        │\n│ differently (Esc to stop)                   │\n│\n│ ↑/↓ to navigate · enter to select",
    ),
];

/// Screens without a dialog, and texts that mention dialogs.
const ORDINARY: [&str; 6] = [
    "› SAY: ok\n\n• ok\n\n  Worked for <1s • 19:26\n\n› Ask Codex to do anything\n\n  mock default · ~/work\n  ← for agents · ? for shortcuts",
    "● Updated plan\n  ⎿  /plan to preview\n\n❯ \n  ? for shortcuts",
    "● Do you want to proceed? Say yes, and I will trust this folder.\n\n❯ \n  Esc to interrupt",
    "• The dialog says: 1. Yes, allow once 2. Yes, allow always. No, and tell Codex what to do differently (esc).\n  Press enter to confirm or esc to cancel it.",
    " > Do you trust the files in this folder?\n✦ I do.\n\n1. Allow once means once.\n2. Ask again.\n │ >   Type your message or @path/to/file │",
    " ❯ No\n ● Esc: to stop me press Esc. Would you like to proceed? I would.\n 1. count the lines",
];

fn dialogs(name: &str) -> Vec<String> {
    let Profile { kind, .. } = built_in_profile(name).unwrap().unwrap();
    match kind {
        ProfileKind::Program(program) => program.dialogs,
        ProfileKind::Worker => Vec::new(),
    }
}

#[test]
fn each_program_is_known_to_wait_and_by_every_text_of_its_profile() {
    for name in built_in_names() {
        let dialogs = dialogs(name);
        // Both profiles start the same program.
        let program = if name == "claude-hook" { "claude" } else { name };
        let screens = OPEN.iter().filter(|(of, _)| *of == program);
        let found: Vec<&str> = screens
            .map(|(_, screen)| {
                find_dialog(screen, &dialogs).unwrap_or_else(|| panic!("{name} does not know:\n{screen}"))
            })
            .collect();
        for dialog in &dialogs {
            assert!(found.contains(&dialog.as_str()), "{name}: {dialog:?} is on no screen");
        }
    }
}

#[test]
fn no_ordinary_screen_and_no_profile_that_is_read_there_is_taken_for_a_dialog() {
    for name in built_in_names() {
        let dialogs = dialogs(name);
        let written = dialogs.iter().map(|dialog| format!("dialog = [{dialog:?}]\n")).collect::<String>();
        for screen in ORDINARY.iter().copied().chain([written.as_str()]) {
            assert_eq!(find_dialog(screen, &dialogs), None, "{name}:\n{screen}");
        }
    }
}

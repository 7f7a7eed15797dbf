//! Checks the dialog texts of the built-in profiles against screens of their programs.

use crate::profile::{Profile, ProfileKind, ProgramSpec};
use crate::registry::{built_in_names, built_in_profile};
use protocol::find_usage_limit::find_limit_end;
use protocol::match_dialog_on_screen::{dialog_question, find_dialog};
use protocol::timestamp::iso8601;

/// Screens with an open dialog: the name of a program, and the part of its screen that shows the
/// dialog. They were recorded from claude 2.1.45 and 2.1.330, codex 0.169.0, gemini 0.61.0 and
/// copilot 1.0.102.
const DIALOG_SCREENS: [(&str, &str); 16] = [
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

/// Screens without an open dialog. Some contain text that resembles a dialog.
const OTHER_SCREENS: [&str; 6] = [
    "› SAY: ok\n\n• ok\n\n  Worked for <1s • 19:26\n\n› Ask Codex to do anything\n\n  mock default · ~/work\n  ← for agents · ? for shortcuts",
    "● Updated plan\n  ⎿  /plan to preview\n\n❯ \n  ? for shortcuts",
    "● Do you want to proceed? Say yes, and I will trust this folder.\n\n❯ \n  Esc to interrupt",
    "• The dialog says: 1. Yes, allow once 2. Yes, allow always. No, and tell Codex what to do differently (esc).\n  Press enter to confirm or esc to cancel it.",
    " > Do you trust the files in this folder?\n✦ I do.\n\n1. Allow once means once.\n2. Ask again.\n │ >   Type your message or @path/to/file │",
    " ❯ No\n ● Esc: to stop me press Esc. Would you like to proceed? I would.\n 1. count the lines",
];

/// Reads the recorded screens of the real programs from the files
/// `screens/PROGRAM-NAME-COLUMNSxROWS.txt`. Returns each file's name without `.txt`, and its text.
/// The screens of claude are from version 2.1.332, unless the name has another version. Those of
/// codex are from 0.169.0.
fn recorded_screens() -> Vec<(String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/screens");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    files.map(read).collect()
}

/// The dialogs on the recorded screens. Each entry has a part of a screen's file name, and the
/// question that the dialog asks. If several entries match a file name, the first one counts. If
/// none matches, the screen shows no dialog.
const QUESTIONS: [(&str, &str); 15] = [
    (
        "-question-long-",
        "Which of these ways should the service use to keep its data between two starts, given that the disk of the machine is small and that nobody wants to run a server?",
    ),
    ("-question-two-second-", "Does the service need a cache?"),
    ("-question-two-unanswered-", "Submit with unanswered questions?"),
    ("-question-two-review-", "Which features do you want to enable?"),
    ("-question-", "Which database should the service use?"),
    ("-permission-", "Do you want to proceed?"),
    ("-edit-", "Do you want to create notes.txt?"),
    ("-limit-8", "What do you want to do?"),
    ("-limit-2", "What do you want to do?"),
    ("-limit-options-", "What do you want to do?"),
    ("-approval-", "Reason: Do you want to allow removing the old log?"),
    ("claude-plan-", "Exit plan mode?"),
    ("-2.1.158-plan-", "Claude has written up a plan and is ready to execute. Would you like to proceed?"),
    ("-planmode-question-", "Which database should the service use?"),
    ("-question-preview-", "Which database should the service use?"),
];

#[test]
fn dialogs_on_recorded_screens_are_found_with_their_questions() {
    let screens = recorded_screens();
    assert!(screens.len() > 50, "{}", screens.len());
    for (name, screen) in &screens {
        let dialogs = dialogs(name.split('-').next().unwrap());
        let expected = QUESTIONS.iter().find(|(part, _)| name.contains(part)).map(|(_, question)| *question);
        let found = find_dialog(screen, &dialogs);
        assert_eq!(found.is_some(), expected.is_some(), "{name}: {found:?}\n{screen}");
        let question = found.and_then(|dialog| dialog_question(screen, dialog));
        assert_eq!(question.as_deref(), expected, "{name}");
    }
}

/// The texts by which a built-in profile recognizes dialogs (its key `dialogs`).
fn dialogs(name: &str) -> Vec<String> {
    program(name).map_or_else(Vec::new, |program| program.dialogs)
}

/// The texts by which a built-in profile recognizes usage limits (its key `limits`).
fn limits(name: &str) -> Vec<String> {
    program(name).map_or_else(Vec::new, |program| program.limits)
}

fn program(name: &str) -> Option<Box<ProgramSpec>> {
    let Profile { kind, .. } = built_in_profile(name).unwrap().unwrap();
    match kind {
        ProfileKind::Program(program) => Some(program),
        ProfileKind::Worker => None,
    }
}

/// 2026-11-28T00:00:00Z.
const NOW: u64 = 1_795_824_000_000;

fn limit_end(text: &str, profile: &str) -> Option<String> {
    let in_utc = |_: Option<&str>| Some(jiff::tz::TimeZone::UTC);
    find_limit_end(text, &limits(profile), NOW, &in_utc).map(iso8601)
}

#[test]
fn end_of_a_limit_is_read_from_recorded_screens_with_its_dialog() {
    for (name, screen) in recorded_screens() {
        let expected = match name.as_str() {
            "claude-limit-80x24" => Some("2026-11-29T23:33:00.000Z"),
            "claude-limit-200x50" => Some("2026-11-29T23:34:00.000Z"),
            "claude-limit-options-80x24" => Some("2026-11-28T01:33:00.000Z"),
            "claude-limit-options-200x50" => Some("2026-11-28T01:34:00.000Z"),
            "claude-2.1.158-limit-80x24" => Some("2026-11-28T01:35:00.000Z"),
            _ => None,
        };
        let profiles = [name.split('-').next().unwrap(), "claude-hook"];
        for profile in if expected.is_some() { &profiles[..] } else { &profiles[..1] } {
            assert_eq!(limit_end(&screen, profile).as_deref(), expected, "{name} {profile}");
        }
    }
}

/// Outputs of turns that failed at a usage limit, from the programs' issue trackers. Each entry has
/// the profile, the output, and the time at which the limit ends.
const LIMIT_OUTPUTS: [(&str, &str, &str); 10] = [
    ("claude-turn", "exit 1: Claude AI usage limit reached|1795831200", "28T02:00:00"),
    ("claude-turn", "exit 1: You've hit your limit · resets 4:50am (Europe/Rome)", "28T04:50:00"),
    ("claude-turn", "exit 1: You've hit your session limit · resets 1:40pm (Europe/Paris)", "28T13:40:00"),
    ("claude-turn", "exit 1: You've hit your limit · resets Nov 30, 11:30am (Asia/Calcutta)", "30T11:30:00"),
    (
        "claude-turn",
        "exit 1: Claude usage limit reached. Your limit will reset at 9am (America/Chicago).",
        "28T09:00:00",
    ),
    (
        "codex-turn",
        "{\"type\":\"error\",\"message\":\"You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 5 days 22 hours 11 minutes.\"}",
        "03T22:11:00",
    ),
    (
        "codex-turn",
        "{\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 3:28 PM.\"}}",
        "28T15:28:00",
    ),
    (
        "codex-turn",
        "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at Dec 5th, 2026 8:19 PM.",
        "05T20:19:00",
    ),
    (
        "codex-turn",
        "{\"error\":{\"type\":\"usage_limit_reached\",\"plan_type\":\"plus\",\"resets_at\":1795831200,\"resets_in_seconds\":7200}}",
        "28T02:00:00",
    ),
    (
        "gemini-turn",
        "Attempt 1 failed: Your quota will reset after 5s.. Retrying after 6173ms...\nTerminalQuotaError: You have exhausted your capacity on this model. Your quota will reset after 1h49m8s.\n    at classifyGoogleError",
        "28T01:49:08",
    ),
];

#[test]
fn end_of_a_limit_is_read_from_the_outputs_of_failed_turns() {
    for (profile, output, expected) in LIMIT_OUTPUTS {
        let end = limit_end(output, profile).unwrap_or_else(|| panic!("{output}"));
        assert!(end.contains(expected), "{output}: {end}");
    }
    for (profile, output) in [
        ("claude-turn", "exit 1: You've hit your limit · resets soon"),
        ("codex-turn", "Upgrade to Pro, or wait for limits to reset (every 5h and every week.)."),
        ("codex-turn", "error: the server is busy, try again in 5 days"),
        ("gemini-turn", "You exceeded your current quota, please check your plan and billing details."),
    ] {
        assert_eq!(limit_end(output, profile), None, "{output}");
    }
}

#[test]
fn every_dialog_text_of_a_profile_is_on_a_screen_and_every_dialog_screen_is_found() {
    for name in built_in_names() {
        let dialogs = dialogs(name);
        // The profiles `claude-hook` and `claude` start the same program.
        let program = if name == "claude-hook" { "claude" } else { name };
        let screens = DIALOG_SCREENS.iter().filter(|(screen_program, _)| *screen_program == program);
        let found: Vec<&str> = screens
            .map(|(_, screen)| {
                find_dialog(screen, &dialogs)
                    .unwrap_or_else(|| panic!("{name} has no dialog text for:\n{screen}"))
            })
            .collect();
        let recorded = recorded_screens();
        let recorded = recorded.iter().filter(|(screen_name, _)| screen_name.starts_with(program));
        let found: Vec<&str> = found
            .into_iter()
            .chain(recorded.filter_map(|(_, screen)| find_dialog(screen, &dialogs)))
            .collect();
        for dialog in &dialogs {
            assert!(found.contains(&dialog.as_str()), "{name}: {dialog:?} is on no screen");
        }
    }
}

#[test]
fn other_screens_and_the_text_of_a_profile_match_no_dialog() {
    for name in built_in_names() {
        let dialogs = dialogs(name);
        let profile_text =
            dialogs.iter().map(|dialog| format!("dialog = [{dialog:?}]\n")).collect::<String>();
        for screen in OTHER_SCREENS.iter().copied().chain([profile_text.as_str()]) {
            assert_eq!(find_dialog(screen, &dialogs), None, "{name}:\n{screen}");
        }
    }
}

//! Finds the prompts of common programs that ask on the terminal, such as git for a user name, ssh
//! for a passphrase, or sudo for a password. Any agent can start these programs, so the prompts are
//! listed here and not in the profiles.

use crate::match_dialog_on_screen::is_frame_char;

/// Parts of the prompts that git 2.50, OpenSSH 10, sudo 1.9, sudo-rs 0.2, apt 3.0 and pinentry 1.3
/// print. The first letter is omitted if some programs print it as a capital.
const PROMPTS: [&str; 12] = [
    "Username for '",
    "assword for ",
    "assword:",
    "assphrase for ",
    "assphrase:",
    "(yes/no",
    "[Y/n]",
    "[y/N]",
    "[yes/no]",
    "(y/n)",
    "Verification code:",
    "<OK> <Cancel>",
];
/// The possible last characters of a line that waits for an answer.
const LINE_ENDS: [char; 5] = [':', '?', ']', ')', '>'];

/// The prompt at which a program waits: the last line of the screen that is not empty, if it
/// contains one of the known prompts. `screen` holds the screen's lines from the top, without line
/// wraps.
pub fn find_terminal_prompt(screen: &str) -> Option<String> {
    let last = screen.lines().map(without_frames).rfind(|line| !line.is_empty())?;
    (last.ends_with(LINE_ENDS) && PROMPTS.iter().any(|prompt| last.contains(prompt))).then_some(last)
}

fn without_frames(line: &str) -> String {
    let unframed: String = line.chars().map(|c| if is_frame_char(c) { ' ' } else { c }).collect();
    unframed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_common_programs_are_found() {
        for (screen, prompt) in [
            ("$ git push\nUsername for 'https://example.org': \n\n", "Username for 'https://example.org':"),
            ("Password for 'https://ann@example.org': ", "Password for 'https://ann@example.org':"),
            ("[sudo] password for ann: ", "[sudo] password for ann:"),
            ("[sudo: authenticate] Password: ", "[sudo: authenticate] Password:"),
            ("ann@host's password: ", "ann@host's password:"),
            (
                "Enter passphrase for key '/home/ann/.ssh/id_ed25519': ",
                "Enter passphrase for key '/home/ann/.ssh/id_ed25519':",
            ),
            (
                "The authenticity of host 'h' can't be established.\nAre you sure you want to continue connecting (yes/no/[fingerprint])? ",
                "Are you sure you want to continue connecting (yes/no/[fingerprint])?",
            ),
            ("Do you want to continue? [Y/n] ", "Do you want to continue? [Y/n]"),
            ("│ Passphrase: ____ │\n│  <OK>      <Cancel> │\n└────┘", "<OK> <Cancel>"),
        ] {
            assert_eq!(find_terminal_prompt(screen).as_deref(), Some(prompt), "{screen}");
        }
    }

    #[test]
    fn answered_and_quoted_prompts_are_not_found() {
        for screen in [
            "",
            "Username for 'https://example.org': ann",
            "[sudo] password for ann: \nSorry, try again.",
            "It asks: Are you sure you want to continue connecting (yes/no)? I said yes.\n$ ",
            "The password: is in the vault.",
            "Do you want to continue? [Y/n] y\nReading package lists...",
        ] {
            assert_eq!(find_terminal_prompt(screen), None, "{screen}");
        }
    }
}

//! Compares the output of a command with the output that a page shows. The words must be equal
//! after variable parts are masked: pids, panes, times, durations, ids and the path of the test
//! environment. Every other number must be equal. In the table of a run, the owners of the tasks
//! are masked, too. A line `…` of the page stands for any lines, and `…` in a line for any words.

use harness::TestEnv;

/// Replaces the paths of the test environment by the paths on a typical machine, and removes
/// colours.
pub(super) fn normalize_environment(env: &TestEnv, text: &str) -> String {
    let paths = [
        ("home", "/home/me"),
        ("root", "/home/me/.claude"),
        ("tmp", "/tmp"),
        ("tmux", "/tmp/tmux-1000/default"),
    ];
    let replace =
        |text: String, (name, path): &(&str, &str)| text.replace(&env.path(name).display().to_string(), path);
    paths.iter().fold(strip_colors(text), replace)
}

fn strip_colors(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| plain + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// Whether the output `printed` matches the output that the page shows.
pub(super) fn output_matches(printed: &str, page: &str) -> bool {
    lines_match(&mask_lines(printed), &mask_lines(page))
}

fn mask_lines(text: &str) -> Vec<String> {
    let mut is_table = false;
    let lines = text.lines().map(|line| {
        is_table |= line.starts_with("TASK ");
        let line = mask_line(line);
        if is_table { strip_owner(&line) } else { line }
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Masks the owner in a row of the table of a run.
fn strip_owner(line: &str) -> String {
    match line.split(' ').collect::<Vec<_>>().as_slice() {
        [task, _, "SPAN", rest @ ..] => format!("{task} OWNER SPAN {}", rest.join(" ")),
        _ => line.to_owned(),
    }
}

fn lines_match(printed: &[String], page: &[String]) -> bool {
    match page.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any == "…" => {
            (0..=printed.len()).any(|start| lines_match(&printed[start..], rest))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|printed_line| line_matches(printed_line, line))
                && lines_match(&printed[1..], rest)
        }
    }
}

fn line_matches(printed: &str, page: &str) -> bool {
    let mut pieces = page.split('…');
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(index) = rest.find(piece) else { return false };
        rest = &rest[index + piece.len()..];
        last = Some(piece);
    }
    last.map_or(rest.is_empty(), |piece| piece.is_empty() || rest.is_empty())
}

/// The line with single spaces, and with its variable words masked.
fn mask_line(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut text, mut word, mut before) = (String::new(), String::new(), String::new());
    for letter in line.chars().chain(['\n']) {
        if letter.is_alphanumeric() || "%.:_-".contains(letter) {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            text += &mask_word(&word, &before);
            if word.contains(char::is_alphanumeric) {
                before = std::mem::take(&mut word);
            }
            word.clear();
        }
        text.push(letter);
    }
    text.trim_end().to_owned()
}

/// Masks a variable word. `before` is the word before it.
fn mask_word(word: &str, before: &str) -> String {
    let core = word.trim_matches(['.', ':', '-']);
    let mask = mask_for_word(core, before.trim_end_matches(':'));
    mask.map_or_else(|| word.to_owned(), |mask| word.replace(core, &mask))
}

/// The mask for a word. `None` if the word is not variable.
fn mask_for_word(word: &str, before: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let shape: String =
        word.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect();
    // An id may consist of digits or letters alone. So this check comes first.
    let ask_id = word.strip_prefix("ask-").filter(|digits| digits.len() == 8);
    let is_id = match word.len() {
        12 if ask_id.is_some_and(|digits| digits.chars().all(|letter| letter.is_ascii_hexdigit())) => true,
        7 | 12 => word.chars().all(|letter| letter.is_ascii_hexdigit()),
        36 => word.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-'),
        _ => false,
    };
    if is_id {
        return Some("ID".to_owned());
    }
    if let Some(start) = shape.find("9999999999") {
        return Some(format!("{}N", &word[..start]));
    }
    if shape.starts_with("9999-99-99") || shape.starts_with("99:99") {
        return Some("TIME".to_owned());
    }
    if before == "pid" && digits(word) || word.strip_prefix('%').is_some_and(digits) {
        return Some("N".to_owned());
    }
    if word.starts_with("tmp.") && word.len() == "tmp.".len() + 10 {
        return Some("tmp.N".to_owned());
    }
    let is_span =
        shape.starts_with('9') && ["ms", "s", "m", "h"].contains(&shape.trim_start_matches(['9', '.']));
    is_span.then(|| "SPAN".to_owned())
}

#[test]
fn only_variable_words_may_differ() {
    for (printed, page) in [
        ("ann runs in pane %12, window teamd:2, pid 4711.", "ann runs in pane %3, window teamd:2, pid 8."),
        (
            "{\"time\":\"2026-11-21T14:25:45.831Z\",\"pid\":3}",
            "{\"time\":\"2027-01-02T03:04:05.000Z\",\"pid\":44}",
        ),
        ("ann   running  2m  -", "ann running 0.5s -"),
        ("perm-1770977144590-x3k9a0b from /x/tmp.abcdefghij", "perm-1870977144590-a from /x/tmp.0123456789"),
        ("a\nb\nc\nd", "a\n…\nd"),
        ("one two three", "one … three"),
        ("043192108860 to ann, merged abcdefa", "5c1f2a07b1d4 to ann, merged 1f0e8a2"),
        ("done: 14:25", "…"),
        ("TASK OWNER\ncount bob 1.0s completed", "TASK   OWNER\ncount  ann 0.1s completed"),
    ] {
        assert!(output_matches(printed, page), "{printed} / {page}");
    }
    for (printed, page) in [
        ("3 of 4 tasks", "4 of 4 tasks"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("one two four", "one … three"),
        ("one two three four", "one … three"),
        ("a\nb\nc", "…\nb"),
        ("Task 3 is there", "Task 4 is there"),
        ("TASK OWNER\ncount bob 1.0s failed", "TASK OWNER\ncount bob 1.0s completed"),
    ] {
        assert!(!output_matches(printed, page), "{printed} / {page}");
    }
}

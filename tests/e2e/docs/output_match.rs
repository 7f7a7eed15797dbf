//! What a command prints beside what the page prints: the words must be the same, once what changes from one time and one
//! machine to the next is masked. That is pids, panes, times, durations, ids and where the environment lies; every other number
//! counts. Who took a task that was for anybody is masked in the table of a run. A line `…` of the page stands for any lines,
//! and `…` in a line for any words.

use harness::TestEnv;

/// What was printed, as a person sees it on a machine of their own: colours are no words.
pub(super) fn normalize_environment(env: &TestEnv, text: &str) -> String {
    let own = [
        ("home", "/home/me"),
        ("root", "/home/me/.claude"),
        ("tmp", "/tmp"),
        ("tmux", "/tmp/tmux-1000/default"),
    ];
    let replace =
        |text: String, (name, own): &(&str, &str)| text.replace(&env.path(name).display().to_string(), own);
    own.iter().fold(strip_colors(text), replace)
}

fn strip_colors(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| plain + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// Whether this fits what the page prints.
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

/// A row of a run's table.
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
            (0..=printed.len()).any(|from| lines_match(&printed[from..], rest))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|has| line_matches(has, line)) && lines_match(&printed[1..], rest)
        }
    }
}

fn line_matches(printed: &str, page: &str) -> bool {
    let mut pieces = page.split('…');
    let Some(mut left) = printed.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
        last = Some(piece);
    }
    last.map_or(left.is_empty(), |piece| piece.is_empty() || left.is_empty())
}

/// A line with single spaces, and what changes masked.
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

/// `before` is the word ahead of it.
fn mask_word(word: &str, before: &str) -> String {
    let bare = word.trim_matches(['.', ':', '-']);
    let mask = mask_for_word(bare, before.trim_end_matches(':'));
    mask.map_or_else(|| word.to_owned(), |mask| word.replace(bare, &mask))
}

fn mask_for_word(word: &str, before: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let shape: String =
        word.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect();
    if let Some(long) = shape.find("9999999999") {
        return Some(format!("{}N", &word[..long]));
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
    let is_id = [7, 12, 36].contains(&word.len())
        && word.chars().any(|letter| letter.is_ascii_digit())
        && word.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
    (is_span || is_id).then(|| if is_span { "SPAN" } else { "ID" }.to_owned())
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

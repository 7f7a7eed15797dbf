//! The progress of a run as lines that fit the terminal: a summary, the members, the tasks, and the last events.

use client::suggested_commands::SuggestedCommands;
use runner::{RunProgress, TaskFate, TaskProgress, short_duration};

/// Whether the lines have colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    Colored,
    Plain,
}

/// The terminal's size in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalSize {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `12/40 done, 3 running, 1 failed`.
pub(super) fn progress_line(tasks: &[TaskProgress]) -> String {
    let count = |is: fn(&TaskFate) -> bool| tasks.iter().filter(|task| is(&task.fate)).count();
    let mut words = vec![
        format!("{}/{} done", count(|fate| *fate == TaskFate::Completed), tasks.len()),
        format!("{} running", count(|fate| *fate == TaskFate::Running)),
    ];
    let rest = [
        (count(|fate| matches!(fate, TaskFate::Failed(_))), "failed"),
        (count(|fate| matches!(fate, TaskFate::Unreachable(_))), "can't be done"),
    ];
    words.extend(rest.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
    words.join(", ")
}

/// The lines of the whole screen. None is wider than the terminal, and there are at most as many as it has.
pub(super) fn render(
    progress: &RunProgress,
    recent: &[&str],
    size: TerminalSize,
    palette: Palette,
    suggested_commands: &SuggestedCommands,
) -> Vec<String> {
    let mut lines =
        vec![clip_width(&format!("{}: {}", progress.team, progress_line(&progress.tasks)), size.width)];
    // On a line of its own: behind the summary it would be cut at 80 columns.
    lines.extend(progress.ending.iter().map(|ending| clip_width(ending, size.width)));
    lines.push(String::new());
    let members = progress.members.len().min(size.height / 4);
    lines.extend(progress.members.iter().take(members).map(|member| {
        let line = format!("{:<12} {}", member.name, member.doing);
        clip_width(&line, size.width)
    }));
    if members < progress.members.len() {
        lines.push(format!("… and {} more members", progress.members.len() - members));
    }
    if progress.members.iter().any(|member| member.is_awaiting_answer) {
        let requests = suggested_commands.command(&["requests", "-t", &progress.team]);
        lines.push(clip_width(&format!("to see what is asked: {requests}"), size.width));
    }
    lines.push(String::new());
    let foot = recent.len().min(size.height / 4);
    let room = size.height.saturating_sub(lines.len() + foot + 1);
    lines.extend(task_lines(progress, room, size.width, palette));
    lines.push(String::new());
    lines.extend(recent[recent.len() - foot..].iter().map(|line| clip_width(line, size.width)));
    lines.truncate(size.height);
    lines
}

/// All tasks in the order of their ids if they fit. Else running tasks first, then failed, waiting and completed ones.
fn task_lines(progress: &RunProgress, room: usize, width: usize, palette: Palette) -> Vec<String> {
    let rank = |task: &&TaskProgress| match task.fate {
        TaskFate::Running => 0,
        TaskFate::Failed(_) => 1,
        TaskFate::Waiting => 2,
        TaskFate::Completed => 3,
        TaskFate::Unreachable(_) => 4,
    };
    let mut ranked: Vec<&TaskProgress> = progress.tasks.iter().collect();
    if ranked.len() > room {
        ranked.sort_by_key(rank);
    }
    let shown = if ranked.len() > room { room.saturating_sub(1) } else { ranked.len() };
    let mut lines: Vec<String> = ranked[..shown].iter().map(|task| task_line(task, width, palette)).collect();
    if shown < ranked.len() && room > 0 {
        lines.push(format!("… and {} more tasks", ranked.len() - shown));
    }
    lines
}

fn task_line(task: &TaskProgress, width: usize, palette: Palette) -> String {
    let (word, color) = match &task.fate {
        TaskFate::Completed => ("done", "32"),
        TaskFate::Running => ("running", "36"),
        TaskFate::Waiting => ("waits", ""),
        TaskFate::Failed(_) => ("failed", "31"),
        TaskFate::Unreachable(_) => ("not done", "33"),
    };
    let why = match &task.fate {
        TaskFate::Failed(why) | TaskFate::Unreachable(why) => format!(" ({})", why.replace('\n', " ")),
        _ => String::new(),
    };
    let took = task.duration_ms.map(short_duration).unwrap_or_default();
    let line = format!("{word:<8} {:<12} {:<10} {took:>6}  {}{why}", task.name, task.owner, task.subject);
    let line = clip_width(&line, width);
    match palette == Palette::Colored && !color.is_empty() {
        true => format!("\x1b[{color}m{line}\x1b[0m"),
        false => line,
    }
}

fn clip_width(line: &str, width: usize) -> String {
    line.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::MemberProgress;

    fn view(tasks: usize) -> RunProgress {
        let fates =
            [TaskFate::Completed, TaskFate::Waiting, TaskFate::Running, TaskFate::Failed("exit 1".into())];
        let task = |n: usize| TaskProgress {
            name: format!("t{n}"),
            subject: "a long subject that goes on and on".into(),
            owner: "ann".into(),
            fate: fates[n % 4].clone(),
            duration_ms: Some(1500),
        };
        let members = (0..9)
            .map(|n| MemberProgress {
                name: format!("m{n}"),
                doing: "idle".into(),
                is_awaiting_answer: false,
            })
            .collect();
        RunProgress { team: "survey".into(), ending: None, tasks: (0..tasks).map(task).collect(), members }
    }

    #[test]
    fn it_fits_whatever_the_size() {
        for (width, height) in [(80, 24), (20, 5), (1, 1), (200, 100), (40, 12)] {
            for tasks in [0, 3, 500] {
                let lines = render(
                    &view(tasks),
                    &["one", "two"],
                    TerminalSize { width, height },
                    Palette::Plain,
                    &SuggestedCommands::default(),
                );
                assert!(lines.len() <= height, "{width}×{height}: {lines:#?}");
                let wide = lines.iter().filter(|line| line.chars().count() > width.max(30)).count();
                assert_eq!(wide, 0, "{lines:#?}");
            }
        }
    }

    #[test]
    fn why_it_ends_stands_under_the_progress() {
        let view = RunProgress { ending: Some("stopping: …".into()), ..view(2) };
        let lines = render(
            &view,
            &[],
            TerminalSize { width: 80, height: 24 },
            Palette::Plain,
            &SuggestedCommands::default(),
        );
        assert_eq!(lines[1], "stopping: …");
    }

    #[test]
    fn where_somebody_asks_the_way_to_the_answer_stands_below_the_members() {
        let size = TerminalSize { width: 80, height: 24 };
        let mut view = view(2);
        let lines = |progress: &RunProgress| {
            render(progress, &[], size, Palette::Plain, &SuggestedCommands::default())
        };
        let asked =
            |progress: &RunProgress| lines(progress).iter().position(|line| line.contains("requests"));
        assert_eq!(asked(&view), None);
        view.members[8].is_awaiting_answer = true;
        let lines = render(&view, &[], size, Palette::Plain, &SuggestedCommands::default());
        assert_eq!(lines[asked(&view).unwrap()], "to see what is asked: teamctl requests -t survey");
        assert!(lines[asked(&view).unwrap() - 1].contains("more members"), "{lines:#?}");
    }

    #[test]
    fn what_runs_is_never_hidden_by_what_is_done() {
        let lines = render(
            &view(500),
            &[],
            TerminalSize { width: 80, height: 24 },
            Palette::Plain,
            &SuggestedCommands::default(),
        );
        assert_eq!(lines[0], "survey: 125/500 done, 125 running, 125 failed");
        assert!(lines.iter().any(|line| line.starts_with("running  t2")), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("more tasks"))
                && lines.iter().any(|line| line.contains("more members"))
        );
        let few = render(
            &view(2),
            &["last"],
            TerminalSize { width: 80, height: 40 },
            Palette::Colored,
            &SuggestedCommands::default(),
        );
        assert!(few.iter().any(|line| line.starts_with("\x1b[32mdone     t0")), "{few:#?}");
        assert_eq!(few.last().map(String::as_str), Some("last"));
    }
}

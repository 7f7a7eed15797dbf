//! Formats the progress of a run as lines that fit the terminal: a summary, the members, the tasks,
//! and the latest events.

use crate::output::clip;
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
    let count = |has_fate: fn(&TaskFate) -> bool| tasks.iter().filter(|task| has_fate(&task.fate)).count();
    let mut parts = vec![
        format!("{}/{} done", count(|fate| *fate == TaskFate::Completed), tasks.len()),
        format!("{} running", count(|fate| *fate == TaskFate::Running)),
    ];
    let failures = [
        (count(|fate| matches!(fate, TaskFate::Failed(_))), "failed"),
        (count(|fate| matches!(fate, TaskFate::Unreachable(_))), "can't be done"),
    ];
    parts.extend(
        failures.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")),
    );
    parts.join(", ")
}

/// The lines of the whole screen, at most as wide and as many as `size` allows.
pub(super) fn render(
    progress: &RunProgress,
    recent: &[&str],
    size: TerminalSize,
    palette: Palette,
    suggested_commands: &SuggestedCommands,
) -> Vec<String> {
    let mut lines = vec![clip(&format!("{}: {}", progress.team, progress_line(&progress.tasks)), size.width)];
    // A separate line, because the end of a long first line would be cut off.
    lines.extend(progress.ending.iter().map(|ending| clip(ending, size.width)));
    lines.push(String::new());
    let members = progress.members.len().min(size.height / 4);
    lines.extend(progress.members.iter().take(members).map(|member| {
        let line = format!("{:<12} {}", member.name, member.activity);
        clip(&line, size.width)
    }));
    if members < progress.members.len() {
        lines.push(format!("… and {} more members", progress.members.len() - members));
    }
    if progress.members.iter().any(|member| member.is_awaiting_answer) {
        let requests = suggested_commands.command(&["requests", "-t", &progress.team]);
        lines.push(clip(&format!("to see what is asked: {requests}"), size.width));
    }
    lines.push(String::new());
    let recent_count = recent.len().min(size.height / 4);
    let max_tasks = size.height.saturating_sub(lines.len() + recent_count + 1);
    lines.extend(task_lines(progress, max_tasks, size.width, palette));
    lines.push(String::new());
    lines.extend(recent[recent.len() - recent_count..].iter().map(|line| clip(line, size.width)));
    lines.truncate(size.height);
    lines
}

/// Returns one line per task, at most `max_lines` lines. If all tasks fit, they are ordered by id.
/// Otherwise running tasks come first, then failed, waiting and completed tasks, and last those
/// that can never start. The last line then says how many tasks are left out.
fn task_lines(progress: &RunProgress, max_lines: usize, width: usize, palette: Palette) -> Vec<String> {
    let rank = |task: &&TaskProgress| match task.fate {
        TaskFate::Running => 0,
        TaskFate::Failed(_) => 1,
        TaskFate::Waiting => 2,
        TaskFate::Completed => 3,
        TaskFate::Unreachable(_) => 4,
    };
    let mut tasks: Vec<&TaskProgress> = progress.tasks.iter().collect();
    if tasks.len() > max_lines {
        tasks.sort_by_key(rank);
    }
    let shown_count = if tasks.len() > max_lines { max_lines.saturating_sub(1) } else { tasks.len() };
    let mut lines: Vec<String> =
        tasks[..shown_count].iter().map(|task| task_line(task, width, palette)).collect();
    if shown_count < tasks.len() && max_lines > 0 {
        lines.push(format!("… and {} more tasks", tasks.len() - shown_count));
    }
    lines
}

fn task_line(task: &TaskProgress, width: usize, palette: Palette) -> String {
    let (state, color) = match &task.fate {
        TaskFate::Completed => ("done", "32"),
        TaskFate::Running => ("running", "36"),
        TaskFate::Waiting => ("waits", ""),
        TaskFate::Failed(_) => ("failed", "31"),
        TaskFate::Unreachable(_) => ("not done", "33"),
    };
    let reason = match &task.fate {
        TaskFate::Failed(reason) | TaskFate::Unreachable(reason) => {
            format!(" ({})", reason.replace('\n', " "))
        }
        _ => String::new(),
    };
    let duration = task.duration_ms.map(short_duration).unwrap_or_default();
    let line =
        format!("{state:<8} {:<12} {:<10} {duration:>6}  {}{reason}", task.name, task.owner, task.subject);
    let line = clip(&line, width);
    match palette == Palette::Colored && !color.is_empty() {
        true => format!("\x1b[{color}m{line}\x1b[0m"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::MemberProgress;

    fn progress(tasks: usize) -> RunProgress {
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
                activity: "idle".into(),
                is_awaiting_answer: false,
            })
            .collect();
        RunProgress { team: "survey".into(), ending: None, tasks: (0..tasks).map(task).collect(), members }
    }

    fn render_plain(progress: &RunProgress, recent: &[&str], width: usize, height: usize) -> Vec<String> {
        let size = TerminalSize { width, height };
        render(progress, recent, size, Palette::Plain, &SuggestedCommands::default())
    }

    #[test]
    fn lines_fit_the_terminal() {
        for (width, height) in [(80, 24), (20, 5), (1, 1), (200, 100), (40, 12)] {
            for tasks in [0, 3, 500] {
                let lines = render_plain(&progress(tasks), &["one", "two"], width, height);
                assert!(lines.len() <= height, "{width}×{height}: {lines:#?}");
                let wide_lines = lines.iter().filter(|line| line.chars().count() > width.max(30)).count();
                assert_eq!(wide_lines, 0, "{lines:#?}");
            }
        }
    }

    #[test]
    fn reason_for_the_end_is_below_the_summary() {
        let progress = RunProgress { ending: Some("stopping: …".into()), ..progress(2) };
        assert_eq!(render_plain(&progress, &[], 80, 24)[1], "stopping: …");
    }

    #[test]
    fn command_for_open_requests_is_below_the_members() {
        let mut progress = progress(2);
        let position = |lines: &[String]| lines.iter().position(|line| line.contains("requests"));
        assert_eq!(position(&render_plain(&progress, &[], 80, 24)), None);
        progress.members[8].is_awaiting_answer = true;
        let lines = render_plain(&progress, &[], 80, 24);
        let position = position(&lines).unwrap();
        assert_eq!(lines[position], "to see what is asked: teamctl requests -t survey");
        assert!(lines[position - 1].contains("more members"), "{lines:#?}");
    }

    #[test]
    fn completed_tasks_do_not_hide_running_ones() {
        let lines = render_plain(&progress(500), &[], 80, 24);
        assert_eq!(lines[0], "survey: 125/500 done, 125 running, 125 failed");
        assert!(lines.iter().any(|line| line.starts_with("running  t2")), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("more tasks"))
                && lines.iter().any(|line| line.contains("more members"))
        );
        let lines = render(
            &progress(2),
            &["last"],
            TerminalSize { width: 80, height: 40 },
            Palette::Colored,
            &SuggestedCommands::default(),
        );
        assert!(lines.iter().any(|line| line.starts_with("\x1b[32mdone     t0")), "{lines:#?}");
        assert_eq!(lines.last().map(String::as_str), Some("last"));
    }
}

//! The section of the page with the branches of members.

use super::read_member_branches::MemberBranch;
use crate::output::clip;
use protocol::single_line::single_line;

/// With more branches than this, the subjects of a branch's commits share one line.
const MAX_DETAILED_BRANCHES: usize = 4;

/// The width of a line that can be cut or wrapped, in columns.
pub(super) const PAGE_COLUMNS: usize = 80;

/// How the subjects of a branch's commits are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubjectLayout {
    OnePerLine,
    Joined,
}

/// The lines of the section. Empty without branches.
pub(super) fn branch_lines(branches: &[MemberBranch]) -> Vec<String> {
    if branches.is_empty() {
        return Vec::new();
    }
    let layout = match branches.len() <= MAX_DETAILED_BRANCHES {
        true => SubjectLayout::OnePerLine,
        false => SubjectLayout::Joined,
    };
    let mut lines = vec!["## Branches".to_owned(), String::new()];
    for branch in branches {
        lines.extend(subject_lines(branch, layout));
        lines.extend(branch.command().map(|command| format!("  `{command}`")));
        lines.extend(uncommitted_line(branch));
        lines.extend(branch.worktree_error.as_ref().map(|error| single_line(&format!("  {error}"))));
    }
    lines
}

fn uncommitted_line(branch: &MemberBranch) -> Option<String> {
    let files = branch.uncommitted.join("; ");
    let worktree = branch.worktree.display();
    (!files.is_empty()).then(|| single_line(&format!("  not committed in {worktree}: {files}")))
}

/// The summary of a branch, and the subjects of its newest commits.
fn subject_lines(branch: &MemberBranch, layout: SubjectLayout) -> Vec<String> {
    let subjects: Vec<String> = branch.newest().iter().map(|commit| single_line(&commit.subject)).collect();
    let summary = format!("- {}", branch.summary());
    match layout {
        SubjectLayout::OnePerLine => {
            let subjects = subjects.iter().map(|subject| clip(&format!("  - {subject}"), PAGE_COLUMNS));
            std::iter::once(summary).chain(subjects).collect()
        }
        SubjectLayout::Joined if subjects.is_empty() => vec![summary],
        SubjectLayout::Joined => vec![clip(&format!("{summary}: {}", subjects.join("; ")), PAGE_COLUMNS)],
    }
}

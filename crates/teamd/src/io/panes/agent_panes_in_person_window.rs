//! Opens agents' panes beside a person's pane, in the same tmux window. When an agent's pane leaves
//! the window, the others get equal heights. When the last one has left, the window gets its
//! earlier layout back.

use crate::core::jobs::pane_jobs::{PaneMove, PaneSpec};
use crate::io::panes::hide_and_show::{MoveOutcome, place_in_joining_order};
use crate::io::panes::run_pane_jobs::PaneManager;
use crate::io::panes::window_space::MIN_PANE;
use protocol::control_socket::PersonPane;
use tmux::{CreatedPane, Error, PaneId, PanePlace, PaneRow, PaneTag, WindowId};

/// The minimum width that the person's pane keeps, in columns.
const MIN_KEPT_COLUMNS: u32 = 40;

impl PaneManager {
    /// Opens a pane beside the pane of a person, `opening.person_pane`. Returns `None` if the team
    /// has no such pane, if it is on another tmux server, or if [`choose_place`] finds no place.
    pub(super) fn open_beside_person(&mut self, opening: &PaneSpec) -> Result<Option<CreatedPane>, Error> {
        let Some(person) = &opening.person_pane else { return Ok(None) };
        let rows = self.list_panes()?;
        if self.connect()?.epoch().pid != person.server_pid {
            return Ok(None);
        }
        let Some((window, place)) = choose_place(&rows, person, &opening.neighbors) else { return Ok(None) };
        self.opening_cache = None;
        let panes = self.person_windows.entry(window).or_default();
        match self.server.as_mut().expect("connected above").split_in_person_window(
            window,
            place,
            &opening.argv,
        ) {
            // A person has just closed or shrunk the pane.
            Err(Error::NoSpace { .. } | Error::Rejected { .. }) => Ok(None),
            created => {
                panes.extend(created.iter().map(|created| created.pane));
                created.map(Some)
            }
        }
    }

    /// Moves a hidden pane beside the pane of a person, `pane_move.person_pane`. Returns `NotMoved`
    /// if the team has no such pane, if it is on another tmux server, or if [`choose_place`] finds
    /// no place.
    pub(super) fn show_beside_person(
        &mut self,
        rows: &[PaneRow],
        pane_move: &PaneMove,
    ) -> Result<MoveOutcome, Error> {
        let Some(person) = &pane_move.person_pane else { return Ok(MoveOutcome::NotMoved) };
        let server = self.connect()?;
        let place = Some(rows).filter(|_| server.epoch().pid == person.server_pid);
        let Some((window, place)) = place.and_then(|rows| choose_place(rows, person, &pane_move.neighbors))
        else {
            return Ok(MoveOutcome::NotMoved);
        };
        let place = match place {
            PanePlace::RightOf { .. } => place,
            last => place_in_joining_order(rows, window, pane_move).unwrap_or(last),
        };
        match server.join_person_window(window, place, pane_move.pane, &pane_move.owner) {
            // A person has just closed or shrunk the pane.
            Err(Error::NoSpace { .. } | Error::Rejected { .. }) => Ok(MoveOutcome::NotMoved),
            joined => joined.map(|()| {
                self.person_windows.entry(window).or_default().insert(pane_move.pane);
                MoveOutcome::Moved
            }),
        }
    }

    /// Marks all persons' windows with agents' panes as untidy. Called before an agent's pane is
    /// closed or moved, because the pane may be in any of these windows.
    pub(super) fn mark_person_windows_untidy(&mut self) {
        self.untidy_windows.extend(self.person_windows.keys());
    }

    /// Tidies the windows that are marked as untidy. The agents' panes in them get equal heights. A
    /// window without agents' panes gets its earlier layout back. After an error, tries again when
    /// the next pane closes or moves.
    pub(super) fn tidy_person_windows(&mut self) {
        for window in std::mem::take(&mut self.untidy_windows) {
            let last_panes = self.person_windows.remove(&window).unwrap_or_default();
            match self.connect().and_then(|server| server.tidy_person_window(window, &last_panes)) {
                Ok(own_panes) if own_panes.is_empty() => {}
                Ok(own_panes) => drop(self.person_windows.insert(window, own_panes)),
                Err(Error::Rejected { .. }) => tracing::debug!("cannot tidy {window}: it is gone"),
                Err(error) => {
                    tracing::debug!("cannot tidy {window}: {error}");
                    self.person_windows.insert(window, last_panes);
                }
            }
        }
    }
}

/// Chooses where the next pane of the team opens in the person's window: right of the person's
/// pane, or below the team's last pane in this window. Returns the window and the place.
/// `team_tags` are the tags of the team's panes.
///
/// Returns `None` if the person's pane does not exist, is hidden, or is in a window of teamd, or if
/// a pane would become too small. Also returns `None` if a pane of the window is zoomed, because
/// tmux does not report the normal sizes of its panes then.
fn choose_place(
    rows: &[PaneRow],
    person: &PersonPane,
    team_tags: &[PaneTag],
) -> Option<(WindowId, PanePlace)> {
    let anchor: PaneId = person.pane.parse().ok()?;
    let is_usable = |row: &&PaneRow| !row.is_hidden && !row.is_teamd_window && !row.is_zoomed;
    let anchor = rows.iter().find(|row| row.pane == anchor).filter(is_usable)?;
    let is_of_team = |tag: &str| team_tags.iter().any(|owner| owner.as_str() == tag);
    let in_window = rows.iter().filter(|row| row.window == anchor.window);
    let column: Vec<&PaneRow> = in_window.filter(|row| row.tag.as_deref().is_some_and(is_of_team)).collect();
    let (min_columns, min_lines) = MIN_PANE;
    let place = match column.last() {
        None => {
            let kept_columns =
                (anchor.pane_width * u32::from(person.kept_percent) / 100).max(MIN_KEPT_COLUMNS);
            // The border takes one column.
            let columns = anchor.pane_width.checked_sub(kept_columns + 1)?;
            let fits = columns >= min_columns && anchor.pane_height >= min_lines;
            fits.then_some(PanePlace::RightOf { anchor: anchor.pane, columns })?
        }
        Some(last) => {
            let lines: u32 = column.iter().map(|row| row.pane_height + 1).sum();
            let needed = (column.len() as u32 + 1) * (min_lines + 1);
            (needed <= lines).then_some(PanePlace::Below(last.pane))?
        }
    };
    Some((anchor.window, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pane: &str, tag: Option<&str>, pane_width: u32, pane_height: u32) -> PaneRow {
        PaneRow {
            pane: pane.parse().unwrap(),
            window: "@1".parse().unwrap(),
            session: "$0".parse().unwrap(),
            pid: 1,
            is_dead: false,
            tag: tag.map(str::to_owned),
            is_zoomed: false,
            is_hidden: false,
            is_teamd_window: false,
            width: 200,
            height: 50,
            pane_width,
            pane_height,
        }
    }

    fn split(rows: &[PaneRow]) -> Option<PanePlace> {
        let person = PersonPane { pane: "%1".to_owned(), server_pid: 1, kept_percent: 30 };
        let team: Vec<PaneTag> = ["ann", "bob", "cat"].map(|tag| tag.parse().unwrap()).to_vec();
        choose_place(rows, &person, &team).map(|(_, split)| split)
    }

    #[test]
    fn persons_pane_keeps_its_share_and_at_least_forty_columns() {
        let right = |width| split(&[row("%1", None, width, 50)]);
        let columns = |columns| Some(PanePlace::RightOf { anchor: "%1".parse().unwrap(), columns });
        assert_eq!(right(200), columns(139));
        assert_eq!(right(101), columns(60));
        assert_eq!(right(100), None);
        assert_eq!(split(&[row("%1", None, 200, 11)]), None);
        assert_eq!(split(&[row("%2", None, 200, 50)]), None, "the person's pane has closed");
        let in_teamd_window = PaneRow { is_teamd_window: true, ..row("%1", None, 200, 50) };
        assert_eq!(split(&[in_teamd_window]), None);
        assert_eq!(split(&[PaneRow { is_zoomed: true, ..row("%1", None, 200, 50) }]), None);
    }

    #[test]
    fn further_panes_stand_below_the_last_one_while_they_fit() {
        let anchor = row("%1", None, 60, 50);
        let below = |last: &str| Some(PanePlace::Below(last.parse().unwrap()));
        assert_eq!(split(&[anchor.clone(), row("%2", Some("ann"), 139, 50)]), below("%2"));
        let two = [anchor.clone(), row("%2", Some("ann"), 139, 25), row("%4", Some("bob"), 139, 24)];
        assert_eq!(split(&two), below("%4"));
        let three: Vec<PaneRow> = [
            anchor,
            row("%2", Some("ann"), 139, 16),
            row("%4", Some("bob"), 139, 16),
            row("%5", Some("cat"), 139, 16),
        ]
        .to_vec();
        assert_eq!(split(&three), None, "a fourth pane would have less than twelve lines");
        let foreign = [row("%1", None, 60, 50), row("%2", Some("other-team"), 139, 50)];
        assert_eq!(split(&foreign), None, "the person's pane is too narrow for a second column");
    }
}

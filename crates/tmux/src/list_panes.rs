//! Lists panes: which panes exist, and in which windows they are.
//!
//! To look up a single pane, this module runs `list-panes` with a filter. It does not use
//! `display-message`, which would print the values of another pane if the pane is missing.
//!
//! tmux prints one row for each pane. The fields of a row are numbers, flags and the pane's tag,
//! which names the pane's agent. None of them can contain a newline, so each row is exactly one
//! line.

use tmux_interface::ListPanes;

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::run_commands_of_one_call::TmuxCall;
use crate::{Error, PaneId, PaneTag, SessionId, TmuxServer, WindowId};

/// Name of the session of hidden panes.
pub(crate) const HIDDEN_SESSION: &str = "_teamd-hidden";

/// One pane of the server, tagged or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRow {
    /// The id of the pane.
    pub pane: PaneId,
    /// The window of the pane.
    pub window: WindowId,
    /// The session of the window. If the window is in several sessions, the first in tmux's list.
    pub session: SessionId,
    /// The id of the process that tmux started in the pane. If that process has exited, another
    /// process may have the same id by now.
    pub pid: u32,
    /// The process has exited, and the pane was kept.
    pub is_dead: bool,
    /// The value of the pane option that holds the tag, or `None` if the pane has no such option.
    /// Characters that are not allowed in a [`PaneTag`] are replaced by `_`.
    pub tag: Option<String>,
    /// A pane of the window is zoomed.
    pub is_zoomed: bool,
    /// The pane is in the session of hidden panes.
    pub is_hidden: bool,
    /// The window was created by this crate, so its layout may be changed.
    pub is_teamd_window: bool,
    /// Width of the window, in columns.
    pub width: u32,
    /// Height of the window, in lines.
    pub height: u32,
    /// Width of the pane, in columns.
    pub pane_width: u32,
    /// Height of the pane, in lines.
    pub pane_height: u32,
}

impl TmuxServer {
    /// Lists every pane of the server once, even a pane that is in several sessions.
    ///
    /// # Errors
    ///
    /// `UnexpectedReply` if one row does not parse. A list without that row would be wrong, because
    /// the pane would seem to be gone.
    pub fn list_panes(&mut self) -> Result<Vec<PaneRow>, Error> {
        let all = CommandList::new(&ListPanes::new().all().format(row_format()).build());
        self.call("list the panes").run(&all)?.parse_rows()
    }

    /// Returns the session of a pane. If the pane is in several sessions, returns the first one
    /// that tmux lists.
    ///
    /// # Errors
    ///
    /// `PaneNotFound` if the pane does not exist.
    pub fn pane_session(&mut self, pane: PaneId) -> Result<SessionId, Error> {
        let row = self.call("find a pane's session").pane_row(pane)?;
        row.map(|row| row.session).ok_or(Error::PaneNotFound { pane })
    }

    /// Lists the panes of the window `window`.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::list_panes`]; `Rejected` if the window does not exist.
    pub fn list_window_panes(&mut self, window: WindowId) -> Result<Vec<PaneRow>, Error> {
        let list = ListPanes::new().target(window.to_string()).format(row_format()).build();
        self.call("list the panes of a window").run(&CommandList::new(&list))?.parse_rows()
    }
}

impl TmuxCall<'_> {
    /// Returns the row of one pane. `None` if the pane does not exist.
    pub(crate) fn pane_row(&mut self, pane: PaneId) -> Result<Option<PaneRow>, Error> {
        let rows = self.run(&list_pane_command(pane))?.parse_rows()?;
        Ok(rows.into_iter().find(|row| row.pane == pane))
    }
}

/// Returns the command that lists one pane, which is selected by a filter. tmux checks the filter
/// for every pane but formats only one row. A full list would be slower, because formatting takes
/// most of the time.
fn list_pane_command(pane: PaneId) -> CommandList {
    let filter = format!("#{{==:#{{pane_id}},{pane}}}");
    CommandList::new(&ListPanes::new().all().format(row_format()).filter(filter).build())
}

impl CommandReply {
    /// Parses the reply to a list command.
    fn parse_rows(self) -> Result<Vec<PaneRow>, Error> {
        let mut rows: Vec<PaneRow> = Vec::new();
        for row in self.parse_lines(parse_row)? {
            // A window that is linked to several sessions is listed for each of them.
            if !rows.iter().any(|known| known.pane == row.pane) {
                rows.push(row);
            }
        }
        Ok(rows)
    }
}

/// Returns the format of a row. [`parse_row`] reads its thirteen fields.
fn row_format() -> String {
    let fields = "#{pane_id} #{window_id} #{session_id} #{pane_pid} #{pane_dead} #{window_zoomed_flag}";
    let session_and_window =
        format!("#{{==:#{{session_name}},{HIDDEN_SESSION}}} #{{==:#{{@teamd_window}},1}}");
    format!(
        "{fields} {session_and_window} #{{window_width}} #{{window_height}} #{{pane_width}} #{{pane_height}} {}",
        PaneTag::TAG_FORMAT
    )
}

/// Parses a line in [`row_format`]. `None` if a field is missing, extra or not valid.
pub(crate) fn parse_row(line: &str) -> Option<PaneRow> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [
        pane,
        window,
        session,
        pid,
        dead,
        zoomed,
        hidden,
        teamd_window,
        width,
        height,
        pane_width,
        pane_height,
        tag,
    ] = fields[..]
    else {
        return None;
    };
    Some(PaneRow {
        pane: pane.parse().ok()?,
        window: window.parse().ok()?,
        session: session.parse().ok()?,
        pid: pid.parse().ok()?,
        is_dead: parse_flag(dead)?,
        tag: Some(tag.to_owned()).filter(|tag| !tag.is_empty()),
        is_zoomed: parse_flag(zoomed)?,
        is_hidden: parse_flag(hidden)?,
        is_teamd_window: parse_flag(teamd_window)?,
        width: width.parse().ok()?,
        height: height.parse().ok()?,
        pane_width: pane_width.parse().ok()?,
        pane_height: pane_height.parse().ok()?,
    })
}

/// Parses a flag of tmux, which is `1`, `0` or empty.
fn parse_flag(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" | "" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_thirteen_fields() {
        let row = parse_row("%5 @3 $0 4711 0 1 0 1 200 50 99 24 ann-1").unwrap();
        assert_eq!((row.pane.to_string().as_str(), row.is_dead, row.is_zoomed), ("%5", false, true));
        assert_eq!((row.is_hidden, row.is_teamd_window), (false, true));
        assert_eq!(row.tag.as_deref(), Some("ann-1"));
        assert_eq!(parse_row("%5 @3 $0 4711  0 0 0 200 50 99 24 ").unwrap().tag, None);
        for line in [
            "",
            "%5 @3 $0 4711 0 1 0 1 200 50 99 24",
            "%5 @3 $0 4711 x 1 0 1 200 50 99 24 a",
            "%5 @3 $0 4711 0 1 0 1 200 50 99 24 a b",
        ] {
            assert!(parse_row(line).is_none(), "{line:?}");
        }
    }
}

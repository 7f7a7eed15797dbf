//! Looking: which panes there are, and where.
//!
//! A list, and no question about one target: asked about a pane that is gone, tmux answers for another one.
//! The fields are numbers, flags and our own owner, so a line is a row.

use tmux_interface::ListPanes;

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::hidden_panes::HIDDEN_SESSION;
use crate::reply::CommandReply;
use crate::{Error, PaneId, PaneTag, SessionId, TmuxServer, WindowId};

/// One pane of the server, ours or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRow {
    /// The pane.
    pub pane: PaneId,
    /// The window it is in.
    pub window: WindowId,
    /// A session that shows that window; the first one listed, if there are several.
    pub session: SessionId,
    /// The process that tmux started in it. Of a dead pane it is a number that may be another's by now.
    pub pid: u32,
    /// The process has ended, and the pane was kept.
    pub is_dead: bool,
    /// Whose it is. What never was an [`Owner`] has `_` in place of the characters that none has.
    pub tag: Option<String>,
    /// A pane of its window is zoomed.
    pub is_zoomed: bool,
    /// It is out of sight: in the session of hidden panes.
    pub is_hidden: bool,
    /// Its window is one that we made; else its shape is its user's affair.
    pub is_teamd_window: bool,
    /// Columns of its window.
    pub width: u32,
    /// Lines of its window.
    pub height: u32,
}

impl TmuxServer {
    /// Every pane of the server, once.
    ///
    /// # Errors
    /// `Unexpected` if one row does not parse: half a list would look like panes that are gone.
    pub fn list_panes(&mut self) -> Result<Vec<PaneRow>, Error> {
        self.list_panes_until(Deadline::for_action("list the panes"))
    }

    /// The session that shows a pane; any, if there are several.
    ///
    /// # Errors
    /// `NoPane`.
    pub fn pane_session(&mut self, pane: PaneId) -> Result<SessionId, Error> {
        let row = self.pane_row(pane, Deadline::for_action("find a pane's session"))?;
        row.map(|row| row.session).ok_or(Error::PaneNotFound { pane })
    }

    /// The panes of one window.
    ///
    /// # Errors
    /// As [`Server::list`]; `Failed` where there is no such window.
    pub fn list_window_panes(&mut self, window: WindowId) -> Result<Vec<PaneRow>, Error> {
        let deadline = Deadline::for_action("list the panes of a window");
        parse_rows(self.run(&list_window_command(window), deadline)?, deadline)
    }

    pub(crate) fn pane_row(&mut self, pane: PaneId, deadline: Deadline) -> Result<Option<PaneRow>, Error> {
        find_row(self.run(&list_pane_command(pane), deadline)?, pane, deadline)
    }

    fn list_panes_until(&mut self, deadline: Deadline) -> Result<Vec<PaneRow>, Error> {
        let all = CommandList::new(&ListPanes::new().all().format(row_format()).build());
        parse_rows(self.run(&all, deadline)?, deadline)
    }
}

/// Asks for the panes of a window.
fn list_window_command(window: WindowId) -> CommandList {
    CommandList::new(&ListPanes::new().target(window.to_string()).format(row_format()).build())
}

/// Asks for one. tmux looks at all panes for it; but it is the spelling of a row that takes it long.
fn list_pane_command(pane: PaneId) -> CommandList {
    let this = format!("#{{==:#{{pane_id}},{pane}}}");
    CommandList::new(&ListPanes::new().all().format(row_format()).filter(this).build())
}

/// What the answer to [`of_pane`] says.
fn find_row(reply: CommandReply, pane: PaneId, deadline: Deadline) -> Result<Option<PaneRow>, Error> {
    Ok(parse_rows(reply, deadline)?.into_iter().find(|row| row.pane == pane))
}

/// What the answer to a list says.
fn parse_rows(reply: CommandReply, deadline: Deadline) -> Result<Vec<PaneRow>, Error> {
    let mut rows: Vec<PaneRow> = Vec::new();
    for line in reply.text(deadline.action())?.lines() {
        let row = parse_row(line).ok_or_else(|| Error::unexpected_reply(deadline.action(), line))?;
        // A window that several sessions show is listed in each.
        if !rows.iter().any(|known| known.pane == row.pane) {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row_format() -> String {
    let fields = "#{pane_id} #{window_id} #{session_id} #{pane_pid} #{pane_dead} #{window_zoomed_flag}";
    let hidden = format!("#{{==:#{{session_name}},{HIDDEN_SESSION}}} #{{==:#{{@teamd_window}},1}}");
    format!("{fields} {hidden} #{{window_width}} #{{window_height}} {}", PaneTag::TAG_FORMAT)
}

pub(crate) fn parse_row(line: &str) -> Option<PaneRow> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [pane, window, session, pid, dead, zoomed, hidden, home, width, height, owner] = fields[..] else {
        return None;
    };
    Some(PaneRow {
        pane: pane.parse().ok()?,
        window: window.parse().ok()?,
        session: session.parse().ok()?,
        pid: pid.parse().ok()?,
        is_dead: parse_flag(dead)?,
        tag: Some(owner.to_owned()).filter(|owner| !owner.is_empty()),
        is_zoomed: parse_flag(zoomed)?,
        is_hidden: parse_flag(hidden)?,
        is_teamd_window: parse_flag(home)?,
        width: width.parse().ok()?,
        height: height.parse().ok()?,
    })
}

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
    fn row_has_eleven_fields() {
        let row = parse_row("%5 @3 $0 4711 0 1 0 1 200 50 ann-1").unwrap();
        assert_eq!((row.pane.to_string().as_str(), row.is_dead, row.is_zoomed), ("%5", false, true));
        assert_eq!((row.is_hidden, row.is_teamd_window), (false, true));
        assert_eq!(row.tag.as_deref(), Some("ann-1"));
        assert_eq!(parse_row("%5 @3 $0 4711  0 0 0 200 50 ").unwrap().tag, None);
        for line in [
            "",
            "%5 @3 $0 4711 0 1 0 1 200 50",
            "%5 @3 $0 4711 x 1 0 1 200 50 a",
            "%5 @3 $0 4711 0 1 0 1 200 50 a b",
        ] {
            assert!(parse_row(line).is_none(), "{line:?}");
        }
    }
}

//! Opens panes of teamd in a window of a person. They stand beside one pane of that window, which
//! is called the anchor.
//!
//! teamd's first pane takes the right part of the anchor. teamd's later panes stand below the first
//! one, all in one column and of equal height. The person's other panes keep their sizes, except
//! that the border labels make the panes at the top one line shorter. When teamd's last pane has
//! closed, the window gets back its earlier layout.
//!
//! The earlier layout is stored in a window option, so it survives this process.

use std::collections::BTreeSet;

use tmux_interface::{
    DisplayMessage, ListPanes, ResizePane, SelectLayout, SetOption, SplitWindow, TmuxCommand,
};

use crate::apply_layout::NOT_ZOOMED;
use crate::border_label::BORDER_FORMAT;
use crate::command_list::CommandList;
use crate::create_pane::{CREATED_FORMAT, split_from_reply, with_program};
use crate::if_shell::{if_else, if_then};
use crate::pane_place::{PanePlace, add_place, join_command};
use crate::run_commands_of_one_call::TmuxCall;
use crate::{CreatedPane, Error, InvalidArgument, PaneId, PaneTag, TmuxServer, WindowId};

/// The window option that holds the layout from before the first pane.
const LAYOUT_OPTION: &str = "@teamd_layout";
/// The window option that says that this crate has switched the border labels on.
const BORDERS_OPTION: &str = "@teamd_borders";
/// Condition: the window has no stored layout.
const NO_LAYOUT: &str = "#{==:#{@teamd_layout},}";
/// Condition: this crate has switched the border labels of the window on.
const OWN_BORDERS: &str = "#{==:#{@teamd_borders},1}";
/// Condition: a pane of the window is zoomed.
const ZOOMED: &str = "#{window_zoomed_flag}";

impl TmuxServer {
    /// Opens a pane in a person's window. If this is teamd's first pane in the window, first stores
    /// the layout of the window, and shows labels on the borders of its panes. The labels are not
    /// shown if the person has set an option for the borders.
    ///
    /// # Errors
    ///
    /// `NoSpace` if the pane to split is too small; `Rejected` if it does not exist;
    /// `InvalidArgument` if `argv` is not valid. After `Timeout` and `Disconnected` the pane may
    /// exist.
    pub fn split_in_person_window(
        &mut self,
        window: WindowId,
        place: PanePlace,
        argv: &[String],
    ) -> Result<CreatedPane, Error> {
        let split = SplitWindow::new().detached().print().format(CREATED_FORMAT).start_directory("/").build();
        let split = CommandList::new(&with_program(add_place(split, window, place), argv)?);
        self.call("split a pane of a person").add_to_person_window(window, place, |call| {
            let created = split_from_reply(call.run_once(&split)?, window)?;
            Ok((created.pane, created))
        })
    }

    /// Moves a pane into a person's window, like [`TmuxServer::split_in_person_window`].
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag `tag`; `Rejected` if the pane to split is too
    /// small or not in the window.
    pub fn join_person_window(
        &mut self,
        window: WindowId,
        place: PanePlace,
        pane: PaneId,
        tag: &PaneTag,
    ) -> Result<(), Error> {
        let join = join_command(pane, window, place);
        self.call("show a pane").add_to_person_window(window, place, |call| {
            call.run_if_tagged(pane, tag, &join)?;
            Ok((pane, ()))
        })
    }

    /// Returns the windows that have a stored layout: windows of persons that have or had panes of
    /// this crate, and whose layout was not restored yet.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or does not reply: `Connect`, `OtherServer`,
    /// `ProgramNotStarted`, `Timeout` or `Disconnected`. `UnexpectedReply` if tmux's list does not
    /// parse.
    pub fn windows_with_stored_layout(&mut self) -> Result<Vec<WindowId>, Error> {
        let mut list = TmuxCommand::new();
        list.name("list-windows").push_param("-a").push_param("-F");
        list.push_param(format!("#{{window_id}} #{{!=:#{{{LAYOUT_OPTION}}},}}"));
        let windows = self.call("list the windows").run(&CommandList::new(&list))?;
        let windows = windows.parse_lines(|line| {
            let (window, has_layout) = line.split_once(' ')?;
            let window = window.parse().ok()?;
            Some((has_layout == "1").then_some(window))
        })?;
        Ok(windows.into_iter().flatten().collect())
    }

    /// Tidies a person's window after a pane of this crate may have left it. Returns the panes of
    /// this crate that are still in the window.
    ///
    /// If none is left, removes all options of this crate from the window, and restores the stored
    /// layout. The layout is not restored if the person has added or closed panes since it was
    /// stored.
    ///
    /// If some are left, compares them with `last_panes`, the result of the last call. If panes
    /// were added or have left since then, gives the panes equal heights. Otherwise, or if
    /// `last_panes` is empty, the heights stay, because a person may have set them.
    ///
    /// # Errors
    ///
    /// `Rejected` if the window does not exist.
    pub fn tidy_person_window(
        &mut self,
        window: WindowId,
        last_panes: &BTreeSet<PaneId>,
    ) -> Result<BTreeSet<PaneId>, Error> {
        let mut call = self.call("tidy a window of a person");
        let panes = call.window_panes(window)?;
        let own: BTreeSet<PaneId> =
            panes.iter().filter(|pane| pane.is_tagged).map(|pane| pane.pane).collect();
        if own.is_empty() {
            call.restore(window, &panes)?;
        } else if !last_panes.is_empty() && own != *last_panes {
            call.spread_column(window, &panes)?;
        }
        Ok(own)
    }
}

/// A pane of a person's window.
struct WindowPane {
    pane: PaneId,
    /// The column at the left edge.
    left: u32,
    /// Height in lines.
    height: u32,
    /// The pane has a tag of this crate.
    is_tagged: bool,
}

impl TmuxCall<'_> {
    /// Adds a pane to a person's window by calling `add`. `add` returns the id of the pane, and a
    /// value that this function passes on to its caller.
    ///
    /// Before teamd's first pane in the window ([`PanePlace::RightOf`]), stores the layout and
    /// shows labels on the borders. After every other pane, gives teamd's panes in the window equal
    /// heights.
    fn add_to_person_window<T>(
        &mut self,
        window: WindowId,
        place: PanePlace,
        add: impl FnOnce(&mut Self) -> Result<(PaneId, T), Error>,
    ) -> Result<T, Error> {
        if !matches!(place, PanePlace::RightOf { .. }) {
            let (pane, added) = add(self)?;
            // The pane was added, so it is no error if its column cannot be given equal heights.
            self.spread_column_with(window, pane).ok();
            return Ok(added);
        }
        self.run(&store_layout_command(window)?)?.into_result()?;
        self.show_borders(window)?;
        let added = add(self);
        // If `add` failed, the stored layout is removed. But after a timeout or a lost connection
        // the pane may exist, so the layout is kept.
        if !matches!(added, Ok(_) | Err(Error::Timeout { .. } | Error::Disconnected { .. })) {
            // The caller gets the error of `add`, which says more than an error of this cleanup.
            self.forget_unused_layout(window).ok();
        }
        added.map(|(_, added)| added)
    }

    fn window_panes(&mut self, window: WindowId) -> Result<Vec<WindowPane>, Error> {
        let format =
            format!("#{{pane_id}} #{{pane_left}} #{{pane_height}} #{{!=:#{{{}}},}}", PaneTag::TAG_OPTION);
        let list = ListPanes::new().target(window.to_string()).format(format).build();
        self.run(&CommandList::new(&list))?.parse_lines(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let [pane, left, height, is_tagged] = fields[..] else { return None };
            let (left, height) = (left.parse().ok()?, height.parse().ok()?);
            Some(WindowPane { pane: pane.parse().ok()?, left, height, is_tagged: is_tagged == "1" })
        })
    }

    /// Gives the panes of this crate equal heights. `new` is a new pane of this crate that has no
    /// tag yet.
    fn spread_column_with(&mut self, window: WindowId, new: PaneId) -> Result<(), Error> {
        let mut panes = self.window_panes(window)?;
        panes.iter_mut().filter(|pane| pane.pane == new).for_each(|pane| pane.is_tagged = true);
        self.spread_column(window, &panes)
    }

    /// Removes the options of this crate from a window, unless other panes of this crate need them.
    fn forget_unused_layout(&mut self, window: WindowId) -> Result<(), Error> {
        let has_own = self.window_panes(window)?.iter().any(|pane| pane.is_tagged);
        if has_own { Ok(()) } else { self.forget_layout(window) }
    }

    /// Gives the panes of this crate, which stand in one column, equal heights. Does nothing if a
    /// pane is zoomed, or if a person has put another pane into the column.
    fn spread_column(&mut self, window: WindowId, panes: &[WindowPane]) -> Result<(), Error> {
        for resize in spread_commands(panes) {
            self.run(&if_then(&window.to_string(), NOT_ZOOMED, &resize)?)?.into_result()?;
        }
        Ok(())
    }

    /// Shows labels on the borders of a window, unless the person already shows border labels or
    /// has set a border option for this window. A border format that the person has set for all
    /// windows does not count: the format that this function sets for the window overrides it.
    fn show_borders(&mut self, window: WindowId) -> Result<(), Error> {
        let own_options = ["pane-border-status", "pane-border-format"].map(|option| {
            let mut show = TmuxCommand::new();
            show.name("show-options").push_param("-wqv").push_param("-t").push_param(window.to_string());
            show.push_param(option);
            CommandList::new(&show)
        });
        let status = DisplayMessage::new().print().target_pane(window.to_string());
        let status = CommandList::new(&status.message("#{pane-border-status}").build());
        let [own_status, own_format] = own_options;
        let replies = self.run_array(&[own_status, own_format, status])?;
        let [own_status, own_format, status] = replies.map(|reply| reply.text().unwrap_or_default());
        if !own_status.is_empty() || !own_format.is_empty() || status != "off" {
            return Ok(());
        }
        let set = |option: &'static str, value: &'static str| {
            SetOption::new().window().target_pane(window.to_string()).option(option).value(value).build()
        };
        let commands = CommandList::new(&set("pane-border-status", "top"))
            .with_command(&set("pane-border-format", BORDER_FORMAT))
            .with_command(&set(BORDERS_OPTION, "1"));
        self.run(&commands)?.into_result()
    }

    /// Ends the use of a person's window by this crate. First removes the border labels, because
    /// the stored layout has no lines for them. Then applies the stored layout, if the window still
    /// has exactly the panes of that layout. A zoomed window stays zoomed.
    fn restore(&mut self, window: WindowId, panes: &[WindowPane]) -> Result<(), Error> {
        let target = window.to_string();
        let layout = DisplayMessage::new().print().target_pane(target.as_str());
        let layout = layout.message(format!("#{{{LAYOUT_OPTION}}}")).build();
        let layout = self.run(&CommandList::new(&layout))?.text()?;
        self.forget_layout(window)?;
        let panes: Vec<PaneId> = panes.iter().map(|pane| pane.pane).collect();
        if panes_of_layout(&layout).as_ref() != Some(&panes) {
            return Ok(());
        }
        let select = CommandList::new(
            &SelectLayout::new().target_pane(target.as_str()).layout_name(layout.as_str()).build(),
        );
        // `select-layout` ends the zoom.
        let zoom = ResizePane::new().target_pane(target.as_str()).zoom().build();
        let zoomed = select.clone().with_command(&zoom);
        self.run(&if_else(&target, ZOOMED, &zoomed, &select)?)?.into_result()
    }

    /// Removes the options of this crate from a window.
    fn forget_layout(&mut self, window: WindowId) -> Result<(), Error> {
        let target = window.to_string();
        let unset = |option: &'static str| {
            SetOption::new().window().unset().target_pane(target.as_str()).option(option).build()
        };
        let borders = ["pane-border-status", "pane-border-format", BORDERS_OPTION];
        let [status, format, mark] = borders.map(unset);
        let borders = CommandList::new(&status).with_command(&format).with_command(&mark);
        self.run(&if_then(&target, OWN_BORDERS, &borders)?)?.into_result()?;
        self.run(&CommandList::new(&unset(LAYOUT_OPTION)))?.into_result()
    }
}

/// Returns the command that stores the layout of a window, unless one is stored.
fn store_layout_command(window: WindowId) -> Result<CommandList, InvalidArgument> {
    let target = window.to_string();
    let store = SetOption::new().window().format().target_pane(target.as_str());
    let store = store.option(LAYOUT_OPTION).value("#{window_layout}").build();
    if_then(&target, NO_LAYOUT, &CommandList::new(&store))
}

/// Returns the commands that give the panes of this crate, which stand in one column, equal
/// heights. Each command moves the lower border of one pane. The first command is for the topmost
/// pane. Returns no commands if a person has put another pane into the column.
fn spread_commands(panes: &[WindowPane]) -> Vec<CommandList> {
    let own: Vec<&WindowPane> = panes.iter().filter(|pane| pane.is_tagged).collect();
    let Some(left) = own.first().map(|pane| pane.left) else { return Vec::new() };
    let is_one_column = panes.iter().all(|pane| pane.is_tagged == (pane.left == left));
    let lines: u32 = own.iter().map(|pane| pane.height).sum();
    let count = own.len() as u32;
    let heights = (0..count).map(|at| lines / count + u32::from(at < lines % count));
    let resizes = own.iter().zip(heights).take(own.len() - 1).map(|(pane, height)| {
        let mut resize = ResizePane::new().target_pane(pane.pane.to_string()).build();
        resize.push_param("-y").push_param(height.to_string());
        CommandList::new(&resize)
    });
    if is_one_column { resizes.collect() } else { Vec::new() }
}

/// Returns the panes of a layout, a text that tmux prints for `#{window_layout}`. The text is a
/// checksum and nested cells. A cell is `WIDTHxHEIGHT,LEFT,TOP`, followed by the number of its
/// pane, or by its inner cells in brackets. `None` if the text is not a layout.
fn panes_of_layout(layout: &str) -> Option<Vec<PaneId>> {
    let (_, cells) = layout.split_once(',')?;
    if !cells.chars().all(|c| c.is_ascii_digit() || "x,{}[]".contains(c)) {
        return None;
    }
    // The text of a layout is split into words. Each cell begins with three words: its size, column
    // and row, such as `99x25`, `101` and `0`. If the next word is a number, the cell is a pane,
    // and this is the pane's number. If the next word has an `x`, it is the size of the first inner
    // cell, and the cell itself is no pane.
    let words: Vec<&str> = cells.split([',', '{', '}', '[', ']']).collect();
    let cells = words.iter().enumerate().filter(|(_, word)| word.contains('x'));
    let next = cells.map(|(at, _)| words.get(at + 3).copied().unwrap_or_default());
    let numbers = next.filter(|word| !word.is_empty() && !word.contains('x'));
    numbers.map(|number| format!("%{number}").parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_is_spread_unless_it_has_a_pane_of_a_person() {
        let pane = |id: u32, left, height, is_tagged| WindowPane {
            pane: format!("%{id}").parse().unwrap(),
            left,
            height,
            is_tagged,
        };
        let resize_lines = |panes: &[WindowPane]| -> Vec<String> {
            spread_commands(panes).iter().map(|resize| resize.to_command_line().unwrap()).collect()
        };
        let column =
            [pane(1, 0, 49, false), pane(2, 61, 24, true), pane(3, 61, 12, true), pane(4, 61, 11, true)];
        let expected =
            ["\"resize-pane\" \"-t\" \"%2\" \"-y\" \"16\"", "\"resize-pane\" \"-t\" \"%3\" \"-y\" \"16\""];
        assert_eq!(resize_lines(&column), expected);
        assert!(resize_lines(&column[..2]).is_empty(), "a single pane fills its column");
        assert!(
            resize_lines(&[pane(2, 61, 24, true), pane(3, 61, 24, false), pane(4, 61, 24, true)]).is_empty()
        );
        assert!(resize_lines(&[pane(1, 0, 49, false)]).is_empty());
    }

    #[test]
    fn panes_of_a_layout_are_its_leaves() {
        let panes = |layout: &str| -> Option<Vec<String>> {
            panes_of_layout(layout).map(|panes| panes.iter().map(ToString::to_string).collect())
        };
        assert_eq!(panes("b25d,80x24,0,0,0").unwrap(), ["%0"]);
        let nested = "4a5c,200x50,0,0{100x50,0,0,3,99x50,101,0[99x25,101,0,14,99x24,101,26,15]}";
        assert_eq!(panes(nested).unwrap(), ["%3", "%14", "%15"]);
        assert_eq!(panes(""), None);
        assert_eq!(panes("b25d,80x24,0,0,0;kill-server"), None);
    }
}

//! The screen, as a plain function of the state. Whatever comes from others goes through `Manner` on its way. State is in
//! words, colours only repeat it.

mod row;

use crate::event::Outcome;
use crate::page;
use crate::sight::{Daemon, Found, Part};
use crate::state::{Asks, Line, Prompt, Read, State, View, Whole};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// What the help says.
const HELP: &[&str] = &[
    "up down j k      one line             PgUp PgDn g G  a page, begin, end",
    "Tab, Shift-Tab   the next part, the one before",
    "Enter            all of it: member and pane, message, request, task",
    "Esc              back; in the lists: no filter any more",
    "s                send a message to that member (its sender, owner, asker)",
    "x                ask it to shut down; the reason may be empty",
    "K                kill it: K once more does it, any other key does not",
    "a                go to its pane; tmux says how to come back",
    "y  n             a request's yes and no, once it was shown to its end",
    "/                show only what has these words in it",
    "^L               draw all of it again",
    "q                leave; the team goes on",
    "",
    "Times are clock times: since when something is so.",
];

/// Everything.
pub(crate) fn draw(state: &State, buffer: &mut Buffer) {
    let (width, height) = state.size;
    let mut pen = Pen { state, buffer };
    if page::is_too_small(state.size) {
        return pen.put(0, 0, &[("too small".to_owned(), Style::new())]);
    }
    pen.head();
    match &state.view {
        View::Lists => pen.lists(),
        View::Whole(whole) => pen.whole(whole),
        View::Help => pen.help(),
    }
    pen.told(height - 2);
    pen.last_line(height - 1, width);
}

/// What a line is made of.
type Spans = Vec<(String, Style)>;

struct Pen<'a> {
    state: &'a State,
    buffer: &'a mut Buffer,
}

impl Pen<'_> {
    /// A line from column `x` on, cut at the edge with a mark. The texts are harmless already.
    fn put(&mut self, x: u16, y: u16, spans: &[(String, Style)]) {
        let (width, height) = self.state.size;
        if y >= height || !self.buffer.area.contains((x, y).into()) {
            return;
        }
        let mut at = x;
        for (text, style) in spans {
            let room = usize::from(width.saturating_sub(at));
            let fits = page::fitting(text, room);
            if room == 0 || (fits < text.len() && room < 2) {
                return self.cut(width - 1, y, *style);
            }
            let end = if fits < text.len() { page::fitting(text, room - 1) } else { fits };
            (at, _) = self.buffer.set_stringn(at, y, &text[..end], room, *style);
            if fits < text.len() {
                return self.cut(at, y, *style);
            }
        }
    }

    fn cut(&mut self, x: u16, y: u16, style: Style) {
        self.buffer.set_stringn(x, y, self.state.manner.glyph("…", "~"), 1, style);
    }

    fn head(&mut self) {
        let manner = self.state.manner;
        let warning = manner.color(Color::Red).add_modifier(Modifier::BOLD);
        let sight = &self.state.sight;
        let mut spans = vec![(format!("{}  ", self.state.team), Style::new().add_modifier(Modifier::BOLD))];
        match (sight.team, sight.daemon) {
            (Found::Gone, _) => spans.push(("no such team any more".to_owned(), warning)),
            (_, Daemon::Unasked) => spans.push(("looking".to_owned(), Style::new())),
            (_, Daemon::Answers) => {}
            (_, Daemon::Down) => {
                let up = self.state.typed.without_team().command(&["up"]);
                spans.push((format!("teamd is down ({up}): this is what the files say"), warning));
            }
            (_, Daemon::Silent) => {
                spans.push(("teamd does not answer: this is what the files say".to_owned(), warning));
            }
        }
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        if sight.daemon == Daemon::Answers {
            let active = sight.members.iter().filter(|member| member.state.starts_with("active")).count();
            spans.push((format!("{} active", count(active, "member", "members")), Style::new()));
        }
        match sight.requests.as_ref().map_or(0, Vec::len) {
            _ if sight.hides_requests() => {
                let requests = self.state.typed.command(&["requests"]);
                spans.push((format!("  requests can't be read: {requests} says why"), warning));
            }
            0 => {}
            waiting => {
                let waits = count(waiting, "request waits", "requests wait");
                spans.push((format!("  {waits}"), manner.color(Color::Yellow).add_modifier(Modifier::BOLD)));
            }
        }
        if !self.state.filter.is_empty() {
            spans.push((format!("  only: {}", manner.line(&self.state.filter)), Style::new()));
        }
        if !sight.budget.is_empty() {
            spans.push((format!("  {}", manner.line(&sight.budget)), Style::new()));
        }
        self.put(0, 0, &spans);
    }

    fn lists(&mut self) {
        let mut y = 1;
        for (part, lines) in page::shares(self.state) {
            self.title(y, part);
            y += 1;
            self.list(y, part, lines);
            y += u16::try_from(lines).unwrap_or(0);
        }
    }

    /// The part that has the keys stands in brackets.
    fn title(&mut self, y: u16, part: Part) {
        let (shown, all) = (self.state.items(part).len(), self.state.sight.items(part).len());
        let count = match shown == all {
            // That nobody waits is another thing.
            _ if part == Part::Requests && self.state.sight.hides_requests() => "?".to_owned(),
            true => all.to_string(),
            false => format!("{shown} of {all}"),
        };
        let has_keys = part == self.state.part && self.state.view == View::Lists;
        let text = match has_keys {
            true => format!("[{} {count}]", part.word()),
            false => format!(" {} {count} ", part.word()),
        };
        self.ruled(y, &text, if has_keys { Modifier::BOLD } else { Modifier::empty() });
    }

    fn ruled(&mut self, y: u16, text: &str, modifier: Modifier) {
        let rule = self.state.manner.glyph("─", "-");
        let style = Style::new().add_modifier(modifier);
        let rest = usize::from(self.state.size.0).saturating_sub(2 + ratatui::text::Span::raw(text).width());
        self.put(
            0,
            y,
            &[(rule.repeat(2), Style::new()), (text.to_owned(), style), (rule.repeat(rest), Style::new())],
        );
    }

    /// The chosen one is always among the lines.
    fn list(&mut self, y: u16, part: Part, lines: usize) {
        let at = self.state.at(part).unwrap_or(0);
        let items = self.state.items(part);
        let first = match part {
            // The stream stands at its end.
            Part::Messages => (at + 1).saturating_sub(lines).max(items.len().saturating_sub(lines).min(at)),
            _ => (at + 1).saturating_sub(lines),
        };
        for (line, item) in items.iter().skip(first).take(lines).enumerate() {
            let chosen = first + line == at && part == self.state.part;
            let mut spans = row::of(self.state, *item);
            spans.insert(0, (if chosen { ">" } else { " " }.to_owned(), Style::new()));
            let y = y + u16::try_from(line).unwrap_or(0);
            self.put(0, y, &spans);
            if chosen {
                let area = ratatui::layout::Rect::new(0, y, self.state.size.0, 1);
                self.buffer.set_style(area, Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }

    fn whole(&mut self, whole: &Whole) {
        let lines = page::lines(whole, self.state.size, self.state.manner);
        let room = page::room(self.state.size);
        let last = (whole.top + room).min(lines.len());
        let what = whole.part.word().trim_end_matches('s');
        self.ruled(
            1,
            &format!("[{what}, lines {} to {last} of {}]", whole.top + 1, lines.len()),
            Modifier::BOLD,
        );
        for (y, line) in (2..).zip(&lines[whole.top.min(lines.len())..last]) {
            self.put(0, y, &[(line.clone(), Style::new())]);
        }
    }

    fn help(&mut self) {
        self.ruled(1, "[help]", Modifier::BOLD);
        for (y, line) in (2..self.state.size.1 - 2).zip(HELP) {
            self.put(1, y, &[((*line).to_owned(), Style::new())]);
        }
    }

    fn told(&mut self, y: u16) {
        let Some(told) = &self.state.told else { return };
        let style = match told.outcome {
            Outcome::Done => self.state.manner.color(Color::Green),
            Outcome::Failed => self.state.manner.color(Color::Red),
        };
        // A long one is worth more than what is above it.
        let lines = page::told_lines(&told.text, self.state.size, self.state.manner);
        let first = y + 1 - u16::try_from(lines.len()).unwrap_or(1);
        for (y, line) in (first..).zip(&lines) {
            let blank = " ".repeat(usize::from(self.state.size.0));
            self.put(0, y, &[(blank, Style::new())]);
            self.put(0, y, &[(line.clone(), style)]);
        }
    }

    fn last_line(&mut self, y: u16, width: u16) {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        match &self.state.line {
            Line::Keys => self.put(0, y, &[(self.keys().to_owned(), Style::new())]),
            Line::Sure(name) => {
                let name = self.state.manner.line(name);
                self.put(
                    0,
                    y,
                    &[(format!("kill {name}: K once more does it, any other key does not"), strong)],
                );
            }
            Line::Prompt(prompt) => {
                let text = self.prompt(prompt);
                // Of a long one its end is seen, where it is typed.
                let over = ratatui::text::Span::raw(&text).width().saturating_sub(usize::from(width) - 1);
                let shown =
                    text[page::fitting(&text, over).min(text.len()) * usize::from(over > 0)..].to_owned();
                let caret = Style::new().add_modifier(Modifier::REVERSED);
                self.put(0, y, &[(shown, strong), (" ".to_owned(), caret)]);
            }
        }
    }

    fn prompt(&self, Prompt { what, text }: &Prompt) -> String {
        let ask = match what {
            Asks::Send(to) => format!("message to {to}: "),
            Asks::Shutdown(name) => format!("ask {name} to shut down (Enter asks, Esc does not), why: "),
            Asks::Deny(_) => "no, since: ".to_owned(),
            Asks::Filter => "only: ".to_owned(),
        };
        self.state.manner.line(&format!("{ask}{text}"))
    }

    fn keys(&self) -> &'static str {
        match &self.state.view {
            View::Help => "any key: back",
            View::Lists => "Tab Enter:whole s:send x:shutdown K:kill a:attach /:filter ?:help q:quit",
            View::Whole(whole) if whole.part == Part::Requests => {
                match self.state.read(whole) == Read::ToItsEnd {
                    true => "y:approve n:deny s:send K:kill a:attach Esc:back",
                    false => "Space, arrows: to its end, then it can be answered   Esc:back",
                }
            }
            View::Whole(_) => "Space, arrows: scroll   s:send x:shutdown K:kill a:attach Esc:back",
        }
    }
}

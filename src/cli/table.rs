//! Tables that fit the terminal: wide columns give way, with `…` where something was cut.

use std::fmt::Write as _;

use super::palette;
use super::screen::Terminal;
use super::text::{cut, harmless, width};

/// Between two columns.
const GAP: usize = 2;
/// No column is made narrower than this to make room.
const LEAST: usize = 8;

/// Rows under headings.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Column {
    title: &'static str,
    right: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    look: Look,
    /// `#rrggbb`, shown as colours where the terminal can.
    palette: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Look {
    #[default]
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
}

impl Look {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
        }
    }
}

impl Cell {
    pub(super) fn look(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    pub(super) fn palette(colors: &[String]) -> Self {
        Self { text: colors.join(" "), look: Look::Plain, palette: colors.to_vec() }
    }

    fn natural(&self, terminal: Terminal) -> usize {
        if self.swatches(terminal) { self.palette.len() * 2 } else { width(&self.text) }
    }

    fn swatches(&self, terminal: Terminal) -> bool {
        terminal.color && !self.palette.is_empty()
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        // One row is one line.
        let text = harmless(&text.to_string()).replace('\n', " ");
        Self { text, ..Self::default() }
    }
}

impl Table {
    /// A title that begins with `>` has its column flush right. Without any titles no heading is
    /// printed.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        let column = |title: &&'static str| match title.strip_prefix('>') {
            Some(title) => Column { title, right: true },
            None => Column { title, right: false },
        };
        Self { columns: titles.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Two columns: names and values.
    pub(super) fn sheet() -> Self {
        Self::new(&["", ""])
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.into());
    }

    /// A line of a sheet.
    pub(super) fn field(&mut self, name: &str, value: impl Into<Cell>) {
        self.row([Cell::from(name).look(Look::Dim), value.into()]);
    }

    pub(super) fn render(&self, terminal: Terminal) -> String {
        let widths = self.widths(terminal);
        let mut out = String::new();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let titles: Vec<Cell> =
                self.columns.iter().map(|one| Cell::from(one.title).look(Look::Bold)).collect();
            self.line(&mut out, &titles, &widths, terminal);
        }
        for row in &self.rows {
            self.line(&mut out, row, &widths, terminal);
        }
        out
    }

    /// The natural widths, less what is too much: the widest columns give first.
    fn widths(&self, terminal: Terminal) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|one| width(one.title)).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(cell.natural(terminal));
            }
        }
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > terminal.columns {
            match widths.iter_mut().filter(|width| **width > LEAST).max() {
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], terminal: Terminal) {
        for (at, ((cell, &wide), column)) in cells.iter().zip(widths).zip(&self.columns).enumerate()
        {
            let used = cell.natural(terminal).min(wide);
            let fill = " ".repeat(wide - used);
            if column.right {
                out.push_str(&fill);
            }
            paint(out, cell, wide, terminal);
            if at + 1 < widths.len() {
                if !column.right {
                    out.push_str(&fill);
                }
                out.push_str(&" ".repeat(GAP));
            }
        }
        let end = out.trim_end_matches(' ').len();
        out.truncate(end);
        out.push('\n');
    }
}

fn paint(out: &mut String, cell: &Cell, wide: usize, terminal: Terminal) {
    if cell.swatches(terminal) {
        for color in cell.palette.iter().take(wide / 2) {
            let channel = |at| u8::from_str_radix(color.get(at..at + 2).unwrap_or("0"), 16);
            let (red, green, blue) = (channel(1), channel(3), channel(5));
            let color = [red, green, blue].map(Result::unwrap_or_default);
            write!(out, "\x1b[48;{}m  ", palette::code(color, terminal))
                .expect("a String takes all");
        }
        out.push_str("\x1b[0m");
        return;
    }
    let text = cut(&cell.text, wide);
    match cell.look {
        look if terminal.color && look != Look::Plain && !text.is_empty() => {
            write!(out, "\x1b[{}m{text}\x1b[0m", look.code()).expect("a String takes all");
        }
        _ => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal { columns: 80, color: false, true_color: false };

    fn table() -> Table {
        let mut table = Table::new(&[">ID", "NAME", "TAGS"]);
        table.row([7.into(), "sunset over the long bridge".into(), "sea, sky".into()]);
        table.row([112.into(), "夕焼け".into(), "".into()]);
        table
    }

    #[test]
    fn tables_fit_the_terminal() {
        #[track_caller]
        fn check(columns: usize, expected: &str) {
            let found = table().render(Terminal { columns, ..PLAIN });
            assert_eq!(found, expected);
            assert!(found.lines().all(|line| width(line) <= columns.max(23)), "{found}");
        }
        check(
            80,
            " ID  NAME                         TAGS\n  \
             7  sunset over the long bridge  sea, sky\n\
             112  夕焼け\n",
        );
        check(
            30,
            " ID  NAME             TAGS\n  \
             7  sunset over th…  sea, sky\n\
             112  夕焼け\n",
        );
        check(
            1,
            " ID  NAME      TAGS\n  \
             7  sunset …  sea, sky\n\
             112  夕焼け\n",
        );
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let mut table = Table::sheet();
        table.field("colors", Cell::palette(&["#ff0000".to_owned(), "#0000ff".to_owned()]));
        assert_eq!(table.render(PLAIN), "colors  #ff0000 #0000ff\n");
        let all = Terminal { columns: 80, color: true, true_color: true };
        assert_eq!(
            table.render(all),
            "\x1b[2mcolors\x1b[0m  \x1b[48;2;255;0;0m  \x1b[48;2;0;0;255m  \x1b[0m\n"
        );
        let few = Terminal { true_color: false, ..all };
        assert_eq!(
            table.render(few),
            "\x1b[2mcolors\x1b[0m  \x1b[48;5;196m  \x1b[48;5;21m  \x1b[0m\n"
        );
    }

    #[test]
    fn names_of_files_do_no_harm() {
        let mut table = Table::sheet();
        table.field("name", "a\x1b[31m\nb");
        assert_eq!(table.render(PLAIN), "name  a\u{fffd}[31m b\n");
    }
}

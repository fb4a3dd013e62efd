//! Rows of cells: lines with tabs for scripts, and tables that fit the terminal.
//!
//! On a terminal wide columns are cut, with `…`. If that is not enough, the last columns are dropped;
//! empty columns always are.

use std::fmt::Write as _;

use serde_json::Value;

use super::template::written;
use super::terminal::Terminal;
use super::terminal::{color_code, cut, escaped, harmless, width, wrapped};
use crate::color::{Rgb, hue_group, parse};

/// The names of hues, and the hue groups that each includes. A colour is shown with the first name that
/// includes its group.
pub(super) const HUES: [(&str, &[u8]); 9] = [
    ("red", &[0, 11]),
    ("orange", &[1]),
    ("yellow", &[2]),
    ("green", &[3, 4, 5]),
    ("cyan", &[6]),
    ("blue", &[7, 8]),
    ("purple", &[9]),
    ("pink", &[10, 11]),
    ("grey", &[99]),
];

fn hue_name(color: Rgb) -> &'static str {
    let group = hue_group(&[color]);
    let named = HUES.iter().find(|(_, groups)| groups.contains(&group));
    named.map_or("grey", |(name, _)| name)
}

/// Spaces between two columns.
const GAP: usize = 2;
/// The minimum width of a column that is cut. The last columns are dropped before names get shorter.
const LEAST: usize = 16;
/// The same for a last column that is never cut, such as a number or a keyword.
const LEAST_BESIDE_WHOLE: usize = 24;

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
    /// Whether the column is never cut, as numbers and times would mislead.
    whole: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    /// The cell for scripts: not cut, and as a program reads it.
    raw: String,
    look: CellStyle,
    /// Colours as `#rrggbb`, shown as swatches if the terminal has colours.
    palette: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CellStyle {
    #[default]
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
}

impl CellStyle {
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
    pub(super) fn look(mut self, look: CellStyle) -> Self {
        self.look = look;
        self
    }

    /// Sets the text that scripts get instead.
    pub(super) fn raw(mut self, raw: impl ToString) -> Self {
        self.raw = raw.to_string();
        self
    }

    /// A field of a record: lists have commas between their items.
    pub(super) fn value(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::list(&items.iter().map(written).collect::<Vec<_>>()),
            // 1, not 1.0.
            Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().into(),
            value => written(value).into(),
        }
    }

    /// Strings, with commas between.
    pub(super) fn list(items: &[String]) -> Self {
        Self::from(items.join(", ")).raw(items.join(","))
    }

    pub(super) fn palette(colors: &Value) -> Self {
        let colors: Vec<String> = colors
            .as_array()
            .into_iter()
            .flatten()
            .map(written)
            .collect();
        let words = colors.iter().map(|color| match parse(color) {
            Some(rgb) => format!("{color} {}", hue_name(rgb)),
            None => color.clone(),
        });
        let text = Self::from(words.collect::<Vec<_>>().join(", "));
        Self {
            palette: colors.clone(),
            ..text.raw(colors.join(","))
        }
    }

    fn natural(&self, terminal: Terminal) -> usize {
        if self.swatches(terminal) {
            self.palette.len() * 2
        } else {
            width(&self.text)
        }
    }

    fn swatches(&self, terminal: Terminal) -> bool {
        terminal.color && !self.palette.is_empty()
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        let raw = text.to_string();
        // One row is one line.
        let text = harmless(&raw).replace('\n', " ");
        Self {
            text,
            raw,
            ..Self::default()
        }
    }
}

impl Table {
    /// A column whose title begins with `>` is flush right and never cut, with `=` it is never cut.
    /// Without any titles no heading is printed.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        let column = |&title: &&'static str| Column {
            title: title.trim_start_matches(['>', '=']),
            right: title.starts_with('>'),
            whole: title.starts_with(['>', '=']),
        };
        Self {
            columns: titles.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Two columns of names and values, which are folded and never cut, so that a path can be copied.
    pub(super) fn sheet() -> Self {
        Self::new(&["=", "="])
    }

    pub(super) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// A line of a sheet.
    pub(super) fn field(&mut self, name: &str, value: impl Into<Cell>) {
        self.row([Cell::from(name).look(CellStyle::Dim), value.into()]);
    }

    /// The number of lines on a terminal, without a heading.
    pub(super) fn lines(&self) -> usize {
        self.rows.len()
    }

    /// All rows, each as a line with tabs.
    pub(super) fn rows(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().map(|cell| escaped(&cell.raw));
            out.push_str(&cells.collect::<Vec<_>>().join("\t"));
            out.push('\n');
        }
        out
    }

    pub(super) fn render(&self, terminal: Terminal) -> String {
        let shown = self.shown(terminal);
        let mut out = String::new();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let titles: Vec<Cell> = self
                .columns
                .iter()
                .map(|one| Cell::from(one.title).look(CellStyle::Bold))
                .collect();
            self.line(&mut out, &titles, &shown, terminal);
        }
        for row in &self.rows {
            match row.split_last() {
                Some((last, before)) if self.is_sheet() && !last.swatches(terminal) => {
                    let before_it = shown.iter().filter(|(at, _)| *at < before.len());
                    let taken: usize = before_it.map(|(_, wide)| wide + GAP).sum();
                    let room = terminal.columns.saturating_sub(taken);
                    let lines = wrapped(&last.text, room.max(LEAST));
                    let lines = lines.iter().map(String::as_str);
                    let mut cells = row.clone();
                    for line in lines.chain(last.text.is_empty().then_some("")) {
                        cells[before.len()] = Cell::from(line).look(last.look);
                        self.line(&mut out, &cells, &shown, terminal);
                        cells.fill(Cell::default());
                    }
                }
                _ => self.line(&mut out, row, &shown, terminal),
            }
        }
        out
    }

    /// Whether no column is cut: the last one is folded.
    fn is_sheet(&self) -> bool {
        self.columns
            .iter()
            .all(|column| column.whole && !column.right)
    }

    /// The indices and widths of the columns that are shown. If the terminal is too narrow, the widest
    /// columns are cut first.
    fn shown(&self, terminal: Terminal) -> Vec<(usize, usize)> {
        let is_sheet = self.is_sheet();
        let natural = |at: usize| {
            // Without colours, a list has no palette column: as words it would leave too little space
            // for the names.
            let shown = |cell: &&Cell| is_sheet || terminal.color || cell.palette.is_empty();
            let cells = self.rows.iter().map(|row| &row[at]).filter(shown);
            let cells = cells.map(|cell| cell.natural(terminal));
            cells
                .max()
                .filter(|&widest| widest > 0 || self.rows.is_empty())
        };
        let mut shown: Vec<(usize, usize)> = (0..self.columns.len())
            .filter_map(|at| Some((at, natural(at)?.max(width(self.columns[at].title)))))
            .collect();
        let least = |&(at, wide): &(usize, usize), limit: usize| {
            if self.columns[at].whole {
                wide
            } else {
                wide.min(limit)
            }
        };
        let room = |shown: &[(usize, usize)]| {
            terminal
                .columns
                .saturating_sub(GAP * shown.len().saturating_sub(1))
        };
        while let [_, _, .., last] = shown.as_slice()
            && !is_sheet
        {
            let limit = if self.columns[last.0].whole {
                LEAST_BESIDE_WHOLE
            } else {
                LEAST
            };
            if shown.iter().map(|one| least(one, limit)).sum::<usize>() <= room(&shown) {
                break;
            }
            shown.pop();
        }
        while shown.iter().map(|(_, wide)| wide).sum::<usize>() > room(&shown) {
            let giving = shown.iter_mut().filter(|one| one.1 > least(one, LEAST));
            match giving.max_by_key(|one| one.1) {
                Some(widest) => widest.1 -= 1,
                None => break,
            }
        }
        shown
    }

    fn line(&self, out: &mut String, cells: &[Cell], shown: &[(usize, usize)], terminal: Terminal) {
        for (place, &(at, wide)) in shown.iter().enumerate() {
            let cell = &cells[at];
            let fill = " ".repeat(wide - cell.natural(terminal).min(wide));
            let right = self.columns[at].right;
            if right {
                out.push_str(&fill);
            }
            paint(out, cell, wide, terminal);
            if place + 1 < shown.len() {
                if !right {
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
            write!(out, "\x1b[48;{}m  ", color_code(color, terminal)).expect("a String takes all");
        }
        out.push_str("\x1b[0m");
        return;
    }
    let text = cut(&cell.text, wide);
    match cell.look {
        look if terminal.color && look != CellStyle::Plain && !text.is_empty() => {
            write!(out, "\x1b[{}m{text}\x1b[0m", look.code()).expect("a String takes all");
        }
        _ => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal {
        columns: 80,
        color: false,
        true_color: false,
    };

    fn table() -> Table {
        let mut table = Table::new(&[">ID", "NAME", "TAGS"]);
        table.row([
            7.into(),
            "sunset over the long bridge".into(),
            "sea, sky".into(),
        ]);
        table.row([112.into(), "夕焼け".into(), "".into()]);
        table
    }

    #[test]
    fn tables_fit_the_terminal() {
        #[track_caller]
        fn check(columns: usize, expected: &str) {
            let found = table().render(Terminal { columns, ..PLAIN });
            assert_eq!(found, expected);
            assert!(found.lines().all(|line| width(line) <= columns), "{found}");
        }
        check(
            80,
            " ID  NAME                         TAGS\n  \
             7  sunset over the long bridge  sea, sky\n\
             112  夕焼け\n",
        );
        check(
            32,
            " ID  NAME               TAGS\n  \
             7  sunset over the …  sea, sky\n\
             112  夕焼け\n",
        );
        check(
            21,
            " ID  NAME\n  \
             7  sunset over the…\n\
             112  夕焼け\n",
        );
    }

    #[test]
    fn scripts_get_whole_rows() {
        let mut table = Table::new(&[">ID", "NAME", ">SIZE", "TAGS"]);
        let size = Cell::from("1.0 KiB").raw(1024);
        table.row([
            7.into(),
            "a\tb\nc".into(),
            size,
            Cell::list(&["x".into(), "y z".into()]),
        ]);
        table.row([8.into(), "".into(), "".into(), Cell::list(&[])]);
        assert_eq!(table.rows(), "7\ta\\tb\\nc\t1024\tx,y z\n8\t\t\t\n");
        assert_eq!(Table::new(&["A"]).rows(), "");
    }

    #[test]
    fn misleading_and_empty_columns_are_hidden() {
        let mut table = Table::new(&["=WHEN", "NAME", "TAGS", "BY"]);
        table.row([
            "2026-11-21 12:49".into(),
            "a long name".into(),
            "".into(),
            "random".into(),
        ]);
        let found = |columns| table.render(Terminal { columns, ..PLAIN });
        assert_eq!(
            found(80),
            "WHEN              NAME         BY\n\
             2026-11-21 12:49  a long name  random\n"
        );
        assert_eq!(
            found(30),
            "WHEN              NAME\n2026-11-21 12:49  a long name\n"
        );
        let mut table = Table::new(&["NAME", "BY", "=BACKEND"]);
        table.row([
            "a name of 21 columns.".into(),
            "hand".into(),
            "builtin".into(),
        ]);
        // The name is not cut for the last column.
        let found = table.render(Terminal {
            columns: 34,
            ..PLAIN
        });
        assert_eq!(
            found,
            "NAME                   BY\na name of 21 columns.  hand\n"
        );
        let mut sheet = Table::sheet();
        sheet.field("file", "/a/long/path/to/a/picture.png");
        sheet.field("tags", "");
        let whole = "file  /a/long/path/to/a/picture.png\ntags\n";
        assert_eq!(
            sheet.render(Terminal {
                columns: 20,
                ..PLAIN
            }),
            whole
        );
    }

    #[test]
    fn colours_are_printed_only_if_the_terminal_has_them() {
        let mut table = Table::sheet();
        table.field(
            "colors",
            Cell::palette(&serde_json::json!(["#ff0000", "#0000ff"])),
        );
        assert_eq!(table.render(PLAIN), "colors  #ff0000 red, #0000ff blue\n");
        let all = Terminal {
            columns: 80,
            color: true,
            true_color: true,
        };
        assert_eq!(
            table.render(all),
            "\x1b[2mcolors\x1b[0m  \x1b[48;2;255;0;0m  \x1b[48;2;0;0;255m  \x1b[0m\n"
        );
        let few = Terminal {
            true_color: false,
            ..all
        };
        assert_eq!(
            table.render(few),
            "\x1b[2mcolors\x1b[0m  \x1b[48;5;196m  \x1b[48;5;21m  \x1b[0m\n"
        );
    }

    #[test]
    fn control_characters_in_names_are_replaced() {
        let mut table = Table::sheet();
        table.field("name", "a\x1b[31m\nb");
        assert_eq!(table.render(PLAIN), "name  a\u{fffd}[31m b\n");
    }
}

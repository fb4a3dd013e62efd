//! The output of a command: a list of columns over the JSON of an answer.
//!
//! Tables, rows with tabs, sheets, the check of `--format` and the completion of its fields all read
//! this one list.

use serde_json::Value;

use super::Error;
use super::call::Call;
use super::connection::Answer;
use super::stdout::Stdout;
use super::table::{Cell, Table};
use super::template::written;
use super::terminal::{bytes, count, span};

/// How the records of an answer are shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The schema or operation in the API's description; empty if the command makes the record.
    pub described: &'static str,
    columns: &'static [Column],
    shape: Shape,
    /// The field that has the rows; if empty, the answer itself or its `data` has them.
    list: &'static str,
    /// The message if there are no rows.
    empty: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Table,
    /// A line for each column: its title and its value.
    Sheet,
    /// A sentence, with `{name}` for what was given or answered, `{name=word}` for a word if it was
    /// given or is true, and `{name#noun}` for a number of these; then the answer's warnings.
    Say(&'static str),
    /// A function of the verb.
    Own(Show),
}

type Show = fn(&Call, &mut Stdout, &Value) -> Result<(), Error>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// The title as in [`Table::new`]; empty for a field that only `--format` has.
    title: &'static str,
    /// Fields separated by spaces, of which the first is shown; or a text with fields in braces.
    source: &'static str,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Plain,
    Bytes,
    Moment,
    Span,
    Palette,
    /// A function of the record; a sheet omits the line if it returns `None`.
    Computed(fn(&Value, &Call) -> Option<Cell>),
    /// A line of a sheet for each item of a list.
    Each(fn(&Value) -> String),
}

const fn formed(title: &'static str, source: &'static str, form: Form) -> Column {
    Column {
        title,
        source,
        form,
    }
}

/// A field as it is, or a text with several.
pub(super) const fn column(title: &'static str, source: &'static str) -> Column {
    formed(title, source, Form::Plain)
}

pub(super) const fn in_bytes(title: &'static str, source: &'static str) -> Column {
    formed(title, source, Form::Bytes)
}

pub(super) const fn moment(title: &'static str, source: &'static str) -> Column {
    formed(title, source, Form::Moment)
}

pub(super) const fn seconds(title: &'static str, source: &'static str) -> Column {
    formed(title, source, Form::Span)
}

pub(super) const fn palette(title: &'static str, source: &'static str) -> Column {
    formed(title, source, Form::Palette)
}

pub(super) const fn computed(
    title: &'static str,
    source: &'static str,
    cell: fn(&Value, &Call) -> Option<Cell>,
) -> Column {
    formed(title, source, Form::Computed(cell))
}

pub(super) const fn each(
    title: &'static str,
    source: &'static str,
    line: fn(&Value) -> String,
) -> Column {
    formed(title, source, Form::Each(line))
}

/// Fields that only `--format` has.
pub(super) const fn more(source: &'static str) -> Column {
    column("", source)
}

impl View {
    pub(super) const fn table(
        described: &'static str,
        columns: &'static [Column],
        empty: &'static str,
    ) -> Self {
        Self {
            described,
            columns,
            shape: Shape::Table,
            list: "",
            empty,
        }
    }

    /// Unless it says so otherwise, the record is shown as a sheet.
    pub(super) const fn new(described: &'static str, columns: &'static [Column]) -> Self {
        Self {
            described,
            columns,
            shape: Shape::Sheet,
            list: "",
            empty: "",
        }
    }

    /// Shows the record as a sentence.
    pub(super) const fn saying(mut self, sentence: &'static str) -> Self {
        self.shape = Shape::Say(sentence);
        self
    }

    /// Shows the record with a function of the verb.
    pub(super) const fn showing(mut self, show: Show) -> Self {
        self.shape = Shape::Own(show);
        self
    }

    /// The rows are in this field; `--format` has their fields and the fields around it.
    pub(super) const fn within(mut self, list: &'static str) -> Self {
        self.list = list;
        self
    }

    /// The fields that `--format` may name.
    pub fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().flat_map(Column::fields)
    }

    /// The fields of the described record, without the fields of the rows in it.
    pub fn described_fields(&self) -> impl Iterator<Item = &'static str> {
        let columns = self.columns.iter();
        columns
            .filter(|one| self.list.is_empty() || one.title.is_empty())
            .flat_map(Column::fields)
    }

    /// Prints the answer in the format that the user has chosen; fails if files could not be removed.
    pub(super) fn show(
        &self,
        call: &Call,
        stdout: &mut Stdout,
        answer: &Answer,
    ) -> Result<(), Error> {
        if stdout.has_template() && !self.list.is_empty() {
            return stdout.data(&self.whole_rows(&answer.read()?));
        }
        stdout.show(answer, |stdout, value: Value| {
            self.people(call, stdout, &value)
        })?;
        if !self.fields().any(|field| field == "files_kept") {
            return Ok(());
        }
        match items(&answer.read()?, "files_kept").len() as u64 {
            0 => Ok(()),
            kept => Err(Error::refused(format!(
                "{} not deleted",
                count(kept, "file")
            ))),
        }
    }

    /// Like [`Self::show`], for a record that the command has made.
    pub(super) fn tell(
        &self,
        call: &Call,
        stdout: &mut Stdout,
        value: &Value,
    ) -> Result<(), Error> {
        if stdout.wants_data() {
            stdout.data(value)
        } else {
            self.people(call, stdout, value)
        }
    }

    /// Prints a record, or a list of records, for people.
    pub(super) fn people(
        &self,
        call: &Call,
        stdout: &mut Stdout,
        value: &Value,
    ) -> Result<(), Error> {
        match self.shape {
            Shape::Own(show) => show(call, stdout, value),
            Shape::Say(text) => {
                stdout.say(sentence(text, call, value))?;
                value["warning"]
                    .as_str()
                    .into_iter()
                    .for_each(|text| stdout.warn(text));
                stdout.warn_all(value);
                Ok(())
            }
            Shape::Sheet => stdout.table(&self.as_sheet(value, call)),
            Shape::Table => match self.rows(value) {
                [] => stdout.note(self.empty),
                rows => stdout.table(&self.as_table(rows, call)),
            },
        }
    }

    /// The rows, each with the fields around them that it does not have itself.
    fn whole_rows(&self, value: &Value) -> Value {
        let whole = |row: &Value| {
            let mut fields = value.as_object().cloned().unwrap_or_default();
            fields.extend(row.as_object().cloned().unwrap_or_default());
            Value::Object(fields)
        };
        self.rows(value).iter().map(whole).collect()
    }

    /// The records of an answer.
    fn rows<'a>(&self, value: &'a Value) -> &'a [Value] {
        let list = if self.list.is_empty() {
            "data"
        } else {
            self.list
        };
        let list = value.as_array().or_else(|| value.get(list)?.as_array());
        list.map_or(std::slice::from_ref(value), Vec::as_slice)
    }

    pub(super) fn as_table(&self, rows: &[Value], call: &Call) -> Table {
        let shown = || {
            self.columns
                .iter()
                .filter(|column| !column.title.is_empty())
        };
        let mut table = Table::new(&shown().map(|column| column.title).collect::<Vec<_>>());
        for row in rows {
            let cells = shown().map(|column| column.cell(row, call).unwrap_or_default());
            table.row(cells.collect::<Vec<_>>());
        }
        table
    }

    pub(super) fn as_sheet(&self, record: &Value, call: &Call) -> Table {
        let mut sheet = Table::sheet();
        for column in self
            .columns
            .iter()
            .filter(|column| !column.title.is_empty())
        {
            match column.form {
                Form::Each(line) => {
                    let items = at(record, column.source).as_array().into_iter().flatten();
                    items.for_each(|item| sheet.field(column.title, line(item)));
                }
                Form::Plain
                | Form::Bytes
                | Form::Moment
                | Form::Span
                | Form::Palette
                | Form::Computed(_) => {
                    if let Some(cell) = column.cell(record, call) {
                        sheet.field(column.title, cell);
                    }
                }
            }
        }
        sheet
    }
}

impl Column {
    fn fields(&self) -> impl Iterator<Item = &'static str> + use<> {
        let is_text = self.source.contains('{');
        let ends: &[char] = if is_text { &['{', '}'] } else { &[' '] };
        let parts = self.source.split(ends).skip(usize::from(is_text));
        let parts = parts.step_by(if is_text { 2 } else { 1 });
        parts
            .filter(|part| !part.is_empty())
            .map(|part| part.split('.').next().unwrap_or(part))
    }

    fn cell(&self, record: &Value, call: &Call) -> Option<Cell> {
        if self.source.contains('{') && matches!(self.form, Form::Plain) {
            return Some(filled(self.source, |name| Some(listed(at(record, name))))?.into());
        }
        let value = at(record, self.source.split(' ').next().unwrap_or_default());
        let number = value.as_u64().unwrap_or_default();
        match self.form {
            Form::Computed(cell) => cell(record, call),
            _ if value.is_null() => None,
            Form::Plain | Form::Each(_) => Some(Cell::value(value)),
            Form::Bytes => Some(Cell::from(bytes(number)).raw(number)),
            Form::Span => Some(Cell::from(span(number)).raw(number)),
            Form::Moment => Some(moment_of(value)),
            Form::Palette => Some(Cell::palette(value)),
        }
    }
}

/// A field by its path; null if it is missing.
pub(super) fn at<'a>(record: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(record, |value, name| &value[name])
}

/// The items of a list by its path; none if there is no list.
pub(super) fn items<'a>(record: &'a Value, path: &str) -> &'a [Value] {
    at(record, path).as_array().map_or(&[], Vec::as_slice)
}

/// A number by its path; zero if there is none.
pub(super) fn number(record: &Value, path: &str) -> u64 {
    at(record, path).as_u64().unwrap_or_default()
}

/// A field as text.
pub(super) fn text(record: &Value, path: &str) -> String {
    listed(at(record, path))
}

/// The name of a record with its id, for people.
pub(super) fn label(record: &Value) -> String {
    format!("{} ({})", text(record, "name"), record["id"])
}

/// A value for people: the items of a list are separated by a comma and a space.
pub(super) fn listed(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(written).collect::<Vec<_>>().join(", "),
        value => written(value),
    }
}

/// A time to the minute; for scripts to the second.
pub(super) fn moment_of(time: &Value) -> Cell {
    Cell::from(minute(time)).raw(second(time))
}

/// A time without the fraction of its second, for scripts.
fn second(value: &Value) -> String {
    let text = written(value);
    match text.split_once('.') {
        Some((whole, rest)) => {
            whole.to_owned() + rest.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        None => text,
    }
}

/// A time for people: local, to the minute.
pub(super) fn minute(time: &Value) -> String {
    written(time)
        .chars()
        .take(16)
        .map(|c| if c == 'T' { ' ' } else { c })
        .collect()
}

/// Fills in a sentence with the values that were given and answered.
pub(super) fn sentence(text: &str, call: &Call, answer: &Value) -> String {
    let named = |slot: &str| {
        if let Some((_, word)) = slot
            .split_once('=')
            .filter(|(name, _)| at(answer, name) == true)
        {
            return Some(word.to_owned());
        }
        let (name, noun) = slot.split_once('#').unwrap_or((slot, ""));
        let value = at(answer, name);
        match value.as_u64().filter(|_| !noun.is_empty()) {
            Some(number) => Some(count(number, noun)),
            None => call
                .query(name)
                .or_else(|| (!value.is_null()).then(|| listed(value))),
        }
    };
    filled(text, named).unwrap_or_else(|| "done".to_owned())
}

/// Fills in a text with `{name}` for a value, or `{name:word}` for a value with a default. `None` if a
/// value without a default is not given.
pub(super) fn filled(template: &str, given: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (slot, after) = after.split_once('}').expect("it is closed");
        let (name, word) = match slot.split_once(':') {
            Some((name, word)) => (name, Some(word.to_owned())),
            None => (slot, None),
        };
        text.push_str(before);
        text.push_str(&given(name).or(word)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::terminal::Terminal;
    use super::*;

    const VIEW: View = View::table(
        "",
        &[
            column(">ID", "id"),
            column(">PIXELS", "{width}x{height}"),
            more("tags web.title"),
            in_bytes(">SIZE", "size"),
        ],
        "nothing",
    );

    #[test]
    fn table_and_fields_come_from_one_list() {
        let fields: Vec<&str> = VIEW.fields().collect();
        assert_eq!(fields, ["id", "width", "height", "tags", "web", "size"]);
        let rows = [
            json!({"id": 7, "width": 30, "height": 20, "size": 2048}),
            json!({"id": 8}),
        ];
        let call = Call::default();
        assert_eq!(
            VIEW.as_table(&rows, &call).rows(),
            "7\t30x20\t2048\n8\tx\t\n"
        );
        let sheet = VIEW.as_sheet(&rows[0], &call);
        let terminal = Terminal {
            columns: 80,
            color: false,
            true_color: false,
        };
        assert!(
            sheet.render(terminal).contains(">SIZE    2.0 KiB\n"),
            "{}",
            sheet.render(terminal)
        );
    }

    #[test]
    fn sentences_name_what_was_given_and_what_was_answered() {
        let call = Call {
            values: vec![("ID", json!("a"))],
            ..Call::default()
        };
        let said = |text| sentence(text, &call, &json!({"n": 1, "yes": true, "on": ["x", "y"]}));
        assert_eq!(said("{ID} on {on}: {n#entry}"), "a on x, y: 1 entry");
        assert_eq!(said("{nothing}"), "done");
        assert_eq!(
            said("it is{ID=, given:}{X=, too:}{yes=, true:}{n=, no:}"),
            "it is, given, true"
        );
        assert_eq!(filled("{a:b}{c}", |_| None), None);
    }
}

//! Random patches, resets and edits: the file must agree with the settings that are shown, and keep
//! every comment of the user.

use std::fs;
use std::path::Path;

use murald::internals::config::{BackendName, ConfigHandle, Key, Rule, Section, ValueType};
use murald::internals::events::EventBus;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
enum Step {
    Patch(Vec<(Section, String, Value)>),
    ResetAll,
    ResetBackend(BackendName),
    Edit(Edit),
}

/// An edit by the user. Every line of the file is a complete statement.
#[derive(Clone, Debug)]
enum Edit {
    CommentLine(Index),
    CommentBehind(Index),
    RemoveKey(Index),
    Theme(String),
    Spaces(Index),
}

fn text() -> impl Strategy<Value = String> {
    "[^\\p{Cc}]{0,12}"
}

fn value_for(key: &'static Key) -> BoxedStrategy<Value> {
    match (key.kind, key.rule) {
        (ValueType::Bool, _) => any::<bool>().prop_map(Value::from).boxed(),
        (ValueType::List, Rule::Words(words)) => prop::collection::vec(select(words), 0..4)
            .prop_map(|list| json!(list))
            .boxed(),
        (ValueType::List, Rule::Form { .. }) => {
            let entry = "[A-Z]{1,3}X=[a-z# '\"]{0,5}";
            prop::collection::vec(entry, 0..3)
                .prop_map(|list| json!(list))
                .boxed()
        }
        // Only absolute directories are allowed.
        (ValueType::List, _) if key.name == "watch" => {
            prop::collection::vec("/walls/[^\\p{Cc}$./]{1,12}", 0..4)
                .prop_map(|list| json!(list))
                .boxed()
        }
        (ValueType::List, _) => prop::collection::vec(text(), 0..4)
            .prop_map(|list| json!(list))
            .boxed(),
        (_, Rule::Words(words)) => select(words).prop_map(Value::from).boxed(),
        (ValueType::Integer, Rule::Range(min, max)) => {
            (min as i64..=max as i64).prop_map(Value::from).boxed()
        }
        (ValueType::Integer, _) => any::<i64>().prop_map(Value::from).boxed(),
        (ValueType::Number, rule) => {
            let (min, max) = match rule {
                Rule::Range(min, max) => (min, max.min(1e6)),
                Rule::Positive => (0.5, 1e6),
                _ => (-1e6, 1e6),
            };
            prop_oneof![(min..=max).prop_map(Value::from), Just(json!(min.ceil()))].boxed()
        }
        (_, Rule::Form { .. }) => Just(key.default.to_json().unwrap_or_default()).boxed(),
        // A variable that is not set would be refused.
        (ValueType::Path, _) => "[^\\p{Cc}$]{0,12}"
            .prop_map(|tail| json!(format!("~/{tail}")))
            .boxed(),
        (ValueType::Text, _) => text().prop_map(Value::from).boxed(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn change() -> impl Strategy<Value = (Section, String, Value)> {
    let keys: Vec<_> = Section::ALL
        .into_iter()
        .flat_map(|section| section.keys().iter().map(move |key| (section, key)))
        .collect();
    let known = select(keys).prop_flat_map(|(section, key)| {
        value_for(key).prop_map(move |value| (section, key.name.to_owned(), value))
    });
    let client = select(vec![
        Section::App,
        Section::Monitors,
        Section::RemoteGallery,
    ]);
    let own = (
        client,
        "own[-_. #]?[a-c]?",
        prop_oneof![4 => anything(), 1 => Just(Value::Null)],
    );
    prop_oneof![4 => known, 1 => own]
}

fn step() -> impl Strategy<Value = Step> {
    let edit = prop_oneof![
        3 => any::<Index>().prop_map(Edit::CommentLine),
        3 => any::<Index>().prop_map(Edit::CommentBehind),
        2 => any::<Index>().prop_map(Edit::RemoveKey),
        1 => "[a-z]{0,5}".prop_map(Edit::Theme),
        1 => any::<Index>().prop_map(Edit::Spaces),
    ];
    prop_oneof![
        6 => prop::collection::vec(change(), 1..5).prop_map(Step::Patch),
        1 => Just(Step::ResetAll),
        1 => select(BackendName::ALL).prop_map(Step::ResetBackend),
        6 => edit.prop_map(Step::Edit),
    ]
}

fn body(changes: &[(Section, String, Value)]) -> Map<String, Value> {
    let mut body = json!({});
    for (section, key, value) in changes {
        let mut table = &mut body;
        for name in section.path() {
            table = &mut table[name];
        }
        table[key] = value.clone();
    }
    body.as_object().unwrap().clone()
}

/// Edits the file as a user would. `notes` are the comments that the file must keep.
fn edit(path: &Path, edit: &Edit, notes: &mut Vec<String>) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let is_key = |line: &String| line.starts_with(|c: char| c.is_ascii_lowercase());
    let keys: Vec<_> = (0..lines.len()).filter(|&at| is_key(&lines[at])).collect();
    let note = format!("# note {}.", notes.len());
    match edit {
        Edit::CommentLine(index) => {
            lines.insert(index.index(lines.len() + 1), note.clone());
            notes.push(note);
        }
        Edit::CommentBehind(index) => {
            let at = index.index(lines.len());
            lines[at] += &format!(" {note}");
            notes.push(note);
        }
        Edit::RemoveKey(index) if !keys.is_empty() => {
            let line = lines.remove(*index.get(&keys));
            for note in notes.iter_mut().filter(|note| line.contains(note.as_str())) {
                note.clear();
            }
        }
        Edit::Theme(theme) => {
            if let Some(line) = lines
                .iter_mut()
                .find(|line| line.starts_with("theme = \"dark\""))
            {
                *line = line.replacen("\"dark\"", &format!("'{theme}'"), 1);
            }
        }
        Edit::Spaces(index) if !keys.is_empty() => {
            let line = &mut lines[*index.get(&keys)];
            *line = format!("  {}", line.replacen(" = ", "=", 1));
        }
        Edit::RemoveKey(_) | Edit::Spaces(_) => {}
    }
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// The file as another TOML reader sees it.
fn plain(path: &Path) -> Value {
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether all of `plain` is in `shown`, which may have more: the file may lack keys with defaults.
fn agrees(plain: &Value, shown: &Value) -> bool {
    match (plain, shown) {
        (Value::Object(plain), Value::Object(shown)) => plain
            .iter()
            .all(|(key, value)| shown.get(key).is_some_and(|other| agrees(value, other))),
        (plain, shown) => {
            plain == shown || plain.as_f64().is_some_and(|n| Some(n) == shown.as_f64())
        }
    }
}

fn run(steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let handle = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
    let mut notes = Vec::new();
    for step in steps {
        match step {
            Step::Patch(changes) => {
                let body = body(changes);
                handle.patch(&body).unwrap();
                assert!(agrees(
                    &without_null(body.into()),
                    &handle.current().to_json().into()
                ));
            }
            Step::ResetAll => drop(handle.reset_all().unwrap()),
            Step::ResetBackend(name) => drop(handle.reset_backend(*name).unwrap()),
            Step::Edit(what) => {
                edit(&path, what, &mut notes);
                handle.reload();
            }
        }
        let shown = handle.current().to_json();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            agrees(&plain(&path), &shown.clone().into()),
            "{text}\n{shown:?}"
        );
        for note in &notes {
            assert!(text.contains(note.as_str()), "{note} is lost:\n{text}");
        }
    }
    // The next start reads the same.
    let again = ConfigHandle::open(path, EventBus::new()).unwrap();
    assert_eq!(again.current().to_json(), handle.current().to_json());
}

fn without_null(value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let kept = table.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(key, value)| (key, without_null(value)))
                    .collect(),
            )
        }
        value => value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_agrees_with_the_settings(steps in prop::collection::vec(step(), 1..12)) {
        run(&steps);
    }

    /// Line ends, quotes and `#` in strings, in files with either kind of line ends.
    #[test]
    fn text_of_any_kind_is_kept(
        texts in prop::collection::vec("[ab'\"#\\\\\r\n\t\u{0}\u{7f}é]{0,8}", 1..6),
        dos in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let handle = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
        let mut file = fs::read_to_string(&path).unwrap().replace("[app]", "# mine\n[app] # too");
        if dos {
            file = file.replace('\n', "\r\n");
        }
        fs::write(&path, file).unwrap();
        handle.reload();
        for (at, text) in texts.iter().enumerate() {
            let body = json!({ "app": { format!("own{}", at % 2): text } });
            handle.patch(body.as_object().unwrap()).unwrap();
            prop_assert_eq!(&handle.current().to_json()["app"][format!("own{}", at % 2)], text);
            prop_assert!(agrees(&plain(&path), &handle.current().to_json().into()));
        }
        let file = fs::read_to_string(&path).unwrap();
        let end = if dos { "\r\n" } else { "\n" };
        prop_assert!(file.contains(&format!("# mine{end}[app] # too{end}")), "{}", file);
    }
}

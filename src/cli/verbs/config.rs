//! `murald config`: shows and changes the settings, through the daemon.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::config_change::{Section, change, in_effect, settings, split};
use super::{
    Argument, Body, Call, Column, Error, Group, Kind, Request, RequestPath, Run, Setting, Stdout,
    Table, Verb, View, more, written,
};

const SECTION: &str = "A section: app, daemon, backend.NAME, backend.auto_priorities, library, \
                       location, hooks, power, desktop, workspaces, monitors, remote_gallery; or a setting, \
                       such as backend.type or app.theme";

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Configuration", verbs: &[
    Verb::own(&["config", "get"], "Show all settings, a section or one setting", get)
        .takes(&[
            Argument::optional("SECTION[.KEY]", Kind::Section, SECTION),
            Argument::optional("KEY", Kind::Setting, "One setting of the section"),
        ])
        .help("    murald config get backend.type"),
    Verb::own(&["config", "set"], "Change a setting, or several of a section", set)
        .takes(&[
            Argument::one("SECTION[.KEY]", Kind::Section, SECTION),
            Argument::optional("KEY", Kind::Setting, "The setting, if SECTION does not name it"),
            Argument::optional("VALUE", Kind::SettingValue,
                "The new value (null removes it), or several settings of the section as a JSON object"),
        ])
        .shows(&[&CHANGED])
        .help("    murald config set backend.type swaybg\n    \
               murald config set backend.swaybg fit_mode fit\n    \
               murald config set app '{\"images_per_page\": 80, \"theme\": \"system\"}'\n\n\
               Changes apply at once, except those of the section daemon, which need a restart."),
    Verb::new(&["config", "patch"], "Change settings in several sections",
        Run::Request(Request::new("PATCH /config", Body::Given("CHANGES"))))
        .takes(&[Argument::one("CHANGES", Kind::Json, "A JSON object of sections with their settings")])
        .shows(&[&CHANGED])
        .help("    murald config patch '{\"backend\": {\"type\": \"feh\"}, \"app\": {\"theme\": \
               \"light\"}}'"),
    Verb::send(&["config", "reset"], "Reset all settings, or those of a backend",
        "POST /config/{BACKEND=backends}/{BACKEND}/reset", &[])
        .takes(&[Argument::optional("BACKEND", Kind::Backend, "Only the settings of this backend")])
        .shows(&[&RESET])
        .help("The old file is kept as config.toml.bak, also if it is damaged; the next reset replaces it."),
    Verb::own(&["config", "path"], "Print the path of the configuration file (works without a \
               daemon)", path),
    Verb::own(&["config", "check"], "Check a configuration file (works without a daemon)", check)
        .takes(&[Argument::optional("FILE", Kind::File, "The file (default: that of the daemon)")])
        .help("    murald config check ./new.toml && cp ./new.toml \"$(murald config path)\"\n\n\
               Prints one warning per line. Exits with 78 if the daemon would not start with the \
               file."),
]};

/// The answer to a change. Its other fields are settings, which [`fields`] lists.
const CHANGED: View = View::new("", BESIDE).saying("changed");
const RESET: View = View::new("", BESIDE).showing(|_, stdout, settings| {
    stdout.say("reset these settings to their defaults")?;
    if let Some(backup) = settings["backup"].as_str() {
        stdout.say(format!("the old file is kept as {backup}"))?;
    }
    stdout.warn_all(settings);
    Ok(())
});
const BESIDE: &[Column] = &[more("backup restart_required warnings")];

/// The fields that `--format` may name: those of the verb, and the settings for verbs of `config`.
pub(crate) fn fields(verb: &Verb, call: &Call) -> Vec<String> {
    let mut settings = Vec::new();
    if verb.words[0] == "config" && !verb.views.is_empty() {
        for setting in call.settings() {
            settings.extend(setting.section.split('.').map(str::to_owned));
            settings.push(setting.key.to_owned());
        }
    }
    settings.sort();
    settings.dedup();
    verb.fields()
        .into_iter()
        .map(str::to_owned)
        .chain(settings)
        .collect()
}

fn get(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let Some(word) = call.text("SECTION[.KEY]") else {
        return SETTINGS.show(
            call,
            stdout,
            &connection.get(&RequestPath::new(&[&"config"]))?,
        );
    };
    let (section, key) = split(call, word);
    let key = match (key, call.text("KEY")) {
        (Some(key), Some(other)) => {
            return Err(Error::usage(format!(
                "unexpected argument {other:?}: {section}.{key} names one setting"
            )));
        }
        (key, other) => key.or_else(|| other.map(str::to_owned)),
    };
    let settings = settings(&connection, &section, key.is_some())?;
    let Some(key) = key else {
        return SETTINGS.tell(call, stdout, &settings);
    };
    let spelled = key.replace('-', "_");
    let is_known = |one: &Setting| one.section == section && one.key == spelled;
    let value = match settings.get(&spelled).or_else(|| settings.get(&key)) {
        Some(value) => value,
        // The setting has neither a value nor a default.
        None if call.settings().iter().any(is_known) => &Value::Null,
        None => {
            let of = if section == "backend" {
                ""
            } else {
                section.as_str()
            };
            let list = format!(
                "`{}` lists them",
                format!("murald config get {of}").trim_end()
            );
            return Err(Error::refused(format!("{section} has no setting {key:?}")).hint(list));
        }
    };
    if stdout.wants_data() {
        stdout.data(value)
    } else {
        stdout.line(plain(value))
    }
}

const SETTINGS: View = View::new("", &[]).showing(|_, stdout, settings| {
    let mut sheet = Table::sheet();
    flatten(&mut sheet, "", settings);
    stdout.table(&sheet)
});

/// Adds settings of tables inside tables under their dotted names.
fn flatten(sheet: &mut Table, prefix: &str, settings: &Value) {
    for (key, value) in settings.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => flatten(sheet, &format!("{prefix}{key}."), value),
            value => sheet.field(&format!("{prefix}{key}"), plain(value)),
        }
    }
}

/// A value in the form that `config set` reads: lists are JSON.
fn plain(value: &Value) -> String {
    if value.is_array() {
        value.to_string()
    } else {
        written(value)
    }
}

fn set(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let (name, changes) = change(call, &connection)?;
    let section = Section::from_name(&name, true);
    let is_auto = name == "backend" && changes.get("type").is_some_and(|kind| kind == "auto");
    let answer = connection.patch(&section.place, &section.wrap(changes.clone().into()));
    let answer = answer.map_err(|error| if is_auto { error.hint(AUTO) } else { error })?;
    let body: Value = answer.read()?;
    let settings = section.unwrap(&body);
    let used = in_effect(&name, &changes, &settings);
    if stdout.wants_data() {
        stdout.data(&settings)?;
    } else if used.is_ok() {
        for key in changes.keys() {
            let now = match settings.get(key).map(plain) {
                Some(text) if text.is_empty() => "empty".to_owned(),
                Some(text) => text,
                None => "unset".to_owned(),
            };
            stdout.say(format!("{name}.{key} is now {now}"))?;
        }
        if settings["restart_required"] == true {
            stdout.say("restart murald to apply this")?;
        }
    }
    if used.is_ok() {
        stdout.warn_all(&body);
    }
    used
}

const AUTO: &str =
    "`murald config set backend.selection_mode auto` selects a backend by kind of image";

fn path(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let path = call.config_file()?;
    if stdout.is_json() {
        return stdout.data(&json!(path.to_string_lossy()));
    }
    stdout.line(path.display())
}

/// Prints the warnings about the named file, or about the daemon's own, one per line. Only the named
/// file must exist.
fn check(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let checked = call
        .text("FILE")
        .map(PathBuf::from)
        .map_or_else(|| call.config_file(), Ok)?;
    let is_gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    let is_named = call.has("FILE") || call.globals.config.is_some();
    let (warnings, well) = if is_named || !checked.metadata().is_err_and(is_gone) {
        let warnings = (call.host().check_config)(&checked)?;
        (warnings, format!("{} is valid", checked.display()))
    } else {
        (
            Vec::new(),
            "no configuration file; using the defaults".to_owned(),
        )
    };
    match warnings.is_empty() {
        _ if stdout.wants_data() => stdout.data(&json!(warnings)),
        true => stdout.note(well),
        false => warnings.iter().try_for_each(|warning| stdout.line(warning)),
    }
}

//! Asks niri which outputs show a window that fills them.
//!
//! Over wlr-foreign-toplevel, niri names the output of a window on a hidden workspace, too, and reports
//! a window as full screen that is so only for its program. Niri reports each change of the focus there,
//! so the events of its socket need not be followed.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::feed;
use crate::sys::Cancel;

/// A niri, by its socket.
pub(super) struct Niri(pub(super) PathBuf);

impl Niri {
    /// The outputs whose active windows fill them; none in the overview, which shows the wallpaper.
    pub(super) fn filled(&self, cancel: &Cancel) -> io::Result<BTreeSet<String>> {
        let ask = |question| self.ask(question, cancel);
        if ask("OverviewState")?["is_open"] == true {
            return Ok(BTreeSet::new());
        }
        Ok(filled(
            &ask("Outputs")?,
            &ask("Workspaces")?,
            &ask("Windows")?,
        ))
    }

    /// Returns the answer to a question; null if this version does not know it.
    fn ask(&self, question: &str, cancel: &Cancel) -> io::Result<Value> {
        let answer = feed::ask(&self.0, format!("\"{question}\"\n").as_bytes(), cancel)?;
        Ok(answer["Ok"][question].clone())
    }
}

fn filled(outputs: &Value, workspaces: &Value, windows: &Value) -> BTreeSet<String> {
    let fills = |window: &Value, output: &str| {
        let tile = &window["layout"]["tile_size"];
        let space = &outputs[output]["logical"];
        // Sizes of outputs are rounded down. Before 25.08 windows had none: there the focus decides.
        let is_long =
            |at: usize, side: &str| Some(tile[at].as_f64()? + 1.0 > space[side].as_f64()?);
        if tile.is_array() {
            is_long(0, "width") == Some(true) && is_long(1, "height") == Some(true)
        } else {
            window["is_focused"] == true
        }
    };
    let windows = windows.as_array().map(Vec::as_slice).unwrap_or_default();
    let visible = workspaces
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| it["is_active"] == true);
    let filled = visible.filter_map(|workspace| {
        let is_active = |window: &&Value| window["id"] == workspace["active_window_id"];
        let output = workspace["output"].as_str()?;
        fills(windows.iter().find(is_active)?, output).then(|| output.to_owned())
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn active_windows_fill_the_outputs_that_show_them() {
        let outputs = json!({
            "A": { "logical": { "width": 1920, "height": 1080 } },
            "B": { "logical": { "width": 1706, "height": 960 } },
            "C": { "logical": null },
        });
        let workspace = |active: u64, output: &str, is_active: bool| {
            let keys = ["active_window_id", "output", "is_active"];
            let values = [json!(active), json!(output), json!(is_active)];
            keys.into_iter().zip(values).collect::<Value>()
        };
        let workspaces = json!([
            workspace(1, "A", true),
            workspace(2, "A", false),
            workspace(3, "B", true),
            workspace(4, "C", true),
            { "active_window_id": null, "output": null, "is_active": true },
        ]);
        #[track_caller]
        fn check(found: &BTreeSet<String>, expected: &[&str]) {
            assert!(found.iter().eq(expected), "{found:?}");
        }
        let on = |windows: Value| filled(&outputs, &workspaces, &windows);
        let sized = |id: u64, width: f64, height: f64| {
            let layout = json!({ "tile_size": [width, height] });
            on(json!([{ "id": id, "is_focused": true, "layout": layout }]))
        };
        check(&sized(1, 1920.0, 1080.0), &["A"]);
        check(&sized(1, 1920.0, 1048.0), &[]);
        check(&sized(1, 952.0, 1080.0), &[]);
        check(&sized(2, 1920.0, 1080.0), &[]);
        check(&sized(3, 1706.667, 960.0), &["B"]);
        check(&sized(4, 1920.0, 1080.0), &[]);
        check(&sized(9, 1920.0, 1080.0), &[]);
        check(&on(json!([{ "id": 1, "is_focused": true }])), &["A"]);
        check(&on(json!([{ "id": 1, "is_focused": false }])), &[]);
        check(&filled(&Value::Null, &Value::Null, &Value::Null), &[]);
    }

    #[test]
    fn answers_are_read_from_the_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("niri");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let niri = Niri(path);
        let cancel = Cancel::new().unwrap();
        let answers = [
            // An older version.
            r#"{"Err":"error parsing request"}"#,
            r#"{"Ok":{"Outputs":{"A":{"logical":{"width":800,"height":600}}}}}"#,
            r#"{"Ok":{"Workspaces":[{"output":"A","is_active":true,"active_window_id":7}]}}"#,
            r#"{"Ok":{"Windows":[{"id":7,"layout":{"tile_size":[800.0,600.0]}}]}}"#,
            r#"{"Ok":{"OverviewState":{"is_open":true}}}"#,
        ];
        let asked = std::thread::spawn(move || {
            let answer = |answer: &str| {
                let mut stream = std::io::BufReader::new(listener.accept().unwrap().0);
                let mut question = String::new();
                io::BufRead::read_line(&mut stream, &mut question).unwrap();
                // niri keeps the connection open.
                io::Write::write_all(stream.get_mut(), format!("{answer}\n").as_bytes()).unwrap();
                (question, stream)
            };
            answers.map(answer).map(|(question, _)| question)
        });
        assert!(niri.filled(&cancel).unwrap().iter().eq(["A"]));
        assert!(niri.filled(&cancel).unwrap().is_empty());
        let names = [
            "OverviewState",
            "Outputs",
            "Workspaces",
            "Windows",
            "OverviewState",
        ];
        assert_eq!(
            asked.join().unwrap(),
            names.map(|name| format!("\"{name}\"\n"))
        );
    }
}

//! The requests that each verb makes, to the letter, as a stand-in daemon receives them.

use std::collections::{BTreeSet, HashSet};

use murald::internals::cli::GROUPS;
use murald::internals::http::ROUTES;
use serde_json::json;

use crate::call::json_of;
use crate::stand_in::StandIn;

#[test]
fn every_verb_makes_the_right_requests() {
    let stand_in = StandIn::new();
    let mut tried = HashSet::new();
    let mut routes = BTreeSet::new();
    let mut check = |line: &str, expected: &[&str]| {
        stand_in.check(line, expected);
        tried.insert(line.to_owned());
        routes.extend(expected.iter().map(|request| route(request)));
    };
    check(
        "set 7 --monitor DP-1 --monitor DP-2 --mode clone",
        &[r#"POST /wallpaper/set {"mode":"clone","monitors":["DP-1","DP-2"],"image_id":7}"#],
    );
    check(
        "set 7 --default",
        &[r#"POST /wallpaper/set {"default":true,"image_id":7}"#],
    );
    check(
        "set 7 --fit contain --transition fade",
        &[r#"POST /wallpaper/set {"fit":"contain","transition":"fade","image_id":7}"#],
    );
    check(
        "random --fit tile",
        &[r#"POST /wallpaper/random {"fit":"tile"}"#],
    );
    check(
        "random --monitor DP-1",
        &[r#"POST /wallpaper/random {"monitors":["DP-1"]}"#],
    );
    check(
        "random --mode extend",
        &[r#"POST /wallpaper/random {"mode":"extend"}"#],
    );
    check(
        "random --tags a,b --hue-group blue --min-width 800 --recursive",
        &[
            r#"POST /wallpaper/random {"filter":{"tags":["a","b"],"recursive":true,"min_width":800,"hue_group":[7,8]}}"#,
        ],
    );
    check(
        "random --each",
        &[r#"POST /wallpaper/random {"mode":"each"}"#],
    );
    check(
        "set 7 --monitor DP-1,DP-2",
        &[r#"POST /wallpaper/set {"monitors":["DP-1","DP-2"],"image_id":7}"#],
    );
    check("undo", &["POST /wallpaper/back {}"]);
    check(
        "trash 7",
        &[r#"DELETE /images {"ids":[7],"trash":true,"files":true}"#],
    );
    check("what DP-1", &["GET /why?monitor=DP-1"]);
    check("where 7", &["GET /images/7"]);
    check(
        "back --monitor DP-1",
        &[r#"POST /wallpaper/back {"monitors":["DP-1"]}"#],
    );
    check("mute", &[r#"POST /wallpaper/sound {"muted":true}"#]);
    check(
        "unmute --monitor A",
        &[r#"POST /wallpaper/sound {"muted":false,"monitors":["A"]}"#],
    );
    check("volume 30", &[r#"POST /wallpaper/sound {"volume":30}"#]);
    check("current", &["GET /wallpaper/current"]);
    check("debug", &["GET /debug"]);
    check("why", &["GET /why"]);
    check("workspace list", &["GET /workspaces"]);
    check("why DP-1", &["GET /why?monitor=DP-1"]);
    check(
        "set #1E1e2e",
        &[r##"POST /wallpaper/set {"color":"#1e1e2e"}"##],
    );
    check(
        "set /a/b.png",
        &[r#"POST /wallpaper/set {"path":"/a/b.png"}"#],
    );
    check(
        "history --monitor DP-1 --limit 5 --since-id 3",
        &["GET /images/history?monitor=DP-1&limit=5&since_id=3"],
    );
    check(
        "history --limit 7 --before-id 9",
        &["GET /images/history?limit=7&before_id=9"],
    );
    check("history clear", &["DELETE /images/history"]);
    check(
        "import --no-wait /a --folder 3",
        &[r#"POST /images {"paths":["/a"],"folder_id":3}"#],
    );
    check(
        "import --in-place --no-wait /a",
        &[r#"POST /images {"paths":["/a"],"in_place":true}"#],
    );
    check(
        "import-web /w",
        &[r#"POST /images/import-web {"path":"/w"}"#],
    );
    check(
        "import-cancel b-1",
        &[r#"POST /images/cancel-import {"batch_id":"b-1"}"#],
    );
    check(
        "images list --page 2 --per-page 9 --sort-by hue --sort-order asc --media-type video \
         --tags a,b --hue-group grey --folder root",
        &[
            "GET /images?sort_by=hue&sort_order=asc&media_type=video&tags=a%2Cb&folder_id=root\
           &hue_group=99&page=2&per_page=9",
        ],
    );
    check(
        "images search sea sky --colors #ff0000 --colors-near #00ff00~5.5,#fff~2 --similar-to 4 \
         --max-delta-e 9.5",
        &[
            "GET /images?search=sea%20sky&colors=%23ff0000&colors_near=%2300ff00~5.5%2C%23fff~2\
           &palette_similar_to=4&palette_max_delta_e=9.5",
        ],
    );
    check(
        "images list --all --tags a --sort-by hue",
        &[
            "GET /images/ids?sort_by=hue&tags=a",
            "GET /images?sort_by=hue&tags=a&per_page=200&page=1",
        ],
    );
    check("images show 7", &["GET /images/7"]);
    check(
        "images sheet --name x --checksum 00ff",
        &["GET /images?name=x&checksum=00ff"],
    );
    check(
        "images update 7 --name x --tags a,b --description y --folder root --selected on --audio off",
        &[
            r#"PATCH /images/7 {"name":"x","tags":["a","b"],"description":"y","folder_id":null,"is_selected":true,"audio_enabled":false}"#,
        ],
    );
    check(
        r#"images update 7 --folder 3 --overrides {"a":1} --capabilities {"network":true}"#,
        &[
            r#"PATCH /images/7 {"folder_id":3,"wallpaper_config_overrides":{"a":1},"web_capabilities":{"network":true}}"#,
        ],
    );
    check("images rename 7 x", &[r#"PATCH /images/7 {"name":"x"}"#]);
    check(
        "images select 7 --off",
        &[r#"PATCH /images/7 {"is_selected":false}"#],
    );
    check(
        "images select --all",
        &[r#"POST /images/select-all {"selected":true}"#],
    );
    check("images tags", &["GET /images/tags"]);
    check(
        "images thumbnail 7 --resolution 4k",
        &["GET /images/7/thumbnail?resolution=4k"],
    );
    check("images raw 7", &["GET /images/7/raw"]);
    check(
        "images move 7 8 3",
        &[r#"POST /folders/move-images {"image_ids":[7,8],"folder_id":3}"#],
    );
    check(
        "images delete 7 8",
        &[r#"DELETE /images {"ids":[7,8],"trash":true,"files":false}"#],
    );
    check(
        "images delete 7 --forever --files",
        &[r#"DELETE /images {"ids":[7],"trash":false,"files":true}"#],
    );
    check(
        "folders list --parent 3 --search s",
        &["GET /folders?parent_id=3&search=s"],
    );
    check("folders show 3", &["GET /folders/3"]);
    check("folders path 3", &["GET /folders/3/path"]);
    check(
        "folders create x",
        &[r#"POST /folders {"name":"x","parent_id":null}"#],
    );
    check("folders rename 3 x", &[r#"PATCH /folders/3 {"name":"x"}"#]);
    check(
        "folders move 3 root",
        &[r#"PATCH /folders/3 {"parent_id":null}"#],
    );
    check(
        "folders delete 3",
        &["DELETE /folders/3?mode=keep_contents&trash=true"],
    );
    check(
        "folders delete 3 --contents --forever",
        &["DELETE /folders/3?mode=delete_all&trash=false"],
    );
    check(
        "folders delete 3 --contents",
        &["DELETE /folders/3?mode=delete_all&trash=true"],
    );
    check(
        "video preview 7 --force",
        &["POST /images/7/ensure-browser-preview?force=1 {}"],
    );
    check(
        "video export 7 --out 4.5",
        &[
            r#"POST /images/7/video-loop-export {"in_seconds":0,"out_seconds":4.5,"preset":"mp4_h264","action":"import_new"}"#,
        ],
    );
    check(
        "video export 7 --in 1 --out 2 --preset webm_vp9 --action replace --blend-halves",
        &[
            r#"POST /images/7/video-loop-export {"in_seconds":1.0,"out_seconds":2.0,"preset":"webm_vp9","action":"replace","blend_halves":true}"#,
        ],
    );
    check(
        "video palette 7 1.5",
        &[r#"POST /images/7/extract-video-palette {"time_seconds":1.5}"#],
    );
    for action in ["next", "previous", "pause", "resume"] {
        let all = format!("POST /playlists/active/{action} {{}}");
        check(action, &[&all]);
        check(&format!("playlist {action}"), &[&all]);
        check(
            &format!("playlist {action} 3"),
            &[&format!("POST /playlists/3/{action} {{}}")],
        );
    }
    check(
        "next --monitor DP-1",
        &[r#"POST /playlists/active/next {"monitors":["DP-1"]}"#],
    );
    check(
        "playlist previous 3 --monitor DP-1",
        &[r#"POST /playlists/3/previous {"monitors":["DP-1"]}"#],
    );
    check("playlist stop", &["POST /playlists/active/stop {}"]);
    check("playlist stop 3", &["POST /playlists/3/stop {}"]);
    check("playlist list", &["GET /playlists"]);
    check("playlist show 3", &["GET /playlists/3"]);
    check(
        "playlist create x 1@07:30 2@19:00 --type time_of_day --order random \
         --from-first on",
        &[
            r#"POST /playlists {"configuration":{"type":"time_of_day","order":"random","always_start_on_first_image":true},"images":[{"image_id":1,"time":450},{"image_id":2,"time":1140}],"name":"x"}"#,
        ],
    );
    check(
        "playlist create x --tags a,b --search lake --sort-by hue --order random --interval 10m",
        &[
            r#"POST /playlists {"configuration":{"interval":600,"order":"random"},"name":"x","source":{"tags":["a","b"],"search":"lake","sort_by":"hue"}}"#,
        ],
    );
    check(
        "playlist create x 1@sunset-30m",
        &[
            r#"POST /playlists {"configuration":{"type":"time_of_day"},"images":[{"image_id":1,"at":"sunset-30m"}],"name":"x"}"#,
        ],
    );
    check(
        "playlist create x 1@light 2@dark",
        &[
            r#"POST /playlists {"configuration":{"type":"appearance"},"images":[{"image_id":1,"when":"light"},{"image_id":2,"when":"dark"}],"name":"x"}"#,
        ],
    );
    check("power", &["GET /power"]);
    check("power locked", &[r#"PUT /power {"locked":true}"#]);
    check("power unlocked", &[r#"PUT /power {"locked":false}"#]);
    check("power idle", &[r#"PUT /power {"idle":true}"#]);
    check("power active", &[r#"PUT /power {"idle":false}"#]);
    check("appearance", &["GET /appearance"]);
    check("appearance dark", &[r#"PUT /appearance {"mode":"dark"}"#]);
    check(
        "playlist edit 3 --name y",
        &[r#"PATCH /playlists/3 {"name":"y"}"#],
    );
    check(
        "playlist add 3 9",
        &[r#"PATCH /playlists/3 {"images":{"add":[{"image_id":9}]}}"#],
    );
    check(
        "playlist remove 3 1",
        &[
            "GET /playlists/3",
            r#"PATCH /playlists/3 {"images":{"remove":[1]}}"#,
        ],
    );
    check("playlist delete 3", &["DELETE /playlists/3"]);
    check(
        "playlist start 3 --monitor DP-1 --extend",
        &[r#"POST /playlists/3/start {"extend":true,"monitors":["DP-1"]}"#],
    );
    check(
        "playlist start 3 --each",
        &[r#"POST /playlists/3/start {"mode":"each"}"#],
    );
    check("playlist active", &["GET /playlists/active"]);
    check("playlist active DP-1", &["GET /playlists/active/DP-1"]);
    check("monitors", &["GET /monitors"]);
    check("monitors DP-1", &["GET /monitors/DP-1"]);
    check("backends", &["GET /backends"]);
    check("library scan", &["POST /library/scan {}"]);
    check("watch list", &["GET /library/watch"]);
    check(
        "watch add /a /b",
        &[r#"PATCH /library/watch {"watch":{"add":["/a","/b"]}}"#],
    );
    check(
        "watch remove /w --forget",
        &[
            "GET /library/watch",
            r#"PATCH /library/watch {"watch":{"remove":["/w"]},"forget":true}"#,
        ],
    );
    check("library purge-missing", &["POST /library/purge-missing {}"]);
    check("backends activate feh", &["POST /backends/feh/activate {}"]);
    check("config get", &["GET /config"]);
    check("config get backend.awww", &["GET /config/backends/awww"]);
    check(
        "config set app theme dark",
        &["GET /config/app", r#"PATCH /config/app {"theme":"dark"}"#],
    );
    check(
        "config set backend.type feh",
        &["GET /config", r#"PATCH /config {"backend":{"type":"feh"}}"#],
    );
    check(
        "config set backend.wal-qt.duration_ms 7",
        &[
            "GET /config/backends/wal-qt",
            r#"PATCH /config/backends/wal-qt {"duration_ms":7}"#,
        ],
    );
    check(
        "config set backend.wal_qt.duration_ms 7",
        &[
            "GET /config/backends/wal-qt",
            r#"PATCH /config/backends/wal-qt {"duration_ms":7}"#,
        ],
    );
    check(
        r#"config set app {"a":1}"#,
        &[r#"PATCH /config/app {"a":1}"#],
    );
    check(
        r#"config set backend.feh {"mode":"max"}"#,
        &[r#"PATCH /config/backends/feh {"mode":"max"}"#],
    );
    check(
        r#"config patch {"app":{}}"#,
        &[r#"PATCH /config {"app":{}}"#],
    );
    check("config reset", &["POST /config/reset {}"]);
    check("config reset feh", &["POST /config/backends/feh/reset {}"]);
    check("config path", &[]);
    check("config check Cargo.toml", &[]);
    check(
        "complete -- images show x",
        &["GET /images?name_prefix=x&per_page=50"],
    );
    check("complete -- images show 7", &["GET /images?per_page=50"]);
    check("themes", &["GET /api/themes"]);
    check("themes show nord", &["GET /api/themes/nord.css"]);
    // A dry run makes no request; `migrate.rs` tests its output.
    let theirs = stand_in.daemon.root().join("theirs.toml");
    std::fs::write(&theirs, "[DP-1]\npath = '/'\n").unwrap();
    check(
        &format!("migrate wpaperd --dry-run --from {}", theirs.display()),
        &[],
    );
    // These need no daemon, but a database or a problem: see `tests/library` and `tests/daemon`. The
    // next ones need a real daemon: see `calls.rs`, `gallery.rs` and `start.rs`.
    for line in ["library check", "library restore", "doctor"] {
        tried.insert(line.to_owned());
    }
    for line in [
        "start",
        "stop",
        "status",
        "events",
        "gallery",
        "import",
        "images tag",
        "toggle",
        "pick",
        "favourite",
        "slideshow",
        "workspace set",
        "workspace clear",
    ] {
        tried.insert(line.to_owned());
    }
    for verb in GROUPS.iter().flat_map(|group| group.verbs) {
        let name = verb.name();
        assert!(
            tried.iter().any(|line| line.starts_with(&name)),
            "{name} was not tried"
        );
    }
    // `playlist show` and `list` request these: see `tests/playlists` and `output.rs`.
    for of_playlist in [
        "GET /playlists/{id}/images",
        "GET /playlists/{id}/images/ids",
    ] {
        routes.insert(of_playlist.to_owned());
    }
    // `status`, `events`, `stop` and `images tag` request these; `status` shows what `/healthz` has. Other
    // clients set all watched directories at once.
    for other in [
        "GET /info",
        "PATCH /images",
        "PUT /library/watch",
        "GET /healthz",
        "GET /capabilities",
        "GET /events",
        "POST /shutdown",
    ] {
        routes.insert(other.to_owned());
    }
    let all: BTreeSet<String> = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.pattern))
        .collect();
    let missing: Vec<_> = all.difference(&routes).collect();
    assert!(missing.is_empty(), "no command asks for {missing:?}");
}

#[test]
fn monitor_without_a_previous_wallpaper_is_not_called_disconnected() {
    let stand_in = StandIn::saying(|asked| {
        if asked.starts_with("POST ") {
            (
                200,
                r##"{"status":"set","images":{"A":"#123456"},"monitors":["A"],"skipped":["B"]}"##,
            )
        } else {
            (200, "{}")
        }
    });
    for (line, why) in [
        ("back", "nothing to go back to"),
        ("random", "not connected"),
    ] {
        let output = stand_in.daemon.murald(&[line]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(told, format!("murald: skipped B: {why}\n"), "{line}");
    }
}

/// Images that are added or removed between two pages shift the others to another page.
#[test]
fn filters_select_the_images_of_one_instant() {
    let stand_in = StandIn::saying(|asked| match asked {
        "GET /images/ids?tags=a" => (200, r#"{"ids":[1,2,3,4]}"#),
        // Image 9 is new, and image 2 has moved to another page.
        "GET /images?tags=a&per_page=200&page=1" => (
            200,
            r#"{"data":[{"id":9},{"id":3},{"id":1}],"pagination":{"page":1,"per_page":200,"total_items":4,"total_pages":1}}"#,
        ),
        "GET /images/2" => (200, r#"{"id":2}"#),
        "GET /images/4" => (404, r#"{"error":"no image with ID 4","code":404}"#),
        _ => (200, r#"{"deleted":4}"#),
    });
    let listed = json_of(
        &stand_in.daemon,
        &["images", "list", "--tags", "a", "--all"],
    );
    let of_three = json!({ "page": 1, "per_page": 3, "total_items": 3, "total_pages": 1 });
    let expected = json!({ "data": [{"id": 1}, {"id": 2}, {"id": 3}], "pagination": of_three });
    assert_eq!(listed, expected);
    stand_in.asked.try_iter().for_each(drop);
    stand_in.check(
        "images delete --tags a",
        &[
            "GET /images/ids?tags=a",
            r#"DELETE /images {"ids":[1,2,3,4],"trash":true,"files":false}"#,
        ],
    );
}

/// The route of a request as `METHOD PATTERN`; if several fit, the one with the fewest parameters.
fn route(request: &str) -> String {
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path: Vec<&str> = target.split('?').next().unwrap().split('/').collect();
    let fits = |pattern: &str| {
        let parts: Vec<&str> = pattern.split('/').collect();
        parts.len() == path.len()
            && parts
                .iter()
                .zip(&path)
                .all(|(part, word)| suits(part, word))
    };
    let routes = ROUTES
        .iter()
        .filter(|route| route.method.to_string() == method);
    let found = routes
        .filter(|route| fits(route.pattern))
        .min_by_key(|route| route.pattern.matches('{').count());
    let found = found.unwrap_or_else(|| panic!("no route for {request}"));
    format!("{method} {}", found.pattern)
}

/// `{name}.css` fits what ends with `.css`.
fn suits(part: &str, word: &str) -> bool {
    match part.split_once('{') {
        None => part == word,
        Some((_, rest)) => word.ends_with(rest.split_once('}').unwrap().1),
    }
}

//! Builds the Debian package of this tree, runs lintian, and checks its files. The package has the
//! executable under test, as a release build takes minutes; `contrib/debian/try` tests the real one in a
//! fresh Debian.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use murald::internals::wire::Format;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn package() -> PathBuf {
    let executable = env!("CARGO_BIN_EXE_murald");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deb");
    let mut build = Command::new("contrib/deb");
    build
        .env("MURALD_EXECUTABLE", executable)
        .env("DEB_DIR", directory);
    // The executable is large here, so skip slow steps that are not tested.
    build
        .env("DEB_BUILD_OPTIONS", "noautodbgsym")
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    output(&mut build).trim().into()
}

/// The files of a directory that a package has unchanged.
fn listed(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn debian_package_is_complete_and_passes_lintian() {
    let package = package();
    let changes = package.with_extension("changes");
    // Only the tests' executable has SQLite built in; the package links the system's.
    let said = output(
        Command::new("lintian")
            .args([
                "--allow-root",
                "--fail-on",
                "error,warning",
                "--suppress-tags",
            ])
            .args(["embedded-library", "--tag-display-limit", "0"])
            .arg(&changes),
    );
    assert_eq!(said, "");

    let contents = output(Command::new("dpkg-deb").arg("--contents").arg(&package));
    let files: BTreeSet<&str> = contents
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .collect();
    let has = |path: &str| assert!(files.contains(path), "no {path} in {contents}");
    for path in [
        "bin/murald",
        "share/applications/murald.desktop",
        "share/kio/servicemenus/murald.desktop",
        "share/nemo/actions/murald.nemo_action",
        "share/file-manager/actions/murald.desktop",
        "share/bash-completion/completions/murald",
    ] {
        has(&format!("./usr/{path}"));
    }
    has("./usr/share/doc/murald/NOTICES.gz");
    has("./usr/share/zsh/vendor-completions/_murald");
    has("./usr/share/fish/vendor_completions.d/murald.fish");
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    for unit in listed("contrib/systemd") {
        has(&format!("./usr/lib/systemd/user/{}", name(&unit)));
    }
    for page in listed("man") {
        let section = page.extension().unwrap().to_str().unwrap();
        has(&format!("./usr/share/man/man{section}/{}.gz", name(&page)));
    }

    let version = output(
        Command::new("dpkg-deb")
            .args(["--field"])
            .arg(&package)
            .arg("Version"),
    );
    assert_eq!(
        version.trim(),
        env!("CARGO_PKG_VERSION"),
        "contrib/debian/changelog"
    );
}

/// The actions of file managers, which never become the default program of a type.
const ACTIONS: [&str; 3] = [
    "kde/murald.desktop",
    "nemo/murald.nemo_action",
    "actions/murald.desktop",
];

#[test]
fn file_managers_offer_the_action_for_all_media_types() {
    let file = "contrib/applications/murald.desktop";
    assert_eq!(output(Command::new("desktop-file-validate").arg(file)), "");
    for action in ACTIONS {
        let path = root().join("contrib/file-managers").join(action);
        let text = fs::read_to_string(path).unwrap();
        let kinds = text.lines().find_map(|line| {
            let (key, kinds) = line.split_once('=')?;
            key.to_lowercase().starts_with("mimetype").then_some(kinds)
        });
        for format in Format::ALL.iter().filter(|&&format| format != Format::Html) {
            let kind = format.content_type();
            let has = |kinds: &str| kinds.split(';').any(|it| it == kind);
            assert!(kinds.is_some_and(has), "{action}: no {kind}");
        }
    }
}

#[test]
fn viewer_stays_the_default_program_of_pictures_and_videos() {
    for prefix in ["/usr", "/usr/local", "/home/mia/.local"] {
        let directory = tempfile::tempdir().unwrap();
        output(
            Command::new("contrib/install")
                .arg(env!("CARGO_BIN_EXE_murald"))
                .env("DESTDIR", directory.path())
                .env("PREFIX", prefix),
        );
        let share = directory.path().join(&prefix[1..]).join("share");
        let applications = share.join("applications");
        let viewer = "[Desktop Entry]\nType=Application\nName=V\nExec=true %f\nMimeType=image/png;video/mp4;\n";
        fs::write(applications.join("viewer.desktop"), viewer).unwrap();
        output(Command::new("update-desktop-database").arg(&applications));
        let entry = fs::read_to_string(applications.join("murald.desktop")).unwrap();
        assert!(
            entry.contains(&format!("Exec={prefix}/bin/murald set %f\n")),
            "{entry}"
        );
        for kind in ["image/png", "video/mp4", "image/jpeg"] {
            let said = output(
                Command::new("gio")
                    .args(["mime", kind])
                    .env("XDG_DATA_DIRS", &share)
                    .env("XDG_DATA_HOME", directory.path().join("data"))
                    .env("XDG_CONFIG_HOME", directory.path().join("config"))
                    .env("XDG_CONFIG_DIRS", directory.path().join("config"))
                    .env("LC_ALL", "C"),
            );
            assert!(!said.contains("murald"), "{prefix}: {said}");
            let is_shown = said.contains("viewer.desktop");
            assert_eq!(is_shown, kind != "image/jpeg", "{prefix}: {said}");
        }
    }
}

#[test]
fn user_can_install_into_the_home_directory() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    let said = output(
        Command::new("contrib/install")
            .arg(env!("CARGO_BIN_EXE_murald"))
            .env("HOME", home.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("PREFIX", at(".local")),
    );
    let murald = at(".local/bin/murald").display().to_string();
    assert_eq!(
        said,
        format!("installed {murald}\nshow a picture: {murald} set FILE\n")
    );
    let unit = fs::read_to_string(at(".local/share/systemd/user/murald.service")).unwrap();
    let start = format!("ExecStart={} start\n", at(".local/bin/murald").display());
    assert!(unit.contains(&start), "{unit}");
    assert!(at(".config/rc/init.d/murald").is_file());
    let waybar = at(".local/share/murald/waybar");
    let config = fs::read_to_string(waybar.join("config.jsonc")).unwrap();
    assert!(
        config.contains(waybar.join("murald-waybar").to_str().unwrap()),
        "{config}"
    );
    assert!(!config.contains("/usr/share"), "{config}");
}

#[test]
fn installation_into_another_prefix_has_the_right_paths() {
    let directory = tempfile::tempdir().unwrap();
    output(
        Command::new("contrib/install")
            .arg(env!("CARGO_BIN_EXE_murald"))
            .env("DESTDIR", directory.path())
            .env("PREFIX", "/opt/murald"),
    );
    let read = |path: &str| fs::read_to_string(directory.path().join(path)).unwrap();
    let unit = read("opt/murald/lib/systemd/user/murald.service");
    assert!(
        unit.contains("ExecStart=/opt/murald/bin/murald start\n"),
        "{unit}"
    );
    assert!(read("etc/user/init.d/murald").contains("command=\"/opt/murald/bin/murald\""));
    let installed = directory.path().join("opt/murald/bin/murald");
    let version = output(Command::new(installed).arg("--version"));
    assert_eq!(version, concat!("murald ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn removal_deletes_only_installed_files() {
    let directory = tempfile::tempdir().unwrap();
    let install = |word: &str| {
        let mut install = Command::new("contrib/install");
        output(
            install
                .arg(word)
                .env("DESTDIR", directory.path())
                .env_remove("PREFIX"),
        )
    };
    let files = || {
        let mut find = Command::new("find");
        output(
            find.arg(directory.path())
                .args(["(", "-type", "f", "-o", "-name", "murald", ")"]),
        )
    };
    install(env!("CARGO_BIN_EXE_murald"));
    let own = directory.path().join("usr/local/share/murald/pick/own");
    fs::write(&own, "").unwrap();
    assert_eq!(install("--remove"), "removed murald from /usr/local\n");
    assert_eq!(
        files()
            .lines()
            .filter(|file| !file.ends_with("share/murald"))
            .collect::<Vec<_>>(),
        [own.to_str().unwrap()]
    );
}

#[test]
fn prefix_with_spaces_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut install = Command::new("contrib/install");
    let prefix = home.path().join("a b/.local");
    install
        .arg(env!("CARGO_BIN_EXE_murald"))
        .env("PREFIX", &prefix)
        .current_dir(root());
    let refused = install.output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("a PREFIX without spaces"),
        "{said}"
    );
    assert!(!prefix.exists());
}

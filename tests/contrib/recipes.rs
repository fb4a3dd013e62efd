//! Tests for packagers: the release tarball is reproducible, and the recipes for Arch, Alpine and Nix
//! can package it, as far as Debian has their tools.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TREE: &str = concat!("murald-", env!("CARGO_PKG_VERSION"));

/// Runs a script in a directory, and returns its output.
fn shell(directory: &Path, script: &str) -> String {
    let mut command = Command::new("bash");
    let output = command
        .args(["-euc", script])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Creates a repository at `root/name` with the current files of this tree, committed or not.
fn repository(root: &Path, name: &str) -> PathBuf {
    let repository = root.join(name);
    fs::create_dir(&repository).unwrap();
    let script = format!(
        "git ls-files -z --cached --others --exclude-standard |
         tar --null --ignore-failed-read --files-from=- --create | tar -x -C '{0}'
         cd '{0}'
         export GIT_{{AUTHOR,COMMITTER}}_DATE='2026-01-02T03:04:05Z' \
           GIT_{{AUTHOR,COMMITTER}}_NAME=somebody GIT_{{AUTHOR,COMMITTER}}_EMAIL=s@example.org
         git init -q && git add -A && git commit -q -m all",
        repository.display()
    );
    shell(manifest(), &script);
    repository
}

/// Runs contrib/release in a new repository, and returns the directory of its files.
fn release(root: &Path) -> PathBuf {
    let repository = repository(root, "repository");
    shell(&repository, "contrib/release dist");
    repository.join("dist")
}

/// Puts the files of a build into the unpacked source. The executable is copied, as makepkg runs as
/// `nobody`, who may not be able to read the original.
fn build(source: &Path) {
    let target = source.join(TREE).join("target");
    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_murald"), target.join("release/murald")).unwrap();
    fs::write(target.join("NOTICES"), "of the crates").unwrap();
}

/// The files below a directory, by relative path and without `.gz`, as pages may be compressed.
fn files(directory: &Path) -> BTreeSet<String> {
    shell(directory, "find . -type f -printf '%P\\n'")
        .lines()
        .map(|file| file.trim_end_matches(".gz").to_owned())
        .collect()
}

/// Checks the files that every package must have.
fn holds_what_it_must(package: &BTreeSet<String>) {
    for file in [
        "usr/bin/murald",
        "usr/share/applications/murald.desktop",
        "usr/share/bash-completion/completions/murald",
        "usr/share/fish/vendor_completions.d/murald.fish",
        "usr/share/zsh/site-functions/_murald",
        "usr/share/man/man1/murald.1",
        "usr/share/murald/pick/murald-pick",
        "usr/share/doc/murald/README.md",
        "usr/share/doc/murald/NOTICES",
    ] {
        assert!(package.contains(file), "no {file} in {package:#?}");
    }
}

#[test]
fn release_is_reproducible() {
    let root = tempfile::tempdir().unwrap();
    let one = repository(root.path(), "one");
    shell(&one, "umask 022; TZ=UTC contrib/release dist");
    // Another machine, another day, another user's settings.
    shell(
        root.path(),
        "umask 077
         git clone -q one two && cd two && find . -path ./.git -prune -o -type f -exec touch -d '1 week ago' {} +
         git config tar.umask 0077
         TZ=Asia/Tokyo LC_ALL=C.UTF-8 GZIP=-1 contrib/release ../elsewhere",
    );
    let (dist, elsewhere) = (one.join("dist"), root.path().join("elsewhere"));
    let tarball = format!("{TREE}.tar.gz");
    for name in [
        "APKBUILD",
        "PKGBUILD",
        &tarball,
        &format!("{tarball}.sha256"),
    ] {
        let same = fs::read(dist.join(name)).unwrap() == fs::read(elsewhere.join(name)).unwrap();
        assert!(same, "{name} differs");
    }
    shell(&dist, &format!("sha256sum --quiet -c {tarball}.sha256"));
    let files = shell(&dist, &format!("tar -tzf {tarball}"));
    assert!(files.contains("/tests/fuzz/run\n") && !files.contains("/tests/fuzz/corpus/"));
}

#[test]
fn makepkg_packages_the_release() {
    let root = tempfile::tempdir().unwrap();
    let dist = release(root.path());
    let makepkg = |options: &str| {
        // makepkg refuses to run as root.
        let script = format!(
            "as=()
             if [ $EUID -eq 0 ]; then
               chmod 755 '{}' && chown -R nobody .
               as=(setpriv --reuid nobody --clear-groups --)
             fi
             export PKGEXT=.pkg.tar HOME=$PWD BUILDDIR=$PWD PKGDEST=$PWD
             \"${{as[@]}}\" makepkg --nodeps {options}",
            root.path().display()
        );
        shell(&dist, &script)
    };
    // This checks the checksum and unpacks the tarball.
    makepkg("--nobuild --noprepare");
    build(&dist.join("src"));
    makepkg("--noextract --repackage");
    shell(
        &dist,
        "mkdir unpacked && bsdtar -xf murald-*.pkg.tar -C unpacked",
    );
    let package = files(&dist.join("unpacked"));
    holds_what_it_must(&package);
    assert!(package.contains("usr/lib/systemd/user/murald.service"));
    for notice in ["LICENSE-MIT", "NOTICES"] {
        assert!(
            package.contains(&format!("usr/share/licenses/murald/{notice}")),
            "{package:#?}"
        );
    }
    let strangers = package
        .iter()
        .filter(|file| !file.starts_with("usr/") && !file.starts_with('.'));
    assert_eq!(strangers.count(), 0, "{package:#?}");
}

/// Debian has no abuild, so the test runs its steps.
#[test]
fn alpine_recipe_packages_the_release() {
    let root = tempfile::tempdir().unwrap();
    let dist = release(root.path());
    shell(
        root.path(),
        &format!(
            "mkdir src && tar -xzf '{}/{TREE}.tar.gz' -C src",
            dist.display()
        ),
    );
    build(&root.path().join("src"));
    let script = format!(
        "dash -euc '
           . ./APKBUILD
           [ -n \"$url\" ]
           [ \"$pkgname-$pkgver\" = {TREE} ]
           printf \"%s\\n\" \"$sha512sums\" | sha512sum -c --quiet
           pkgdir={root}/package
           cd {root}/src/$pkgname-$pkgver
           package'",
        root = root.path().display(),
    );
    shell(&dist, &script);
    // abuild refuses a maintainer without an address.
    let recipe = fs::read_to_string(dist.join("APKBUILD")).unwrap();
    assert!(
        !recipe.contains("# Maintainer:") && !recipe.contains("# Contributor:"),
        "{recipe}"
    );
    let package = files(&root.path().join("package"));
    holds_what_it_must(&package);
    assert!(package.contains("etc/user/init.d/murald"));
    assert!(
        !package.iter().any(|file| file.starts_with("usr/lib")),
        "{package:#?}"
    );
}

/// Debian has no nixpkgs, so a stub returns the arguments of its builder.
#[test]
fn nix_expression_can_be_evaluated() {
    let root = tempfile::tempdir().unwrap();
    let expression = format!(
        r#"
        let
          lib = {{
            licenses = {{ mit = "MIT"; asl20 = "Apache-2.0"; }};
            platforms.linux = [ "x86_64-linux" ];
          }};
          package = import {manifest}/contrib/nix {{
            pkgs = {{ inherit lib; rustPlatform.buildRustPackage = given: given; }};
            pkg-config = "pkg-config"; sqlite = "sqlite"; coreutils = "/coreutils";
          }};
        in
        [
          package.pname package.version package.meta.mainProgram package.buildNoDefaultFeatures
          (builtins.pathExists package.cargoLock.lockFile) package.installPhase
        ]
        "#,
        manifest = manifest().display(),
    );
    fs::write(root.path().join("try.nix"), expression).unwrap();
    let script = "NIX_STATE_DIR=$PWD HOME=$PWD \
                  nix-instantiate --eval --store dummy:// --strict --json try.nix 2>/dev/null";
    let mut told: Vec<serde_json::Value> =
        serde_json::from_str(&shell(root.path(), script)).unwrap();
    let install = told.pop().unwrap();
    assert!(install.as_str().unwrap().contains("contrib/install"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        serde_json::json!(told),
        serde_json::json!(["murald", version, "murald", true, true])
    );
}

#[test]
fn notices_cover_all_compiled_crates() {
    let notices = shell(manifest(), "contrib/notices");
    // The only C code in crates, apart from SQLite, which is in the public domain.
    assert!(
        notices.contains("Copyright (c) 2010, Google Inc."),
        "libwebp's own"
    );
    for crate_of_ours in ["\nrusqlite 0.", "\nimage 0.", "\nwayland-client 0."] {
        assert!(notices.contains(crate_of_ours), "no {crate_of_ours:?}");
    }
    assert!(
        !notices.contains("\nproptest 1."),
        "a crate of the tests is listed"
    );
}

#[test]
fn debian_changelog_has_the_current_version() {
    let changelog = fs::read_to_string(manifest().join("contrib/debian/changelog")).unwrap();
    assert!(changelog.starts_with(concat!("murald (", env!("CARGO_PKG_VERSION"), ")")));
}

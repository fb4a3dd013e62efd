//! A packager, who installs into a directory and checks that everything is there and right.

use std::process::{Command, Output};

use crate::support::TestDaemon;

#[test]
fn installed_package_is_complete() {
    let daemon = TestDaemon::new();
    let to = daemon.root().join("pkg");
    let types = |line: &str| -> Output {
        let mut sh: Command = daemon.command("sh");
        sh.args(["-euc", line])
            .env("pkgdir", &to)
            .env("MURALD", env!("CARGO_BIN_EXE_murald"));
        let output = sh.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        output
    };
    let says = |line: &str| String::from_utf8(types(line).stdout).unwrap();
    types(r#"DESTDIR="$pkgdir" PREFIX=/usr contrib/install "$MURALD""#);
    let version = concat!("murald ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(says(r#""$pkgdir/usr/bin/murald" --version"#), version);
    // All man pages pass a linter.
    assert_eq!(
        says(r#"mandoc -T lint -W warning "$pkgdir"/usr/share/man/man*/*"#),
        ""
    );
    let pages = says(r#"cd "$pkgdir/usr/share/man" && ls man*/*"#);
    for page in [
        "murald.1",
        "murald-tutorial.7",
        "murald-api.7",
        "murald.toml.5",
    ] {
        assert!(pages.contains(page), "{pages}");
    }
    // Each shell can read its completions.
    types(r#"bash -n "$pkgdir/usr/share/bash-completion/completions/murald""#);
    types(r#"fish --no-execute "$pkgdir/usr/share/fish/vendor_completions.d/murald.fish""#);
    types(r#"zsh -n "$pkgdir"/usr/share/zsh/*/_murald"#);
    // The unit names the executable's final path.
    types(
        r#"grep -qx 'ExecStart=/usr/bin/murald start' "$pkgdir/usr/lib/systemd/user/murald.service""#,
    );
    // No file contains the path of the packaging directory.
    types(r#"! grep -rlI "$pkgdir" "$pkgdir""#);
    // The executable runs from there, without a session or a daemon.
    let help = says(r#""$pkgdir/usr/bin/murald" --help"#);
    assert!(
        help.lines().count() <= 24 && help.lines().all(|line| line.len() <= 80),
        "{help}"
    );
    types(r#"touch "$HOME/new.toml"; "$pkgdir/usr/bin/murald" config check "$HOME/new.toml""#);
}

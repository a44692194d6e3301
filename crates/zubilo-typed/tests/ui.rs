//! Programs that must not compile, and what the compiler says to them. The wording is the compiler's
//! own, so it is compared on one release only; `must_not_compile.md` holds on all of them.

use std::process::Command;

/// The release whose wording `tests/ui/*.stderr` has; to be raised together with these files, which
/// `TRYBUILD=overwrite` writes.
const WORDING_OF: &str = "rustc 1.95.";

#[test]
fn these_do_not_compile() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc tells its version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(WORDING_OF) {
        eprintln!("not compared: the messages are those of {WORDING_OF}x, this is {version}");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}

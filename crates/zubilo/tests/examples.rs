//! Runs the examples, as built: they assert what they show.

use std::path::PathBuf;
use std::process::Command;

/// The built example; `cargo test` builds them all, but `cargo test --test examples` does not.
fn path_of(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.ancestors().nth(2).expect("the folder of the profile").join("examples");
    let program = built.join(name);
    if !program.exists() {
        let cargo = std::env::var("CARGO").unwrap_or("cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let mut build = Command::new(cargo);
        build.args(["build", "--examples", "--manifest-path", manifest]);
        if built.parent().is_some_and(|p| p.ends_with("release")) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success());
    }
    program
}

fn run(name: &str) {
    let output = Command::new(path_of(name)).output().expect("the example runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}", output.status);
}

#[test]
fn first_steps() {
    run("first_steps");
}

#[test]
fn secondary_index() {
    run("secondary_index");
}

#[test]
fn queue_group_commit() {
    run("queue_group_commit");
}

#[test]
fn many_readers() {
    run("many_readers");
}

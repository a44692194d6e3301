//! Programs in C, compiled with our header and with the original's where it is installed, run on
//! our library; with sanitizers, and under valgrind where that is installed.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
}

/// Where headers are: ours, and the original's if there is one.
fn headers() -> Vec<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let theirs = PathBuf::from("/usr/include");
    if theirs.join("lmdb.h").exists() { vec![ours, theirs] } else { vec![ours] }
}

fn compiler(language: &str, header: &Path) -> Command {
    let mut cc = Command::new(language);
    cc.args(["-Wall", "-Wextra", "-Werror", "-g"]).arg("-I").arg(header);
    cc
}

/// A directory with the library under the name that programs ask for.
fn installed(dir: &Path) -> PathBuf {
    let lib = dir.join("lib");
    std::fs::create_dir(&lib).expect("a directory");
    for name in ["liblmdb.so.0", "liblmdb.so"] {
        std::fs::copy(common::library(), lib.join(name)).expect("the library");
    }
    lib
}

/// How a program is watched while it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    Nothing,
    /// Compiled with the address and undefined-behaviour sanitizers.
    Sanitizers,
    Valgrind,
}

fn runs(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let lib = installed(dir.path());
    for (i, header) in headers().iter().enumerate() {
        for watch in [Watch::Nothing, Watch::Sanitizers, Watch::Valgrind] {
            let valgrind = || Command::new("valgrind").arg("--version").output().is_ok();
            let watched = watch != Watch::Nothing;
            if watched && i > 0 || watch == Watch::Valgrind && !valgrind() {
                continue;
            }
            let program = dir.path().join(name);
            let mut cc = compiler("gcc", header);
            if watch == Watch::Sanitizers {
                cc.args(["-fsanitize=address,undefined", "-fno-sanitize-recover"]);
            }
            cc.args(["-std=c11", "-D_GNU_SOURCE", "-o"]).arg(&program);
            // Beside LMDB's own header ours for the rest is found too.
            cc.arg("-idirafter").arg(&headers()[0]);
            cc.arg(sources().join(format!("{name}.c"))).arg("-L").arg(&lib);
            run(cc.args(["-llmdb", "-pthread"]));
            let store = tempfile::tempdir_in(dir.path()).expect("a directory");
            // `data` wants the path of a file, the others one of a directory.
            let path = if name == "data" { store.path().join("file") } else { store.path().into() };
            run(under(watch, &program).arg(path).env("LD_LIBRARY_PATH", &lib));
        }
    }
}

/// The command that runs a program, watched.
fn under(watch: Watch, program: &Path) -> Command {
    if watch != Watch::Valgrind {
        return Command::new(program);
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
    valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    valgrind.arg(program);
    valgrind
}

#[test]
fn wrong_arguments_and_dead_handles_give_codes() {
    runs("misuse");
}

#[test]
fn transactions_threads_and_handles_keep_the_rules() {
    runs("rules");
}

#[test]
fn edges_are_as_programs_know_them() {
    runs("edges");
}

/// Runs a program on the original, too, where that is installed.
fn runs_on_both(name: &str) {
    let theirs = Path::new("/usr/include/lmdb.h");
    if theirs.exists() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join(name);
        let mut cc = compiler("gcc", Path::new("/usr/include"));
        cc.args(["-std=c11", "-D_GNU_SOURCE", "-o"]).arg(&program);
        run(cc.arg(sources().join(format!("{name}.c"))).args(["-llmdb", "-pthread"]));
        let store = tempfile::tempdir_in(dir.path()).expect("a directory");
        run(Command::new(&program).arg(store.path()));
    }
    runs(name);
}

#[test]
fn corners_are_those_of_the_original() {
    runs_on_both("corners");
}

#[test]
fn the_map_size_stays_what_it_was_set_to() {
    runs_on_both("mapsize");
}

#[test]
fn forks_second_handles_and_foreign_files_do_no_harm() {
    runs("process");
}

#[test]
fn what_lmdb_does_not_have_works() {
    runs("beyond");
}

#[test]
fn the_rest_of_the_engine_can_be_reached() {
    runs("beyond_store");
}

#[test]
fn records_cursors_and_comparators_work() {
    runs("data");
}

#[test]
fn processes_without_a_lock_file_take_turns() {
    runs_on_both("nolock");
}

#[test]
fn comparisons_may_call_the_library() {
    runs("reentry");
}

#[test]
fn comparisons_get_what_the_program_has_handed_in() {
    runs("comparators");
}

#[test]
fn layouts_are_those_that_programs_have_compiled_in() {
    let dir = tempfile::tempdir().expect("a directory");
    for header in headers() {
        let object = dir.path().join("layout.o");
        let source = sources().join("layout.c");
        for (language, standard) in
            [("gcc", "-std=c99"), ("gcc", "-std=c11"), ("g++", "-std=c++11")]
        {
            let mut cc = compiler(language, &header);
            if language == "g++" {
                // C++ sees the same declarations; unused type names are its way to check them.
                cc.args(["-x", "c++", "-Wno-unused-local-typedefs"]);
            }
            cc.args([standard, "-D_GNU_SOURCE", "-c", "-o"]).arg(&object).arg(&source);
            run(&mut cc);
        }
    }
}

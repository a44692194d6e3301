//! Each public type of the published crates has an example in its documentation.
//!
//! The scan reads text, not syntax: what `lib.rs` exports by `pub use`, and the comments above its definition. That
//! the examples hold is shown by running them (`cargo test --doc`).

use std::fs;
use std::path::{Path, PathBuf};

fn collect(dir: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            into.push((path, text));
        }
    }
}

fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates");
    let mut all = Vec::new();
    collect(&crates.join(name).join("src"), &mut all);
    all
}

/// Names of types that `lib.rs` exports, but hidden ones.
fn exported(lib: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in lib.match_indices("\npub use ") {
        let hidden = lib[..at].ends_with("#[doc(hidden)]");
        let item = lib[at + "\npub use ".len()..].split(';').next().unwrap_or_default();
        let words = item.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_type =
            |word: &str| word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        found.extend(words.filter(|word| !hidden && is_type(word)).map(str::to_string));
    }
    found
}

/// The comments and attributes above the definition of a type.
fn docs_of<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_definition = |line: &&str| {
        let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
        let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind));
        let rest = rest.and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let at = lines.iter().position(is_definition)?;
    let above = lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
    Some(above.copied().collect())
}

/// How many types were looked at, and those without an example.
fn without_example(name: &str) -> (usize, Vec<String>) {
    let sources = sources(name);
    let lib = sources.iter().find(|(path, _)| path.ends_with("src/lib.rs"));
    let types = exported(&lib.expect("lib.rs").1);
    let count = types.len();
    let lacks = |name: &String| {
        let docs: Vec<_> = sources.iter().filter_map(|(_, text)| docs_of(text, name)).collect();
        assert!(!docs.is_empty(), "the definition of {name} is not found");
        !docs.iter().any(|docs| docs.iter().any(|line| line.starts_with("/// ```")))
    };
    let lacking = types.into_iter().filter(lacks).collect();
    (count, lacking)
}

#[test]
fn each_type_has_an_example() {
    let (count, lacking) = without_example("zubilo");
    assert!(count > 60, "the scan found only {count} types");
    assert!(lacking.is_empty(), "types of zubilo without an example: {lacking:?}");
    let (count, lacking) = without_example("zubilo-typed");
    assert!(count > 20, "the scan found only {count} types");
    assert!(lacking.is_empty(), "types of zubilo-typed without an example: {lacking:?}");
}

#[test]
fn a_type_without_an_example_is_found() {
    let text = "/// Has one.\n///\n/// ```\n/// ```\npub struct Good;\n\n/// Has none.\n#[derive(Debug)]\npub enum Bad {}\n";
    let has = |name| docs_of(text, name).unwrap().contains(&"/// ```");
    assert_eq!((has("Good"), has("Bad"), docs_of(text, "Ba").is_none()), (true, false, true));
    let lib = "mod a;\npub use a::{One, two, THREE};\n#[doc(hidden)]\npub use b::Four;\n";
    assert_eq!(exported(lib), ["One"]);
}

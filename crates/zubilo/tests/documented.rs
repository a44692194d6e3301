//! Each public type of the published crates has an example in its documentation, and each public method of these
//! types is called in one.
//!
//! The scan reads text, not syntax: what `lib.rs` exports by `pub use`, and the comments above its definition. It
//! relies on rustfmt's layout. That the examples hold is shown by running them (`cargo test --doc`).

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

/// The lines of all examples.
fn examples(sources: &[(PathBuf, String)]) -> String {
    let mut lines = String::new();
    for (_, text) in sources {
        let mut is_inside = false;
        for line in text.lines().map(str::trim_start) {
            // The example of a feature begins with an attribute.
            if line.contains("cfg_attr(") && line.contains("doc = \"```\")") {
                is_inside = true;
            }
            let Some(doc) = line.strip_prefix("///").or(line.strip_prefix("//!")) else { continue };
            if doc.trim_start().starts_with("```") {
                is_inside = !is_inside;
            } else if is_inside {
                lines.push_str(doc);
                lines.push('\n');
            }
        }
    }
    lines
}

/// The type that a line at the left margin begins an `impl` block of, unless it is one of a trait.
fn type_of_impl(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!rest.contains(" for ")).then_some(name)
}

/// Public methods of a source, each with its type; hidden ones are none, and those of hidden blocks have no type.
fn methods(text: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut of, mut found) = ("", Vec::new());
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = type_of_impl(line) {
            let is_hidden = at > 0 && lines[at - 1] == "#[doc(hidden)]";
            of = if is_hidden { "" } else { name };
        }
        let rest =
            ["    pub fn ", "    pub const fn "].iter().find_map(|start| line.strip_prefix(start));
        let Some(name) = rest.and_then(|rest| rest.split(['(', '<']).next()) else { continue };
        let above = lines[..at].iter().rev().take_while(|line| !line.is_empty());
        if !above.copied().any(|line| line.trim() == "#[doc(hidden)]") {
            found.push((of, name));
        }
    }
    found
}

/// Whether an example calls a method of this name.
fn is_called(examples: &str, name: &str) -> bool {
    examples.match_indices(name).any(|(at, _)| {
        let before = examples[..at].chars().next_back();
        let after = &examples[at + name.len()..];
        before.is_some_and(|c| c == '.' || c == ':')
            && (after.starts_with('(') || after.starts_with("::<"))
    })
}

/// How many methods were looked at, and those that no example calls.
fn never_shown(name: &str) -> (usize, Vec<String>) {
    let sources = sources(name);
    let lib = sources.iter().find(|(path, _)| path.ends_with("src/lib.rs"));
    let types = exported(&lib.expect("lib.rs").1);
    let examples = examples(&sources);
    let (mut count, mut lacking) = (0, Vec::new());
    for (_, text) in &sources {
        for (of, method) in methods(text) {
            if types.iter().any(|name| name == of) {
                count += 1;
                if !is_called(&examples, method) {
                    lacking.push(format!("{of}::{method}"));
                }
            }
        }
    }
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

#[test]
fn each_method_is_shown_in_an_example() {
    let (count, lacking) = never_shown("zubilo");
    assert!(count > 250, "the scan found only {count} methods");
    assert!(lacking.is_empty(), "methods of zubilo that no example calls: {lacking:?}");
    let (count, lacking) = never_shown("zubilo-typed");
    assert!(count > 30, "the scan found only {count} methods");
    assert!(lacking.is_empty(), "methods of zubilo-typed that no example calls: {lacking:?}");
}

#[test]
fn a_method_without_an_example_is_found() {
    let text = "impl<'t, K: Into<u8>> Good<'t, K> {\n    /// ```\n    /// it.shown(7);\n    /// ```\n    pub fn shown<T>(&self) {}\n\n    #[doc(hidden)]\n    pub fn hidden(&self) {}\n\n    pub const fn never(self) {}\n}\nimpl Clone for Bad {\n}\n";
    assert_eq!(methods(text), [("Good", "shown"), ("Good", "never")]);
    let examples = examples(&[(PathBuf::new(), text.to_string())]);
    assert!(is_called(&examples, "shown") && !is_called(&examples, "never"));
    assert!(!is_called("let unshown(1)", "shown"));
}

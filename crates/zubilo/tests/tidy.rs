//! Keeps the limits that reviews need not talk about: lengths of files and functions, no panics in
//! code that parses bytes, `unsafe` only where `SAFETY.md` says, a paragraph at the head of each
//! module, nothing left for later and nothing commented out, no name of a file that is not there.
//!
//! The scans read text, not syntax: they rely on rustfmt's layout, and on nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer for now: path and name. An entry that is no longer needed fails the
/// test, so that the list only shrinks.
const LONG_FUNCTIONS: [(&str, &str); 0] = [];

/// Code that reads bytes of the file: nothing in it may panic on what it finds.
const PARSERS: [&str; 9] = [
    "crates/zubilo/src/page/",
    "crates/zubilo/src/tree/",
    "crates/zubilo/src/space/codec.rs",
    "crates/zubilo/src/env/meta.rs",
    "crates/zubilo/src/space/log.rs",
    "crates/zubilo/src/redo/op.rs",
    "crates/zubilo/src/redo/record.rs",
    "crates/zubilo-typed/src/",
    "crates/lmdb-file/src/",
];
const PANICS: [&str; 7] =
    [".unwrap()", ".expect(", "panic!", "unreachable!", "todo!", "unimplemented!", "assert!("];

struct Source {
    /// From the root of the workspace, with forward slashes.
    path: String,
    text: String,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate lies two levels below the root").to_path_buf()
}

fn collect(dir: &Path, root: &Path, into: &mut Vec<Source>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, root, into);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            into.push(Source { path: name, text: fs::read_to_string(&path).unwrap() });
        }
    }
}

fn sources() -> Vec<Source> {
    let root = root();
    let mut all = Vec::new();
    collect(&root.join("crates"), &root, &mut all);
    collect(&root.join("bindings"), &root, &mut all);
    all.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(all.len() > 50, "the scan found only {} files", all.len());
    all
}

impl Source {
    /// Whether the whole file is only compiled for tests.
    fn is_test(&self) -> bool {
        let test_names = ["tests.rs", "model.rs"];
        self.path.contains("/tests/") || test_names.iter().any(|n| self.path.ends_with(n))
    }

    fn is_library(&self) -> bool {
        self.path.contains("/src/")
    }

    /// Number and code of each line that ships: without comments and the module of tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        self.text[..tests].lines().enumerate().map(|(i, line)| (i + 1, without_comment(line)))
    }

    /// Name, line and length of each function.
    fn functions(&self) -> Vec<(String, usize, usize)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            let indent = line.len() - line.trim_start().len();
            let closing = format!("{}}}", " ".repeat(indent));
            // A declaration in a trait ends with a semicolon as far left as it began.
            let ends = |l: &&str| {
                let left = l.len() - l.trim_start().len() == indent;
                **l == closing || left && l.ends_with(';')
            };
            let one_line = line.ends_with('}');
            let end = if one_line { Some(0) } else { lines[i..].iter().position(ends) };
            found.push((name.to_string(), i + 1, end.map_or(1, |n| n + 1)));
        }
        found
    }
}

fn without_comment(line: &str) -> &str {
    match line.find("//") {
        // "https://" and the like are in strings.
        Some(at) if !line[..at].ends_with(':') => &line[..at],
        _ => line,
    }
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for word in
        ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe ", "extern \"C\" "]
    {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// Whether `word` is in `line` as a word of its own, outside of strings.
fn has_word(line: &str, word: &str) -> bool {
    let outside: String = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    outside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Words that once stood here for what the field calls otherwise, and what to say instead. Compared without
/// regard to case, as whole words and as parts of names.
const RETIRED: [(&str, &str); 13] = [
    ("canary", "user words"),
    ("canaries", "user words"),
    ("straggler", "reader lag"),
    ("stragglers", "reader lag"),
    ("believed", "trusted"),
    ("believe", "trust"),
    ("believes", "trusts"),
    ("credible", "trusted, valid"),
    ("hungry", "starved"),
    ("ledger", "free-space log"),
    ("unbelieved", "untrusted"),
    ("flock", "dataset; file locks are OFD locks or the call `flock`"),
    ("gift", "redistribution"),
];

/// Turns of phrase that read as if translated, which documents avoid, and what to say instead.
const RETIRED_PHRASES: [(&str, &str); 8] = [
    ("one behind the other", "one after the other"),
    ("behind the end", "past the end"),
    ("behind the last", "after the last"),
    ("behind all", "after all"),
    ("is told", "who tells whom? or: is reported, is known"),
    ("are told", "who tells whom? or: are reported, are known"),
    ("stands in", "is in"),
    ("stand in", "are in"),
];

/// The words of a text: names in any style are taken apart.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for name in text.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        for c in name.chars() {
            if c.is_uppercase() && word.ends_with(char::is_lowercase) {
                words.push(std::mem::take(&mut word));
            }
            word.push(c);
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words.iter().map(|word| word.to_lowercase()).collect()
}

#[test]
fn retired_words_stay_away() {
    let mut problems = Vec::new();
    let mut look = |path: &str, text: &str| {
        for (i, line) in text.lines().enumerate() {
            let found = words(line);
            // What other programs call so: the system's call, functions of libmdbx.
            let is_name = |word: &str| match word {
                "flock" => {
                    line.contains("flock(") || line.contains("`flock`") || line.contains("libc::")
                }
                _ => line.to_lowercase().contains("mdbx_") || path == "docs/names.md",
            };
            for (word, better) in RETIRED {
                if found.iter().any(|f| f == word) && !is_name(word) {
                    problems.push(format!("{path}:{}: {word}: say {better}", i + 1));
                }
            }
            let spaced = format!(" {} ", found.join(" "));
            for (phrase, better) in RETIRED_PHRASES {
                if spaced.contains(&format!(" {phrase} ")) {
                    problems.push(format!("{path}:{}: {phrase}: say {better}", i + 1));
                }
            }
        }
    };
    for source in sources().iter().filter(|s| !s.path.ends_with("tests/tidy.rs")) {
        look(&source.path, &source.text);
    }
    for page in pages() {
        look(&page.0, &page.1);
    }
    report(&problems);
    assert_eq!(
        words("CopyBelieved not_believed HTTPBody"),
        ["copy", "believed", "not", "believed", "httpbody"]
    );
}

/// The documents of what holds today: their paths and texts.
fn pages() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "md") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 15, "only {} documents", found.len());
    found
}

#[test]
fn files_and_functions_are_short() {
    let mut problems = Vec::new();
    let mut excused = BTreeSet::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            problems.push(format!("{}: {lines} lines", source.path));
        }
        for (name, line, len) in source.functions() {
            if len <= FUNCTION_LINES_MAX {
                continue;
            }
            let excuse = LONG_FUNCTIONS.iter().find(|(p, n)| *p == source.path && *n == name);
            match excuse {
                Some(excuse) => drop(excused.insert(excuse)),
                None => problems.push(format!("{}:{line}: {name}: {len} lines", source.path)),
            }
        }
    }
    for entry in LONG_FUNCTIONS.iter().filter(|e| !excused.contains(e)) {
        problems.push(format!("{entry:?} is excused but short: take it off the list"));
    }
    report(&problems);
}

#[test]
fn parsers_cannot_panic() {
    let mut problems = Vec::new();
    let parsers = sources();
    let parsers =
        parsers.iter().filter(|s| !s.is_test() && PARSERS.iter().any(|p| s.path.starts_with(p)));
    for source in parsers {
        for (line, code) in source.code() {
            let code = code.replace("debug_assert!(", "");
            for panic in PANICS.iter().filter(|p| code.contains(**p)) {
                // Checked when the crate is compiled.
                let checks = ["const _: () = assert!(", "const { assert!("];
                if !checks.iter().any(|check| code.trim_start().starts_with(check)) {
                    problems.push(format!("{}:{line}: {panic}", source.path));
                }
            }
        }
    }
    report(&problems);
}

#[test]
fn unsafe_stands_where_safety_md_says() {
    let safety = fs::read_to_string(root().join("SAFETY.md")).expect("SAFETY.md");
    let listed: BTreeSet<String> = safety
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('`').nth(1))
        .filter(|path| path.ends_with(".rs"))
        .map(|path| format!("crates/zubilo/src/{path}"))
        .collect();
    let used: BTreeSet<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("crates/zubilo/src/") && !s.is_test())
        .filter(|s| s.code().any(|(_, code)| has_word(code, "unsafe")))
        .map(|s| s.path.clone())
        .collect();
    let unlisted: Vec<_> = used.difference(&listed).collect();
    let unused: Vec<_> = listed.difference(&used).collect();
    assert!(unlisted.is_empty(), "unsafe code that SAFETY.md does not list: {unlisted:?}");
    assert!(unused.is_empty(), "SAFETY.md lists files without unsafe code: {unused:?}");
}

#[test]
fn modules_open_with_a_paragraph() {
    let bare: Vec<String> = sources()
        .into_iter()
        .filter(|s| s.is_library() && !s.text.starts_with("//!"))
        .map(|s| s.path)
        .collect();
    report(&bare);
}

#[test]
fn nothing_is_left_for_later() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let mut problems = Vec::new();
    for source in sources() {
        for (i, line) in source.text.lines().enumerate() {
            if marks.iter().any(|mark| has_word(line, mark)) {
                problems.push(format!("{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    report(&problems);
}

#[test]
fn nothing_is_commented_out() {
    let mut problems = Vec::new();
    for source in sources() {
        for (i, line) in source.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("// ") else { continue };
            let comment = comment.trim();
            if comment.starts_with("SAFETY") {
                continue;
            }
            let statement = comment.ends_with(';')
                && (comment.starts_with("let ")
                    || comment.contains(");")
                    || comment.contains(" = "));
            let block = comment.ends_with(" {") || comment.starts_with("#[");
            if statement || block {
                problems.push(format!("{}:{}: {comment}", source.path, i + 1));
            }
        }
    }
    report(&problems);
}

#[test]
fn the_scans_see_what_they_look_for() {
    let text = "//! A module.\nfn long() {\n    1;\n\n}\nfn one() {}\nfn two(\n    a: u8,\n) {\n    a;\n}\n";
    let source = Source { path: "crates/zubilo/src/page/x.rs".into(), text: text.into() };
    let lens: Vec<_> = source.functions().into_iter().map(|(n, _, l)| (n, l)).collect();
    assert_eq!(lens, [("long".into(), 4), ("one".into(), 1), ("two".into(), 5)]);
    assert!(has_word("    unsafe { x }", "unsafe"));
    assert!(!has_word("#![deny(unsafe_code)] \"unsafe\"", "unsafe"));
    assert_eq!(without_comment("let a; // unsafe"), "let a; ");
}

/// What `docs/names.md` names is there: methods are public, variants are named.
#[test]
fn the_names_in_the_documentation_exist() {
    let doc = fs::read_to_string(root().join("docs/names.md")).unwrap();
    let engine: Vec<Source> =
        sources().into_iter().filter(|s| s.path.starts_with("crates/zubilo/src/")).collect();
    let declares = |word: String| engine.iter().any(|source| source.text.contains(&word));
    let names = doc.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::"));
    let mut seen = 0;
    for (owner, name) in names {
        seen += 1;
        let is_type =
            declares(format!("pub struct {owner}")) || declares(format!("pub enum {owner}"));
        assert!(is_type, "{owner}::{name}");
        let method = |end| declares(format!("pub fn {name}{end}"));
        let is_there = if name.starts_with(|c: char| c.is_uppercase()) {
            declares(format!("    {name}"))
        } else {
            method('(') || method('<')
        };
        assert!(is_there, "{owner}::{name}");
    }
    assert!(seen > 100, "{seen}");
}

/// The bindings are workspaces of their own and cannot inherit the version.
#[test]
fn the_bindings_have_the_version_of_the_workspace() {
    let version = |file: &str| {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let line = text.lines().find(|line| line.starts_with("version = ")).map(str::to_string);
        line.unwrap_or_else(|| panic!("{file} has no version"))
    };
    assert_eq!(version("bindings/python/Cargo.toml"), version("Cargo.toml"));
}

/// All files of the project, as paths from its root.
fn files(dir: &Path, root: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                files(&path, root, into);
            }
        } else {
            into.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

/// Files that documents and comments name in code type are there: whole paths, or the end of one.
#[test]
fn the_files_in_the_documentation_exist() {
    let (root, mut all) = (root(), Vec::new());
    files(&root, &root, &mut all);
    let is_there =
        |name: &str| all.iter().any(|file| file == name || file.ends_with(&format!("/{name}")));
    let (mut seen, mut problems) = (0, Vec::new());
    let texts = all.iter().filter(|file| file.ends_with(".md") || file.ends_with(".rs"));
    // What tells of the past may name what is gone.
    let is_past = |file: &str| file == "CHANGELOG.md" || file.starts_with("docs/history/");
    for file in texts.filter(|file| !is_past(file)) {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let is_prose = |line: &&str| file.ends_with(".md") || line.trim_start().starts_with("//");
        for line in text.lines().filter(is_prose) {
            for name in line.split('`').skip(1).step_by(2) {
                let is_path = name.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
                let kinds = [".rs", ".md", ".sh", ".toml"];
                if is_path && kinds.iter().any(|kind| name.ends_with(kind) && name != *kind) {
                    seen += 1;
                    if !is_there(name.trim_start_matches("./")) {
                        problems.push(format!("{file}: there is no {name}"));
                    }
                }
            }
        }
    }
    assert!(seen > 100, "{seen}");
    report(&problems);
}

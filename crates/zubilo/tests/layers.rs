//! Keeps the layers of ARCHITECTURE.md true: a module may name those of lower layers, and of its own, but none
//! above. What is compared are the paths in the source (`crate::…`), not syntax.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the top down, and the modules in each, by the beginnings of their paths. The longest
/// beginning that fits a module decides.
const LAYERS: [(&str, &[&str]); 10] = [
    ("interface", &["lib", "debug", "handle"]),
    ("maintenance", &["maintenance"]),
    ("transactions", &["txn"]),
    ("open store", &["env"]),
    ("trees", &["tree"]),
    ("changed pages", &["dirty"]),
    (
        "pages of a snapshot",
        &["tree/desc", "tree/located", "tree/pages", "tree/run", "tree/verify"],
    ),
    ("parts", &["page", "space", "shared", "redo", "crypt"]),
    ("platform", &["platform"]),
    ("ground", &["error", "num", "planted", "sync"]),
];

/// Modules of one layer that know nothing of each other.
const APART: [&str; 3] = ["page", "space", "shared"];

struct Source {
    /// Below `src`, without extension; `mod` left out.
    module: String,
    /// It is the `mod.rs` of a folder.
    is_folder: bool,
    text: String,
}

fn collect(dir: &Path, src: &Path, into: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, src, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let module = path.strip_prefix(src).unwrap().with_extension("");
            let module = module.to_string_lossy().replace('\\', "/");
            let is_folder = module.ends_with("/mod");
            let module = module.trim_end_matches("/mod").to_string();
            into.push(Source { module, is_folder, text: fs::read_to_string(&path).unwrap() });
        }
    }
}

fn sources() -> Vec<Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    collect(&src, &src, &mut all);
    assert!(all.len() > 80, "the scan found only {} files", all.len());
    all
}

/// The layer of a module, counted from the top.
fn layer(module: &str) -> Option<usize> {
    let fits = |begin: &&str| {
        module.strip_prefix(*begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let longest = |begins: &[&str]| begins.iter().filter(|b| fits(b)).map(|b| b.len()).max();
    let found =
        LAYERS.iter().enumerate().filter_map(|(i, (_, begins))| Some((longest(begins)?, i)));
    found.max().map(|(_, i)| i)
}

/// The code of a file without comments and tests.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of a list in braces, or the one name.
fn heads(rest: &str) -> Vec<String> {
    let name = |s: &str| {
        s.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(String::from)
    };
    let Some(inner) = rest.strip_prefix('{') else { return name(rest).into_iter().collect() };
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.extend(name(&inner[start..i]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(name(&inner[start..i]));
                start = i + 1;
            }
            _ => {}
        }
    }
    found
}

/// The modules that a file names, as paths below `src`. Of `crate::a::{b, c}` both `a/b` and `a/c`.
fn named(text: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        for first in heads(rest) {
            let below = rest.strip_prefix(first.as_str()).and_then(|r| r.strip_prefix("::"));
            let seconds = below.map(heads).unwrap_or_default();
            if seconds.is_empty() {
                modules.push(first);
            } else {
                modules.extend(seconds.into_iter().map(|second| format!("{first}/{second}")));
            }
        }
    }
    modules
}

/// Where an item is defined that is named by its short path: `tree/Snapshot` lies in `tree/pages`.
fn home(module: &str) -> &str {
    match module {
        "tree/Pages" | "tree/Ref" | "tree/Snapshot" | "tree/any_dirty" => "tree/pages",
        "tree/TreeDesc" | "tree/TreeOptions" => "tree/desc",
        "tree/RunRef" => "tree/run",
        // Public names, which the root of the crate gives to users.
        name if name.starts_with(char::is_uppercase) => "lib",
        other => other,
    }
}

#[test]
fn no_module_names_one_above_it() {
    let mut wrong = Vec::new();
    for source in sources() {
        let is_test = source.module.contains("/tests") || source.module.ends_with("/model");
        let Some(own) = layer(&source.module) else {
            wrong.push(format!("{} is in no layer", source.module));
            continue;
        };
        if is_test {
            continue;
        }
        let first = source.module.split('/').next().unwrap_or("");
        let code = code(&source.text);
        let beside = source.module.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = code.match_indices("super::").flat_map(|(at, word)| {
            let names = heads(&code[at + word.len()..]);
            names.into_iter().map(move |name| format!("{beside}/{name}"))
        });
        // A file that opens a folder names what is in it in its own way.
        let beside = beside.filter(|_| !source.is_folder && source.module.contains('/'));
        for target in named(&code).into_iter().chain(beside) {
            let target = home(&target);
            let Some(other) = layer(target) else {
                wrong.push(format!("{} names {target}, which is in no layer", source.module));
                continue;
            };
            let apart = APART.contains(&first)
                && APART.contains(&target.split('/').next().unwrap_or(""))
                && target.split('/').next() != Some(first);
            if other < own || apart {
                let (from, to) = (LAYERS[own].0, LAYERS[other].0);
                wrong.push(format!("{} ({from}) names {target} ({to})", source.module));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "arrows that go up:\n{}", wrong.join("\n"));
}

#[test]
fn paths_are_understood() {
    let text = "use crate::env::{EnvInner, metas::{self, Found}};\nlet a = crate::num::PageNo(1);";
    assert_eq!(named(text), ["env/EnvInner", "env/metas", "num/PageNo"]);
    assert_eq!(named("use crate::{Env, txn::ReadTxn};"), ["Env", "txn"]);
    assert_eq!(layer("tree/pages"), layer("tree/run"));
    assert!(layer("tree/pages") > layer("tree/insert"), "the longest beginning decides");
    assert!(
        code("a; // crate::txn\n#[cfg(test)]\nmod tests {\n    use crate::env;").contains("a;")
    );
    assert!(!code("a; // crate::txn").contains("crate"));
}

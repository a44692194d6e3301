//! Commands that draw or talk: the map, the live view, the measurements, the prompt.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use serde_json::Value;
use zubilo::{Options, PageKind, TableOptions};

use crate::harness::{Place, contents, run, run_with};

/// A store with tables, large values, free and held pages, and a redo log.
fn varied(place: &Place) -> (String, zubilo::Env) {
    let store = place.arg("s");
    let env = Options::new().redo_log(64 << 10).open(&store).unwrap();
    let mut txn = env.write().unwrap();
    for name in ["a", "b"] {
        let mut table = txn.table_or_create(name).unwrap();
        for i in 0..3000u32 {
            table.put(i.to_be_bytes(), [7; 50]).unwrap();
        }
    }
    txn.table_or_create("large").unwrap().put("k", vec![1; 200_000]).unwrap();
    txn.commit().unwrap();
    let mut txn = env.write().unwrap();
    txn.table("a")
        .unwrap()
        .delete_range(&1000u32.to_be_bytes()[..]..&2000u32.to_be_bytes()[..])
        .unwrap();
    txn.commit().unwrap();
    (store, env)
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn every_page_is_on_the_map() {
    let place = Place::new();
    let (store, env) = varied(&place);
    let mut due: BTreeMap<String, u64> = BTreeMap::from([("meta".to_string(), 4)]);
    env.walk_pages(&mut |visit| {
        let name = match visit.kind {
            PageKind::Branch => "branch",
            PageKind::Leaf => "leaf",
            PageKind::Run => "large value",
            PageKind::FreeSpaceLog => "free-space log",
            PageKind::RedoLog => "redo log",
            PageKind::Free => "free",
            PageKind::Retired => "held back",
            other => panic!("{other:?}"),
        };
        *due.entry(name.to_string()).or_default() += visit.count;
        true
    })
    .unwrap();
    for size in [&["--width", "96", "--height", "64"][..], &["--width", "8", "--height", "2"]] {
        let map = run(&[&["map", &store, "--json"], size].concat()).json();
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        let mut next = 0;
        for cell in map["cells"].as_array().unwrap() {
            assert_eq!(cell["first"].as_u64(), Some(next));
            next += cell["pages"].as_u64().unwrap();
            for (kind, pages) in cell["kinds"].as_object().unwrap() {
                *kinds.entry(kind.clone()).or_default() += pages.as_u64().unwrap();
            }
        }
        assert_eq!(map["pages"].as_u64(), Some(next));
        assert_eq!(next * 4096, std::fs::metadata(&store).unwrap().len());
        assert_eq!(serde_json::to_value(&kinds).unwrap(), map["kinds"]);
        kinds.remove("never used");
        assert_eq!(kinds, due);
    }
}

#[test]
fn the_map_says_for_whom_pages_are_held_back() {
    let place = Place::new();
    let (store, env) = varied(&place);
    let reader = env.read().unwrap();
    for _ in 0..2 {
        env.update(|txn| txn.table("b")?.put([0; 4], "new").map(drop)).unwrap();
    }
    let map = run(&["map", &store, "--json"]).json();
    let held = map["cells"].as_array().unwrap().iter().flat_map(|cell| {
        let of: u64 = cell["kinds"]["held back"].as_u64().unwrap_or(0);
        let parts = cell["held_for"].as_array().unwrap();
        assert_eq!(of, parts.iter().map(|part| part[1].as_u64().unwrap()).sum::<u64>());
        parts.iter().map(|part| (part[0].as_u64().unwrap(), part[1].as_u64().unwrap()))
    });
    let of_reader = held.filter(|(txn, _)| *txn == reader.id().0).map(|(_, pages)| pages);
    assert!(of_reader.sum::<u64>() > 0, "{map}");
    let page = place.arg("map.html");
    run(&["map", &store, "--html", &page]).ok();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains(&format!("held back for snapshot {}: ", reader.id().0)));
}

#[test]
fn the_map_on_a_terminal_and_in_a_file() {
    let place = Place::new();
    let (store, _env) = varied(&place);
    for by in ["kind", "table", "fill", "age"] {
        let drawn = run(&["map", &store, "--by", by, "--width", "64", "--height", "6"]).ok();
        assert!(!drawn.contains('\x1b'), "colours where no terminal is");
        let drawn: Vec<_> = drawn.lines().collect();
        assert!(drawn[0].starts_with(&store), "{drawn:?}");
        // 64 in a line, but for the last; then what the letters or digits mean.
        let cells: Vec<_> = drawn[2..].iter().take_while(|line| !line.is_empty()).collect();
        assert!(
            cells.len() > 1 && cells.iter().rev().skip(1).all(|line| line.len() == 64),
            "{drawn:?}"
        );
        assert!(drawn.last().unwrap().contains("never used"), "{drawn:?}");
        let coloured = run(&["map", &store, "--by", by, "--color", "always"]).ok();
        assert!(coloured.contains("\x1b[38;2;"), "no colours");
    }
    let page = place.arg("map.html");
    run(&["map", &store, "--html", &page]).ok();
    let html = std::fs::read_to_string(&page).unwrap();
    let cells = run(&["map", &store, "--json"]).json()["cells"].as_array().unwrap().len();
    assert_eq!(html.matches("<rect ").count(), cells);
    assert!(html.contains("<title>pages 0") || html.contains("<title>page 0"));
    for foreign in ["http:", "https:", "<script", "src="] {
        assert!(!html.contains(foreign), "the page needs something else: {foreign}");
    }
    run(&["map", &store, "--html", &page, "--json"]).code(2);
    run(&["map", &store, "--html", &place.arg("none/x.html")]).code(4).says("none/x.html");
    // A damaged store is drawn as far as it goes.
    let bad = place.arg("bad");
    std::fs::copy(&store, &bad).unwrap();
    // An open verifies the last commits; the damage is to be in an older one.
    for i in 0..6 {
        run(&["put", &bad, "--create", "k", &i.to_string()]).ok();
    }
    let mut bytes = std::fs::read(&bad).unwrap();
    bytes[5 * 4096..6 * 4096].fill(0xaa);
    std::fs::write(&bad, bytes).unwrap();
    run(&["map", &bad, "--color", "never"]).code(3).says("zubilo chk");
}

#[test]
fn the_live_view_prints_lines_where_no_terminal_is() {
    let place = Place::new();
    let (store, env) = varied(&place);
    run(&["top", &store]).code(2).says("--json");
    run(&["top", &store, "--interval", "0"]).code(2).says("--interval");
    let _read = env.read().unwrap();
    let shown = run(&["top", &store, "--json", "-n", "3", "-i", "0.05"]).code(0);
    let lines = lines(&shown.out);
    assert_eq!(lines.len(), 3);
    let last: Value = serde_json::from_str(&lines[2]).unwrap();
    assert_eq!(last["commits_per_second"], 0.0);
    assert_eq!(last["readers"][0]["pid"], std::process::id());
    assert_eq!(last["tables"][0]["entries"], 2000);
    assert_eq!((&last["commit_us"], &last["bytes_per_second"]), (&Value::Null, &0.0.into()));
    let sum: u64 = ["used_bytes", "free_bytes", "retired_bytes", "tail_bytes"]
        .iter()
        .map(|name| last[*name].as_u64().unwrap())
        .sum();
    assert_eq!(Some(sum), last["file_bytes"].as_u64());
}

/// Commits of one process and pages that a reader of another holds back, seen by a third.
#[test]
fn the_live_view_sees_what_others_do() {
    let place = Place::new();
    let (store, env) = varied(&place);
    let reader = env.read().unwrap();
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0u64.. {
                if end.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                env.update(|txn| txn.table("a")?.put(n.to_be_bytes(), "new")).unwrap();
            }
        });
        // Until a look has seen a commit between it and the one before: only the number of tries is not certain.
        loop {
            let shown = run(&["top", &store, "--json", "-n", "2", "-i", "0.2"]).code(0);
            let last: Value = serde_json::from_str(lines(&shown.out).last().unwrap()).unwrap();
            let held = last["readers"][0]["held_bytes"].as_u64().unwrap();
            if last["commits_per_second"] != 0.0 && !last["commit_us"].is_null() && held > 0 {
                assert!(last["bytes_per_second"].as_f64() > Some(0.0), "{last}");
                let parts = last["commit_us"].as_object().unwrap();
                let names: Vec<_> = parts.keys().collect();
                assert_eq!(names, ["flush", "layout", "log", "prepare", "publish", "write"]);
                assert!(parts["write"].as_f64() > Some(0.0), "{last}");
                assert!(Some(held) <= last["retired_bytes"].as_u64(), "{last}");
                break;
            }
        }
        end.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let listed = run(&["readers", &store, "--json"]).json();
    assert!(listed["readers"][0]["held_bytes"].as_u64() > Some(0), "{listed}");
    assert!(run(&["readers", &store]).ok().contains("holds back"));
    drop(reader);
}

/// Its window is closed: it ends, and does not look for keys at a terminal that is gone.
#[test]
fn the_live_view_ends_with_its_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let place = Place::new();
    let store = place.small_store("s");
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&window).unwrap();
    unlockpt(&window).unwrap();
    let size = Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let name = ptsname(&window, Vec::new()).unwrap();
    let terminal = std::fs::OpenOptions::new();
    let terminal = { terminal }.read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_zubilo"));
    command.args(["top", &store, "-i", "3600"]);
    command
        .stdin(terminal.try_clone().unwrap())
        .stdout(terminal)
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    // The command holds the copies of the terminal.
    drop(command);
    let mut window = std::fs::File::from(window);
    let (mut seen, mut part) = (String::new(), [0; 4096]);
    while !seen.contains("x expire") {
        let read = window.read(&mut part).unwrap();
        seen.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    // It has drawn all and waits for keys.
    std::thread::sleep(Duration::from_millis(300));
    drop(window);
    // Were it not to end, this would wait for ever.
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(4 | 130)), "{status:?}");
}

#[test]
fn a_machine_is_measured_and_left_clean() {
    let place = Place::new();
    let folder = place.dir().to_str().unwrap();
    let report = run(&["bench", folder, "--records", "2000", "--seconds", "0.05", "--json"]).json();
    let figures = report["figures"].as_array().unwrap();
    let names: Vec<_> = figures.iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "flushes",
            "sorted_load",
            "random_gets",
            "scan",
            "nosync_commits",
            "lazy_commits",
            "sync_commits"
        ]
    );
    assert!(
        figures
            .iter()
            .all(|f| f["number"].as_u64() > Some(0) && f["per_second"].as_f64() > Some(0.0))
    );
    let text = run(&["bench", folder, "--records", "2000", "--seconds", "0.05"]).ok();
    assert!(text.contains("commits, durable"), "{text}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "something was left behind");
    run(&["bench", &place.arg("missing")]).code(4).says("missing");
    run(&["bench", folder, "--seconds", "-1"]).code(2);
}

#[test]
fn a_shell_does_what_its_lines_say() {
    let place = Place::new();
    let store = place.small_store("s");
    let typed = "\
        tables\nget a\nput new \"two words\"\nget new\nscan a 1\nfrom b 2\nlast 1\ncount\ncount a\n\
        begin\nput pending 1\nget pending\ntables\nabort\n\
        create numbers\nkey u32\nput 7 seven\nput 300 many\nscan\nkey hex\nfirst 1\n\
        use other\nput j \"{\\\"a\\\":[1]}\"\nvalue json\nget j\n";
    let shown = run_with(&["shell", &store], typed.as_bytes()).code(0);
    let out = String::from_utf8(shown.out).unwrap();
    insta::assert_snapshot!(out);
    let now = contents(&store);
    assert!(!now[&b"main"[..]].contains_key(&b"pending"[..]));
    assert_eq!(now[&b"numbers"[..]][&300u32.to_be_bytes()[..]], b"many");
    let shown = run_with(&["shell", &store], b"stat\n").ok();
    assert!(
        shown.contains("in pages of 4.00 KiB") && shown.contains("the table \"main\": 5 records")
    );
    // Each mistake is reported, and in a file it ends the work.
    for (line, part) in [
        ("nonsense", "no command \"nonsense\"; help lists them"),
        ("get", "it is: get KEY"),
        ("put a \"b", "a quote is not closed"),
        ("key q", "no view \"q\""),
        ("commit", "no transaction is open"),
        ("release", "no snapshot is held"),
        ("first many", "is no number"),
        ("value json\nput a {", "is no JSON"),
    ] {
        run_with(&["shell", &store], format!("{line}\nput after 1\n").as_bytes())
            .code(2)
            .says(part);
    }
    assert_eq!(contents(&store), now);
    // That something is not there is an answer.
    run_with(&["shell", &store], b"get none\nput after 1\n").code(1).says("no such key");
    assert!(contents(&store)[&b"main"[..]].contains_key(&b"after"[..]));
    run_with(&["shell", &store], b"begin\nput lost 1\n").code(0).says("was not committed");
    assert!(!contents(&store)[&b"main"[..]].contains_key(&b"lost"[..]));
    run_with(&["shell", &store, "--read-only"], b"put a b\n").code(4).says("reading only");
    run(&["shell", &place.arg("missing")]).code(4);
}

#[test]
fn a_snapshot_of_the_shell_stays() {
    let place = Place::new();
    let store = place.arg("s");
    run(&["create", &store, "--key-order", "integer", "--duplicates"]).ok();
    let typed = "put 5 a\nput 5 b\nput 1000 c\nsnapshot\nget 5\ndel 5\n";
    // While a snapshot is held nothing is written.
    run_with(&["shell", &store], typed.as_bytes()).code(2).says("release it first");
    let typed = "get 5\ndel 5\nscan\nget 5\n";
    let shown = run_with(&["shell", &store], typed.as_bytes()).code(1).says("no such key");
    assert_eq!(lines(&shown.out), ["a", "b", "1000\tc"]);
    let env = Options::new().open(&store).unwrap();
    let mut txn = env.write().unwrap();
    txn.create_table("own", TableOptions::new().compare_keys(|a, b| b.cmp(a))).unwrap();
    txn.commit().unwrap();
    drop(env);
    run_with(&["shell", &store], b"tables\nuse own\n").code(4).says("comparator");
}

//! Data files of the original become stores where `ZUBILO_CONVERT` asks for it: all that was in them, or
//! nothing at all happens, whoever else has them open and whatever ends the conversion.

#[path = "../common/mod.rs"]
mod common;
mod kills;
mod old;
mod orders;
mod place;
mod power;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::{original, ours};
use support::rng;

use old::{NOLOCK, NOSUBDIR, RDONLY, Table};
use place::{Place, Said};

const CORRUPTED: i32 = -30796;
const VERSION_MISMATCH: i32 = -30794;

#[test]
fn every_kind_of_table_is_converted() {
    let mut rng = rng();
    for flags in [0, NOSUBDIR] {
        let place = Place::new(old::all_kinds(&mut rng), flags);
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(place.data(), mode).unwrap();
        let rights = place.rights();
        let said = place.open(Some("1"), 0);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.text.contains("was converted") && said.text.contains(".lmdb"), "{said:?}");
        assert_eq!(place.rights(), rights);
        place.assert_converted();
        // Nothing happens twice.
        let said = place.open(Some("1"), 0);
        assert!(said.code == 0 && said.text.is_empty(), "{said:?}");
        place.assert_converted();
    }
}

#[test]
fn unnamed_databases_with_flags_are_converted() {
    let mut rng = rng();
    let kinds = old::all_kinds(&mut rng);
    for mut table in
        kinds.into_iter().filter(|t| t.name.as_ref().is_some_and(|n| n.starts_with("t")))
    {
        table.name = None;
        let place = Place::new(vec![table], 0);
        assert_eq!(place.open(Some("1"), 0).code, 0, "{:02x}", place.tables[0].flags);
        place.assert_converted();
    }
}

#[test]
fn programs_go_on_in_their_own_order() {
    let records = |n: std::ops::Range<u32>| -> Vec<_> {
        n.map(|n| (format!("{:04}", n * 7919 % 5000).into_bytes(), n.to_le_bytes().to_vec()))
            .collect()
    };
    let mut place = Place::new(vec![Table::new("backkeys", 0, records(0..900))], 0);
    assert_eq!(place.open(Some("1"), 0).code, 0);
    place.assert_converted();
    let more = Table::new("backkeys", 0, records(900..2000));
    old::put(&old::open(ours(), &place.env(), 0, 64 << 20), &[more]);
    let read = old::read(ours(), &place.env(), 0, &place.tables).remove(0);
    let mut all = records(0..2000);
    all.sort();
    all.reverse();
    assert!(read.records == all);
    // By key, too.
    let env = old::open(ours(), &place.env(), 0, 0);
    let txn = env.begin(RDONLY).unwrap();
    let dbi = place.tables.remove(0).handle(&txn, 0);
    for (key, value) in all {
        assert_eq!(txn.get(dbi, &key).unwrap(), Some(&value[..]));
    }
}

#[test]
fn the_map_size_of_the_old_file_stays() {
    let place = Place::small();
    assert_eq!(place.open(Some("1"), 0).code, 0);
    let info = old::open(ours(), &place.env(), 0, 0).info().unwrap();
    assert_eq!(info.map_size, 256 << 20);
}

#[test]
fn without_the_wish_nothing_happens_and_the_message_names_it() {
    let place = Place::small();
    for wish in [None, Some(""), Some("0")] {
        let said = place.open(wish, 0);
        assert_eq!(said.code, VERSION_MISMATCH);
        assert!(said.text.contains("ZUBILO_CONVERT=1") && said.text.contains("zubilo import"));
        place.assert_untouched();
    }
    let said = place.open(Some("yes"), 0);
    assert_eq!(said.code, libc::EINVAL);
    assert!(said.text.contains("ZUBILO_CONVERT is \"yes\""), "{said:?}");
    place.assert_untouched();
}

#[test]
fn the_old_file_goes_where_nobody_wants_it() {
    let place = Place::small();
    let said = place.open(Some("discard"), 0);
    assert!(said.code == 0 && said.text.contains("was converted"), "{said:?}");
    assert_eq!(place.names(), ["data.mdb", "lock.mdb"]);
    place.assert_holds();
}

#[test]
fn whoever_only_reads_changes_nothing() {
    let place = Place::small();
    let said = place.open(Some("1"), RDONLY);
    assert_eq!(said.code, VERSION_MISMATCH);
    assert!(said.text.contains("MDB_RDONLY"), "{said:?}");
    place.assert_untouched();
    assert_eq!(place.open(Some("1"), 0).code, 0);
    assert_eq!(place.open(Some("1"), RDONLY).code, 0);
    place.assert_converted();
}

#[test]
fn a_file_that_lmdb_has_open_is_left_alone() {
    let place = Place::small();
    for flags in [0, RDONLY] {
        let opened = old::open(original(), &place.env(), flags, 0);
        for ours in [0, NOLOCK] {
            let said = place.open(Some("1"), ours);
            assert_eq!(said.code, libc::EBUSY, "{said:?}");
            assert!(said.text.contains("has it open"), "{said:?}");
            place.assert_untouched();
        }
        drop(opened);
    }
    assert_eq!(place.open(Some("1"), NOLOCK).code, 0);
    place.assert_converted();
}

#[test]
fn a_link_to_the_file_leads_to_the_store() {
    let place = Place::small();
    let beside = tempfile::tempdir().unwrap();
    symlink(place.data(), beside.path().join("data.mdb")).unwrap();
    let through = |place: &Place| {
        let mut command = Command::new(place.opener(None, 0).get_program());
        let opener = place.opener(Some("1"), 0);
        command.envs(opener.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Said::of(command.arg(beside.path()).arg("0").output().unwrap())
    };
    // Who has it open by the link has LMDB's lock file beside the link.
    let opened = old::open(original(), beside.path(), 0, 0);
    assert_eq!(through(&place).code, libc::EBUSY);
    place.assert_untouched();
    drop(opened);
    assert_eq!(through(&place).code, 0);
    place.assert_converted();
    assert!(beside.path().join("data.mdb").is_symlink());
}

#[test]
fn another_file_is_not_overwritten() {
    let place = Place::small();
    std::fs::write(place.kept(), "mine").unwrap();
    let said = place.open(Some("1"), 0);
    assert_eq!(said.code, libc::EEXIST);
    assert!(said.text.contains("data.mdb.lmdb is another file"), "{said:?}");
    assert_eq!(std::fs::read(place.kept()).unwrap(), b"mine");
    std::fs::remove_file(place.kept()).unwrap();
    place.assert_untouched();
    // The old file itself, from a conversion that was killed.
    std::fs::hard_link(place.data(), place.kept()).unwrap();
    std::fs::write(place.folder().join("data.mdb.converting"), "half of it").unwrap();
    assert_eq!(place.open(Some("1"), 0).code, 0);
    place.assert_converted();
}

#[test]
fn files_that_cannot_be_read_are_left_alone() {
    let mut place = Place::small();
    let whole = place.bytes.clone();
    let pages = whole.len() / 4096;
    let mut refused = |change: &mut dyn FnMut(&mut Vec<u8>), code: i32, text: &str| {
        place.bytes = whole.clone();
        change(&mut place.bytes);
        place.restore();
        let said = place.open(Some("1"), 0);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.text.contains(text), "{said:?}");
        place.assert_untouched();
    };
    refused(&mut |bytes| bytes.truncate(3 * 4096), CORRUPTED, "page ");
    refused(&mut |bytes| bytes[4096 + 16] ^= 1, CORRUPTED, "one of its two metas");
    refused(&mut |bytes| bytes[20] = 2, VERSION_MISMATCH, "format 2 of LMDB");
    refused(&mut |bytes| bytes[16..20].reverse(), VERSION_MISMATCH, "big-endian");
    // Each page but the metas: refused, or not in use.
    let mut damaged = 0;
    for page in 2..pages {
        place.bytes = whole.clone();
        place.bytes[page * 4096..][..16].fill(0xff);
        place.restore();
        let said = place.open(Some("1"), 0);
        if said.code == 0 {
            place.assert_converted();
            continue;
        }
        damaged += 1;
        assert_eq!(said.code, CORRUPTED, "{said:?}");
        assert!(said.text.contains(&format!("page {page}")), "{said:?}");
        place.assert_untouched();
    }
    assert!(damaged >= 3, "{damaged} of {pages}");
    // Nothing at all is an empty store, as it is without the wish.
    place.bytes.clear();
    place.restore();
    assert_eq!(place.open(Some("1"), 0).code, 0);
    assert_eq!(place.names(), ["data.mdb", "lock.mdb"]);
}

#[test]
fn files_of_small_machines_and_other_page_sizes_are_converted() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../lmdb-file/tests/fixtures/");
    for name in ["bits32.mdb", "pages512.mdb", "pages2k.mdb", "pages32k.mdb"] {
        let mut place = Place::small();
        place.bytes = std::fs::read(fixtures.to_owned() + name).unwrap();
        place.restore();
        let said = place.open(Some("1"), 0);
        assert_eq!(said.code, 0, "{name}: {said:?}");
        assert!(std::fs::read(place.kept()).unwrap() == place.bytes);
        // The import has compared the records; here one is enough.
        place.tables = vec![Table::new("plain", 0, Vec::new())];
        let read = old::read(ours(), &place.env(), 0, &place.tables).remove(0);
        assert!(read.records.iter().any(|(key, _)| key == b"00007"), "{name}");
    }
}

#[test]
fn of_many_openers_one_converts_and_all_open() {
    let place = Place::new(old::all_kinds(&mut rng()), 0);
    for round in 0..4 {
        place.restore();
        let flags = |n: u32| if n == 5 { NOLOCK } else { 0 };
        let start = |n| place.opener(Some("1"), flags(n)).spawn().unwrap();
        let children: Vec<_> = (0..6).map(start).collect();
        let said = children.into_iter().map(|child| Said::of(child.wait_with_output().unwrap()));
        let said: Vec<_> = said.collect();
        assert!(said.iter().all(|said| said.code == 0), "round {round}: {said:?}");
        let converted = said.iter().filter(|said| said.text.contains("was converted")).count();
        assert_eq!(converted, 1, "{said:?}");
        place.assert_converted();
    }
}

#[test]
fn killed_before_any_call_the_file_is_the_old_one_or_the_new_one() {
    let place = Place::small();
    let (mut old, mut new, mut linked, mut unfinished) = (0, 0, 0, 0);
    for n in 0.. {
        place.restore();
        let mut child = kills::traced(&mut place.opener(Some("1"), 0));
        let killed = kills::run_until(&child, n);
        let _ = child.wait();
        unfinished += u32::from(place.folder().join("data.mdb.converting").exists());
        if std::fs::read(place.data()).unwrap() == place.bytes {
            old += 1;
            linked += u32::from(place.kept().exists());
            assert_eq!(place.open(Some("1"), 0).code, 0, "after call {n}");
        } else {
            new += 1;
            // Without the wish: it is a store like any other.
            assert_eq!(place.open(None, 0).code, 0, "after call {n}");
        }
        place.assert_converted();
        if !killed {
            break;
        }
    }
    println!(
        "{old} kills left the old file, {linked} of them with two names, {unfinished} with a part"
    );
    println!("of the new one; {new} the new one");
    assert!(
        old > 50 && new > 5 && linked > 1 && unfinished > 20,
        "{old} {new} {linked} {unfinished}"
    );
}

#[test]
fn the_new_file_has_the_owner_of_the_old_one_or_is_not_made() {
    // SAFETY: a number that the system knows.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("only root can give files away: nothing was tried");
        return;
    }
    let place = Place::small();
    std::os::unix::fs::chown(place.data(), Some(1234), Some(4321)).unwrap();
    place.let_all_in();
    // Somebody else, who may read and write all there is.
    let said = Said::of(place.opener(Some("1"), 0).uid(65_534).gid(65_534).output().unwrap());
    assert_eq!(said.code, libc::EPERM, "{said:?}");
    assert!(said.text.contains("owner"), "{said:?}");
    place.assert_untouched();
    std::fs::remove_file(place.lock()).unwrap();
    let rights = place.rights();
    assert_eq!(place.open(Some("1"), 0).code, 0);
    assert_eq!(place.rights(), rights);
    let lock = place.lock().metadata().unwrap();
    assert_eq!((lock.uid(), lock.gid(), lock.mode() & 0o777), (1234, 4321, 0o666));
    place.assert_converted();
}

#[test]
fn names_change_when_all_is_on_disk() {
    let place = Place::small();
    let out = place.folder().join("../calls");
    let opener = place.opener(Some("1"), 0);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-s", "0", "-e"]);
    strace
        .arg("trace=pwrite64,pwritev,write,ftruncate,fallocate,fsync,fdatasync,linkat,link,rename");
    strace.arg("-o").arg(&out).arg(opener.get_program()).args(opener.get_args());
    strace.envs(opener.get_envs().filter_map(|(name, value)| Some((name, value?))));
    match strace.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("strace is not on this machine: nothing was looked at");
            return;
        }
        output => assert_eq!(Said::of(output.unwrap()).code, 0),
    }
    let text = std::fs::read_to_string(&out).unwrap();
    // What happens to the new file (n) and to the folder (f): written, flushed, and the two names.
    let folder = format!("<{}>", place.folder().canonicalize().unwrap().display());
    let events = text.lines().filter_map(|line| {
        let call = line.split_whitespace().nth(1)?.split('(').next()?;
        match call {
            "linkat" | "link" => Some("link"),
            "rename" => Some("rename"),
            "fsync" if line.contains(&folder) => Some("folder"),
            "fsync" | "fdatasync" if line.contains(".converting>") => Some("flush"),
            _ if line.contains(".converting>") => Some("write"),
            _ => None,
        }
    });
    let events: Vec<_> = events.collect();
    let link = events.iter().position(|event| *event == "link").unwrap();
    assert_eq!(events[link - 1], "flush", "{events:?}");
    assert!(events[..link].contains(&"write"), "{events:?}");
    assert_eq!(events[link..][..4], ["link", "folder", "rename", "folder"], "{events:?}");
}

/// Runs a script as root of a mount namespace; none where that is not permitted.
fn apart(script: &str, place: &Place) -> Option<Said> {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("unshare -m is not permitted: nothing was tried on a full disk");
        return None;
    }
    let opener = place.opener(Some("1"), 0);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script, "sh"]).arg(place.folder()).arg(opener.get_program());
    command.envs(opener.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(Said::of(command.output().unwrap()))
}

#[test]
fn a_full_disk_leaves_the_old_file_alone() {
    let place = Place::new(old::all_kinds(&mut rng()), 0);
    let kib = place.bytes.len() / 1024;
    // From hardly any room for the new store to almost enough; then enough.
    let script = |room: usize| {
        format!(
            "cp $1/data.mdb $1/../old; mount -t tmpfs -o size={}k none $1; cp $1/../old $1/data.mdb; \
             $2 $1 0; [ \"$(ls $1)\" = \"{}\" ]; cmp $1/../old $1/{} >&2",
            kib + 64 + room,
            if room < 3 * kib { "data.mdb\nlock.mdb" } else { "data.mdb\ndata.mdb.lmdb\nlock.mdb" },
            if room < 3 * kib { "data.mdb" } else { "data.mdb.lmdb" },
        )
    };
    for eighths in [0, 1, 2, 4] {
        let Some(said) = apart(&script(kib * eighths / 8), &place) else { return };
        assert_eq!(said.code, libc::ENOSPC, "{said:?}");
        assert!(said.text.contains("was not converted"), "{said:?}");
    }
    let said = apart(&script(3 * kib), &place).unwrap();
    assert_eq!(said.code, 0, "{said:?}");
}

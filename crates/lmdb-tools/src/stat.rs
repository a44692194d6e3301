//! `mdb_stat`: figures of an environment, its readers, its free pages and its tables.

use std::io::{self, BufWriter, Write};

use support::lmdb::{self, Env, Setup, Stat, Txn};

use crate::api::{failed, open};
use crate::options::Options;
use crate::{Result, Stop, show_version};

const USAGE: &str = "[-V] [-n] [-e] [-r[r]] [-f[f[f]]] [-a|-s subdb] dbpath";
/// The handle of the free pages.
const FREE: u32 = 0;

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(format!("%s: {error}"))
    }
}

fn print(out: &mut impl Write, stat: &Stat) -> io::Result<()> {
    writeln!(out, "  Tree depth: {}", stat.depth)?;
    writeln!(out, "  Branch pages: {}", stat.branch_pages)?;
    writeln!(out, "  Leaf pages: {}", stat.leaf_pages)?;
    writeln!(out, "  Overflow pages: {}", stat.overflow_pages)?;
    writeln!(out, "  Entries: {}", stat.entries)
}

fn environment(out: &mut impl Write, env: &Env) -> Result<()> {
    let (stat, info) = (env.stat()?, env.info()?);
    writeln!(out, "Environment Info")?;
    if info.map_address.is_null() {
        writeln!(out, "  Map address: (nil)")?
    } else {
        writeln!(out, "  Map address: {:p}", info.map_address)?
    }
    writeln!(out, "  Map size: {}", info.map_size)?;
    writeln!(out, "  Page size: {}", stat.page_size)?;
    writeln!(out, "  Max pages: {}", info.map_size / (stat.page_size as usize).max(1))?;
    writeln!(out, "  Number of pages used: {}", info.last_page + 1)?;
    writeln!(out, "  Last transaction ID: {}", info.last_txn)?;
    writeln!(out, "  Max readers: {}", info.max_readers)?;
    writeln!(out, "  Number of readers used: {}", info.readers)?;
    Ok(())
}

fn readers(out: &mut impl Write, env: &Env, check: bool) -> Result<()> {
    writeln!(out, "Reader Table Status")?;
    write!(out, "{}", env.readers())?;
    if check {
        writeln!(out, "  {} stale readers cleared.", env.check_readers())?;
        write!(out, "{}", env.readers())?;
    }
    Ok(())
}

/// Runs of neighbouring pages in a descending list, as first page and number, in its order.
fn runs(pages: &[u64]) -> Vec<(u64, usize)> {
    let mut runs: Vec<(u64, usize)> = Vec::new();
    for &page in pages {
        match runs.last_mut() {
            Some((first, count)) if *first == page.wrapping_add(1) => {
                (*first, *count) = (page, *count + 1);
            }
            _ => runs.push((page, 1)),
        }
    }
    runs
}

/// `detail` 1 gives the number, 2 a line for each transaction, 3 the pages too.
fn free_pages(out: &mut impl Write, txn: &Txn<'_>, detail: usize) -> Result<()> {
    writeln!(out, "Freelist Status")?;
    let mut cursor = txn.cursor(FREE)?;
    let stat = txn.stat(FREE).map_err(|code| failed("mdb_stat", code))?;
    print(out, &stat)?;
    let mut total = 0;
    while let Ok((key, value)) = cursor.go(lmdb::MDB_NEXT) {
        let numbers = |bytes: &[u8]| -> Vec<u64> {
            let words = bytes.as_chunks().0.iter();
            words.map(|word: &[u8; 8]| u64::from_ne_bytes(*word)).collect()
        };
        let (of, pages) = (numbers(key), numbers(value));
        let Some((count, pages)) = pages.split_first() else { continue };
        total += count;
        if detail < 2 {
            continue;
        }
        let runs = runs(pages);
        let longest = runs.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let sorted = pages.iter().rev().is_sorted_by(|a, b| a < b);
        let bad = if sorted { "" } else { " [bad sequence]" };
        let of = of.first().copied().unwrap_or(0);
        writeln!(out, "    Transaction {of}, {count} pages, maxspan {longest}{bad}")?;
        if detail < 3 {
            continue;
        }
        for (first, count) in runs.iter().rev() {
            match count {
                1 => writeln!(out, "     {first:>9}")?,
                _ => writeln!(out, "     {first:>9}[{count}]")?,
            }
        }
    }
    writeln!(out, "  Free pages: {total}")?;
    Ok(())
}

/// The tables that have names.
fn named(out: &mut impl Write, txn: &Txn<'_>, main: u32) -> Result<()> {
    let mut cursor = txn.cursor(main)?;
    while let Ok((name, _)) = cursor.go(lmdb::MDB_NEXT_NODUP) {
        if name.contains(&0) {
            continue;
        }
        let Ok(table) = txn.table(Some(name), 0) else { continue };
        out.write_all(&[b"Status of ", name, b"\n"].concat())?;
        print(out, &txn.stat(table).map_err(|code| failed("mdb_stat", code))?)?;
        txn.close(table);
    }
    Ok(())
}

/// Runs the tool.
pub fn stat(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, "Vaefnrs:", USAGE)?;
    if options.has('V') {
        return Err(show_version());
    }
    let (path, name, all) = (options.path(USAGE)?, options.value('s'), options.has('a'));
    if all && name.is_some() {
        return Err(Stop::Usage(USAGE));
    }
    let flags = if options.has('n') { lmdb::MDB_NOSUBDIR } else { 0 } | lmdb::MDB_RDONLY;
    let max_dbs = if all || name.is_some() { 4 } else { 0 };
    let setup = Setup { flags, mode: 0o664, max_dbs, ..Setup::default() };
    let env = open(path, setup)?.map_err(|code| failed("mdb_env_open", code))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.has('e') {
        environment(&mut out, &env)?;
    }
    if options.has('r') {
        readers(&mut out, &env, options.count('r') > 1)?;
        if !all && name.is_none() && !options.has('f') {
            return Ok(out.flush()?);
        }
    }
    let txn = env.begin(lmdb::MDB_RDONLY)?;
    if options.has('f') {
        free_pages(&mut out, &txn, options.count('f'))?;
    }
    let table = txn.table(name.map(str::as_bytes), 0).map_err(|code| failed("mdb_open", code))?;
    let stat = txn.stat(table).map_err(|code| failed("mdb_stat", code))?;
    writeln!(out, "Status of {}", name.unwrap_or("Main DB"))?;
    print(&mut out, &stat)?;
    if all {
        named(&mut out, &txn, table)?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn neighbouring_pages_make_a_run() {
        assert_eq!(runs(&[9, 7, 6, 5, 2]), [(9, 1), (5, 3), (2, 1)]);
        assert_eq!(runs(&[]), []);
    }
}

//! `mdb_dump`: tables as text, in the format of Berkeley DB's dumps.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use support::lmdb::{self, Env, Failed, Setup, Txn};

use crate::api::{TABLE_FLAGS, failed, open, reason};
use crate::options::Options;
use crate::text::{Format, write_line};
use crate::{Result, Stop, show_version};

const USAGE: &str = "[-V] [-f output] [-l] [-n] [-p] [-a|-s subdb] dbpath";

fn header(
    out: &mut impl Write,
    env: &Env,
    format: Format,
    name: Option<&[u8]>,
    (flags, page_size): (u32, u32),
) -> Result<()> {
    let info = env.info()?;
    writeln!(out, "VERSION=3")?;
    writeln!(out, "format={}", if format == Format::Print { "print" } else { "bytevalue" })?;
    if let Some(name) = name {
        out.write_all(&[b"database=", name, b"\n"].concat())?;
    }
    writeln!(out, "type=btree")?;
    writeln!(out, "mapsize={}", info.map_size)?;
    if !info.map_address.is_null() {
        writeln!(out, "mapaddr={:p}", info.map_address)?;
    }
    writeln!(out, "maxreaders={}", info.max_readers)?;
    if flags & lmdb::MDB_DUPSORT != 0 {
        writeln!(out, "duplicates=1")?;
    }
    for (_, name) in TABLE_FLAGS.iter().filter(|(flag, _)| flags & flag != 0) {
        writeln!(out, "{name}=1")?;
    }
    writeln!(out, "db_pagesize={page_size}")?;
    writeln!(out, "HEADER=END")?;
    Ok(())
}

fn table(
    out: &mut impl Write,
    env: &Env,
    txn: &Txn<'_>,
    (dbi, name): (u32, Option<&[u8]>),
    format: Format,
) -> Result<()> {
    let flags = txn.flags(dbi).map_err(|code| failed("mdb_dbi_flags", code))?;
    let stat = txn.stat(dbi).map_err(|code| failed("mdb_stat", code))?;
    header(out, env, format, name, (flags, stat.page_size))?;
    let mut cursor = txn.cursor(dbi)?;
    loop {
        match cursor.go(lmdb::MDB_NEXT) {
            Ok((key, value)) => {
                write_line(out, format, key)?;
                write_line(out, format, value)?;
            }
            Err(Failed { code: lmdb::MDB_NOTFOUND, .. }) => break,
            Err(code) => return Err(failed("mdb_cursor_get", code)),
        }
    }
    writeln!(out, "DATA=END")?;
    Ok(())
}

/// All named tables, or only their names.
fn named(
    out: &mut impl Write,
    env: &Env,
    txn: &Txn<'_>,
    main: u32,
    (list, format, path): (bool, Format, &str),
) -> Result<()> {
    let mut cursor = txn.cursor(main)?;
    let mut count = 0;
    while let Ok((name, _)) = cursor.go(lmdb::MDB_NEXT_NODUP) {
        if name.contains(&0) {
            continue;
        }
        // What could be a name counts, as with LMDB's tool: a plain record is no error.
        count += 1;
        let Ok(dbi) = txn.table(Some(name), 0) else { continue };
        if list {
            out.write_all(&[name, b"\n"].concat())?;
        } else {
            table(out, env, txn, (dbi, Some(name)), format)?;
        }
        txn.close(dbi);
    }
    if count == 0 {
        out.flush()?;
        return Err(Stop::Failed(format!("%s: {path} does not contain multiple databases")));
    }
    Ok(())
}

/// Runs the tool.
pub fn dump(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, "af:lnps:V", USAGE)?;
    if options.has('V') {
        return Err(show_version());
    }
    let (path, name) = (options.path(USAGE)?, options.value('s').map(str::as_bytes));
    let (list, all) = (options.has('l'), options.has('a') || options.has('l'));
    if all && name.is_some() {
        return Err(Stop::Usage(USAGE));
    }
    let format = if options.has('p') { Format::Print } else { Format::Hex };
    let out: Box<dyn Write> = match options.value('f') {
        Some(file) => Box::new(
            File::create(file)
                .map_err(|error| Stop::Failed(format!("%s: {file}: reopen: {}", reason(&error))))?,
        ),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    let flags = if options.has('n') { lmdb::MDB_NOSUBDIR } else { 0 } | lmdb::MDB_RDONLY;
    let max_dbs = if all || name.is_some() { 2 } else { 0 };
    let setup = Setup { flags, mode: 0o664, max_dbs, ..Setup::default() };
    let env = open(path, setup)?.map_err(|code| failed("mdb_env_open", code))?;
    let txn = env.begin(lmdb::MDB_RDONLY)?;
    let dbi = txn.table(name, 0).map_err(|code| failed("mdb_open", code))?;
    if all {
        named(&mut out, &env, &txn, dbi, (list, format, path))?;
    } else {
        table(&mut out, &env, &txn, (dbi, name), format)?;
    }
    Ok(out.flush()?)
}

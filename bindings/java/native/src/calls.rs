//! What the exported functions do: numbers in, a number out, failures as values.

use std::time::Duration;

use zubilo::{
    CompactOptions, Durability, Env, Error, Geometry, KeyOrder, Options, TableOptions, TableStats,
    VerifyReads,
};

use crate::error::Failure;
use crate::handles::{Guard, enter, insert};
use crate::memory::{Input, Output, bytes, put_record, record_len, room};
use crate::objects::{EnvObject, Object, ReadObject, WriteObject};
use crate::scan::{COPY, Request, scan, values};

type Answer = Result<i64, Failure>;

fn env(handle: &Guard) -> Result<&EnvObject, Failure> {
    match &**handle {
        Object::Env(env) => Ok(env),
        _ => Err(Failure::Foreign),
    }
}

fn write(handle: &Guard) -> Result<&WriteObject, Failure> {
    match &**handle {
        Object::Write(write) => Ok(write),
        _ => Err(Failure::Foreign),
    }
}

// ---- stores ----

/// Reads options: 18 numbers, then the path.
fn options(input: &mut Input<'_>) -> Result<Options, Failure> {
    let mut next = || input.number();
    let flags = next()?;
    let on = |bit: u32| flags & (1 << bit) != 0;
    let durability = next()?;
    let (sync_bytes, sync_ms) = (next()? as u64, next()? as u64);
    let mut options = Options::new()
        .read_only(on(0))
        .create(on(1))
        .exclusive(on(2))
        .lock_file(on(3))
        .huge_pages(on(4))
        .durability(match durability {
            0 => Durability::Sync,
            1 => Durability::Lazy { sync_bytes, sync_period: Duration::from_millis(sync_ms) },
            2 => Durability::NoSync,
            _ => return Err(Failure::Foreign),
        });
    // 0 leaves the library's own choice.
    let chosen = |number: i64| u32::try_from(number).map_err(|_| Failure::Foreign);
    match next()? {
        0 => {}
        size => options = options.page_size(chosen(size)?),
    }
    match next()? {
        0 => {}
        bytes => options = options.reserve(bytes as u64),
    }
    match next()? {
        0 => {}
        slots => options = options.max_readers(chosen(slots)?),
    }
    match next()? {
        0 => {}
        bytes => options = options.dirty_limit(bytes as u64),
    }
    match next()? {
        0 => {}
        mode => options = options.mode(chosen(mode)?),
    }
    options = options.verify_reads(match next()? {
        0 => VerifyReads::Never,
        1 => VerifyReads::FirstTouch,
        2 => VerifyReads::Always,
        _ => return Err(Failure::Foreign),
    });
    match next()? {
        0 => {}
        yes => options = options.writable_map(yes == 2),
    }
    match next()? {
        0 => {}
        yes => options = options.read_ahead(yes == 2),
    }
    let bounded = next()? != 0;
    let numbers = [next()?, next()?, next()?, next()?].map(|n| n as u64);
    if bounded {
        let [lower, upper, growth, shrink] = numbers;
        let mut geometry = Geometry::default();
        (geometry.lower, geometry.upper) = (lower, if upper == 0 { u64::MAX } else { upper });
        (geometry.growth, geometry.shrink) = (growth, shrink);
        options = options.geometry(geometry);
    }
    // 0 has a meaning of its own: the log is given back.
    if let Ok(bytes) = u64::try_from(next()?) {
        options = options.redo_log(bytes);
    }
    Ok(options)
}

fn path(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

pub(crate) unsafe fn open(at: i64, len: i64) -> Answer {
    // SAFETY: the caller of the exported function vouches for its buffers.
    let mut input = Input(unsafe { bytes(at, len) }?);
    let options = options(&mut input)?;
    let env = Env::open(path(input.0), options)?;
    insert(Object::Env(EnvObject { env, holder: Default::default() }))
}

/// Closes a store, after making it durable if that is asked for; it goes also if that fails.
pub(crate) fn close_env(handle: i64, sync: i64) -> Answer {
    let guard = enter(handle)?;
    let env = &env(&guard)?.env;
    let synced = if sync != 0 { env.sync() } else { Ok(()) };
    if !guard.close() {
        return Err(Failure::Closed);
    }
    synced?;
    Ok(0)
}

/// Operations on a store: `op` says which, see the match.
pub(crate) unsafe fn env_call(
    handle: i64,
    op: i64,
    arg: i64,
    a: (i64, i64),
    o: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    let env = &env(&guard)?.env;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (given, mut out) = unsafe { (bytes(a.0, a.1)?, Output::new(room(o.0, o.1)?)) };
    match op {
        0 => env.sync().map(|()| 0).map_err(Failure::from),
        1 => info(env, &mut out),
        2 => Ok(env.copy_to_path(path(given), arg != 0, &mut |_, _| true)?.0 as i64),
        3 => check(env, &mut out),
        4 => {
            let report = env.compact(&CompactOptions::new(), &mut |_, _| true)?;
            for number in [
                report.used_before,
                report.used_after,
                report.file_before,
                report.file_after,
                report.held,
                report.finished.into(),
            ] {
                out.number(number as i64);
            }
            Ok(6)
        }
        5 => Ok(env.clean_readers()?.into()),
        6 => Ok(env.page_size() as i64),
        7 => Ok(env.max_key_len() as i64),
        8 => {
            let readers = env.readers();
            for reader in readers.iter().take(out.room.len() / 32) {
                out.number(reader.pid.into());
                out.number(reader.thread as i64);
                out.number(reader.txn.0 as i64);
                out.number(reader.lag as i64);
            }
            Ok(readers.len() as i64)
        }
        9 => {
            for (name, count) in env.counters().iter() {
                out.put(format!("{name} {count}\n").as_bytes());
            }
            Ok(out.at as i64)
        }
        _ => Err(Failure::Foreign),
    }
}

fn info(env: &Env, out: &mut Output<'_>) -> Answer {
    let info = env.info()?;
    for number in [
        info.page_size as u64,
        info.newest.0,
        info.steady.0,
        info.file_len,
        info.used_len,
        info.reserved,
        info.max_readers.into(),
        info.readers.len() as u64,
    ] {
        out.number(number as i64);
    }
    out.put(&info.uuid);
    Ok(out.at as i64)
}

/// Numbers of the report, then the problems as text, one a line, as far as there is room; gives the number
/// of problems.
fn check(env: &Env, out: &mut Output<'_>) -> Answer {
    let report = env.check(&mut |_, _| true)?;
    for number in [
        report.txn.0,
        report.tables,
        report.entries,
        report.pages,
        report.leaf_pages,
        report.branch_pages,
        report.run_pages,
        report.free_space_log_pages,
        report.free_pages,
        report.retired_pages,
        report.redo_log_pages,
    ] {
        out.number(number as i64);
    }
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("page {}: {}\n", problem.page, problem.reason));
    }
    let length_at = out.at;
    out.number(0);
    let before = out.at;
    for line in text.split_inclusive('\n') {
        if !out.put(line.as_bytes()) {
            break;
        }
    }
    let len = (out.at - before) as i64;
    if let Some(place) = out.room.get_mut(length_at..length_at + 8) {
        place.copy_from_slice(&len.to_le_bytes());
    }
    Ok(report.problems.len() as i64)
}

// ---- transactions ----

pub(crate) fn read_begin(handle: i64) -> Answer {
    let guard = enter(handle)?;
    let txn = env(&guard)?.env.read()?;
    insert(Object::Read(Box::new(ReadObject::new(txn))))
}

/// Ends a read transaction, once no call uses it any more; also a write transaction, by undoing it.
pub(crate) fn end(handle: i64) -> Answer {
    let guard = enter(handle)?;
    if let Object::Env(_) = &*guard {
        return Err(Failure::Foreign);
    }
    if guard.close() { Ok(0) } else { Err(Failure::Closed) }
}

/// How a write transaction is begun.
const OWN_THREAD: i64 = 1;
const NO_WAIT: i64 = 2;

/// Begins the write transaction; 0 if somebody else has it and waiting was not asked for.
pub(crate) fn write_begin(handle: i64, flags: i64) -> Answer {
    let guard = enter(handle)?;
    let EnvObject { env, holder } = env(&guard)?;
    let wait = flags & NO_WAIT == 0;
    let object = if flags & OWN_THREAD != 0 {
        let txn = if wait { Some(env.write()?) } else { env.try_write()? };
        txn.map(WriteObject::own)
    } else {
        holder.begin(env, wait)?.map(WriteObject::borrowed)
    };
    object.map_or(Ok(0), |object| insert(Object::Write(object)))
}

/// Ends the write transaction; gives the commit's number.
pub(crate) fn write_end(handle: i64, commit: i64) -> Answer {
    let guard = enter(handle)?;
    let ended = write(&guard)?.end(commit != 0);
    if !matches!(ended, Err(Failure::Foreign)) {
        guard.close();
    }
    Ok(ended? as i64)
}

/// Nested levels: 0 begins one and gives its depth, 1 commits and 2 undoes the one of this depth.
pub(crate) fn nested(handle: i64, op: i64, depth: i64) -> Answer {
    let guard = enter(handle)?;
    write(&guard)?.with(|writing| match op {
        0 => writing.begin_nested(),
        1 => writing.end_nested(depth, true),
        2 => writing.end_nested(depth, false),
        _ => Err(Failure::Foreign),
    })
}

/// Facts of a transaction: 0 its number, 1 commits since its snapshot.
pub(crate) fn txn_call(handle: i64, op: i64) -> Answer {
    let guard = enter(handle)?;
    match (&*guard, op) {
        (Object::Read(read), 0) => Ok(read.txn.id().0 as i64),
        (Object::Read(read), 1) => Ok(read.txn.lag() as i64),
        (Object::Write(write), 0) => write.with(|writing| Ok(writing.txn()?.id().0 as i64)),
        (Object::Write(_), 1) => Ok(0),
        _ => Err(Failure::Foreign),
    }
}

// ---- tables ----

/// Options of a table as bits: two of key order, two of value order, then duplicates, fixed, counted, and
/// three of the logarithm of the alignment.
fn table_options(bits: i64) -> Result<TableOptions, Failure> {
    let order = |code: i64| match code & 3 {
        0 => Ok(KeyOrder::Bytes),
        1 => Ok(KeyOrder::Reversed),
        2 => Ok(KeyOrder::Integer),
        _ => Err(Failure::Foreign),
    };
    let mut options =
        TableOptions::new().key_order(order(bits)?).align_values(1 << (bits >> 7 & 7));
    if bits & 1 << 4 != 0 {
        options = options.value_order(order(bits >> 2)?);
    }
    if bits & 1 << 5 != 0 {
        options = options.fixed_duplicates();
    }
    if bits & 1 << 6 != 0 {
        options = options.counted();
    }
    Ok(options)
}

fn table_bits(options: &TableOptions) -> i64 {
    let flag = |on: bool, bit: u32| i64::from(on) << bit;
    options.keys() as i64
        | (options.values() as i64) << 2
        | flag(options.has_duplicates(), 4)
        | flag(options.has_fixed_values(), 5)
        | flag(options.is_counted(), 6)
        | i64::from(options.alignment().ilog2()) << 7
}

/// Opens a table: `mode` 0 with the options it has, 1 with these, 2 with these or creates it so, 3 creates
/// it. Gives its number.
pub(crate) unsafe fn table(handle: i64, name: i64, len: i64, mode: i64, bits: i64) -> Answer {
    // SAFETY: the caller of the exported function vouches for its buffers.
    let name = unsafe { bytes(name, len) }?;
    let options = if mode == 0 { None } else { Some(table_options(bits)?) };
    let guard = enter(handle)?;
    match (&*guard, mode) {
        (Object::Read(read), 0 | 1) => read.open(name, options.as_ref()),
        (Object::Write(write), _) => write.with(|writing| {
            let txn = writing.txn()?;
            let id = match (&options, mode) {
                (None, _) => txn.table(name)?.id(),
                (Some(options), 1) => txn.table_with(name, options)?.id(),
                (Some(options), 2) => txn.table_or_create_with(name, options)?.id(),
                (Some(options), _) => txn.create_table(name, options.clone())?.id(),
            };
            Ok(writing.add(id))
        }),
        _ => Err(Failure::Foreign),
    }
}

/// Removes the table `name` (op 0), or gives it the name `to` (op 1).
pub(crate) unsafe fn names(handle: i64, op: i64, name: (i64, i64), to: (i64, i64)) -> Answer {
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (name, to) = unsafe { (bytes(name.0, name.1)?, bytes(to.0, to.1)?) };
    let guard = enter(handle)?;
    write(&guard)?.with(|writing| {
        match op {
            0 => writing.txn()?.drop_table(name)?,
            1 => writing.txn()?.rename_table(name, to)?,
            _ => return Err(Failure::Foreign),
        }
        Ok(0)
    })
}

/// The names of all tables, each after its length; gives the bytes needed, and writes them if they fit.
pub(crate) unsafe fn tables(handle: i64, out: i64, cap: i64) -> Answer {
    // SAFETY: the caller of the exported function vouches for its buffers.
    let mut out = Output::new(unsafe { room(out, cap) }?);
    let guard = enter(handle)?;
    let names = match &*guard {
        Object::Read(read) => read.txn.tables()?,
        Object::Write(write) => write.with(|writing| Ok(writing.txn()?.tables()?))?,
        Object::Env(_) => return Err(Failure::Foreign),
    };
    let needed: usize = names.iter().map(|name| 4 + name.len()).sum();
    if out.fits(needed) {
        for name in &names {
            out.put(&(name.len() as i32).to_le_bytes());
            out.put(name);
        }
    }
    Ok(needed as i64)
}

/// Runs `$body` on the table, whichever kind of transaction it is of.
macro_rules! on_table {
    ($guard:ident, $index:ident, $table:ident => $body:expr) => {
        match &*$guard {
            Object::Read(read) => {
                let $table = read.table($index)?;
                $body
            }
            Object::Write(write) => write.with(|writing| {
                let $table = writing.table($index)?;
                let $table = &$table;
                $body
            }),
            Object::Env(_) => Err(Failure::Foreign),
        }
    };
}

// ---- reading ----

/// The value under a key: writes its address and length and gives 1, or gives 0. In read transactions only:
/// the bytes stay as they are until the transaction ends.
pub(crate) unsafe fn get(handle: i64, index: i64, key: (i64, i64), out: i64) -> Answer {
    let guard = enter(handle)?;
    let Object::Read(read) = &*guard else { return Err(Failure::Foreign) };
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (key, mut out) = unsafe { (bytes(key.0, key.1)?, Output::new(room(out, 16)?)) };
    match read.table(index)?.get(key)? {
        Some(value) => {
            out.pointer(value);
            Ok(1)
        }
        None => Ok(0),
    }
}

/// Copies the value under a key and gives its length; only the length if there is not so much room.
/// `i64::MAX` is no value.
pub(crate) unsafe fn get_copy(handle: i64, index: i64, key: (i64, i64), out: (i64, i64)) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (key, out) = unsafe { (bytes(key.0, key.1)?, room(out.0, out.1)?) };
    on_table!(guard, index, table => {
        let Some(value) = table.get(key)? else { return Ok(i64::MAX) };
        if let Some(place) = out.get_mut(..value.len()) {
            place.copy_from_slice(value);
        }
        Ok(value.len() as i64)
    })
}

/// Keys that are looked up together.
const GROUP: usize = 32;

/// Looks up `count` keys, each after its length. Without `copy` writes an address, 0 for none, and a length
/// for each; with it a length, -1 for none, and the bytes, as long as there is room. Gives how many
/// were answered; if none, the first number says how much room the first needs.
pub(crate) unsafe fn get_many(
    handle: i64,
    index: i64,
    count: i64,
    keys: (i64, i64),
    out: (i64, i64),
    copy: i64,
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (keys, mut out) = unsafe { (bytes(keys.0, keys.1)?, Output::new(room(out.0, out.1)?)) };
    let mut input = Input(keys);
    if copy == 0 {
        let Object::Read(read) = &*guard else { return Err(Failure::Foreign) };
        let table = read.table(index)?;
        let mut done = 0;
        while done < count {
            let mut group = [&[][..]; GROUP];
            let size = (count - done).min(GROUP as i64) as usize;
            for place in &mut group[..size] {
                let len = input.length()?;
                *place = input.take(len)?;
            }
            if !out.fits(16 * size) {
                return Ok(done);
            }
            table.get_many_with(&group[..size], |_, value| {
                match value {
                    Some(value) => out.pointer(value),
                    None => out.put(&[0; 16]),
                };
            })?;
            done += size as i64;
        }
        return Ok(done);
    }
    let mut answer = |value: Option<&[u8]>| {
        let len = value.map_or(0, <[u8]>::len);
        let mark = value.map_or(-1, |value| value.len() as i32);
        out.fits(4 + len) && out.put(&mark.to_le_bytes()) && out.put(value.unwrap_or_default())
    };
    let mut done = 0;
    let mut needed = 0;
    on_table!(guard, index, table => {
        while done < count && needed == 0 {
            let len = input.length()?;
            let value = table.get(input.take(len)?)?;
            if answer(value) { done += 1 } else { needed = 4 + value.map_or(0, <[u8]>::len) }
        }
        Ok(())
    })?;
    if done == 0 && needed > 0 {
        out.ask(needed)?;
    }
    Ok(done)
}

/// See [`crate::scan::scan`].
pub(crate) unsafe fn scan_call(
    handle: i64,
    index: i64,
    flags: i64,
    limit: i64,
    request: (i64, i64),
    out: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (request, mut out) =
        unsafe { (bytes(request.0, request.1)?, Output::new(room(out.0, out.1)?)) };
    let request = Request::parse(request)?;
    if flags & COPY == 0 && !matches!(&*guard, Object::Read(_)) {
        return Err(Failure::Foreign);
    }
    on_table!(guard, index, table => scan(table, &request, flags, limit, &mut out))
}

/// See [`crate::scan::values`]; `after` begins with 1 and a value to go on after, or is 0.
pub(crate) unsafe fn values_call(
    handle: i64,
    index: i64,
    flags: i64,
    limit: i64,
    request: (i64, i64),
    out: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (request, mut out) =
        unsafe { (bytes(request.0, request.1)?, Output::new(room(out.0, out.1)?)) };
    let mut input = Input(request);
    let len = input.length()?;
    let key = input.take(len)?;
    let after = match input.length()? {
        0 => None,
        _ => {
            let len = input.length()?;
            Some(input.take(len)?)
        }
    };
    if flags & COPY == 0 && !matches!(&*guard, Object::Read(_)) {
        return Err(Failure::Foreign);
    }
    let copy = flags & COPY != 0;
    on_table!(guard, index, table => values(table, key, after, limit, copy, &mut out))
}

/// Facts of a table about a key and a value: `op` says which, see the match.
pub(crate) unsafe fn query(
    handle: i64,
    index: i64,
    op: i64,
    key: (i64, i64),
    value: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (key, value) = unsafe { (bytes(key.0, key.1)?, bytes(value.0, value.1)?) };
    on_table!(guard, index, table => Ok(match op {
        0 => table.len() as i64,
        1 => table.count(key)? as i64,
        2 => table.contains(key, value)?.into(),
        3 => table.rank(key)? as i64,
        4 => table.rank_of_pair(key, value)? as i64,
        5 => table.sequence() as i64,
        6 => table_bits(&table.options()),
        7 => table.get(key)?.is_some().into(),
        _ => return Err(Failure::Foreign),
    }))
}

/// Record `n` (op 0), or value `n` of a key (op 1), as a scan of one record gives it.
pub(crate) unsafe fn nth(
    handle: i64,
    index: i64,
    op: i64,
    n: i64,
    key: (i64, i64),
    out: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (key, mut out) = unsafe { (bytes(key.0, key.1)?, Output::new(room(out.0, out.1)?)) };
    let n = u64::try_from(n).map_err(|_| Failure::Foreign)?;
    on_table!(guard, index, table => {
        let record = match op {
            0 => table.nth(n)?,
            1 => table.nth_value(key, n)?.map(|value| (&[][..], value)),
            _ => return Err(Failure::Foreign),
        };
        let Some((key, value)) = record else { return Ok(1) };
        if put_record(&mut out, true, key, value) {
            return Ok(1 << 1);
        }
        out.ask(record_len(true, key, value))?;
        Ok(0)
    })
}

/// Records in a range of a counted table (op 0); removes the records of a range and gives their number (op 1).
pub(crate) unsafe fn range_call(handle: i64, index: i64, op: i64, request: (i64, i64)) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let request = Request::parse(unsafe { bytes(request.0, request.1) }?)?;
    match op {
        0 => on_table!(guard, index, table => Ok(table.range_len::<&[u8]>(request.ends)? as i64)),
        1 => write(&guard)?
            .with(|writing| Ok(writing.table(index)?.delete_range::<&[u8]>(request.ends)? as i64)),
        _ => Err(Failure::Foreign),
    }
}

/// Seven figures of a table.
pub(crate) unsafe fn stats(handle: i64, index: i64, out: i64, cap: i64) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let mut out = Output::new(unsafe { room(out, cap) }?);
    let stats: TableStats = on_table!(guard, index, table => Ok(table.stats()))?;
    for number in [
        stats.entries,
        stats.depth.into(),
        stats.leaf_pages,
        stats.branch_pages,
        stats.run_pages,
        stats.value_pages,
        stats.modified.0,
    ] {
        out.number(number as i64);
    }
    Ok(7)
}

// ---- changing ----

/// A change of a table: `op` says which, see the match.
pub(crate) unsafe fn change(
    handle: i64,
    index: i64,
    op: i64,
    key: (i64, i64),
    value: (i64, i64),
) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let (key, value) = unsafe { (bytes(key.0, key.1)?, bytes(value.0, value.1)?) };
    write(&guard)?.with(|writing| {
        let mut table = writing.table(index)?;
        Ok(match op {
            0 => table.put(key, value).map(|()| 1)?,
            1 => table.insert(key, value)?.into(),
            2 => table.insert_value(key, value)?.into(),
            3 => table.delete(key)?.into(),
            4 => table.delete_value(key, value)?.into(),
            5 => table.clear().map(|()| 1)?,
            _ => return Err(Failure::Foreign),
        })
    })
}

/// Takes numbers of the table's sequence and gives the first.
pub(crate) fn sequence(handle: i64, index: i64, count: i64) -> Answer {
    let guard = enter(handle)?;
    let count = u64::try_from(count).map_err(|_| Failure::Foreign)?;
    write(&guard)?.with(|writing| {
        let mut table = writing.table(index)?;
        if table.sequence().checked_add(count).is_none_or(|after| after > i64::MAX as u64) {
            return Err(Error::Invalid("the table's sequence is used up").into());
        }
        Ok(table.next_sequence(count)? as i64)
    })
}

/// Stores `count` records: the lengths of key and value, then both.
pub(crate) unsafe fn put_many(handle: i64, index: i64, count: i64, records: (i64, i64)) -> Answer {
    let guard = enter(handle)?;
    // SAFETY: the caller of the exported function vouches for its buffers.
    let mut input = Input(unsafe { bytes(records.0, records.1) }?);
    write(&guard)?.with(|writing| {
        let mut table = writing.table(index)?;
        for _ in 0..count {
            let (key, value) = (input.length()?, input.length()?);
            table.put(input.take(key)?, input.take(value)?)?;
        }
        Ok(count)
    })
}

//! Opening, closing and dropping tables.

use std::ffi::{CStr, c_char, c_int, c_uint};

use zubilo::TableOptions;
use zubilo::raw::{Named, TableInfo, TableRef};

use crate::abi::{FREE_DBI, MAIN_DBI, MAX_KEY, MDB_dbi, db};
use crate::compare::{self, Functions};
use crate::env::{MDB_env, env_of, put_out};
use crate::errors::{Code, Result};
use crate::guard::{entry, entry_or};
use crate::txn::{MDB_txn, live, txn_of, writable};

use super::{IN_NAMELESS, NAMELESS, Table, flags_of};

/// What a new table gets beside its flags.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) counted: bool,
    /// Bytes; 0 is none.
    pub(crate) alignment: u8,
}

impl Shape {
    pub(super) fn of(info: &TableInfo) -> Shape {
        Shape { counted: info.counted, alignment: info.alignment }
    }

    pub(super) fn apply(self, options: TableOptions) -> TableOptions {
        let options = if self.counted { options.counted() } else { options };
        if self.alignment > 1 { options.align_values(self.alignment) } else { options }
    }
}

pub(crate) fn open_shaped(
    txn: &mut MDB_txn,
    name: &[u8],
    flags: u32,
    shape: Shape,
) -> Result<MDB_dbi> {
    let opened = txn.env()?.opened()?;
    let (seen, own) = (txn.seen, &txn.new_handles);
    let known =
        opened.handles.position(name, |dbi, handle| own.contains(&dbi) || handle.is_seen(seen));
    if let Some(dbi) = known {
        return Ok(dbi);
    }
    if !opened.handles.has_room() {
        return Err(Code::DBS_FULL);
    }
    if name.is_empty() {
        return Err(Code::BAD_VALSIZE);
    }
    let create = flags & db::CREATE != 0;
    if flags_of(&txn.info(MAIN_DBI)?) & (db::DUPSORT | db::INTEGERKEY) != 0 {
        return Err(if create { Code::INCOMPATIBLE } else { Code::NOTFOUND });
    }
    let table = match txn.find(name)? {
        Named::Table(table) => table,
        Named::Record => return Err(Code::INCOMPATIBLE),
        Named::Nothing if !create => return Err(Code::NOTFOUND),
        Named::Nothing if !txn.is_write() => return Err(Code::EACCES),
        Named::Nothing => create_table(txn, name, flags, shape)?,
    };
    let (dbi, handle) = opened.handles.open(name)?;
    txn.new_handles.push(dbi);
    txn.remember(dbi, handle, table)?;
    Ok(dbi)
}

fn create_table(txn: &mut MDB_txn, name: &[u8], flags: u32, shape: Shape) -> Result<Table> {
    if name.len() > MAX_KEY {
        return Err(Code::BAD_VALSIZE);
    }
    let options = shape.apply(compare::options(flags, None, None));
    let index = txn.writer()?.raw_create(name, &options).map_err(Code::from);
    index.map(Table::Write).map_err(|code| txn.failed(code))
}

/// Gives a table that nobody has a handle of another name.
pub(crate) fn rename(txn: &mut MDB_txn, from: &[u8], to: &[u8]) -> Result<()> {
    if from.is_empty() || to.is_empty() || to.len() > MAX_KEY {
        return Err(Code::BAD_VALSIZE);
    }
    let handles = &txn.env()?.opened()?.handles;
    if [from, to].iter().any(|name| handles.position(name, |_, _| true).is_some()) {
        return Err(Code(libc::EBUSY));
    }
    match (txn.find(from)?, txn.find(to)?) {
        (Named::Table(_), Named::Nothing) => {}
        (Named::Nothing, _) => return Err(Code::NOTFOUND),
        (Named::Table(_), Named::Table(_)) => return Err(Code::KEYEXIST),
        _ => return Err(Code::INCOMPATIBLE),
    }
    let renamed = txn.writer()?.rename_table(from, to);
    renamed.map_err(|error| txn.failed(error.into()))
}

/// The unnamed table; flags are taken while it is empty, in a transaction that only reads those of the order of
/// keys, for the first record. It loses the program's comparators.
fn open_main(txn: &mut MDB_txn, flags: u32) -> Result<MDB_dbi> {
    let handle = txn.handle_of(MAIN_DBI)?.clone();
    handle.compare_by(|own| *own = Functions::default());
    handle.set_order(if txn.is_write() { 0 } else { flags & (db::REVERSEKEY | db::INTEGERKEY) });
    txn.forget_table(MAIN_DBI);
    let info = txn.info(MAIN_DBI)?;
    let (has, wanted) = (flags_of(&info), flags & db::PERSISTENT);
    if wanted & !has == 0 || !txn.is_write() {
        return Ok(MAIN_DBI);
    }
    if info.stats.entries > 0 {
        return Err(Code::INCOMPATIBLE);
    }
    let options = compare::options(has | wanted, None, None);
    let target = txn.target(MAIN_DBI)?;
    let writer = txn.writer()?;
    if target == TableRef::CATALOGUE {
        writer.raw_set_counter(IN_NAMELESS)?;
        writer.raw_create(NAMELESS, &options)?;
    } else {
        writer.raw_set_options(target, &options)?;
    }
    txn.forget_table(MAIN_DBI);
    Ok(MAIN_DBI)
}

/// Removes all records of a table, or the table itself.
fn drop_table(txn: &mut MDB_txn, dbi: MDB_dbi, delete: bool) -> Result<()> {
    let target = txn.target(dbi)?;
    txn.writer()?.raw_leave(target);
    if dbi != MAIN_DBI && delete {
        let handle = txn.handle_of(dbi)?.clone();
        txn.writer()?.raw_drop(handle.name())?;
        txn.forget_handle(dbi);
        txn.new_handles.retain(|own| *own != dbi);
        txn.env()?.opened()?.handles.close(dbi);
        return Ok(());
    }
    if target == TableRef::CATALOGUE {
        let writer = txn.writer()?;
        for name in writer.tables()? {
            writer.raw_drop(&name)?;
        }
        for slot in txn.slots.iter_mut().skip(MAIN_DBI as usize + 1) {
            slot.table = None;
        }
    }
    txn.writer()?.raw_clear(target)?;
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_dbi_open(
    txn: *mut MDB_txn,
    name: *const c_char,
    flags: c_uint,
    dbi: *mut MDB_dbi,
) -> c_int {
    entry(txn, || {
        if flags & !(db::PERSISTENT | db::CREATE) != 0 || dbi.is_null() {
            return Err(Code::EINVAL);
        }
        let txn = live(txn)?;
        if name.is_null() {
            return put_out(dbi, open_main(txn, flags)?);
        }
        // SAFETY: by the contract a C string.
        let name = unsafe { CStr::from_ptr(name) };
        put_out(dbi, open_shaped(txn, name.to_bytes(), flags, Shape::default())?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_dbi_close(env: *mut MDB_env, dbi: MDB_dbi) {
    entry_or(env, (), || {
        if let Ok(opened) = env_of(env).and_then(|env| env.opened()) {
            opened.handles.close(dbi);
        }
    });
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_drop(txn: *mut MDB_txn, dbi: MDB_dbi, delete: c_int) -> c_int {
    entry(txn, || {
        txn_of(txn)?;
        if !(0..=1).contains(&delete) || dbi == FREE_DBI {
            return Err(Code::EINVAL);
        }
        let txn = writable(txn, dbi)?;
        drop_table(txn, dbi, delete == 1).map_err(|code| txn.failed(code))
    })
}

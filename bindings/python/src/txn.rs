//! The classes of transactions, `ReadTxn` and `WriteTxn`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::codec::Kind;
use crate::errors::{OrRaise, from_engine, raise};
use crate::hold::{Hold, OnThisThread};
use crate::park;
use crate::snap::{Snap, SnapTable};
use crate::table::{Source, Table, WriteTable};
use crate::types::{self, Want, name_of};

/// A read transaction: a snapshot of the store that does not change.
///
/// Made by `Env.read`. All threads may read from it. When it is closed, its tables, cursors and iterators
/// raise `ClosedError`, and its memoryviews are released.
#[pyclass(frozen, weakref, module = "zubilo")]
pub(crate) struct ReadTxn {
    snap: Arc<Snap>,
}

impl ReadTxn {
    pub(crate) fn new(snap: Arc<Snap>) -> ReadTxn {
        ReadTxn { snap }
    }
}

fn kind(spec: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Kind>> {
    spec.map(Kind::from_spec).transpose()
}

#[pymethods]
impl ReadTxn {
    /// The table `name`, to be read as a mapping. `key` and `value` name its types, where it has any
    /// (`zubilo.open` tells which there are); without them they are as the store notes them. `version` is a
    /// word noted with the types. `raw=True` reads a typed table as bytes. `release_gil=True` lets other
    /// threads run during each single read too, which pays where the store is larger than memory.
    #[pyo3(signature = (name, key=None, value=None, *, version=None, raw=false, release_gil=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of its own")]
    fn table(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        version: Option<String>,
        raw: bool,
        release_gil: bool,
    ) -> PyResult<Table> {
        let name = name_of(name)?;
        let (key, value) = (kind(key)?, kind(value)?);
        let mut want = Want { key, value, version, raw, ..Want::default() };
        want.check(&name)?;
        let mut schema = None;
        let table = SnapTable::open(&self.snap, |txn| {
            let (table, types) = types::open_read(py, txn, &name, &mut want)?;
            schema = Some(types);
            Ok(table)
        })?;
        let schema = schema.ok_or_else(|| crate::errors::internal("a table without types"))?;
        Ok(Table::new(Source::Read(table), name, schema, release_gil))
    }

    /// The names of all tables, in order, as bytes.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = self.snap.pin()?.tables().or_raise()?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    /// The number of the commit whose state this is.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.snap.pin()?.id().0)
    }

    /// Commits made since this snapshot.
    #[getter]
    fn lag(&self) -> PyResult<u64> {
        Ok(self.snap.pin()?.lag())
    }

    /// Whether the transaction is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.snap.is_closed()
    }

    /// Ends the transaction. Closing twice is fine.
    fn close(&self, py: Python<'_>) {
        self.snap.close(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().snap.pin()?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.snap.close(py);
    }

    fn __repr__(&self) -> String {
        match self.snap.pin() {
            Ok(txn) => format!("<zubilo.ReadTxn of commit {}>", txn.id().0),
            Err(_) => "<zubilo.ReadTxn, closed>".to_string(),
        }
    }
}

/// The write transaction: seen by nobody until it commits.
///
/// Made by `Env.write`, or given to the function of `Env.update`. It belongs to its thread; in others it
/// raises `ThreadError`. An object that is dropped without a commit aborts.
#[pyclass(frozen, weakref, module = "zubilo")]
pub(crate) struct WriteTxn {
    hold: Arc<Hold>,
}

impl WriteTxn {
    pub(crate) fn new(hold: Arc<Hold>) -> WriteTxn {
        WriteTxn { hold }
    }
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        self.hold.end();
    }
}

#[pymethods]
impl WriteTxn {
    /// The table `name`, made if there is none, to be read and changed as a mapping.
    ///
    /// `key` and `value` name its types: `bytes`, `str`, `int` (64 bits), `float`, `bool`, a name such as
    /// `"u32"`, a tuple of these; for values also `"json"`, `"pickle"` and `zubilo.array(dtype, shape)`. They
    /// are noted in the store and checked whenever the table is opened, here and in Rust. Options of a new
    /// table, compared with those of one that is there: `duplicates` (many sorted values under a key),
    /// `fixed_values` (the same, all of one size), `counted` (`at`, `rank`), `integer_keys` (native integers
    /// of 4 or 8 bytes), `align` (values aligned to 2, 4, 8 or 16 bytes). `create=False` makes no table.
    /// `adopt=True` notes the types of a table that was made without.
    #[pyo3(signature = (name, key=None, value=None, *, version=None, raw=false, create=true, adopt=false,
        duplicates=None, counted=None, integer_keys=None, fixed_values=None, align=None))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of its own")]
    fn table(
        slf: Bound<'_, Self>,
        name: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        version: Option<String>,
        raw: bool,
        create: bool,
        adopt: bool,
        duplicates: Option<bool>,
        counted: Option<bool>,
        integer_keys: Option<bool>,
        fixed_values: Option<bool>,
        align: Option<u8>,
    ) -> PyResult<Py<WriteTable>> {
        let name = name_of(name)?;
        let (key, value) = (kind(key)?, kind(value)?);
        let mut want = Want {
            key,
            value,
            version,
            raw,
            create,
            adopt,
            duplicates,
            counted,
            integer_keys,
            fixed_values,
            align,
        };
        want.check(&name)?;
        let hold = &slf.get().hold;
        let known = hold.enter(|txn| types::look_up(txn, &name).or_raise())?;
        let plan = types::resolve(slf.py(), &name, &known, &mut want)?;
        let id = hold.change(|txn| plan.run(txn, &name).or_raise())?;
        let source = Source::write(slf.clone().unbind(), hold, id);
        WriteTable::new(slf.py(), Table::new(source, name, plan.schema, false))
    }

    /// The names of all tables, in order, as bytes.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = self.hold.enter(|txn| txn.tables().or_raise())?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    /// Removes the table `name` with all its records.
    fn drop(&self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = name_of(name)?;
        self.hold.change(|txn| types::drop_table(txn, &name).or_raise())
    }

    /// Gives the table `name` the name `to`, which must be free.
    fn rename(&self, name: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<()> {
        let (name, to) = (name_of(name)?, name_of(to)?);
        self.hold.change(|txn| types::rename_table(txn, &name, &to).or_raise())
    }

    /// Commits: after this all others see the changes, and with durability `"sync"` they are on disk.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        if self.hold.is_own_thread() && self.hold.levels().get() > 0 {
            return Err(raise(
                "InvalidError",
                "a nested level is open; leave its with statement first",
            ));
        }
        let txn = OnThisThread(self.hold.take()?);
        park::detach(py, move || txn.whole().0.commit().map(drop)).map_err(from_engine)
    }

    /// Undoes everything. Aborting twice, or after a commit, is fine.
    fn abort(&self) -> PyResult<()> {
        if !self.hold.is_own_thread() {
            return self.hold.enter(|_| Ok(()));
        }
        self.hold.end();
        Ok(())
    }

    /// A nested level, for a `with` statement: an exception undoes what was done inside and goes on; the
    /// transaction can continue after it.
    fn nested(slf: Bound<'_, Self>) -> Nested {
        Nested { txn: slf.unbind() }
    }

    /// The number that this transaction has when it commits.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        self.hold.enter(|txn| Ok(txn.id().0))
    }

    /// Whether it has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.hold.has_ended()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().hold.enter(|_| Ok(()))?;
        Ok(slf)
    }

    #[pyo3(signature = (exception_type, *_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        if !exception_type.is_none() {
            return self.abort();
        }
        // Committed or aborted inside the block: nothing is left to do.
        if self.hold.has_ended() { Ok(()) } else { self.commit(py) }
    }

    fn __repr__(&self) -> String {
        match self.id() {
            Ok(id) => format!("<zubilo.WriteTxn {id}>"),
            Err(_) => "<zubilo.WriteTxn, closed or of another thread>".to_string(),
        }
    }
}

/// A nested level of a write transaction; see `WriteTxn.nested`.
#[pyclass(frozen, module = "zubilo")]
pub(crate) struct Nested {
    txn: Py<WriteTxn>,
}

#[pymethods]
impl Nested {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<WriteTxn>> {
        let hold = &self.txn.get().hold;
        hold.change(|txn| txn.begin_nested().or_raise())?;
        hold.levels().set(hold.levels().get() + 1);
        Ok(self.txn.clone_ref(py))
    }

    #[pyo3(signature = (exception_type, *_exception))]
    fn __exit__(
        &self,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let hold = &self.txn.get().hold;
        if !hold.is_own_thread() {
            return hold.enter(|_| Ok(()));
        }
        // Aborted inside the block: nothing is left to undo.
        if hold.has_ended() {
            return Ok(());
        }
        let levels = hold.levels().get();
        if levels == 0 {
            return Err(raise("InvalidError", "no nested level is open"));
        }
        hold.change(|txn| {
            let ended = match exception_type.is_none() {
                true => txn.commit_nested(),
                false => txn.abort_nested(),
            };
            ended.or_raise()
        })?;
        hold.levels().set(levels - 1);
        if !exception_type.is_none() {
            hold.undone().set(hold.undone().get() + 1);
        }
        Ok(())
    }
}

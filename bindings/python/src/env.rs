//! The class `Env`: an open store. It can be used by all threads; a forked child opens the store again
//! when it first uses the handle.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use zubilo::{Durability, Error, Geometry, Options, VerifyReads};

use crate::errors::{OrRaise, closed, from_engine, raise};
use crate::fork;
use crate::hold::{Hold, OnThisThread};
use crate::park;
use crate::progress::Progress;
use crate::snap::Snap;
use crate::txn::{ReadTxn, WriteTxn};

/// The engine's handle, and in which process it was opened. In a forked child it is not dropped: its
/// threads are not there, and its locks may be held by them.
struct Handle {
    env: ManuallyDrop<zubilo::Env>,
    generation: u32,
}

impl Handle {
    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.env) };
        }
    }
}

/// An open store.
///
/// Made by `zubilo.open`. Any thread may use it, and so may forked and spawned processes: a pickled handle
/// opens the store again, an inherited one does so by itself when it is first used.
#[pyclass(frozen, weakref, module = "zubilo")]
pub(crate) struct Env {
    path: PathBuf,
    /// The arguments of `open`, for pickles and forked children.
    arguments: Py<PyDict>,
    handle: ArcSwapOption<Handle>,
    /// The read transactions that were begun here, ended or not.
    reads: Mutex<Vec<Weak<Snap>>>,
}

fn choice<T: Copy>(what: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        raise("InvalidError", format!("{what} is {given:?}; choose one of {}", names.join(", ")))
    })
}

/// The options that the arguments of `open` ask for.
fn options(arguments: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::new();
    for (name, value) in arguments.iter() {
        let name: String = name.extract()?;
        if value.is_none() {
            continue;
        }
        options = match name.as_str() {
            "read_only" => options.read_only(value.extract()?),
            "create" => options.create(value.extract()?),
            "durability" => {
                let kinds = [
                    ("sync", Durability::Sync),
                    ("lazy", Durability::LAZY),
                    ("nosync", Durability::NoSync),
                ];
                options.durability(choice("durability", &value.extract::<String>()?, &kinds)?)
            }
            "page_size" => options.page_size(value.extract()?),
            "max_size" => {
                let mut geometry = Geometry::default();
                geometry.upper = value.extract()?;
                options.geometry(geometry)
            }
            "reserve" => options.reserve(value.extract()?),
            "max_readers" => options.max_readers(value.extract()?),
            "exclusive" => options.exclusive(value.extract()?),
            "lock_file" => options.lock_file(value.extract()?),
            "verify" => {
                let kinds = [
                    ("never", VerifyReads::Never),
                    ("first", VerifyReads::FirstTouch),
                    ("always", VerifyReads::Always),
                ];
                options.verify_reads(choice("verify", &value.extract::<String>()?, &kinds)?)
            }
            "dirty_limit" => options.dirty_limit(value.extract()?),
            "huge_pages" => options.huge_pages(value.extract()?),
            "read_ahead" => options.read_ahead(value.extract()?),
            "mode" => options.mode(value.extract()?),
            "redo_log" => options.redo_log(value.extract()?),
            "key" => {
                let key = value.cast::<PyBytes>()?.as_bytes();
                let wrong = || raise("InvalidError", "a key is 32 bytes long");
                options.encryption_key(key.try_into().map_err(|_| wrong())?)
            }
            "passphrase" => match value.cast::<PyBytes>() {
                Ok(bytes) => options.passphrase(bytes.as_bytes()),
                Err(_) => options.passphrase(value.extract::<String>()?),
            },
            _ => return Err(raise("InvalidError", format!("open has no argument {name:?}"))),
        };
    }
    Ok(options)
}

/// Opens the store at `path`; makes it if there is none.
///
/// `zubilo.open` describes the arguments.
#[pyfunction]
pub(crate) fn open_env(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    arguments: Py<PyDict>,
) -> PyResult<Env> {
    fork::watch();
    let os = py.import(intern!(py, "os"))?;
    let path = os.call_method1(intern!(py, "fspath"), (path,))?;
    let path: PathBuf = match path.cast::<PyBytes>() {
        Ok(_) => os.call_method1(intern!(py, "fsdecode"), (path,))?.extract()?,
        Err(_) => path.extract()?,
    };
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(raise("InvalidError", "a path cannot contain a zero byte"));
    }
    // A forked child may stand elsewhere when it opens the store again.
    let path = std::path::absolute(&path).unwrap_or(path);
    let handle = open_handle(py, &path, options(arguments.bind(py))?)?;
    Ok(Env {
        path,
        arguments,
        handle: ArcSwapOption::from_pointee(handle),
        reads: Mutex::default(),
    })
}

fn open_handle(py: Python<'_>, path: &Path, options: Options) -> PyResult<Handle> {
    let env = park::detach(py, || options.open(path)).or_raise()?;
    Ok(Handle { env: ManuallyDrop::new(env), generation: fork::generation() })
}

fn nested_begin() -> PyErr {
    let text = "this thread is in a write transaction already; end it, or use its nested()";
    raise("BusyError", text)
}

/// A thread would wait for itself.
fn refuse_second(env: &zubilo::Env) -> PyResult<()> {
    if Hold::has_one_of(env) { Err(nested_begin()) } else { Ok(()) }
}

impl Env {
    /// The engine's handle, opened again in a forked child.
    fn handle(&self, py: Python<'_>) -> PyResult<zubilo::Env> {
        let Some(handle) = self.handle.load_full() else { return Err(closed("store")) };
        if !handle.is_inherited() {
            return Ok(zubilo::Env::clone(&handle.env));
        }
        let options = options(self.arguments.bind(py))?.create(false);
        let new = open_handle(py, &self.path, options)?;
        let env = zubilo::Env::clone(&new.env);
        self.handle.store(Some(Arc::new(new)));
        Ok(env)
    }

    fn reads(&self) -> MutexGuard<'_, Vec<Weak<Snap>>> {
        self.reads.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn note_read(&self, snap: &Arc<Snap>) {
        let mut reads = self.reads();
        if reads.len() == reads.capacity() {
            reads.retain(|read| read.strong_count() > 0);
            let room = reads.len().max(16);
            reads.reserve(room);
        }
        reads.push(Arc::downgrade(snap));
    }

    /// Waits for the write transaction; a main thread listens for Ctrl-C meanwhile.
    fn begin_write(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Arc<Hold>> {
        Hold::end_abandoned();
        let env = self.handle(py)?;
        if crate::update::is_inside() {
            return Err(nested_begin());
        }
        refuse_second(&env)?;
        if let Some(txn) = env.try_write().or_raise()? {
            return Ok(Hold::own(&env, txn));
        }
        let deadline = match timeout {
            Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
                return Err(raise("InvalidError", "timeout is a number of seconds, not below 0"));
            }
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok().map(|d| Instant::now() + d),
            None => None,
        };
        let mut pause = Duration::from_micros(50);
        loop {
            py.check_signals()?;
            // A signal's handler may have begun one.
            refuse_second(&env)?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(raise("BusyError", "another write transaction did not end in time"));
            }
            // The transaction cannot leave this thread, and does not.
            let work = OnThisThread((&env, pause));
            let txn = park::detach(py, move || {
                let OnThisThread((env, pause)) = work.whole();
                std::thread::sleep(pause);
                OnThisThread(env.try_write())
            });
            if let Some(txn) = txn.0.or_raise()? {
                return Ok(Hold::own(&env, txn));
            }
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

#[pymethods]
impl Env {
    /// The path of the data file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Whether the handle is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.load().is_none()
    }

    /// Bytes of a page.
    #[getter]
    fn page_size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.handle(py)?.page_size())
    }

    /// Longest key, in bytes.
    #[getter]
    fn max_key_len(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.handle(py)?.max_key_len())
    }

    /// Begins a read transaction: a snapshot of the newest commit. It never waits.
    ///
    /// Use it in a `with` statement, or close it: as long as it lives the pages of its snapshot are not
    /// reused. All threads may read from it.
    fn read(&self, py: Python<'_>) -> PyResult<ReadTxn> {
        let snap = Arc::new(Snap::new(self.handle(py)?.read().or_raise()?));
        self.note_read(&snap);
        Ok(ReadTxn::new(snap))
    }

    /// Begins the write transaction; there is one at a time, over all threads and processes.
    ///
    /// In a `with` statement it commits at the end and aborts on an exception. It belongs to the thread that
    /// began it. `timeout` is how many seconds to wait for another one to end; then `BusyError` comes. Without
    /// it the call waits.
    #[pyo3(signature = (*, timeout=None))]
    fn write(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<WriteTxn> {
        Ok(WriteTxn::new(self.begin_write(py, timeout)?))
    }

    /// Calls `function(w)` with a write transaction and commits what it did; gives what it gave.
    ///
    /// Calls that come from many threads while a commit is under way share the next commit and its flush, so
    /// this is the fast way to many small durable changes. An exception undoes the changes of its own function
    /// only, and is raised to its caller alone. The function may run in another thread that waits here too;
    /// it must not begin a transaction of its own, and `w` ends with it.
    fn update(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Py<PyAny>> {
        Hold::end_abandoned();
        let _turn = crate::update::Turn::begin()?;
        let env = self.handle(py)?;
        crate::update::run(py, &env, &function)
    }

    /// Makes all commits so far durable. For stores with a durability other than `"sync"`.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let env = self.handle(py)?;
        park::detach(py, || env.sync()).or_raise()
    }

    /// Closes the store: ends the read transactions that were begun here, aborts a write transaction of this
    /// thread, makes commits durable. Closing twice is fine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let reads = std::mem::take(&mut *self.reads());
        for snap in reads.iter().filter_map(Weak::upgrade) {
            snap.close(py);
        }
        Hold::end_abandoned();
        let Some(handle) = self.handle.swap(None) else { return Ok(()) };
        if handle.is_inherited() {
            return Ok(());
        }
        let env = zubilo::Env::clone(&handle.env);
        park::detach(py, move || {
            drop(handle);
            match env.close() {
                // Another handle of this store failed before, and told of it.
                Err(Error::Poisoned { .. }) => Ok(()),
                closed => closed,
            }
        })
        .or_raise()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().handle(slf.py())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// The names of all tables, in order, as bytes.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = self.handle(py)?.read().or_raise()?.tables().or_raise()?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    /// Copies the newest commit to a new file while the store is in use. With `compact=True` without free
    /// pages. `progress(done, total)` is called from time to time; if it returns False the copy stops with
    /// `StoppedError`. Ctrl-C stops it too. An unfinished copy is removed.
    #[pyo3(signature = (path, *, compact=false, progress=None))]
    fn copy(
        &self,
        py: Python<'_>,
        path: PathBuf,
        compact: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let env = self.handle(py)?;
        let mut progress = Progress::new(progress);
        let copied =
            park::detach(py, || env.copy_to_path(path, compact, &mut |a, b| progress.step(a, b)));
        progress.end(copied).map(drop)
    }

    /// Checks the whole newest commit: every page, every key, the account of free pages. Gives a dict of
    /// figures with a list `problems`, which is empty when all is well. `progress` as with `copy`.
    #[pyo3(signature = (*, progress=None))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let env = self.handle(py)?;
        let mut progress = Progress::new(progress);
        let report = park::detach(py, || env.check(&mut |done, total| progress.step(done, total)));
        let report = progress.end(report)?;
        let dict = PyDict::new(py);
        let figures = [
            ("txn", report.txn.0),
            ("tables", report.tables),
            ("entries", report.entries),
            ("pages", report.pages),
            ("leaf_pages", report.leaf_pages),
            ("branch_pages", report.branch_pages),
            ("run_pages", report.run_pages),
            ("free_space_log_pages", report.free_space_log_pages),
            ("free_pages", report.free_pages),
            ("retired_pages", report.retired_pages),
        ];
        for (name, figure) in figures {
            dict.set_item(name, figure)?;
        }
        let mut problems = Vec::new();
        for problem in &report.problems {
            let item = PyDict::new(py);
            item.set_item("page", problem.page.0)?;
            item.set_item("table", problem.table.as_ref().map(|name| PyBytes::new(py, name)))?;
            item.set_item("reason", &problem.reason)?;
            problems.push(item);
        }
        dict.set_item("problems", problems)?;
        Ok(dict)
    }

    /// State and size of the store: a dict with the newest commit, the length of the file, the readers of all
    /// processes and more.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.handle(py)?.info().or_raise()?;
        let dict = PyDict::new(py);
        let figures = [
            ("page_size", info.page_size as u64),
            ("newest", info.newest.0),
            ("steady", info.steady.0),
            ("file_len", info.file_len),
            ("used_len", info.used_len),
            ("reserved", info.reserved),
            ("max_size", info.geometry.upper),
            ("max_readers", u64::from(info.max_readers)),
        ];
        for (name, figure) in figures {
            dict.set_item(name, figure)?;
        }
        let mut readers = Vec::new();
        for reader in &info.readers {
            let item = PyDict::new(py);
            item.set_item("pid", reader.pid)?;
            item.set_item("thread", reader.thread)?;
            item.set_item("txn", reader.txn.0)?;
            item.set_item("lag", reader.lag)?;
            readers.push(item);
        }
        dict.set_item("readers", readers)?;
        dict.set_item("uuid", PyBytes::new(py, &info.uuid))?;
        Ok(dict)
    }

    /// Frees the reader slots of processes that are gone, and gives their number. The writer does so by
    /// itself when such a reader holds pages back.
    fn clean_readers(&self, py: Python<'_>) -> PyResult<u32> {
        self.handle(py)?.clean_readers().or_raise()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.handle.load().is_none() {
            return Err(closed("store"));
        }
        let reopen = py.import(intern!(py, "zubilo"))?.getattr(intern!(py, "_reopen"))?;
        let path = self.path.clone();
        Ok((reopen, (path, self.arguments.clone_ref(py))).into_pyobject(py)?.into_any())
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("<zubilo.Env {:?}{state}>", self.path.display().to_string())
    }
}

impl Progress {
    /// The result of the work, or the exception that ended it.
    fn end<T>(self, result: zubilo::Result<T>) -> PyResult<T> {
        match (result, self.into_exception()) {
            (_, Some(exception)) => Err(exception),
            (Ok(value), None) => Ok(value),
            (Err(error), None) => Err(from_engine(error)),
        }
    }
}

//! The extension module `zubilo._zubilo`, on which the Python package `zubilo` stands. It uses the public
//! interface of the engine and nothing else.
//!
//! `env`, `txn`, `table`, `iter`, `cursor`, `view` are the classes; `change` and `many` are methods of tables.
//! Below them: `snap` and `hold` make read and write transactions safe in the hands of a language
//! where anything can be kept, closed and called at any time and in any thread; `codec` and `types` make
//! bytes of objects; `errors` makes exceptions. What must hold for `unsafe` code is said in `snap`, `hold`,
//! `turn`, `step`, `view` and `buffer`. The global interpreter lock is relied on in `counter` and
//! in `turn::for_a_moment` alone, which do otherwise where there is none.

mod buffer;
mod change;
mod codec;
mod counter;
mod cursor;
mod env;
mod errors;
mod fork;
mod hold;
mod inherit;
mod iter;
mod lmdb;
mod look;
mod many;
mod memory;
mod park;
mod progress;
mod snap;
mod step;
mod table;
mod turn;
mod txn;
mod types;
mod update;
mod view;

use std::ffi::OsString;
use std::io::Write;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Runs the command line `arguments`, whose first word is the program's name, and gives the exit code.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    park::detach(py, || {
        let code = zubilo_cli::run(arguments);
        // Nobody is left to be told that this failed.
        let _ = std::io::stdout().flush();
        code
    })
}

/// State of this library is the process's: the fork hook, the classes that were looked up, the lists of
/// transactions. It serves one interpreter.
fn refuse_subinterpreters(py: Python<'_>) -> PyResult<()> {
    let _ = py;
    // SAFETY: the thread is attached, so there is a current interpreter.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "zubilo cannot be used in a subinterpreter; use threads or processes",
    ))
}

/// The extension of the package zubilo; use the package.
#[pymodule(gil_used = false)]
fn _zubilo(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_subinterpreters(module.py())?;
    fork::watch();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<env::Env>()?;
    module.add_class::<txn::ReadTxn>()?;
    module.add_class::<txn::WriteTxn>()?;
    module.add_class::<txn::Nested>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<table::WriteTable>()?;
    module.add_class::<iter::Records>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_function(wrap_pyfunction!(env::open_env, module)?)?;
    module.add_function(wrap_pyfunction!(lmdb::import_file, module)?)?;
    module.add_function(wrap_pyfunction!(inherit::before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(inherit::after_fork_in_parent, module)?)?;
    module.add_function(wrap_pyfunction!(inherit::after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(park::at_exit, module)?)?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    Ok(())
}

//! Group commit of functions: `Env.update`.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zubilo::Error;

use crate::errors::{from_engine, raise};
use crate::fork;
use crate::hold::Hold;
use crate::park;
use crate::txn::WriteTxn;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs functions of a group commit, or waits for one.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// A thread inside `update`: a second call from there would wait for itself.
pub(crate) struct Turn(());

impl Turn {
    pub(crate) fn begin() -> PyResult<Turn> {
        if INSIDE.replace(true) {
            let text = "update was called inside the function of an update; use its transaction";
            return Err(raise("BusyError", text));
        }
        Ok(Turn(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Runs a function in a group commit; its exception is raised here.
pub(crate) fn run(py: Python<'_>, env: &zubilo::Env, function: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    let mut exception = None;
    let generation = fork::generation();
    let result = park::detach(py, || {
        let exception = &mut exception;
        env.update(move |txn| {
            // In the child of a fork that another function of the group made; the parent runs this one.
            if generation != fork::generation() {
                return Err(Error::Forked);
            }
            park::attach(|py| {
                let hold = Hold::lent(txn);
                let _end = End(&hold);
                let given = Bound::new(py, WriteTxn::new(hold.clone()))
                    .and_then(|w| PyTuple::new(py, [w]))
                    .and_then(|w| park::call(function.bind(py), &w))
                    .map(Bound::unbind);
                given.map_err(|error| {
                    *exception = Some(error);
                    Error::Stopped
                })
            })
        })
    });
    match (result, exception) {
        (_, Some(exception)) => Err(exception),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(from_engine(error)),
    }
}

/// Takes the transaction back, whatever way the function ends.
struct End<'h>(&'h Hold);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

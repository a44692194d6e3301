//! Long work without the interpreter: from time to time it looks whether Ctrl-C was pressed, and
//! calls the user's function.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::park;

/// How long no signal is heard, at most.
const INTERVAL: Duration = Duration::from_millis(50);

/// The state of such work.
pub(crate) struct Progress {
    function: Option<Py<PyAny>>,
    /// None before the first time, which is at once.
    last: Option<Instant>,
    exception: Option<PyErr>,
}

impl Progress {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Progress {
        Progress { function, last: None, exception: None }
    }

    /// Whether to go on.
    pub(crate) fn step(&mut self, done: u64, total: u64) -> bool {
        if self.exception.is_some() {
            return false;
        }
        let is_due = self.last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if !is_due && done < total {
            return true;
        }
        self.last = Some(Instant::now());
        let go_on = park::attach(|py| {
            py.check_signals()?;
            match &self.function {
                // Whatever it gives but False means to go on: functions that give nothing too.
                Some(function) => {
                    let figures = PyTuple::new(py, [done, total])?;
                    let given = park::call(function.bind(py), &figures)?;
                    Ok(!given.is(pyo3::types::PyBool::new(py, false)))
                }
                None => Ok(true),
            }
        });
        go_on.unwrap_or_else(|exception| {
            self.exception = Some(exception);
            false
        })
    }

    /// The exception that ended the work.
    pub(crate) fn into_exception(self) -> Option<PyErr> {
        self.exception
    }
}

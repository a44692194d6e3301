//! The audit: with [`Options::audit`] the whole store is checked after each commit of this process,
//! so that what damages it is found at the commit that did it.

use crate::check;
use crate::env::log::Level;
use crate::env::options::Options;
use crate::error::{Error, Result};
use crate::num::TxnId;

use super::write::WriteTxn;

impl Options {
    /// Checks the whole store after each commit, as [`crate::Env::check`] does, before the next
    /// transaction can begin. Problems go to the logger, and the commit gives
    /// [`Error::Corrupted`], although it stands. A commit then costs as much as reading the store:
    /// for tests, and for finding the cause of damage.
    pub fn audit(mut self, yes: bool) -> Options {
        self.audit = yes;
        self
    }
}

impl WriteTxn {
    /// The audit of a commit, if it is asked for.
    pub(super) fn audit(&self, txn: TxnId) -> Result<()> {
        if !self.env.options.audit {
            return Ok(());
        }
        let report = match check::run(&self.env, &mut |_, _| true, &mut |_| true) {
            Ok(report) => report,
            Err(Error::ReadersFull { slots }) => {
                let why = format_args!("commit {txn} was not audited: {slots} readers are alive");
                self.env.log(Level::Warn, why);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for problem in &report.problems {
            let what = format_args!("audit of commit {txn}: {}: {}", problem.page, problem.reason);
            self.env.log(Level::Error, what);
        }
        match report.problems.first() {
            None => Ok(()),
            Some(problem) => Err(Error::Corrupted {
                page: problem.page,
                reason: "the audit found it after the commit, which stands",
            }),
        }
    }
}

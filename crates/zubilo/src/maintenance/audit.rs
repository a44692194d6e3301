//! The audit: with [`crate::Options::audit`] the whole store is checked after each commit of this process,
//! so that what damages it is found at the commit that did it.

use std::sync::Arc;

use crate::env::EnvInner;
use crate::env::log::Level;
use crate::error::{Error, Result};
use crate::num::TxnId;

use super::check;

/// The audit of a commit, by the transaction that made it.
pub(super) fn audit(env: &Arc<EnvInner>, txn: TxnId) -> Result<()> {
    let report = match check::run(env, &mut |_, _| true, &mut |_| true) {
        Ok(report) => report,
        Err(Error::ReadersFull { slots, .. }) => {
            let why = format_args!("commit {txn} was not audited: {slots} readers are alive");
            env.log(Level::Warn, why);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for problem in &report.problems {
        let what = format_args!("audit of commit {txn}: {}: {}", problem.page, problem.reason);
        env.log(Level::Error, what);
    }
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(Error::Corrupted {
            page: problem.page,
            reason: "the audit found it after the commit, which stands",
        }),
    }
}

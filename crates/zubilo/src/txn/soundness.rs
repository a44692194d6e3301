//! Whether the trees of the write transaction are whole, and whether others have tried its commit before.

use crate::error::{Error, Result};
use crate::shared::{Shared, Word};
use crate::sync::Ordering;

/// A transaction is sound until a change stops half-way; then its trees can only be undone.
#[derive(Default)]
pub(super) struct Soundness {
    broken: bool,
}

impl Soundness {
    pub(super) fn check(&self) -> Result<()> {
        if self.broken { Err(Error::TxnBroken) } else { Ok(()) }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// The trees are half-way, or nobody knows what they are.
    pub(super) fn lose(&mut self) {
        self.broken = true;
    }

    /// The trees are whole: a change has come to its end, or what broke them is undone.
    pub(super) fn regain(&mut self) {
        self.broken = false;
    }
}

/// The attempt of a transaction to write pages: they bear its number, as do those of an attempt before it
/// that was killed, failed or given up.
#[derive(Default)]
pub(super) struct Attempt {
    /// Once pages were written: whether others with the same number may have been before.
    retried: Option<bool>,
}

impl Attempt {
    /// Before the first page is written by the transaction with this number.
    pub(super) fn begin(&mut self, shared: &Shared, number: u64) {
        if self.retried.is_none() {
            let word = shared.word(Word::Attempt);
            self.retried = Some(word.load(Ordering::SeqCst) >= number);
            word.store(number, Ordering::SeqCst);
        }
    }

    /// Whether pages of another attempt may bear the same number.
    pub(super) fn is_retry(&self) -> bool {
        self.retried == Some(true)
    }
}

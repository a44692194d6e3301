//! The free pages as LMDB shows them: a table with a record for each transaction that freed some.
//! Here all are in one record.

use crate::env::FIRST_TXN;
use crate::errors::{Code, Result};

/// The record, and whether the cursor is on it.
pub(super) struct FreeList {
    txn: [u8; 8],
    /// Their number, then the pages, descending.
    pages: Vec<u64>,
    on: bool,
}

impl FreeList {
    pub(super) fn read(store: &zubilo::Env) -> Result<FreeList> {
        let txn = store.read()?.id().0.saturating_sub(FIRST_TXN);
        let mut pages = vec![0];
        for (first, count) in store.raw_free_runs()?.into_iter().rev() {
            pages.extend((first..first + count).rev());
        }
        pages[0] = pages.len() as u64 - 1;
        Ok(FreeList { txn: txn.to_ne_bytes(), pages, on: false })
    }

    /// Steps on or off the record.
    pub(super) fn go(&mut self, op: u32) -> Result<()> {
        use super::get::op;
        let there = self.pages.len() > 1;
        let to = match op {
            op::FIRST | op::LAST | op::SET_RANGE => true,
            op::NEXT | op::PREV | op::NEXT_NODUP | op::PREV_NODUP => !self.on,
            op::GET_CURRENT => self.on,
            _ => return Err(Code::INCOMPATIBLE),
        };
        if to && there {
            self.on = true;
            Ok(())
        } else {
            Err(Code::NOTFOUND)
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.txn
    }

    pub(super) fn value(&self) -> &[u8] {
        // SAFETY: the numbers as bytes, for as long as they are borrowed.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.pages.len() * 8) }
    }
}

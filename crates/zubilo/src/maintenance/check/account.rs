//! The account of pages: who uses which, each once.

use crate::dirty::with_room;
use crate::error::{Error, Result};
use crate::platform;

use super::CheckReport;

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Use {
    Nothing = 0,
    Meta,
    Branch,
    Leaf,
    Run,
    FreeSpaceLog,
    RedoLog,
    Free,
}

/// One byte a page.
pub(super) struct Account {
    uses: Vec<Use>,
}

impl Account {
    /// For so many pages, be that what a damaged meta says: more than memory holds is an error.
    pub(super) fn new(pages: u64) -> Result<Account> {
        let pages = usize::try_from(pages).unwrap_or(usize::MAX);
        let too_many = || Error::no_memory("note the pages of the store");
        // What the system promises beyond its memory it takes back by ending processes.
        if pages as u64 > platform::memory_limit() {
            return Err(too_many());
        }
        let mut uses = with_room(pages).ok_or_else(too_many)?;
        uses.resize(pages, Use::Nothing);
        Ok(Account { uses })
    }

    /// Books pages; false (and a problem) when one is used already or does not exist.
    pub(super) fn add(
        &mut self,
        first: u64,
        count: u64,
        what: Use,
        report: &mut CheckReport,
        table: Option<&[u8]>,
    ) -> bool {
        let range =
            usize::try_from(first).ok().zip(usize::try_from(first.saturating_add(count)).ok());
        let Some(uses) = range.and_then(|(from, to)| self.uses.get_mut(from..to)) else {
            report.problem(first, table, format!("{what:?} pages outside the store"));
            return false;
        };
        let mut fine = true;
        for (i, place) in uses.iter_mut().enumerate() {
            if *place != Use::Nothing {
                let page = first + i as u64;
                report.problem(page, table, format!("used twice: as {place:?} and as {what:?}"));
                fine = false;
            }
            *place = what;
        }
        fine
    }

    /// Reports pages that nobody has: lost space.
    pub(super) fn gaps(&self, report: &mut CheckReport) {
        for (page, what) in self.uses.iter().enumerate() {
            if *what == Use::Nothing {
                report.problem(page as u64, None, "neither used nor free: the page is lost");
            }
        }
    }
}

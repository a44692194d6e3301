//! Reading: look-ups of one key or many, and scans.
//!
//! A scan keeps nothing on this side. Each call names the range and the record after which it goes on, and
//! fills the caller's buffer; the search for that record is paid once for all that fit. So there are no
//! native cursors that could outlive their transaction, be used by two threads, or leak.

use std::ops::Bound;

use zubilo::{Cursor, Iter, ReadTable, Seek, ValueIter, WriteTable};

use crate::error::Failure;
use crate::memory::{Input, Output, put_record, record_len};

/// Bits of a scan's flags.
pub(crate) const REVERSE: i64 = 1;
pub(crate) const COPY: i64 = 2;

/// A record's key and value.
type Record<'r> = (&'r [u8], &'r [u8]);
/// The ends of a range.
pub(crate) type Ends<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A range and where to go on in it.
pub(crate) struct Request<'k> {
    pub(crate) ends: Ends<'k>,
    after: Option<Record<'k>>,
}

impl<'k> Request<'k> {
    /// Two ends, each a kind (0 open, 1 included, 2 excluded), a length and its key; then whether
    /// there is a record to go on after, its lengths, and it.
    pub(crate) fn parse(bytes: &'k [u8]) -> Result<Request<'k>, Failure> {
        let mut input = Input(bytes);
        let mut end = || -> Result<Bound<&'k [u8]>, Failure> {
            let kind = input.length()?;
            let len = input.length()?;
            let key = input.take(len)?;
            match kind {
                0 => Ok(Bound::Unbounded),
                1 => Ok(Bound::Included(key)),
                2 => Ok(Bound::Excluded(key)),
                _ => Err(Failure::Foreign),
            }
        };
        let ends = (end()?, end()?);
        let after = if input.length()? == 0 {
            None
        } else {
            let (key, value) = (input.length()?, input.length()?);
            Some((input.take(key)?, input.take(value)?))
        };
        Ok(Request { ends, after })
    }

    /// What is left of the range after the key of the record to go on after.
    fn rest(&self, reverse: bool) -> Ends<'k> {
        match (self.after, reverse) {
            (None, _) => self.ends,
            (Some((key, _)), false) => (Bound::Excluded(key), self.ends.1),
            (Some((key, _)), true) => (self.ends.0, Bound::Excluded(key)),
        }
    }
}

/// A table in either kind of transaction.
pub(crate) trait Source {
    fn range<'s>(&'s self, ends: Ends<'_>) -> Iter<'s>;
    fn cursor(&self) -> Result<Cursor<'_>, Failure>;
    fn values<'s>(&'s self, key: &[u8]) -> Result<ValueIter<'s>, Failure>;
    fn has_duplicates(&self) -> bool;
}

impl Source for ReadTable<'_> {
    fn range<'s>(&'s self, ends: Ends<'_>) -> Iter<'s> {
        ReadTable::range::<&[u8]>(self, ends)
    }
    fn cursor(&self) -> Result<Cursor<'_>, Failure> {
        Ok(ReadTable::cursor(self))
    }
    fn values<'s>(&'s self, key: &[u8]) -> Result<ValueIter<'s>, Failure> {
        Ok(self.get_all(key)?)
    }
    fn has_duplicates(&self) -> bool {
        self.options().has_duplicates()
    }
}

impl Source for WriteTable<'_> {
    fn range<'s>(&'s self, ends: Ends<'_>) -> Iter<'s> {
        WriteTable::range::<&[u8]>(self, ends)
    }
    fn cursor(&self) -> Result<Cursor<'_>, Failure> {
        Ok(WriteTable::cursor(self)?)
    }
    fn values<'s>(&'s self, key: &[u8]) -> Result<ValueIter<'s>, Failure> {
        Ok(self.get_all(key)?)
    }
    fn has_duplicates(&self) -> bool {
        self.options().has_duplicates()
    }
}

/// What a scan gives: records written, twice, and 1 if there are no more. With none written and more to
/// come the first number of the buffer says how much room the next record needs.
pub(crate) fn scan(
    table: &impl Source,
    request: &Request<'_>,
    flags: i64,
    limit: i64,
    out: &mut Output<'_>,
) -> Result<i64, Failure> {
    let (reverse, copy) = (flags & REVERSE != 0, flags & COPY != 0);
    let mut filling = Filling { out, copy, left: limit, count: 0, full: limit <= 0 };
    if let Some((key, value)) = request.after.filter(|_| table.has_duplicates()) {
        let mut cursor = table.cursor()?;
        let seek = if reverse { Seek::Less } else { Seek::Greater };
        let mut at = cursor.seek_value_by(seek, key, value)?;
        while let Some(record) = at {
            if !filling.take(record)? {
                break;
            }
            at = if reverse { cursor.prev_value()? } else { cursor.next_value()? };
        }
    }
    if !filling.full {
        let mut records = table.range(request.rest(reverse));
        while let Some(record) = if reverse { records.next_back() } else { records.next() } {
            if !filling.take(record?)? {
                break;
            }
        }
    }
    Ok(filling.count << 1 | i64::from(!filling.full))
}

/// A buffer on its way to being full.
struct Filling<'o, 'r> {
    out: &'o mut Output<'r>,
    copy: bool,
    left: i64,
    count: i64,
    full: bool,
}

impl Filling<'_, '_> {
    /// Adds a record; false once there is no room, or as many as were asked for.
    #[inline]
    fn take(&mut self, (key, value): Record<'_>) -> Result<bool, Failure> {
        if self.left == 0 || !put_record(self.out, self.copy, key, value) {
            self.full = true;
            if self.count == 0 && self.left > 0 {
                self.out.ask(record_len(self.copy, key, value))?;
            }
            return Ok(false);
        }
        self.left -= 1;
        self.count += 1;
        Ok(true)
    }
}

/// Scans the values of one key; as [`scan`], with `skip` values left out, and empty keys.
pub(crate) fn values(
    table: &impl Source,
    key: &[u8],
    after: Option<&[u8]>,
    limit: i64,
    copy: bool,
    out: &mut Output<'_>,
) -> Result<i64, Failure> {
    let mut filling = Filling { out, copy, left: limit, count: 0, full: limit <= 0 };
    match after {
        None => {
            for value in table.values(key)? {
                if !filling.take((&[], value?))? {
                    break;
                }
            }
        }
        Some(after) if table.has_duplicates() => {
            let mut cursor = table.cursor()?;
            let mut at = cursor.seek_value_by(Seek::Greater, key, after)?;
            while let Some((_, value)) = at {
                if !filling.take((&[], value))? {
                    break;
                }
                at = cursor.next_value()?;
            }
        }
        Some(_) => {}
    }
    Ok(filling.count << 1 | i64::from(!filling.full))
}

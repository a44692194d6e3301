//! What can be read of a table in either kind of transaction, so that everything above is written once.

use std::ops::Bound;

use zubilo::{Error, Iter, ReadTable, Result, TableOptions, TableStats, ValueIter, WriteTable};

/// A record: key and value.
pub(crate) type Pair<'t> = (&'t [u8], &'t [u8]);

/// Which records.
#[derive(Clone, Debug)]
pub(crate) enum Span {
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl Span {
    pub(crate) const ALL: Span = Span::Range(Bound::Unbounded, Bound::Unbounded);

    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Span::Range(Bound::Unbounded, Bound::Unbounded))
    }
}

/// A table to be read.
pub(crate) trait Look {
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>>;
    fn count(&self, key: &[u8]) -> Result<u64>;
    fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool>;
    fn get_all(&self, key: &[u8]) -> Result<ValueIter<'_>>;
    fn records(&self, span: &Span) -> Iter<'_>;
    fn first(&self) -> Result<Option<Pair<'_>>>;
    fn last(&self) -> Result<Option<Pair<'_>>>;
    fn nth(&self, n: u64) -> Result<Option<Pair<'_>>>;
    fn rank(&self, key: &[u8]) -> Result<u64>;
    /// The number of records; `step` gets the number counted so far and says whether to go on.
    fn span_len(&self, span: &Span, step: &mut dyn FnMut(u64) -> bool) -> Result<u64>;
    fn len(&self) -> u64;
    fn stats(&self) -> TableStats;
    fn options(&self) -> TableOptions;
}

/// Both kinds of tables have the same methods.
macro_rules! look {
    ($table:ident) => {
        impl Look for $table<'_> {
            #[inline(always)]
            fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
                $table::get(self, key)
            }

            fn count(&self, key: &[u8]) -> Result<u64> {
                $table::count(self, key)
            }

            fn contains(&self, key: &[u8], value: &[u8]) -> Result<bool> {
                $table::contains(self, key, value)
            }

            fn get_all(&self, key: &[u8]) -> Result<ValueIter<'_>> {
                $table::get_all(self, key)
            }

            fn records(&self, span: &Span) -> Iter<'_> {
                match span {
                    Span::Range(start, end) => {
                        $table::range::<Vec<u8>>(self, (start.clone(), end.clone()))
                    }
                    Span::Prefix(prefix) => $table::prefix(self, prefix),
                }
            }

            fn first(&self) -> Result<Option<Pair<'_>>> {
                $table::first(self)
            }

            fn last(&self) -> Result<Option<Pair<'_>>> {
                $table::last(self)
            }

            fn nth(&self, n: u64) -> Result<Option<Pair<'_>>> {
                $table::nth(self, n)
            }

            fn rank(&self, key: &[u8]) -> Result<u64> {
                $table::rank(self, key)
            }

            fn span_len(&self, span: &Span, step: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
                match span {
                    Span::Range(start, end) if $table::options(self).is_counted() => {
                        $table::range_len::<Vec<u8>>(self, (start.clone(), end.clone()))
                    }
                    span if span.is_all() => Ok($table::len(self)),
                    span => {
                        let mut count = 0u64;
                        for record in Look::records(self, span) {
                            record?;
                            count += 1;
                            if count.is_multiple_of(4096) && !step(count) {
                                return Err(Error::Stopped);
                            }
                        }
                        Ok(count)
                    }
                }
            }

            fn len(&self) -> u64 {
                $table::len(self)
            }

            fn stats(&self) -> TableStats {
                $table::stats(self)
            }

            fn options(&self) -> TableOptions {
                $table::options(self)
            }
        }
    };
}

look!(ReadTable);
look!(WriteTable);

//! The changes that a record holds. An operation is a byte that names it and its arguments: byte strings with
//! their length before them, numbers in LEB128. Tables are named by their names, once for each row of
//! operations on one of them.

use std::ops::Bound;

use crate::page::Damage;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// What follows is about the table of this name.
    Table(&'a [u8]),
    /// What follows is about the table of names itself.
    Catalogue,
    /// The value of a key, in the place of the one it had.
    Put(&'a [u8], &'a [u8]),
    /// One more value of a key that can have many.
    Add(&'a [u8], &'a [u8]),
    /// A key goes with all its values.
    Delete(&'a [u8]),
    /// One value of a key goes.
    DeleteValue(&'a [u8], &'a [u8]),
    /// The table's sequence goes on with this number.
    Sequence(u64),
    /// All keys between two bounds go with all their values.
    DeleteRange(Bound<&'a [u8]>, Bound<&'a [u8]>),
    /// All records of the table go.
    Clear,
    /// The table goes with all its records.
    Drop,
    /// The user's three numbers.
    Words([u64; 3]),
}

impl Op<'_> {
    /// Bytes of the keys and values that it holds.
    pub(crate) fn len(&self) -> usize {
        let of = |bound: &Bound<&[u8]>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
            Bound::Unbounded => 0,
        };
        match self {
            Op::Put(a, b) | Op::Add(a, b) | Op::DeleteValue(a, b) => a.len() + b.len(),
            Op::Table(key) | Op::Delete(key) => key.len(),
            Op::DeleteRange(start, end) => of(start) + of(end),
            Op::Catalogue | Op::Sequence(_) | Op::Clear | Op::Drop | Op::Words(_) => 0,
        }
    }
}

/// Names of operations. 0 is none, so that zeros are no log.
const TABLE: u8 = 1;
const CATALOGUE: u8 = 2;
const PUT: u8 = 3;
const ADD: u8 = 4;
const DELETE: u8 = 5;
const DELETE_VALUE: u8 = 6;
const SEQUENCE: u8 = 7;
const DELETE_RANGE: u8 = 8;
const CLEAR: u8 = 9;
const DROP: u8 = 10;
const WORDS: u8 = 11;

/// Adds an operation to a payload.
pub(crate) fn put_op(to: &mut Vec<u8>, op: Op<'_>) {
    match op {
        Op::Table(name) => put_strings(to, TABLE, &[name]),
        Op::Catalogue => to.push(CATALOGUE),
        Op::Put(key, value) => put_strings(to, PUT, &[key, value]),
        Op::Add(key, value) => put_strings(to, ADD, &[key, value]),
        Op::Delete(key) => put_strings(to, DELETE, &[key]),
        Op::DeleteValue(key, value) => put_strings(to, DELETE_VALUE, &[key, value]),
        Op::Sequence(next) => {
            to.push(SEQUENCE);
            put_number(to, next);
        }
        Op::DeleteRange(start, end) => {
            to.push(DELETE_RANGE);
            put_bound(to, start);
            put_bound(to, end);
        }
        Op::Clear => to.push(CLEAR),
        Op::Drop => to.push(DROP),
        Op::Words(words) => {
            to.push(WORDS);
            words.iter().for_each(|word| put_number(to, *word));
        }
    }
}

/// A byte that says which kind it is, and the key if there is one.
fn put_bound(to: &mut Vec<u8>, bound: Bound<&[u8]>) {
    match bound {
        Bound::Unbounded => to.push(0),
        Bound::Included(key) => put_strings(to, 1, &[key]),
        Bound::Excluded(key) => put_strings(to, 2, &[key]),
    }
}

fn put_strings(to: &mut Vec<u8>, name: u8, strings: &[&[u8]]) {
    to.push(name);
    for string in strings {
        put_number(to, string.len() as u64);
        to.extend_from_slice(string);
    }
}

fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The operations of a payload, in order. After an error there is nothing more.
pub(crate) struct Ops<'a>(&'a [u8]);

const CUT_OFF: Damage = Damage("an operation in the redo log is cut off");

impl<'a> Ops<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Ops<'a> {
        Ops(payload)
    }

    fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(CUT_OFF)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damage("a number in the redo log is too large"))
    }

    fn string(&mut self) -> Result<&'a [u8], Damage> {
        let len = usize::try_from(self.number()?).map_err(|_| CUT_OFF)?;
        let (string, rest) = self.0.split_at_checked(len).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(string)
    }

    fn bound(&mut self) -> Result<Bound<&'a [u8]>, Damage> {
        let (kind, rest) = self.0.split_first().ok_or(CUT_OFF)?;
        self.0 = rest;
        match kind {
            0 => Ok(Bound::Unbounded),
            1 => Ok(Bound::Included(self.string()?)),
            2 => Ok(Bound::Excluded(self.string()?)),
            _ => Err(Damage("an unknown bound of a range in the redo log")),
        }
    }

    fn op(&mut self, name: u8) -> Result<Op<'a>, Damage> {
        Ok(match name {
            TABLE => Op::Table(self.string()?),
            CATALOGUE => Op::Catalogue,
            PUT => Op::Put(self.string()?, self.string()?),
            ADD => Op::Add(self.string()?, self.string()?),
            DELETE => Op::Delete(self.string()?),
            DELETE_VALUE => Op::DeleteValue(self.string()?, self.string()?),
            SEQUENCE => Op::Sequence(self.number()?),
            DELETE_RANGE => Op::DeleteRange(self.bound()?, self.bound()?),
            CLEAR => Op::Clear,
            DROP => Op::Drop,
            WORDS => Op::Words([self.number()?, self.number()?, self.number()?]),
            _ => return Err(Damage("an unknown operation in the redo log")),
        })
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&name, rest) = self.0.split_first()?;
        self.0 = rest;
        let op = self.op(name);
        if op.is_err() {
            self.0 = &[];
        }
        Some(op)
    }
}

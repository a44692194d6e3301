//! The steps of a program, made at random with what is known to be open.

use std::ffi::{c_int, c_uint};

use crate::side::{Arg, CURRENT, DUPFIXED, DUPSORT, MULTIPLE, Outcome, RESERVE, TABLES};
use support::Rng;
use support::lmdb::{
    MDB_APPEND as APPEND, MDB_APPENDDUP as APPENDDUP, MDB_BAD_TXN as BAD_TXN,
    MDB_BAD_VALSIZE as BAD_VALSIZE, MDB_INCOMPATIBLE as INCOMPATIBLE, MDB_KEYEXIST as KEYEXIST,
    MDB_MAP_FULL as MAP_FULL, MDB_NODUPDATA as NODUPDATA, MDB_NOOVERWRITE as NOOVERWRITE,
};

const CURSORS: usize = 3;
const EINVAL: c_int = 22;
/// Moves of cursors, and a number that names none.
const OPS: usize = 20;

/// A key or value.
#[derive(Clone)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl std::ops::Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.first_chunk::<8>().filter(|_| self.0.len() == 8) {
            Some(number) => write!(f, "#{}", u64::from_le_bytes(*number)),
            None if self.0.len() > 20 => write!(f, "long"),
            None => write!(f, "'{}'", self.0.escape_ascii()),
        }
    }
}

/// Which arguments are handed in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Out {
    Both,
    NoValue,
    /// Both, but whether the key is given is not compared.
    LooseKey,
}

/// A step of a program, without anything that depends on the library.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Begin,
    Nested,
    Commit,
    Abort,
    BeginRead,
    /// A transaction that writes, where the environment does not.
    Refused,
    Reset,
    Renew,
    /// With the map size told, or as it was; and for reading only.
    Reopen(bool, bool),
    Info,
    /// In the parent while its child lives.
    InParent(Box<Step>),
    OpenTable(String),
    Get(usize, Blob),
    Put(usize, Blob, Blob, c_uint),
    Del(usize, Blob, Option<Blob>),
    Drop(usize),
    Stat(usize),
    Flags(usize),
    Compare(usize, Blob, Blob, bool),
    OpenCursor(usize),
    CloseCursor(usize),
    RenewCursor(usize),
    CursorGet {
        cursor: usize,
        key: Blob,
        value: Blob,
        op: c_uint,
        out: Out,
    },
    CursorPut {
        cursor: usize,
        key: Blob,
        value: Blob,
        flags: c_uint,
        count: usize,
    },
    CursorDel(usize, c_uint),
    CursorCount(usize),
}

struct OpenCursor {
    level: usize,
    table: usize,
    place: Place,
    /// LMDB's mark that there is no more, which outlives what is put after it.
    at_end: bool,
    /// Its value was deleted by another call: until LMDB looks the key up again it counts as before.
    stale: bool,
    /// As it was when the nested transactions began.
    before: Vec<(Place, bool, bool)>,
}

/// What is known of a cursor's place, and so, what may be asked of it without asking LMDB for what it
/// does not know itself.
#[derive(Clone, PartialEq, Debug)]
enum Place {
    /// It was never placed.
    Nowhere,
    /// On a pair; which one, if it is known.
    On(Option<(Vec<u8>, Vec<u8>)>),
    /// It has found nothing.
    Missed,
    /// The same, and the key where it stands has several values.
    MissedSeveral,
    /// Its record was deleted by it, and the table has not changed since.
    Deleted,
    /// Its value was deleted by another call.
    ValueDeleted,
    /// No key was behind its own.
    Ended,
    Unknown,
    /// Its transaction was reset: it is to be renewed.
    Lost,
}

/// What transactions do.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reads {
    /// They write.
    No,
    Yes,
    /// It was reset.
    Parked,
}

pub(crate) struct Program {
    random: Rng,
    levels: usize,
    reads: Reads,
    /// The environment is open for reading only.
    read_only: bool,
    /// Whether transactions nest.
    nests: bool,
    /// The innermost transaction can only be aborted.
    dead: bool,
    cursors: Vec<OpenCursor>,
    /// Handles beyond the tables' that may be open.
    extra: usize,
    /// Calls with several items; their values are all different.
    several: usize,
    /// Tables that have lost something: how LMDB keeps a single value then depends on the past.
    past: [bool; TABLES.len()],
    /// LMDB counts a transaction that has only tried to change something, or has put what was there: one more
    /// change hides that.
    tried: bool,
    /// What shows most of what the step before has left.
    telling: Option<Step>,
}

impl Program {
    pub(crate) fn new(seed: u64, nests: bool) -> Program {
        let (random, past) = (Rng::new(seed), [false; TABLES.len()]);
        Program {
            random,
            levels: 0,
            reads: Reads::No,
            read_only: false,
            nests,
            dead: false,
            cursors: Vec::new(),
            extra: 0,
            several: 0,
            past,
            tried: false,
            telling: None,
        }
    }

    fn key(&mut self, table: usize) -> Blob {
        Blob(self.key_bytes(table))
    }

    fn key_bytes(&mut self, table: usize) -> Vec<u8> {
        let n = self.random.index(7) as u8;
        if TABLES.get(table).is_some_and(|table| table.1 & 0x08 != 0) {
            return u64::from(n).to_le_bytes().to_vec();
        }
        match self.random.index(40) {
            0 => Vec::new(),
            1 => vec![b'k'; 512],
            _ => vec![b'k', b'a' + n],
        }
    }

    fn value(&mut self, table: usize) -> Blob {
        Blob(self.value_bytes(table))
    }

    fn value_bytes(&mut self, table: usize) -> Vec<u8> {
        let n = self.random.index(5) as u8;
        let flags = TABLES.get(table).map_or(DUPSORT, |table| table.1);
        if flags & 0x20 != 0 {
            return u64::from(n).to_le_bytes().to_vec();
        }
        if flags & DUPFIXED != 0 {
            return vec![b'v', b'a' + n];
        }
        vec![b'a' + n; 1 + usize::from(n) % 3]
    }

    pub(crate) fn next(&mut self) -> Step {
        if let Some(step) = self.telling.take().filter(|step| self.allowed(step))
            && self.random.one_in(2)
        {
            return step;
        }
        loop {
            let step = self.any();
            let last = matches!(step, Step::Commit) && self.levels == 1 && self.reads == Reads::No;
            if last && self.tried && !self.dead {
                self.tried = false;
                let value = vec![b'x'; 1 + self.random.index(9)];
                return Step::Put(0, Blob(b"kx".to_vec()), Blob(value), 0);
            }
            if self.allowed(&step) {
                return step;
            }
        }
    }

    /// Whether LMDB does something sensible, and the same each time.
    fn allowed(&self, step: &Step) -> bool {
        match step {
            // Refused before anything is looked at.
            Step::CursorGet { .. } if self.reads == Reads::Parked => true,
            Step::CursorPut { cursor, .. } if self.reads != Reads::No => {
                self.cursors[*cursor].place != Place::Lost
            }
            Step::CursorGet { cursor, op, .. } => {
                let cursor = &self.cursors[*cursor];
                let dup = TABLES[cursor.table].1 & DUPSORT != 0;
                // Whether one value is one of several depends on the past.
                if matches!(op, 10 | 18)
                    && self.past[cursor.table]
                    && !matches!(cursor.place, Place::On(_))
                {
                    return false;
                }
                match cursor.place {
                    // PREV steps past the last record and back.
                    Place::Nowhere => !matches!(op, 12..=14),
                    Place::Lost => false,
                    Place::On(_) => true,
                    Place::Missed => matches!(op, 0..=4 | 6..=7 | 15..=17 | 19),
                    // LMDB takes the next value from where it was before, which may be no set any more.
                    Place::MissedSeveral => !matches!(op, 5 | 8..=9 | 12..=14 | 18),
                    Place::Deleted if !dup => matches!(op, 0 | 4 | 6 | 8 | 12 | 15..=17),
                    Place::ValueDeleted => matches!(op, 0 | 6 | 8 | 15..=17),
                    Place::Ended => matches!(op, 0 | 2..=4 | 6 | 8..=9 | 11..=12 | 15..=17),
                    _ => matches!(op, 0 | 2 | 3 | 6 | 15..=17 | 19),
                }
            }
            // LMDB writes key and value over those that are there.
            Step::CursorPut { cursor, key, value, flags, .. } => {
                let (place, stale) = (&self.cursors[*cursor].place, self.cursors[*cursor].stale);
                let dup = TABLES[self.cursors[*cursor].table].1 & DUPSORT != 0;
                flags & CURRENT == 0
                    || match place {
                        _ if stale => false,
                        Place::Nowhere => flags & RESERVE == 0,
                        Place::On(Some((own, held))) => own == &key.0 && (!dup || held == &value.0),
                        Place::MissedSeveral => true,
                        _ => false,
                    }
            }
            Step::CursorDel(cursor, _) | Step::CursorCount(cursor) => {
                let place = &self.cursors[*cursor].place;
                let on = matches!(place, Place::Nowhere | Place::On(_) | Place::MissedSeveral);
                on && !self.cursors[*cursor].stale
            }
            _ => true,
        }
    }

    fn any(&mut self) -> Step {
        if self.levels == 0 {
            return match self.random.index(8) {
                0 => Step::Reopen(self.random.one_in(2), self.random.one_in(3)),
                1 => Step::Info,
                2 => Step::BeginRead,
                3 if self.read_only => Step::Refused,
                _ if self.read_only => Step::BeginRead,
                _ => Step::Begin,
            };
        }
        if self.reads != Reads::No
            && let Some(step) = self.while_reading()
        {
            return step;
        }
        if self.dead && self.random.one_in(3) {
            return if self.random.one_in(2) { Step::Abort } else { Step::Commit };
        }
        if self.levels > 1 && self.random.one_in(20) {
            let step = self.on_table();
            return Step::InParent(Box::new(step));
        }
        match self.random.index(100) {
            0 => Step::Commit,
            1 => Step::Abort,
            2..=3 if self.levels < 3 && !self.dead && self.nests && self.reads == Reads::No => {
                Step::Nested
            }
            4 if self.extra < 3 && !self.dead => {
                Step::OpenTable(format!("extra{}", self.random.index(3)))
            }
            // More than the map holds: the transaction can do nothing after that.
            5 if self.random.one_in(4) && self.reads == Reads::No => {
                Step::Put(0, Blob(b"kx".to_vec()), Blob(vec![b'x'; 3 << 20]), 0)
            }
            5..=35 => self.on_table(),
            36..=38 if self.cursors.len() < CURSORS => {
                Step::OpenCursor(self.random.index(TABLES.len()))
            }
            39 if !self.cursors.is_empty() => {
                Step::CloseCursor(self.random.index(self.cursors.len()))
            }
            _ if self.cursors.is_empty() => Step::OpenCursor(self.random.index(TABLES.len())),
            _ => self.at_cursor(),
        }
    }

    /// What is done to a transaction that only reads, or in it while it is reset.
    fn while_reading(&mut self) -> Option<Step> {
        let (n, cursors) = (self.random.index(40), self.cursors.len());
        if let Some(lost) = self.cursors.iter().position(|cursor| cursor.place == Place::Lost)
            && self.reads == Reads::Yes
        {
            return Some(if n < 30 { Step::RenewCursor(lost) } else { Step::CloseCursor(lost) });
        }
        if self.reads == Reads::Yes {
            return match n {
                0 => Some(Step::Reset),
                // LMDB takes one that was not reset for one that cannot be renewed.
                1 => Some(Step::Renew),
                2 if cursors > 0 => Some(Step::RenewCursor(self.random.index(cursors))),
                _ => None,
            };
        }
        let table = self.random.index(TABLES.len());
        Some(match n {
            0..=15 => Step::Renew,
            16 => Step::Abort,
            17 => Step::Commit,
            18 => Step::Reset,
            19..=22 => Step::Get(table, self.key(table)),
            23 => Step::Stat(table),
            24 => Step::Flags(table),
            25 if cursors < CURSORS => Step::OpenCursor(table),
            _ if cursors > 0 => {
                let (cursor, op) =
                    (self.random.index(cursors), self.random.pick(&[0, 4, 6, 8, 15]));
                let (key, value) = (self.key(table), self.value(table));
                Step::CursorGet { cursor, key, value, op, out: Out::Both }
            }
            _ => Step::Renew,
        })
    }

    fn on_table(&mut self) -> Step {
        let table = match self.random.index(30) {
            0 => TABLES.len() + self.random.index(4),
            1 => TABLES.len() - 1,
            _ => self.random.index(TABLES.len() - 1),
        };
        let dup = TABLES.get(table).is_none_or(|table| table.1 & DUPSORT != 0);
        let numbers = TABLES.get(table).is_some_and(|table| table.1 & 0x20 != 0);
        let (key, value) = (self.key(table), self.value(table));
        match self.random.index(20) {
            0..=3 => Step::Get(table, key),
            4..=11 if table != TABLES.len() - 1 => {
                let any = [0, 0, 0, NOOVERWRITE, NODUPDATA, APPEND, APPENDDUP, CURRENT, MULTIPLE];
                let mut flags = self.random.pick(&any);
                if self.random.one_in(6) {
                    flags |= self.random.pick(&any);
                }
                if !dup && self.random.one_in(5) {
                    flags |= RESERVE;
                }
                Step::Put(table, key, value, flags)
            }
            12..=14 => {
                if let Some((key, value)) = self.under_a_cursor(table)
                    && self.random.one_in(3)
                {
                    return Step::Del(table, key, Some(value));
                }
                let value = match self.random.index(8) {
                    0 if !numbers && !self.past.get(table).is_some_and(|past| *past) => {
                        Some(Blob(Vec::new()))
                    }
                    1..=4 => Some(value),
                    _ => None,
                };
                Step::Del(table, key, value)
            }
            15 if self.random.one_in(4) => Step::Drop(table),
            16 => Step::Stat(table),
            17 => Step::Flags(table),
            18 if table < TABLES.len() => {
                let values = self.random.one_in(2) && dup;
                let mut one = || if values { self.value(table) } else { self.key(table) };
                let (a, b) = (one(), one());
                Step::Compare(table, a, b, values)
            }
            _ => Step::Get(table, key),
        }
    }

    /// A pair of a table that a cursor is on.
    fn under_a_cursor(&self, table: usize) -> Option<(Blob, Blob)> {
        self.cursors.iter().filter(|cursor| cursor.table == table).find_map(|cursor| match &cursor
            .place
        {
            Place::On(Some((key, value))) => Some((Blob(key.clone()), Blob(value.clone()))),
            _ => None,
        })
    }

    fn at_cursor(&mut self) -> Step {
        let cursor = self.random.index(self.cursors.len());
        let table = self.cursors[cursor].table;
        let dup = TABLES[table].1 & DUPSORT != 0;
        let numbers = TABLES[table].1 & 0x20 != 0;
        let (key, mut value) = (self.key(table), self.value(table));
        match self.random.index(20) {
            0..=11 => {
                let op = self.random.index(OPS) as c_uint;
                if matches!(op, 2 | 3) && !numbers && !self.past[table] && self.random.one_in(8) {
                    value.0.clear();
                }
                let sparing = !dup && matches!(op, 0 | 6 | 8 | 12 | 15 | 16 | 17);
                let none = sparing && self.random.one_in(8);
                let out = match op {
                    1 | 7 if self.past[table] => Out::LooseKey,
                    _ if none => Out::NoValue,
                    _ => Out::Both,
                };
                Step::CursorGet { cursor, key, value, op, out }
            }
            12..=15 if table != TABLES.len() - 1 => self.put_at_cursor(cursor, key, value),
            16..=17 => {
                let flags = if dup { self.random.pick(&[0, 0, NODUPDATA]) } else { 0 };
                Step::CursorDel(cursor, flags)
            }
            _ => Step::CursorCount(cursor),
        }
    }

    fn put_at_cursor(&mut self, cursor: usize, mut key: Blob, mut value: Blob) -> Step {
        let table = self.cursors[cursor].table;
        let (dup, fixed) = (TABLES[table].1 & DUPSORT != 0, TABLES[table].1 & DUPFIXED != 0);
        let any = [0, 0, NOOVERWRITE, NODUPDATA, APPEND, APPENDDUP, CURRENT, CURRENT];
        let mut flags = self.random.pick(&any);
        if !dup && self.random.one_in(4) {
            flags |= RESERVE;
        }
        if flags & CURRENT != 0
            && let Place::On(Some((own, held))) = &self.cursors[cursor].place
        {
            key = Blob(own.clone());
            if dup {
                value = Blob(held.clone());
            }
        }
        let mut count = 0;
        // Where nothing can be stored any number of times, else LMDB stops at one that is there already.
        let harmless = !fixed || self.dead;
        if (harmless || self.several < 4) && self.random.one_in(5) {
            count = 1 + self.random.index(3);
            let numbers = TABLES[table].1 & 0x20 != 0;
            let item = |i: usize| match numbers {
                true => (100 + i as u64).to_le_bytes().to_vec(),
                false => vec![b'w', b'a' + i as u8],
            };
            value = Blob((0..count).flat_map(|i| item(self.several * 3 + i)).collect());
            self.several += usize::from(!harmless);
            flags = MULTIPLE | self.random.pick(&[0, 0, NODUPDATA, NOOVERWRITE]);
        }
        // The old bytes are there where as many are asked for.
        let same = match &self.cursors[cursor].place {
            Place::On(Some((_, held))) => held.len() == value.len(),
            _ => false,
        };
        if flags & (RESERVE | CURRENT) == RESERVE | CURRENT {
            count = usize::from(same);
        }
        Step::CursorPut { cursor, key, value, flags, count }
    }

    /// Takes notice of what a step has done.
    pub(crate) fn after(&mut self, step: &Step, outcome: &Outcome) {
        match step {
            Step::Reopen(..) | Step::Reset | Step::Renew | Step::RenewCursor(_) => {
                self.read(step, outcome)
            }
            Step::CursorGet { .. } if self.reads == Reads::Parked => {}
            Step::Begin | Step::Nested | Step::BeginRead => {
                if matches!(step, Step::BeginRead) {
                    self.reads = Reads::Yes;
                }
                self.levels += 1;
                for cursor in &mut self.cursors {
                    cursor.before.push((cursor.place.clone(), cursor.at_end, cursor.stale));
                }
            }
            Step::Commit | Step::Abort => self.ended(step, outcome),
            Step::OpenTable(_) if outcome.code == 0 => self.extra += 1,
            Step::OpenCursor(table) if outcome.code == 0 => self.cursors.push(OpenCursor {
                level: self.levels,
                table: *table,
                place: Place::Nowhere,
                at_end: false,
                stale: false,
                before: Vec::new(),
            }),
            Step::CloseCursor(i) => drop(self.cursors.remove(*i)),
            Step::CursorGet { cursor, key, op, .. } => self.moved(*cursor, key, *op, outcome),
            Step::CursorPut { cursor, key, flags, .. } => {
                self.stored(*cursor, key, *flags, outcome)
            }
            Step::CursorDel(cursor, _) => {
                let own = *cursor;
                if outcome.code == 0 {
                    self.changed(self.cursors[own].table, None);
                    self.cursors[own].place = match self.cursors[own].at_end {
                        true => Place::Unknown,
                        false => Place::Deleted,
                    };
                    // Where it was the last, LMDB has the mark now.
                    self.cursors[own].at_end = true;
                }
            }
            Step::CursorCount(cursor) if self.cursors[*cursor].at_end => {
                self.cursors[*cursor].place = Place::Unknown;
            }
            Step::Put(table, key, ..) => self.changed(*table, Some(key)),
            Step::Del(table, ..) if outcome.code != 0 => {
                let on = self.cursors.iter_mut().filter(|cursor| cursor.table == *table);
                on.filter(|cursor| cursor.place == Place::Ended)
                    .for_each(|cursor| cursor.place = Place::Unknown);
            }
            Step::Del(table, key, Some(value)) if outcome.code == 0 => {
                self.removed(*table, key, value)
            }
            Step::Del(table, ..) | Step::Drop(table) if outcome.code == 0 => {
                self.changed(*table, None);
            }
            _ => {}
        }
        self.put_tried(step, outcome);
        if self.reads != Reads::No {
            return;
        }
        let code = outcome.code;
        self.dead |= matches!(code, BAD_TXN | MAP_FULL) && !matches!(step, Step::InParent(_));
    }

    fn put_tried(&mut self, step: &Step, outcome: &Outcome) {
        let (table, flags) = match step {
            Step::Put(table, _, _, flags) => (*table, flags),
            Step::CursorPut { cursor, flags, .. } => (self.cursors[*cursor].table, flags),
            _ => return,
        };
        let refused = outcome.code == KEYEXIST && flags & (NODUPDATA | APPENDDUP) != 0;
        self.tried |= refused || outcome.code == 0;
        if let Some(past) = self.past.get_mut(table) {
            *past |= refused;
        }
    }

    /// The same, of steps of readers.
    fn read(&mut self, step: &Step, outcome: &Outcome) {
        match step {
            Step::Reopen(_, read_only) => self.read_only = *read_only,
            Step::Reset if self.reads == Reads::Yes => {
                self.reads = Reads::Parked;
                self.cursors.iter_mut().for_each(|cursor| cursor.place = Place::Lost);
            }
            Step::Renew if outcome.code == 0 => self.reads = Reads::Yes,
            Step::RenewCursor(i) if outcome.code == 0 => {
                let cursor = &mut self.cursors[*i];
                (cursor.place, cursor.at_end, cursor.stale) = (Place::Nowhere, false, false);
            }
            _ => {}
        }
    }

    fn ended(&mut self, step: &Step, outcome: &Outcome) {
        let (level, committed) = (self.levels, outcome.code == 0 && matches!(step, Step::Commit));
        self.cursors.retain(|cursor| cursor.level < level);
        self.levels -= 1;
        if self.levels == 0 {
            self.reads = Reads::No;
        }
        for cursor in &mut self.cursors {
            let before = cursor.before.pop().expect("the level began");
            if !committed {
                (cursor.place, cursor.at_end, cursor.stale) = before;
            }
        }
        self.dead = matches!(step, Step::Commit) && outcome.code != 0 && self.levels > 0;
    }

    fn stored(&mut self, own: usize, key: &[u8], flags: c_uint, outcome: &Outcome) {
        let was = self.cursors[own].place.clone();
        self.changed(self.cursors[own].table, Some(key));
        let appended = flags & APPEND != 0;
        let cursor = &mut self.cursors[own];
        cursor.place = match (outcome.code, &was) {
            // LMDB does not forget then that something was deleted.
            (KEYEXIST, was) if !matches!(was, Place::On(_) | Place::Nowhere) => Place::Unknown,
            (KEYEXIST, _) if flags & (NOOVERWRITE | APPEND) == NOOVERWRITE => {
                match &outcome.value {
                    Arg::Bytes(held) => {
                        let (own, held) = (Blob(key.to_vec()), Blob(held.clone()));
                        let gone = Step::Del(cursor.table, own.clone(), Some(held.clone()));
                        self.telling = Some(gone);
                        Place::On(Some((own.0, held.0)))
                    }
                    Arg::Same => Place::On(None),
                }
            }
            // On the last of several that were stored at once, LMDB may not see those after it.
            (0, _) if flags & MULTIPLE != 0 && cursor.at_end => Place::Unknown,
            (0 | KEYEXIST, _) => Place::On(None),
            (EINVAL, was) => was.clone(),
            _ => Place::Unknown,
        };
        cursor.at_end |= appended;
        if flags & MULTIPLE != 0 {
            self.past[self.cursors[own].table] = true;
        }
    }

    fn removed(&mut self, table: usize, key: &[u8], value: &[u8]) {
        // One of several: the next step leads to the one behind.
        let gone = Place::On(Some((key.to_vec(), value.to_vec())));
        let on: Vec<bool> = self.cursors.iter().map(|c| c.place == gone && !c.at_end).collect();
        self.changed(table, None);
        let many = TABLES.get(table).is_some_and(|table| table.1 & DUPSORT != 0);
        for (i, (cursor, on)) in self.cursors.iter_mut().zip(on).enumerate() {
            if on && many && cursor.table == table {
                (cursor.place, cursor.stale) = (Place::ValueDeleted, true);
                let (key, value) = (Blob(key.to_vec()), Blob(value.to_vec()));
                let next = Step::CursorGet { cursor: i, key, value, op: 8, out: Out::Both };
                self.telling = Some(next);
            }
        }
    }

    fn moved(&mut self, cursor: usize, key: &[u8], op: c_uint, outcome: &Outcome) {
        let cursor = &mut self.cursors[cursor];
        let told = |arg: &Arg, given: &[u8]| match arg {
            Arg::Same => given.to_vec(),
            Arg::Bytes(bytes) => bytes.clone(),
        };
        let was = std::mem::replace(&mut cursor.place, Place::Unknown);
        cursor.place = match (outcome.code, op) {
            // LMDB forgets then that something was deleted.
            (INCOMPATIBLE | BAD_VALSIZE | EINVAL, _)
                if matches!(was, Place::Deleted | Place::ValueDeleted) =>
            {
                Place::Unknown
            }
            (BAD_TXN | INCOMPATIBLE | BAD_VALSIZE, _) => was,
            // Among the values of a page, or on the key that was given.
            (0, 1 | 5 | 7 | 10 | 18) => Place::On(None),
            (0, 15) => match &outcome.value {
                Arg::Bytes(value) => Place::On(Some((key.to_vec(), value.clone()))),
                Arg::Same => Place::On(None),
            },
            (0, _) => match (&outcome.key, &outcome.value) {
                (Arg::Bytes(key), Arg::Bytes(value)) => {
                    Place::On(Some((key.clone(), value.clone())))
                }
                (Arg::Same, Arg::Bytes(value)) => {
                    Place::On(Some((told(&Arg::Same, key), value.clone())))
                }
                _ => Place::On(None),
            },
            (EINVAL, 4) if was == Place::Missed => Place::MissedSeveral,
            (EINVAL, _) => was,
            // A sub-page of one value is one of several to LMDB.
            (_, 2 | 3 | 15 | 16) if self.past[cursor.table] => Place::Unknown,
            (_, 2 | 3 | 15 | 16) => Place::Missed,
            (_, 17) => Place::Unknown,
            (_, 8 | 11) if matches!(was, Place::On(_) | Place::Ended) => Place::Ended,
            (_, 9) if matches!(was, Place::On(_)) => was,
            (_, 4 | 9) if was == Place::Ended => was,
            _ if was == Place::Nowhere && !matches!(op, 10 | 18) => was,
            _ => Place::Unknown,
        };
        if op != 4 && !matches!(outcome.code, EINVAL | INCOMPATIBLE | BAD_VALSIZE | BAD_TXN) {
            let many = TABLES[cursor.table].1 & DUPSORT != 0;
            let ended = cursor.place == Place::Ended || (op == 9 && !many && outcome.code != 0);
            let kept = outcome.code != 0 && cursor.at_end;
            cursor.at_end = matches!(op, 6 | 12) || ended || kept;
        }
        cursor.stale &= outcome.code != 0 || !matches!(op, 0 | 2 | 3 | 6 | 15..=17);
    }

    /// Cursors that are on no record are lost when their table changes; among many values LMDB's may also
    /// go back to the first of their key.
    fn changed(&mut self, table: usize, put: Option<&[u8]>) {
        let many = TABLES.get(table).is_some_and(|table| table.1 & DUPSORT != 0);
        if let Some(past) = self.past.get_mut(table) {
            *past |= many && put.is_none();
        }
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.table == table) {
            let stays = match (&cursor.place, put) {
                (Place::On(Some((own, _))), Some(key)) => !many || own != key,
                (Place::On(None), Some(_)) => !many,
                (Place::Nowhere, _) => true,
                _ => false,
            };
            if !stays || cursor.at_end {
                cursor.place = Place::Unknown;
            }
            if let Place::On(known) = &mut cursor.place
                && !many
            {
                *known = None;
            }
        }
    }
}

//! Programs: kinds of tables, steps, and how they are made from random numbers.

use support::Rng;

/// Order of keys or of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Bytes from the first.
    Bytes,
    /// Bytes from the last.
    Reversed,
    /// Integers of so many bytes.
    Integer(u8),
    /// As a comparison says that the caller supplies: from the greatest byte string to the least.
    Backwards,
}

/// Values under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One.
    One,
    /// Many, in this order; of one size if that is given.
    Many {
        /// Their order.
        order: Order,
        /// Their size.
        fixed: Option<u8>,
    },
}

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Order of the keys.
    pub keys: Order,
    /// What is under a key.
    pub values: Values,
}

impl Kind {
    /// All combinations.
    pub fn all() -> Vec<Kind> {
        let many = |order, fixed| Values::Many { order, fixed };
        let values = [
            Values::One,
            many(Order::Bytes, None),
            many(Order::Reversed, None),
            many(Order::Bytes, Some(6)),
            many(Order::Bytes, Some(100)),
            many(Order::Reversed, Some(7)),
            many(Order::Integer(4), Some(4)),
            many(Order::Integer(8), Some(8)),
            many(Order::Integer(8), None),
            many(Order::Backwards, None),
            many(Order::Backwards, Some(6)),
        ];
        let integers = [Order::Integer(4), Order::Integer(8)];
        let keys = [&[Order::Bytes, Order::Reversed, Order::Backwards], &integers[..]].concat();
        keys.iter().flat_map(|keys| values.map(|values| Kind { keys: *keys, values })).collect()
    }

    /// Whether a key can have many values.
    pub fn has_duplicates(&self) -> bool {
        self.values != Values::One
    }

    /// The size that all values have.
    pub fn fixed(&self) -> Option<u8> {
        match self.values {
            Values::Many { fixed, .. } => fixed,
            Values::One => None,
        }
    }

    /// The key with a number.
    pub fn key(&self, n: u32) -> Vec<u8> {
        bytes(self.keys, None, n, 1, 510)
    }

    /// The value with a number.
    pub fn value(&self, n: u32) -> Vec<u8> {
        match self.values {
            Values::One => {
                let len = [0, 3, 40, 300, 1500, 6000][n as usize % 6];
                n.to_be_bytes().iter().copied().cycle().take(len).collect()
            }
            Values::Many { order, fixed } => bytes(order, fixed, n, 1, 500),
        }
    }
}

/// A byte string for a number: different for different numbers, not in their order.
fn bytes(order: Order, fixed: Option<u8>, n: u32, min: usize, max: usize) -> Vec<u8> {
    let mixed = u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if let Order::Integer(size) = order {
        let number = if n.is_multiple_of(2) { u64::from(n) } else { mixed >> 34 << 1 | 1 };
        return number.to_le_bytes()[..usize::from(size)].to_vec();
    }
    if let Some(size) = fixed {
        let mut value = vec![7; usize::from(size)];
        let at = if n.is_multiple_of(3) { 0 } else { usize::from(size) - 4 };
        value[at..at + 4].copy_from_slice(&(n.swap_bytes() ^ (mixed as u32 & 0xFF)).to_be_bytes());
        return value;
    }
    let mut value = match n % 4 {
        0 => format!("{n}").into_bytes(),
        1 => format!("{n} a common end of some of these strings").into_bytes(),
        2 => format!("a common start of some of these strings {n}").into_bytes(),
        _ => mixed.to_be_bytes().to_vec(),
    };
    if n % 16 == 7 {
        value.resize(max, b'x');
    }
    if value.len() < min { vec![0; min] } else { value }
}

/// A move of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// `MDB_FIRST`
    First,
    /// `MDB_LAST`
    Last,
    /// `MDB_NEXT`
    Next,
    /// `MDB_PREV`
    Prev,
    /// `MDB_FIRST_DUP`
    FirstDup,
    /// `MDB_LAST_DUP`
    LastDup,
    /// `MDB_NEXT_DUP`
    NextDup,
    /// `MDB_PREV_DUP`
    PrevDup,
    /// `MDB_NEXT_NODUP`
    NextNoDup,
    /// `MDB_PREV_NODUP`
    PrevNoDup,
    /// `MDB_GET_CURRENT`
    Current,
    /// `MDB_SET_KEY`
    Set,
    /// `MDB_SET_RANGE`
    SetRange,
    /// `MDB_GET_BOTH`
    Both,
    /// `MDB_GET_BOTH_RANGE`
    BothRange,
}

/// How a put goes about what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Without flags.
    Upsert,
    /// `MDB_NOOVERWRITE`
    NoOverwrite,
    /// `MDB_NODUPDATA`
    NoDupData,
    /// `MDB_APPEND`
    Append,
    /// `MDB_APPENDDUP`
    AppendDup,
}

/// A step of a program. Keys and values are named by numbers. A step that is not possible (a cursor
/// that is not open) does nothing, so that any part of a program is a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Stores a record without a cursor.
    Put(u32, u32, How),
    /// Stores a range of values under a key, to make many.
    Fill(u32, u32),
    /// Deletes a key, or one of its values.
    Del(u32, Option<u32>),
    /// Reads a key.
    Get(u32),
    /// Deletes all records.
    Clear,
    /// Begins a nested transaction.
    Begin,
    /// Commits the innermost nested transaction, or all.
    Commit,
    /// Aborts the innermost nested transaction, or all.
    Abort,
    /// Commits all and begins anew.
    CommitAll,
    /// Opens a cursor.
    Open(u8),
    /// Closes a cursor.
    Close(u8),
    /// Moves a cursor; with a key and a value for the moves that take them.
    Go(u8, Move, u32, u32),
    /// Stores a record through a cursor.
    CursorPut(u8, u32, u32, How),
    /// Stores many values of one size through a cursor: so many from this one on.
    PutMany(u8, u32, u32, u8),
    /// Replaces the value under a cursor.
    PutCurrent(u8, u32),
    /// Deletes under a cursor; with all values of the key.
    CursorDel(u8, bool),
    /// Counts the values of the key under a cursor.
    Count(u8),
    /// Reads all values of a key in packed form; from the last.
    Packed(u8, u32, bool),
    /// Makes room for a value without a cursor, and fills it.
    Reserve(u32, u32, How),
    /// Lets go of a cursor and takes it up again where it was; nothing in LMDB.
    Park(u8),
}

/// What Zubilo's tables have besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Records are counted.
    pub counted: bool,
    /// Values are aligned to so many bytes, where a key has one.
    pub align: u8,
}

/// A table and what is done to it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The table.
    pub kind: Kind,
    /// How Zubilo lays it out, which must not show.
    pub layout: Layout,
    /// What is done.
    pub steps: Vec<Step>,
}

const MOVES: [Move; 15] = [
    Move::First,
    Move::Last,
    Move::Next,
    Move::Prev,
    Move::FirstDup,
    Move::LastDup,
    Move::NextDup,
    Move::PrevDup,
    Move::NextNoDup,
    Move::PrevNoDup,
    Move::Current,
    Move::Set,
    Move::SetRange,
    Move::Both,
    Move::BothRange,
];
const HOWS: [How; 8] = [
    How::Upsert,
    How::Upsert,
    How::Upsert,
    How::Upsert,
    How::NoOverwrite,
    How::NoDupData,
    How::Append,
    How::AppendDup,
];

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let kinds = Kind::all();
    let count = kinds.len() as u64;
    let kind = kinds[(seed % count) as usize];
    let round = seed / count;
    let layout = Layout {
        counted: round.is_multiple_of(2),
        align: [1, 8, 2, 1, 16, 4][(round / 2 % 6) as usize],
    };
    let keys = rng.pick(&[2, 5, 30, 400]);
    let values = rng.pick(&[3, 12, 300]);
    let len = rng.pick(&[20, 60, 150]);
    let cursors = rng.pick(&[1, 2, 3]);
    let fills = rng.below(3) == 0;
    let mut steps = vec![Step::Open(0), Step::Open(1), Step::Open(2)];
    for _ in 0..len {
        let key = rng.below(keys) as u32;
        let value = rng.below(values) as u32;
        let cursor = rng.below(cursors) as u8;
        let steps_before = steps.len();
        steps.push(match rng.below(100) {
            0..=13 => Step::Put(key, value, rng.pick(&HOWS)),
            14..=17 if fills => Step::Fill(key, value),
            14..=19 => Step::Del(key, (rng.below(3) > 0).then_some(value)),
            20..=22 => Step::Get(key),
            23 if rng.below(4) == 0 => Step::Clear,
            24..=25 => Step::Begin,
            26 => Step::Commit,
            27 => Step::Abort,
            28 => Step::CommitAll,
            29..=31 => Step::Open(cursor),
            32 => Step::Close(cursor),
            33..=44 => Step::CursorPut(cursor, key, value, rng.pick(&HOWS)),
            45..=46 => Step::PutMany(cursor, key, value, rng.below(5) as u8 + 1),
            47..=49 => Step::PutCurrent(cursor, value),
            50..=57 => Step::CursorDel(cursor, rng.below(4) == 0),
            58..=61 => Step::Count(cursor),
            62 => Step::Packed(cursor, key, rng.below(2) == 0),
            63 => Step::Reserve(key, value, rng.pick(&HOWS)),
            64..=65 => Step::Park(cursor),
            _ => Step::Go(cursor, rng.pick(&MOVES), key, value),
        });
        debug_assert_eq!(steps.len(), steps_before + 1);
    }
    steps.push(Step::CommitAll);
    Program { kind, layout, steps }
}

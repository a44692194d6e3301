//! A program's steps on Zubilo.

use std::path::Path;

use zubilo::{
    CursorId, Durability, Env, Error, KeyOrder, Options, PutFlags, TableId, TableOptions,
    WriteCursor, WriteTxn,
};

use crate::program::{How, Kind, Layout, Move, Order, Program, Step, Values};
use crate::{Answer, Engine};

const TABLE: &str = "table";

/// Zubilo with one table and a running write transaction.
pub struct Ours {
    env: Env,
    kind: Kind,
    options: TableOptions,
    txn: Option<WriteTxn>,
    table: Option<TableId>,
    depth: usize,
    /// Cursors with the nesting level in which they were opened.
    cursors: Vec<Option<(CursorId, usize)>>,
}

fn options(kind: &Kind, layout: Layout) -> TableOptions {
    let order = |order| match order {
        Order::Bytes => KeyOrder::Bytes,
        Order::Reversed => KeyOrder::Reversed,
        Order::Integer(_) => KeyOrder::Integer,
        Order::Backwards => KeyOrder::Custom,
    };
    let backwards = |a: &[u8], b: &[u8]| b.cmp(a);
    let mut options = match kind.keys {
        Order::Backwards => TableOptions::new().compare_keys(backwards),
        keys => TableOptions::new().key_order(order(keys)),
    };
    if layout.counted {
        options = options.counted();
    }
    match kind.values {
        Values::One => options.align_values(layout.align),
        Values::Many { order: Order::Backwards, fixed } => match fixed {
            Some(_) => options.compare_values(backwards).fixed_duplicates(),
            None => options.compare_values(backwards),
        },
        Values::Many { order: values, fixed: None } => options.value_order(order(values)),
        Values::Many { order: values, fixed: Some(_) } => {
            options.value_order(order(values)).fixed_duplicates()
        }
    }
}

type Pair<'t> = zubilo::Result<Option<(&'t [u8], &'t [u8])>>;

fn pair(found: Pair<'_>) -> Answer {
    match found {
        Ok(Some((key, value))) => Answer::Pair(key.to_vec(), value.to_vec()),
        Ok(None) => Answer::NotFound,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> Answer {
    match error {
        Error::Invalid(_) => Answer::Invalid,
        Error::Incompatible { .. } => Answer::Incompatible,
        other => Answer::Other(other.to_string()),
    }
}

fn done(result: zubilo::Result<bool>, otherwise: Answer) -> Answer {
    match result {
        Ok(true) => Answer::Done,
        Ok(false) => otherwise,
        Err(error) => failed(&error),
    }
}

fn flags(how: How) -> PutFlags {
    match how {
        How::Upsert => PutFlags::UPSERT,
        How::NoOverwrite => PutFlags::NO_OVERWRITE,
        How::NoDupData => PutFlags::NO_DUP_DATA,
        How::Append => PutFlags::APPEND,
        How::AppendDup => PutFlags::APPEND_DUP,
    }
}

impl Ours {
    /// A new store in a folder.
    pub fn create(dir: &Path, program: &Program) -> zubilo::Result<Ours> {
        let kind = program.kind;
        let table = self::options(&kind, program.layout);
        let options = Options::new().durability(Durability::NoSync).dirty_limit(1 << 20);
        let env = options.open(dir.join("zubilo"))?;
        let mut txn = env.write()?;
        txn.create_table(TABLE, table.clone())?;
        txn.commit()?;
        let cursors = vec![None; 3];
        let mut ours =
            Ours { env, kind, options: table, txn: None, table: None, depth: 0, cursors };
        ours.begin()?;
        Ok(ours)
    }

    fn begin(&mut self) -> zubilo::Result<()> {
        let mut txn = self.env.write()?;
        self.table = Some(txn.table_id_with(TABLE, &self.options)?);
        self.txn = Some(txn);
        self.depth = 0;
        self.cursors.fill(None);
        Ok(())
    }

    /// The first of some records that a counted table does not find by its number, or whose rank is
    /// another.
    pub fn miscounted(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Option<usize> {
        if !self.options.is_counted() {
            return None;
        }
        let (txn, table) = self.parts();
        let table = txn.at(table).expect("the table is open");
        (0..records.len()).step_by(records.len() / 7 + 1).find(|i| {
            let (key, value) = (&records[*i].0[..], &records[*i].1[..]);
            let found = table.nth(*i as u64).expect("it can be read");
            let rank = table.rank_of_pair(key, value).expect("it can be read");
            found != Some((key, value)) || rank != *i as u64
        })
    }

    /// Problems that the full check finds.
    pub fn check(&self) -> Vec<String> {
        match self.env.check(&mut |_, _| true) {
            Ok(report) => report.problems.iter().map(|p| format!("{p:?}")).collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    fn parts(&mut self) -> (&mut WriteTxn, TableId) {
        let txn = self.txn.as_mut().expect("a transaction runs");
        (txn, self.table.expect("the table is open"))
    }

    fn end_level(&mut self) {
        self.depth -= 1;
        for cursor in &mut self.cursors {
            if let Some((id, depth)) = *cursor
                && depth > self.depth
            {
                let txn = self.txn.as_mut().expect("a transaction runs");
                txn.close_cursor(id);
                *cursor = None;
            }
        }
    }

    fn end(&mut self, commit: bool) -> Answer {
        let txn = self.txn.take().expect("a transaction runs");
        let ended = if commit {
            txn.commit().map(drop)
        } else {
            txn.abort();
            Ok(())
        };
        match ended.and_then(|()| self.begin()) {
            Ok(()) => Answer::Done,
            Err(error) => failed(&error),
        }
    }

    fn with_cursor(
        &mut self,
        cursor: u8,
        act: impl FnOnce(&mut WriteCursor<'_>, &Kind) -> Answer,
    ) -> Answer {
        let Some((id, _)) = self.cursors[usize::from(cursor)] else { return Answer::Done };
        let kind = self.kind;
        match self.parts().0.cursor(id) {
            Ok(mut cursor) => act(&mut cursor, &kind),
            Err(error) => failed(&error),
        }
    }

    /// Whether a cursor stands on no record.
    pub fn is_nowhere(&mut self, cursor: u8) -> bool {
        let nowhere = |cursor: &mut WriteCursor<'_>, _: &Kind| match cursor.count() {
            Ok(Some(_)) => Answer::Done,
            _ => Answer::NotFound,
        };
        self.with_cursor(cursor, nowhere) == Answer::NotFound
    }

    /// The key under a cursor.
    pub fn key_under(&mut self, cursor: u8) -> Option<Vec<u8>> {
        let key = |cursor: &mut WriteCursor<'_>, _: &Kind| match cursor.key() {
            Ok(Some(key)) => Answer::Value(key.to_vec()),
            _ => Answer::NotFound,
        };
        match self.with_cursor(cursor, key) {
            Answer::Value(key) => Some(key),
            _ => None,
        }
    }

    fn put(&mut self, key: u32, value: u32, how: How) -> Answer {
        let (key, value) = (self.kind.key(key), self.kind.value(value));
        let (txn, table) = self.parts();
        let put =
            txn.at(table).and_then(|mut table| table.cursor_mut()?.put(key, value, flags(how)));
        done(put, Answer::Exists)
    }
}

impl Ours {
    /// Fills the place that a cursor of its own is given.
    fn reserve(&mut self, key: u32, value: u32, how: How) -> Answer {
        if self.kind.has_duplicates() {
            return Answer::Incompatible;
        }
        let (key, value) = (self.kind.key(key), self.kind.value(value));
        let (txn, table) = self.parts();
        let reserved = txn.at(table).and_then(|mut table| {
            let mut cursor = table.cursor_mut()?;
            let place = cursor.reserve(key, value.len(), flags(how))?;
            Ok(place.map(|place| place.copy_from_slice(&value)).is_some())
        });
        done(reserved, Answer::Exists)
    }

    /// Closes a cursor and opens another at its place.
    fn park(&mut self, cursor: u8) -> Answer {
        let Some((id, depth)) = self.cursors[usize::from(cursor)] else { return Answer::Done };
        if depth < self.depth {
            // The new one would go with the nested transaction, and the old one come back.
            return Answer::Done;
        }
        let (txn, table) = self.parts();
        let parked = txn.cursor(id).and_then(|mut cursor| cursor.park());
        txn.close_cursor(id);
        match parked.and_then(|parked| txn.resume_cursor(table, &parked)) {
            Ok(new) => {
                self.cursors[usize::from(cursor)] = Some((new, depth));
                Answer::Done
            }
            Err(error) => failed(&error),
        }
    }
}

fn go(cursor: &mut WriteCursor<'_>, way: Move, key: &[u8], value: &[u8]) -> Answer {
    let needs_place = matches!(way, Move::Current | Move::FirstDup | Move::LastDup);
    if needs_place && matches!(cursor.is_placed(), Ok(false)) {
        return Answer::Invalid;
    }
    pair(match way {
        Move::First => cursor.first(),
        Move::Last => cursor.last(),
        Move::Next => cursor.next(),
        Move::Prev => cursor.prev(),
        Move::FirstDup => cursor.first_value(),
        Move::LastDup => cursor.last_value(),
        Move::NextDup => cursor.next_value(),
        Move::PrevDup => cursor.prev_value(),
        Move::NextNoDup => cursor.next_key(),
        Move::PrevNoDup => cursor.prev_key(),
        Move::Current => cursor.current(),
        Move::Set => cursor.seek_exact(key),
        Move::SetRange => cursor.seek(key),
        Move::Both => cursor.seek_pair(key, value),
        Move::BothRange => cursor.seek_value(key, value),
    })
}

/// All values of a key, leaf by leaf.
fn packed(cursor: &mut WriteCursor<'_>, key: &[u8], back: bool) -> Answer {
    let mut all = Vec::new();
    match cursor.seek_exact(key) {
        Ok(Some(_)) => {}
        other => return pair(other),
    }
    if back && let Err(error) = cursor.last_value() {
        return failed(&error);
    }
    let mut next = cursor.packed_values();
    loop {
        match next {
            Ok(Some(values)) if back => {
                let values: Vec<_> = values.iter().map(<[u8]>::to_vec).collect();
                all.extend(values.into_iter().rev());
            }
            Ok(Some(values)) => all.extend(values.iter().map(<[u8]>::to_vec)),
            Ok(None) => return Answer::Many(all),
            Err(error) => return failed(&error),
        }
        next = if back { cursor.prev_packed_values() } else { cursor.next_packed_values() };
    }
}

impl Ours {
    /// The steps through cursors.
    fn cursor_step(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Open(cursor) => {
                if self.cursors[usize::from(cursor)].is_none() {
                    let (txn, table) = self.parts();
                    match txn.open_cursor(table) {
                        Ok(id) => self.cursors[usize::from(cursor)] = Some((id, self.depth)),
                        Err(error) => return failed(&error),
                    }
                }
                Answer::Done
            }
            Step::Park(cursor) => self.park(cursor),
            Step::Close(cursor) => {
                if let Some((id, _)) = self.cursors[usize::from(cursor)].take() {
                    self.parts().0.close_cursor(id);
                }
                Answer::Done
            }
            Step::Go(cursor, way, key, value) => self.with_cursor(cursor, |cursor, kind| {
                go(cursor, way, &kind.key(key), &kind.value(value))
            }),
            Step::CursorPut(cursor, key, value, how) => self.with_cursor(cursor, |cursor, kind| {
                done(cursor.put(kind.key(key), kind.value(value), flags(how)), Answer::Exists)
            }),
            Step::PutMany(cursor, key, value, count) => self.with_cursor(cursor, |cursor, kind| {
                let Some(size) = kind.fixed() else { return Answer::Incompatible };
                let range = value..value + u32::from(count);
                let values: Vec<u8> = range.flat_map(|n| kind.value(n)).collect();
                match cursor.put_many(kind.key(key), &values, size.into(), PutFlags::UPSERT) {
                    Ok(count) => Answer::Count(count as u64),
                    Err(error) => failed(&error),
                }
            }),
            Step::PutCurrent(cursor, value) => self.with_cursor(cursor, |cursor, kind| {
                if !matches!(cursor.current(), Ok(Some(_)))
                    && matches!(cursor.is_placed(), Ok(true))
                {
                    return Answer::NotFound;
                }
                done(cursor.put_current(kind.value(value)).map(|()| true), Answer::Done)
            }),
            Step::CursorDel(cursor, all) => self.with_cursor(cursor, |cursor, _| {
                done(if all { cursor.delete_key() } else { cursor.delete() }, Answer::NotFound)
            }),
            Step::Count(cursor) => self.with_cursor(cursor, |cursor, _| match cursor.count() {
                Ok(Some(count)) => Answer::Count(count),
                Ok(None) if matches!(cursor.is_placed(), Ok(false)) => Answer::Invalid,
                Ok(None) => Answer::NotFound,
                Err(error) => failed(&error),
            }),
            Step::Packed(cursor, key, back) => self.with_cursor(cursor, |cursor, kind| {
                if kind.fixed().is_none() {
                    return Answer::Incompatible;
                }
                packed(cursor, &kind.key(key), back)
            }),
            _ => Answer::Done,
        }
    }
}

impl Engine for Ours {
    fn step(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Put(key, value, how) => self.put(key, value, how),
            Step::Reserve(key, value, how) => self.reserve(key, value, how),
            Step::Fill(key, value) => {
                let all = (value..value + 150).map(|value| self.put(key, value, How::Upsert));
                all.fold(Answer::Done, |all, one| if one == Answer::Done { all } else { one })
            }
            Step::Del(key, value) => {
                let kind = self.kind;
                let (txn, table) = self.parts();
                let deleted = txn.at(table).and_then(|mut table| match value {
                    Some(value) if kind.has_duplicates() => {
                        table.delete_value(kind.key(key), kind.value(value))
                    }
                    _ => table.delete(kind.key(key)),
                });
                done(deleted, Answer::NotFound)
            }
            Step::Get(key) => {
                let key = self.kind.key(key);
                let (txn, table) = self.parts();
                match txn.at(table).and_then(|t| Ok(t.get(key)?.map(<[u8]>::to_vec))) {
                    Ok(Some(value)) => Answer::Value(value),
                    Ok(None) => Answer::NotFound,
                    Err(error) => failed(&error),
                }
            }
            Step::Clear => {
                let (txn, table) = self.parts();
                done(txn.at(table).and_then(|mut t| t.clear()).map(|()| true), Answer::Done)
            }
            Step::Begin => {
                self.depth += 1;
                done(self.parts().0.begin_nested().map(|()| true), Answer::Done)
            }
            Step::Commit | Step::Abort if self.depth > 0 => {
                let (txn, _) = self.parts();
                let ended = match *step == Step::Commit {
                    true => txn.commit_nested(),
                    false => txn.abort_nested(),
                };
                self.end_level();
                done(ended.map(|()| true), Answer::Done)
            }
            Step::Commit | Step::CommitAll => self.end(true),
            Step::Abort => self.end(false),
            _ => self.cursor_step(step),
        }
    }

    fn records(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (txn, table) = self.parts();
        let table = txn.at(table).expect("the table is open");
        table.iter().map(|r| r.expect("a record")).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
    }

    fn entries(&mut self) -> u64 {
        let (txn, table) = self.parts();
        txn.at(table).expect("the table is open").len()
    }
}

//! The changes of a transaction, made in the store and in the model.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use zubilo::{Error, WriteTable, WriteTxn};

use crate::model::{Kind, State, Table, Values};
use crate::plan::Shape;
use support::Rng;

fn value(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    let large = shape.large_one_in > 0 && rng.one_in(shape.large_one_in);
    let len = if large { rng.below(shape.large) } else { rng.below(shape.value) };
    let mut value = Vec::with_capacity(len as usize + 8);
    while value.len() < len as usize {
        value.extend_from_slice(&rng.next().to_le_bytes());
    }
    value.truncate(len as usize);
    value
}

fn key(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    format!("key-{:06}", rng.below(shape.keys)).into_bytes()
}

fn table_name(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    format!("table-{}", rng.below(shape.tables)).into_bytes()
}

/// Makes changes in a transaction and in the model.
pub(super) fn change(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    depth: u32,
) -> zubilo::Result<()> {
    // Mostly few changes, sometimes all that the shape allows.
    let most = if rng.one_in(3) { shape.changes } else { 1 + shape.changes / 3 };
    for _ in 0..1 + rng.below(most) {
        let name = table_name(rng, shape);
        if shape.tables_one_in > 0 && rng.one_in(shape.tables_one_in) {
            change_tables(txn, state, rng, shape, name)?;
        } else if shape.nested_one_in > 0 && depth < 3 && rng.one_in(shape.nested_one_in) {
            nested(txn, state, rng, shape, depth)?;
        } else {
            change_record(txn, state, rng, shape, name)?;
        }
    }
    Ok(())
}

fn nested(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    depth: u32,
) -> zubilo::Result<()> {
    let keep = rng.one_in(2);
    let mut inner = state.clone();
    let few = Shape { changes: shape.changes.min(40), ..*shape };
    let done = txn.nested(|txn| {
        change(txn, &mut inner, rng, &few, depth + 1)?;
        if keep { Ok(()) } else { Err(Error::Stopped) }
    });
    match done {
        Ok(()) => *state = inner,
        Err(Error::Stopped) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn change_tables(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    name: Vec<u8>,
) -> zubilo::Result<()> {
    if let Entry::Vacant(place) = state.entry(name.clone()) {
        let kind = kind(rng, shape);
        txn.create_table(&name, kind.options())?;
        place.insert(Arc::new(Table::new(kind)));
        return Ok(());
    }
    match rng.below(3) {
        0 => {
            txn.drop_table(&name)?;
            state.remove(&name);
        }
        1 => {
            let to = table_name(rng, shape);
            if !state.contains_key(&to) {
                txn.rename_table(&name, &to)?;
                let table = state.remove(&name).unwrap_or_default();
                state.insert(to, table);
            }
        }
        _ => {
            txn.table(&name)?.clear()?;
            let kind = state.get(&name).map(|table| table.kind).unwrap_or_default();
            state.insert(name, Arc::new(Table::new(kind)));
        }
    }
    Ok(())
}

fn kind(rng: &mut Rng, shape: &Shape) -> Kind {
    if shape.many_one_in == 0 || !rng.one_in(shape.many_one_in) {
        return Kind::default();
    }
    let values = match rng.below(5) {
        0 => Values::One,
        1 | 2 => Values::Many,
        _ => Values::Fixed,
    };
    Kind { values, reversed: rng.one_in(2) }
}

fn change_record(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    name: Vec<u8>,
) -> zubilo::Result<()> {
    let mut table = match state.get(&name) {
        Some(_) => txn.table(&name)?,
        None => {
            let kind = kind(rng, shape);
            state.insert(name.clone(), Arc::new(Table::new(kind)));
            txn.create_table(&name, kind.options())?
        }
    };
    let model = Arc::make_mut(state.entry(name).or_default());
    let key = key(rng, shape);
    if shape.ranges_one_in > 0 && rng.one_in(shape.ranges_one_in) {
        let mut to = key.clone();
        to.extend_from_slice(b"~");
        to[8] = b'9';
        table.delete_range(key.as_slice()..to.as_slice())?;
        model.delete_range(&key, &to);
        return Ok(());
    }
    let delete = rng.one_in(4);
    if model.kind.values != Values::One {
        return change_values(&mut table, model, rng, shape, &key, delete);
    }
    if delete {
        table.delete(&key)?;
        model.delete(&key);
    } else {
        let value = value(rng, shape);
        table.put(&key, &value)?;
        model.put(&key, value);
    }
    Ok(())
}

/// One of many values, mostly; sometimes a burst, which makes of a small set a tree.
fn change_values(
    table: &mut WriteTable<'_>,
    model: &mut Table,
    rng: &mut Rng,
    shape: &Shape,
    key: &[u8],
    delete: bool,
) -> zubilo::Result<()> {
    if delete && rng.one_in(4) {
        table.delete(key)?;
        model.delete(key);
        return Ok(());
    }
    for _ in 0..if rng.one_in(6) { 1 + rng.below(shape.burst) } else { 1 } {
        if delete {
            let Some(value) = model.value(key, rng.next()) else { break };
            table.delete_value(key, &value)?;
            model.delete_value(key, &value);
        } else {
            let number = rng.below(100_000).to_le_bytes();
            let mut value = number.to_vec();
            if model.kind.values == Values::Many {
                value.extend(std::iter::repeat_n(number[0], rng.below(shape.value) as usize));
            }
            table.insert_value(key, &value)?;
            model.put(key, value);
        }
    }
    Ok(())
}

//! The changes of a transaction, made in the store and in the model.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use zubilo::{Error, WriteTxn};

use crate::model::State;
use crate::plan::Shape;
use crate::rng::Rng;

fn value(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    let large = shape.large_one_in > 0 && rng.one_in(shape.large_one_in);
    let len = if large { rng.below(shape.large) } else { rng.below(shape.value) };
    let mut value = Vec::with_capacity(len as usize + 8);
    while value.len() < len as usize {
        value.extend_from_slice(&rng.number().to_le_bytes());
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
        txn.create_table(&name, zubilo::TableOptions::new())?;
        place.insert(Arc::default());
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
            state.insert(name, Arc::default());
        }
    }
    Ok(())
}

fn change_record(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    name: Vec<u8>,
) -> zubilo::Result<()> {
    let mut table = txn.table_or_create(&name)?;
    let model = Arc::make_mut(state.entry(name).or_default());
    let key = key(rng, shape);
    if shape.ranges_one_in > 0 && rng.one_in(shape.ranges_one_in) {
        let mut to = key.clone();
        to.extend_from_slice(b"~");
        to[8] = b'9';
        table.delete_range(key.as_slice()..to.as_slice())?;
        model.retain(|k, _| *k < key || *k >= to);
    } else if rng.one_in(4) {
        table.delete(&key)?;
        model.remove(&key);
    } else {
        let value = value(rng, shape);
        table.put(&key, &value)?;
        model.insert(key, value.into());
    }
    Ok(())
}

//! How tables are opened: their options, and the types that the store notes for them in the table
//! `zubilo.types`, as the crate `zubilo-typed` does.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zubilo::{Error, ReadTable, ReadTxn, TableId, TableOptions, WriteTxn};

use crate::codec::{ArrayKind, Kind, wrong_type};
use crate::errors::{OrRaise, from_engine, raise};

/// The table in which types are noted.
const TYPES: &str = "zubilo.types";

/// Types of a table's keys and values.
pub(crate) struct Schema {
    pub(crate) key: Kind,
    pub(crate) value: Kind,
}

impl Schema {
    const BYTES: Schema = Schema { key: Kind::Bytes, value: Kind::Bytes };
}

/// What a program says about a table that it opens; what it does not say is as it is stored.
#[derive(Default)]
pub(crate) struct Want {
    pub(crate) key: Option<Kind>,
    pub(crate) value: Option<Kind>,
    pub(crate) version: Option<String>,
    pub(crate) raw: bool,
    pub(crate) create: bool,
    pub(crate) adopt: bool,
    pub(crate) duplicates: Option<bool>,
    pub(crate) counted: Option<bool>,
    pub(crate) integer_keys: Option<bool>,
    pub(crate) fixed_values: Option<bool>,
    pub(crate) align: Option<u8>,
}

/// A table's name as bytes.
pub(crate) fn name_of(name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(name) = name.cast::<PyString>() {
        return Ok(name.to_str()?.as_bytes().to_vec());
    }
    match name.cast::<PyBytes>() {
        Ok(name) => Ok(name.as_bytes().to_vec()),
        Err(_) => Err(wrong_type("the name of a table, as str or bytes,", name)),
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl Want {
    /// The types, where the program named any.
    fn is_typed(&self) -> bool {
        self.key.is_some() || self.value.is_some()
    }

    pub(crate) fn check(&self, name: &[u8]) -> PyResult<()> {
        if self.is_typed() && name == TYPES.as_bytes() {
            return Err(raise(
                "InvalidError",
                "the name is that of the table of types; choose another",
            ));
        }
        let duplicates = self.duplicates == Some(true) || self.fixed_values == Some(true);
        if duplicates && self.align.is_some_and(|align| align != 1) {
            return Err(raise("InvalidError", "many values under a key cannot be aligned"));
        }
        if let Some(key) = self.key.as_ref().filter(|key| !key.is_key()) {
            return Err(raise(
                "TypesError",
                format!("{} cannot be a key: it has no order", key.tag()),
            ));
        }
        if self.raw && self.is_typed() {
            return Err(raise("InvalidError", "raw=True is for bytes, without types"));
        }
        if self.is_typed() && (self.integer_keys.is_some() || self.align.is_some()) {
            let text = "integer_keys and align are for tables of bytes; a table's types say as much: \
                        'native-u64', zubilo.array";
            return Err(raise("InvalidError", text));
        }
        let unordered = self.value.as_ref().filter(|value| !value.is_key());
        if let Some(value) = unordered.filter(|_| duplicates) {
            let text = format!("many values under a key sort, and {} has no order", value.tag());
            return Err(raise("TypesError", text));
        }
        Ok(())
    }

    fn key_kind(&self) -> &Kind {
        self.key.as_ref().unwrap_or(&Kind::Bytes)
    }

    fn value_kind(&self) -> &Kind {
        self.value.as_ref().unwrap_or(&Kind::Bytes)
    }

    /// The types as they are noted, without and with the version.
    fn note(&self, duplicates: bool) -> (String, String) {
        let kind = if duplicates { "multimap" } else { "table" };
        let types = format!("{kind}<{}, {}>", self.key_kind().tag(), self.value_kind().tag());
        let version = [self.value_kind().version(), self.version.as_deref().unwrap_or("")];
        let version: Vec<&str> = version.into_iter().filter(|part| !part.is_empty()).collect();
        let whole = [types.as_str(), &version.join(" ")].join(" ").trim_end().to_string();
        (types, whole)
    }

    /// The types of a table that is there.
    fn schema(
        &mut self,
        py: Python<'_>,
        name: &[u8],
        duplicates: bool,
        noted: Option<&str>,
    ) -> PyResult<Schema> {
        if !self.is_typed() {
            return match noted.filter(|_| !self.raw) {
                None => Ok(Schema::BYTES),
                Some(noted) => schema_of_note(py, name, noted),
            };
        }
        let (types, whole) = self.note(duplicates);
        let is_bytes = self.key_kind().is_bytes() && self.value_kind().is_bytes();
        let fits = match noted {
            // What arrays are of, programs in Rust need not note.
            Some(noted) => {
                noted == whole
                    || (noted == types
                        && self.version.is_none()
                        && self.value_kind().array().is_some())
            }
            // Made as bytes, and read as bytes.
            None => self.adopt || is_bytes,
        };
        if fits {
            return Ok(Schema {
                key: self.key.take().unwrap_or(Kind::Bytes),
                value: self.value.take().unwrap_or(Kind::Bytes),
            });
        }
        let name = shown(name);
        Err(raise(
            "TypesError",
            match noted {
                Some(noted) => format!(
                    "the table {name:?} holds {noted}, not {whole}; open it with these types"
                ),
                None => format!(
                    "the table {name:?} was made without types; open it as bytes, or, if its records are \
                 {whole}, once for writing with adopt=True"
                ),
            },
        ))
    }

    /// The options of a new table.
    fn options(&self) -> TableOptions {
        let mut options = TableOptions::new();
        let duplicates = self.duplicates == Some(true) || self.fixed_values == Some(true);
        if self.counted == Some(true) {
            options = options.counted();
        }
        let integer_keys = self.integer_keys == Some(true);
        let order = if integer_keys { zubilo::KeyOrder::Integer } else { self.key_kind().order() };
        options = options.key_order(order);
        if !duplicates {
            return options.align_values(self.align.unwrap_or_else(|| self.value_kind().align()));
        }
        options = options.duplicates();
        let is_packed = self.value_kind().width().is_some_and(|width| width > 0);
        if self.fixed_values == Some(true) || (self.is_typed() && is_packed) {
            options = options.fixed_duplicates();
        }
        match self.value_kind().order() {
            zubilo::KeyOrder::Bytes => options,
            order => options.value_order(order),
        }
    }

    /// Refuses a table with other options than those that were named.
    fn compare(&self, name: &[u8], stored: &TableOptions) -> PyResult<()> {
        let integer = stored.keys() == zubilo::KeyOrder::Integer;
        let named = [
            ("duplicates", self.duplicates, stored.has_duplicates()),
            ("counted", self.counted, stored.is_counted()),
            ("integer_keys", self.integer_keys, integer),
            ("fixed_values", self.fixed_values, stored.has_fixed_values()),
            ("align", self.align.map(|align| align == stored.alignment()), true),
        ];
        for (option, wanted, is) in named {
            if wanted.is_some_and(|wanted| wanted != is) {
                let text = format!("the table {:?} was made with another {option}", shown(name));
                return Err(raise("IncompatibleError", text));
            }
        }
        // What the types need of the table, where it was made by others.
        let misfit = (self.key.as_ref().is_some_and(|key| key.order() != stored.keys()))
            || self.value.as_ref().is_some_and(|value| {
                !stored.has_duplicates() && value.align() > stored.alignment()
            });
        if misfit && self.adopt {
            let text = format!(
                "the table {:?} has not the order or alignment that the types need",
                shown(name)
            );
            return Err(raise("IncompatibleError", text));
        }
        Ok(())
    }
}

/// The types that a note tells, if Python has them.
fn schema_of_note(py: Python<'_>, name: &[u8], noted: &str) -> PyResult<Schema> {
    if let Some(schema) = parse_note(py, noted)? {
        if matches!(schema.value, Kind::Pickle) {
            let text = format!(
                "the table {:?} holds pickles, and reading one can run any code: say value='pickle' if you \
                 trust the store",
                shown(name)
            );
            return Err(raise("TypesError", text));
        }
        return Ok(schema);
    }
    let text = format!(
        "the table {:?} holds {noted}, which Python does not know; raw=True opens it as bytes",
        shown(name)
    );
    Err(raise("TypesError", text))
}

fn parse_note(py: Python<'_>, noted: &str) -> PyResult<Option<Schema>> {
    let types = noted.strip_prefix("table<").or_else(|| noted.strip_prefix("multimap<"));
    let Some((key, rest)) = types.and_then(Kind::from_tag) else { return Ok(None) };
    let Some(rest) = rest.strip_prefix(", ") else { return Ok(None) };
    if let Some((value, rest)) = Kind::from_tag(rest) {
        return Ok((rest == ">" || rest.starts_with("> ")).then_some(Schema { key, value }));
    }
    // Arrays: the version tells of what.
    let Some((_, text)) = rest.split_once(">> ").filter(|_| rest.starts_with("aligned<[")) else {
        return Ok(None);
    };
    let helper = py.import(intern!(py, "zubilo._types"))?;
    let spec = helper.call_method1(intern!(py, "array_of_text"), (text,))?;
    if spec.is_none() {
        return Ok(None);
    }
    let array = Kind::Array(ArrayKind::from_spec(&spec)?);
    Ok(rest.starts_with(&array.tag()).then_some(Schema { key, value: array }))
}

fn as_text(noted: &[u8]) -> String {
    String::from_utf8_lossy(noted).into_owned()
}

/// Opens a table to read.
pub(crate) fn open_read<'t>(
    py: Python<'_>,
    txn: &'t ReadTxn,
    name: &[u8],
    want: &mut Want,
) -> PyResult<(ReadTable<'t>, Schema)> {
    let table = txn.table(name).map_err(|error| named(error, name))?;
    let stored = table.options();
    want.compare(name, &stored)?;
    let noted = match txn.table(TYPES) {
        Ok(types) => types.get(name).or_raise()?.map(as_text),
        Err(Error::NoSuchTable { .. }) => None,
        Err(error) => return Err(from_engine(error)),
    };
    let schema = want.schema(py, name, stored.has_duplicates(), noted.as_deref())?;
    Ok((table, schema))
}

/// An error that names the table.
fn named(error: Error, name: &[u8]) -> PyErr {
    match error {
        Error::NoSuchTable { .. } => {
            raise("NoSuchTableError", format!("there is no table {:?}", shown(name)))
        }
        error => from_engine(error),
    }
}

/// What the store notes about a table, in a write transaction.
fn noted(txn: &mut WriteTxn, name: &[u8]) -> zubilo::Result<Option<String>> {
    match txn.table(TYPES) {
        Ok(types) => Ok(types.get(name)?.map(as_text)),
        Err(Error::NoSuchTable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is known of a table before it is opened to write: its options, and the note.
pub(crate) type Known = Option<(TableOptions, Option<String>)>;

/// The first step of opening a table to write, inside the transaction.
pub(crate) fn look_up(txn: &mut WriteTxn, name: &[u8]) -> zubilo::Result<Known> {
    match txn.table_options(name) {
        Ok(options) => Ok(Some((options, noted(txn, name)?))),
        Err(Error::NoSuchTable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The second step, in which Python may have to run: which types it has.
pub(crate) fn resolve(
    py: Python<'_>,
    name: &[u8],
    known: &Known,
    want: &mut Want,
) -> PyResult<Plan> {
    let Some((options, noted)) = known else {
        if !want.create {
            return Err(named(Error::NoSuchTable { table: Some(name.into()) }, name));
        }
        let options = want.options();
        let note = want.is_typed().then(|| want.note(options.has_duplicates()).1);
        let schema = Schema {
            key: want.key.take().unwrap_or(Kind::Bytes),
            value: want.value.take().unwrap_or(Kind::Bytes),
        };
        return Ok(Plan { create: Some(options), note, schema });
    };
    want.compare(name, options)?;
    let (_, whole) = want.note(options.has_duplicates());
    let note = (want.adopt && want.is_typed() && noted.is_none()).then_some(whole);
    let schema = want.schema(py, name, options.has_duplicates(), noted.as_deref())?;
    Ok(Plan { create: None, note, schema })
}

/// What the third step does.
pub(crate) struct Plan {
    create: Option<TableOptions>,
    note: Option<String>,
    pub(crate) schema: Schema,
}

impl Plan {
    /// Whether it changes the store.
    pub(crate) fn run(&self, txn: &mut WriteTxn, name: &[u8]) -> zubilo::Result<TableId> {
        if self.create.is_some() || self.note.is_some() {
            // All or nothing: a table without its types could not be opened again.
            txn.nested(|txn| -> zubilo::Result<()> {
                if let Some(note) = &self.note {
                    txn.table_or_create(TYPES)?.put(name, note)?;
                }
                if let Some(options) = &self.create {
                    txn.create_table(name, options.clone())?;
                }
                Ok(())
            })?;
        }
        txn.table_id(name)
    }
}

/// Removes a table and what is noted about it.
pub(crate) fn drop_table(txn: &mut WriteTxn, name: &[u8]) -> zubilo::Result<()> {
    txn.nested(|txn| {
        txn.drop_table(name)?;
        forget_note(txn, name)
    })
}

fn forget_note(txn: &mut WriteTxn, name: &[u8]) -> zubilo::Result<()> {
    match txn.table(TYPES) {
        Ok(mut types) => types.delete(name).map(drop),
        Err(Error::NoSuchTable { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives a table another name, and its note too.
pub(crate) fn rename_table(txn: &mut WriteTxn, from: &[u8], to: &[u8]) -> zubilo::Result<()> {
    txn.nested(|txn| {
        let note = noted(txn, from)?;
        txn.rename_table(from, to)?;
        forget_note(txn, from)?;
        match note {
            Some(note) => txn.table_or_create(TYPES)?.put(to, note),
            None => forget_note(txn, to),
        }
    })
}

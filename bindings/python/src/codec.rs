//! Types of keys and values: what a Python object becomes as bytes, and back. The encodings and their
//! names are those of the crate `zubilo-typed`, so stores are shared with programs in Rust; a test
//! there and one here hold the same bytes. Arrays, JSON and pickles are values only.

use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};
use zubilo::KeyOrder;

use crate::buffer::bytes_like;
use crate::errors::raise;
use crate::memory;

/// How deep tuples nest at most: types are walked by recursion, and a damaged store may say anything.
const DEPTH: usize = 16;

/// A type of keys or values.
#[derive(Debug)]
pub(crate) enum Kind {
    Bytes,
    Str,
    Bool,
    Unsigned(u8),
    Signed(u8),
    F32,
    F64,
    /// Little-endian, sorted by the engine as numbers (`INTEGERKEY`); 4 or 8 bytes.
    Native(u8),
    Tuple(Vec<Kind>),
    Json,
    Pickle,
    Array(ArrayKind),
}

/// Arrays of one element type, of one shape or of one dimension and any length.
#[derive(Debug)]
pub(crate) struct ArrayKind {
    dtype: Py<PyAny>,
    shape: Option<Vec<usize>>,
    size: usize,
    align: usize,
    text: String,
}

fn decode_error(what: &str) -> PyErr {
    raise("DecodeError", format!("stored bytes are no {what}; was the table changed as bytes?"))
}

fn no_kind(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} is no type of keys or values: use bytes, str, int, float, bool, a name such as 'u32', a \
         tuple of these; for values also 'json', 'pickle', or zubilo.array(dtype, shape)"
    ))
}

impl Kind {
    /// From what a program says: a Python type, a name, a tuple of these, an array's description.
    pub(crate) fn from_spec(spec: &Bound<'_, PyAny>) -> PyResult<Kind> {
        Kind::from_spec_at(spec, 0)
    }

    fn from_spec_at(spec: &Bound<'_, PyAny>, depth: usize) -> PyResult<Kind> {
        if let Ok(ty) = spec.cast::<PyType>() {
            let py = spec.py();
            let known = [
                (py.get_type::<PyBytes>(), Kind::Bytes),
                (py.get_type::<PyString>(), Kind::Str),
                (py.get_type::<PyInt>(), Kind::Signed(8)),
                (py.get_type::<PyFloat>(), Kind::F64),
                (py.get_type::<PyBool>(), Kind::Bool),
            ];
            if let Some((_, kind)) = known.into_iter().find(|(known, _)| known.is(ty)) {
                return Ok(kind);
            }
        } else if let Ok(name) = spec.cast::<PyString>() {
            let name = name.to_str()?;
            return Kind::from_name(name).ok_or_else(|| no_kind(&format!("{name:?}")));
        } else if let Ok(parts) = spec.cast::<PyTuple>() {
            if depth == DEPTH {
                return Err(PyTypeError::new_err(format!("tuples nest {DEPTH} deep at most")));
            }
            let part = |part: Bound<'_, PyAny>| Kind::from_spec_at(&part, depth + 1);
            return Kind::of_parts(parts.iter().map(part).collect::<PyResult<_>>()?);
        } else if spec.hasattr(intern!(spec.py(), "dtype"))?
            && spec.hasattr(intern!(spec.py(), "shape"))?
        {
            return ArrayKind::from_spec(spec).map(Kind::Array);
        }
        Err(no_kind(&spec.repr()?.to_string_lossy()))
    }

    fn of_parts(parts: Vec<Kind>) -> PyResult<Kind> {
        if !(2..=6).contains(&parts.len()) {
            return Err(PyTypeError::new_err("a tuple of keys has 2 to 6 parts"));
        }
        for part in &parts {
            if !part.is_byte_ordered() {
                return Err(PyTypeError::new_err(format!(
                    "{} cannot be a part of a key",
                    part.tag()
                )));
            }
        }
        Ok(Kind::Tuple(parts))
    }

    fn from_name(name: &str) -> Option<Kind> {
        Some(match name {
            "bytes" => Kind::Bytes,
            "str" => Kind::Str,
            "bool" => Kind::Bool,
            "int" => Kind::Signed(8),
            "float" | "f64" => Kind::F64,
            "f32" => Kind::F32,
            "u8" => Kind::Unsigned(1),
            "u16" => Kind::Unsigned(2),
            "u32" => Kind::Unsigned(4),
            "u64" => Kind::Unsigned(8),
            "i8" => Kind::Signed(1),
            "i16" => Kind::Signed(2),
            "i32" => Kind::Signed(4),
            "i64" => Kind::Signed(8),
            "native-u32" => Kind::Native(4),
            "native-u64" => Kind::Native(8),
            "json" => Kind::Json,
            "pickle" => Kind::Pickle,
            _ => return None,
        })
    }

    /// From the name as a store notes it, which may go on with more; none for types of other
    /// languages.
    pub(crate) fn from_tag(tag: &str) -> Option<(Kind, &str)> {
        Kind::from_tag_at(tag, 0)
    }

    fn from_tag_at(tag: &str, depth: usize) -> Option<(Kind, &str)> {
        if let Some(mut rest) = tag.strip_prefix('(') {
            if depth == DEPTH {
                return None;
            }
            let mut parts = Vec::new();
            loop {
                let (part, after) = Kind::from_tag_at(rest, depth + 1)?;
                parts.push(part);
                match (after.strip_prefix(','), after.strip_prefix(')')) {
                    (Some(after), _) => rest = after,
                    (_, Some(after)) => return Some((Kind::of_parts(parts).ok()?, after)),
                    _ => return None,
                }
            }
        }
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len());
        let (name, rest) = tag.split_at(end);
        // Python's names for them are not the store's.
        let kind = Kind::from_name(name).filter(|_| name != "int" && name != "float")?;
        Some((kind, rest))
    }

    /// The name as a store notes it.
    pub(crate) fn tag(&self) -> String {
        match self {
            Kind::Bytes => "bytes".into(),
            Kind::Str => "str".into(),
            Kind::Bool => "bool".into(),
            Kind::Unsigned(width) => format!("u{}", width * 8),
            Kind::Signed(width) => format!("i{}", width * 8),
            Kind::F32 => "f32".into(),
            Kind::F64 => "f64".into(),
            Kind::Native(width) => format!("native-u{}", width * 8),
            Kind::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Kind::tag).collect();
                format!("({})", parts.join(","))
            }
            Kind::Json => "json".into(),
            Kind::Pickle => "pickle".into(),
            Kind::Array(array) => {
                let order = if cfg!(target_endian = "little") { "le" } else { "be" };
                format!("aligned<[{}/{}] {order}>", array.size, array.align)
            }
        }
    }

    /// What is noted beside the types: element type and shape of arrays.
    pub(crate) fn version(&self) -> &str {
        match self {
            Kind::Array(array) => &array.text,
            _ => "",
        }
    }

    pub(crate) fn order(&self) -> KeyOrder {
        match self {
            Kind::Native(_) => KeyOrder::Integer,
            _ => KeyOrder::Bytes,
        }
    }

    pub(crate) fn align(&self) -> u8 {
        match self {
            Kind::Array(array) => array.align as u8,
            _ => 1,
        }
    }

    pub(crate) fn width(&self) -> Option<usize> {
        Some(match self {
            Kind::Bool => 1,
            Kind::Unsigned(width) | Kind::Signed(width) | Kind::Native(width) => {
                usize::from(*width)
            }
            Kind::F32 => 4,
            Kind::F64 => 8,
            Kind::Tuple(parts) => parts.iter().map(Kind::width).sum::<Option<usize>>()?,
            Kind::Bytes | Kind::Str | Kind::Json | Kind::Pickle | Kind::Array(_) => return None,
        })
    }

    /// Whether it can be a part of a tuple.
    fn is_byte_ordered(&self) -> bool {
        self.is_key() && !matches!(self, Kind::Native(_))
    }

    /// Whether its encodings have the order of the values.
    pub(crate) fn is_key(&self) -> bool {
        !matches!(self, Kind::Json | Kind::Pickle | Kind::Array(_))
    }

    pub(crate) fn is_bytes(&self) -> bool {
        matches!(self, Kind::Bytes)
    }

    /// Appends the encoding of an object.
    pub(crate) fn encode(&self, object: &Bound<'_, PyAny>, into: &mut Vec<u8>) -> PyResult<()> {
        match self {
            Kind::Bytes => memory::append(into, &bytes_like(object)?)?,
            Kind::Str => memory::append(into, text(object)?.to_str()?.as_bytes())?,
            Kind::Tuple(parts) => {
                let values = tuple(object, parts.len())?;
                let (last, front) = parts.split_last().ok_or_else(|| no_kind("()"))?;
                for (i, part) in front.iter().enumerate() {
                    part.encode_part(&values.get_item(i)?, into)?;
                }
                last.encode(&values.get_item(front.len())?, into)?;
            }
            Kind::Native(4) => into.extend_from_slice(&object.extract::<u32>()?.to_le_bytes()),
            Kind::Native(_) => into.extend_from_slice(&object.extract::<u64>()?.to_le_bytes()),
            Kind::Json => {
                let json = object.py().import(intern!(object.py(), "zubilo._types"))?;
                let text = json.call_method1(intern!(object.py(), "to_json"), (object,))?;
                memory::append(into, text.cast::<PyString>()?.to_str()?.as_bytes())?;
            }
            Kind::Pickle => {
                let pickle = object.py().import(intern!(object.py(), "pickle"))?;
                let bytes = pickle.call_method1(intern!(object.py(), "dumps"), (object, 5))?;
                memory::append(into, bytes.cast::<PyBytes>()?.as_bytes())?;
            }
            Kind::Array(array) => array.encode(object, into)?,
            fixed => fixed.encode_number(object, into)?,
        }
        Ok(())
    }

    fn encode_number(&self, object: &Bound<'_, PyAny>, into: &mut Vec<u8>) -> PyResult<()> {
        match self {
            Kind::Bool => into.push(u8::from(object.cast::<PyBool>()?.is_true())),
            Kind::Unsigned(1) => into.push(object.extract()?),
            Kind::Unsigned(2) => into.extend_from_slice(&object.extract::<u16>()?.to_be_bytes()),
            Kind::Unsigned(4) => into.extend_from_slice(&object.extract::<u32>()?.to_be_bytes()),
            Kind::Unsigned(_) => into.extend_from_slice(&object.extract::<u64>()?.to_be_bytes()),
            Kind::Signed(1) => into.push(object.extract::<i8>()? as u8 ^ 0x80),
            Kind::Signed(2) => {
                into.extend_from_slice(&(object.extract::<i16>()? ^ i16::MIN).to_be_bytes());
            }
            Kind::Signed(4) => {
                into.extend_from_slice(&(object.extract::<i32>()? ^ i32::MIN).to_be_bytes());
            }
            Kind::Signed(_) => {
                into.extend_from_slice(&(object.extract::<i64>()? ^ i64::MIN).to_be_bytes());
            }
            Kind::F32 => {
                let bits = object.extract::<f32>()?.to_bits();
                let turned = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
                into.extend_from_slice(&turned.to_be_bytes());
            }
            _ => {
                let bits = object.extract::<f64>()?.to_bits();
                let turned = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
                into.extend_from_slice(&turned.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Appends an encoding that tells its own end.
    fn encode_part(&self, object: &Bound<'_, PyAny>, into: &mut Vec<u8>) -> PyResult<()> {
        match self {
            Kind::Bytes => escape(&bytes_like(object)?, into),
            Kind::Str => escape(text(object)?.to_str()?.as_bytes(), into),
            Kind::Tuple(parts) => {
                let values = tuple(object, parts.len())?;
                for (part, value) in parts.iter().zip(values.iter()) {
                    part.encode_part(&value, into)?;
                }
            }
            fixed => fixed.encode(object, into)?,
        }
        Ok(())
    }

    /// The bytes with which the keys begin that `prefix` begins: of a text or bytes the same, of a
    /// tuple its first parts.
    pub(crate) fn encode_prefix(
        &self,
        prefix: &Bound<'_, PyAny>,
        into: &mut Vec<u8>,
    ) -> PyResult<()> {
        match self {
            Kind::Bytes | Kind::Str => self.encode(prefix, into),
            Kind::Tuple(parts) => {
                let Ok(values) = prefix.cast::<PyTuple>() else {
                    return Err(PyTypeError::new_err(
                        "the prefix of a tuple is a tuple of its first parts",
                    ));
                };
                if values.len() >= parts.len() {
                    return Err(PyTypeError::new_err("the prefix has as many parts as a key"));
                }
                for (part, value) in parts.iter().zip(values.iter()) {
                    part.encode_part(&value, into)?;
                }
                Ok(())
            }
            other => {
                Err(PyTypeError::new_err(format!("keys of type {} have no prefixes", other.tag())))
            }
        }
    }

    /// The object that the bytes stand for; of an array a copy.
    pub(crate) fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Kind::Bytes => Ok(memory::object(py, bytes)?.into_any()),
            Kind::Str => string(py, bytes),
            Kind::Json => {
                let json = py.import(intern!(py, "zubilo._types"))?;
                json.call_method1(intern!(py, "from_json"), (string(py, bytes)?,))
            }
            Kind::Pickle => {
                let pickle = py.import(intern!(py, "pickle"))?;
                pickle.call_method1(intern!(py, "loads"), (memory::object(py, bytes)?,))
            }
            Kind::Array(array) => array.over(memory::object(py, bytes)?.as_any(), bytes.len()),
            part => {
                let mut rest = bytes;
                let object = part.decode_part(py, &mut rest, true)?;
                if rest.is_empty() { Ok(object) } else { Err(decode_error(&part.tag())) }
            }
        }
    }

    /// Reads an encoding off the front; the last one of a tuple takes the rest.
    fn decode_part<'py>(
        &self,
        py: Python<'py>,
        bytes: &mut &[u8],
        is_last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Kind::Bytes | Kind::Str if is_last => self.decode(py, std::mem::take(bytes)),
            Kind::Bytes => Ok(memory::object(py, &unescape(bytes)?)?.into_any()),
            Kind::Str => string(py, &unescape(bytes)?),
            Kind::Tuple(parts) => {
                let mut values = Vec::with_capacity(parts.len());
                for (i, part) in parts.iter().enumerate() {
                    values.push(part.decode_part(py, bytes, is_last && i + 1 == parts.len())?);
                }
                Ok(PyTuple::new(py, values)?.into_any())
            }
            fixed => {
                let width = fixed.width().unwrap_or(0);
                let Some((first, rest)) = bytes.split_at_checked(width) else {
                    return Err(decode_error(&fixed.tag()));
                };
                *bytes = rest;
                fixed.decode_number(py, first)
            }
        }
    }

    fn decode_number<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut wide = [0; 8];
        let width = bytes.len().min(8);
        let (signed, big) = (matches!(self, Kind::Signed(_)), !matches!(self, Kind::Native(_)));
        if big {
            wide[8 - width..].copy_from_slice(&bytes[..width]);
        } else {
            wide[..width].copy_from_slice(&bytes[..width]);
        }
        let number = if big { u64::from_be_bytes(wide) } else { u64::from_le_bytes(wide) };
        Ok(match self {
            Kind::Bool if number > 1 => return Err(decode_error("bool")),
            Kind::Bool => PyBool::new(py, number == 1).to_owned().into_any(),
            Kind::F32 => {
                let bits = number as u32;
                let bits = if bits >> 31 == 0 { !bits } else { bits & !(1 << 31) };
                PyFloat::new(py, f64::from(f32::from_bits(bits))).into_any()
            }
            Kind::F64 => {
                let bits = if number >> 63 == 0 { !number } else { number & !(1 << 63) };
                PyFloat::new(py, f64::from_bits(bits)).into_any()
            }
            _ if signed => {
                // The sign was flipped so that the order is the bytes'.
                let half = 1i128 << (width * 8 - 1);
                ((i128::from(number) - half) as i64).into_pyobject(py)?.into_any()
            }
            _ => number.into_pyobject(py)?.into_any(),
        })
    }

    /// The array's description, where this is one.
    pub(crate) fn array(&self) -> Option<&ArrayKind> {
        match self {
            Kind::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl ArrayKind {
    /// From an object with `dtype` and `shape`.
    pub(crate) fn from_spec(spec: &Bound<'_, PyAny>) -> PyResult<ArrayKind> {
        let py = spec.py();
        let numpy = py.import(intern!(py, "numpy"))?;
        let dtype =
            numpy.call_method1(intern!(py, "dtype"), (spec.getattr(intern!(py, "dtype"))?,))?;
        let shape: Option<Vec<usize>> = spec.getattr(intern!(py, "shape"))?.extract()?;
        if dtype.getattr(intern!(py, "hasobject"))?.is_truthy()? {
            return Err(PyTypeError::new_err(
                "arrays of objects cannot be read in place; use 'pickle'",
            ));
        }
        let size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        let align: usize = dtype.getattr(intern!(py, "alignment"))?.extract()?;
        if size == 0 || !matches!(align, 1 | 2 | 4 | 8 | 16) {
            return Err(raise(
                "InvalidError",
                "elements have a size, and an alignment of at most 16",
            ));
        }
        let format = py.import(intern!(py, "numpy.lib.format"))?;
        let text = format.call_method1(intern!(py, "dtype_to_descr"), (&dtype,))?.str()?;
        let mut text = text.to_str()?.replace(' ', "");
        if let Some(shape) = &shape {
            let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
            text = format!("{text}[{}]", shape.join(","));
        }
        Ok(ArrayKind { dtype: dtype.unbind(), shape, size, align, text })
    }

    fn encode(&self, object: &Bound<'_, PyAny>, into: &mut Vec<u8>) -> PyResult<()> {
        let py = object.py();
        let numpy = py.import(intern!(py, "numpy"))?;
        let order = [("order", "C")].into_py_dict(py)?;
        let array = numpy.call_method(intern!(py, "asarray"), (object,), Some(&order))?;
        let dtype = array.getattr(intern!(py, "dtype"))?;
        if !dtype.eq(&self.dtype)? {
            let wanted = self.dtype.bind(py).str()?;
            let text = format!(
                "an array of {} where {wanted} is due; convert it with astype",
                dtype.str()?
            );
            return Err(PyTypeError::new_err(text));
        }
        let shape: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
        let fits = self.shape.as_ref().map_or(shape.len() == 1, |wanted| *wanted == shape);
        if !fits {
            let wanted =
                self.shape.as_ref().map_or("one dimension".to_string(), |s| format!("{s:?}"));
            let text = format!("an array of shape {shape:?} where {wanted} is due");
            return Err(raise("InvalidError", text));
        }
        let bytes = array.call_method0(intern!(py, "tobytes"))?;
        memory::append(into, bytes.cast::<PyBytes>()?.as_bytes())?;
        Ok(())
    }

    /// An array over an object that offers `len` bytes.
    pub(crate) fn over<'py>(
        &self,
        buffer: &Bound<'py, PyAny>,
        len: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = buffer.py();
        let count = len / self.size;
        let wanted = match &self.shape {
            Some(shape) => shape.iter().try_fold(1, |count: usize, &side| count.checked_mul(side)),
            None => Some(count),
        };
        if !len.is_multiple_of(self.size) || wanted != Some(count) {
            return Err(decode_error(&format!("array {}", self.text)));
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        let array = numpy.call_method1(intern!(py, "frombuffer"), (buffer, &self.dtype))?;
        match &self.shape {
            Some(shape) => array.call_method1(intern!(py, "reshape"), (PyTuple::new(py, shape)?,)),
            None => Ok(array),
        }
    }
}

fn text<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    object.cast::<PyString>().map_err(|_| wrong_type("str", object))
}

fn tuple<'a, 'py>(object: &'a Bound<'py, PyAny>, len: usize) -> PyResult<&'a Bound<'py, PyTuple>> {
    match object.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == len => Ok(tuple),
        _ => Err(wrong_type(&format!("a tuple of {len}"), object)),
    }
}

pub(crate) fn wrong_type(due: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} where {due} is due"))
}

fn string<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: pointer and length of a slice; a new object comes back, or null and an exception.
    let object = unsafe {
        let start = bytes.as_ptr().cast();
        let object =
            ffi::PyUnicode_DecodeUTF8(start, bytes.len() as ffi::Py_ssize_t, std::ptr::null());
        Bound::from_owned_ptr_or_err(py, object)
    };
    object.map_err(|error| {
        if error.is_instance_of::<PyUnicodeDecodeError>(py) { decode_error("str") } else { error }
    })
}

const ESCAPED: u8 = 255;

/// Appends a byte string that tells its own end: 0 becomes 0 255, the end is 0 0.
fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    for &byte in bytes {
        into.push(byte);
        if byte == 0 {
            into.push(ESCAPED);
        }
    }
    into.extend_from_slice(&[0, 0]);
}

/// Takes such a byte string off the front.
fn unescape(bytes: &mut &[u8]) -> PyResult<Vec<u8>> {
    let mut owned = Vec::new();
    loop {
        match bytes {
            [0, 0, rest @ ..] => {
                *bytes = rest;
                return Ok(owned);
            }
            [0, ESCAPED, rest @ ..] => {
                owned.push(0);
                *bytes = rest;
            }
            [0, ..] | [] => return Err(decode_error("part of a tuple")),
            [byte, rest @ ..] => {
                owned.push(*byte);
                *bytes = rest;
            }
        }
    }
}

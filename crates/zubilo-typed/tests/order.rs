//! The promises of the codecs: what is written is read back, encodings sort like the values, also
//! inside tuples, and bytes that are no encoding give an error.

use std::cmp::Ordering;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use zubilo_typed::{ByteOrdered, Key, Native, Part, Prefix, Value};

fn bytes<K: Value>(input: K::Input<'_>) -> Vec<u8> {
    let encoded = K::encoded(input, <[u8]>::to_vec).unwrap();
    let mut appended = b"before".to_vec();
    K::encode(input, &mut appended).unwrap();
    assert_eq!(appended, [b"before", &*encoded].concat(), "the two ways to encode differ");
    if let Some(width) = K::WIDTH {
        assert_eq!(encoded.len(), width);
    }
    encoded
}

/// Two values: each comes back, and their encodings compare as `order` says. `view` brings what is
/// read to text, `input` what was written.
fn pair<'a, K: ByteOrdered>(
    (a, b): (K::Input<'a>, K::Input<'a>),
    order: Ordering,
) -> Result<(), TestCaseError>
where
    K::Input<'a>: Debug,
    for<'v> K::View<'v>: Debug,
{
    let (x, y) = (bytes::<K>(a), bytes::<K>(b));
    prop_assert_eq!(x.cmp(&y), order, "{:?} {:?}", x, y);
    prop_assert_eq!(format!("{:?}", K::decode(&x).unwrap()), format!("{a:?}"));
    prop_assert_eq!(format!("{:?}", K::decode(&y).unwrap()), format!("{b:?}"));
    Ok(())
}

/// Alone, as any part of tuples, in options, and nested.
fn everywhere<'a, K: Part>(
    (a, b): (K::Input<'a>, K::Input<'a>),
    order: Ordering,
    (m, n): (u8, u8),
) -> Result<(), TestCaseError>
where
    K::Input<'a>: Debug,
    for<'v> K::View<'v>: Debug,
    for<'v> K::Item<'v>: Debug,
{
    pair::<K>((a, b), order)?;
    pair::<(K, u8)>(((a, m), (b, n)), order.then(m.cmp(&n)))?;
    pair::<(u8, K)>(((m, a), (n, b)), m.cmp(&n).then(order))?;
    pair::<(u8, K, u8)>(((m, a, n), (n, b, m)), m.cmp(&n).then(order).then(n.cmp(&m)))?;
    pair::<(K, K)>(((a, b), (b, a)), order.then(order.reverse()))?;
    pair::<((K, u8), K)>((((a, m), b), ((b, n), a)), order.then(m.cmp(&n)).then(order.reverse()))?;
    pair::<Option<K>>((Some(a), Some(b)), order)?;
    pair::<Option<K>>((None, Some(b)), Ordering::Less)?;
    pair::<(Option<K>, u8)>(((Some(a), m), (Some(b), n)), order.then(m.cmp(&n)))?;
    pair::<(Option<K>, u8)>(((Some(a), m), (None, n)), Ordering::Greater)?;
    pair::<Option<Option<K>>>((Some(None), Some(Some(a))), Ordering::Less)
}

/// Numbers, those at the edges often.
macro_rules! number {
    ($type:ty) => {
        prop_oneof![
            any::<$type>(),
            (0..4u8, -2..=2i8).prop_map(|(edge, step)| {
                let edge = [<$type>::MIN, <$type>::MAX, 0, <$type>::MAX / 2][usize::from(edge)];
                edge.wrapping_add(step as $type)
            })
        ]
    };
}

macro_rules! numbers {
    ($($name:ident $type:ty;)*) => {
        proptest! {
            $(
            #[test]
            fn $name(a in number!($type), b in number!($type), m: u8, n: u8) {
                everywhere::<$type>((a, b), a.cmp(&b), (m, n))?;
                everywhere::<$type>((a, a), Ordering::Equal, (m, n))?;
            }
            )*
        }
    };
}

numbers! {
    unsigned_8 u8; unsigned_16 u16; unsigned_32 u32; unsigned_64 u64; unsigned_128 u128;
    signed_8 i8; signed_16 i16; signed_32 i32; signed_64 i64; signed_128 i128;
}

/// Bytes that are hard for escapes: few different ones, at the ends of the range.
fn hard_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()], 0..6)
}

/// Any number that has these bits, NaN and infinities often.
fn any_double() -> impl Strategy<Value = f64> {
    let edges =
        [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE];
    prop_oneof![any::<u64>().prop_map(f64::from_bits), proptest::sample::select(edges.to_vec())]
}

proptest! {
    #[test]
    fn floats(a in any_double(), b in any_double(), m: u8, n: u8) {
        everywhere::<f64>((a, b), a.total_cmp(&b), (m, n))?;
        prop_assert_eq!(f64::decode(&bytes::<f64>(a)).unwrap().to_bits(), a.to_bits());
        let (a, b) = (a as f32, b as f32);
        everywhere::<f32>((a, b), a.total_cmp(&b), (m, n))?;
        prop_assert_eq!(f32::decode(&bytes::<f32>(a)).unwrap().to_bits(), a.to_bits());
    }

    #[test]
    fn truth_and_characters(a: (bool, char), b: (bool, char), m: u8, n: u8) {
        everywhere::<bool>((a.0, b.0), a.0.cmp(&b.0), (m, n))?;
        everywhere::<char>((a.1, b.1), a.1.cmp(&b.1), (m, n))?;
    }

    #[test]
    fn strings(a in "[\0\u{1}ab\u{7f}é€]{0,5}", b in "[\0\u{1}ab\u{7f}é€]{0,5}", m: u8, n: u8) {
        everywhere::<&'static str>((&a, &b), a.cmp(&b), (m, n))?;
        everywhere::<String>((&a, &b), a.cmp(&b), (m, n))?;
    }

    #[test]
    fn byte_strings(a in hard_bytes(), b in hard_bytes(), m: u8, n: u8) {
        everywhere::<&'static [u8]>((&a, &b), a.cmp(&b), (m, n))?;
        everywhere::<Vec<u8>>((&a, &b), a.cmp(&b), (m, n))?;
    }

    #[test]
    fn byte_arrays(a: [u8; 5], b: [u8; 5], m: u8, n: u8) {
        everywhere::<[u8; 5]>((&a, &b), a.cmp(&b), (m, n))?;
    }

    #[test]
    fn six_parts(
        a: (bool, i16, String, u8, Option<i64>), b: (bool, i16, String, u8, Option<i64>),
        x in hard_bytes(), y in hard_bytes(),
    ) {
        type Six = (bool, i16, &'static str, u8, Option<i64>, &'static [u8]);
        let order = a.cmp(&b).then(x.cmp(&y));
        let (a, b) = ((a.0, a.1, &*a.2, a.3, a.4, &*x), (b.0, b.1, &*b.2, b.3, b.4, &*y));
        pair::<Six>((a, b), order)?;
    }

    #[test]
    fn native_numbers_come_back(a: u32, b: u64) {
        prop_assert_eq!(bytes::<Native<u32>>(a), a.to_le_bytes());
        prop_assert_eq!(Native::<u32>::decode(&a.to_le_bytes()).unwrap(), a);
        prop_assert_eq!(Native::<u64>::decode(&bytes::<Native<u64>>(b)).unwrap(), b);
    }

    #[test]
    fn prefixes_are_those_of_the_values(a in hard_bytes(), b in hard_bytes(), m: u8) {
        let begins = |prefix: Vec<u8>, of: Vec<u8>| of.starts_with(&prefix);
        let raw = prefix::<&'static [u8]>(&*a);
        prop_assert_eq!(begins(raw, bytes::<&'static [u8]>(&b)), b.starts_with(&a));
        let first = prefix::<(&'static [u8], u8)>((&*a,));
        prop_assert_eq!(begins(first, bytes::<(&'static [u8], u8)>((&b, m))), a == b);
        type Three = (&'static [u8], u8, &'static [u8]);
        let two = prefix::<Three>((&*a, 7));
        prop_assert_eq!(begins(two, bytes::<Three>((&b, m, &a))), a == b && m == 7);
    }

    /// What decodes is what encoding writes: there are no two encodings of one value, which would be
    /// two keys.
    #[test]
    fn no_second_encoding(raw in prop_oneof![hard_bytes(), vec(any::<u8>(), 0..20)]) {
        macro_rules! check {
            ($($type:ty),* $(,)?) => {$(
                if let Ok(view) = <$type>::decode(&raw) {
                    prop_assert_eq!(bytes::<$type>(view), &*raw);
                }
            )*};
        }
        check!((), u8, u32, i64, u128, f32, f64, bool, char, &'static str, &'static [u8], [u8; 3]);
        check!((u8, i32), (bool, bool, u16), Option<u8>, Option<Option<bool>>, (Option<u16>, i8));
        type Texts = (Vec<u8>, Vec<u8>, u8);
        if let Ok((a, b, c)) = Texts::decode(&raw) {
            prop_assert_eq!(bytes::<Texts>((&a, &b, c)), &*raw);
        }
        type Text = (String, Option<String>);
        if let Ok((a, b)) = Text::decode(&raw) {
            prop_assert_eq!(bytes::<Text>((&a, b.as_deref())), &*raw);
        }
    }
}

fn prefix<K: Key>(of: impl Prefix<K>) -> Vec<u8> {
    let mut bytes = Vec::new();
    of.encode_prefix(&mut bytes).unwrap();
    bytes
}

#[test]
fn encodings_stay_as_they_are() {
    // Stored by earlier versions: these must never change.
    assert_eq!(bytes::<i16>(-2), [0x7f, 0xfe]);
    assert_eq!(bytes::<f32>(1.5), [0xbf, 0xc0, 0, 0]);
    assert_eq!(bytes::<f64>(-1.0), [0x40, 0x0f, 255, 255, 255, 255, 255, 255]);
    assert_eq!(bytes::<char>('€'), [0, 0, 0x20, 0xac]);
    assert_eq!(bytes::<(&'static str, u16)>(("a\0b", 258)), b"a\0\xffb\0\0\x01\x02");
    assert_eq!(bytes::<(u8, &'static str)>((1, "a\0")), b"\x01a\0");
    assert_eq!(bytes::<(Option<u8>, Option<&'static str>)>((None, Some("x"))), b"\0\x01x");
    assert_eq!(bytes::<()>(()), b"");
}

#[test]
fn encodings_are_those_of_the_python_package() {
    // The same pairs are in `bindings/python/tests/test_types.py`.
    assert_eq!(bytes::<i64>(-2), [0x7f, 255, 255, 255, 255, 255, 255, 254]);
    assert_eq!(bytes::<u32>(258), [0, 0, 1, 2]);
    assert_eq!(bytes::<i8>(-1), [0x7f]);
    assert_eq!(bytes::<f64>(1.0), [0xbf, 0xf0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes::<f64>(-1.0), [0x40, 0x0f, 255, 255, 255, 255, 255, 255]);
    assert_eq!(bytes::<f32>(1.0), [0xbf, 0x80, 0, 0]);
    assert_eq!(bytes::<bool>(true), [1]);
    assert_eq!(bytes::<&'static str>("a\0é"), b"a\0\xc3\xa9");
    let text_and_number = bytes::<(&'static str, i64)>(("a\0", -1));
    assert_eq!(text_and_number, b"a\0\xff\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    assert_eq!(bytes::<(&'static [u8], &'static [u8])>((b"x", b"y\0")), b"x\0\0y\0");
    type Nested = ((u8, &'static str), &'static str);
    assert_eq!(bytes::<Nested>(((1, "a"), "b")), b"\x01a\0\0b");
    assert_eq!(bytes::<Native<u32>>(258), [2, 1, 0, 0]);
}

//! Numbers as keys and values: written as numbers, stored as bytes that sort like them.
//!
//! Most tables compare bytes, so their numbers are big-endian, as the crate `zubilo-typed` writes them:
//! signed ones with the sign bit flipped, floats so that they sort by `total_cmp`. Tables of the order
//! `integer` compare native numbers, as LMDB's `INTEGERKEY` does.

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    /// Least byte first: for tables that compare native numbers.
    pub(crate) native: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    Signed,
    Float,
}

impl Number {
    pub(crate) const fn new(kind: Kind, bytes: usize) -> Number {
        Number { bytes, kind, native: false }
    }

    pub(crate) const fn native(bytes: usize) -> Number {
        Number { bytes, kind: Kind::Unsigned, native: true }
    }

    /// "u64".
    fn name(self) -> String {
        let kind = match self.kind {
            Kind::Unsigned => 'u',
            Kind::Signed => 'i',
            Kind::Float => 'f',
        };
        format!("{kind}{}", self.bytes * 8)
    }

    fn bits(self) -> u32 {
        self.bytes as u32 * 8
    }

    fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    fn all(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The number that the bytes hold; none if they are not so many.
    pub(crate) fn show(self, bytes: &[u8]) -> Option<String> {
        if bytes.len() != self.bytes {
            return None;
        }
        let push = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        let raw = match self.native {
            true => bytes.iter().rev().fold(0, push),
            false => bytes.iter().fold(0, push),
        };
        Some(match self.kind {
            Kind::Unsigned => raw.to_string(),
            Kind::Signed => {
                let raw = raw ^ self.sign();
                let unused = 64 - self.bits();
                ((raw << unused).cast_signed() >> unused).to_string()
            }
            Kind::Float => {
                let negative = raw & self.sign() == 0;
                let bits = if negative { !raw & self.all() } else { raw ^ self.sign() };
                match self.bytes {
                    4 => format!("{:?}", f32::from_bits(bits as u32)),
                    _ => format!("{:?}", f64::from_bits(bits)),
                }
            }
        })
    }

    /// The bytes of a number.
    pub(crate) fn read(self, text: &str) -> Result<Vec<u8>, String> {
        let bad = |cause: String| format!("\"{}\" is no {}: {cause}", text, self.name());
        let raw = match self.kind {
            Kind::Unsigned => {
                let number: u64 = text.parse().map_err(|e| bad(format!("{e}")))?;
                if number > self.all() {
                    return Err(bad(format!("the greatest is {}", self.all())));
                }
                number
            }
            Kind::Signed => {
                let number: i64 = text.parse().map_err(|e| bad(format!("{e}")))?;
                let unused = 64 - self.bits();
                if (number << unused) >> unused != number {
                    let least = (self.sign() << unused).cast_signed() >> unused;
                    return Err(bad(format!("{least} to {} it is", self.sign() - 1)));
                }
                (number.cast_unsigned() & self.all()) ^ self.sign()
            }
            Kind::Float => {
                let bits = match self.bytes {
                    4 => u64::from(text.parse::<f32>().map_err(|e| bad(format!("{e}")))?.to_bits()),
                    _ => text.parse::<f64>().map_err(|e| bad(format!("{e}")))?.to_bits(),
                };
                let negative = bits & self.sign() != 0;
                if negative { !bits & self.all() } else { bits ^ self.sign() }
            }
        };
        let bytes = raw.to_be_bytes();
        let mut bytes = bytes.get(8 - self.bytes..).unwrap_or_default().to_vec();
        if self.native {
            bytes.reverse();
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_and_sort() {
        let lists: [(Kind, usize, &[&str]); 9] = [
            (Kind::Unsigned, 1, &["0", "1", "255"]),
            (Kind::Unsigned, 2, &["0", "256", "65535"]),
            (Kind::Unsigned, 4, &["0", "1", "4294967295"]),
            (Kind::Unsigned, 8, &["0", "1", "18446744073709551615"]),
            (Kind::Signed, 1, &["-128", "-1", "0", "127"]),
            (Kind::Signed, 4, &["-2147483648", "-1", "0", "1", "2147483647"]),
            (Kind::Signed, 8, &["-9223372036854775808", "-1", "0", "9223372036854775807"]),
            (Kind::Float, 4, &["-inf", "-1.5", "-0", "0", "1.25", "inf"]),
            (Kind::Float, 8, &["-1e300", "-1", "-0", "0", "0.1", "1e300"]),
        ];
        for (kind, bytes, list) in lists {
            let number = Number::new(kind, bytes);
            let stored: Vec<_> = list.iter().map(|text| number.read(text).unwrap()).collect();
            assert!(stored.is_sorted() && stored.iter().all(|b| b.len() == bytes), "{list:?}");
            for (text, stored) in list.iter().zip(&stored) {
                let shown = number.show(stored).unwrap();
                let same = match kind {
                    Kind::Float => shown.parse::<f64>().unwrap().total_cmp(&text.parse().unwrap()),
                    _ => shown.as_str().cmp(text),
                };
                assert!(same.is_eq(), "{text} came back as {shown}");
            }
        }
        assert_eq!(Number::native(4).read("258").unwrap(), [2, 1, 0, 0]);
        assert_eq!(Number::native(8).show(&[1, 1, 0, 0, 0, 0, 0, 0]).unwrap(), "257");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (number, text) in [
            (Number::new(Kind::Unsigned, 1), "256"),
            (Number::new(Kind::Unsigned, 8), "-1"),
            (Number::new(Kind::Unsigned, 8), "18446744073709551616"),
            (Number::new(Kind::Signed, 1), "128"),
            (Number::new(Kind::Signed, 2), "-32769"),
            (Number::new(Kind::Signed, 4), "x"),
            (Number::new(Kind::Float, 8), "one"),
            (Number::native(4), ""),
        ] {
            assert!(number.read(text).is_err(), "{text}");
        }
        assert_eq!(Number::native(4).show(b"abc"), None);
    }
}

//! Bytes as lines of a dump: hexadecimal, or as they are with escapes.

use std::io::{self, Write};

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Two hexadecimal digits each.
    Hex,
    /// Printable characters as they are, others as a backslash and two digits.
    Print,
}

const DIGITS: [u8; 16] = *b"0123456789abcdef";

fn hex(byte: u8) -> [u8; 2] {
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Writes a line: a space, the bytes, a newline.
pub(crate) fn write_line(out: &mut impl Write, format: Format, bytes: &[u8]) -> io::Result<()> {
    let mut line = Vec::with_capacity(bytes.len() * 2 + 2);
    line.push(b' ');
    for &byte in bytes {
        match format {
            Format::Print if byte == b'\\' => line.extend(b"\\\\"),
            Format::Print if (b' '..=b'~').contains(&byte) => line.push(byte),
            Format::Print => {
                line.push(b'\\');
                line.extend(hex(byte));
            }
            Format::Hex => line.extend(hex(byte)),
        }
    }
    line.push(b'\n');
    out.write_all(&line)
}

fn unhex(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let digit = |c: u8| char::from(c).to_digit(16);
    Some((digit(*high)? * 16 + digit(*low)?) as u8)
}

/// The bytes of a line, without the space and the newline; none where the line is malformed.
pub(crate) fn read_line(format: Format, line: &[u8]) -> Option<Vec<u8>> {
    if format == Format::Hex {
        return line.chunks(2).map(unhex).collect();
    }
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            (b'\\', _) => {
                bytes.push(unhex(tail.get(..2)?)?);
                rest = &tail[2..];
            }
            _ => bytes.push(first),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_in_both_formats() {
        let all: Vec<u8> = (0..=255).collect();
        for format in [Format::Hex, Format::Print] {
            let mut line = Vec::new();
            write_line(&mut line, format, &all).expect("memory");
            assert!(line.starts_with(b" ") && line.ends_with(b"\n"));
            assert_eq!(read_line(format, &line[1..line.len() - 1]).as_ref(), Some(&all));
        }
    }

    #[test]
    fn malformed_lines_are_noticed() {
        for (format, line) in [
            (Format::Hex, "abc"),
            (Format::Hex, "zz"),
            (Format::Print, "\\0"),
            (Format::Print, "\\"),
            (Format::Print, "\\zz"),
        ] {
            assert_eq!(read_line(format, line.as_bytes()), None, "{line}");
        }
    }
}

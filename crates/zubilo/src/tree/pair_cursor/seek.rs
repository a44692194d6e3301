//! The ways to search, which are part of the public interface.

/// How what is to be found stands to what is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The greatest that is less.
    Less,
    /// The same, or the greatest that is less.
    LessOrEqual,
    /// The same.
    Equal,
    /// The same, or the least that is greater.
    GreaterOrEqual,
    /// The least that is greater.
    Greater,
}

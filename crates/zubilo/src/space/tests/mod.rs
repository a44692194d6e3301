//! Tests of the space account.

//! The fuzzer of the target `lmdb_import` in `crates/fuzz-targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (fuzz_targets::target("lmdb_import").run)(data));

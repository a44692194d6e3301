//! The fuzzer of the target `mdb_load` in `crates/fuzz-targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (fuzz_targets::target("mdb_load").run)(data));

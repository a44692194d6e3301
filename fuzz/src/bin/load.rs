//! The fuzzer of the target `load` in `crates/fuzz-targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (fuzz_targets::target("load").run)(data));

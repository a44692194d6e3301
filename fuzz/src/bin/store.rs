//! The fuzzer of the target `store` in `crates/fuzz-targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (fuzz_targets::target("store").run)(data));

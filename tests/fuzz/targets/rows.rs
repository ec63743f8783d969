//! libFuzzer over the target `rows`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gavel_fuzz::ROWS.check(input);
});

//! libFuzzer over the target `recordings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gavel_fuzz::RECORDINGS.check(input);
});

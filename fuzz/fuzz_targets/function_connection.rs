//! Whatever a client sends to the server of built-in functions.
#![no_main]

use std::io::{self, Read, Write};

use libfuzzer_sys::fuzz_target;
use windfall_functions::FunctionServer;
use windfall_functions::request::{Head, Route};

/// Reads in pieces of up to seven bytes, so that requests are cut everywhere; writes nowhere.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(7).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(head)) = Head::parse(bytes) {
        assert!(head.length <= bytes.len());
    }
    // The function is fixed: an input must not choose one that computes for a minute.
    let server = FunctionServer::default();
    server.answer(Route::Init, br#"{"value":{"code":"echo"}}"#);
    let _ = server.converse(Pieces(bytes));
});

//! What was measured, kept between runs.

use std::fs;
use std::path::Path;

use windfall_studies::capacity::kernel::RampSetup;

use super::Measured;
use crate::error::ExperimentError;
use crate::kept::{Kept, keep, kept};

impl Kept for Measured {
    const NAME: &'static str = "measured.json";
}

pub(super) fn write(folder: &Path, measured: &Measured) -> Result<(), ExperimentError> {
    fs::create_dir_all(folder).map_err(crate::error::system("making the folder"))?;
    keep(folder, measured)
}

/// What earlier runs measured with the same setup; nothing if there was none.
pub(super) fn read(folder: &Path, setup: &RampSetup) -> Result<Option<Measured>, ExperimentError> {
    let Some(found) = kept::<Measured>(folder)? else { return Ok(None) };
    match found.setup == *setup {
        true => Ok(Some(found)),
        false => Err(ExperimentError::OtherSetup {
            file: folder.join(Measured::NAME),
            found: format!("{:?}", found.setup),
            asked: format!("{setup:?}"),
        }),
    }
}

//! Lists in pages: `limit`, `skip` and `count`.

use serde_json::Value;

use super::answer::Refusal;
use super::query::Query;

const USUAL: u32 = 30;
const MOST: u32 = 200;

pub(super) struct Page {
    pub(super) skip: u32,
    pub(super) limit: u32,
    /// Whether only the number is asked for.
    pub(super) is_count: bool,
}

impl Page {
    /// `collection` is for messages.
    pub(super) fn read(query: &Query<'_>, collection: &str) -> Result<Self, Refusal> {
        let limit = match query.number("limit")? {
            None => USUAL,
            Some(0) => MOST,
            Some(limit) => {
                u32::try_from(limit).ok().filter(|limit| *limit <= MOST).ok_or_else(|| {
                    Refusal::bad_request(format!(
                        "The value '{limit}' is not in the range of 0 to {MOST} for {collection}."
                    ))
                })?
            }
        };
        let skip = u32::try_from(query.number("skip")?.unwrap_or_default()).map_err(|_| {
            Refusal::bad_request(format!("The value for skip is too large for {collection}."))
        })?;
        Ok(Self { skip, limit, is_count: query.flag("count")? })
    }

    /// This page of a list, or its length.
    pub(super) fn of(&self, all: Vec<Value>, collection: &str) -> Value {
        if self.is_count {
            return serde_json::json!({ collection: all.len().saturating_sub(self.skip as usize) });
        }
        all.into_iter().skip(self.skip as usize).take(self.limit as usize).collect()
    }
}

//! The input size of a call, read from its parameters without understanding the rest of them.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::failure::Failure;

/// The parameter whose number says how large the input of a call is, and that decides what the call needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Input {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// What it counts, e.g. `rows`.
    pub unit: &'static str,
    /// Its value where a call does not set it.
    pub default: u32,
    /// The largest value that is accepted; the smallest is 1.
    pub most: u32,
}

impl Input {
    /// The value of the parameter in `parameters`, or the default.
    pub(crate) fn read(&self, parameters: &serde_json::Value) -> Result<u32, Failure> {
        let Some(given) = parameters.get(self.parameter) else { return Ok(self.default) };
        let number = given.as_u64().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| (1..=self.most).contains(number)).ok_or_else(|| {
            let Self { parameter, unit, most, .. } = self;
            Failure::new(format!("{parameter} is {given}, allowed is 1 to {most} {unit}"))
        })
    }
}

/// The number that the JSON object `parameters` has under `parameter`; nothing if there is none.
///
/// Other members are skipped without being stored, so a large body costs one pass over its bytes.
pub fn input_size(parameters: &[u8], parameter: &str) -> Option<f32> {
    let mut bytes = serde_json::Deserializer::from_slice(parameters);
    bytes.deserialize_map(OneNumber { parameter }).ok().flatten()
}

struct OneNumber<'a> {
    parameter: &'a str,
}

impl<'de> Visitor<'de> for OneNumber<'_> {
    type Value = Option<f32>;

    fn expecting(&self, text: &mut fmt::Formatter) -> fmt::Result {
        write!(text, "an object with a number `{}`", self.parameter)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.parameter {
                let value: serde_json::Value = members.next_value()?;
                found = value.as_f64().map(|number| number as f32);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found.filter(|number| number.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_number_is_found_among_other_members() {
        let body = br#"{"text":"a\"b","deep":{"rows":1},"rows":250,"list":[1,2]}"#;
        assert_eq!(input_size(body, "rows"), Some(250.0));
        assert_eq!(input_size(body, "text"), None);
        assert_eq!(input_size(b"[1]", "rows"), None);
        assert_eq!(input_size(b"{\"rows\":", "rows"), None);
        assert_eq!(input_size(b"{\"rows\":1e300}", "rows"), None);
    }

    #[test]
    fn a_value_out_of_range_is_an_error_that_names_the_range() {
        let input = Input { parameter: "rows", unit: "rows", default: 5, most: 10 };
        assert_eq!(input.read(&json!({})), Ok(5));
        assert_eq!(input.read(&json!({"rows": 10})), Ok(10));
        for wrong in [json!(0), json!(11), json!("3"), json!(2.5), json!(-1)] {
            let message = input.read(&json!({ "rows": wrong })).unwrap_err().to_string();
            assert_eq!(message, format!("rows is {wrong}, allowed is 1 to 10 rows"));
        }
    }
}

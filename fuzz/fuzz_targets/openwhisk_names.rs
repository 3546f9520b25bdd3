//! Names, identifiers, versions and keys as they come in URLs and headers. What is taken comes back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_openwhisk::{ActivationId, EntityName, FullName, Key, Version};

fuzz_target!(|bytes: &[u8]| {
    let _ = Key::from_basic(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let own = EntityName::new("guest").expect("a name");
    if let Ok(name) = FullName::parse(text, &own) {
        assert_eq!(FullName::parse(&name.to_string(), &own).as_ref(), Ok(&name));
        assert_eq!(name.path().matches('/').count(), usize::from(name.package().is_some()));
    }
    if let Ok(id) = text.parse::<ActivationId>() {
        assert_eq!(id.to_string(), text.to_lowercase());
    }
    if let Ok(key) = text.parse::<Key>() {
        assert_eq!(Key::from_basic(key.to_basic().as_bytes()), Ok(key));
    }
    let _ = text.parse::<Version>();
});

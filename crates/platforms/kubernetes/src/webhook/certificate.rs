//! The webhook's certificate: signed by itself, kept in a Secret that all replicas share, and trusted by the API server
//! because the webhook's configuration names it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error};

/// Certificate and key, PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Certificate {
    /// A new one for these host names and addresses.
    pub fn make(names: &[String]) -> Result<Self, rcgen::Error> {
        let made = rcgen::generate_simple_self_signed(names.to_vec())?;
        Ok(Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }

    /// The one that the replicas share: from the Secret, or a new one that is put there. Of two replicas that start at
    /// the same moment one writes first and the other reads.
    pub async fn shared(
        client: &Client,
        namespace: &str,
        secret: &str,
        names: &[String],
    ) -> Result<Self, Error> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        if let Some(found) = secrets.get_opt(secret).await?.and_then(|found| Self::read(&found)) {
            return Ok(found);
        }
        let made = Self::make(names).map_err(|error| Error::Service(Box::new(error)))?;
        match secrets.create(&PostParams::default(), &made.secret(secret)).await {
            Ok(_) => Ok(made),
            Err(Error::Api(status)) if status.code == 409 => {
                let found = secrets.get(secret).await?;
                Ok(Self::read(&found).unwrap_or(made))
            }
            Err(error) => Err(error),
        }
    }

    fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        Some(Self { certificate: text("tls.crt")?, key: text("tls.key")? })
    }

    fn secret(&self, name: &str) -> Secret {
        let data = BTreeMap::from([
            ("tls.crt".to_owned(), ByteString(self.certificate.clone().into_bytes())),
            ("tls.key".to_owned(), ByteString(self.key.clone().into_bytes())),
        ]);
        Secret {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data),
            ..Secret::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_survives_its_secret() {
        let made = Certificate::make(&["windfall.windfall.svc".into(), "10.0.0.1".into()]).unwrap();
        assert!(made.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(Certificate::read(&made.secret("x")).is_some_and(|found| found == made));
    }
}

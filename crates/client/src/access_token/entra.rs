//! Tokens of Microsoft Entra ID: a pod's workload identity, the managed identity of a machine,
//! container or app, or an application with a secret.
//!
//! Contract: azure-identity's `workload_identity.py`, `app_service.py`, `imds.py` and
//! `client_secret.py`. Where an identity of the platform is given, the callers offer no secrets.
//! Certificates of an application are not offered.

use std::path::PathBuf;
use std::time::SystemTime;

use async_trait::async_trait;
use reqwest::Url;

use super::ambient::AmbientVariables;
use super::server::{TokenAnswer, TokenServer};
use super::{GrantedToken, TokenGrant};
use docmill_core::config::{SecretSource, SecretString};
use docmill_core::fault::{Error, Fault, Result};

/// The machine's own metadata service.
const IMDS_URL: &str = "http://169.254.169.254/metadata/identity/oauth2/token";
const IMDS_VERSION: &str = "2018-02-01";
const APP_SERVICE_VERSION: &str = "2019-08-01";
/// Where tokens come from in Azure's public cloud.
const AUTHORITY: &str = "https://login.microsoftonline.com";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Grants tokens of Entra ID for one service.
pub struct EntraGrant {
    /// The service, without `/.default`.
    resource: String,
    identity: EntraIdentity,
    server: TokenServer,
}

/// An application of a directory, and the proof that docmill is it.
#[derive(Debug, Clone)]
pub struct EntraApplication {
    /// The token server; empty: that of Azure's public cloud.
    pub authority: String,
    /// Id of the directory (tenant).
    pub directory_id: String,
    /// Id of the application.
    pub client_id: String,
    /// Its secret.
    pub secret: SecretSource,
}

/// The identity that asks.
enum EntraIdentity {
    /// A pod's: the cluster's token for it lies in a file, which is renewed.
    Workload { client_id: String, token_file: PathBuf },
    /// An app's or a container app's.
    App { client_id: Option<String>, header: SecretString },
    /// A machine's.
    Machine { client_id: Option<String> },
    /// An application's.
    Application { client_id: String, secret: SecretSource },
}

impl EntraGrant {
    /// The resource of Azure OpenAI and of Document Intelligence.
    pub const COGNITIVE_SERVICES: &'static str = "https://cognitiveservices.azure.com";

    /// The resource of IMAP at Exchange Online.
    pub const EXCHANGE: &'static str = "https://outlook.office365.com";

    /// The identity that the variables name: `AZURE_FEDERATED_TOKEN_FILE` with `AZURE_CLIENT_ID` and
    /// `AZURE_TENANT_ID`, else `IDENTITY_ENDPOINT` with `IDENTITY_HEADER`, else the machine's own.
    /// Nothing is sent.
    ///
    /// # Errors
    /// [`Fault::Denied`]: a variable is missing beside the others, or names no address.
    pub fn find(resource: &str, variables: &AmbientVariables) -> Result<Self> {
        let client_id = variables.get("AZURE_CLIENT_ID").map(str::to_owned);
        let (identity, server) = if let Some(file) = variables.get("AZURE_FEDERATED_TOKEN_FILE") {
            let missing = "AZURE_FEDERATED_TOKEN_FILE is set, so AZURE_CLIENT_ID and \
                           AZURE_TENANT_ID must be";
            let tenant = variables.get("AZURE_TENANT_ID");
            let (Some(client_id), Some(tenant)) = (client_id, tenant) else {
                return Err(Error::new(Fault::Denied, missing));
            };
            let authority = variables.get("AZURE_AUTHORITY_HOST").unwrap_or(AUTHORITY);
            let address = token_address(authority, tenant);
            let advice = "check AZURE_CLIENT_ID, AZURE_TENANT_ID and the federated credential";
            let token_file = PathBuf::from(file);
            let identity = EntraIdentity::Workload { client_id, token_file };
            (identity, TokenServer::new(&address, advice)?)
        } else if let (Some(address), Some(header)) =
            (variables.get("IDENTITY_ENDPOINT"), variables.get("IDENTITY_HEADER"))
        {
            let header = header.to_owned().into();
            let advice = "check that the app has a managed identity, and AZURE_CLIENT_ID";
            (EntraIdentity::App { client_id, header }, TokenServer::new(address, advice)?)
        } else {
            let advice = "check that the machine has a managed identity, and AZURE_CLIENT_ID if it \
                          has several";
            (EntraIdentity::Machine { client_id }, TokenServer::new(IMDS_URL, advice)?)
        };
        Ok(Self { resource: resource.to_owned(), identity, server })
    }

    /// The identity of an application. Nothing is sent.
    ///
    /// # Errors
    /// [`Fault::Denied`]: the authority is no address.
    pub fn for_application(resource: &str, application: EntraApplication) -> Result<Self> {
        let EntraApplication { authority, directory_id, client_id, secret } = application;
        let authority = if authority.is_empty() { AUTHORITY } else { &authority };
        let advice = "check directory_id, client_id and client_secret";
        let server = TokenServer::new(&token_address(authority, &directory_id), advice)?;
        let identity = EntraIdentity::Application { client_id, secret };
        Ok(Self { resource: resource.to_owned(), identity, server })
    }

    async fn ask_for_application(
        &self,
        client_id: &str,
        secret: &SecretSource,
    ) -> Result<TokenAnswer> {
        let secret = secret.current_secret().map_err(|text| Error::new(Fault::Denied, text))?;
        let scope = format!("{}/.default", self.resource);
        let form = [
            ("client_id", client_id),
            ("grant_type", "client_credentials"),
            ("scope", &scope),
            ("client_secret", secret.reveal()),
        ];
        self.server.ask_json(self.server.post_form(&form)).await
    }

    async fn ask_for_workload(&self, client_id: &str, file: &PathBuf) -> Result<TokenAnswer> {
        let assertion = tokio::fs::read_to_string(file).await.map_err(|error| {
            let context = "the file that AZURE_FEDERATED_TOKEN_FILE names cannot be read";
            Error::new(Fault::Denied, context).with_source(error)
        })?;
        let scope = format!("{}/.default", self.resource);
        let form = [
            ("client_id", client_id),
            ("grant_type", "client_credentials"),
            ("scope", &scope),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", assertion.trim()),
        ];
        self.server.ask_json(self.server.post_form(&form)).await
    }

    /// The address of a managed identity's token.
    fn managed_url(&self, version: &str, client_id: Option<&str>) -> Url {
        let mut url = self.server.url.clone();
        url.query_pairs_mut()
            .append_pair("api-version", version)
            .append_pair("resource", &self.resource)
            .extend_pairs(client_id.map(|id| ("client_id", id)));
        url
    }
}

fn token_address(authority: &str, directory: &str) -> String {
    format!("{}/{directory}/oauth2/v2.0/token", authority.trim_end_matches('/'))
}

#[async_trait]
impl TokenGrant for EntraGrant {
    async fn request_token(&self) -> Result<GrantedToken> {
        let answer = match &self.identity {
            EntraIdentity::Workload { client_id, token_file } => {
                self.ask_for_workload(client_id, token_file).await?
            }
            EntraIdentity::App { client_id, header } => {
                let url = self.managed_url(APP_SERVICE_VERSION, client_id.as_deref());
                let request = self.server.client.get(url);
                self.server.ask_json(request.header("x-identity-header", header.reveal())).await?
            }
            EntraIdentity::Machine { client_id } => {
                let url = self.managed_url(IMDS_VERSION, client_id.as_deref());
                let request = self.server.client.get(url).header("metadata", "true");
                self.server.ask_json(request).await?
            }
            EntraIdentity::Application { client_id, secret } => {
                self.ask_for_application(client_id, secret).await?
            }
        };
        Ok(answer.into_token(SystemTime::now()))
    }
}

#[cfg(test)]
mod tests {
    use docmill_testkit::identity::{EntraAsked, Server};

    use super::*;

    fn grant(pairs: &[(&str, &str)]) -> Result<EntraGrant> {
        let variables = AmbientVariables::from_pairs(pairs);
        EntraGrant::find(EntraGrant::COGNITIVE_SERVICES, &variables)
    }

    async fn value(grant: &EntraGrant) -> String {
        grant.request_token().await.unwrap().value.reveal().to_owned()
    }

    #[tokio::test]
    async fn a_pods_token_is_exchanged_as_it_is_now_for_one_of_entra() {
        let server = Server::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "first\n").unwrap();
        let grant = grant(&[
            ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap()),
            ("AZURE_CLIENT_ID", "client-1"),
            ("AZURE_TENANT_ID", "tenant-1"),
            ("AZURE_AUTHORITY_HOST", &format!("{}/", server.endpoint())),
        ])
        .unwrap();
        assert_eq!(value(&grant).await, "entra-of-client-1");
        std::fs::write(&file, "second").unwrap();
        let token = grant.request_token().await.unwrap();
        assert_eq!(token.lifetime.as_secs(), 3599);
        let assertion = |text: &str| EntraAsked::Workload { assertion: text.to_owned() };
        assert_eq!(server.entra_asked(), [assertion("first"), assertion("second")]);
    }

    #[tokio::test]
    async fn an_application_is_asked_for_with_its_secret_as_it_is_now() {
        let server = Server::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "secret-1").unwrap();
        let application = EntraApplication {
            authority: server.endpoint(),
            directory_id: "tenant-1".to_owned(),
            client_id: "client-1".to_owned(),
            secret: SecretSource::new(&SecretString::default(), &file),
        };
        let grant = EntraGrant::for_application(EntraGrant::EXCHANGE, application).unwrap();
        assert_eq!(value(&grant).await, "entra-of-client-1");
        std::fs::write(&file, "refused").unwrap();
        let then = SystemTime::UNIX_EPOCH;
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
        let error = grant.request_token().await.unwrap_err();
        assert_eq!(error.fault, Fault::Denied);
        assert!(!error.to_string().contains("refused"), "{error}");
    }

    #[tokio::test]
    async fn an_apps_identity_is_asked_for_at_its_own_address_and_with_its_header() {
        let server = Server::start().await.unwrap();
        let address = format!("{}/msi/token", server.endpoint());
        let pairs = [("IDENTITY_ENDPOINT", address.as_str()), ("IDENTITY_HEADER", "header-1")];
        let system = grant(&pairs).unwrap();
        assert_eq!(value(&system).await, "entra-of-system");
        let user = [pairs[0], pairs[1], ("AZURE_CLIENT_ID", "client-2")];
        let token = grant(&user).unwrap().request_token().await.unwrap();
        assert_eq!(token.value.reveal(), "entra-of-client-2");
        let seconds = token.lifetime.as_secs();
        assert!((3500..=3600).contains(&seconds), "{seconds}: it says when it ends");
    }

    #[tokio::test]
    async fn a_machines_identity_is_asked_for_without_a_proxy_and_with_the_metadata_header() {
        let server = Server::start().await.unwrap();
        let mut machine = grant(&[("AZURE_CLIENT_ID", "client-3")]).unwrap();
        assert_eq!(machine.server.url.as_str(), IMDS_URL);
        assert!(crate::http::is_local_service(&machine.server.url));
        let address = format!("{}/metadata/identity/oauth2/token", server.endpoint());
        machine.server = TokenServer::new(&address, "check it").unwrap();
        assert_eq!(value(&machine).await, "entra-of-client-3");
    }

    #[tokio::test]
    async fn a_refusal_is_named_by_its_code_and_never_quoted() {
        let server = Server::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "refused").unwrap();
        let pairs = [
            ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap()),
            ("AZURE_CLIENT_ID", "client-1"),
            ("AZURE_TENANT_ID", "tenant-1"),
            ("AZURE_AUTHORITY_HOST", &server.endpoint()),
        ];
        let error = grant(&pairs).unwrap().request_token().await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.fault, Fault::Denied);
        assert!(text.contains("invalid_client") && text.contains("AZURE_CLIENT_ID"), "{text}");
        assert!(!text.contains("refused"), "{text}");
        let partial = grant(&pairs[..2]).err().unwrap().to_string();
        assert!(partial.contains("AZURE_TENANT_ID"), "{partial}");
    }
}

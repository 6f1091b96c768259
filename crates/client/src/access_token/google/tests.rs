use aws_config::Region;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{KeyPair, KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use docmill_testkit::identity::Server;
use serde_json::json;
use tempfile::TempDir;

use super::scope::SCOPE;
use super::*;

const AUDIENCE: &str =
    "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x";

fn grant_of(content: Value) -> Result<GoogleGrant> {
    let source = SecretSource::new(&content.to_string().into(), Path::new(""));
    GoogleGrant::find(source, "llm.api_key", &AmbientVariables::default())
}

async fn value(grant: &GoogleGrant) -> String {
    grant.request_token().await.unwrap().value.reveal().to_owned()
}

/// A configuration of federation at this server.
fn external(server: &Server, source: Value, subject_type: &str) -> Value {
    json!({
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": subject_type,
        "token_url": format!("{}/v1/token", server.endpoint()),
        "credential_source": source,
    })
}

fn impersonating(mut config: Value, server: &Server, account: &str) -> Value {
    let path = format!("/v1/projects/-/serviceAccounts/{account}:generateAccessToken");
    config["service_account_impersonation_url"] = json!(format!("{}{path}", server.endpoint()));
    config["service_account_impersonation"] = json!({"token_lifetime_seconds": 1200});
    config
}

#[tokio::test]
async fn the_key_of_a_service_account_signs_an_assertion_that_its_public_key_verifies() {
    let server = Server::start().await.unwrap();
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = STANDARD.encode(pair.as_der().unwrap().as_ref());
    let token_uri = format!("{}/token", server.endpoint());
    let content = json!({
        "type": "service_account",
        "private_key": format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"),
        "private_key_id": "key-1",
        "client_email": "reader@project-1.iam.gserviceaccount.com",
        "token_uri": token_uri,
    });
    assert_eq!(value(&grant_of(content).unwrap()).await, "of-the-account");
    let assertion = server.forms()[0]["assertion"].clone();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let public = PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature).unwrap();
    let parts: Vec<Value> = signed
        .split('.')
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
        .collect();
    assert_eq!((&parts[0]["alg"], &parts[0]["kid"]), (&json!("RS256"), &json!("key-1")));
    let (issued, ends) = (parts[1]["iat"].as_i64().unwrap(), parts[1]["exp"].as_i64().unwrap());
    assert_eq!((&parts[1]["aud"], ends - issued), (&json!(token_uri), 3600));
    assert_eq!(parts[1]["scope"], SCOPE);
}

#[tokio::test]
async fn a_subject_token_of_a_file_is_read_anew_and_exchanged() {
    let server = Server::start().await.unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    let source = json!({"file": file});
    let config = external(&server, source, "urn:ietf:params:oauth:token-type:jwt");
    let grant = grant_of(config).unwrap();
    for subject in ["first", "second"] {
        std::fs::write(&file, format!("{subject}\n")).unwrap();
        assert_eq!(value(&grant).await, "federated");
    }
    let subjects: Vec<String> =
        server.forms().iter().map(|form| form["subject_token"].clone()).collect();
    assert_eq!(subjects, ["first", "second"]);
    assert_eq!(server.forms()[0]["audience"], AUDIENCE);
    assert_eq!(server.forms()[0]["scope"], SCOPE);
}

#[tokio::test]
async fn a_subject_token_of_an_address_is_exchanged_for_that_of_a_service_account() {
    let server = Server::start().await.unwrap();
    let source = json!({
        "url": format!("{}/subject", server.endpoint()),
        "headers": {"x-asked-by": "docmill"},
        "format": {"type": "json", "subject_token_field_name": "value"},
    });
    let config = external(&server, source, "urn:ietf:params:oauth:token-type:jwt");
    let config = impersonating(config, &server, "reader@p.iam.gserviceaccount.com");
    let grant = grant_of(config).unwrap();
    let token = grant.request_token().await.unwrap();
    assert_eq!(token.value.reveal(), "of-reader@p.iam.gserviceaccount.com");
    assert!(token.lifetime.as_secs() > 3600, "{:?}: until it ends", token.lifetime);
    assert_eq!(server.forms()[0]["subject_token"], "subject-of-the-address");
    assert_eq!(server.impersonated(), [json!({"scope": [SCOPE], "lifetime": "1200s"})]);
}

#[tokio::test]
async fn awss_own_identity_is_exchanged_as_a_signed_request() {
    let server = Server::start().await.unwrap();
    let source = json!({
        "environment_id": "aws1",
        "regional_cred_verification_url":
            "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
    });
    let config = external(&server, source, "urn:ietf:params:aws:token-type:aws4_request");
    let mut grant = grant_of(config).unwrap();
    let credentials = Credentials::new("AKIDEXAMPLE", "hunter2", None, None, "test");
    let chain = SdkConfig::builder()
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build();
    grant.aws = tokio::sync::OnceCell::new_with(Some(chain));
    assert_eq!(value(&grant).await, "federated");
    let subject = server.forms()[0]["subject_token"].clone();
    assert!(subject.contains("sts.eu-central-1.amazonaws.com"), "{subject}");
    assert!(subject.contains("AKIDEXAMPLE") && !subject.contains("hunter2"), "{subject}");
}

#[tokio::test]
async fn the_metadata_server_is_asked_where_no_file_is_named() {
    let server = Server::start().await.unwrap();
    let host = server.endpoint().replace("http://", "");
    let variables = AmbientVariables::from_pairs(&[("GCE_METADATA_HOST", &host)]);
    let grant = GoogleGrant::find(SecretSource::default(), "llm.api_key", &variables).unwrap();
    assert_eq!(value(&grant).await, "of-the-machine");
    let none = AmbientVariables::from_pairs(&[("GCE_METADATA_HOST", "127.0.0.1:1")]);
    let grant = GoogleGrant::find(SecretSource::default(), "llm.api_key", &none).unwrap();
    let error = grant.request_token().await.unwrap_err();
    assert_eq!(error.fault, Fault::Denied);
    assert!(error.to_string().contains("set llm.api_key"), "{error}");
}

#[tokio::test]
async fn refusals_and_outages_of_the_exchange_have_their_faults() {
    let server = Server::start().await.unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hunter2").unwrap();
    let config = external(&server, json!({"file": file}), "a-type-that-is-none");
    let error = grant_of(config.clone()).unwrap().request_token().await.unwrap_err();
    assert_eq!(error.fault, Fault::Denied);
    let text = error.to_string();
    assert!(text.contains("invalid_grant") && text.contains("subject_token_type"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let grant = grant_of(config).unwrap();
    for (status, fault) in [(503, Fault::Unavailable), (500, Fault::Transient)] {
        server.fail_next(&[status]);
        assert_eq!(grant.request_token().await.unwrap_err().fault, fault, "{status}");
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(grant.request_token().await.unwrap_err().fault, Fault::Denied);
}

#[test]
fn a_file_that_is_missing_or_holds_no_credentials_is_named_and_not_quoted() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key.json");
    let variables = AmbientVariables::from_pairs(&[(FILE_VARIABLE, file.to_str().unwrap())]);
    let refused = || {
        let found = GoogleGrant::find(SecretSource::default(), "llm.api_key", &variables);
        found.err().unwrap().to_string()
    };
    let missing = refused();
    assert!(missing.contains(FILE_VARIABLE) && missing.contains("cannot be read"), "{missing}");
    let clear = json!({
        "type": "external_account", "audience": AUDIENCE, "subject_token_type": "t",
        "token_url": "http://sts.example/v1/token", "credential_source": {"file": "/hunter2"},
    });
    for (content, words) in [
        (json!({"private_key": "hunter2"}), "is not the key file"),
        (json!({"type": "authorized_user", "refresh_token": "hunter2"}), "is not the key file"),
        (json!({"type": "service_account", "private_key": "hunter2"}), "is not the key file"),
        (clear, "https://"),
    ] {
        std::fs::write(&file, content.to_string()).unwrap();
        let broken = refused();
        assert!(broken.contains(words) && !broken.contains("hunter2"), "{broken}");
    }
}

//! AWS credentials of a profile: a session of IAM Identity Center, and a program that prints them. The
//! program itself, as a person starts it on their own machine.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use docmill_testkit::models::{Script, Server, Vendor};
use docmill_testkit::sso_portal::{ACCESS_KEY_ID, ACCOUNT, Portal, ROLE, TOKEN};
use tempfile::TempDir;

/// SHA-1 of the session's name, `work`: the SDKs name its token's file by it.
const CACHE_FILE: &str = "e274eeff768c6396088ec6eb091f4bf4d47ab1e0.json";

/// A home folder with AWS's own files.
struct AwsHome(TempDir);

impl AwsHome {
    fn new(profile: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let aws = folder.path().join(".aws");
        std::fs::create_dir_all(aws.join("sso/cache")).unwrap();
        std::fs::write(aws.join("config"), profile).unwrap();
        Self(folder)
    }

    /// With the file of a signed-in session of IAM Identity Center.
    fn signed_in(token: &str) -> Self {
        let home = Self::new(&format!(
            "[profile invoices]\nsso_session = work\nsso_account_id = {ACCOUNT}\n\
             sso_role_name = {ROLE}\n\n[sso-session work]\nsso_region = eu-central-1\n\
             sso_start_url = https://work.awsapps.com/start\n"
        ));
        let cached = format!(
            "{{\"accessToken\": \"{token}\", \"expiresAt\": \"2099-12-31T23:59:59Z\", \
             \"region\": \"eu-central-1\", \"startUrl\": \"https://work.awsapps.com/start\"}}"
        );
        let file = home.0.path().join(".aws/sso/cache").join(CACHE_FILE);
        std::fs::write(file, cached).unwrap();
        home
    }

    /// `docmill process` of an invoice by a model on Bedrock, with the credentials of the profile.
    fn process(&self, bedrock: &Server, portal: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
        let names = std::env::vars().map(|(name, _)| name);
        for name in names.filter(|name| name.starts_with("DOCMILL") || name.starts_with("AWS")) {
            command.env_remove(name);
        }
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/invoice_en.pdf");
        command
            .args(["process", sample.to_str().unwrap(), "--json"])
            .stdin(Stdio::null())
            .env("HOME", self.0.path())
            .env("AWS_PROFILE", "invoices")
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_ENDPOINT_URL_SSO", portal)
            .env("DOCMILL__LLM__PROVIDER", "bedrock")
            .env("DOCMILL__LLM__BASE_URL", bedrock.base_url())
            .env("DOCMILL__LLM__MODEL", "model-1")
            .env("DOCMILL__KINDS__CLASSIFY", "false")
            .env("DOCMILL__OCR__ENGINE", "tesseract");
        command.output().unwrap()
    }
}

/// Bedrock, which takes requests signed with this access key.
async fn bedrock(access_key: &str) -> Server {
    let script = Script { api_key: Some(access_key.to_owned()), ..Script::default() };
    Server::start(script.from(Vendor::Bedrock)).await.unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_identity_center_signs_the_calls_of_a_model() {
    let (bedrock, portal) = (bedrock(ACCESS_KEY_ID).await, Portal::start().await.unwrap());
    let done = AwsHome::signed_in(TOKEN).process(&bedrock, &portal.endpoint());
    assert_eq!(bedrock.calls().first().map(|call| call.status), Some(200), "{}", said(&done));
    assert!(portal.given() >= 1);

    // One that has ended is named with what to check, and nothing is sent.
    let calls = bedrock.calls().len();
    let ended = AwsHome::signed_in("another").process(&bedrock, &portal.endpoint());
    assert_ne!(ended.status.code(), Some(0));
    assert!(said(&ended).contains("no AWS credentials for Bedrock"), "{}", said(&ended));
    assert_eq!(bedrock.calls().len(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_prints_credentials_signs_the_calls_of_a_model() {
    let bedrock = bedrock("AKIAPRINTED").await;
    let printed = "{\"Version\": 1, \"AccessKeyId\": \"AKIAPRINTED\", \
                   \"SecretAccessKey\": \"secret\", \"SessionToken\": \"session\", \
                   \"Expiration\": \"2099-12-31T23:59:59Z\"}";
    let home = AwsHome::new("");
    let file = home.0.path().join("printed.json");
    std::fs::write(&file, printed).unwrap();
    let profile = format!("[profile invoices]\ncredential_process = cat {}\n", file.display());
    std::fs::write(home.0.path().join(".aws/config"), profile).unwrap();
    let done = home.process(&bedrock, "http://127.0.0.1:9");
    assert_eq!(bedrock.calls().first().map(|call| call.status), Some(200), "{}", said(&done));

    let calls = bedrock.calls().len();
    std::fs::write(&file, "{\"Version\": 1}").unwrap();
    let refused = home.process(&bedrock, "http://127.0.0.1:9");
    assert!(said(&refused).contains("no AWS credentials for Bedrock"), "{}", said(&refused));
    assert_eq!(bedrock.calls().len(), calls);
}

//! Bedrock's batches ("model invocation jobs"): a file of questions in a bucket, a job over it, a file of
//! answers in the same bucket.
//!
//! Contract: botocore's model `bedrock/2023-04-20`, held by `scripts/contracts.sh`, and the form of
//! the files in AWS's guide. A job carries our name, also as its client request token, so that a
//! repeated submission makes one job. Batches take no tools and no cache points; each record states
//! whether its model takes a schema. Files left in the bucket by a worker that died between file
//! and job are removed only by a rule of the bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::json;

use super::json::{BedrockResultLine, build_input};
use super::signed::{AwsCall, SignedClient, SignedService};
use super::wire::ModelFields;
use crate::Prompt;
use crate::batch::shared::{
    BatchListPage, PAGE, PagedBatchList, REQUEST_TIMEOUT, UPLOAD_TIMEOUT, join_lines, search_pages,
    settle_line,
};
use crate::batch::{
    BatchApi, BatchProgress, BatchQuestion, BatchResults, BatchSubmission, BatchedResult,
    FoundBatch, SoughtBatch, SubmissionFence, plain_word,
};
use crate::form::ReplyForms;
use crate::options::RequestOptions;
use docmill_client::http;
use docmill_core::config::{BedrockBatchConfig, LlmConfig, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};

/// Allowed duration of a job, in hours.
const MIN_HOURS: u64 = 24;
const MAX_HOURS: u64 = 168;
/// Longest the answers of a job may be on their way.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(240);

/// Batches of a model on Bedrock.
pub struct BedrockBatches {
    signed: SignedClient,
    control: Url,
    bucket: Url,
    place: String,
    model: String,
    forms: ReplyForms,
    fields: ModelFields,
    options: RequestOptions,
    config: BedrockBatchConfig,
    /// How long a job may last.
    hours: u64,
}

impl BedrockBatches {
    /// Sets the client up and searches for credentials; nothing is sent.
    ///
    /// # Errors
    /// No credentials or no region, or an address that is none.
    pub async fn connect(config: &LlmConfig) -> Result<Self> {
        let own = config.batch.bedrock.clone();
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if !config.region.is_empty() {
            loader = loader.region(Region::new(config.region.clone()));
        }
        if !own.access_key_id.is_empty() {
            let (id, secret) = (own.access_key_id.clone(), own.secret_access_key.reveal());
            let keys = Credentials::new(id, secret, None, None, "configuration");
            loader = loader.credentials_provider(keys);
        }
        let shared = loader.load().await;
        let Some(region) = shared.region().map(ToString::to_string) else {
            let context = "no AWS region for Bedrock's batches: set llm.region or AWS_REGION";
            return Err(Error::new(Fault::Denied, context));
        };
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let control = match own.endpoint.as_str() {
            "" => parse_url(&format!("https://bedrock.{region}.{domain}"))?,
            given => parse_url(given)?,
        };
        let bucket = match own.s3_endpoint.trim_end_matches('/') {
            "" => parse_url(&format!("https://{}.s3.{region}.{domain}/", own.bucket))?,
            given => parse_url(&format!("{given}/{}/", own.bucket))?,
        };
        let place = match config.base_url.as_str() {
            "" => format!("Bedrock ({region})"),
            base => strip_credentials(base),
        };
        let (provider, model) = (shared.credentials_provider(), config.model.clone());
        let client = http::build_client(&control, config.timeout)?;
        let signed = SignedClient::connect(provider, region, model, client).await?;
        let hours = config.batch.deadline.as_secs().div_ceil(3600).clamp(MIN_HOURS, MAX_HOURS);
        Ok(Self {
            signed,
            control,
            bucket,
            place,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            fields: ModelFields::from_config(config),
            options: RequestOptions::for_bedrock(config),
            config: own,
            hours,
        })
    }

    fn job_url(&self, path: &str) -> Result<Url> {
        parse_url(&format!("{}{path}", self.control.as_str().trim_end_matches('/')))
    }

    fn object_url(&self, key: &str) -> Result<Url> {
        parse_url(&format!("{}{key}", self.bucket))
    }

    fn question_key(&self, name: &str) -> String {
        format!("{}{name}.jsonl", self.config.prefix)
    }

    /// Where a job puts its answers: below its id, under the name of its questions.
    fn answer_key(&self, name: &str, job: &str) -> String {
        format!("{}answers/{job}/{name}.jsonl.out", self.config.prefix)
    }

    fn s3_uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.config.bucket)
    }

    async fn show_job(&self, handle: &str) -> Result<BedrockJob> {
        let url = self.job_url(&format!("/model-invocation-job/{handle}"))?;
        let call = AwsCall::new(SignedService::Bedrock, Method::GET, url, REQUEST_TIMEOUT);
        self.signed.ask(call).await
    }

    async fn object(&self, method: Method, key: &str) -> Result<()> {
        let call = AwsCall::new(SignedService::S3, method, self.object_url(key)?, REQUEST_TIMEOUT);
        self.signed.send(call).await.map(drop)
    }
}

fn parse_url(address: &str) -> Result<Url> {
    Url::parse(address).map_err(|error| {
        let context = "an address or the name of the bucket in [llm.batch.bedrock] is invalid";
        Error::new(Fault::Misconfigured, context).with_source(error)
    })
}

/// A job, or what a list says of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockJob {
    job_arn: String,
    #[serde(default)]
    job_name: String,
    #[serde(default)]
    status: String,
}

impl BedrockJob {
    /// The end of its ARN, by which it is asked for.
    fn id(&self) -> String {
        self.job_arn.rsplit('/').next().unwrap_or_default().to_owned()
    }

    fn has_ended(&self) -> bool {
        let ends = ["Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired"];
        ends.contains(&self.status.as_str())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockJobMade {
    job_arn: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockJobList {
    #[serde(default)]
    invocation_job_summaries: Vec<BedrockJob>,
    #[serde(default)]
    next_token: Option<String>,
}

/// The id of a record: eleven letters and digits, as Bedrock makes them itself, with the question's number.
fn record_id(custom_id: &str) -> String {
    let number = custom_id.rsplit_once('-').map_or(custom_id, |(_, number)| number);
    format!("Q{number:0>10}")
}

/// Reads a line of a file of answers to the questions of the batch `name`.
fn parse_result(line: &[u8], name: &str, model: &str) -> Option<BatchedResult> {
    let line: BedrockResultLine = serde_json::from_slice(line).ok()?;
    let number: u32 = line.record_id.strip_prefix('Q')?.parse().ok()?;
    let custom_id = format!("{name}-{number}");
    let outcome = settle_line(line.reply(model), line.error_code().as_deref(), "errored");
    Some(BatchedResult { custom_id, outcome })
}

#[async_trait]
impl PagedBatchList for BedrockBatches {
    async fn read_page(
        &self,
        sought: SoughtBatch<'_>,
        after: Option<&str>,
    ) -> Result<BatchListPage> {
        let mut url = self.job_url("/model-invocation-jobs")?;
        // In the order of their names, as they are signed.
        let mut query = BTreeMap::from([
            ("maxResults", PAGE.to_string()),
            ("nameContains", sought.name.to_owned()),
        ]);
        query.extend(after.map(|token| ("nextToken", token.to_owned())));
        url.query_pairs_mut().extend_pairs(query);
        let call = AwsCall::new(SignedService::Bedrock, Method::GET, url, REQUEST_TIMEOUT);
        let list: BedrockJobList = self.signed.ask(call).await?;
        let mut jobs = list.invocation_job_summaries.iter();
        Ok(BatchListPage {
            found: jobs.find(|job| job.job_name == sought.name).map(BedrockJob::id),
            is_undecided: false,
            next: list.next_token.filter(|token| !token.is_empty()),
        })
    }
}

#[async_trait]
impl BatchApi for BedrockBatches {
    fn provider(&self) -> &'static str {
        "bedrock"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn least_requests(&self) -> u32 {
        self.config.least_requests
    }

    fn encode_prompt(&self, prompt: &Prompt) -> Result<String> {
        let (form, call) = (self.forms.of_prompt(prompt), self.options.for_batch(prompt));
        Ok(build_input(prompt, form, &self.fields, call).to_string())
    }

    /// Under the name of the batch: its token keeps a second job from being made, so that every try may
    /// write the same object.
    async fn upload(&self, name: &str, questions: &[BatchQuestion]) -> Result<Option<String>> {
        let file = join_lines(questions, |BatchQuestion { custom_id, body }| {
            format!("{{\"recordId\":\"{}\",\"modelInput\":{body}}}", record_id(custom_id))
        });
        let url = self.object_url(&self.question_key(name))?;
        let put = AwsCall::new(SignedService::S3, Method::PUT, url, UPLOAD_TIMEOUT);
        self.signed.send(put.with_body(file)).await?;
        Ok(None)
    }

    async fn remove_input(&self, _file: &str) -> Result<()> {
        Ok(())
    }

    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String> {
        let BatchSubmission { name, .. } = batch;
        let key = self.question_key(name);
        let answers = format!("{}answers/", self.config.prefix);
        let body = json!({
            "jobName": name,
            "clientRequestToken": name,
            "roleArn": self.config.role_arn,
            "modelId": self.model,
            "modelInvocationType": "Converse",
            "inputDataConfig":
                {"s3InputDataConfig": {"s3Uri": self.s3_uri(&key), "s3InputFormat": "JSONL"}},
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": self.s3_uri(&answers)}},
            "timeoutDurationInHours": self.hours,
        });
        let url = self.job_url("/model-invocation-job")?;
        let create = AwsCall::new(SignedService::Bedrock, Method::POST, url, REQUEST_TIMEOUT);
        fence.pass().await?;
        let made: BedrockJobMade = self.signed.ask(create.with_body(body.to_string())).await?;
        Ok(made.job_arn.rsplit('/').next().unwrap_or_default().to_owned())
    }

    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch> {
        search_pages(self, sought).await
    }

    async fn poll(&self, handle: &str) -> Result<BatchProgress> {
        let job = self.show_job(handle).await?;
        if !job.has_ended() {
            return Ok(BatchProgress::Working);
        }
        // A job that failed as a whole wrote nothing, one that was stopped may have.
        let key = self.answer_key(&job.job_name, handle);
        let files = match self.object(Method::HEAD, &key).await {
            Ok(()) => vec![key],
            Err(error) if error.fault == Fault::Missing => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(BatchProgress::Ended { files, reason: plain_word(Some(&job.status), "ended") })
    }

    async fn open_results(&self, file: &str) -> Result<BatchResults> {
        let url = self.object_url(file)?;
        let call = AwsCall::new(SignedService::S3, Method::GET, url, DOWNLOAD_TIMEOUT);
        let response = self.signed.send(call).await?;
        let what = format!("reading the answers of {file}");
        let name = file.rsplit('/').next().and_then(|name| name.strip_suffix(".jsonl.out"));
        let (name, model) = (name.unwrap_or_default().to_owned(), self.model.clone());
        Ok(BatchResults::new(response, what, move |line: &[u8]| parse_result(line, &name, &model))
            .with_questions())
    }

    async fn cancel(&self, handle: &str) -> Result<()> {
        let url = self.job_url(&format!("/model-invocation-job/{handle}/stop"))?;
        let call = AwsCall::new(SignedService::Bedrock, Method::POST, url, REQUEST_TIMEOUT);
        self.signed.send(call).await.map(drop)
    }

    /// The job itself stays in the account's list: there is no way to remove one.
    async fn discard(&self, handle: &str) -> Result<()> {
        let name = self.show_job(handle).await?.job_name;
        let manifest = format!("{}answers/{handle}/manifest.json.out", self.config.prefix);
        for key in [self.question_key(&name), self.answer_key(&name, handle), manifest] {
            // S3 answers the removal of a missing object with success.
            self.object(Method::DELETE, &key).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FinishReason;
    use crate::batch::BatchOutcome;

    #[test]
    fn a_line_of_answers_is_a_reply_a_refusal_or_a_reason() {
        let ok = r#"{"recordId":"Q0000000012","modelInput":{"messages":[]},"modelOutput":{
            "output":{"message":{"role":"assistant","content":[{"reasoningContent":{}},{"text":"{}"}]}},
            "stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":3,"totalTokens":10}}}"#;
        let long = r#"{"recordId":"Q0000000012","modelInput":{},
            "error":{"errorCode":400,"errorMessage":"Input is too long for secret."}}"#;
        let other = r#"{"recordId":"Q0000000012","modelInput":{},
            "error":{"errorCode":500,"errorMessage":"secret"}}"#;
        let nothing = r#"{"recordId":"Q0000000012","modelInput":{}}"#;
        #[rustfmt::skip]
        let table = [
            (ok,      Ok(FinishReason::Complete)),
            (long,    Ok(FinishReason::TooLong)),
            (other,   Err("error_500")),
            (nothing, Err("errored")),
        ];
        for (line, expected) in table {
            let result = parse_result(line.as_bytes(), "docmill-a", "asked").unwrap();
            let told = match &result.outcome {
                BatchOutcome::Answered(reply) => Ok(reply.stop),
                BatchOutcome::Unanswered(word) => Err(word.as_str()),
            };
            assert_eq!((result.custom_id.as_str(), told), ("docmill-a-12", expected));
        }
        assert!(parse_result(b"<html>", "docmill-a", "asked").is_none());
        assert!(parse_result(br#"{"recordId":"CALL0000001"}"#, "docmill-a", "asked").is_none());
    }

    #[test]
    fn a_record_id_has_eleven_letters_and_digits_and_identifies_its_question() {
        for (custom_id, expected) in
            [("docmill-0a1b-0", "Q0000000000"), ("docmill-0a1b-49999", "Q0000049999")]
        {
            assert_eq!(record_id(custom_id), expected);
            let line = format!("{{\"recordId\":\"{expected}\"}}");
            let read = parse_result(line.as_bytes(), "docmill-0a1b", "m").unwrap();
            assert_eq!(read.custom_id, custom_id);
        }
    }
}

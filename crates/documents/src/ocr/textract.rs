//! Amazon Textract: text detection, a picture at a time or a whole PDF as a job.
//!
//! Contract: the service model `textract/2018-06-27`. A picture goes as bytes and is answered at
//! once. Textract fetches a PDF in S3 by itself: a job is started, polled, and its result read in
//! parts of a thousand blocks. The job is started with a token that follows from the ingestion, so
//! that a worker that takes over finds the running job instead of starting, and paying, a second
//! one. Textract keeps jobs for seven days.
//!
//! Latin scripts only, and no score of the picture: ours is used. The SDK's own repetitions are
//! switched off, because throttling has to slow down every job, not one call.

mod blocks;
pub mod expense;
mod faults;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_textract::Client;
use aws_sdk_textract::config::retry::RetryConfig;
use aws_sdk_textract::config::timeout::TimeoutConfig;
use aws_sdk_textract::config::{BehaviorVersion, Region};
use aws_sdk_textract::operation::get_document_text_detection::GetDocumentTextDetectionOutput;
use aws_sdk_textract::primitives::Blob;
use aws_sdk_textract::types::{Document, DocumentLocation, JobStatus, S3Object};

use super::governed_client::GovernedClient;
use super::{FileReader, PictureSizes, ProviderCallLimits, RemoteOcrProvider, StoredFile};
use blocks::TextractBlocks;
use docmill_core::config::TextractConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{ModelUsage, PagePicture, PageUsage, PriceClass, ProviderReading};
use faults::textract_error;

/// Most bytes of a picture (docs, "Quotas in Amazon Textract").
const MAX_BYTES: usize = 10_485_760;
/// Most blocks in one answer of a job, by the service model.
const MAX_RESULTS: i32 = 1000;
/// Jobs that are started for one document: a second one if the first failed.
const MAX_JOBS: u32 = 2;
/// The name of no job.
const NO_JOB: &str = "docmill-asks-whether-it-may";
/// The first question about a job comes after this; later ones after twice as long each time.
const FIRST_POLL: Duration = Duration::from_millis(500);

/// One governed client for each operation: each operation has a limit of its own.
#[derive(Clone)]
pub struct OperationClients {
    /// Client of `DetectDocumentText`: one page, answered at once.
    pub detect: GovernedClient,
    /// Client of `StartDocumentTextDetection`: starts an asynchronous job.
    pub start: GovernedClient,
    /// Client of `GetDocumentTextDetection`: fetches the job's result.
    pub get: GovernedClient,
}

/// Text detection in one region.
pub struct TextractOcr {
    client: Client,
    clients: OperationClients,
    /// Whether whole files are read.
    jobs: bool,
    poll: Duration,
}

/// How an asynchronous job ended.
enum TextractJobResult {
    Whole(TextractBlocks),
    Failed,
}

impl TextractOcr {
    /// The provider's name in the configuration.
    pub const NAME: &'static str = "textract";
    /// The operation that reads a picture, as limiters and prices name it.
    pub const DETECT: &'static str = "DetectDocumentText";
    /// The operation that starts a job.
    pub const START: &'static str = "StartDocumentTextDetection";
    /// The operation that asks for a job's result.
    pub const GET: &'static str = "GetDocumentTextDetection";

    /// Sets the client up from the environment; nothing is sent. `files`: PDFs lie where Textract
    /// can reach them.
    pub async fn connect(config: &TextractConfig, files: bool, clients: OperationClients) -> Self {
        Self::with_client(load_client(config).await, config, files, clients)
    }

    /// Over a client that is set up already, but for its time limits, and that it repeats nothing:
    /// the governor does.
    pub fn with_client(
        client: Client,
        config: &TextractConfig,
        files: bool,
        clients: OperationClients,
    ) -> Self {
        let client = limit_client(&client, config);
        Self { client, clients, jobs: config.jobs && files, poll: config.poll }
    }

    /// Starts a job or finds the token's running one; `None`: the token belongs to another job.
    async fn start_job(&self, file: &StoredFile, token: &str) -> Result<Option<String>> {
        let object = S3Object::builder()
            .bucket(&file.bucket)
            .name(&file.key)
            .set_version(file.version.clone())
            .build();
        let place = DocumentLocation::builder().s3_object(object).build();
        let request = self
            .client
            .start_document_text_detection()
            .document_location(place)
            .client_request_token(token);
        let started = self
            .clients
            .start
            .call_with_retry(|| {
                let request = request.clone();
                async move {
                    match request.send().await {
                        Ok(started) => Ok(Some(started)),
                        Err(error) if faults::is_token_mismatch(&error) => Ok(None),
                        Err(error) => Err(textract_error(Self::START, &error)),
                    }
                }
            })
            .await?;
        let Some(started) = started else { return Ok(None) };
        let id = started.job_id().ok_or_else(|| Error::transient("Textract named no job"))?;
        Ok(Some(id.to_owned()))
    }

    /// Waits for the end of a job and reads its result.
    async fn wait_for_job(&self, job: &str) -> Result<TextractJobResult> {
        let mut wait = FIRST_POLL.min(self.poll);
        loop {
            let answer = match self.get_result_part(job, None).await {
                Ok(answer) => answer,
                // Older than the seven days that results are kept.
                Err(error) if error.fault == Fault::Missing => {
                    return Ok(TextractJobResult::Failed);
                }
                Err(error) => return Err(error),
            };
            match answer.job_status() {
                Some(JobStatus::InProgress) => {
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2).min(self.poll);
                }
                Some(JobStatus::Succeeded | JobStatus::PartialSuccess) => {
                    return self.read_result(job, answer).await.map(TextractJobResult::Whole);
                }
                _ => return Ok(TextractJobResult::Failed),
            }
        }
    }

    /// The rest of a result whose first part is there.
    async fn read_result(
        &self,
        job: &str,
        first: GetDocumentTextDetectionOutput,
    ) -> Result<TextractBlocks> {
        let mut blocks = TextractBlocks::default();
        let mut next = blocks.add_part(first);
        while let Some(token) = next {
            next = blocks.add_part(self.get_result_part(job, Some(token)).await?);
        }
        Ok(blocks)
    }

    async fn get_result_part(
        &self,
        job: &str,
        token: Option<String>,
    ) -> Result<GetDocumentTextDetectionOutput> {
        let request = self
            .client
            .get_document_text_detection()
            .job_id(job)
            .max_results(MAX_RESULTS)
            .set_next_token(token);
        self.clients
            .get
            .call_with_retry(|| {
                let request = request.clone();
                async move { request.send().await.map_err(|error| textract_error(Self::GET, &error)) }
            })
            .await
    }
}

/// A client with the credentials of the environment.
async fn load_client(config: &TextractConfig) -> Client {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if !config.region.is_empty() {
        loader = loader.region(Region::new(config.region.clone()));
    }
    if !config.endpoint.is_empty() {
        loader = loader.endpoint_url(&config.endpoint);
    }
    Client::new(&loader.load().await)
}

/// The same client with the time limits of the settings, and without repetitions of its own.
fn limit_client(client: &Client, config: &TextractConfig) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5).min(config.timeout))
        .operation_timeout(config.timeout)
        .build();
    let limited = client.config().to_builder();
    Client::from_conf(
        limited.timeout_config(timeouts).retry_config(RetryConfig::disabled()).build(),
    )
}

fn page_usage(operation: &str, pages: u32) -> PageUsage {
    let (tokens, class) = (ModelUsage::default(), PriceClass::default());
    PageUsage { provider: TextractOcr::NAME, model: operation.to_owned(), pages, tokens, class }
}

#[async_trait]
impl RemoteOcrProvider for TextractOcr {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn identity(&self) -> String {
        "textract text detection".to_owned()
    }

    fn call_limits(&self) -> ProviderCallLimits {
        ProviderCallLimits { pages: 1, bytes: MAX_BYTES }
    }

    fn is_down(&self) -> bool {
        self.clients.detect.is_down()
    }

    /// A picture that is none, and a job that there is not. Starting jobs cannot be tried without
    /// an object.
    async fn ping(&self) -> Result<()> {
        let none = Document::builder().bytes(Blob::new(*b"none")).build();
        let asked = self.client.detect_document_text().document(none).send().await;
        if let Err(error) = asked.map_err(|error| textract_error(Self::DETECT, &error))
            && error.fault != Fault::Rejected
        {
            return Err(error);
        }
        if !self.jobs {
            return Ok(());
        }
        let asked = self.client.get_document_text_detection().job_id(NO_JOB).send().await;
        match asked.map_err(|error| textract_error(Self::GET, &error)) {
            Err(error) if !matches!(error.fault, Fault::Missing | Fault::Rejected) => Err(error),
            _ => Ok(()),
        }
    }

    async fn read_pictures(
        &self,
        pictures: &[PagePicture],
    ) -> Result<(Vec<ProviderReading>, PageUsage)> {
        let [picture] = pictures else {
            return Err(Error::internal("Textract reads one picture in a call"));
        };
        let image = &picture.image;
        let document = Document::builder().bytes(Blob::new(image.bytes.clone())).build();
        let request = self.client.detect_document_text().document(document);
        let answer =
            self.clients
                .detect
                .call_with_retry(|| {
                    let request = request.clone();
                    async move {
                        request.send().await.map_err(|error| textract_error(Self::DETECT, &error))
                    }
                })
                .await?;
        let version = answer.detect_document_text_model_version().map(str::to_owned);
        let mut blocks = TextractBlocks::from_blocks(answer.blocks.unwrap_or_default());
        let reading =
            blocks.take_reading(1, (image.header.width, image.header.height), version.as_deref());
        let usage = page_usage(Self::DETECT, 1);
        Ok((vec![reading], usage))
    }

    fn file_reader(&self) -> Option<&dyn FileReader> {
        self.jobs.then_some(self as &dyn FileReader)
    }
}

#[async_trait]
impl FileReader for TextractOcr {
    async fn read_file(
        &self,
        file: &StoredFile,
        sizes: &PictureSizes,
    ) -> Result<(BTreeMap<u32, ProviderReading>, PageUsage)> {
        for number in 0..MAX_JOBS {
            // A failed job fails again: every caller uses the same tokens.
            let token = match number {
                0 => file.token.clone(),
                number => format!("{}-{number}", file.token),
            };
            let Some(job) = self.start_job(file, &token).await? else { continue };
            if let TextractJobResult::Whole(mut blocks) = self.wait_for_job(&job).await? {
                let version = blocks.version.clone();
                let known =
                    sizes.iter().filter(|(number, _)| blocks.has_page(**number)).map(|it| *it.0);
                let known: Vec<u32> = known.collect();
                let readings = known.into_iter().filter_map(|number| {
                    let size = *sizes.get(&number)?;
                    Some((number, blocks.take_reading(number, size, version.as_deref())))
                });
                let readings = readings.collect();
                let usage = page_usage(Self::START, blocks.pages);
                return Ok((readings, usage));
            }
            tracing::warn!("a Textract job failed");
        }
        Err(Error::new(Fault::Rejected, "Textract's jobs for the document failed"))
    }
}

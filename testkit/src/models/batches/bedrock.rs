//! Bedrock's model invocation jobs (botocore's `bedrock/2023-04-20`), with the parts of S3 that
//! they need. The bucket is below `/s3/`.

use serde_json::{Value, json};

use super::{BatchAnswer, HeldBatch, NewBatch, Sent, State, Vendor, refused};

/// The prefix of job ARNs.
const ARN: &str = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/";

impl State {
    pub(super) fn answer_bedrock(
        &self,
        (method, path): (&str, &str),
        sent: Sent<'_>,
    ) -> Option<BatchAnswer> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let is_ours = path.starts_with("/s3/") || path.starts_with("/model-invocation-job");
        let signature = sent.headers.get("authorization").map(String::as_str).unwrap_or_default();
        let service =
            if path.starts_with("/s3/") { "/s3/aws4_request" } else { "/bedrock/aws4_request" };
        if is_ours && !signature.contains(service) {
            let denied = json!({"message": "the request is not signed for this service"});
            return Some(BatchAnswer::Json(403, denied));
        }
        if let Some(key) = path.strip_prefix("/s3/") {
            return Some(self.answer_bucket(method, key, sent));
        }
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let answer = match (method, parts.as_slice()) {
            ("POST", ["model-invocation-job"]) => self.create_bedrock(sent),
            ("GET", ["model-invocation-jobs"]) => self.list_bedrock(query),
            ("GET", ["model-invocation-job", id]) => self.show(Vendor::Bedrock, id),
            ("POST", ["model-invocation-job", id, "stop"]) => {
                self.cancel(Vendor::Bedrock, id);
                BatchAnswer::Json(200, json!({}))
            }
            _ => return None,
        };
        Some(answer)
    }

    fn answer_bucket(&self, method: &str, key: &str, sent: Sent<'_>) -> BatchAnswer {
        // BUCKET/PREFIX/answers/JOB/NAME.jsonl.out
        let job = key.strip_suffix(".jsonl.out").and_then(|key| key.rsplit('/').nth(1));
        let has_answers = job.is_some_and(|job| {
            let shelf = self.shelf();
            shelf.batches.iter().any(|it| it.id == job && it.ended && !it.failed)
        });
        match (method, job) {
            ("PUT", _) => {
                let text = String::from_utf8_lossy(sent.body).into_owned();
                let mut shelf = self.shelf();
                shelf.files.retain(|(known, _)| known != key);
                shelf.files.push((key.to_owned(), text));
                BatchAnswer::Json(200, Value::Null)
            }
            ("DELETE", _) => {
                self.shelf().files.retain(|(known, _)| known != key);
                BatchAnswer::Json(204, Value::Null)
            }
            ("HEAD", Some(_)) if has_answers => BatchAnswer::Json(200, Value::Null),
            ("GET", Some(job)) if has_answers => self.download(job),
            _ => BatchAnswer::Json(404, Value::Null),
        }
    }

    fn create_bedrock(&self, sent: Sent<'_>) -> BatchAnswer {
        let Ok(asked) = serde_json::from_slice::<Value>(sent.body) else {
            return refused("no JSON");
        };
        let input = text_at(&asked, "/inputDataConfig/s3InputDataConfig/s3Uri");
        let output = text_at(&asked, "/outputDataConfig/s3OutputDataConfig/s3Uri");
        let (Some(name), Some(token), Some(input), Some(_)) = (
            text_at(&asked, "/jobName"),
            text_at(&asked, "/clientRequestToken"),
            input.and_then(|uri| uri.strip_prefix("s3://")),
            output.filter(|uri| uri.ends_with("/answers/")),
        ) else {
            return refused("a part of the job is missing");
        };
        if text_at(&asked, "/modelInvocationType") != Some("Converse")
            || !text_at(&asked, "/roleArn").is_some_and(|role| role.starts_with("arn:aws:iam::"))
            || text_at(&asked, "/modelId").is_none()
        {
            return refused("modelInvocationType, roleArn or modelId");
        }
        let requests = match self.read_lines(input, ("recordId", "modelInput")) {
            Ok(requests) => requests,
            Err(wrong) => return wrong,
        };
        if !requests.iter().all(|(id, _)| is_record_id(id)) {
            return refused("recordId");
        }
        // Its token makes it the job that is there already.
        let known = self.shelf().batches.iter().find(|job| job.name == token).map(made_job);
        if let Some(job) = known {
            return BatchAnswer::Json(200, job);
        }
        let new = NewBatch { name: name.to_owned(), input: input.to_owned(), requests };
        self.create(Vendor::Bedrock, new, sent.headers)
    }

    fn list_bedrock(&self, query: &str) -> BatchAnswer {
        self.end_all_due(Vendor::Bedrock);
        let sought = query.split('&').find_map(|pair| pair.strip_prefix("nameContains="));
        let shelf = self.shelf();
        let jobs: Vec<Value> = shelf
            .batches
            .iter()
            .filter(|job: &&HeldBatch| sought.is_none_or(|name| job.name.contains(name)))
            .map(bedrock_job)
            .collect();
        BatchAnswer::Json(200, json!({"invocationJobSummaries": jobs}))
    }
}

fn text_at<'a>(asked: &'a Value, pointer: &str) -> Option<&'a str> {
    asked.pointer(pointer).and_then(Value::as_str)
}

fn is_record_id(id: &str) -> bool {
    id.len() == 11 && id.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The answer to a submission.
pub(super) fn made_job(job: &HeldBatch) -> Value {
    json!({"jobArn": format!("{ARN}{}", job.id)})
}

/// A job as it is shown.
pub(super) fn bedrock_job(job: &HeldBatch) -> Value {
    let status = match (job.ended, job.failed, job.cancelled) {
        (true, true, _) => "Failed",
        (true, false, true) => "Stopped",
        (true, false, false) => "Completed",
        (false, _, true) => "Stopping",
        (false, _, false) => "InProgress",
    };
    let uri = format!("s3://{}", job.input);
    json!({
        "jobArn": format!("{ARN}{}", job.id), "jobName": job.name, "modelId": "model-1",
        "roleArn": "arn:aws:iam::123456789012:role/batches", "status": status,
        "submitTime": "2099-01-01T00:00:00Z", "modelInvocationType": "Converse",
        "inputDataConfig": {"s3InputDataConfig": {"s3Uri": uri, "s3InputFormat": "JSONL"}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": "s3://questions/answers/"}},
    })
}

/// A line of a file of answers, which repeats the question.
pub(super) fn bedrock_line(id: &str, asked: &Value, answered: Option<(u16, Value)>) -> Value {
    match answered {
        Some((200, reply)) => json!({"recordId": id, "modelInput": asked, "modelOutput": reply}),
        Some((code, _)) => json!({"recordId": id, "modelInput": asked,
            "error": {"errorCode": code, "errorMessage": "scripted"}}),
        None => json!({"recordId": id, "modelInput": asked,
            "error": {"errorCode": 408, "errorMessage": "scripted"}}),
    }
}

//! The details of a refusal by Google's services: `google.rpc.Status` in JSON, whose `details` are
//! `RetryInfo`, `QuotaFailure` and `ErrorInfo` (`google/rpc/error_details.proto`).

use std::time::Duration;

use serde_json::Value;

/// No wait is longer.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(86_400);

/// The first text of this name in the details of an `error`.
pub fn find_detail<'a>(error: &'a Value, name: &str) -> Option<&'a str> {
    let details = error.get("details")?.as_array()?;
    details.iter().find_map(|detail| detail.get(name)?.as_str())
}

/// The wait that an `error` asks for (`RetryInfo`), at most a day.
pub fn find_retry_delay(error: &Value) -> Option<Duration> {
    parse_delay(find_detail(error, "retryDelay")?)
}

/// Whether an `error` is that a quota of the day is spent (`QuotaFailure`): its id has `PerDay` in it,
/// such as `GenerateRequestsPerDayPerProjectPerModel`.
pub fn has_spent_day(error: &Value) -> bool {
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let violations = details.filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let mut ids = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
    ids.any(|id| id.contains("PerDay"))
}

/// `google.protobuf.Duration` in JSON: `"3.5s"`.
fn parse_delay(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds.min(MAX_RETRY_DELAY.as_secs_f64())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_and_a_quota_of_the_day_are_read_from_the_details() {
        let error = |quota: &str, delay: &str| {
            json!({"details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
                    {"quotaId": "GenerateContentInputTokensPerModelPerMinute"},
                    {"quotaId": quota},
                ]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            ]})
        };
        let day = error("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "35640.5s");
        assert!(has_spent_day(&day));
        assert_eq!(find_retry_delay(&day), Some(Duration::from_secs_f64(35_640.5)));
        let minute = error("GenerateRequestsPerMinutePerProjectPerModel", "1e9s");
        assert!(!has_spent_day(&minute));
        assert_eq!(find_retry_delay(&minute), Some(MAX_RETRY_DELAY));
        for wrong in [json!({}), json!({"details": "x"}), error("x", "-1s"), error("x", "soon")] {
            assert_eq!((find_retry_delay(&wrong), has_spent_day(&wrong)), (None, false), "{wrong}");
        }
    }
}

//! The differential test: random histories give the same answers and the same rows in both ledgers.
//! A failure prints the seed.
#![expect(clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::fault::Fault;
use docmill_core::model::{
    ArtefactRef, ClaimToken, DocumentId, FileRef, IngestionId, IngestionStage, OutcomeReason,
};
use docmill_ledger::duplicate_key::DuplicateKeys;
use docmill_ledger::memory::{LedgerAttempt, LedgerRow};
use docmill_ledger::{ClaimCompany, ClaimOutcome, ClaimRequest, LeaseRenewal, StoredTranscript};
use fastrand::Rng;

use super::fixture::{Fixture, failed, object, record, renewal, terms};

const HISTORIES: u64 = 20;
const STEPS: usize = 60;

/// The same claim in both ledgers: the tokens differ, their place in this list is compared.
type Tokens = Vec<(ClaimToken, ClaimToken)>;

struct History {
    memory: Fixture,
    postgres: Fixture,
    rng: Rng,
    ids: Vec<IngestionId>,
    tokens: Tokens,
}

#[tokio::test]
async fn both_ledgers_give_the_same_answers_in_random_histories() {
    let [mut memory, mut postgres] = Fixture::both().await;
    for seed in 0..HISTORIES {
        let rng = Rng::with_seed(seed);
        let mut history = History { memory, postgres, rng, ids: Vec::new(), tokens: Vec::new() };
        let mut log = Vec::new();
        for _ in 0..STEPS {
            log.push(history.step().await);
            let same = history.compare().await;
            assert!(same.is_ok(), "seed {seed}: {}\n{}", same.unwrap_err(), log.join("\n"));
        }
        assert!(!history.tokens.is_empty(), "seed {seed}: nothing was ever claimed");
        (memory, postgres) = (history.memory.emptied().await, history.postgres.emptied().await);
    }
}

/// Asks both and insists on one answer.
macro_rules! both {
    ($history:ident, |$at:ident, $side:ident| $call:expr) => {{
        let answer = {
            let ($at, $side) = (&$history.memory, 0_usize);
            $call
        };
        let other = {
            let ($at, $side) = (&$history.postgres, 1_usize);
            $call
        };
        assert_eq!(answer, other, "{}", stringify!($call));
        answer
    }};
}

impl History {
    /// One random operation; returns what it was.
    async fn step(&mut self) -> String {
        match self.rng.u32(0..100) {
            0..15 => self.arrive().await,
            15..45 => self.claim().await,
            45..53 => self.renew().await,
            53..65 => self.give_back().await,
            65..75 => self.record().await,
            75..82 => self.save().await,
            82..86 => self.operate().await,
            86..90 => self.ask().await,
            _ => {
                let by = Duration::from_millis(self.rng.u64(0..400_000));
                self.memory.advance(by).await;
                self.postgres.advance(by).await;
                format!("advance {by:?}")
            }
        }
    }

    async fn arrive(&mut self) -> String {
        if self.ids.len() < 3 || self.rng.u32(0..3) == 0 {
            let (id, document) = (IngestionId::random(), DocumentId::random());
            self.memory.insert(id, document).await;
            self.postgres.insert(id, document).await;
            self.ids.push(id);
            return format!("insert {id}");
        }
        let sequencer = format!("{:x}", self.rng.u32(8..24));
        let sequencer = (self.rng.u32(0..8) > 0).then_some(sequencer.as_str());
        let etag = self.rng.choice([None, Some("e"), Some("f"), Some("g")]).unwrap();
        let one = object(self.rng.choice(["k", "l"]).unwrap(), etag, sequencer);
        let id = both!(self, |at, _side| at.ledger().register_object(&one).await.unwrap());
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
        format!("register {one:?}")
    }

    async fn claim(&mut self) -> String {
        let mut ids = self.ids.clone();
        self.rng.shuffle(&mut ids);
        ids.truncate(self.rng.usize(1..6));
        if self.rng.u32(0..10) == 0 {
            ids.push(IngestionId::random());
        }
        let companies = [ClaimCompany::Others, ClaimCompany::Suspects, ClaimCompany::Nobody];
        let company = *self.rng.choice(&companies).unwrap();
        let asked: Vec<_> = ids.iter().map(|id| ClaimRequest::within(*id, company)).collect();
        // Sometimes the answer is lost, and asked for again under the same tokens.
        let times = 1 + usize::from(self.rng.u32(0..4) == 0);
        for _ in 0..times {
            let terms = terms();
            let memory = self.memory.ledger().claim_with_tokens(&asked, &terms).await.unwrap();
            let postgres = self.postgres.ledger().claim_with_tokens(&asked, &terms).await.unwrap();
            for (one, other) in memory.iter().zip(&postgres) {
                if let (ClaimOutcome::Claimed(one), ClaimOutcome::Claimed(other)) = (one, other) {
                    self.tokens.push((one.token, other.token));
                }
                assert_eq!(shown(one), shown(other), "claim {ids:?}");
            }
        }
        format!("claim {ids:?} {times} times beside {company:?}")
    }

    /// An id, and the tokens of a claim that may be its own.
    fn pick(&mut self) -> Option<(IngestionId, [ClaimToken; 2])> {
        let id = *self.rng.choice(&self.ids)?;
        // Mostly a claim that is alive, else the guard is all that is tested.
        let (one, other) = *self.rng.choice(self.tokens.iter().rev().take(6))?;
        Some((id, [one, other]))
    }

    /// The holder of a row, if it has one; else as `pick`.
    async fn holder(&mut self) -> Option<(IngestionId, [ClaimToken; 2])> {
        let (id, tokens) = self.pick()?;
        let current = self.memory.row(id).await.and_then(|row| row.claim_token);
        match self.tokens.iter().find(|(one, _)| Some(*one) == current) {
            Some((one, other)) if self.rng.u32(0..5) > 0 => Some((id, [*one, *other])),
            _ => Some((id, tokens)),
        }
    }

    async fn renew(&mut self) -> String {
        let mut claims = Vec::new();
        for _ in 0..self.rng.usize(1..4) {
            claims.extend(self.holder().await);
        }
        let lease = Duration::from_millis(self.rng.u64(1..600_000));
        let (has_progress, is_over) = (self.rng.bool(), self.rng.u8(..4) == 0);
        both!(self, |at, side| {
            let renewed = |id, token| LeaseRenewal { has_progress, is_over, ..renewal(id, token) };
            let claims: Vec<_> =
                claims.iter().map(|(id, tokens)| renewed(*id, tokens[side])).collect();
            at.ledger().renew_leases(&claims, lease).await.unwrap()
        });
        format!("renew {claims:?} {lease:?}")
    }

    async fn give_back(&mut self) -> String {
        let Some((id, tokens)) = self.holder().await else { return "nothing".to_owned() };
        let faults = [
            Fault::Transient,
            Fault::Unavailable,
            Fault::Interrupted,
            Fault::Missing,
            Fault::Paused,
        ];
        let fault = *self.rng.choice(&faults).unwrap();
        let how = failed(fault, self.rng.bool(), self.rng.u64(0..4) * 60);
        both!(self, |at, side| at.ledger().release_claim(id, tokens[side], &how).await.unwrap());
        format!("give back {id} {how:?}")
    }

    async fn record(&mut self) -> String {
        let Some((id, tokens)) = self.holder().await else { return "nothing".to_owned() };
        let reason = self.rng.bool().then(|| *self.rng.choice(&OutcomeReason::ALL).unwrap());
        let end = record(reason);
        both!(self, |at, side| at.ledger().record_result(id, tokens[side], &end).await.unwrap());
        format!("record {id} {reason:?}")
    }

    async fn save(&mut self) -> String {
        let Some((id, tokens)) = self.holder().await else { return "nothing".to_owned() };
        let artefact = ArtefactRef { path: "p".to_owned(), identity: "i".to_owned() };
        match self.rng.u32(0..3) {
            0 => {
                let stage = *self.rng.choice(&IngestionStage::ALL).unwrap();
                both!(self, |at, side| {
                    let news = LeaseRenewal { new_stage: Some(stage), ..renewal(id, tokens[side]) };
                    let lease = Duration::from_secs(300);
                    at.ledger().renew_leases(&[news], lease).await.unwrap()
                });
            }
            1 => {
                both!(self, |at, side| {
                    at.ledger().save_extraction(id, tokens[side], &artefact).await.unwrap()
                });
            }
            _ => {
                let sha256 = "a".repeat(64);
                let path = "ingestions/x/preprocessed.pdf".to_owned();
                let preprocessed =
                    self.rng.bool().then(|| FileRef { path, sha256: "b".repeat(64) });
                let saved =
                    StoredTranscript { artefact, quality: 0.7, sha256, pages: 3, preprocessed };
                both!(self, |at, side| {
                    at.ledger().save_transcription(id, tokens[side], &saved).await.unwrap()
                });
            }
        }
        format!("save {id}")
    }

    async fn operate(&mut self) -> String {
        let Some(id) = self.rng.choice(&self.ids).copied() else { return "nothing".to_owned() };
        if self.rng.bool() {
            both!(self, |at, _side| at.cancel(id).await);
            return format!("cancel {id}");
        }
        both!(self, |at, _side| at.reopen(id).await);
        format!("reopen {id}")
    }

    async fn ask(&mut self) -> String {
        let Some((id, tokens)) = self.holder().await else { return "nothing".to_owned() };
        both!(self, |at, side| at.ledger().read_back(id, tokens[side]).await.unwrap());
        let document = self.memory.row(id).await.unwrap().document_id;
        both!(self, |at, _side| {
            let keys = DuplicateKeys::new("müller", "r1").unwrap();
            at.ledger().find_duplicate(document, None, &keys).await.unwrap().is_some()
        });
        format!("ask {id}")
    }

    /// Every row and attempt is the same in both.
    async fn compare(&self) -> Result<(), String> {
        let memory = self.memory.everything(&self.ids).await;
        let postgres = self.postgres.everything(&self.ids).await;
        for ((id, one), other) in self.ids.iter().zip(memory).zip(postgres) {
            let (one, other) = (self.neutral(one, 0), self.neutral(other, 1));
            if one != other {
                return Err(format!("{id}: in memory {one:#?}\nin Postgres {other:#?}"));
            }
        }
        Ok(())
    }

    /// Row and attempts with each token replaced by its place in the history.
    fn neutral(
        &self,
        all: (LedgerRow, Vec<LedgerAttempt>),
        side: usize,
    ) -> (LedgerRow, Vec<LedgerAttempt>) {
        let (mut row, mut attempts) = all;
        let place = |token: ClaimToken| {
            let is_it = |pair: &(ClaimToken, ClaimToken)| [pair.0, pair.1][side] == token;
            let place = self.tokens.iter().position(is_it).unwrap();
            ClaimToken(uuid::Uuid::from_u128(place as u128))
        };
        row.claim_token = row.claim_token.map(place);
        attempts.iter_mut().for_each(|attempt| attempt.token = place(attempt.token));
        (row, attempts)
    }
}

/// A claim's answer without what must differ.
fn shown(claim: &ClaimOutcome) -> String {
    match claim {
        ClaimOutcome::Claimed(claimed) => {
            let mut claimed = (**claimed).clone();
            claimed.token = ClaimToken(uuid::Uuid::nil());
            let deadline = std::time::Instant::now();
            format!(
                "{:?}",
                docmill_core::model::ClaimedIngestion { lease_until: deadline, ..claimed }
            )
            .split("lease_until")
            .next()
            .unwrap()
            .to_owned()
        }
        other => format!("{other:?}"),
    }
}

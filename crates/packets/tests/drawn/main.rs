//! Packets drawn from the pages of `tests/corpus`, as print and as scans with misread words: where a
//! file is cut without a person, the cuts are right; and a single document is left alone.
//! `docs/lab` has the figures; `--nocapture` prints them. PACKETS=100 draws as many as they are of.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that prints its figures"
)]

mod documents;

use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;
use docmill_packets::{PacketJudgement, PageSigns, judge_packet};
use fastrand::Rng;

use documents::{Corpus, PacketDocument, page_text};

/// Packets of each sort, unless PACKETS says otherwise.
const PACKETS: usize = 8;

/// Outcomes of packets.
#[derive(Debug, Default)]
struct Figures {
    packets: usize,
    asked: usize,
    left_whole: usize,
    boundaries: usize,
    /// Of packets that are cut without a person.
    cuts: usize,
    right_cuts: usize,
    missed: usize,
    /// Of packets that a person is asked about.
    proposed: usize,
    right_proposed: usize,
    asked_boundaries: usize,
}

impl Figures {
    fn add(&mut self, judged: &PacketJudgement, firsts: &[u32]) {
        let cuts: Vec<u32> = judged.parts().iter().skip(1).map(|part| part.first).collect();
        let right = cuts.iter().filter(|cut| firsts.contains(cut)).count();
        self.packets += 1;
        self.boundaries += firsts.len();
        if judged.is_doubtful() {
            self.asked += 1;
            self.asked_boundaries += firsts.len();
            self.proposed += cuts.len();
            self.right_proposed += right;
        } else {
            self.left_whole += usize::from(cuts.is_empty() && !firsts.is_empty());
            self.cuts += cuts.len();
            self.right_cuts += right;
            self.missed += firsts.len() - right;
        }
    }

    fn precision(&self) -> f64 {
        if self.cuts == 0 { 1.0 } else { self.right_cuts as f64 / self.cuts as f64 }
    }
}

/// Reads and judges documents one behind the other; the first pages of all but the first.
fn judge(
    documents: &[PacketDocument],
    kinds: &KindSet,
    misreading: Option<&mut Rng>,
) -> (PacketJudgement, Vec<u32>) {
    let mut noise = misreading;
    let (mut signs, mut firsts) = (Vec::new(), Vec::new());
    for document in documents {
        firsts.push(signs.len() as u32 + 1);
        for drawing in &document.pages {
            let mut page = page_text(drawing);
            if let Some(random) = noise.as_deref_mut() {
                documents::misread(&mut page, random);
            }
            signs.push(PageSigns::read(&page, kinds));
        }
    }
    (judge_packet(&signs), firsts.split_off(1))
}

#[test]
fn packets_that_are_cut_without_a_person_are_cut_where_documents_end() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let corpus = Corpus::read();
    let packets = std::env::var("PACKETS").map_or(PACKETS, |count| count.parse().unwrap());
    for (name, scanned, seed) in [("print", false, 54), ("scan", true, 55)] {
        let mut figures = Figures::default();
        let mut random = Rng::with_seed(seed);
        for _ in 0..packets {
            let count = random.usize(2..=40);
            let documents = corpus.draw_packet(count, &mut random);
            let mut noise = Rng::with_seed(random.u64(..));
            let (judged, firsts) = judge(&documents, &kinds, scanned.then_some(&mut noise));
            figures.add(&judged, &firsts);
            if !judged.is_doubtful() || std::env::var_os("PACKETS_ALL").is_some() {
                report_wrong(&judged, &firsts, &documents);
            }
        }
        println!("{name}: {figures:?}, precision {:.4}", figures.precision());
        assert!(figures.precision() >= 0.999, "{name}: {figures:?}");
        let truth = figures.right_cuts + figures.missed;
        // On scans more is left to a person; the laboratory has the figures.
        assert!(
            scanned || figures.missed * 20 <= truth,
            "{name}: documents are joined to others: {figures:?}"
        );
    }
}

/// Prints what is wrong, for whoever works on the weights.
fn report_wrong(judged: &PacketJudgement, firsts: &[u32], documents: &[PacketDocument]) {
    let mut names = Vec::new();
    for document in documents {
        names.extend(document.pages.iter().map(|_| document.name.as_str()));
    }
    for boundary in &judged.boundaries {
        let at = boundary.page as usize - 1;
        let truth = firsts.contains(&boundary.page);
        let cut = format!("{:?}", boundary.verdict) == "Cut";
        if truth != cut {
            println!(
                "  {} -> {}: {truth} {:?} {:?}",
                names[at - 1],
                names[at],
                boundary.verdict,
                boundary.signs
            );
        }
    }
    for first in firsts {
        if !judged.boundaries.iter().any(|boundary| boundary.page == *first) {
            let at = *first as usize - 1;
            println!("  joined: {} -> {}", names[at - 1], names[at]);
        }
    }
}

#[test]
fn a_single_document_is_never_cut_and_nobody_is_asked_about_it() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let corpus = Corpus::read();
    let mut random = Rng::with_seed(56);
    let (mut all, mut asked, mut cut) = (0, 0, 0);
    for document in corpus.single_documents(&mut random) {
        for scanned in [false, true] {
            let mut noise = Rng::with_seed(random.u64(..));
            let one = std::slice::from_ref(&document);
            let (judged, _) = judge(one, &kinds, scanned.then_some(&mut noise));
            all += 1;
            asked += usize::from(judged.is_doubtful());
            cut += usize::from(judged.has_certain_cut());
            if !judged.boundaries.is_empty() {
                println!("  {} scanned {scanned}: {:?}", document.name, judged.boundaries);
            }
        }
    }
    println!("single documents of several pages: {all}, asked {asked}, cut {cut}");
    assert_eq!(cut, 0, "single documents are cut");
    assert!(asked * 50 <= all, "asked about {asked} of {all}");
}

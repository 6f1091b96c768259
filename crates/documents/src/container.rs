//! Containers: files that are no document themselves but hold some. Mails (RFC 5322, Outlook's `.msg`
//! and `winmail.dat`), ZIP archives, PDF portfolios, and files attached to a PDF or an e-invoice.
//!
//! A container is taken apart one level at a time: what is found may be a container itself and then
//! becomes one document more (`limits.container_depth`). Bounds: `limits.container_members` and
//! `limits.container_bytes` of all members, `limits.document_bytes` of each, [`MAX_EXPANSION`] of a
//! compressed one. A container over one of them is refused as a whole: a part of it would look complete.
//!
//! Names are data: [`member_name`] keeps their last part, without control characters and without marks
//! that turn the direction of text. Signatures are not verified and not members.
//! Not read: encrypted parts, RTF as the only text of a mail, archives other than ZIP.

mod mail;
mod mail_text;
mod member_name;
mod outlook;
mod tnef;
mod zip_archive;

use bytes::Bytes;

use crate::envelope;
use crate::image::format::DocumentFormat;
use crate::refusal::{PageRefusal, catch_decoder};
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

pub(crate) use member_name::{clean_name, is_clean_name};

/// Compressed members expand to so many times the bytes of their container at most, beyond
/// [`FREE_EXPANSION_BYTES`].
const MAX_EXPANSION: u64 = 100;
/// However small a container is, its members may have so many bytes.
const FREE_EXPANSION_BYTES: u64 = 16 << 20;

/// How a container is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerForm {
    /// A mail, or a part of one (RFC 5322, RFC 2045).
    Mail,
    /// A message as Outlook stores it (MS-OXMSG).
    Outlook,
    /// `winmail.dat` (MS-OXTNEF).
    Tnef,
    /// A ZIP archive that is no Office document.
    Zip,
}

impl ContainerForm {
    /// The form, by the first bytes and by names that the format itself prescribes.
    pub(crate) fn sniff(bytes: &[u8]) -> Option<Self> {
        if outlook::is_message(bytes) {
            Some(Self::Outlook)
        } else if tnef::is_tnef(bytes) {
            Some(Self::Tnef)
        } else if zip_archive::is_archive(bytes) {
            Some(Self::Zip)
        } else {
            mail::is_mail(bytes).then_some(Self::Mail)
        }
    }
}

/// Whether the first bytes of a file are those of a container: a mail, an archive, a message of Outlook's
/// (or another file of its form, whose end says what it is).
pub fn may_be_container(start: &[u8]) -> bool {
    outlook::is_compound(start) || ContainerForm::sniff(start).is_some()
}

/// A document found in a container.
#[derive(Debug)]
pub(crate) struct ContainerMember {
    /// Its name, cleaned; `None`: it has none.
    pub(crate) name: Option<String>,
    /// Its size in bytes.
    pub(crate) size: u64,
    content: MemberContent,
}

#[derive(Debug)]
enum MemberContent {
    Bytes(Vec<u8>),
    /// An entry of the archive, by its number: extracted when it is asked for.
    ZipEntry(usize),
}

/// The members of a document, and the bytes of the container itself, within its envelopes.
#[derive(Debug, Default)]
pub(crate) struct FoundMembers {
    pub(crate) members: Vec<ContainerMember>,
    /// Whether there are more, which are not taken: too many, or too large.
    pub(crate) are_left_out: bool,
    container: Bytes,
}

impl FoundMembers {
    /// Documents were found and none is taken.
    pub(crate) fn left_out() -> Self {
        Self { are_left_out: true, ..Self::default() }
    }

    /// The bytes of the member at this place.
    ///
    /// # Errors
    /// `corrupt`: there is none, or it cannot be extracted.
    pub(crate) fn content(&self, index: u32) -> Result<Vec<u8>, PageRefusal> {
        let member = usize::try_from(index).ok().and_then(|index| self.members.get(index));
        let member =
            member.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "no such member"))?;
        match &member.content {
            MemberContent::Bytes(bytes) => Ok(bytes.clone()),
            MemberContent::ZipEntry(entry) => {
                catch_decoder(|| zip_archive::extract(&self.container, *entry, member.size))
            }
        }
    }
}

/// Members as they are found, within the limits.
pub(crate) struct MemberCollector<'a> {
    limits: &'a LimitsConfig,
    members: Vec<ContainerMember>,
    bytes: u64,
    /// Bytes that they may have, all together.
    most_bytes: u64,
}

impl<'a> MemberCollector<'a> {
    /// For the members of a container with so many bytes.
    pub(crate) fn new(limits: &'a LimitsConfig, container_bytes: usize) -> Self {
        let own = u64::try_from(container_bytes).unwrap_or(u64::MAX);
        let expanded = own.saturating_mul(MAX_EXPANSION).saturating_add(FREE_EXPANSION_BYTES);
        let most_bytes = limits.container_bytes.0.min(expanded);
        Self { limits, members: Vec::new(), bytes: 0, most_bytes }
    }

    /// Bytes that another member may have.
    fn room(&self) -> u64 {
        self.limits.document_bytes.0.min(self.most_bytes.saturating_sub(self.bytes))
    }

    /// Adds a member with these bytes; `name`: as the container has it.
    pub(crate) fn add(&mut self, name: Option<&str>, bytes: Vec<u8>) -> Result<(), PageRefusal> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.add_content(name, size, MemberContent::Bytes(bytes))
    }

    fn add_content(
        &mut self,
        name: Option<&str>,
        size: u64,
        content: MemberContent,
    ) -> Result<(), PageRefusal> {
        let most = usize::try_from(self.limits.container_members).unwrap_or(usize::MAX);
        if self.members.len() >= most {
            let detail = format!("more documents in it than limits.container_members ({most})");
            return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        if size > self.room() {
            return Err(self.too_large());
        }
        self.bytes = self.bytes.saturating_add(size);
        self.members.push(ContainerMember { name: name.and_then(clean_name), size, content });
        Ok(())
    }

    fn too_large(&self) -> PageRefusal {
        let LimitsConfig { document_bytes, container_bytes, .. } = self.limits;
        let detail = format!(
            "documents in it are larger than limits.document_bytes ({}), than limits.container_bytes ({}) \
             together, or than {MAX_EXPANSION} times the container",
            document_bytes.0, container_bytes.0
        );
        PageRefusal::new(OutcomeReason::TooLarge, detail)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether there are only pictures as small as a logo: the text of a mail may be its document
    /// then.
    fn has_pictures_alone(&self) -> bool {
        self.members.iter().all(|member| match &member.content {
            MemberContent::Bytes(bytes) => mail::is_small_picture(bytes),
            MemberContent::ZipEntry(_) => false,
        })
    }

    /// All of them; `container`: where those lie that are extracted later.
    pub(crate) fn finish(self, container: Bytes) -> FoundMembers {
        FoundMembers { members: self.members, are_left_out: false, container }
    }
}

fn is_document_or_container(bytes: &[u8]) -> bool {
    DocumentFormat::is_bare_document(bytes) || ContainerForm::sniff(bytes).is_some()
}

/// Whether an attached file is a separate document. An e-invoice is not: it belongs to the pages,
/// or is another form of the document that it is attached to.
pub(crate) fn is_attached_document(content: &[u8]) -> bool {
    let format = DocumentFormat::sniff_signed(content);
    let is_invoice = matches!(format, Some(DocumentFormat::Xml | DocumentFormat::Edifact));
    !is_invoice && (format.is_some() || ContainerForm::sniff(content).is_some())
}

/// The members of a container, also of one within envelopes; `None`: it is none, or an envelope of one
/// document.
///
/// # Errors
/// `too_large`, `corrupt`, `encrypted`; `empty`: nothing in it is a document.
pub(crate) fn find_members(
    bytes: &Bytes,
    limits: &LimitsConfig,
) -> Result<Option<FoundMembers>, PageRefusal> {
    let Some((form, container)) = find_container(bytes, limits) else { return Ok(None) };
    let mut found = MemberCollector::new(limits, container.len());
    let added = catch_decoder(|| match form {
        ContainerForm::Mail => mail::add_members(&container, &mut found),
        ContainerForm::Outlook => outlook::add_members(&container, &mut found),
        ContainerForm::Tnef => tnef::add_members(&container, &mut found),
        ContainerForm::Zip => zip_archive::add_members(&container, &mut found),
    });
    // A PDF behind the preamble of a gateway may begin like a mail.
    let may_be_pdf = form == ContainerForm::Mail && DocumentFormat::is_bare_document(&container);
    if may_be_pdf && (added.is_err() || found.is_empty()) {
        return Ok(None);
    }
    added?;
    if found.is_empty() {
        let detail = "no document in it: no attachment, and no text that states an amount";
        return Err(PageRefusal::new(OutcomeReason::Empty, detail));
    }
    Ok(Some(found.finish(container)))
}

/// The container, without the envelopes around it. An envelope of exactly one document is none, and one
/// that cannot be opened as such may be one.
fn find_container(bytes: &Bytes, limits: &LimitsConfig) -> Option<(ContainerForm, Bytes)> {
    if envelope::is_envelope(bytes, is_document_or_container) {
        let most = limits.document_bytes.0;
        let opened = catch_decoder(|| {
            envelope::open_envelopes(bytes.clone(), most, is_document_or_container)
        });
        if let Ok(inner) = opened {
            if let Some(form) = ContainerForm::sniff(&inner) {
                return Some((form, inner));
            }
            if DocumentFormat::is_bare_document(&inner) {
                return None;
            }
        }
    }
    ContainerForm::sniff(bytes).map(|form| (form, bytes.clone()))
}

#[cfg(test)]
mod tests;

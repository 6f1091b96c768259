//! A vision model as reader of pages: any model behind the port `llm`, shown one page at a time.
//!
//! It never reads alone. Each picture comes with this machine's reading of the same pixels, the
//! local reading, and the model's words are aligned to it. Positions and confidences are the local
//! reader's, digits count only where both agree, and words of the model alone are marked. A reading
//! that is cut, loops, breaks its form, invents, omits, or is of another page is refused as a whole
//! with its reason. The next provider then reads the page, and the call is booked as paid.
//! Instructions printed on a page can change only the model's own words, which are compared with
//! the local reading like any others.
//!
//! Not promised: that words of the model alone are on the page. Therefore they are marked.

mod align;
mod judge;
mod loops;
mod markdown;
mod match_words;
mod recipe;

use std::sync::Arc;

use async_trait::async_trait;

use crate::sandbox::CpuPool;

use super::{ProviderCallLimits, RemoteOcrProvider};
use docmill_core::config::{VisionConfig, VisionRecipe};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{PagePicture, PageUsage, PictureFit, PictureRule, ProviderReading};
use docmill_llm::{Llm, Prompt, PromptPicture};
use judge::ReplyJudge;
use recipe::PageRecipe;

/// Most bytes of a picture: with Bedrock a picture has at most 3.75 MB, and at Anthropic 5 MB as
/// base64.
const MAX_BYTES: usize = 3_750_000;
/// Raise it with every change of prompts, alignment or refusals that can change what is read.
const VERSION: u32 = 1;

/// Reads pages by a vision model, each beside the local reading.
pub struct VisionOcr {
    llm: Arc<dyn Llm>,
    recipe: PageRecipe,
    fit: PictureFit,
    rule: PictureRule,
    max_output_tokens: u32,
    /// Minimum prompt tokens that prove the picture was counted, as a share of the vendor's rule; 0
    /// where the server's counting is unknown.
    counted_share: f64,
    /// Pool for alignment: a hostile reply takes much CPU time.
    pool: Arc<CpuPool>,
}

impl VisionOcr {
    /// The provider's name in the configuration.
    pub const NAME: &'static str = "vision";

    /// Over a model that is set up already.
    pub fn new(llm: Arc<dyn Llm>, config: &VisionConfig, pool: Arc<CpuPool>) -> Self {
        Self {
            llm,
            recipe: PageRecipe::from_config(config.recipe),
            fit: config.picture_fit(),
            rule: config.picture_rule(),
            max_output_tokens: config.max_output_tokens,
            counted_share: judge::counted_share(config),
            pool,
        }
    }

    /// The lines of words of a whole reply, before they are checked against a local reading; `None` if
    /// its form is not that of `recipe`.
    pub fn parse_reply(recipe: VisionRecipe, text: &str) -> Option<Vec<Vec<String>>> {
        PageRecipe::from_config(recipe).parse_reply(text).map(|page| page.lines)
    }
}

#[async_trait]
impl RemoteOcrProvider for VisionOcr {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn identity(&self) -> String {
        let (provider, model, recipe) = (self.llm.provider(), self.llm.model(), self.recipe.name());
        let PictureFit { longest_side, pixels, .. } = self.fit;
        format!("vision {VERSION}: {provider} {model}; {recipe}; {longest_side} {pixels}")
    }

    fn call_limits(&self) -> ProviderCallLimits {
        ProviderCallLimits { pages: 1, bytes: MAX_BYTES }
    }

    fn picture_fit(&self) -> Option<PictureFit> {
        Some(self.fit)
    }

    fn is_down(&self) -> bool {
        self.llm.is_down()
    }

    async fn ping(&self) -> Result<()> {
        self.llm.ping().await
    }

    async fn read_pictures(
        &self,
        pictures: &[PagePicture],
    ) -> Result<(Vec<ProviderReading>, PageUsage)> {
        let [PagePicture { facts, image, local_reading: Some(local) }] = pictures else {
            return Err(Error::internal("a vision model reads one page beside the local reading"));
        };
        let asked = Prompt {
            max_output_tokens: self.max_output_tokens,
            pictures: vec![PromptPicture::new(Arc::new(image.clone()), self.rule)],
            ..self.recipe.prompt()
        };
        let reply = self.llm.complete(&asked).await.map_err(page_fault)?;
        let model = self.llm.model().to_owned();
        let (tokens, class) = (reply.usage, self.llm.price_class());
        let usage = PageUsage { provider: Self::NAME, model, pages: 1, tokens, class };
        let judge = ReplyJudge {
            recipe: self.recipe,
            counted_share: self.counted_share,
            map: facts.text.clone(),
            local: local.page.clone(),
        };
        let reading = self.pool.run(move || judge.judge_reply(&asked, &reply)).await?;
        Ok((vec![reading], usage))
    }
}

/// A server that does not take the request may take one with another picture: the next reader is
/// asked for this page.
fn page_fault(error: Error) -> Error {
    match error.fault {
        Fault::Internal => Error { fault: Fault::Rejected, ..error },
        _ => error,
    }
}

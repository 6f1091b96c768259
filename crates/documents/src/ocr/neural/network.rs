//! One network: from numbers to numbers.
//!
//! Runs on a thread of its own, started before the process gave up starting threads. The page
//! thread that waits for it may run parts of other pages meanwhile, never a whole page
//! (`sandbox::pool`).

use std::sync::Arc;

use rten::{Model, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use docmill_core::fault::{Error, Result};

/// A network with its weights.
pub(super) struct NeuralNetwork {
    model: Model,
    name: &'static str,
}

/// The output of a network.
pub(super) struct NetworkOutput {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The values, the last dimension running fastest.
    pub values: Vec<f32>,
}

impl NeuralNetwork {
    /// From the bytes of an ONNX file; `name` is for messages.
    ///
    /// # Errors
    /// The bytes are no network that can be run here.
    pub(super) fn load(name: &'static str, bytes: Vec<u8>) -> Result<Self> {
        let model = Model::load(bytes).map_err(|error| {
            Error::internal(format!("the weights of the {name} cannot be used")).with_source(error)
        })?;
        Ok(Self { model, name })
    }

    /// Runs it once on `thread`.
    ///
    /// # Errors
    /// The input has a shape that the network does not take; no memory.
    pub(super) fn run(
        &self,
        input: &NdTensor<f32, 4>,
        thread: &Arc<ThreadPool>,
    ) -> Result<NetworkOutput> {
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(thread)));
        let output = self.model.run_one(ValueOrView::from(input.view()), Some(options));
        let output = output.map_err(|error| self.run_error().with_source(error))?;
        let tensor = output.into_tensor::<f32>().ok_or_else(|| self.run_error())?;
        Ok(NetworkOutput { shape: tensor.shape().to_vec(), values: tensor.into_data() })
    }

    fn run_error(&self) -> Error {
        Error::internal(format!("the {} cannot be run", self.name))
    }
}

//! One network: from numbers to numbers.
//!
//! Runs by ONNX Runtime on the thread that asks. Its library lies beside the weights; library and
//! networks are loaded before the process is confined, because loading maps executable memory.
//! Running them does not, and starts no thread; nor does loading with [`TELEMETRY_SWITCH`]. A
//! network has no arena, and takes its memory in one piece for each run: it goes back to the system
//! after that, so that a large page leaves nothing behind.

use std::path::Path;
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::ep;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;
use parking_lot::Mutex;

use crate::runtime_telemetry::TELEMETRY_SWITCH;
use docmill_core::fault::{Error, Result};

/// The runtime, of which a process has one.
static RUNTIME: OnceLock<Environment> = OnceLock::new();
/// Held while the runtime is loaded.
static LOADING: Mutex<()> = Mutex::new(());

/// A network with its weights.
pub(super) struct NeuralNetwork {
    session: Session,
    name: &'static str,
}

/// The input of a network: one picture.
pub(super) struct NetworkInput {
    /// Length of each dimension: pictures, colours, rows, columns.
    pub shape: [usize; 4],
    /// The values, the last dimension running fastest.
    pub values: Vec<f32>,
}

/// The output of a network.
pub(super) struct NetworkOutput {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The values, the last dimension running fastest.
    pub values: Vec<f32>,
}

/// The runtime of this process; the first call loads it from this library.
///
/// # Errors
/// The file is no library of a version that is known here; the environment lacks
/// [`TELEMETRY_SWITCH`], which this process can no longer set for all of its threads.
pub(super) fn load_runtime(library: &Path) -> Result<&'static Environment> {
    let _one_loads = LOADING.lock();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let (name, value) = TELEMETRY_SWITCH;
    if std::env::var_os(name).is_none_or(|set| set != value) {
        return Err(Error::internal(format!("ONNX Runtime needs {name}={value}")));
    }
    let place = library.display();
    let builder = ort::init_from(library)
        .map_err(|error| Error::internal(format!("cannot load `{place}`: {error}")))?;
    let runtime = builder.with_name("docmill").with_telemetry(false).build().map_err(|error| {
        Error::internal(format!("cannot start the runtime of `{place}`")).with_source(error)
    })?;
    // The cut recogniser still states the shape of its output before the cut, which it warns of.
    runtime.set_log_level(LogLevel::Error);
    Ok(RUNTIME.get_or_init(|| runtime))
}

impl NeuralNetwork {
    /// From the bytes of an ONNX file; `name` is for messages.
    ///
    /// # Errors
    /// The bytes are no network that can be run here.
    pub(super) fn load(runtime: &Environment, name: &'static str, bytes: &[u8]) -> Result<Self> {
        let session = one_thread(runtime).and_then(|mut builder| builder.commit_from_memory(bytes));
        let session = session.map_err(|error| {
            Error::internal(format!("the weights of the {name} cannot be used")).with_source(error)
        })?;
        Ok(Self { session, name })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// The input has a shape that the network does not take; no memory.
    pub(super) fn run(&mut self, input: &NetworkInput) -> Result<NetworkOutput> {
        let name = self.name;
        let output = run_session(&mut self.session, input);
        output.map_err(|error| {
            Error::internal(format!("the {name} cannot be run")).with_source(error)
        })
    }
}

fn run_session(session: &mut Session, input: &NetworkInput) -> ort::Result<NetworkOutput> {
    let tensor = TensorRef::from_array_view((input.shape, input.values.as_slice()))?;
    let outputs = session.run(ort::inputs![tensor])?;
    let (_, first) = outputs.iter().next().ok_or_else(|| ort::Error::new("there is no output"))?;
    let (shape, values) = first.try_extract_tensor::<f32>()?;
    let shape = shape.iter().map(|length| usize::try_from(*length).unwrap_or(0)).collect();
    Ok(NetworkOutput { shape, values: values.to_vec() })
}

/// Settings of sessions that start no thread and keep no memory between runs.
fn one_thread(runtime: &Environment) -> ort::Result<SessionBuilder> {
    let builder = Session::builder(runtime)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(1)?
        .with_inter_threads(1)?
        .with_memory_pattern(true)?
        .with_execution_providers([ep::CPU::default().with_arena_allocator(false).build()])?;
    Ok(builder)
}

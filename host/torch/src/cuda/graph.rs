//! CUDA graphs (`shim/cuda/graph.cpp`): operations that are recorded once and launched together from then on.

use super::symbol;
use crate::{Result, checked};
use std::ffi::{c_char, c_int, c_void};
use tch::TchError;

/// Records graphs on a device. They share their memory, so that the results of one last until the next is launched.
#[derive(Debug)]
pub struct Recorder {
    recorder: *mut c_void,
    functions: Functions,
}

// SAFETY: the shim's recorder belongs to no thread.
unsafe impl Send for Recorder {}

/// Recorded operations. They read and write the memory of the tensors that they were recorded with.
#[derive(Debug)]
pub struct Graph {
    graph: *mut c_void,
    functions: Functions,
}

// SAFETY: a graph belongs to no thread.
unsafe impl Send for Graph {}

/// A step that was run and recorded.
#[derive(Debug)]
pub struct Recorded<T, E> {
    /// The result of the run.
    pub run: T,
    /// The graph, and the result that each launch of it writes; or why it cannot be recorded.
    pub graph: std::result::Result<(Graph, T), E>,
}

/// A function of the shim on a recorder or a graph.
type On = unsafe extern "C" fn(*mut c_void) -> *mut c_char;
/// One that frees it.
type Free = unsafe extern "C" fn(*mut c_void);
/// One that makes a graph.
type Begin = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> *mut c_char;
/// One that ends a graph's recording.
type End = unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_char;
/// One that makes a recorder for a device.
type New = unsafe extern "C" fn(c_int, *mut *mut c_void) -> *mut c_char;

#[derive(Debug, Clone, Copy)]
struct Functions {
    enter: On,
    leave: On,
    renew: On,
    begin: Begin,
    end: End,
    launch: On,
    free_recorder: Free,
    free_graph: Free,
}

impl Functions {
    fn load() -> Result<Self> {
        // SAFETY: these are the signatures in the shim.
        unsafe {
            Ok(Self {
                enter: symbol(c"gavel_cuda_recorder_enter")?,
                leave: symbol(c"gavel_cuda_recorder_leave")?,
                renew: symbol(c"gavel_cuda_recorder_renew")?,
                begin: symbol(c"gavel_cuda_graph_begin")?,
                end: symbol(c"gavel_cuda_graph_end")?,
                launch: symbol(c"gavel_cuda_graph_launch")?,
                free_recorder: symbol(c"gavel_cuda_recorder_free")?,
                free_graph: symbol(c"gavel_cuda_graph_free")?,
            })
        }
    }
}

impl Recorder {
    /// A recorder for the GPU of this number.
    ///
    /// # Errors
    /// CUDA is missing, or the device fails.
    pub fn new(device: usize) -> Result<Self> {
        let functions = Functions::load()?;
        // SAFETY: this is the function's signature.
        let new: New = unsafe { symbol(c"gavel_cuda_recorder")? };
        let mut recorder = std::ptr::null_mut();
        // SAFETY: the shim writes the recorder, or gives a message.
        checked(unsafe { new(device as c_int, &mut recorder) })?;
        Ok(Self { recorder, functions })
    }

    /// Runs `step`, then runs it again to record it. `step` may use no tensor of the host, and must not wait for the
    /// device.
    ///
    /// # Errors
    /// The errors of `step`.
    pub fn record<T, E: From<TchError>>(
        &mut self,
        mut step: impl FnMut() -> std::result::Result<T, E>,
    ) -> std::result::Result<Recorded<T, E>, E> {
        // SAFETY: the recorder lives.
        checked(unsafe { (self.functions.enter)(self.recorder) })?;
        // The first run also makes what libraries keep for this stream, which is not recorded.
        let done = step().map(|run| Recorded { run, graph: self.second(&mut step) });
        // SAFETY: as above.
        let left = checked(unsafe { (self.functions.leave)(self.recorder) });
        let done = done?;
        left?;
        Ok(done)
    }

    /// Takes other memory for the graphs that follow, once all that were recorded are dropped, and gives the old memory
    /// back to the driver, with all else that no tensor uses.
    ///
    /// # Errors
    /// The device fails.
    pub fn renew(&mut self) -> Result<()> {
        // SAFETY: the recorder lives.
        checked(unsafe { (self.functions.renew)(self.recorder) })
    }

    fn second<T, E: From<TchError>>(
        &mut self,
        step: &mut impl FnMut() -> std::result::Result<T, E>,
    ) -> std::result::Result<(Graph, T), E> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the shim writes the graph, or gives a message.
        checked(unsafe { (self.functions.begin)(self.recorder, &mut graph) })?;
        let graph = Graph { graph, functions: self.functions };
        let result = step();
        // SAFETY: the graph lives, and recording began; it ends whatever the step did.
        let ended = checked(unsafe { (self.functions.end)(self.recorder, graph.graph) });
        let result = result?;
        ended?;
        Ok((graph, result))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: it was made by the shim, and nothing uses it any more.
        unsafe { (self.functions.free_recorder)(self.recorder) }
    }
}

impl Graph {
    /// Launches what was recorded; the host does not wait for it.
    ///
    /// # Errors
    /// The device fails.
    pub fn launch(&self) -> Result<()> {
        // SAFETY: the graph lives.
        checked(unsafe { (self.functions.launch)(self.graph) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it was made by the shim, and nothing uses it any more.
        unsafe { (self.functions.free_graph)(self.graph) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind, Tensor};

    #[test]
    fn a_graph_repeats_what_was_recorded_or_it_is_said_why_not() {
        match Recorder::new(0) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(".so") || error.contains("CUDA error"), "{error}");
            }
            Ok(mut recorder) => {
                let mut x = Tensor::ones([3], (Kind::Float, Device::Cuda(0)));
                let Recorded { run, graph } = recorder.record::<_, TchError>(|| x.f_mul(&x)).unwrap();
                let (graph, result) = graph.unwrap();
                let _ = x.fill_(3.0);
                graph.launch().unwrap();
                let sums = [&run, &result].map(|x| f64::try_from(x.sum(None)).unwrap());
                assert_eq!(sums, [3.0, 27.0]);
                // Another one, after all are gone.
                drop((graph, result));
                recorder.renew().unwrap();
                let again = recorder.record::<_, TchError>(|| x.f_add(&x)).unwrap();
                again.graph.unwrap().0.launch().unwrap();
                // A step that waits for the device cannot be recorded, and the next one can.
                let waits = recorder.record::<_, TchError>(|| x.f_double_value(&[0])).unwrap();
                assert!(waits.graph.is_err());
                assert!(recorder.record::<_, TchError>(|| x.f_add(&x)).unwrap().graph.is_ok());
            }
        }
    }
}

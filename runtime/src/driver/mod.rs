//! NVIDIA's driver: small types that own what they free, over the raw functions.
//!
//! | file | has |
//! |---|---|
//! | `driver/api.rs` | the functions themselves, behind a trait: libcuda's, or those of the fake driver of `quadrille-testing` |
//! | `driver/error.rs` | [`CudaError`] |
//! | `driver/device.rs` | devices and their primary contexts |
//! | `driver/memory.rs` | physical memory, address ranges, mappings, multicast objects, pinned host memory |
//! | `driver/stream.rs` | streams, events, graphs |
//! | `driver/module.rs` | modules and launches |
//!
//! What is freed on drop is freed in the order of the fields that hold it: mappings before memory and ranges, multicast
//! bindings before the memory that they bind, everything before its context. A failure to free is not told: there is
//! nothing that one could do about it, and whatever came before it has been told.

pub(crate) mod api;
mod device;
mod error;
mod memory;
mod module;
mod stream;

pub use device::{Context, Device};
pub use error::CudaError;
pub(crate) use memory::{Mapping, MulticastObject, Physical, Pinned, Range};
pub(crate) use module::{Function, LaunchShape, Module};
pub(crate) use stream::Event;
pub use stream::{DriverGraph, Stream};

use crate::nvrtc::Version;
use api::{Api, Libcuda, symbol};
use error::check;
use std::fmt;
use std::sync::Arc;

/// The driver, initialized.
#[derive(Clone)]
pub struct Driver {
    api: Arc<dyn Api>,
}

/// Functions that not every world needs: those for multicast objects came with CUDA 12.1.
const OPTIONAL: [&str; 5] = [
    symbol::multicast_granularity,
    symbol::multicast_create,
    symbol::multicast_add_device,
    symbol::multicast_bind_mem,
    symbol::multicast_unbind,
];

impl Driver {
    /// The driver of this machine.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`], [`CudaError::NoGpu`], [`CudaError::OldDriver`].
    pub(crate) fn of_machine() -> Result<Driver, CudaError> {
        Driver::new(Arc::new(Libcuda::load().ok_or(CudaError::NoDriver)?))
    }

    /// A driver with these functions; starts it.
    ///
    /// # Errors
    /// [`CudaError::NoGpu`], [`CudaError::OldDriver`].
    pub fn new(api: Arc<dyn Api>) -> Result<Driver, CudaError> {
        // SAFETY: may be called at any time and any number of times; the only flag is 0.
        let code = unsafe { api.init(0) };
        check(symbol::init, code, || "starting the NVIDIA driver".to_owned())?;
        let driver = Driver { api };
        let missing = driver.api.missing();
        if let Some(call) = missing.into_iter().find(|call| !OPTIONAL.contains(call)) {
            return Err(CudaError::OldDriver { driver: driver.version()?, call });
        }
        Ok(driver)
    }

    /// Returns true if it lacks a function, by its name in the library.
    pub(crate) fn lacks(&self, symbol: &'static str) -> bool {
        self.api.missing().contains(&symbol)
    }

    /// The CUDA version that it is for.
    pub(crate) fn version(&self) -> Result<Version, CudaError> {
        let mut version = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.api.driver_version(&mut version) };
        check(symbol::driver_version, code, || "asking for the driver's version".to_owned())?;
        let version = version.unsigned_abs();
        Ok(Version { major: version / 1000, minor: version % 1000 / 10 })
    }

    /// Returns the number of GPUs that it sees; at least 1.
    pub(crate) fn devices(&self) -> Result<u32, CudaError> {
        let mut count = 0;
        // SAFETY: writes one integer.
        let code = unsafe { self.api.device_count(&mut count) };
        check(symbol::device_count, code, || "counting GPUs".to_owned())?;
        match u32::try_from(count) {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(CudaError::NoGpu),
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

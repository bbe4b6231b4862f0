//! A driver for the tests, at the boundary to libcuda: it keeps account of all that is made and freed, records every call,
//! fails where it is told to, and executes kernels on virtual GPUs, one a device.
//!
//! Launches run when somebody waits for them: when a stream is synchronized, or when it is asked whether an event has come
//! to pass and every device has been given as many launches, or that is asked very often.
//! What the driver would do wrong, or hang on, is one of [`FakeDriver::violations`].
//!
//! | file | has |
//! |---|---|
//! | `fake/calls.rs` | the boundary, and with it all pointers: calls are recorded, arguments read, results written |
//! | `fake/streams.rs` | contexts, streams, capture, graphs, events |
//! | `fake/memory.rs` | memory of devices and of the host, address ranges, mappings, multicast objects, copies |
//! | `fake/launches.rs` | modules, launches, the virtual GPUs' runs |

mod calls;
mod launches;
mod memory;
mod streams;

use cudarc::driver::sys::{CUdevice_attribute, CUresult};
use memory::HostMemory;
use quadrille_runtime::CudaError;
use quadrille_runtime::internals::Driver;
use quadrille_runtime::nvrtc::Version;
use quadrille_vgpu::{Config, Execution, Fault, Launch, Machine, PtxModule};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a call comes to.
type Done<T = ()> = Result<T, CUresult>;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const GONE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// The fake driver. Clones are the same one.
#[derive(Clone)]
pub struct FakeDriver {
    state: Arc<Mutex<FakeState>>,
}

/// What the driver says of its machine.
#[derive(Clone, Debug)]
pub struct FakeMachine {
    /// The CUDA version that it is for. PTX is executed, cubins are not: one older than NVRTC gets PTX.
    pub version: Version,
    /// The number of devices.
    pub devices: i32,
    /// The name of each device.
    pub name: &'static str,
    /// Compute capability.
    pub capability: (i32, i32),
    /// Bytes that a device claims to have.
    pub memory: u64,
    /// Bytes that it really has.
    pub room: u64,
    /// True where the devices take part in multicast objects.
    pub multicast: bool,
    /// The least multiple of what multicast objects bind.
    pub multicast_granularity: u64,
    /// True where launches can be cooperative.
    pub cooperative: bool,
    /// True where memory can be mapped at a chosen address.
    pub virtual_memory: bool,
    /// Blocks that a multiprocessor holds, and multiprocessors.
    pub resident: (i32, i32),
    /// True where links carry atomics, as NVLink does.
    pub native_atomics: bool,
    /// Pairs without peer access.
    pub apart: Vec<(i32, i32)>,
    /// A pair whose copies get lost.
    pub lost: Option<(i32, i32)>,
    /// Functions that it has not.
    pub missing: Vec<&'static str>,
}

impl FakeMachine {
    fn new(devices: i32) -> FakeMachine {
        FakeMachine {
            version: Version { major: 12, minor: 9 },
            devices,
            name: "Fake H100",
            capability: (9, 0),
            // So that each rank's part of the heap is that of a virtual GPU.
            memory: if devices == 1 { 1 << 38 } else { 1 << 40 },
            room: 8 << 30,
            multicast: devices > 1,
            multicast_granularity: 2 << 20,
            cooperative: true,
            virtual_memory: true,
            resident: (2, 132),
            native_atomics: true,
            apart: Vec::new(),
            lost: None,
            missing: Vec::new(),
        }
    }

    /// What a device says of itself; all say the same.
    fn attribute(&self, which: CUdevice_attribute) -> Done<i32> {
        use CUdevice_attribute as A;
        Ok(match which {
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => self.capability.0,
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => self.capability.1,
            A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => self.resident.1,
            A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED => self.multicast.into(),
            A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => self.cooperative.into(),
            A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => self.virtual_memory.into(),
            A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => 1,
            _ => return Err(INVALID),
        })
    }
}

/// Something that was made and has not been freed.
#[derive(Debug)]
enum Object {
    Context {
        device: usize,
        retained: u32,
    },
    Memory {
        device: usize,
        bytes: u64,
    },
    Multicast {
        devices: usize,
        bytes: u64,
        added: Vec<usize>,
        bound: Vec<(usize, u64, u64)>,
    },
    Range {
        bytes: u64,
    },
    Mapping {
        handle: u64,
        bytes: u64,
        access: Vec<usize>,
    },
    /// By its address in the host; devices find it at another one.
    Host {
        memory: HostMemory,
        device: u64,
    },
    Stream {
        device: usize,
        captured: Option<Vec<Launch>>,
    },
    /// The launches of its device that it stands behind, once it has been recorded.
    Event {
        device: usize,
        behind: Option<u64>,
    },
    Module {
        device: usize,
        module: Option<Arc<PtxModule>>,
    },
    Function {
        module: u64,
        name: String,
    },
    Graph {
        launches: Vec<Launch>,
    },
    GraphExec {
        launches: Vec<Launch>,
    },
}

struct FakeState {
    setting: FakeMachine,
    machine: Machine,
    /// By handle or address.
    objects: BTreeMap<u64, Object>,
    next: u64,
    /// The current context's handle; 0 for none.
    current: u64,
    /// Whether the thread has said that captures are not to keep it from anything.
    relaxed: bool,
    calls: Vec<(&'static str, String)>,
    /// The number of the call that fails, and how.
    failing: Option<(usize, CUresult)>,
    /// Launches of each device that have not run.
    pending: Vec<u32>,
    /// Launches of each device so far, and those that have ended.
    launched: Vec<u64>,
    ended: Vec<u64>,
    /// A device whose kernels never end, and the streams that have such kernels.
    hanging: Option<usize>,
    hung: BTreeSet<u64>,
    /// Questions for events in a row.
    asked: u32,
    fault: Option<Fault>,
    violations: Vec<String>,
}

impl FakeDriver {
    /// A driver of a machine with so many devices.
    pub fn new(devices: i32) -> FakeDriver {
        FakeDriver::with(devices, |_| {})
    }

    /// A driver of a machine that differs from the usual one.
    pub fn with(devices: i32, change: impl FnOnce(&mut FakeMachine)) -> FakeDriver {
        let mut setting = FakeMachine::new(devices);
        change(&mut setting);
        let execution = Execution::Deterministic;
        let devices = setting.devices.max(1) as usize;
        // Twice the addresses: a world that has failed is replaced by another one before it ends.
        let machine = Machine::new(Config { ranks: 2 * devices, execution, ..Config::default() });
        let state = FakeState {
            setting,
            machine: machine.unwrap_or_else(|error| panic!("{error}")),
            objects: BTreeMap::new(),
            next: 0x1000,
            current: 0,
            relaxed: false,
            calls: Vec::new(),
            failing: None,
            pending: vec![0; devices],
            launched: vec![0; devices],
            ended: vec![0; devices],
            hanging: None,
            hung: BTreeSet::new(),
            asked: 0,
            fault: None,
            violations: Vec::new(),
        };
        FakeDriver { state: Arc::new(Mutex::new(state)) }
    }

    /// The driver, started.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn driver(&self) -> Driver {
        self.try_driver().unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`FakeDriver::driver`], for a driver that cannot be started.
    ///
    /// # Errors
    /// Those of [`Driver::new`].
    pub fn try_driver(&self) -> Result<Driver, CudaError> {
        Driver::new(Arc::new(self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call so far: the function, and its arguments in words.
    pub fn calls(&self) -> Vec<(&'static str, String)> {
        self.state().calls.clone()
    }

    /// Lets a call fail, by its number among all calls from now on.
    pub fn fail_at(&self, number: usize, code: CUresult) {
        let mut state = self.state();
        state.failing = Some((state.calls.len() + number, code));
    }

    /// From now on kernels of a device never end, whatever they are told.
    pub fn hang(&self, device: usize) {
        self.state().hanging = Some(device);
    }

    /// What has been made and not been freed.
    pub fn leaks(&self) -> Vec<String> {
        self.state().objects.values().map(|object| format!("{object:?}")).collect()
    }

    /// What was done in a wrong order.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// Whether a kernel has been launched and has not ended.
    pub fn runs(&self) -> bool {
        self.state().is_pending()
    }

    /// What went wrong in a kernel.
    pub fn fault(&self) -> Option<Fault> {
        self.state().fault.clone()
    }
}

impl FakeState {
    fn handle(&mut self, object: Object) -> u64 {
        self.next += 16;
        self.objects.insert(self.next, object);
        self.next
    }

    /// Takes back what is freed.
    fn remove(&mut self, handle: u64, fits: fn(&Object) -> bool) -> Done<Object> {
        match self.objects.remove(&handle) {
            Some(object) if fits(&object) => Ok(object),
            other => {
                self.wrong(format!("something is freed that is not there: {other:?}"));
                Err(GONE)
            }
        }
    }

    fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    /// The device whose context is current.
    fn device(&self) -> Done<usize> {
        match self.objects.get(&self.current) {
            Some(Object::Context { device, .. }) => Ok(*device),
            _ => Err(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        }
    }

    /// What the driver refuses where no context is current, though it is given a handle.
    fn needs_context(&mut self, call: &str) -> Done<usize> {
        let device = self.device();
        if device.is_err() {
            self.wrong(format!("{call} without a current context"));
        }
        device
    }

    /// What the driver refuses a thread while streams are captured, unless it has said otherwise.
    fn is_unsafe(&mut self, call: &str) -> Done {
        let captured = |object: &Object| matches!(object, Object::Stream { captured: Some(_), .. });
        if self.relaxed || !self.objects.values().any(captured) {
            return Ok(());
        }
        self.wrong(format!("{call} while a stream is captured"));
        Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    }
}

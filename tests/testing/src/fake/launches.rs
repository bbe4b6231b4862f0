//! Modules and launches, and the virtual GPUs' runs. Each method without a comment is what the driver's function of its
//! name in [`Api`](quadrille_runtime::internals::Api) does.

use super::{Done, FakeState, GONE, INVALID, Object};
use cudarc::driver::sys::CUresult;
use quadrille_runtime::internals::symbol;
use quadrille_vgpu::{Launch, PtxModule};
use std::sync::Arc;

/// What a function's handle stands for.
pub(super) struct FakeKernel {
    device: usize,
    module: Arc<PtxModule>,
    name: String,
    /// Of its only parameter.
    pub(super) bytes: usize,
}

impl FakeState {
    pub(super) fn module_load(&mut self, image: &str) -> Done<u64> {
        let device = self.needs_context(symbol::module_load)?;
        self.is_unsafe(symbol::module_load)?;
        let module = match is_cubin(image) {
            true => None,
            false => Some(Arc::new(PtxModule::parse(image).map_err(|_| CUresult::CUDA_ERROR_INVALID_PTX)?)),
        };
        Ok(self.handle(Object::Module { device, module }))
    }

    pub(super) fn module_unload(&mut self, unloaded: u64) -> Done {
        let device = self.needs_context(symbol::module_unload)?;
        if self.pending[device] != 0 {
            self.wrong("code is unloaded while kernels run".to_owned());
        }
        self.objects.retain(|_, o| !matches!(o, Object::Function { module, .. } if *module == unloaded));
        self.remove(unloaded, |o| matches!(o, Object::Module { .. })).map(drop)
    }

    /// Names are not looked up before the launch.
    pub(super) fn module_function(&mut self, module: u64, name: &str) -> u64 {
        self.handle(Object::Function { module, name: name.to_owned() })
    }

    /// What is launched where this function is. A cubin's is refused: virtual GPUs execute PTX.
    pub(super) fn kernel(&self, function: u64) -> Done<FakeKernel> {
        let Some(Object::Function { module, name }) = self.objects.get(&function) else { return Err(GONE) };
        let Some(Object::Module { device, module: Some(module) }) = self.objects.get(module) else {
            return Err(GONE);
        };
        let Some(&[bytes]) = module.parameters(name).as_deref() else { return Err(INVALID) };
        Ok(FakeKernel { device: *device, module: module.clone(), name: name.clone(), bytes })
    }

    /// Cooperative launches need all their blocks on the device at the same time.
    pub(super) fn fits(&self, grid: u32) -> Done {
        let (blocks, multiprocessors) = self.setting.resident;
        if i64::from(grid) > i64::from(blocks) * i64::from(multiprocessors) {
            return Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        Ok(())
    }

    /// Launches `grid` blocks of `threads` threads, or keeps them for the graph of a stream that is captured.
    pub(super) fn launch(
        &mut self,
        kernel: FakeKernel,
        grid: u32,
        threads: u32,
        param: Vec<u8>,
        stream: u64,
    ) -> Done {
        let FakeKernel { device, module, name, .. } = kernel;
        let launch = Launch {
            rank: device,
            module,
            kernel: name,
            grid: [grid, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            params: vec![param],
        };
        if self.device_of(stream)? != device {
            return Err(GONE);
        }
        match self.objects.get_mut(&stream) {
            Some(Object::Stream { captured: Some(launches), .. }) => launches.push(launch),
            _ => self.begin(launch, stream)?,
        }
        Ok(())
    }

    /// Gives a launch to its virtual GPU, which runs when somebody waits.
    pub(super) fn begin(&mut self, launch: Launch, stream: u64) -> Done {
        let device = launch.rank;
        let unreached = self.objects.values().any(|object| match object {
            Object::Mapping { access, .. } => !access.contains(&device),
            _ => false,
        });
        if unreached {
            self.wrong(format!("device {device} launches a kernel and has no access to some memory"));
        }
        self.pending[device] += 1;
        self.launched[device] += 1;
        if self.hanging == Some(device) {
            self.hung.insert(stream);
            return Ok(());
        }
        self.machine.launch(launch).map_err(|_| INVALID)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.iter().any(|&launches| launches != 0)
    }

    /// Runs what was launched. Host memory is seen by kernels as it is when they begin, and the host sees their stores
    /// when they have ended.
    pub(super) fn run(&mut self) -> Done {
        let mut runs = false;
        for device in (0..self.pending.len()).filter(|&device| self.hanging != Some(device)) {
            runs |= std::mem::take(&mut self.pending[device]) != 0;
            self.ended[device] = self.launched[device];
        }
        if !runs {
            return Ok(());
        }
        let hosts = || {
            self.objects.values().filter_map(|object| match object {
                Object::Host { memory, device } => Some((memory, *device)),
                _ => None,
            })
        };
        for (memory, device) in hosts() {
            self.machine.write(device, &memory.load()).map_err(|_| CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?;
        }
        let ran = self.machine.run();
        for (memory, device) in hosts() {
            if let Ok(stored) = self.machine.read(device, memory.bytes()) {
                memory.store(&stored);
            }
        }
        match ran {
            Ok(_) => Ok(()),
            Err(fault) => {
                self.fault = Some(fault);
                Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
            }
        }
    }
}

/// What kind of image a module is loaded from, in words.
pub(super) fn kind(image: &str) -> String {
    if is_cubin(image) {
        return "a cubin".to_owned();
    }
    let version = image.lines().find_map(|line| line.strip_prefix(".version ")).unwrap_or("?");
    format!("PTX {version}")
}

fn is_cubin(image: &str) -> bool {
    image.starts_with("\u{7f}ELF")
}

// nvrtc: --gpu-architecture=compute_90 --std=c++17 --generate-line-info
// Kernels of several ranks that speak through flags, and kernels that go wrong.
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ void publish(u32* flag, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ u32 observe(const u32* flag) {
    u32 v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    return v;
}

// Rank 0 sends n words into the peer's window and raises its flag; rank 1 waits and copies.
extern "C" __global__ void send(u32* window, u32* flag, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) window[i] = i * i;
    __syncthreads();
    if (threadIdx.x == 0) publish(flag, 1);
}
extern "C" __global__ void receive(const u32* window, const u32* flag, u32* out, u32 n) {
    if (threadIdx.x == 0)
        while (observe(flag) != 1) {}
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) out[i] = window[i] + 1;
}

// All blocks of one grid meet `rounds` times; every block counts what it saw of the others.
extern "C" __global__ void grid_barrier(u32* arrived, u32* progress, u32* mistakes, u32 rounds) {
    for (u32 r = 1; r <= rounds; r++) {
        if (threadIdx.x == 0) {
            progress[blockIdx.x] = r;
            __threadfence();
            atomicAdd(arrived, 1u);
            while (atomicAdd(arrived, 0u) < r * gridDim.x) __nanosleep(20);
            __threadfence();
            for (u32 b = 0; b < gridDim.x; b++)
                if (((volatile u32*)progress)[b] < r) atomicAdd(mistakes, 1u);
        }
        __syncthreads();
    }
}

extern "C" __global__ void oob(int* out, int n) {
    if (threadIdx.x == 37) out[n + 3] = 1;
}
extern "C" __global__ void misaligned(char* p) { *(int*)(p + threadIdx.x * 4 + 2) = 1; }
extern "C" __global__ void copy_words(const u32* in, u32* out) { out[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void half_barrier(int* out) {
    if (threadIdx.x < 40) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        asm volatile("bar.sync 1, 128;");
    }
}
extern "C" __global__ void spin_locally(u32* out, u32 n) {
    u32 x = 1;
    for (u32 i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        if (x == 0) out[1] = i;
    }
    *out = x;
}
extern "C" __global__ void report(u64* record, u32* later) {
    if (threadIdx.x == 5) *record = 42;
    __syncthreads();
    while (*(volatile u32*)later == 0) {}
}
// A lane holds a lock while its neighbours wait for it, in one warp.
extern "C" __global__ void lock(u32* mutex, u32* counter) {
    while (atomicCAS(mutex, 0u, 1u) != 0u) {}
    __threadfence();
    *(volatile u32*)counter = *(volatile u32*)counter + 1;
    __threadfence();
    atomicExch(mutex, 0u);
}
extern "C" __global__ void copy_loop(const uint4* in, uint4* out, u64 n) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        out[i] = in[i];
}

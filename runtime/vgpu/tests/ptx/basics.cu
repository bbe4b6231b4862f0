// nvrtc: --gpu-architecture=compute_80 --std=c++17 --generate-line-info
// Ordinary kernels: element-wise, tails, shuffles, shared memory, atomics, divergence, calls, tables.
typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// Four elements a thread where whole vectors remain, single elements in the tail.
extern "C" __global__ void saxpy(float alpha, const float4* x, float4* y, u64 n) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 i = first; i < n / 4; i += stride) {
        float4 v = x[i], w = y[i];
        w.x = alpha * v.x + w.x;
        w.y = alpha * v.y + w.y;
        w.z = alpha * v.z + w.z;
        w.w = alpha * v.w + w.w;
        y[i] = w;
    }
    const float* xs = (const float*)x;
    float* ys = (float*)y;
    for (u64 i = n / 4 * 4 + first; i < n; i += stride) ys[i] = alpha * xs[i] + ys[i];
}

extern "C" __global__ void block_sum(const int* in, int* out, int n) {
    __shared__ int partial[32];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

extern "C" __global__ void histogram(const unsigned char* in, u32* bins, int n) {
    extern __shared__ u32 local_bins[];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local_bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local_bins[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local_bins[i]);
}

extern "C" __global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Every lane leaves the loop after its own number of steps.
extern "C" __global__ void collatz(const u32* in, u32* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 v = in[i], count = 0;
    while (v != 1) {
        if (v % 2 == 0) v /= 2;
        else v = 3 * v + 1;
        count++;
        if (count > 500) break;
    }
    steps[i] = count;
}

__device__ __noinline__ u32 gcd(u32 a, u32 b) {
    while (b) {
        u32 t = a % b;
        a = b;
        b = t;
    }
    return a;
}
extern "C" __global__ void gcds(const u32* a, const u32* b, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gcd(a[i], b[i]);
}

__device__ __noinline__ u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void fibs(u32* out) { out[threadIdx.x] = fib(threadIdx.x % 12); }

__constant__ int table[5] = {3, 1, 4, 1, 5};
__device__ u64 total = 100;
__device__ int* table_of_pointers[2];
extern "C" __global__ void tables(int* out, u64* sum) {
    int i = threadIdx.x;
    out[i] = table[i % 5];
    atomicAdd(&total, (u64)table[i % 5]);
    __syncthreads();
    if (i == 0) *sum = total;
}

struct Params {
    int rank;
    u64 count;
    u32* windows[72];
    u32 scale[8];
};
extern "C" __global__ void by_struct(const __grid_constant__ Params p) {
    for (u64 i = threadIdx.x; i < p.count; i += blockDim.x)
        p.windows[(p.rank + i) % 72][i] = p.scale[i % 8] + i;
}

// Indexed local array: lives in the local depot.
extern "C" __global__ void local_array(const int* in, int* out) {
    int a[16];
    for (int i = 0; i < 16; i++) a[i] = in[(threadIdx.x + i) % 16] * i;
    int s = 0;
    for (int i = 0; i < 16; i++) s = s * 31 + a[(in[i] + threadIdx.x) & 15];
    out[threadIdx.x] = s;
}

extern "C" __global__ void switcher(const int* in, int* out) {
    int r;
    switch (in[threadIdx.x]) {
        case 0: r = 11 + threadIdx.x; break;
        case 1: r = 25 * threadIdx.x; break;
        case 2: r = 37 ^ threadIdx.x; break;
        case 3: r = threadIdx.x / 3; break;
        case 4: r = __popc(threadIdx.x); break;
        case 5: r = __clz(threadIdx.x); break;
        case 6: r = __brev(threadIdx.x); break;
        default: r = -1;
    }
    out[threadIdx.x] = r;
}

extern "C" __global__ void votes(u32* out) {
    u32 t = threadIdx.x;
    out[t * 4 + 0] = __ballot_sync(~0u, t % 3 == 0);
    out[t * 4 + 1] = __any_sync(~0u, t == 40) | __all_sync(~0u, t < 32) << 1;
    out[t * 4 + 2] = __shfl_sync(~0u, t * t, (t + 5) % 32);
    out[t * 4 + 3] = __syncthreads_count(t % 2 == 0) + (__syncthreads_or(t == 7) ? 1000 : 0);
}

extern "C" __global__ void arithmetic(const long long* in, long long* out) {
    long long a = in[threadIdx.x * 2], b = in[threadIdx.x * 2 + 1];
    long long* o = out + threadIdx.x * 16;
    o[0] = a * b;
    o[1] = b ? a / b : 0;
    o[2] = b ? a % b : 0;
    o[3] = __mul64hi(a, b);
    o[4] = __umul64hi(a, b);
    o[5] = a << (b & 63);
    o[6] = a >> (b & 63);
    o[7] = (u64)a >> (b & 63);
    o[8] = min(a, b);
    o[9] = max((u64)a, (u64)b);
    o[10] = __clzll(a) * 1000 + __popcll(b);
    o[11] = __brevll(a);
    o[12] = (int)a / ((int)b | 1);
    o[13] = (u32)a % ((u32)b | 1);
    o[14] = __byte_perm((u32)a, (u32)b, 0x3715) ^ __funnelshift_l((u32)a, (u32)b, (u32)b);
    o[15] = (short)a * (signed char)b + abs((int)b);
}

extern "C" __global__ void maths(const float* in, float* out) {
    float a = in[threadIdx.x];
    float* o = out + threadIdx.x * 12;
    o[0] = sqrtf(fabsf(a));
    o[1] = 1.0f / a;
    o[2] = a / 3.0f;
    o[3] = fminf(a, 0.5f);
    o[4] = fmaxf(a, 0.5f);
    o[5] = floorf(a);
    o[6] = rintf(a);
    o[7] = truncf(a);
    o[8] = (float)(int)a;
    o[9] = (float)(unsigned long long)fabsf(a);
    o[10] = (float)((double)a * 3.0);
    o[11] = fmaf(a, a, -1.0f);
}

// nvrtc: --std=c++17 --generate-line-info; compute_80, compute_90 and compute_100
// Kernels as ordinary CUDA programs have them.
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

__device__ __forceinline__ float half_to_float(u16 v) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
    return f;
}
__device__ __forceinline__ u16 float_to_half(float v) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}

template <typename Op>
__device__ float block_reduce(float v, float neutral, Op op) {
    __shared__ float partial[32];
    __syncthreads();
    for (int d = 16; d > 0; d /= 2) v = op(v, __shfl_xor_sync(~0u, v, d));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : neutral;
    for (int d = 16; d > 0; d /= 2) v = op(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

// A row a block.
extern "C" __global__ void softmax(const float* in, float* out, int columns) {
    in += (u64)blockIdx.x * columns;
    out += (u64)blockIdx.x * columns;
    float top = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, in[i]);
    top = block_reduce(top, -1e30f, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(in[i] - top);
    sum = block_reduce(sum, 0, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(in[i] - top) / sum;
}

extern "C" __global__ void layer_norm(const float* in, const float* gain, float* out, int columns, float epsilon) {
    in += (u64)blockIdx.x * columns;
    out += (u64)blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += in[i];
    float mean = block_reduce(sum, 0, [](float a, float b) { return a + b; }) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += (in[i] - mean) * (in[i] - mean);
    float variance = block_reduce(squares, 0, [](float a, float b) { return a + b; }) / columns;
    float scale = rsqrtf(variance + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = (in[i] - mean) * scale * gain[i];
}

// Up and down a tree in shared memory, one block of 128 threads for each 256 values.
extern "C" __global__ void exclusive_scan(const u32* in, u32* out, u32* sums) {
    __shared__ u32 tree[256];
    u32 t = threadIdx.x, base = blockIdx.x * 256;
    tree[t] = in[base + t];
    tree[t + 128] = in[base + t + 128];
    u32 stride = 1;
    for (u32 nodes = 128; nodes > 0; nodes /= 2, stride *= 2) {
        __syncthreads();
        if (t < nodes) tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
    }
    if (t == 0) {
        sums[blockIdx.x] = tree[255];
        tree[255] = 0;
    }
    for (u32 nodes = 1; nodes <= 128; nodes *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < nodes) {
            u32 left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1, value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
    }
    __syncthreads();
    out[base + t] = tree[t];
    out[base + t + 128] = tree[t + 128];
}

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void gemm_tiled(const u16* a, const u16* b, u16* c, int m, int n, int k) {
    __shared__ float ta[16][17], tb[16][17];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        ta[y][x] = row < m && at + x < k ? half_to_float(a[row * k + at + x]) : 0;
        tb[y][x] = at + y < k && column < n ? half_to_float(b[(at + y) * n + column]) : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = float_to_half(sum);
}

extern "C" __global__ void doubles(const double* in, double* out) {
    double a = in[threadIdx.x * 2], b = in[threadIdx.x * 2 + 1];
    double* o = out + threadIdx.x * 10;
    o[0] = a / b;
    o[1] = sqrt(fabs(a));
    o[2] = fma(a, b, -a);
    o[3] = exp(a * 0.01);
    o[4] = log(fabs(b));
    o[5] = __dadd_rz(a, b);
    o[6] = __dmul_ru(a, b);
    o[7] = __ddiv_rd(a, b);
    o[8] = rint(a) + floor(b);
    o[9] = fmod(a, b);
}

extern "C" __global__ void roundings(const float* in, float* out) {
    float a = in[threadIdx.x * 2], b = in[threadIdx.x * 2 + 1];
    float* o = out + threadIdx.x * 8;
    o[0] = __fadd_rz(a, b);
    o[1] = __fmul_rd(a, b);
    o[2] = __fmaf_ru(a, b, a);
    o[3] = __fdiv_rz(a, b);
    o[4] = __fsqrt_rd(fabsf(a));
    o[5] = __frcp_ru(b);
    o[6] = (float)__float2int_rd(a) + (float)__float2uint_ru(fabsf(b));
    o[7] = __saturatef(a);
}

extern "C" __global__ void bits(const u32* in, u32* out) {
    u32 a = in[threadIdx.x * 2], b = in[threadIdx.x * 2 + 1];
    u32* o = out + threadIdx.x * 10;
    o[0] = __dp4a((int)a, (int)b, 7);
    o[1] = __sad((int)a, (int)b, a);
    o[2] = __mul24((int)a, (int)b);
    o[3] = __umulhi(a, b);
    o[4] = __ffs(a);
    o[5] = __fns(a, 5, 2);
    o[6] = __vadd2(a, b);
    o[7] = __vmaxs2(a, b);
    u64 wide = ((u64)a << 32 | b) * 0x9e3779b97f4a7c15ull + (a ^ b);
    o[8] = (u32)(wide % 1000003u) + (u32)(wide / (b | 1));
    o[9] = (u32)((long long)wide >> 17) ^ __byte_perm(a, b, a);
}

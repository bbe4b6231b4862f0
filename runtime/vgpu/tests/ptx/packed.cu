// nvrtc: --gpu-architecture=compute_90 --std=c++17 --generate-line-info
// f16 and bf16 through PTX instructions, as header-free device code has them.
typedef unsigned int u32;
typedef unsigned short u16;

__device__ __forceinline__ float bf16_to_f32(u16 v) {
    float f;
    asm("cvt.f32.bf16 %0, %1;" : "=f"(f) : "h"(v));
    return f;
}
__device__ __forceinline__ float f16_to_f32(u16 v) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
    return f;
}
#define BINARY(NAME, OP, T, C) \
    __device__ __forceinline__ T NAME(T a, T b) { T d; asm(OP " %0, %1, %2;" : "=" C(d) : C(a), C(b)); return d; }
BINARY(add_bf16x2, "add.rn.bf16x2", u32, "r")
BINARY(mul_bf16x2, "mul.rn.bf16x2", u32, "r")
BINARY(min_bf16x2, "min.bf16x2", u32, "r")
BINARY(max_nan_bf16x2, "max.NaN.bf16x2", u32, "r")
BINARY(add_f16x2, "add.rn.f16x2", u32, "r")
BINARY(sub_f16x2, "sub.rn.f16x2", u32, "r")
BINARY(mul_f16x2, "mul.rn.f16x2", u32, "r")
BINARY(max_f16x2, "max.f16x2", u32, "r")

extern "C" __global__ void sum_bf16(const u32* a, const u32* b, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = add_bf16x2(a[i], b[i]);
}
extern "C" __global__ void packed_ops(const u32* a, const u32* b, u32* out) {
    int i = threadIdx.x;
    u32* o = out + i * 10;
    o[0] = add_bf16x2(a[i], b[i]);
    o[1] = mul_bf16x2(a[i], b[i]);
    o[2] = min_bf16x2(a[i], b[i]);
    o[3] = max_nan_bf16x2(a[i], b[i]);
    o[4] = add_f16x2(a[i], b[i]);
    o[5] = sub_f16x2(a[i], b[i]);
    o[6] = mul_f16x2(a[i], b[i]);
    o[7] = max_f16x2(a[i], b[i]);
    u32 f, g;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(f) : "r"(a[i]), "r"(b[i]), "r"(a[i]));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(g) : "r"(a[i]), "r"(b[i]), "r"(a[i]));
    o[8] = f;
    o[9] = g;
}
extern "C" __global__ void narrow(const float* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32* o = out + i * 4;
    u16 b, h, z;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(in[i]));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(in[i]));
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(z) : "f"(in[i]));
    o[0] = b;
    o[1] = h;
    o[2] = z;
    u32 p;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(in[i]), "f"(-in[i]));
    o[3] = p;
}
extern "C" __global__ void widen(const u16* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[2 * i] = bf16_to_f32(in[i]);
    out[2 * i + 1] = f16_to_f32(in[i]);
}

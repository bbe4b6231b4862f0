// Element types and operators. Sums of narrow types are taken in f32 and rounded once, when they are stored.

namespace quadrille {

struct F32 {
  using Bits = u32;
  static constexpr u32 PER_WORD = 1;
};

struct BF16 {
  using Bits = u16;
  static constexpr u32 PER_WORD = 2;
};

struct Sum {
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};

__device__ __forceinline__ float to_float(u32 bits) { return __uint_as_float(bits); }

// Splits a 32-bit word into its elements as f32.
__device__ __forceinline__ void widen(F32, u32 word, float (&out)[1]) { out[0] = to_float(word); }
__device__ __forceinline__ void widen(BF16, u32 word, float (&out)[2]) {
  out[0] = to_float(word << 16);
  out[1] = to_float(word & 0xffff0000u);
}

// Rounds f32 values to nearest even into a word.
__device__ __forceinline__ u32 narrow(F32, const float (&in)[1]) { return __float_as_uint(in[0]); }
__device__ __forceinline__ u32 narrow(BF16, const float (&in)[2]) {
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(in[1]), "f"(in[0]));
  return word;
}

// Combines words of several sources in order.
template <class T, class Op, u32 SOURCES>
__device__ __forceinline__ u32 combine(const u32 (&words)[SOURCES]) {
  if constexpr (SOURCES == 1) return words[0];
  float sum[T::PER_WORD];
  widen(T{}, words[0], sum);
#pragma unroll
  for (u32 s = 1; s < SOURCES; ++s) {
    float term[T::PER_WORD];
    widen(T{}, words[s], term);
#pragma unroll
    for (u32 e = 0; e < T::PER_WORD; ++e) sum[e] = Op::combine(sum[e], term[e]);
  }
  return narrow(T{}, sum);
}

}  // namespace quadrille

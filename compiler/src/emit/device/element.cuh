// Element types and operators. f16 and bf16 are computed in f32 and rounded once, when they are stored; integers wrap.

namespace quadrille {

// For each type: the bits of an element, the type that it is computed in, and the elements of a group of words.
struct F32 {
  using Bits = u32;
  using Value = float;
  static constexpr u32 WORDS = 1, ELEMENTS = 1;
};

struct BF16 {
  using Bits = u16;
  using Value = float;
  static constexpr u32 WORDS = 1, ELEMENTS = 2;
};

struct F16 {
  using Bits = u16;
  using Value = float;
  static constexpr u32 WORDS = 1, ELEMENTS = 2;
};

struct F64 {
  using Bits = u64;
  using Value = double;
  static constexpr u32 WORDS = 2, ELEMENTS = 1;
};

template <class B, class V>
struct Integer {
  using Bits = B;
  using Value = V;
  static constexpr u32 WORDS = sizeof(B) == 8 ? 2 : 1, ELEMENTS = sizeof(B) == 1 ? 4 : 1;
};
using I8 = Integer<u8, int>;
using U8 = Integer<u8, u32>;
using I32 = Integer<u32, int>;
using U32 = Integer<u32, u32>;
using I64 = Integer<u64, long long>;
using U64 = Integer<u64, u64>;

// Splits a group of words into its elements.
__device__ __forceinline__ void widen(F32, const u32 (&words)[1], float (&out)[1]) {
  out[0] = __uint_as_float(words[0]);
}
__device__ __forceinline__ void widen(BF16, const u32 (&words)[1], float (&out)[2]) {
  out[0] = __uint_as_float(words[0] << 16);
  out[1] = __uint_as_float(words[0] & 0xffff0000u);
}
__device__ __forceinline__ void widen(F16, const u32 (&words)[1], float (&out)[2]) {
  asm("cvt.f32.f16 %0, %1;" : "=f"(out[0]) : "h"(static_cast<u16>(words[0])));
  asm("cvt.f32.f16 %0, %1;" : "=f"(out[1]) : "h"(static_cast<u16>(words[0] >> 16)));
}
__device__ __forceinline__ void widen(F64, const u32 (&words)[2], double (&out)[1]) {
  out[0] = __longlong_as_double(static_cast<long long>(words[0] | u64(words[1]) << 32));
}
__device__ __forceinline__ void widen(I8, const u32 (&words)[1], int (&out)[4]) {
#pragma unroll
  for (u32 e = 0; e < 4; ++e) out[e] = static_cast<signed char>(words[0] >> 8 * e);
}
__device__ __forceinline__ void widen(U8, const u32 (&words)[1], u32 (&out)[4]) {
#pragma unroll
  for (u32 e = 0; e < 4; ++e) out[e] = words[0] >> 8 * e & 0xff;
}
template <class V>
__device__ __forceinline__ void widen(Integer<u32, V>, const u32 (&words)[1], V (&out)[1]) {
  out[0] = static_cast<V>(words[0]);
}
template <class V>
__device__ __forceinline__ void widen(Integer<u64, V>, const u32 (&words)[2], V (&out)[1]) {
  out[0] = static_cast<V>(words[0] | u64(words[1]) << 32);
}

// Rounds to nearest even, or wraps, into a group of words.
__device__ __forceinline__ void narrow(F32, const float (&in)[1], u32 (&words)[1]) {
  words[0] = __float_as_uint(in[0]);
}
__device__ __forceinline__ void narrow(BF16, const float (&in)[2], u32 (&words)[1]) {
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words[0]) : "f"(in[1]), "f"(in[0]));
}
__device__ __forceinline__ void narrow(F16, const float (&in)[2], u32 (&words)[1]) {
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words[0]) : "f"(in[1]), "f"(in[0]));
}
__device__ __forceinline__ void narrow(F64, const double (&in)[1], u32 (&words)[2]) {
  const u64 bits = static_cast<u64>(__double_as_longlong(in[0]));
  words[0] = static_cast<u32>(bits);
  words[1] = static_cast<u32>(bits >> 32);
}
template <class V>
__device__ __forceinline__ void narrow(Integer<u8, V>, const V (&in)[4], u32 (&words)[1]) {
  words[0] = 0;
#pragma unroll
  for (u32 e = 0; e < 4; ++e) words[0] |= (static_cast<u32>(in[e]) & 0xff) << 8 * e;
}
template <class V>
__device__ __forceinline__ void narrow(Integer<u32, V>, const V (&in)[1], u32 (&words)[1]) {
  words[0] = static_cast<u32>(in[0]);
}
template <class V>
__device__ __forceinline__ void narrow(Integer<u64, V>, const V (&in)[1], u32 (&words)[2]) {
  words[0] = static_cast<u32>(static_cast<u64>(in[0]));
  words[1] = static_cast<u32>(static_cast<u64>(in[0]) >> 32);
}

// Signed arithmetic wraps, since it is done in the unsigned type.
template <class V>
__device__ __forceinline__ V plus(V a, V b) {
  return a + b;
}
__device__ __forceinline__ int plus(int a, int b) { return static_cast<int>(static_cast<u32>(a) + static_cast<u32>(b)); }
__device__ __forceinline__ long long plus(long long a, long long b) {
  return static_cast<long long>(static_cast<u64>(a) + static_cast<u64>(b));
}
template <class V>
__device__ __forceinline__ V times(V a, V b) {
  return a * b;
}
__device__ __forceinline__ int times(int a, int b) { return static_cast<int>(static_cast<u32>(a) * static_cast<u32>(b)); }
__device__ __forceinline__ long long times(long long a, long long b) {
  return static_cast<long long>(static_cast<u64>(a) * static_cast<u64>(b));
}

// The work of a move besides combining; a step that scales overrides it.
struct Plain {
  static constexpr u32 DIVISOR = 1;
  static constexpr bool SCALES = false;
  static __device__ constexpr bool bare(u32) { return false; }
};

struct Sum : Plain {
  template <class V>
  static __device__ __forceinline__ V combine(V a, V b) {
    return plus(a, b);
  }
};

struct Prod : Plain {
  template <class V>
  static __device__ __forceinline__ V combine(V a, V b) {
    return times(a, b);
  }
};

// NaN, the only value that differs from itself, is kept.
struct Min : Plain {
  template <class V>
  static __device__ __forceinline__ V combine(V a, V b) {
    return a < b || a != a ? a : b;
  }
};

struct Max : Plain {
  template <class V>
  static __device__ __forceinline__ V combine(V a, V b) {
    return a > b || a != a ? a : b;
  }
};

// The factor of a call, in the type that is computed in.
template <class V>
__device__ __forceinline__ V factor(u64 bits) {
  return static_cast<V>(bits);
}
template <>
__device__ __forceinline__ float factor<float>(u64 bits) {
  return __uint_as_float(static_cast<u32>(bits));
}
template <>
__device__ __forceinline__ double factor<double>(u64 bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// Combines a group of words of several sources in order.
template <class T, class Op, u32 SOURCES>
__device__ __forceinline__ void combine(const u32 (&words)[SOURCES][T::WORDS], u32 (&out)[T::WORDS], u64 scalar) {
  if constexpr (SOURCES == 1 && !Op::SCALES) {
#pragma unroll
    for (u32 w = 0; w < T::WORDS; ++w) out[w] = words[0][w];
  } else {
    using V = typename T::Value;
    V result[T::ELEMENTS];
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s) {
      V term[T::ELEMENTS];
      widen(T{}, words[s], term);
#pragma unroll
      for (u32 e = 0; e < T::ELEMENTS; ++e) {
        if (Op::bare(s)) term[e] = times(term[e], factor<V>(scalar));
        result[e] = s == 0 ? term[e] : Op::combine(result[e], term[e]);
      }
    }
    if constexpr (Op::DIVISOR > 1) {
#pragma unroll
      for (u32 e = 0; e < T::ELEMENTS; ++e) result[e] = result[e] / static_cast<V>(Op::DIVISOR);
    }
    narrow(T{}, result, out);
  }
}

}  // namespace quadrille

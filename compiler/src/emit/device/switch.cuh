// Moves through the switch: one multicast address stands for the same bytes of every rank. Operators without an instruction
// of the switch, and ends that are no whole pack of 16 bytes, go rank by rank.

namespace quadrille {

// A location has an address of its own and a multicast one. Only this fence orders accesses by both. It stands before and
// after each move through the switch.
__device__ __forceinline__ void alias_fence() { asm volatile("fence.proxy.alias;" ::: "memory"); }

// The switch combines 16 bytes of elements (PTX ISA, "multimem").
template <class T, class Op>
struct Switch {
  static constexpr bool COMBINES = false;
  static __device__ __forceinline__ Pack<16> load(u64) { return {}; }
};

#define QUADRILLE_SWITCH_VECTOR(TYPE, OP, INSTRUCTION)                                                              \
  template <>                                                                                                       \
  struct Switch<TYPE, OP> {                                                                                         \
    static constexpr bool COMBINES = true;                                                                          \
    static __device__ __forceinline__ Pack<16> load(u64 a) {                                                        \
      Pack<16> p;                                                                                                   \
      asm volatile(INSTRUCTION " {%0, %1, %2, %3}, [%4];"                                                           \
                   : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])                             \
                   : "l"(a)                                                                                         \
                   : "memory");                                                                                     \
      return p;                                                                                                     \
    }                                                                                                               \
  };
QUADRILLE_SWITCH_VECTOR(BF16, Sum, "multimem.ld_reduce.weak.global.add.acc::f32.v4.bf16x2")
QUADRILLE_SWITCH_VECTOR(BF16, Min, "multimem.ld_reduce.weak.global.min.v4.bf16x2")
QUADRILLE_SWITCH_VECTOR(BF16, Max, "multimem.ld_reduce.weak.global.max.v4.bf16x2")
QUADRILLE_SWITCH_VECTOR(F16, Sum, "multimem.ld_reduce.weak.global.add.acc::f32.v4.f16x2")
QUADRILLE_SWITCH_VECTOR(F16, Min, "multimem.ld_reduce.weak.global.min.v4.f16x2")
QUADRILLE_SWITCH_VECTOR(F16, Max, "multimem.ld_reduce.weak.global.max.v4.f16x2")
#undef QUADRILLE_SWITCH_VECTOR

template <>
struct Switch<F32, Sum> {
  static constexpr bool COMBINES = true;
  static __device__ __forceinline__ Pack<16> load(u64 a) {
    float v[4];
    asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(a)
                 : "memory");
    Pack<16> p;
#pragma unroll
    for (u32 w = 0; w < 4; ++w) p.word[w] = __float_as_uint(v[w]);
    return p;
  }
};

#define QUADRILLE_SWITCH_WORDS(TYPE, OP, INSTRUCTION)                                                               \
  template <>                                                                                                       \
  struct Switch<TYPE, OP> {                                                                                         \
    static constexpr bool COMBINES = true;                                                                          \
    static __device__ __forceinline__ Pack<16> load(u64 a) {                                                        \
      Pack<16> p;                                                                                                   \
      for (u32 w = 0; w < 4; ++w)                                                                                   \
        asm volatile(INSTRUCTION " %0, [%1];" : "=r"(p.word[w]) : "l"(a + 4 * w) : "memory");                       \
      return p;                                                                                                     \
    }                                                                                                               \
  };
QUADRILLE_SWITCH_WORDS(I32, Sum, "multimem.ld_reduce.weak.global.add.s32")
QUADRILLE_SWITCH_WORDS(I32, Min, "multimem.ld_reduce.weak.global.min.s32")
QUADRILLE_SWITCH_WORDS(I32, Max, "multimem.ld_reduce.weak.global.max.s32")
QUADRILLE_SWITCH_WORDS(U32, Sum, "multimem.ld_reduce.weak.global.add.u32")
QUADRILLE_SWITCH_WORDS(U32, Min, "multimem.ld_reduce.weak.global.min.u32")
QUADRILLE_SWITCH_WORDS(U32, Max, "multimem.ld_reduce.weak.global.max.u32")
#undef QUADRILLE_SWITCH_WORDS

#define QUADRILLE_SWITCH_PAIRS(TYPE, OP, INSTRUCTION)                                                               \
  template <>                                                                                                       \
  struct Switch<TYPE, OP> {                                                                                         \
    static constexpr bool COMBINES = true;                                                                          \
    static __device__ __forceinline__ Pack<16> load(u64 a) {                                                        \
      Pack<16> p;                                                                                                   \
      for (u32 w = 0; w < 2; ++w) {                                                                                 \
        u64 pair;                                                                                                   \
        asm volatile(INSTRUCTION " %0, [%1];" : "=l"(pair) : "l"(a + 8 * w) : "memory");                            \
        p.word[2 * w] = static_cast<u32>(pair);                                                                     \
        p.word[2 * w + 1] = static_cast<u32>(pair >> 32);                                                           \
      }                                                                                                             \
      return p;                                                                                                     \
    }                                                                                                               \
  };
QUADRILLE_SWITCH_PAIRS(I64, Sum, "multimem.ld_reduce.weak.global.add.u64")
QUADRILLE_SWITCH_PAIRS(I64, Min, "multimem.ld_reduce.weak.global.min.s64")
QUADRILLE_SWITCH_PAIRS(I64, Max, "multimem.ld_reduce.weak.global.max.s64")
QUADRILLE_SWITCH_PAIRS(U64, Sum, "multimem.ld_reduce.weak.global.add.u64")
QUADRILLE_SWITCH_PAIRS(U64, Min, "multimem.ld_reduce.weak.global.min.u64")
QUADRILLE_SWITCH_PAIRS(U64, Max, "multimem.ld_reduce.weak.global.max.u64")
#undef QUADRILLE_SWITCH_PAIRS

template <>
struct Switch<F64, Sum> {
  static constexpr bool COMBINES = true;
  static __device__ __forceinline__ Pack<16> load(u64 a) {
    Pack<16> p;
#pragma unroll
    for (u32 w = 0; w < 2; ++w) {
      double v;
      asm volatile("multimem.ld_reduce.weak.global.add.f64 %0, [%1];" : "=d"(v) : "l"(a + 8 * w) : "memory");
      const u64 bits = static_cast<u64>(__double_as_longlong(v));
      p.word[2 * w] = static_cast<u32>(bits);
      p.word[2 * w + 1] = static_cast<u32>(bits >> 32);
    }
    return p;
  }
};

// Stores the same 16 bytes on every rank.
__device__ __forceinline__ void store_everywhere(u64 a, const Pack<16>& p) {
  asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(a), "f"(__uint_as_float(p.word[0])),
               "f"(__uint_as_float(p.word[1])), "f"(__uint_as_float(p.word[2])), "f"(__uint_as_float(p.word[3]))
               : "memory");
}

// Moves pack `u` of a round after all its loads, through the switch on at least one side.
template <class T, class Op, u32 ROUND, u32 DESTS, bool REDUCES, bool STORES>
__device__ __forceinline__ void switch_round(u64 from, u64 to, const Addresses<DESTS>& each_to, u64 offset,
                                             u64 stride) {
  Pack<16> p[ROUND];
#pragma unroll
  for (u32 u = 0; u < ROUND; ++u) {
    if constexpr (REDUCES) {
      p[u] = Switch<T, Op>::load(from + offset + u * stride);
    } else {
      p[u] = load_pack(from + offset + u * stride, static_cast<Pack<16>*>(nullptr));
    }
  }
#pragma unroll
  for (u32 u = 0; u < ROUND; ++u) {
    if constexpr (STORES) {
      store_everywhere(to + offset + u * stride, p[u]);
    } else {
#pragma unroll
      for (u32 d = 0; d < DESTS; ++d) store_pack(each_to.at[d] + offset + u * stride, p[u]);
    }
  }
}

// Moves `count` elements. With REDUCES, `from` is a multicast address and `each_from` has the address on each rank; with
// STORES, so are `to` and `each_to`. Otherwise the addresses are the operands' own. Threads of a warp share out packs; ends
// that are no whole pack go rank by rank.
template <class T, class Op, u32 SOURCES, u32 DESTS, bool REDUCES, bool STORES>
__device__ __noinline__ void move_switch(u64 from, const Addresses<SOURCES> each_from, u64 to,
                                         const Addresses<DESTS> each_to, u64 count, u64 scalar) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  constexpr bool SWITCHED = REDUCES ? Switch<T, Op>::COMBINES : !Op::SCALES;
  const u64 bytes = count * ELEMENT;
  u64 head = (0ull - from) & 15;
  if (head > bytes) head = bytes;
  u64 tail = head + ((bytes - head) & ~15ull);
  if (!SWITCHED || (from - to) % 16 != 0) head = tail = bytes;
  if constexpr (SWITCHED) {
    constexpr u32 ROUND = in_flight(1);
    const u64 stride = u64(blockDim.x) * 16;
    u64 offset = head + u64(threadIdx.x) * 16;
#pragma unroll 1
    for (; offset + (ROUND - 1) * stride < tail; offset += ROUND * stride)
      switch_round<T, Op, ROUND, DESTS, REDUCES, STORES>(from, to, each_to, offset, stride);
#pragma unroll 1
    for (; ROUND > 1 && offset < tail; offset += stride)
      switch_round<T, Op, 1, DESTS, REDUCES, STORES>(from, to, each_to, offset, stride);
  }
  const u64 edges = head + (bytes - tail);
#pragma unroll 1
  for (u64 i = u64(threadIdx.x) * ELEMENT; i < edges; i += u64(blockDim.x) * ELEMENT)
    move_round<T, Op, Pack<ELEMENT>, 1>(each_from, each_to, i < head ? i : i - head + tail, 0, scalar);
}

}  // namespace quadrille

// Copies and reductions by all threads of a block, for any count and alignment.

namespace quadrille {

template <u32 N>
struct Addresses {
  u64 at[N];
};

// Packs of `BYTES`, as 32-bit words; an element narrower than a word is a pack of its own.
template <u32 BYTES>
struct Pack {
  u32 word[BYTES / 4 ? BYTES / 4 : 1];
};

__device__ __forceinline__ Pack<16> load_pack(u64 a, Pack<16>*) {
  Pack<16> p;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])
               : "l"(a)
               : "memory");
  return p;
}
__device__ __forceinline__ Pack<8> load_pack(u64 a, Pack<8>*) {
  Pack<8> p;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(p.word[0]), "=r"(p.word[1]) : "l"(a) : "memory");
  return p;
}
__device__ __forceinline__ Pack<4> load_pack(u64 a, Pack<4>*) {
  Pack<4> p;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(p.word[0]) : "l"(a) : "memory");
  return p;
}
__device__ __forceinline__ Pack<2> load_pack(u64 a, Pack<2>*) {
  Pack<2> p;
  u16 half;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(a) : "memory");
  p.word[0] = half;
  return p;
}

__device__ __forceinline__ Pack<1> load_pack(u64 a, Pack<1>*) {
  Pack<1> p;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(p.word[0]) : "l"(a) : "memory");
  return p;
}

__device__ __forceinline__ void store_pack(u64 a, const Pack<16>& p) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(a), "r"(p.word[0]), "r"(p.word[1]), "r"(p.word[2]),
               "r"(p.word[3])
               : "memory");
}
__device__ __forceinline__ void store_pack(u64 a, const Pack<8>& p) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(a), "r"(p.word[0]), "r"(p.word[1]) : "memory");
}
__device__ __forceinline__ void store_pack(u64 a, const Pack<4>& p) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(a), "r"(p.word[0]) : "memory");
}
__device__ __forceinline__ void store_pack(u64 a, const Pack<2>& p) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(a), "h"(static_cast<u16>(p.word[0])) : "memory");
}

__device__ __forceinline__ void store_pack(u64 a, const Pack<1>& p) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(a), "r"(p.word[0]) : "memory");
}

// Packs of each source that a thread loads before it uses the first.
constexpr u32 in_flight(u32 sources) { return UNROLL > 0 ? UNROLL : sources >= LOADS ? 1 : LOADS / sources; }

// Moves pack `u` of a round after all its loads; addresses are of the first pack.
template <class T, class Op, class P, u32 ROUND, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move_round(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 offset,
                                           u64 stride, u64 scalar) {
  constexpr u32 GROUPS = sizeof(P) / 4 / T::WORDS;
  P in[ROUND][SOURCES];
#pragma unroll
  for (u32 u = 0; u < ROUND; ++u)
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s)
      in[u][s] = load_pack(from.at[s] + offset + u * stride, static_cast<P*>(nullptr));
#pragma unroll
  for (u32 u = 0; u < ROUND; ++u) {
    P out;
#pragma unroll
    for (u32 g = 0; g < GROUPS; ++g) {
      u32 words[SOURCES][T::WORDS], result[T::WORDS];
#pragma unroll
      for (u32 s = 0; s < SOURCES; ++s)
#pragma unroll
        for (u32 w = 0; w < T::WORDS; ++w) words[s][w] = in[u][s].word[g * T::WORDS + w];
      combine<T, Op>(words, result, scalar);
#pragma unroll
      for (u32 w = 0; w < T::WORDS; ++w) out.word[g * T::WORDS + w] = result[w];
    }
#pragma unroll
    for (u32 d = 0; d < DESTS; ++d) store_pack(to.at[d] + offset + u * stride, out);
  }
}

// Moves the packs from `offset` to `end` (in bytes), ROUND at a time: all loads of a round are in flight before the
// first is used.
template <class T, class Op, u32 BYTES, u32 ROUND, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move_packs(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 offset,
                                           u64 end, u64 scalar) {
  const u64 stride = u64(blockDim.x) * BYTES;
  offset += u64(threadIdx.x) * BYTES;
  if constexpr (ROUND > 1) {
#pragma unroll 1
    for (; offset + (ROUND - 1) * stride < end; offset += ROUND * stride)
      move_round<T, Op, Pack<BYTES>, ROUND>(from, to, offset, stride, scalar);
  }
#pragma unroll 1
  for (; offset < end; offset += stride) move_round<T, Op, Pack<BYTES>, 1>(from, to, offset, stride, scalar);
}

// Combines `count` elements of the sources in order and stores the result to every destination: with the widest packs
// on which all addresses agree, and element by element before the first and after the last.
template <class T, class Op, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move_all(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 count,
                                         u64 scalar) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  u32 apart = 16;
#pragma unroll
  for (u32 s = 1; s < SOURCES; ++s) apart |= static_cast<u32>(from.at[s] ^ from.at[0]);
#pragma unroll
  for (u32 d = 0; d < DESTS; ++d) apart |= static_cast<u32>(to.at[d] ^ from.at[0]);
  const u32 width = apart & (0u - apart);  // the lowest bit in which any two addresses differ, at most 16
  const u64 bytes = count * ELEMENT;
  u64 head = (0ull - from.at[0]) & (width - 1);
  if (head > bytes) head = bytes;
  const u64 tail = head + ((bytes - head) & ~u64(width - 1));
  if (width == 16) {
    move_packs<T, Op, 16, in_flight(SOURCES)>(from, to, head, tail, scalar);
  } else if (ELEMENT < 8 && width == 8) {
    move_packs<T, Op, 8, 1>(from, to, head, tail, scalar);
  } else if (ELEMENT < 4 && width == 4) {
    move_packs<T, Op, 4, 1>(from, to, head, tail, scalar);
  } else {
    head = tail;  // everything is edge
  }
  const u64 edges = head + (bytes - tail);
#pragma unroll 1
  for (u64 i = u64(threadIdx.x) * ELEMENT; i < edges; i += u64(blockDim.x) * ELEMENT)
    move_round<T, Op, Pack<ELEMENT>, 1>(from, to, i < head ? i : i - head + tail, 0, scalar);
}

template <class T, class Op, u32 SOURCES, u32 DESTS>
__device__ __noinline__ void move(const Addresses<SOURCES> from, const Addresses<DESTS> to, u64 count) {
  move_all<T, Op>(from, to, count, 0);
}

// Does the same with inputs multiplied by the call's factor.
template <class T, class Op, u32 SOURCES, u32 DESTS>
__device__ __noinline__ void move_scaled(const Addresses<SOURCES> from, const Addresses<DESTS> to, u64 count,
                                         u64 scalar) {
  move_all<T, Op>(from, to, count, scalar);
}

}  // namespace quadrille

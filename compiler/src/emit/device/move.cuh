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

// Moves `packs` packs, UNROLL at a time: all loads of a round are in flight before the first is used.
template <class T, class Op, u32 BYTES, u32 UNROLL, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move_packs(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 skip,
                                           u64 packs) {
  using P = Pack<BYTES>;
  constexpr u32 WORDS = sizeof(P) / 4;
  u64 i = threadIdx.x;
  for (; i + u64(UNROLL - 1) * blockDim.x < packs; i += u64(UNROLL) * blockDim.x) {
    P in[UNROLL][SOURCES];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u)
#pragma unroll
      for (u32 s = 0; s < SOURCES; ++s)
        in[u][s] = load_pack(from.at[s] + skip + (i + u64(u) * blockDim.x) * BYTES, static_cast<P*>(nullptr));
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      P out;
#pragma unroll
      for (u32 w = 0; w < WORDS; ++w) {
        u32 words[SOURCES];
#pragma unroll
        for (u32 s = 0; s < SOURCES; ++s) words[s] = in[u][s].word[w];
        out.word[w] = combine<T, Op>(words);
      }
#pragma unroll
      for (u32 d = 0; d < DESTS; ++d) store_pack(to.at[d] + skip + (i + u64(u) * blockDim.x) * BYTES, out);
    }
  }
  if constexpr (UNROLL > 1) {
    const u64 done = i - threadIdx.x;
    move_packs<T, Op, BYTES, 1>(from, to, skip + done * BYTES, packs - done);
  }
}

// Moves with packs of `BYTES` where all addresses agree mod BYTES: elements before and after them one by one.
template <class T, class Op, u32 BYTES, u32 UNROLL, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move_aligned(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 bytes) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  u64 head = (BYTES - from.at[0] % BYTES) % BYTES;
  if (head > bytes) head = bytes;
  const u64 packs = (bytes - head) / BYTES;
  move_packs<T, Op, BYTES, UNROLL>(from, to, head, packs);
  if constexpr (BYTES > ELEMENT) {
    const u64 tail = head + packs * BYTES;
    move_packs<T, Op, ELEMENT, 1>(from, to, 0, head / ELEMENT);
    move_packs<T, Op, ELEMENT, 1>(from, to, tail, (bytes - tail) / ELEMENT);
  }
}

// Combines `count` elements of the sources in order and stores the result to every destination, with the widest packs
// on which all addresses agree.
template <class T, class Op, u32 SOURCES, u32 DESTS>
__device__ __forceinline__ void move(const Addresses<SOURCES>& from, const Addresses<DESTS>& to, u64 count) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  constexpr u32 UNROLL = SOURCES >= 8 ? 1 : 8 / SOURCES;
  u64 apart = 0;
#pragma unroll
  for (u32 s = 1; s < SOURCES; ++s) apart |= from.at[s] ^ from.at[0];
#pragma unroll
  for (u32 d = 0; d < DESTS; ++d) apart |= to.at[d] ^ from.at[0];
  const u64 bytes = count * ELEMENT;
  if (apart % 16 == 0) {
    move_aligned<T, Op, 16, UNROLL>(from, to, bytes);
  } else if (apart % 8 == 0) {
    move_aligned<T, Op, 8, 1>(from, to, bytes);
  } else if (ELEMENT < 4 && apart % 4 == 0) {
    move_aligned<T, Op, 4, 1>(from, to, bytes);
  } else {
    move_aligned<T, Op, ELEMENT, 1>(from, to, bytes);
  }
}

}  // namespace quadrille

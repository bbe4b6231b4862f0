// What the kernels of this folder share: the parameter block of compiler/src/kernel/abi.rs, who runs, flags, packs of 16 bytes. In
// front stand definitions of ENTRY, RANKS, BLOCKS, THREADS (of a rank), ONE_LAUNCH (one launch for all ranks, else one a
// rank) and FLOAT (elements are f32, else bf16).

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct Params {
  u32 version, rank;
  u64 count;  // elements
  u32 hash, reserved;
  u64 patience, abort, status, multicast_input, multicast_output, scalar;
  u64 input[RANKS], output[RANKS], scratch[RANKS], counters[RANKS], fifos[RANKS];
};

__device__ __forceinline__ u32 own_rank(const Params& p) { return ONE_LAUNCH ? blockIdx.x / BLOCKS : p.rank; }
__device__ __forceinline__ u32 own_block() { return ONE_LAUNCH ? blockIdx.x % BLOCKS : blockIdx.x; }

__device__ __forceinline__ void store_release(u64 address, u64 word) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
}

__device__ __forceinline__ u64 load_acquire(u64 address) {
  u64 word;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
  return word;
}

__device__ __forceinline__ u64 load(u64 address) {
  u64 word;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
  return word;
}

__device__ __forceinline__ void store(u64 address, u64 word) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
}

// A rank's counter region: the calls that each of its blocks has made, then a flag of each phase, block and peer. The peers'
// flags of a phase and block lie together, so that a warp polls them with one access.
__device__ __forceinline__ u64 calls_of(const Params& p, u32 rank, u32 block) { return p.counters[rank] + 8 * block; }
__device__ __forceinline__ u64 flag_of(const Params& p, u32 owner, u32 phase, u32 block, u32 peer) {
  return p.counters[owner] + 8 * (BLOCKS + (phase * BLOCKS + block) * RANKS + peer);
}

// The blocks of equal index of all ranks wait for each other: a thread a peer. Those of the call before cannot be taken for
// this one's, as flags count.
__device__ __forceinline__ void meet(const Params& p, u32 phase, u32 rank, u32 block, u64 call) {
  const u32 peer = threadIdx.x;
  if (peer < RANKS && peer != rank) {
    store_release(flag_of(p, peer, phase, block, rank), call);
    const u64 flag = flag_of(p, rank, phase, block, peer);
    while (load_acquire(flag) < call) {}
  }
}

struct Pack {
  u32 word[4];
};

__device__ __forceinline__ Pack load_pack(u64 a) {
  Pack v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(a)
               : "memory");
  return v;
}

__device__ __forceinline__ void store_pack(u64 a, const Pack& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(a), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]),
               "r"(v.word[3])
               : "memory");
}

#if FLOAT
using Element = float;
__device__ __forceinline__ float widened(Element e) { return e; }
__device__ __forceinline__ Element narrowed(float f) { return f; }
__device__ __forceinline__ u32 sum_word(const u32 (&in)[RANKS]) {
  float sum = __uint_as_float(in[0]);
#pragma unroll
  for (u32 r = 1; r < RANKS; ++r) sum += __uint_as_float(in[r]);
  return __float_as_uint(sum);
}
#else
using Element = u16;
__device__ __forceinline__ float widened(Element e) { return __uint_as_float(static_cast<u32>(e) << 16); }
__device__ __forceinline__ Element narrowed(float f) {
  u16 e;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(e) : "f"(f));
  return e;
}
// Two elements, in f32, rounded once.
__device__ __forceinline__ u32 sum_word(const u32 (&in)[RANKS]) {
  float low = __uint_as_float(in[0] << 16), high = __uint_as_float(in[0] & 0xffff0000u);
#pragma unroll
  for (u32 r = 1; r < RANKS; ++r) {
    low += __uint_as_float(in[r] << 16);
    high += __uint_as_float(in[r] & 0xffff0000u);
  }
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
#endif

constexpr u32 LOADS = 8;                                      // in flight
constexpr u32 ROUND = LOADS > RANKS ? LOADS / RANKS : 1;      // packs of each rank among them
constexpr u64 STRIDE = u64(BLOCKS) * THREADS * sizeof(Pack);  // from a thread's pack to its next one

// Packs at `offset` and on, summed over all ranks in their order, to DESTS places.
template <u32 PACKS, u32 DESTS>
__device__ __forceinline__ void sum_packs(const u64 (&from)[RANKS], const u64 (&to)[DESTS], u64 offset) {
  Pack in[PACKS][RANKS];
#pragma unroll
  for (u32 u = 0; u < PACKS; ++u)
#pragma unroll
    for (u32 r = 0; r < RANKS; ++r) in[u][r] = load_pack(from[r] + offset + u * STRIDE);
#pragma unroll
  for (u32 u = 0; u < PACKS; ++u) {
    Pack sum;
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
      u32 words[RANKS];
#pragma unroll
      for (u32 r = 0; r < RANKS; ++r) words[r] = in[u][r].word[w];
      sum.word[w] = sum_word(words);
    }
#pragma unroll
    for (u32 d = 0; d < DESTS; ++d) store_pack(to[d] + offset + u * STRIDE, sum);
  }
}

// The block's share of the bytes from `begin` to `end`, which are multiples of 16.
template <u32 DESTS>
__device__ __forceinline__ void sum_all(const u64 (&from)[RANKS], const u64 (&to)[DESTS], u64 begin, u64 end, u32 block) {
  u64 offset = begin + (u64(block) * THREADS + threadIdx.x) * sizeof(Pack);
  if constexpr (ROUND > 1) {
#pragma unroll 1
    for (; offset + (ROUND - 1) * STRIDE < end; offset += ROUND * STRIDE) sum_packs<ROUND>(from, to, offset);
  }
#pragma unroll 1
  for (; offset < end; offset += STRIDE) sum_packs<1>(from, to, offset);
}

// Elements from `offset` to the end of `bytes`, fewer than a pack.
template <u32 DESTS>
__device__ __forceinline__ void sum_tail(const u64 (&from)[RANKS], const u64 (&to)[DESTS], u64 offset, u64 bytes) {
  offset += threadIdx.x * sizeof(Element);
  if (offset >= bytes) return;
  float sum = 0;
#pragma unroll
  for (u32 r = 0; r < RANKS; ++r) {
    const float value = widened(*reinterpret_cast<const Element*>(from[r] + offset));
    sum = r == 0 ? value : sum + value;
  }
#pragma unroll
  for (u32 d = 0; d < DESTS; ++d) *reinterpret_cast<Element*>(to[d] + offset) = narrowed(sum);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS, 1) ENTRY(const __grid_constant__ Params p)

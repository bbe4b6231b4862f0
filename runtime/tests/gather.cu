// A collective by hand: each rank waits for every peer's start, puts its input into every output, and waits for every
// peer's data. The text that is compiled begins with definitions of RANKS, CAP, ELEMENT, IN_PLACE and one or no fault.
// A line that begins a step ends in a comment with `@` and the step's name; without a name, the step ends there.

using u32 = unsigned int;
using u64 = unsigned long long;

struct Params {
  u32 version, rank;
  u64 count;
  u32 hash, reserved;
  u64 patience, abort, status, multicast_input, multicast_output, scalar;
  u64 input[RANKS], output[RANKS], scratch[RANKS], counters[RANKS], fifos[RANKS];
};

constexpr u64 STARTS = u64(RANKS) * CAP;
// Counters of FIFOs follow: messages, and credits of three protocols, 16 FIFOs from each rank.
constexpr u64 WORDS = STARTS + STARTS * CAP + 4 * u64(RANKS) * 16;

__device__ u64 start_word(u32 rank) { return u64(rank) * CAP; }
__device__ u64 data_word(u32 rank) { return STARTS + u64(rank) * CAP * CAP; }

__device__ u64* at(const Params& p, u32 rank, u64 word) { return reinterpret_cast<u64*>(p.counters[rank]) + word; }

__device__ void signal(u64* flag, u64 value) {
#if defined(FAULT_RELAXED)
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
#else
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
#endif
}

__device__ u64 poll(const u64* flag) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}

extern "C" __global__ void ENTRY(const __grid_constant__ Params p) {
  const u32 own = p.rank;
  __shared__ u32 stop;
  if (threadIdx.x == 0) {
    stop = 0;
    for (u32 peer = 0; peer < RANKS; ++peer) {
      if (peer == own) continue;
      u64* sent = at(p, own, 2 * WORDS + start_word(peer));
      signal(at(p, peer, start_word(own)), (++*sent << 32) | p.hash);  //@ start
    }
    for (u32 peer = 0; peer < RANKS && !stop; ++peer) {
      if (peer == own) continue;
      u64* expected = at(p, own, WORDS + start_word(peer));
      const u64* flag = at(p, own, start_word(peer));
      const u32 wanted = ++*expected;
      u64 seen = poll(flag);  //@ wait for starts
      while (int(u32(seen >> 32) - wanted) < 0) seen = poll(flag);
      if (u32(seen) != p.hash) {  //@
        u32* record = reinterpret_cast<u32*>(p.status);
        record[1] = own;
        record[2] = blockIdx.x;
        record[3] = 1;
        record[4] = peer;
        record[5] = p.hash;
        record[6] = u32(seen);
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(record), "r"(1u) : "memory");
        stop = 1;
      }
    }
  }
  __syncthreads();
  if (stop) return;
  const u64 place = own * p.count;
  const ELEMENT* from = reinterpret_cast<const ELEMENT*>(IN_PLACE ? p.output[own] : p.input[own]);
  if (IN_PLACE) from += place;
  for (u32 peer = 0; peer < RANKS; ++peer) {
    if (IN_PLACE && peer == own) continue;
    ELEMENT* to = reinterpret_cast<ELEMENT*>(p.output[peer]) + place;
    for (u64 i = threadIdx.x; i < p.count; i += blockDim.x) {
#if defined(FAULT_OUT_OF_BOUNDS)
      to[i + (own == RANKS - 1)] = from[i];  //@ output[peer][own] = input[own][0]
#elif defined(FAULT_UNWRITTEN)
      to[i] = reinterpret_cast<const ELEMENT*>(p.output[own])[i + place];  //@ output[peer][own] = output[own][own]
#elif defined(FAULT_LOST)
      if (own != 1 || i != 2) to[i] = from[i];  //@ output[peer][own] = input[own][0]
#elif defined(FAULT_WRONG)
      to[i] = from[own == 1 && i == 2 ? 0 : i];  //@ output[peer][own] = input[own][0]
#else
      to[i] = from[i];  //@ output[peer][own] = input[own][0]
#endif
    }
  }
  __syncthreads();  //@
  if (threadIdx.x != 0) return;
  for (u32 peer = 0; peer < RANKS; ++peer) {
    if (peer == own) continue;
#if defined(FAULT_HANG)
    if (own == 0 && peer == 1) continue;
#endif
    signal(at(p, peer, data_word(own)), ++*at(p, own, 2 * WORDS + data_word(peer)));
  }
  for (u32 peer = 0; peer < RANKS; ++peer) {
    if (peer == own) continue;
    u64* expected = at(p, own, WORDS + data_word(peer));
    const u64 wanted = ++*expected;
    while (static_cast<long long>(poll(at(p, own, data_word(peer))) - wanted) < 0) {}  //@ wait for the data
  }
}

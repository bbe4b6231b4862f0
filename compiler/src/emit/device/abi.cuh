// The parameter block and the counter region, as the host lays them out (compiler/src/kernel/abi.rs).

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

namespace quadrille {

template <u32 RANKS>
struct Params {
  u32 version;
  u32 rank;
  u64 count;  // elements of one unit
  u32 hash;   // of the call; equal on all ranks
  u32 reserved;
  u64 patience;  // nanoseconds that a wait may take; 0: without end
  u64 abort;
  u64 status;
  u64 multicast_input;
  u64 multicast_output;
  u64 scalar;  // the factor of premul_sum
  u64 input[RANKS];
  u64 output[RANKS];
  u64 scratch[RANKS];
  u64 counters[RANKS];
  u64 fifos[RANKS];
};

// Words of a status record; the host watches `code`. The abort word stands among them.
enum : u32 {
  STATUS_CODE,
  STATUS_RANK,
  STATUS_BLOCK,
  STATUS_STEP,
  STATUS_PEER,
  STATUS_WANTED,
  STATUS_SEEN,
  STATUS_CLAIM,
  STATUS_ABORT,
  STATUS_KIND,
  STATUS_PLACE,
  STATUS_HASH
};
enum : u32 { STATUS_MISMATCH = 1, STATUS_TIMEOUT, STATUS_ABORTED };
[[maybe_unused]] constexpr u64 STATUS_BYTES = 64;

// The thing that a wait waits for. A counter's place is its word in the region; a line's place is in units of 16 bytes.
enum : u32 { AWAITS_COUNTER, AWAITS_LINE };

// Values of an abort word: go on, or leave because the host or a thread of the rank says so.
enum : u32 { GO_ON, ABORTED_BY_HOST, ABORTED_BY_RANK };

// The thread block that runs: its rank, its call, and the addresses of the rank's status record and abort word.
struct Self {
  u32 rank;
  u32 block;
  u32 hash;
  u64 status;
  u64 abort;
};

// All blocks of a launch are of one rank.
template <u32 RANKS>
__device__ __forceinline__ Self alone(const Params<RANKS>& p) {
  return {p.rank, blockIdx.x, p.hash, p.status, p.abort};
}

// A launch has BLOCKS blocks of each rank, one rank after the other. Status records and abort words lie one after another.
template <u32 BLOCKS, u32 RANKS>
__device__ __forceinline__ Self among(const Params<RANKS>& p) {
  const u32 rank = blockIdx.x / BLOCKS;
  const u64 offset = rank * STATUS_BYTES;
  return {rank, blockIdx.x % BLOCKS, p.hash, p.status + offset, p.abort == 0 ? 0 : p.abort + offset};
}

// The layout of counters: flags, then the counts that this rank expects of them, then the counts that it has sent.
template <u32 RANKS, u32 BLOCK_CAP>
struct Counters {
  static constexpr u64 STARTS = u64(RANKS) * BLOCK_CAP;
  static constexpr u64 OF_BLOCKS = STARTS + STARTS * BLOCK_CAP;
  static constexpr u64 WORDS = OF_BLOCKS + 4 * u64(RANKS) * FIFOS;

  // Start counters are always written by block 0, so a block of the waiting rank names one.
  static __device__ u64 start(u32 rank, u32 waiter) { return u64(rank) * BLOCK_CAP + waiter; }
  static __device__ u64 data(u32 rank, u32 block, u32 own) {
    return STARTS + (u64(rank) * BLOCK_CAP + block) * BLOCK_CAP + own;
  }
  // Messages are kind 0, credits 1 + protocol.
  static __device__ u64 fifo(u32 kind, u32 rank, u32 fifo) {
    return OF_BLOCKS + (u64(kind) * RANKS + rank) * FIFOS + fifo;
  }
};

}  // namespace quadrille

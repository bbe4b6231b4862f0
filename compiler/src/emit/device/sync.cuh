// Links, waits and signals. A link is a block's end of a counter; links live in shared memory while the kernel runs. Link
// number i is of thread i, modulo the threads of a block: no other thread opens, uses or closes it.

namespace quadrille {

struct Link {
  u64 flag;     // address of the word that the writer raises and the waiter polls
  u64 counted;  // address of this end's count at the call's end
  u64 base;     // that count when the call began
  u64 fifo;     // of a credit: address of the first slot
  u32 once;     // signals that come once a call
  u32 advance;  // signals a tile
  u32 peer;     // the rank at the other end

  // What was counted before a tile.
  __device__ __forceinline__ u64 before(u64 tile) const { return base + tile * advance; }
};

// The index at which this thread begins, where thread `first` takes index 0 and the threads go round.
__device__ __forceinline__ u32 index_from(u32 first) {
  return threadIdx.x >= first ? threadIdx.x - first : threadIdx.x + blockDim.x - first;
}

__device__ __forceinline__ u64 load(u64 address) {
  u64 word;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
  return word;
}

__device__ __forceinline__ void store(u64 address, u64 word) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
}

__device__ __forceinline__ u64 load_acquire(u64 address) {
  u64 word;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
  return word;
}

__device__ __forceinline__ void store_release(u64 address, u64 word) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
}

// Counts are kept modulo 2^BITS.
template <u32 BITS>
__device__ __forceinline__ u64 wrapped(u64 count) {
  return count & ~0ull >> (64 - BITS);
}

// Whether `count` has not reached `wanted` yet: by their difference, as a count may have wrapped.
template <u32 BITS>
__device__ __forceinline__ bool behind(u64 count, u64 wanted) {
  return static_cast<long long>((count - wanted) << (64 - BITS)) < 0;
}

// A start word carries the call's hash below its sequence number.
__device__ __forceinline__ u64 start_word(u64 sequence, u32 hash) {
  return wrapped<SEQUENCE_BITS>(sequence) << 32 | hash;
}

// The first block of a rank that finds something wrong records it; the code goes last.
template <class P>
__device__ void record(const P& p, u32 code, u32 step, u32 peer, u32 wanted, u32 seen) {
  u32* status = reinterpret_cast<u32*>(p.status);
  if (atomicCAS(&status[STATUS_CLAIM], 0u, 1u) != 0) return;
  status[STATUS_RANK] = p.rank;
  status[STATUS_BLOCK] = blockIdx.x;
  status[STATUS_STEP] = step;
  status[STATUS_PEER] = peer;
  status[STATUS_WANTED] = wanted;
  status[STATUS_SEEN] = seen;
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&status[STATUS_CODE]), "r"(code) : "memory");
}

// Opens a link: `flag` and `counted` are addresses.
__device__ __forceinline__ void open(Link& link, u64 flag, u64 counted, u32 once, u32 advance, u32 peer) {
  link.flag = flag;
  link.counted = counted;
  link.base = load(counted);
  link.once = once;
  link.advance = advance;
  link.peer = peer;
}

// Threads from `first_thread` on wait until the data links from `first` on reach `value`, counted from the tile's begin,
// one each.
__device__ __forceinline__ void poll_data(const Link* links, u32 first, u32 count, long long value, u32 first_thread,
                                          u64 tile = 0) {
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x) {
    const u64 wanted = wrapped<COUNTER_BITS>(links[first + i].before(tile) + static_cast<u64>(value));
    while (behind<COUNTER_BITS>(load_acquire(links[first + i].flag), wanted)) {
    }
  }
}

// Threads from `first_thread` on wait until the start links from `first` on announce this call, one each; true if a
// peer is in another call.
template <class P>
__device__ __forceinline__ bool poll_start(const P& p, const Link* links, u32 first, u32 count, u32 step,
                                           u32 first_thread) {
  bool failed = false;
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x) {
    const Link& link = links[first + i];
    const u64 sequence = wrapped<SEQUENCE_BITS>(link.base + 1);
    u64 word;
    do {
      word = load_acquire(link.flag);
    } while (behind<SEQUENCE_BITS>(word >> 32, sequence));
    const u32 seen = static_cast<u32>(word);
    if (seen != p.hash) {
      record(p, STATUS_MISMATCH, step, link.peer, p.hash, seen);
      failed = true;
    }
  }
  return failed;
}

// Ends a wait: all threads go on together; true if any of them has to leave.
__device__ __forceinline__ bool leave(bool failed) { return __syncthreads_or(failed); }

__device__ __forceinline__ void block_sync() { __syncthreads(); }

// Threads from `first_thread` on publish signal number `value` of this tile on the data links from `first` on.
__device__ __forceinline__ void signal_data(const Link* links, u32 first, u32 count, u32 value, u32 first_thread,
                                            u64 tile = 0) {
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x)
    store_release(links[first + i].flag, wrapped<COUNTER_BITS>(links[first + i].before(tile) + value));
}

// Threads from `first_thread` on announce on the start links from `first` on that this rank's call has begun.
template <class P>
__device__ __forceinline__ void signal_start(const P& p, const Link* links, u32 first, u32 count, u32 first_thread) {
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x)
    store_release(links[first + i].flag, start_word(links[first + i].base + 1, p.hash));
}

// Stores what the next call counts from. Each link's count is used by this block alone.
__device__ __forceinline__ void close(const Link* links, u32 count, u64 tiles = 1) {
  for (u32 i = threadIdx.x; i < count; i += blockDim.x)
    store(links[i].counted, wrapped<COUNTER_BITS>(links[i].before(tiles) + links[i].once));
}

}  // namespace quadrille

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

  // The count before a tile.
  __device__ __forceinline__ u64 before(u64 tile) const { return base + tile * advance; }
};

// The index at which this thread begins. Thread `first` takes index 0, and the threads go round.
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

// True if `count` has not reached `wanted` yet. Their difference decides, since a count may have wrapped.
template <u32 BITS>
__device__ __forceinline__ bool behind(u64 count, u64 wanted) {
  return static_cast<long long>((count - wanted) << (64 - BITS)) < 0;
}

// A start word carries the call's hash below its sequence number.
__device__ __forceinline__ u64 start_word(u64 sequence, u32 hash) {
  return wrapped<SEQUENCE_BITS>(sequence) << 32 | hash;
}

__device__ __forceinline__ u32 load_word(u64 address) {
  u32 word;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(address) : "memory");
  return word;
}

__device__ __forceinline__ void store_word(u64 address, u32 word) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(word) : "memory");
}

__device__ __forceinline__ u64 now() {
  u64 nanoseconds;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
}

// The first thread of a rank that finds something wrong records it, the code last. Then all of the rank have to leave.
__device__ __noinline__ void record(const Self self, u32 code, u32 step, u32 peer, u32 wanted, u32 seen, u32 kind,
                                    u32 place) {
  u32* status = reinterpret_cast<u32*>(self.status);
  if (atomicCAS(&status[STATUS_CLAIM], 0u, 1u) == 0) {
    status[STATUS_RANK] = self.rank;
    status[STATUS_BLOCK] = self.block;
    status[STATUS_STEP] = step;
    status[STATUS_PEER] = peer;
    status[STATUS_WANTED] = wanted;
    status[STATUS_SEEN] = seen;
    status[STATUS_KIND] = kind;
    status[STATUS_PLACE] = place;
    status[STATUS_HASH] = self.hash;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&status[STATUS_CODE]), "r"(code) : "memory");
  }
  if (self.abort != 0) store_word(self.abort, ABORTED_BY_RANK);
}

// The bounds of a wait: its longest time (0: without end), and the abort word.
struct Bound {
  u64 nanoseconds;
  u64 abort;
};

// Polls from one look at the clock and the abort word to the next.
constexpr u32 PERIOD = 1024;

// Looks at clock and abort word. Returns the deadline, which the first look sets, or 0 if the wait has to end.
__device__ __noinline__ u64 look(const Bound bound, u64 deadline) {
  const u64 time = now();
  if (deadline == 0) deadline = time + bound.nanoseconds;
  return load_word(bound.abort) != GO_ON || time >= deadline ? 0 : deadline;
}

// One wait of a thread.
struct Polling {
  u32 left = PERIOD;
  u64 deadline = 0;

  // Called after a poll in vain: true if it is time to look. Without a bound no register changes from poll to poll, which is
  // how virtual GPUs know a hang.
  __device__ __forceinline__ bool due(const Bound& bound) {
    left -= bound.nanoseconds != 0;
    return left == 0;
  }

  // Called when it is time: true if the thread has to give up.
  __device__ __forceinline__ bool over(const Bound& bound) {
    left = PERIOD;
    deadline = look(bound, deadline);
    return deadline == 0;
  }
};

// A thread leaves although its wait has not ended. It records nothing if its own rank told it to leave.
__device__ __noinline__ void give_up(const Self self, u32 step, u32 peer, u32 kind, u64 offset, u32 wanted, u32 seen) {
  const u32 aborted = load_word(self.abort);
  if (aborted == ABORTED_BY_RANK) return;
  const u32 place = static_cast<u32>(offset / (kind == AWAITS_COUNTER ? 8 : 16));
  record(self, aborted == GO_ON ? STATUS_TIMEOUT : STATUS_ABORTED, step, peer, wanted, seen, kind, place);
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

// Threads from `first_thread` on wait, one link each, until the data links from `first` on reach `value`, counted from the
// tile's begin; true if one gives up.
template <class P>
__device__ __forceinline__ bool poll_data(const P& p, const Self& self, const Link* links, u32 first, u32 count,
                                          long long value, u32 step, u32 first_thread, u64 tile = 0) {
  const Bound bound = {p.patience, self.abort};
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x) {
    const Link& link = links[first + i];
    const u64 wanted = wrapped<COUNTER_BITS>(link.before(tile) + static_cast<u64>(value));
    const u64 flag = link.flag;
    Polling polling;
    for (;;) {
      const u64 seen = load_acquire(flag);
      if (!behind<COUNTER_BITS>(seen, wanted)) break;
      if (!polling.due(bound)) continue;
      if (!polling.over(bound)) continue;
      const u64 offset = flag - p.counters[self.rank];
      give_up(self, step, link.peer, AWAITS_COUNTER, offset, static_cast<u32>(wanted), static_cast<u32>(seen));
      return true;
    }
  }
  return false;
}

// Threads from `first_thread` on wait, one link each, until the start links from `first` on announce this call; true if a
// peer is in another call, or a thread gives up.
template <class P>
__device__ __forceinline__ bool poll_start(const P& p, const Self& self, const Link* links, u32 first, u32 count,
                                           u32 step, u32 first_thread) {
  const Bound bound = {p.patience, self.abort};
  for (u32 i = index_from(first_thread); i < count; i += blockDim.x) {
    const Link& link = links[first + i];
    const u64 sequence = wrapped<SEQUENCE_BITS>(link.base + 1);
    const u64 flag = link.flag;
    Polling polling;
    u64 word;
    for (;;) {
      word = load_acquire(flag);
      if (!behind<SEQUENCE_BITS>(word >> 32, sequence)) break;
      if (!polling.due(bound)) continue;
      if (!polling.over(bound)) continue;
      const u64 offset = flag - p.counters[self.rank];
      give_up(self, step, link.peer, AWAITS_COUNTER, offset, static_cast<u32>(sequence), word >> 32);
      return true;
    }
    const u32 seen = static_cast<u32>(word);
    if (seen != p.hash) {
      record(self, STATUS_MISMATCH, step, link.peer, p.hash, seen, 0, 0);
      return true;
    }
  }
  return false;
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

// Stores the counts that the next call starts from. Only this block uses each link's count.
__device__ __forceinline__ void close(const Link* links, u32 count, u64 tiles = 1) {
  for (u32 i = threadIdx.x; i < count; i += blockDim.x)
    store(links[i].counted, wrapped<COUNTER_BITS>(links[i].before(tiles) + links[i].once));
}

}  // namespace quadrille

// FIFOs: the layout of slots (compiler/src/kernel/abi.rs), links of messages and credits, and the header of a call's first
// message.

namespace quadrille {

enum : u32 { SIMPLE, LL, LL128 };

// A slot's header, and the bytes from one slot to the next.
template <u32 PROTOCOL>
struct Slots {
  static constexpr u64 HEADER = PROTOCOL == LL128 ? 128 : 16;
  static constexpr u64 DATA = PROTOCOL == SIMPLE ? SLOT_BYTES
                              : PROTOCOL == LL   ? 2 * LINE_BYTES
                                                 : 128 * ((LINE_BYTES + 119) / 120);
  static constexpr u64 STRIDE = HEADER + DATA;

  // Address of the first slot of a FIFO in the region at `base`.
  template <u32 RANKS>
  static __device__ __forceinline__ u64 fifo(u64 base, u32 writer, u32 number) {
    constexpr u64 OF_SIMPLE = (u64(RANKS) * FIFOS * SLOTS * Slots<SIMPLE>::STRIDE + 127) / 128 * 128;
    constexpr u64 OF_LL = (u64(RANKS) * FIFOS * SLOTS * Slots<LL>::STRIDE + 127) / 128 * 128;
    constexpr u64 BEGIN = PROTOCOL == SIMPLE ? 0 : PROTOCOL == LL ? OF_SIMPLE : OF_SIMPLE + OF_LL;
    return base + BEGIN + (u64(writer) * FIFOS + number) * SLOTS * STRIDE;
  }
};

// The uses of a slot before its flags begin anew; flags are 1 to USES.
constexpr u64 USES = COUNTER_BITS >= 40 ? 0xffffffffull : (1ull << COUNTER_BITS) / SLOTS;

// True if a message fills its slot. It does so twice in a round of flags: no line is then a round old.
__device__ __forceinline__ bool fills(u64 flag) { return flag == USES || flag == USES / 2; }

// The address of a message or of data in memory, and the message's flag.
struct End {
  u64 at;
  u64 flag;
};

template <u32 COUNT>
struct Ends {
  End end[COUNT];
};

// Message `number` of a tile of the FIFO whose credits a link counts: the address of its header, and its flag.
template <u32 PROTOCOL>
__device__ __forceinline__ End header(const Link& credit, u32 number, u64 tile) {
  const u64 sequence = wrapped<COUNTER_BITS>(credit.before(tile) + number);
  return {credit.fifo + sequence % SLOTS * Slots<PROTOCOL>::STRIDE, sequence / SLOTS % USES + 1};
}

template <u32 PROTOCOL>
__device__ __forceinline__ End message(const Link& credit, u32 number, u64 tile) {
  const End slot = header<PROTOCOL>(credit, number, tile);
  return {slot.at + Slots<PROTOCOL>::HEADER, slot.flag};
}

// The data of a message that has been announced.
__device__ __forceinline__ u64 slot(const Link& credit, u32 number, u64 tile) {
  return message<SIMPLE>(credit, number, tile).at;
}

__device__ __forceinline__ void store_relaxed(u64 address, u64 word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(word) : "memory");
}

__device__ __forceinline__ u64 load_relaxed(u64 address) {
  u64 word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
  return word;
}

// A line that did not come: its address, its flag, and the flag found there. Equal flags: the thread gives up because other
// lanes of its warp do. No address: all lines have come.
struct Missed {
  u64 at;
  u32 wanted;
  u32 seen;
};

// True if a thread gives up; it records the line that did not come.
template <class P>
__device__ __forceinline__ bool give_up(const P& p, const Self& self, u32 step, const Missed& missed) {
  if (missed.at == 0) return false;
  if (missed.wanted != missed.seen)
    give_up(self, step, 0, AWAITS_LINE, missed.at - p.fifos[self.rank], missed.wanted, missed.seen);
  return true;
}

// One thread writes the call's hash into the header of the first message of a call.
template <u32 PROTOCOL, class P>
__device__ __forceinline__ void name_call(const P& p, const Link& credit) {
  if (threadIdx.x != 0) return;
  const End first = header<PROTOCOL>(credit, 0, 0);
  store_relaxed(first.at, PROTOCOL == SIMPLE ? p.hash : first.flag << 32 | p.hash);
}

// The link's thread reads it; true if the hash is another call's, or does not come.
template <u32 PROTOCOL, class P>
__device__ __forceinline__ bool another_call(const P& p, const Self& self, const Link& credit, u32 step, u32 thread) {
  if (threadIdx.x != thread) return false;
  const End first = header<PROTOCOL>(credit, 0, 0);
  u64 word = load_relaxed(first.at);
  if constexpr (PROTOCOL != SIMPLE) {
    const Bound bound = {p.patience, self.abort};
    for (Polling polling; word >> 32 != first.flag; word = load_relaxed(first.at)) {
      if (!polling.due(bound) || !polling.over(bound)) continue;
      const Missed missed = {first.at, static_cast<u32>(first.flag), static_cast<u32>(word >> 32)};
      return give_up(p, self, step, missed);
    }
  }
  const u32 seen = static_cast<u32>(word);
  if (seen == p.hash) return false;
  record(self, STATUS_MISMATCH, step, credit.peer, p.hash, seen, 0, 0);
  return true;
}

template <class C, class P>
__device__ __forceinline__ void open_message_to(Link& link, const P& p, const Self& self, u32 rank, u32 fifo, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::fifo(0, self.rank, fifo);
  open(link, flag, p.counters[self.rank] + 8 * (2 * C::WORDS + C::fifo(0, rank, fifo)), 0, advance, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_message_from(Link& link, const P& p, const Self& self, u32 rank, u32 fifo, u32 advance) {
  const u64 flag = p.counters[self.rank] + 8 * C::fifo(0, rank, fifo);
  open(link, flag, flag + 8 * C::WORDS, 0, advance, rank);
}

// The reading end of a FIFO gives credits.
template <class C, u32 PROTOCOL, u32 RANKS, class P>
__device__ __forceinline__ void open_credit_to(Link& link, const P& p, const Self& self, u32 rank, u32 fifo, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::fifo(1 + PROTOCOL, self.rank, fifo);
  const u64 counted = p.counters[self.rank] + 8 * (2 * C::WORDS + C::fifo(1 + PROTOCOL, rank, fifo));
  open(link, flag, counted, 0, advance, rank);
  link.fifo = Slots<PROTOCOL>::template fifo<RANKS>(p.fifos[self.rank], rank, fifo);
}

// The writing end waits for credits.
template <class C, u32 PROTOCOL, u32 RANKS, class P>
__device__ __forceinline__ void open_credit_from(Link& link, const P& p, const Self& self, u32 rank, u32 fifo, u32 advance) {
  const u64 flag = p.counters[self.rank] + 8 * C::fifo(1 + PROTOCOL, rank, fifo);
  open(link, flag, flag + 8 * C::WORDS, 0, advance, rank);
  link.fifo = Slots<PROTOCOL>::template fifo<RANKS>(p.fifos[rank], self.rank, fifo);
}

}  // namespace quadrille

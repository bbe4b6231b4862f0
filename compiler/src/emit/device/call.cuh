// The chunks of a call, and the two ends of each counter.

namespace quadrille {

// Units of `count` elements, each cut into CHUNKS chunks of q elements: q = ceil(count / CHUNKS), rounded up to 16 bytes
// unless all chunks have to be equal. The last chunks of a unit may be short or empty. Chunks are numbered through.
// An instance has `part` elements of each chunk, in pieces of TILE_BYTES; pieces beyond its end are empty.
template <class T, u32 CHUNKS, bool EQUAL, u64 TILE_BYTES = 16, u32 INSTANCES = 1>
struct Chunks {
  static constexpr u32 ELEMENT = sizeof(typename T::Bits);
  static constexpr u64 PIECE = TILE_BYTES / ELEMENT;
  u64 count;
  u64 q;
  u64 part;
  u64 first;  // of this instance's part

  __device__ explicit Chunks(u64 elements, u32 instance = 0) : count(elements) {
    constexpr u64 GRAIN = EQUAL ? 1 : 16 / ELEMENT;
    q = ((elements + CHUNKS - 1) / CHUNKS + GRAIN - 1) / GRAIN * GRAIN;
    constexpr u64 PACK = 16 / ELEMENT;
    part = INSTANCES == 1 ? q : ((q + INSTANCES - 1) / INSTANCES + PACK - 1) / PACK * PACK;
    first = instance * part;
  }

  __device__ __forceinline__ u64 begin(u32 chunk) const {
    const u64 within = chunk % CHUNKS * q;
    return chunk / CHUNKS * count + (within < count ? within : count);
  }

  // Address of a chunk of the buffer at `base`.
  __device__ __forceinline__ u64 at(u64 base, u32 chunk) const { return base + begin(chunk) * ELEMENT; }

  // Address of a chunk of the scratch at `base`, where every chunk has room for q elements.
  __device__ __forceinline__ u64 slot(u64 base, u32 chunk) const { return base + chunk * q * ELEMENT; }

  // Elements of `chunks` chunks from `chunk` on.
  __device__ __forceinline__ u64 length(u32 chunk, u32 chunks) const { return begin(chunk + chunks) - begin(chunk); }

  // Tiles of a call: of the largest part, at least one.
  __device__ __forceinline__ u64 tiles() const { return part == 0 ? 1 : (part + PIECE - 1) / PIECE; }

  // Address of a tile's piece of a chunk (see `at` and `slot`), and its elements.
  __device__ __forceinline__ u64 piece_at(u64 base, u32 chunk, u64 tile) const {
    return at(base, chunk) + first * ELEMENT + tile * TILE_BYTES;
  }
  __device__ __forceinline__ u64 piece_slot(u64 base, u32 chunk, u64 tile) const {
    return slot(base, chunk) + first * ELEMENT + tile * TILE_BYTES;
  }
  __device__ __forceinline__ u64 piece(u32 chunk, u64 tile) const {
    const u64 all = length(chunk, 1), end = all < first + part ? all : first + part;
    const u64 before = first + tile * PIECE, left = end > before ? end - before : 0;
    return left < PIECE ? left : PIECE;
  }
};

template <class C, class P>
__device__ __forceinline__ void open_start_to(Link& link, const P& p, const Self& self, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::start(self.rank, block);
  open(link, flag, p.counters[self.rank] + 8 * (2 * C::WORDS + C::start(rank, block)), advance, 0, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_start_from(Link& link, const P& p, const Self& self, u32 rank, u32, u32 advance) {
  const u64 flag = p.counters[self.rank] + 8 * C::start(rank, self.block);
  open(link, flag, flag + 8 * C::WORDS, advance, 0, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_data_to(Link& link, const P& p, const Self& self, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::data(self.rank, self.block, block);
  open(link, flag, p.counters[self.rank] + 8 * (2 * C::WORDS + C::data(rank, block, self.block)), 0, advance, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_data_from(Link& link, const P& p, const Self& self, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[self.rank] + 8 * C::data(rank, block, self.block);
  open(link, flag, flag + 8 * C::WORDS, 0, advance, rank);
}

}  // namespace quadrille

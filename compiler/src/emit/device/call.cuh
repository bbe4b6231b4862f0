// The chunks of a call, and the two ends of each counter.

namespace quadrille {

// Units of `count` elements, each cut into CHUNKS chunks of q elements: q = ceil(count / CHUNKS), rounded up to 16 bytes
// unless all chunks have to be equal. The last chunks of a unit may be short or empty. Chunks are numbered through.
template <class T, u32 CHUNKS, bool EQUAL>
struct Chunks {
  static constexpr u32 ELEMENT = sizeof(typename T::Bits);
  u64 count;
  u64 q;

  __device__ explicit Chunks(u64 elements) : count(elements) {
    constexpr u64 GRAIN = EQUAL ? 1 : 16 / ELEMENT;
    q = ((elements + CHUNKS - 1) / CHUNKS + GRAIN - 1) / GRAIN * GRAIN;
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
};

template <class C, class P>
__device__ __forceinline__ void open_start_to(Link& link, const P& p, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::start(p.rank, block);
  open(link, flag, p.counters[p.rank] + 8 * (2 * C::WORDS + C::start(rank, block)), advance, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_start_from(Link& link, const P& p, u32 rank, u32, u32 advance) {
  const u64 flag = p.counters[p.rank] + 8 * C::start(rank, blockIdx.x);
  open(link, flag, flag + 8 * C::WORDS, advance, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_data_to(Link& link, const P& p, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[rank] + 8 * C::data(p.rank, blockIdx.x, block);
  open(link, flag, p.counters[p.rank] + 8 * (2 * C::WORDS + C::data(rank, block, blockIdx.x)), advance, rank);
}

template <class C, class P>
__device__ __forceinline__ void open_data_from(Link& link, const P& p, u32 rank, u32 block, u32 advance) {
  const u64 flag = p.counters[p.rank] + 8 * C::data(rank, block, blockIdx.x);
  open(link, flag, flag + 8 * C::WORDS, advance, rank);
}

}  // namespace quadrille

// Every kind of move with so many sources and destinations, in one block. Before this text stand the device code, and
// definitions of ENTRY and COUNT (the elements of a chunk).

namespace quadrille {
namespace {

constexpr u64 CHUNK = 4 * COUNT, SLOT = 512, MOST = 64;

template <u32 N>
__device__ void place(Addresses<N>& each, u64 at) {
#pragma unroll
  for (u32 i = 0; i < N; ++i) each.at[i] = at + i * CHUNK;
}

// Sources are the first chunks of the input, destinations those of the output from `to` on.
template <u32 SOURCES, u32 DESTS>
__device__ void memory(const Params<1>& p, u64 to) {
  Addresses<SOURCES> from;
  Addresses<DESTS> dests;
  place(from, p.input[0]);
  place(dests, to);
  move<U32, Sum>(from, dests, COUNT);
}

// Bit i of SLOTTED: end i is a slot.
template <u64 SLOTTED, u32 N>
__device__ void place(Ends<N>& ends, u64 memory, u64 slots, u64 flag) {
#pragma unroll
  for (u32 i = 0; i < N; ++i)
    ends.end[i] = (SLOTTED >> i & 1) != 0 ? End{slots + i * SLOT, flag} : End{memory + i * CHUNK, 0};
}

template <u32 PROTOCOL, u32 SOURCES, u32 DESTS, u64 FROM, u64 TO>
__device__ void lined(const Params<1>& p, const Ends<SOURCES> from, const Ends<DESTS> to) {
  const Bound bound = {p.patience, p.abort};
  if constexpr (PROTOCOL == LL) {
    move_ll<U32, Sum, SOURCES, DESTS, FROM, TO>(from, to, COUNT, 0, bound);
  } else {
    move_ll128<U32, Sum, SOURCES, DESTS, FROM, TO>(from, to, COUNT, 0, bound);
  }
  __syncthreads();
}

// Chunks are stored to their slots and read from them one by one, before and after.
template <u32 PROTOCOL, u32 SOURCES, u32 DESTS, u64 FROM, u64 TO>
__device__ void lines(const Params<1>& p, u64 to, u64 flag) {
  const u64 read = p.scratch[0], stored = read + MOST * SLOT;
#pragma unroll 1
  for (u32 s = 0; s < SOURCES; ++s)
    lined<PROTOCOL, 1, 1, 0, 1>(p, {{{p.input[0] + s * CHUNK, 0}}}, {{{read + s * SLOT, flag}}});
  Ends<SOURCES> from;
  Ends<DESTS> dests;
  place<FROM>(from, p.input[0], read, flag);
  place<TO>(dests, to, stored, flag);
  lined<PROTOCOL, SOURCES, DESTS, FROM, TO>(p, from, dests);
#pragma unroll 1
  for (u32 d = 0; d < DESTS; ++d)
    if ((TO >> d & 1) != 0)
      lined<PROTOCOL, 1, 1, 1, 0>(p, {{{stored + d * SLOT, flag}}}, {{{to + d * CHUNK, 0}}});
}

}  // namespace
}  // namespace quadrille

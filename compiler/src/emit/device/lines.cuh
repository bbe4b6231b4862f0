// Moves through lines that carry data and flags together (NCCL's LL and LL128). Memory and slots may be mixed: bit s of FROM
// says that source s is a slot, bit d of TO that destination d is one.
//
// Slots are written and read to their ends twice in a round of flags, so that no line keeps a flag until it comes again.

namespace quadrille {

// Up to 8 bytes of memory, of which `left` are there, as two words; the rest is 0.
template <class T>
__device__ __forceinline__ void load_bytes(u64 at, u64 left, u32* words) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  if (left >= 8 && at % 8 == 0) {
    const Pack<8> pack = load_pack(at, static_cast<Pack<8>*>(nullptr));
    words[0] = pack.word[0];
    words[1] = pack.word[1];
    return;
  }
  words[0] = words[1] = 0;
  if constexpr (ELEMENT < 8) {
#pragma unroll
    for (u32 e = 0; e < 8 / ELEMENT; ++e)
      if (e * ELEMENT < left)
        words[e * ELEMENT / 4] |= load_pack(at + e * ELEMENT, static_cast<Pack<ELEMENT>*>(nullptr)).word[0]
                                  << e * ELEMENT % 4 * 8;
  }
}

template <class T>
__device__ __forceinline__ void store_bytes(u64 at, u64 left, const u32* words) {
  constexpr u32 ELEMENT = sizeof(typename T::Bits);
  if (left >= 8 && at % 8 == 0) {
    Pack<8> pack;
    pack.word[0] = words[0];
    pack.word[1] = words[1];
    store_pack(at, pack);
    return;
  }
  if constexpr (ELEMENT < 8) {
#pragma unroll
    for (u32 e = 0; e < 8 / ELEMENT; ++e)
      if (e * ELEMENT < left) {
        Pack<ELEMENT> pack;
        pack.word[0] = words[e * ELEMENT / 4] >> e * ELEMENT % 4 * 8;
        store_pack(at + e * ELEMENT, pack);
      }
  }
}

__device__ __forceinline__ void load_line(u64 at, u64& low, u64& high) {
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(at) : "memory");
}

__device__ __forceinline__ void store_line(u64 at, u64 low, u64 high) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high) : "memory");
}

// Combines words of all sources, group by group.
template <class T, class Op, u32 WORDS, u32 SOURCES>
__device__ __forceinline__ void combine_words(const u32 (&in)[SOURCES][WORDS], u32 (&out)[WORDS], u64 scalar) {
#pragma unroll
  for (u32 g = 0; g < WORDS / T::WORDS; ++g) {
    u32 words[SOURCES][T::WORDS], result[T::WORDS];
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s)
#pragma unroll
      for (u32 w = 0; w < T::WORDS; ++w) words[s][w] = in[s][g * T::WORDS + w];
    combine<T, Op>(words, result, scalar);
#pragma unroll
    for (u32 w = 0; w < T::WORDS; ++w) out[g * T::WORDS + w] = result[w];
  }
}

// The lines of the data, or all lines of a slot that is filled.
template <u64 SLOTTED, u32 COUNT>
__device__ __forceinline__ u64 most_lines(const Ends<COUNT>& ends, u64 lines, u64 all) {
#pragma unroll
  for (u32 i = 0; i < COUNT; ++i)
    if ((SLOTTED >> i & 1) != 0 && fills(ends.end[i].flag)) lines = all;
  return lines;
}

// LL: lines of 16 bytes, two halves of 4 bytes of data and 4 of flag, each stored at once. One thread handles a line. A
// thread that has given up a line stores nothing more.
template <class T, class Op, u32 SOURCES, u32 DESTS, u64 FROM, u64 TO>
__device__ __noinline__ Missed move_ll(const Ends<SOURCES> from, const Ends<DESTS> to, u64 count, u64 scalar,
                                       const Bound bound) {
  const u64 bytes = count * sizeof(typename T::Bits), own = (bytes + 7) / 8;
  const u64 lines = most_lines<TO>(to, most_lines<FROM>(from, own, LINE_BYTES / 8), LINE_BYTES / 8);
#pragma unroll 1
  for (u64 i = threadIdx.x; i < lines; i += blockDim.x) {
    const u64 left = i < own ? bytes - 8 * i : 0;
    u32 in[SOURCES][2], out[2];
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s)
      if ((FROM >> s & 1) == 0) load_bytes<T>(from.end[s].at + 8 * i, left, in[s]);
    Polling polling;
    for (;;) {
      bool waiting = false;
#pragma unroll
      for (u32 s = 0; s < SOURCES; ++s)
        if ((FROM >> s & 1) != 0) {
          const End end = from.end[s];
          u64 low = 0, high = 0;
          if (i < own || fills(end.flag)) {
            load_line(end.at + 16 * i, low, high);
            waiting |= low >> 32 != end.flag || high >> 32 != end.flag;
          }
          in[s][0] = static_cast<u32>(low);
          in[s][1] = static_cast<u32>(high);
        }
      if (!waiting) break;
      if (!polling.due(bound)) continue;
      if (!polling.over(bound)) continue;
#pragma unroll
      for (u32 s = 0; s < SOURCES; ++s)
        if ((FROM >> s & 1) != 0 && (i < own || fills(from.end[s].flag))) {
          u64 low, high;
          load_line(from.end[s].at + 16 * i, low, high);
          const Missed missed = {from.end[s].at + 16 * i, static_cast<u32>(from.end[s].flag),
                                 static_cast<u32>(low >> 32)};
          if (missed.seen != missed.wanted || high >> 32 != missed.wanted) return missed;
        }
    }
    combine_words<T, Op>(in, out, scalar);
#pragma unroll
    for (u32 d = 0; d < DESTS; ++d) {
      const End end = to.end[d];
      if ((TO >> d & 1) == 0) {
        store_bytes<T>(end.at + 8 * i, left, out);
      } else if (i < own || fills(end.flag)) {
        store_line(end.at + 16 * i, end.flag << 32 | out[0], end.flag << 32 | out[1]);
      }
    }
  }
  return {};
}

// LL128: lines of 128 bytes, 120 of data and 8 of flag. Eight neighbouring lanes of a converged warp store and read a line,
// and the warp gives up as one. It relies on links that keep the stores of a warp to one line together.
template <class T, class Op, u32 SOURCES, u32 DESTS, u64 FROM, u64 TO>
__device__ __noinline__ Missed move_ll128(const Ends<SOURCES> from, const Ends<DESTS> to, u64 count, u64 scalar,
                                          const Bound bound) {
  constexpr u64 ALL = (LINE_BYTES + 119) / 120;
  const u64 bytes = count * sizeof(typename T::Bits), own = (bytes + 119) / 120;
  const u64 lines = most_lines<TO>(to, most_lines<FROM>(from, own, ALL), ALL);
  const u32 part = threadIdx.x % 8, in_warp = threadIdx.x % 32 / 8;
#pragma unroll 1
  for (u64 first = threadIdx.x / 32 * 4; first < lines; first += blockDim.x / 8) {
    const u64 line = first + in_warp, offset = line * 120 + part * 16;
    const u64 room = part == 7 ? 8 : 16, rest = line < own && bytes > offset ? bytes - offset : 0;
    const u64 left = rest < room ? rest : room;
    u32 in[SOURCES][4], out[4];
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s)
      if ((FROM >> s & 1) == 0) {
        load_bytes<T>(from.end[s].at + offset, left, &in[s][0]);
        load_bytes<T>(from.end[s].at + offset + 8, left > 8 ? left - 8 : 0, &in[s][2]);
      }
#pragma unroll
    for (u32 s = 0; s < SOURCES; ++s)
      if ((FROM >> s & 1) != 0) {
        const End end = from.end[s];
        const bool mine = line < own || line < lines && fills(end.flag);
        u64 low = 0, high = 0;
        Polling polling;
        for (;;) {
          if (mine) load_line(end.at + line * 128 + part * 16, low, high);
          const bool waiting = mine && part == 7 && high != end.flag;
          if (!__any_sync(~0u, waiting)) break;
          // The lanes have polled equally often, but may have read different abort words.
          if (polling.due(bound) && __any_sync(~0u, polling.over(bound)))
            return {end.at + line * 128, static_cast<u32>(end.flag), static_cast<u32>(waiting ? high : end.flag)};
        }
        // The data that the other lanes have read may be older than the flag.
        if (mine) load_line(end.at + line * 128 + part * 16, low, high);
        in[s][0] = static_cast<u32>(low);
        in[s][1] = static_cast<u32>(low >> 32);
        in[s][2] = part == 7 ? 0 : static_cast<u32>(high);
        in[s][3] = part == 7 ? 0 : static_cast<u32>(high >> 32);
      }
    combine_words<T, Op>(in, out, scalar);
#pragma unroll
    for (u32 d = 0; d < DESTS; ++d) {
      const End end = to.end[d];
      if ((TO >> d & 1) == 0) {
        store_bytes<T>(end.at + offset, left, &out[0]);
        store_bytes<T>(end.at + offset + 8, left > 8 ? left - 8 : 0, &out[2]);
      } else if (line < own || line < lines && fills(end.flag)) {
        const u64 high = part == 7 ? end.flag : out[2] | u64(out[3]) << 32;
        store_line(end.at + line * 128 + part * 16, out[0] | u64(out[1]) << 32, high);
      }
    }
  }
  return {};
}

}  // namespace quadrille

// Two-shot all-reduce: every rank gets one part of all inputs, sums it, and puts the sum to all outputs, which begins with its
// own and goes on with the next rank's, so that not all ranks store to the same one at once.

KERNEL {
  const u32 rank = own_rank(p), block = own_block();
  const u64 call = load(calls_of(p, rank, block)) + 1;
  u64 from[RANKS], to[RANKS];
#pragma unroll
  for (u32 r = 0; r < RANKS; ++r) {
    from[r] = p.input[r];
    to[r] = p.output[(rank + r) % RANKS];
  }
  const u64 bytes = p.count * sizeof(Element), packs = bytes / sizeof(Pack);
  const u64 part = (packs + RANKS - 1) / RANKS;
  const u64 first = rank * part < packs ? rank * part : packs;
  const u64 last = first + part < packs ? first + part : packs;
  // The inputs are there, and the outputs may be stored to: their ranks' kernels have begun.
  meet(p, 0, rank, block, call);
  __syncthreads();
  sum_all(from, to, first * sizeof(Pack), last * sizeof(Pack), block);
  if (rank == RANKS - 1 && block == BLOCKS - 1) sum_tail(from, to, packs * sizeof(Pack), bytes);
  __syncthreads();
  // The inputs have been read, and the outputs are complete.
  meet(p, 1, rank, block, call);
  if (threadIdx.x == 0) store(calls_of(p, rank, block), call);
}

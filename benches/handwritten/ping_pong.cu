// A signal that goes from rank 0 to rank 1 and back, as often as the call has elements; other ranks have nothing to do.

KERNEL {
  const u32 rank = own_rank(p);
  if (rank > 1 || own_block() != 0 || threadIdx.x != 0) return;
  const u64 before = load(calls_of(p, rank, 0));
  const u64 own = flag_of(p, rank, 0, 0, 1 - rank), other = flag_of(p, 1 - rank, 0, 0, rank);
#pragma unroll 1
  for (u64 i = 1; i <= p.count; ++i) {
    if (rank == 0) store_release(other, before + i);
    while (load_acquire(own) < before + i) {}
    if (rank == 1) store_release(other, before + i);
  }
  store(calls_of(p, rank, 0), before + p.count);
}

use super::super::stamp::MemoryId;
use super::*;

const ALL: u32 = u32::MAX;

/// Two ranks with a block of two warps each.
fn two() -> (Clocks, [WarpId; 4]) {
    let mut clocks = Clocks::new(2);
    let warps = [0, 1].map(|rank| {
        let block = clocks.start_block(LaunchId { rank, launch: rank }, 2);
        [0, 1].map(|warp| WarpId { block, warp })
    });
    let [[a, b], [c, d]] = warps;
    (clocks, [a, b, c, d])
}

fn now(clocks: &mut Clocks, who: WarpId) -> Moment {
    let epoch = clocks.epoch(who);
    clocks.moment(epoch)
}

#[test]
fn a_release_publishes_the_lane_alone_unless_lanes_have_met() {
    let (mut clocks, [a, _, c, _]) = two();
    let done = now(&mut clocks, a);
    let (_, view) = clocks.release(a, 1).remove(0);
    clocks.acquire(c, 5, &view);
    assert!(clocks.knows(c, 5, done, 1) && !clocks.knows(c, 5, done, 2) && !clocks.knows(c, 4, done, 1));
    let later = now(&mut clocks, a);
    clocks.meet(a, ALL, ALL);
    let (_, view) = clocks.release(a, 1).remove(0);
    clocks.acquire(c, 5, &view);
    assert!(clocks.knows(c, 5, later, ALL));
    // What comes after a release is not part of it.
    let after = now(&mut clocks, a);
    assert!(!clocks.knows(c, 5, after, 1));
    clocks.meet(c, ALL, ALL);
    assert!(clocks.knows(c, 0, later, ALL) && !clocks.knows(c, 0, after, 1));
}

#[test]
fn a_warp_that_releases_says_nothing_of_others_before_a_barrier() {
    let (mut clocks, [a, b, c, _]) = two();
    let of_b = now(&mut clocks, b);
    let (_, early) = clocks.release(a, 1).remove(0);
    for who in [a, b] {
        clocks.arrive(who, 0, ALL, true);
    }
    clocks.complete(a.block, 0, 64);
    assert!(clocks.knows(a, 7, of_b, ALL) && clocks.all_know(a, of_b));
    let (_, late) = clocks.release(a, 1).remove(0);
    clocks.acquire(c, 0, &early);
    assert!(!clocks.knows(c, 0, of_b, ALL));
    clocks.acquire(c, 0, &late);
    assert!(clocks.knows(c, 0, of_b, ALL));
}

#[test]
fn a_barrier_of_some_warps_tells_them_alone() {
    let mut clocks = Clocks::new(1);
    let block = clocks.start_block(LaunchId { rank: 0, launch: 0 }, 3);
    let [a, b, c] = [0, 1, 2].map(|warp| WarpId { block, warp });
    let moments = [a, b, c].map(|who| now(&mut clocks, who));
    clocks.arrive(a, 1, ALL, false);
    clocks.arrive(b, 1, ALL, true);
    clocks.complete(block, 1, 96);
    assert!(clocks.knows(b, 3, moments[0], ALL));
    assert!(!clocks.knows(a, 3, moments[1], ALL) && !clocks.knows(c, 3, moments[0], ALL));
    let after = now(&mut clocks, a);
    assert!(!clocks.knows(b, 3, after, ALL));
}

#[test]
fn fences_make_ready_what_stores_publish_and_known_what_reads_have_seen() {
    let (mut clocks, [a, _, c, _]) = two();
    let done = now(&mut clocks, a);
    assert!(clocks.ready(a, 0).is_empty());
    clocks.fence(a, ALL, Scope::Sys, false, true);
    let after = now(&mut clocks, a);
    let message = clocks.ready(a, 3).remove(0);
    let at = (MemoryId::Shared(0), 0);
    clocks.see(c, 2, at, &message);
    assert!(!clocks.knows(c, 2, done, 1 << 3));
    // A fence that does not reach the other rank makes nothing known, and takes nothing away.
    clocks.fence(c, ALL, Scope::Gpu, true, false);
    assert!(!clocks.knows(c, 2, done, 1 << 3));
    clocks.fence(c, ALL, Scope::Sys, true, false);
    assert!(clocks.knows(c, 2, done, 1 << 3) && !clocks.knows(c, 2, done, 1 << 4));
    assert!(!clocks.knows(c, 2, after, 1 << 3) && !clocks.knows(c, 1, done, 1 << 3));
}

#[test]
fn ordered_fences_know_of_each_other_within_their_scopes() {
    let (mut clocks, [a, b, c, _]) = two();
    let done = now(&mut clocks, a);
    clocks.order_fence(a, 1, Scope::Gpu);
    clocks.order_fence(c, 1, Scope::Sys);
    clocks.order_fence(b, 1, Scope::Sys);
    assert!(!clocks.knows(c, 0, done, 1) && clocks.knows(b, 0, done, 1));
}

#[test]
fn a_launch_knows_all_earlier_ones_of_its_rank_and_what_they_knew() {
    let (mut clocks, [a, b, c, _]) = two();
    let moments = [a, b, c].map(|who| now(&mut clocks, who));
    let (_, view) = clocks.release(c, 1).remove(0);
    clocks.acquire(b, 0, &view);
    clocks.end_launch(clocks.home(a.block));
    let block = clocks.start_block(LaunchId { rank: 0, launch: 9 }, 1);
    let next = WarpId { block, warp: 0 };
    assert!(clocks.knows(next, 0, moments[0], ALL) && clocks.knows(next, 0, moments[1], ALL));
    assert!(clocks.knows(next, 0, moments[2], 1) && !clocks.knows(next, 0, moments[2], 2));
}

#[test]
fn a_proxy_takes_a_fence_of_its_own() {
    let (mut clocks, [a, _, c, _]) = two();
    let done = now(&mut clocks, a);
    let (_, plain) = clocks.release(a, 1).remove(0);
    clocks.acquire(c, 0, &plain);
    assert!(clocks.knows(c, 0, done, 1) && !clocks.fenced(c, 0, done, 1, Proxy::Async));
    clocks.fence_proxy(c, 1, Proxy::Async);
    assert!(clocks.fenced(c, 0, done, 1, Proxy::Async) && !clocks.fenced(c, 0, done, 1, Proxy::Alias));
    // The writer's fence serves as well.
    clocks.fence_proxy(a, 1, Proxy::Alias);
    let (_, fenced) = clocks.release(a, 1).remove(0);
    clocks.acquire(c, 0, &fenced);
    assert!(clocks.fenced(c, 0, done, 1, Proxy::Alias));
}

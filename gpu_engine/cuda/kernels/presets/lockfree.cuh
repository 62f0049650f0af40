// Hong's lock-free rule, one thread a vertex (Hong 2008; Gutierrez, Algorithm 4.3; Kannappan et al., Algorithm 2;
// WBPR, Algorithm 1): push to the lowest residual neighbour if that is lower, else stand one above it.
//
// What was racy. A neighbour v may push to u by the height of u that it read before u rose: then (u, v) is residual and
// steep, h(u) > h(v) + 1. Hong's proof mends that in the end, because v's push also gave u the excess to send back, but
// it takes the writes of a push to be seen in their order, which CUDA's relaxed atomics do not promise.
// How it is repaired. A fence stands between the residuals and the excesses of a push, and another between reading
// the own excess and reading the own row: who sees an excess sees the arc on which it came, so what u holds always
// covers its steep arcs. Before the heights are used for anything but these two rules, `cancel_violations` sends
// back over every steep arc (Gutierrez, Algorithm 4.5; Kannappan et al., Algorithm 3), with the difference that it
// never sends more than the vertex holds. Then an exact search follows in all schedules.
#pragma once

#include "presets/common.cuh"

// One push or relabel of u; false if u is not active.
template <class Layout>
__device__ bool push_or_relabel(const Region& region, const Layout& layout, int u, Count& count) {
    if (region.role[u] != ORDINARY) return false;
    Units held = region.held(u);
    int own = region.at(u);
    if (held <= 0 || own >= region.n) return false;
    __threadfence();
    Neighbour lowest{-1, 0, 0, 0};
    int low = NOWHERE, degree = layout.degree(u);
    for (int i = 0; i < degree; i++) {
        Neighbour v = layout.at(u, i);
        if (v.room <= 0) continue;
        int far = region.at(v.vertex);
        if (far < low) low = far, lowest = v;
    }
    count.scanned += degree;
    if (own > low) {
        Units amount = min(held, lowest.room);
        layout.move(u, lowest, amount);
        __threadfence();
        region.give(lowest.vertex, amount);
        region.give(u, -amount);
        count.pushes++;
    } else {
        store(region.height + u, min(low, region.n - 1) + 1);
        count.relabels++;
    }
    return true;
}

// `cycles` operations of every vertex of `list`, or of all if LISTED is false; `busy` is set if there was any.
template <bool LISTED, class Layout>
__device__ void local_operations(const Region& region, const Layout& layout, const int* list, int length, int cycles,
                                 int* busy) {
    Count count;
    bool any = false;
    for (int i = thread(); i < length; i += threads())
        for (int cycle = 0; cycle < cycles; cycle++)
            any |= push_or_relabel(region, layout, LISTED ? list[i] : i, count);
    if (any) store(busy, 1);
    count.add_to(region.tally);
}

// Send back over steep arcs. Heights do not change here, and what goes down a steep arc makes no other one.
template <class Layout> __device__ void cancel_violations(const Region& region, const Layout& layout, int u, Count& count) {
    int own = region.at(u);
    Units held = region.role[u] == ORDINARY ? region.held(u) : 0;
    if (held <= 0) return;
    int degree = layout.degree(u);
    count.scanned += degree;
    for (int i = 0; i < degree && held > 0; i++) {
        Neighbour v = layout.at(u, i);
        int far = region.at(v.vertex);
        if (v.room <= 0 || far >= region.n || own <= far + 1) continue;
        Units amount = min(held, v.room);
        layout.move(u, v, amount);
        region.give(v.vertex, amount);
        region.give(u, -amount);
        held -= amount;
        count.pushes++;
    }
}
template <bool LISTED, class Layout>
__device__ void cancel_all_violations(const Region& region, const Layout& layout, const int* list, int length) {
    Count count;
    for (int i = thread(); i < length; i += threads()) cancel_violations(region, layout, LISTED ? list[i] : i, count);
    count.add_to(region.tally);
}

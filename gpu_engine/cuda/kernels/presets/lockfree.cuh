// Hong's lock-free rule, one thread a vertex (Hong 2008; Gutierrez, Algorithm 4.3; Kannappan et al., Algorithm 2;
// WBPR, Algorithm 1): push to the lowest residual neighbour if that is lower, else stand one above it.
//
// The race. A neighbour v may push to u by the height of u that it read before u rose: then (u, v) is residual and
// steep, h(u) > h(v) + 1. Hong's proof mends that in the end, because v's push also gave u the excess to send back, but
// it takes the writes of a push to be seen in their order, which CUDA's relaxed atomics do not promise.
// The repair. A fence stands between the residuals and the excesses of a push, and another between reading
// the own excess and reading the own row: who sees an excess sees the arc on which it came, so the excess of u
// always covers its steep arcs. Before the heights are used for anything but these two rules, `cancel_violations` sends
// back over every steep arc (Gutierrez, Algorithm 4.5; Kannappan et al., Algorithm 3), with the difference that it
// never sends more than the vertex's excess. Then an exact search follows in all schedules.
#pragma once

#include "presets/common.cuh"

// One push or relabel of u; false if u is not active.
template <class Layout>
__device__ bool push_or_relabel(const Region& region, const Layout& layout, int u, ThreadCounters& counters) {
    if (region.role[u] != INSIDE) return false;
    Units excess = region.excess_of(u);
    int own = region.at(u);
    if (excess <= 0 || own >= region.n) return false;
    __threadfence();
    Neighbour lowest{-1, 0, 0, 0};
    int low = NOWHERE, degree = layout.degree(u);
    for (int i = 0; i < degree; i++) {
        Neighbour v = layout.at(u, i);
        if (v.residual <= 0) continue;
        int far = region.at(v.vertex);
        if (far < low) low = far, lowest = v;
    }
    counters.scanned += degree;
    if (own > low) {
        Units amount = min(excess, lowest.residual);
        layout.move(u, lowest, amount);
        __threadfence();
        region.add_excess(lowest.vertex, amount);
        region.add_excess(u, -amount);
        counters.pushes++;
    } else {
        store(region.height + u, min(low, region.n - 1) + 1);
        counters.relabels++;
    }
    return true;
}

// `cycles` operations of every vertex of `list`, or of all if LISTED is false; `busy` is set if there was any.
template <bool LISTED, class Layout>
__device__ void local_operations(const Region& region, const Layout& layout, const int* list, int length, int cycles,
                                 int* busy) {
    ThreadCounters counters;
    bool any = false;
    for (int i = thread(); i < length; i += threads())
        for (int cycle = 0; cycle < cycles; cycle++) any |= push_or_relabel(region, layout, LISTED ? list[i] : i, counters);
    if (any) store(busy, 1);
    counters.add_to(region.totals);
}

// Send back over steep arcs. Heights do not change here, and what goes down a steep arc makes no other one.
template <class Layout> __device__ void cancel_violations(const Region& region, const Layout& layout, int u,
                                                          ThreadCounters& counters) {
    int own = region.at(u);
    Units excess = region.role[u] == INSIDE ? region.excess_of(u) : 0;
    if (excess <= 0) return;
    int degree = layout.degree(u);
    counters.scanned += degree;
    for (int i = 0; i < degree && excess > 0; i++) {
        Neighbour v = layout.at(u, i);
        int far = region.at(v.vertex);
        if (v.residual <= 0 || far >= region.n || own <= far + 1) continue;
        Units amount = min(excess, v.residual);
        layout.move(u, v, amount);
        region.add_excess(v.vertex, amount);
        region.add_excess(u, -amount);
        excess -= amount;
        counters.pushes++;
    }
}
template <bool LISTED, class Layout>
__device__ void cancel_all_violations(const Region& region, const Layout& layout, const int* list, int length) {
    ThreadCounters counters;
    for (int i = thread(); i < length; i += threads()) cancel_violations(region, layout, LISTED ? list[i] : i, counters);
    counters.add_to(region.totals);
}

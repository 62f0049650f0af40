// One warp a listed vertex (WBPR, Algorithm 2; ECL-MaxFlow, Algorithm 5): the warp finds the lowest residual
// neighbour, its first lane pushes there or relabels.
//
// What was racy. Both papers push and relabel in the same launch, so a vertex may push to a neighbour that is rising:
// steep arcs appear and labels stop being bounds (ECL-MaxFlow has been seen to end with a flow that is not maximum).
// How it is repaired. Two launches: in the first, heights are fixed and who has a lower neighbour pushes; in the second
// residuals are fixed and who had none rises. Then labels are always valid, for the reason given in drain.cu: a push
// goes from h(u) to h(u) - 1, and neighbours that rise at the same time only make a new height smaller than it could
// be. A vertex at height n cannot reach a target and may be dropped for good. The price is a second launch and a
// second look at the rows of those who rise.
#pragma once

#include "presets/common.cuh"

struct Lowest { int height, index; };       // NOWHERE and -1 if no arc is residual

__device__ __forceinline__ int lane() { return threadIdx.x % 32; }
__device__ __forceinline__ int warp() { return thread() / 32; }
__device__ __forceinline__ int warps() { return threads() / 32; }

// The same in all lanes; equal heights by the place in the row.
template <class Layout> __device__ Lowest lowest_neighbour(const Region& region, const Layout& layout, int u) {
    Lowest best{NOWHERE, -1};
    int degree = layout.degree(u);
    for (int i = lane(); i < degree; i += 32) {
        Neighbour v = layout.at(u, i);
        if (v.room <= 0) continue;
        int far = region.at(v.vertex);
        if (far < best.height) best = {far, i};
    }
    for (int step = 16; step > 0; step /= 2) {
        Lowest other{__shfl_xor_sync(WHOLE_WARP, best.height, step), __shfl_xor_sync(WHOLE_WARP, best.index, step)};
        if (other.height < best.height || (other.height == best.height && other.index < best.index)) best = other;
    }
    return best;
}

// What u holds if it is active, else 0: one lane looks for all, because others may be giving to u meanwhile.
__device__ __forceinline__ Units seen_by_first(const Region& region, int u) {
    Units held = 0;
    if (lane() == 0 && region.active(u)) held = region.held(u);
    return __shfl_sync(WHOLE_WARP, held, 0);
}

// First launch. Entries that pushed become ~u. `next` is told who received and who has some left.
template <class Layout, class Next>
__device__ void push_listed(const Region& region, const Layout& layout, int* list, int length, const Next& next) {
    Count count;
    for (int i = warp(); i < length; i += warps()) {
        int u = list[i];
        Units held = seen_by_first(region, u);
        if (held == 0) continue;
        Lowest low = lowest_neighbour(region, layout, u);
        if (lane() != 0) continue;
        count.scanned += layout.degree(u);
        if (low.height >= region.at(u)) continue;
        Neighbour v = layout.at(u, low.index);
        Units amount = min(held, v.room);
        layout.move(u, v, amount);
        region.give(v.vertex, amount);
        Units left = region.give(u, -amount) - amount;
        list[i] = ~u;
        count.pushes++;
        if (region.role[v.vertex] == ORDINARY) next(v.vertex);
        if (left > 0) next(u);
    }
    count.add_to(region.tally);
}

// Second launch, on the list that the first one left. `next` is told who is still active.
template <class Layout, class Next>
__device__ void relabel_listed(const Region& region, const Layout& layout, const int* list, int length,
                               const Next& next) {
    Count count;
    for (int i = warp(); i < length; i += warps()) {
        int u = list[i];
        if (u < 0 || seen_by_first(region, u) == 0) continue;
        Lowest low = lowest_neighbour(region, layout, u);
        if (lane() != 0) continue;
        count.scanned += layout.degree(u);
        if (low.height < region.at(u)) continue;    // it became active in the first launch: its turn comes
        int height = min(low.height, region.n - 1) + 1;
        store(region.height + u, height);
        count.relabels++;
        if (height < region.n) next(u);
    }
    count.add_to(region.tally);
}

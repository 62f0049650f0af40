// One warp a listed vertex (WBPR, Algorithm 2; ECL-MaxFlow, Algorithm 5): the warp finds the lowest residual
// neighbour, its first lane pushes there or relabels.
//
// The race. The two papers push and relabel in the same launch, so a vertex may push to a neighbour that is rising:
// steep arcs appear and labels stop being bounds (ECL-MaxFlow has been seen to end with a flow that is not maximum).
// The repair. There are two launches: in the first, heights are fixed and who has a lower neighbour pushes; in the second
// residuals are fixed and who had none rises. Then labels are always valid, for the reason given in drain.cu: a push
// goes from h(u) to h(u) - 1, and neighbours that rise at the same time only make a new height smaller than it could
// be. A vertex at height n cannot reach a target and may be dropped for good. The price is a second launch and a
// second look at the rows of those who rise.
#pragma once

#include "presets/common.cuh"

struct LowestNeighbour { int height, index; };  // NOWHERE and -1 if no arc is residual

__device__ __forceinline__ int lane() { return threadIdx.x % 32; }
__device__ __forceinline__ int warp() { return thread() / 32; }
__device__ __forceinline__ int warps() { return threads() / 32; }

// The lowest residual neighbour of u, in all lanes; of equal heights the first in the row.
template <class Layout> __device__ LowestNeighbour lowest_neighbour(const Region& region, const Layout& layout, int u) {
    LowestNeighbour best{NOWHERE, -1};
    int degree = layout.degree(u);
    for (int i = lane(); i < degree; i += 32) {
        Neighbour v = layout.at(u, i);
        if (v.residual <= 0) continue;
        int far = region.at(v.vertex);
        if (far < best.height) best = {far, i};
    }
    for (int step = 16; step > 0; step /= 2) {
        LowestNeighbour other{__shfl_xor_sync(WHOLE_WARP, best.height, step), __shfl_xor_sync(WHOLE_WARP, best.index, step)};
        if (other.height < best.height || (other.height == best.height && other.index < best.index)) best = other;
    }
    return best;
}

// The excess of u if it is active, else 0. One lane reads for all, because others may be pushing to u meanwhile.
__device__ __forceinline__ Units active_excess(const Region& region, int u) {
    Units excess = 0;
    if (lane() == 0 && region.active(u)) excess = region.excess_of(u);
    return __shfl_sync(WHOLE_WARP, excess, 0);
}

// First launch. Entries that pushed become ~u. `next` is called for vertices that received, and for u if some is left.
template <class Layout, class Next>
__device__ void push_listed(const Region& region, const Layout& layout, int* list, int length, const Next& next) {
    ThreadCounters counters;
    for (int i = warp(); i < length; i += warps()) {
        int u = list[i];
        Units excess = active_excess(region, u);
        if (excess == 0) continue;
        LowestNeighbour low = lowest_neighbour(region, layout, u);
        if (lane() != 0) continue;
        counters.scanned += layout.degree(u);
        if (low.height >= region.at(u)) continue;
        Neighbour v = layout.at(u, low.index);
        Units amount = min(excess, v.residual);
        layout.move(u, v, amount);
        region.add_excess(v.vertex, amount);
        Units left = region.add_excess(u, -amount) - amount;
        list[i] = ~u;
        counters.pushes++;
        if (region.role[v.vertex] == INSIDE) next(v.vertex);
        if (left > 0) next(u);
    }
    counters.add_to(region.totals);
}

// Second launch, on the list that the first one left. `next` is called for vertices that are still active.
template <class Layout, class Next>
__device__ void relabel_listed(const Region& region, const Layout& layout, const int* list, int length, const Next& next) {
    ThreadCounters counters;
    for (int i = warp(); i < length; i += warps()) {
        int u = list[i];
        if (u < 0 || active_excess(region, u) == 0) continue;
        LowestNeighbour low = lowest_neighbour(region, layout, u);
        if (lane() != 0) continue;
        counters.scanned += layout.degree(u);
        if (low.height < region.at(u)) continue;  // it became active in the first launch: its turn comes
        int height = min(low.height, region.n - 1) + 1;
        store(region.height + u, height);
        counters.relabels++;
        if (height < region.n) next(u);
    }
    counters.add_to(region.totals);
}

// Proof of the value of one terminal pair, as gpu_engine/checks/pairs.py has it: by one warp, from a list of arcs with
// what flows on each, a list of vertices that are one side of a cut, and the capacities alone. It knows nothing of the
// search that has found them.
#pragma once

#include "pair_memory.cuh"

// The value that both the flow and the cut have, or OPEN. `net` and `used` are zero before and after; no mark is `inside`
// before.
__device__ __forceinline__ Units prove_pair(const PairNetwork& g, int source, int sink, const int* arcs, const Units* units,
                                            int n_arcs, const int* side, int n_side, bool holds_sink, Units* net,
                                            Units* used, Node* nodes, int inside) {
    int lane = threadIdx.x % 32;
    bool good = source != sink;
    for (int i = lane; i < n_arcs; i += 32) {
        PairArc arc = g.arcs[arcs[i]];
        good = good && units[i] >= 0 && units[i] <= arc.capacity;
        good = atomicExch((unsigned long long*)used + arcs[i], 1ULL) == 0 && good;
        add(net + arc.head, units[i]);
        add(net + g.arcs[arc.reverse].head, -units[i]);
    }
    __syncwarp();
    for (int i = lane; i < n_arcs; i += 32) {
        int ends[2] = {g.arcs[arcs[i]].head, g.arcs[g.arcs[arcs[i]].reverse].head};
        for (int v : ends)
            if (v != source && v != sink) good = good && load_now(net + v) == 0;
    }
    Units arrives = load_now(net + sink);
    good = good && load_now(net + source) == -arrives;
    __syncwarp();
    for (int i = lane; i < n_arcs; i += 32) {
        used[arcs[i]] = 0;
        net[g.arcs[arcs[i]].head] = net[g.arcs[g.arcs[arcs[i]].reverse].head] = 0;
    }
    bool has_source = false, has_sink = false;
    for (int i = lane; i < n_side; i += 32) {
        nodes[side[i]].mark = inside;
        has_source = has_source || side[i] == source;
        has_sink = has_sink || side[i] == sink;
    }
    has_source = __any_sync(ALL_LANES, has_source), has_sink = __any_sync(ALL_LANES, has_sink);
    good = good && has_sink == holds_sink && has_source != holds_sink;
    __syncwarp();
    Units paid = 0;
    for (int i = lane; i < n_side; i += 32)
        for (int a = g.row_offsets[side[i]]; a < g.row_offsets[side[i] + 1]; a++) {
            PairArc arc = g.arcs[a];
            if (nodes[arc.head].mark == inside) continue;
            paid = min(paid + (holds_sink ? g.arcs[arc.reverse].capacity : arc.capacity), WITHOUT_LIMIT);
        }
    for (int lanes = 16; lanes > 0; lanes /= 2) paid = min(paid + __shfl_xor_sync(ALL_LANES, paid, lanes), WITHOUT_LIMIT);
    return __all_sync(ALL_LANES, good && paid == arrives) ? arrives : OPEN;
}

// A flow state at zero flow: its residuals from the capacities, and the saturated cut that a cold solve starts from. Each
// thread has one edge row or arc at a time. gpu_engine/cpu/repair.py has the invariants.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "edges.cuh"

namespace cg = cooperative_groups;

// Add the capacities of edges to residuals that lie `stride` apart: those of the arc records, or a plain array for a
// certificate. The residuals are zero before the first call; infinite edges come in a second one, where theirs replaces
// what other edges have added to the arc.
extern "C" __global__ void add_capacities(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                          int n_undirected, bool infinite, const Arc* arcs, Capacity* residual, int stride) {
    Edges edges{edge_arc, undirected, n_undirected};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        if (a < 0 || (capacity[row] == INFINITE) != infinite) continue;
        Capacity* directions[2] = {residual + (long long)a * stride, nullptr};
        if (edges.both(row)) directions[1] = residual + (long long)arcs[a].reverse * stride;
        for (Capacity* at : directions) {
            if (at == nullptr) continue;
            if (infinite) *at = INFINITE_RESIDUAL;
            else add(at, (Capacity)capacity[row]);
        }
    }
}

extern "C" __global__ void clear_residuals(int n_arcs, Arc* arcs) {
    for (unsigned a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) arcs[a].residual = 0;
}

extern "C" __global__ void sum_pairs(int n_arcs, Arc* arcs) {
    for (unsigned a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x)
        arcs[a].pair_sum = arcs[a].residual + arcs[arcs[a].reverse].residual;
}

// Say of each edge whether it has a capacity and leads out of `side`, and whether any of these has an end that `reached`
// does not have: the one inside `side` if `inside`, else the one outside.
extern "C" __global__ void find_leaving(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                        int n_undirected, const Arc* arcs, const bool* side, const bool* reached,
                                        bool inside, bool* leaves, bool* astray) {
    Edges edges{edge_arc, undirected, n_undirected};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        bool found = a >= 0 && capacity[row] != 0;
        if (found) {
            int head = arcs[a].head, tail = arcs[arcs[a].reverse].head;
            found = side[tail] != side[head] && (side[tail] || edges.both(row));
            if (found && !reached[side[head] == inside ? head : tail]) *astray = true;
        }
        leaves[row] = found;
    }
}

// Fill an arc of S if it leads to T; returns what that sends. Each link has at most one such arc, so it has one writer.
__device__ __forceinline__ Units saturate_arc(Arc* arcs, Units* excess, const bool* source_side, int a) {
    Arc arc = arcs[a];
    if (arc.residual == 0 || source_side[arc.head]) return 0;
    arcs[a].residual = 0;
    arcs[arc.reverse].residual += arc.residual;
    add(excess + arc.head, (Units)arc.residual);
    return arc.residual;
}
// Fill every arc from S to T: invariant (a) at the start of a cold solve. A warp looks at 32 vertices and visits the rows of
// those in S, but for rows of more than HUB_ROW arcs: those it lists for `saturate_hubs`, in which all blocks share a row.
extern "C" __global__ void saturate(int n, const int* row_offsets, Arc* arcs, Units* excess, const bool* source_side,
                                    int* hubs, int* n_hubs) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int lane = warp.thread_rank(), stride = gridDim.x * blockDim.x;
    for (int base = blockIdx.x * blockDim.x + threadIdx.x - lane; base < n; base += stride) {
        int v = base + lane;
        for (unsigned left = warp.ballot(v < n && source_side[v]); left != 0; left &= left - 1) {
            int u = base + __ffs(left) - 1, begin = row_offsets[u], end = row_offsets[u + 1];
            Units sent = 0;
            if (end - begin <= HUB_ROW)
                for (int a = begin + lane; a < end; a += 32) sent += saturate_arc(arcs, excess, source_side, a);
            else if (lane == 0) hubs[atomicAdd(n_hubs, 1)] = u;
            sent = cg::reduce(warp, sent, cg::plus<Units>());
            if (lane == 0 && sent != 0) add(excess + u, -sent);
        }
    }
}
extern "C" __global__ void saturate_hubs(const int* row_offsets, Arc* arcs, Units* excess, const bool* source_side,
                                         const int* hubs, const int* n_hubs) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (int i = 0; i < *n_hubs; i++) {
        int u = hubs[i], end = row_offsets[u + 1];
        Units sent = 0;
        for (unsigned a = row_offsets[u] + blockIdx.x * blockDim.x + threadIdx.x; a < end; a += gridDim.x * blockDim.x)
            sent += saturate_arc(arcs, excess, source_side, a);
        sent = cg::reduce(warp, sent, cg::plus<Units>());
        if (warp.thread_rank() == 0 && sent != 0) add(excess + u, -sent);
    }
}

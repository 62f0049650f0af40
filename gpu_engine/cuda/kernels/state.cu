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
    for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) arcs[a].residual = 0;
}

extern "C" __global__ void sum_pairs(int n_arcs, Arc* arcs) {
    for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x)
        arcs[a].pair_sum = arcs[a].residual + arcs[arcs[a].reverse].residual;
}

// Fill every arc from S to T: invariant (a) at the start of a cold solve. One thread an arc; each link has at most
// one arc from S to T, so it has one writer.
extern "C" __global__ void saturate(int n_arcs, Arc* arcs, Units* excess, const bool* source_side) {
    for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) {
        int v = arcs[a].head, r = arcs[a].reverse, u = arcs[r].head;
        Capacity x = arcs[a].residual;
        if (x == 0 || !source_side[u] || source_side[v]) continue;
        arcs[a].residual = 0;
        arcs[r].residual += x;
        add(excess + v, (Units)x);
        auto row = cg::labeled_partition(cg::coalesced_threads(), u);  // a source may have millions of arcs
        Units sum = cg::reduce(row, (Units)x, cg::plus<Units>());
        if (row.thread_rank() == 0) add(excess + u, -sum);
    }
}

// A flow state on the device: built from capacities, adjusted to new ones, its regions and sides. The words and
// invariants are those of gpu_engine/cpu/repair.py; each thread has one edge row, vertex or link.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "arc.cuh"

namespace cg = cooperative_groups;

constexpr long long INFINITE = 0x7fffffffffffffffLL;
#ifndef WIDE
constexpr Units NARROW_LIMIT = 1LL << 30;
constexpr Capacity PLENTY = NARROW_LIMIT - 1;      // an infinite edge: more than the state's whole flow
#else
constexpr Capacity PLENTY = 1LL << 61;
#endif

struct Outcome {            // read by the host after an update
    Units gained;           // change of the value
    int lacking, holding;   // how many ends in S have a deficit, how many in T an excess; a vertex counts for each edge
    int overflow;           // a pair sum outgrew Capacity: the state must be rebuilt wide
    int pad;
};

struct Edges {
    const int* edge_arc; const bool* undirected; int n_undirected;
    __device__ bool both(int row) const { return undirected[n_undirected > 1 ? row : 0]; }
};

// Capacities as residuals, `stride` apart: of the arcs themselves, or of a plain array for a certificate. They are
// zero before; infinite edges come second, their amount replaces what others on the link have.
extern "C" __global__ void fill(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                int n_undirected, bool infinite, const Arc* arcs, Capacity* residual, int stride) {
    Edges edges{edge_arc, undirected, n_undirected};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        if (a < 0 || (capacity[row] == INFINITE) != infinite) continue;
        Capacity* ways[2] = {residual + (long long)a * stride, nullptr};
        if (edges.both(row)) ways[1] = residual + (long long)arcs[a].reverse * stride;
        for (Capacity* way : ways) {
            if (way == nullptr) continue;
            if (infinite) *way = PLENTY;
            else add(way, (Capacity)capacity[row]);
        }
    }
}

extern "C" __global__ void clear(int n_arcs, Arc* arcs) {
    for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) arcs[a].residual = 0;
}

extern "C" __global__ void pair_sums(int n_arcs, Arc* arcs) {
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
        auto row = cg::labeled_partition(cg::coalesced_threads(), u);   // a source may have millions of arcs
        Units sum = cg::reduce(row, (Units)x, cg::plus<Units>());
        if (row.thread_rank() == 0) add(excess + u, -sum);
    }
}

// ---- updates --------------------------------------------------------------------------------------------------

// Several edges may share a link, which must be mended once, after all of them have changed: the top bit of its first
// arc's pair sum, which no sum reaches, says that it waits for that.
__device__ __forceinline__ bool take_mark(Capacity* pair_sum) {
#ifndef WIDE
    return atomicAnd((unsigned*)pair_sum, 0x7fffffffu) >> 31;
#else
    return atomicAnd((unsigned long long*)pair_sum, 0x7fffffffffffffffULL) >> 63;
#endif
}
__device__ __forceinline__ void mark(Capacity* pair_sum) {
#ifndef WIDE
    atomicOr((unsigned*)pair_sum, 0x80000000u);
#else
    atomicOr((unsigned long long*)pair_sum, 0x8000000000000000ULL);
#endif
}

__device__ void change_capacity(const Edges& edges, int row, Units x, Arc* arcs, Outcome* outcome) {
    int a = edges.edge_arc[row];
    if (a < 0) return;
    int r = arcs[a].reverse;
    Units both = edges.both(row) ? x : 0;
#ifndef WIDE
    Units old = atomicAdd(&arcs[a].pair_sum, (Capacity)(x + both)) & 0x7fffffff;
    if (old + x + both > NARROW_LIMIT) outcome->overflow = 1;
#else
    add(&arcs[a].pair_sum, x + both);
#endif
    add(&arcs[r].pair_sum, (Capacity)(x + both));
    add(&arcs[a].residual, (Capacity)x);
    if (both) add(&arcs[r].residual, (Capacity)both);
    mark(&arcs[min(a, r)].pair_sum);
}

__device__ void mend(const Edges& edges, int row, Arc* arcs, Units* excess, const bool* source_side, Outcome* outcome) {
    int a = edges.edge_arc[row];
    if (a < 0) return;
    int r = arcs[a].reverse;
    if (!take_mark(&arcs[min(a, r)].pair_sum)) return;
    a = min(a, r), r = arcs[a].reverse;
    int u = arcs[r].head, v = arcs[a].head;
    bool u_in_s = source_side[u], v_in_s = source_side[v];
    Capacity forward = __ldcg(&arcs[a].residual), backward = __ldcg(&arcs[r].residual);
    Capacity pushed = min(forward, (Capacity)0) - min(backward, (Capacity)0);   // cancels flow above a capacity
    if (u_in_s && !v_in_s) pushed = forward;
    else if (v_in_s && !u_in_s) pushed = -backward;
    if (pushed == 0) return;
    arcs[a].residual = forward - pushed;
    arcs[r].residual = backward + pushed;
    add(excess + u, -(Units)pushed);
    add(excess + v, (Units)pushed);
    add(&outcome->gained, (v_in_s ? 0 : (Units)pushed) - (u_in_s ? 0 : (Units)pushed));
}

__device__ void look(int v, const Units* excess, const signed char* role, const bool* source_side, Outcome* outcome) {
    Units e = __ldcg(excess + v);
    if (role[v] != ORDINARY || e == 0) return;
    if (source_side[v] && e < 0) atomicAdd(&outcome->lacking, 1);
    if (!source_side[v] && e > 0) atomicAdd(&outcome->holding, 1);
}
__device__ void look_at_ends(const Edges& edges, int row, const Arc* arcs, const Units* excess, const signed char* role,
                             const bool* source_side, Outcome* outcome) {
    int a = edges.edge_arc[row];
    if (a < 0) return;
    look(arcs[a].head, excess, role, source_side, outcome);
    look(arcs[arcs[a].reverse].head, excess, role, source_side, outcome);
}

// A row's new capacity is stored; returns what it changes.
__device__ Units store_capacity(int row, Units capacity, Units* stored) {
    Units x = capacity - stored[row];
    stored[row] = capacity;
    return x;
}

// New capacities of distinct finite edges; `change` is kept for the flow states. `rows` and `capacity` may lie in host
// memory.
extern "C" __global__ void store(int k, const int* rows, const Units* capacity, Units* stored, Units* change) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) change[i] = store_capacity(rows[i], capacity[i], stored);
}

// The whole update of a flow state by one block: for batches of up to some thousands of rows. The first state to be
// updated also stores the capacities. `outcome` may lie in host memory.
extern "C" __global__ void apply(int k, const int* rows, const Units* capacity, Units* stored, Units* change, bool first,
                                 const int* edge_arc, const bool* undirected, int n_undirected, Arc* arcs, Units* excess,
                                 const signed char* role, const bool* source_side, Outcome* outcome) {
    __shared__ Outcome found;
    Edges edges{edge_arc, undirected, n_undirected};
    if (threadIdx.x == 0) found = {0, 0, 0, 0, 0};
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        int row = rows[i];
        Units x = first ? store_capacity(row, capacity[i], stored) : change[i];
        if (first) change[i] = x;
        change_capacity(edges, row, x, arcs, &found);
    }
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) mend(edges, rows[i], arcs, excess, source_side, &found);
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x)
        look_at_ends(edges, rows[i], arcs, excess, role, source_side, &found);
    __syncthreads();
    if (threadIdx.x == 0) *outcome = found;
}

// The same in three launches, for larger ones.
extern "C" __global__ void apply_change(int k, const int* rows, const Units* change, const int* edge_arc,
                                        const bool* undirected, int n_undirected, Arc* arcs, Outcome* outcome) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) change_capacity({edge_arc, undirected, n_undirected}, rows[i], change[i], arcs, outcome);
}
extern "C" __global__ void apply_mend(int k, const int* rows, const int* edge_arc, const bool* undirected, int n_undirected,
                                      Arc* arcs, Units* excess, const bool* source_side, Outcome* outcome) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) mend({edge_arc, undirected, n_undirected}, rows[i], arcs, excess, source_side, outcome);
}
extern "C" __global__ void apply_look(int k, const int* rows, const int* edge_arc, const bool* undirected, int n_undirected,
                                      const Arc* arcs, const Units* excess, const signed char* role,
                                      const bool* source_side, Outcome* outcome) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) look_at_ends({edge_arc, undirected, n_undirected}, rows[i], arcs, excess, role, source_side, outcome);
}

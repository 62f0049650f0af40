// New capacities: stored in the network's column, and applied to flow states, which stay pseudoflows with a saturated cut.
// The words and invariants are those of gpu_engine/cpu/repair.py, section `apply`.

#include "layout.cuh"
#include "pending.cuh"
#include "weights.cuh"

struct UpdateResult {      // read by the host after an update
    Units gained;          // change of the flow's value
    int lacking, holding;  // how many ends in S have a deficit, how many in T an excess; a vertex counts for each edge
    int overflow;          // a pair sum outgrew Capacity: the state must be rebuilt wide
    int pad;
    unsigned long long weighed;  // change of what the edges add up to in a proof (certify.cu)
};
SAME_SIZE(UpdateResult);
SAME_PLACE(UpdateResult, gained);
SAME_PLACE(UpdateResult, lacking);
SAME_PLACE(UpdateResult, holding);
SAME_PLACE(UpdateResult, overflow);
SAME_PLACE(UpdateResult, weighed);

// Returns the change of `UpdateResult::weighed`.
__device__ unsigned long long change_capacity(const Edges& edges, int row, Units x, Arc* arcs, Seeds seeds,
                                              UpdateResult* result) {
    int a = edges.edge_arc[row];
    if (a < 0) return 0;
    int r = arcs[a].reverse;
    Units both = edges.both(row) ? x : 0;
#ifndef WIDE
    Units old = atomicAdd(&arcs[a].pair_sum, (Capacity)(x + both)) & 0x7fffffff;
    if (old + x + both > NARROW_LIMIT) result->overflow = 1;
#else
    add(&arcs[a].pair_sum, x + both);
#endif
    add(&arcs[r].pair_sum, (Capacity)(x + both));
    add(&arcs[a].residual, (Capacity)x);
    if (both) add(&arcs[r].residual, (Capacity)both);
    set_pending(&arcs[min(a, r)].pair_sum);
    return weight_of_edge(a, r, arcs[r].head, arcs[a].head, edges.both(row), seeds) * (unsigned long long)x;
}

__device__ void repair_link(const Edges& edges, int row, Arc* arcs, Units* excess, const bool* source_side,
                            UpdateResult* result) {
    int a = edges.edge_arc[row];
    if (a < 0) return;
    int r = arcs[a].reverse;
    if (!clear_pending(&arcs[min(a, r)].pair_sum)) return;
    a = min(a, r), r = arcs[a].reverse;
    int u = arcs[r].head, v = arcs[a].head;
    bool u_in_s = source_side[u], v_in_s = source_side[v];
    Capacity forward = __ldcg(&arcs[a].residual), backward = __ldcg(&arcs[r].residual);
    Capacity pushed = min(forward, (Capacity)0) - min(backward, (Capacity)0);  // cancels flow above a capacity
    if (u_in_s && !v_in_s) pushed = forward;
    else if (v_in_s && !u_in_s) pushed = -backward;
    if (pushed == 0) return;
    arcs[a].residual = forward - pushed;
    arcs[r].residual = backward + pushed;
    add(excess + u, -(Units)pushed);
    add(excess + v, (Units)pushed);
    add(&result->gained, (v_in_s ? 0 : (Units)pushed) - (u_in_s ? 0 : (Units)pushed));
}

__device__ void count_if_broken(int v, const Units* excess, const signed char* role, const bool* source_side,
                                UpdateResult* result) {
    Units e = __ldcg(excess + v);
    if (role[v] != ORDINARY || e == 0) return;
    if (source_side[v] && e < 0) atomicAdd(&result->lacking, 1);
    if (!source_side[v] && e > 0) atomicAdd(&result->holding, 1);
}
__device__ void count_broken_ends_of(const Edges& edges, int row, const Arc* arcs, const Units* excess,
                                     const signed char* role, const bool* source_side, UpdateResult* result) {
    int a = edges.edge_arc[row];
    if (a < 0) return;
    count_if_broken(arcs[a].head, excess, role, source_side, result);
    count_if_broken(arcs[arcs[a].reverse].head, excess, role, source_side, result);
}

// Store a row's new capacity; returns the difference to the old one.
__device__ Units store_capacity(int row, Units capacity, Units* stored) {
    Units x = capacity - stored[row];
    stored[row] = capacity;
    return x;
}

// New capacities of distinct finite edges; `change` is kept for the flow states. `rows` and `capacity` may lie in host
// memory.
extern "C" __global__ void store_capacities(int k, const int* rows, const Units* capacity, Units* stored, Units* change) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) change[i] = store_capacity(rows[i], capacity[i], stored);
}

// One block makes the whole update of a flow state: for batches of up to some thousands of rows. The update of the first
// state also stores the capacities. `result` may lie in host memory.
extern "C" __global__ void apply(int k, const int* rows, const Units* capacity, Units* stored, Units* change, bool first,
                                 const int* edge_arc, const bool* undirected, int n_undirected, Arc* arcs, Units* excess,
                                 const signed char* role, const bool* source_side, Seeds seeds, UpdateResult* result) {
    __shared__ UpdateResult found;
    Edges edges{edge_arc, undirected, n_undirected};
    unsigned long long weighed = 0;
    if (threadIdx.x == 0) found = {0, 0, 0, 0, 0, 0};
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        int row = rows[i];
        Units x = first ? store_capacity(row, capacity[i], stored) : change[i];
        if (first) change[i] = x;
        weighed += change_capacity(edges, row, x, arcs, seeds, &found);
    }
    add_to(&found.weighed, weighed);
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) repair_link(edges, rows[i], arcs, excess, source_side, &found);
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x)
        count_broken_ends_of(edges, rows[i], arcs, excess, role, source_side, &found);
    __syncthreads();
    if (threadIdx.x == 0) *result = found;
}

// Larger batches take three launches, with a thread for each row.
extern "C" __global__ void change_capacities(int k, const int* rows, const Units* change, const int* edge_arc,
                                             const bool* undirected, int n_undirected, Arc* arcs, Seeds seeds,
                                             UpdateResult* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Edges edges{edge_arc, undirected, n_undirected};
    add_to(&result->weighed, i < k ? change_capacity(edges, rows[i], change[i], arcs, seeds, result) : 0);
}
extern "C" __global__ void repair_links(int k, const int* rows, const int* edge_arc, const bool* undirected,
                                        int n_undirected, Arc* arcs, Units* excess, const bool* source_side,
                                        UpdateResult* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) repair_link({edge_arc, undirected, n_undirected}, rows[i], arcs, excess, source_side, result);
}
extern "C" __global__ void count_broken_ends(int k, const int* rows, const int* edge_arc, const bool* undirected,
                                             int n_undirected, const Arc* arcs, const Units* excess, const signed char* role,
                                             const bool* source_side, UpdateResult* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) count_broken_ends_of({edge_arc, undirected, n_undirected}, rows[i], arcs, excess, role, source_side, result);
}

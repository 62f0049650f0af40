// A flow state on the device: built from capacities, adjusted to new ones, its regions and sides. The words and
// invariants are those of gpu_engine/cpu/repair.py; each thread has one edge row, vertex or link.

#include "arc.cuh"

constexpr long long INFINITE = 0x7fffffffffffffffLL;
#ifndef WIDE
constexpr Capacity PLENTY = (1 << 30) - 1;      // an infinite edge: more than the state's whole flow
#else
constexpr Capacity PLENTY = 1LL << 61;
#endif

struct Outcome {            // read by the host after an update
    Units gained;           // change of the value
    int lacking, holding;   // ends in S with a deficit, ends in T with an excess
    int overflow;           // a pair sum outgrew Capacity: the state must be rebuilt wide
    int pad;
};

struct Edges {
    int k; const int* edge_arc; const bool* undirected; int n_undirected;
    __device__ bool both(int row) const { return undirected[n_undirected > 1 ? row : 0]; }
};

// Residuals at zero flow. The arcs' heads and reverses are in place, their residuals zero.
extern "C" __global__ void fill(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                int n_undirected, Arc* arcs) {
    Edges edges{n_edges, edge_arc, undirected, n_undirected};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        if (a < 0 || capacity[row] == INFINITE) continue;
        add(&arcs[a].residual, (Capacity)capacity[row]);
        if (edges.both(row)) add(&arcs[arcs[a].reverse].residual, (Capacity)capacity[row]);
    }
}

extern "C" __global__ void fill_infinite(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                         int n_undirected, Arc* arcs) {
    Edges edges{n_edges, edge_arc, undirected, n_undirected};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        if (a < 0 || capacity[row] != INFINITE) continue;
        arcs[a].residual = PLENTY;
        if (edges.both(row)) arcs[arcs[a].reverse].residual = PLENTY;
    }
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
        add(excess + u, -(Units)x);
        add(excess + v, (Units)x);
    }
}

// ---- updates --------------------------------------------------------------------------------------------------

__device__ void change_capacity(const Edges& edges, int i, const Units* rows, const Units* change, Arc* arcs,
                                Outcome* outcome) {
    int row = (int)rows[i], a = edges.edge_arc[row];
    if (a < 0) return;
    int r = arcs[a].reverse;
    Units x = change[i], both = edges.both(row) ? x : 0;
    Units sum = (Units)arcs[a].pair_sum + x + both;
    if (sum > (sizeof(Capacity) == 4 ? (1LL << 30) : INFINITE)) outcome->overflow = 1;
    add(&arcs[a].residual, (Capacity)x);
    add(&arcs[a].pair_sum, (Capacity)(x + both));
    add(&arcs[r].pair_sum, (Capacity)(x + both));
    if (both) add(&arcs[r].residual, (Capacity)both);
}

// One thread a link: `links` holds one arc of each.
__device__ void mend(int a, Arc* arcs, Units* excess, const bool* source_side, Outcome* outcome) {
    int r = arcs[a].reverse, u = arcs[r].head, v = arcs[a].head;
    bool u_in_s = source_side[u], v_in_s = source_side[v];
    Capacity forward = arcs[a].residual, backward = arcs[r].residual;
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
    if (source_side[v] && e < 0) outcome->lacking = 1;
    if (!source_side[v] && e > 0) outcome->holding = 1;
}

// The whole update by one block: for batches of up to some thousands of rows.
extern "C" __global__ void apply(int k, const Units* rows, const Units* change, int n_links, const Units* links,
                                 const int* edge_arc, const bool* undirected, int n_undirected, Arc* arcs, Units* excess,
                                 const signed char* role, const bool* source_side, Outcome* outcome) {
    Edges edges{k, edge_arc, undirected, n_undirected};
    for (int i = threadIdx.x; i < k; i += blockDim.x) change_capacity(edges, i, rows, change, arcs, outcome);
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < n_links; i += blockDim.x) mend(links[i], arcs, excess, source_side, outcome);
    __threadfence();
    __syncthreads();
    for (int i = threadIdx.x; i < n_links; i += blockDim.x) {
        look(arcs[links[i]].head, excess, role, source_side, outcome);
        look(arcs[arcs[links[i]].reverse].head, excess, role, source_side, outcome);
    }
}

// The same in three launches, for larger ones.
extern "C" __global__ void apply_change(int k, const Units* rows, const Units* change, const int* edge_arc,
                                        const bool* undirected, int n_undirected, Arc* arcs, Outcome* outcome) {
    Edges edges{k, edge_arc, undirected, n_undirected};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) change_capacity(edges, i, rows, change, arcs, outcome);
}
extern "C" __global__ void apply_mend(int n_links, const Units* links, Arc* arcs, Units* excess, const bool* source_side,
                                      Outcome* outcome) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_links) mend(links[i], arcs, excess, source_side, outcome);
}
extern "C" __global__ void apply_look(int n_links, const Units* links, const Arc* arcs, const Units* excess,
                                      const signed char* role, const bool* source_side, Outcome* outcome) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_links) return;
    look(arcs[links[i]].head, excess, role, source_side, outcome);
    look(arcs[arcs[links[i]].reverse].head, excess, role, source_side, outcome);
}

// ---- regions --------------------------------------------------------------------------------------------------

// Roles for a drain of one side: T towards sinks, or (deficits) S from sources.
extern "C" __global__ void region(int n, const signed char* role, const bool* source_side, bool deficits,
                                  signed char* out) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
        out[v] = source_side[v] != deficits ? AWAY : role[v] != ORDINARY ? SINK : ORDINARY;
}

// After a drain that cut something off: that moves to the other side.
extern "C" __global__ void move_cut_off(int n, const int* label, const signed char* region, bool deficits,
                                        const Units* excess, bool* source_side, Units* gained) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        if (region[v] == AWAY || label[v] <= n) continue;
        source_side[v] = !deficits;
        if (excess[v] != 0) add(gained, deficits ? excess[v] : -excess[v]);
    }
}

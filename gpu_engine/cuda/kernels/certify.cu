// The certificate of gpu_engine/checks/certificate.py on the device: conditions 1-5 from capacities, residuals and
// excesses alone, and nothing of how the answer was made. `sum_edges`, `sum_arcs` and `sum_vertices` prove a state that is
// right. `certify_arcs` and `certify_vertices` find what is wrong with another one; `add_capacities` (state.cu) lays out the
// capacities of arcs anew for them.

#include "layout.cuh"
#include "weights.cuh"

struct Findings {  // an offending arc or vertex for each condition, -1 if there is none
    int residual, balance, terminal, crossing, side;
    int pad;
    Units across, cut_capacity;
    unsigned long long total, edges;  // equal if what is compared by sums agrees
};
SAME_SIZE(Findings);
SAME_PLACE(Findings, residual);
SAME_PLACE(Findings, balance);
SAME_PLACE(Findings, terminal);
SAME_PLACE(Findings, crossing);
SAME_PLACE(Findings, side);
SAME_PLACE(Findings, across);
SAME_PLACE(Findings, cut_capacity);
SAME_PLACE(Findings, total);
SAME_PLACE(Findings, edges);

// One thread an arc. `fresh` holds the arcs' capacities. The flow out of each vertex is summed up in `outflow`: by one
// atomic for a warp within one row, else by one for each arc that carries flow.
extern "C" __global__ void certify_arcs(int n_arcs, const Arc* arcs, const Capacity* fresh, const bool* source_side,
                                        Units* outflow, Findings* found) {
    int stride = gridDim.x * blockDim.x, lane = threadIdx.x % 32;
    Units across = 0, cut_capacity = 0;
    for (unsigned base = blockIdx.x * blockDim.x; base < n_arcs; base += stride) {
        unsigned a = base + threadIdx.x;
        int u = -1;
        Units flow = 0;
        if (a < n_arcs) {
            Arc arc = arcs[a];
            int r = arc.reverse;
            Units capacity = fresh[a];
            u = arcs[r].head;
            flow = capacity - (Units)arc.residual;
            if (arc.residual < 0 || (Units)arc.residual + arcs[r].residual != capacity + (Units)fresh[r])
                found->residual = a;
            if (source_side[u] && !source_side[arc.head]) {
                across += flow, cut_capacity += capacity;
                if (arc.residual != 0) found->crossing = a;
            }
        }
        if (__all_sync(0xffffffffu, u == __shfl_sync(0xffffffffu, u, 0))) {
            flow = sum_of_warp(flow);
            if (lane == 0 && flow != 0) add(outflow + u, flow);
        } else if (flow != 0) add(outflow + u, flow);
    }
    across = sum_of_warp(across), cut_capacity = sum_of_warp(cut_capacity);
    if (lane == 0 && (across | cut_capacity) != 0) {
        add(&found->across, across);
        add(&found->cut_capacity, cut_capacity);
    }
}

// Conditions 3 and 5.
__device__ __forceinline__ void check_vertex(int v, Role role, bool in_s, Units excess, Findings* found) {
    if ((role == SINK && in_s) || (role == SOURCE && !in_s)) found->terminal = v;
    if (role == ORDINARY && (in_s ? excess < 0 : excess > 0)) found->side = v;
}

extern "C" __global__ void certify_vertices(int n, const Units* own, const Units* outflow, const Units* excess,
                                            const signed char* role, const bool* source_side, Findings* found) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        if (own[v] - outflow[v] != excess[v]) found->balance = v;
        check_vertex(v, (Role)role[v], source_side[v], excess[v], found);
    }
}

// Sums with random weights modulo 2^64 in place of comparisons one by one: see gpu_engine/checks/fingerprints.py. With
// a weight for each vertex and one for each link, and r and c for residual and capacity,
//   total = (supply - excess) * weight of v, summed over vertices,
//         + r * (weight of the tail + weight of the link), summed over arcs,
//   edges = c * (the same), summed over arcs, which is done edge by edge.
// The weights of vertices compare excesses with what flows in and out (condition 2), those of links the residuals of a
// link with its capacities (condition 1). An infinite edge must be the only one of its link, as it takes others in.
// `across` is what flows out of S, from the excesses: with condition 2, what flows over the cut.

extern "C" __global__ void sum_edges(int n_edges, const int* edge_arc, const Units* capacity, const bool* undirected,
                                     int n_undirected, const Arc* arcs, const bool* source_side, Seeds seeds,
                                     Findings* found) {
    Edges edges{edge_arc, undirected, n_undirected};
    unsigned long long total = 0;
    Units cut_capacity = 0;
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_edges; row += gridDim.x * blockDim.x) {
        int a = edge_arc[row];
        if (a < 0) continue;
        int head = arcs[a].head, r = arcs[a].reverse, tail = arcs[r].head;
        bool both = edges.both(row);
        Units units = capacity[row] == INFINITE ? (Units)INFINITE_RESIDUAL : capacity[row];
        total += weight_of_edge(a, r, tail, head, both, seeds) * (unsigned long long)units;
        if (source_side[tail] != source_side[head] && (both || source_side[tail])) cut_capacity += units;
    }
    add_to(&found->edges, total);
    add_to((unsigned long long*)&found->cut_capacity, cut_capacity);
}

// The vertex in whose row arc `a` lies: one of `first` .. `end` - 1.
__device__ __forceinline__ int row_of(const int* row_offsets, int first, int end, int a) {
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (row_offsets[middle] <= a) first = middle;
        else end = middle;
    }
    return first;
}

// Each warp has ARCS_OF_WARP arcs that lie side by side, so that the row of each is found among a few.
extern "C" __global__ void sum_arcs(int n, int n_arcs, const int* row_offsets, const Arc* arcs, const bool* source_side,
                                    Seeds seeds, Findings* found) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x / 32 * ARCS_OF_WARP;
    unsigned long long total = 0;
    for (unsigned begin = thread / 32 * ARCS_OF_WARP; begin < n_arcs; begin += stride) {
        unsigned end = min(begin + ARCS_OF_WARP, (unsigned)n_arcs);
        int first = row_of(row_offsets, 0, n, begin), beyond = row_of(row_offsets, first, n, end - 1) + 1;
        for (unsigned a = begin + thread % 32; a < end; a += 32) {
            Arc arc = arcs[a];
            int u = row_of(row_offsets, first, beyond, a);
            unsigned long long w = weight(u, seeds.vertex) + weight(min((int)a, arc.reverse), seeds.link);
            total += w * (unsigned long long)(Units)arc.residual;
            if (arc.residual < 0) found->residual = a;
            if (arc.residual != 0 && source_side[u] && !source_side[arc.head]) found->crossing = a;
        }
    }
    add_to(&found->total, total);
}

extern "C" __global__ void sum_vertices(int n, const Units* own, const Units* excess, const signed char* role,
                                        const bool* source_side, Seeds seeds, Findings* found) {
    unsigned long long total = 0, across = 0;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        unsigned long long leaves = own[v] - excess[v];
        total += weight(v, seeds.vertex) * leaves;
        if (source_side[v]) across += leaves;
        check_vertex(v, (Role)role[v], source_side[v], excess[v], found);
    }
    add_to(&found->total, total);
    add_to((unsigned long long*)&found->across, across);
}

// The certificate of gpu_engine/checks/certificate.py on the device: conditions 1-5 from capacities, residuals and
// excesses alone. The scan knows nothing of how the answer was made; `add_capacities` (state.cu) lays out the capacities
// anew for it.

#include "arc.cuh"
#include "layout.cuh"

struct Findings {  // an offending arc or vertex for each condition, -1 if there is none
    int residual, balance, terminal, crossing, side;
    int pad;
    Units across, cut_capacity;
};
SAME_SIZE(Findings);
SAME_PLACE(Findings, residual);
SAME_PLACE(Findings, balance);
SAME_PLACE(Findings, terminal);
SAME_PLACE(Findings, crossing);
SAME_PLACE(Findings, side);
SAME_PLACE(Findings, across);
SAME_PLACE(Findings, cut_capacity);

__device__ __forceinline__ Units sum_of_warp(Units x) {
    for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

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

extern "C" __global__ void certify_vertices(int n, const Units* own, const Units* outflow, const Units* excess,
                                            const signed char* role, const bool* source_side, Findings* found) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        if (own[v] - outflow[v] != excess[v]) found->balance = v;
        if ((role[v] == SINK && source_side[v]) || (role[v] == SOURCE && !source_side[v])) found->terminal = v;
        if (role[v] != ORDINARY) continue;
        if (source_side[v] ? excess[v] < 0 : excess[v] > 0) found->side = v;
    }
}

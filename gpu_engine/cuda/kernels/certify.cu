// The certificate of gpu_engine/checks.py on the device: conditions 1-5 from capacities, residuals and excesses alone.
// Knows nothing of how the answer was made; `fill` (state.cu) lays out the capacities anew for it.

#include "arc.cuh"

struct Findings {           // -1: none; else an offending arc or vertex
    int residual, balance, terminal, crossing, side;
    int pad;
    Units across, cut_capacity;
};

// One thread an arc. `fresh` holds the arcs' capacities. What flows out of a vertex is
// gathered in `outflow`, one atomic for each run of lanes with the same tail.
extern "C" __global__ void certify_arcs(int n_arcs, const Arc* arcs, const Capacity* fresh, const bool* source_side,
                                        Units* outflow, Findings* found) {
    int stride = gridDim.x * blockDim.x;
    for (int base = blockIdx.x * blockDim.x; base < n_arcs; base += stride) {
        int a = base + threadIdx.x, lane = threadIdx.x % 32, u = -1;
        Units flow = 0, across = 0, capacity = 0;
        if (a < n_arcs) {
            Arc arc = arcs[a];
            int r = arc.reverse;
            u = arcs[r].head;
            capacity = fresh[a];
            flow = capacity - (Units)arc.residual;
            if (arc.residual < 0 || (Units)arc.residual + arcs[r].residual != capacity + (Units)fresh[r])
                found->residual = a;
            if (source_side[u] && !source_side[arc.head]) {
                across = flow;
                if (arc.residual != 0) found->crossing = a;
            } else capacity = 0;
        }
        unsigned peers = __match_any_sync(0xffffffffu, u);
        Units sum = 0;
        for (int i = 0; i < 32; i++) {      // arcs are sorted by tail: few runs, but a plain loop is right for any
            Units x = __shfl_sync(0xffffffffu, flow, i);
            if (peers >> i & 1) sum += x;
        }
        if (u >= 0 && lane == __ffs(peers) - 1 && sum != 0) add(outflow + u, sum);
        if (across != 0) add(&found->across, across);
        if (a < n_arcs && capacity != 0) add(&found->cut_capacity, capacity);
    }
}

extern "C" __global__ void certify_vertices(int n, const Units* own, const Units* outflow, const Units* excess,
                                            const signed char* role, const bool* source_side, Findings* found) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        if (own[v] - outflow[v] != excess[v]) found->balance = v;
        if ((role[v] == SINK && source_side[v]) || (role[v] == AWAY && !source_side[v])) found->terminal = v;
        if (role[v] != ORDINARY) continue;
        if (source_side[v] ? excess[v] < 0 : excess[v] > 0) found->side = v;
    }
}

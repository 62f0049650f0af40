// All presets include this file: a region to drain, the residual layouts, initial heights, the topology-driven backward
// search (Kannappan et al., Algorithms 4 and 6; Gutierrez, Algorithms 4.6-4.8) and the list of active vertices.
//
// Words as in drain.cu: a vertex inside the region with excess > 0 is active if its height is below n; sinks and deficits
// are targets at height 0; a vertex outside the region stands at height n, like the papers' source, so nothing is ever
// pushed there. `sign` is -1 for a mirrored drain: a residual and its reverse change roles and excesses are negated, so
// deficits travel backwards to excesses.
//
// All kernels here keep these rules, whatever other races they have:
//   - only the threads of u lower the residual of an arc out of u, by at most what they saw, and other threads never
//     lower it: so no residual becomes negative;
//   - u pushes at most the excess it saw, and only u lowers it: so a preset makes no deficits but where it says so;
//   - all changes of residuals and excesses are atomic: so flow is conserved.
// Hence the state is a pseudoflow at any time, and the default drain that follows a preset can only be left with
// work, never with a broken state.
//
// All loops are grid-stride: any number of blocks is right.
#pragma once

#include "arc.cuh"
#include "layout.cuh"

constexpr int NOWHERE = 0x7fffffff;  // no residual arc leads on; also a height no vertex has for long
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// Vertices as a drain of one region sees them; not the roles of a flow state.
enum RegionRole : signed char { INSIDE = INSIDE_REGION, TARGET = TARGET_OF_REGION, OUTSIDE = OUTSIDE_REGION };

struct DrainCounters { Units pushes, relabels, arcs_scanned; };
SAME_SIZE(DrainCounters);
SAME_PLACE(DrainCounters, pushes);
SAME_PLACE(DrainCounters, relabels);
SAME_PLACE(DrainCounters, arcs_scanned);

#define REGION int n, const signed char* role, Units* excess, int sign, int* height, DrainCounters* totals
#define THE_REGION Region{n, role, excess, sign, height, totals}

struct Region {
    int n;
    const signed char* role;
    Units* excess;
    int sign;
    int* height;
    DrainCounters* totals;

    __device__ Units excess_of(int v) const { return sign * __ldcg(excess + v); }
    // Returns the excess that v had before.
    __device__ Units add_excess(int v, Units amount) const {
        return sign * (Units)atomicAdd((unsigned long long*)(excess + v), (unsigned long long)(sign * amount));
    }
    __device__ int at(int v) const { return load(height + v); }
    __device__ bool active(int v) const { return role[v] == INSIDE && at(v) < n && excess_of(v) > 0; }
};

struct ThreadCounters {
    Units pushes = 0, relabels = 0, scanned = 0;
    __device__ void add_to(DrainCounters* totals) const {
        if (pushes) add(&totals->pushes, pushes);
        if (relabels) add(&totals->relabels, relabels);
        if (scanned) add(&totals->arcs_scanned, scanned);
    }
};

__device__ __forceinline__ int thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int threads() { return gridDim.x * blockDim.x; }

// ---- layouts --------------------------------------------------------------------------------------------------

// A neighbour as u sees it: u can push `residual` to it, it can push `reverse_residual` to u; `slot` is for `move`.
struct Neighbour {
    int vertex, slot;
    Units residual, reverse_residual;
};

// The engine's arc records with their reverse index: the Bi-CSR of Kannappan et al., section 5.1, and of the thesis.
struct Records {
    const int* row_offsets;
    Arc* arcs;
    int sign;

    __device__ int degree(int u) const { return row_offsets[u + 1] - row_offsets[u]; }
    __device__ Neighbour at(int u, int i) const {
        int a = row_offsets[u] + i;
        Arc arc = load_now(arcs + a);
        Units with = arc.residual, against = (Units)arc.pair_sum - arc.residual;
        return {arc.head, a, sign > 0 ? with : against, sign > 0 ? against : with};
    }
    __device__ void shift(int a, int reverse, Units amount) const {
        add(&arcs[a].residual, (Capacity)(-sign * amount));
        add(&arcs[reverse].residual, (Capacity)(sign * amount));
    }
    __device__ void move(int, Neighbour to, Units amount) const { shift(to.slot, arcs[to.slot].reverse, amount); }
};

#define RECORDS const int* row_offsets, Arc* arcs
#define THE_RECORDS Records{row_offsets, arcs, sign}

// ---- pieces ---------------------------------------------------------------------------------------------------

// Targets at 0, everything else at n; ordinary vertices at `unseen` (n, or NOWHERE to tell them from the outside).
extern "C" __global__ void start_heights(REGION, int unseen) {
    Region region = THE_REGION;
    for (int v = thread(); v < n; v += threads()) {
        bool target = role[v] == TARGET || (role[v] == INSIDE && region.excess_of(v) < 0);
        store(height + v, target ? 0 : role[v] == OUTSIDE ? n : unseen);
    }
}

// One level of the backward search: who stands at `level` lifts its unseen residual predecessors to the next one.
// Several threads may write one height; they write the same. `deepest` is set to level + 1 if there were any.
template <class Layout>
__device__ void search_level(const Region& region, const Layout& layout, int level, int unseen, int* deepest) {
    ThreadCounters counters;
    for (int v = thread(); v < region.n; v += threads()) {
        if (region.at(v) != level) continue;
        int degree = layout.degree(v);
        counters.scanned += degree;
        for (int i = 0; i < degree; i++) {
            Neighbour w = layout.at(v, i);
            if (w.reverse_residual <= 0 || region.role[w.vertex] != INSIDE || region.at(w.vertex) != unseen) continue;
            store(region.height + w.vertex, level + 1);
            store(deepest, level + 1);
        }
    }
    counters.add_to(region.totals);
}

// The active vertices, in any order; `list` int[n].
extern "C" __global__ void collect(REGION, int* list, int* length) {
    Region region = THE_REGION;
    for (int v = thread(); v < n; v += threads())
        if (region.active(v)) list[atomicAdd(length, 1)] = v;
}

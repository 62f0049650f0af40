// Flow states over shards: zero flow, the saturated cut that a cold solve starts from, new capacities, and the scan behind a
// certificate. The words and invariants are those of gpu_engine/cpu/repair.py.

#include "sharded/shard.cuh"

// ---- a state at zero flow -----------------------------------------------------------------------------------------------

// Residuals are the capacities. The pair sums need the reverse arcs' as well, which may be other shards': they are added
// up once, and from then on follow the changes.
extern "C" __global__ void zero_flow(const __grid_constant__ Shard g, int n_arcs, bool sum) {
    for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) {
        Arc* arc = g.arcs[g.own] + a;
        Capacity own = g.capacity[g.own][a];
        arc->residual = own;
        if (sum) arc->pair_sum = own + g.capacity[g.owner(arc->head)][arc->reverse];
    }
}

// S has the free sources; label 0 says so to all shards.
extern "C" __global__ void mark_sources(const __grid_constant__ Shard g) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        bool source = g.role[g.own][v] == SOURCE;
        g.source_side[g.own][v] = source;
        g.set_label(g.first[g.own] + v, source ? 0 : UNSEEN);
    }
}

// Fill every arc from S, whose rows are the slot's items, to T.
extern "C" __global__ void saturate(const __grid_constant__ Shard g, int slot) {
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        Units sent = 0;
        for (int a = begin + (int)tile.thread_rank(); a < end; a += TILE_OF_ROW) {
            Arc arc = g.arcs[g.own][a];
            if (arc.residual == 0 || g.label[g.own][arc.head] == 0) continue;
            set_residual(g, a, arc, 0);
            g.add_excess<false>(arc.head, arc.residual);
            sent += arc.residual;
        }
        sent = cg::reduce(tile, sent, cg::plus<Units>());
        if (tile.thread_rank() == 0 && sent > 0) g.add_excess<false>(g.first[g.own] + v, -sent);
    });
}

// ---- new capacities: one device changes the arcs of all shards ----------------------------------------------------------

struct ShardUpdate {  // read by the host after an update
    Units gained;     // change of the flow's value
    int lacking, holding, overflow, pad;
};
SAME_SIZE(ShardUpdate);
SAME_PLACE(ShardUpdate, gained);
SAME_PLACE(ShardUpdate, lacking);
SAME_PLACE(ShardUpdate, holding);
SAME_PLACE(ShardUpdate, overflow);

// Each edge adds x to its arc, which has a place in the shard `owner`, and to the reverse one if it goes both ways. The
// first state's update also changes the capacities.
extern "C" __global__ void change(const __grid_constant__ Shard g, int k, const int* owner, const int* place, const Units* x,
                                  const bool* both, bool first, ShardUpdate* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k) return;
    int s = owner[i], a = place[i];
    Arc* arc = g.arcs[s] + a;
    int t = g.owner(arc->head), r = arc->reverse;
    Arc* back = g.arcs[t] + r;
    Units other = both[i] ? x[i] : 0;
#ifndef WIDE
    if (atomicAdd(&arc->pair_sum, (Capacity)(x[i] + other)) + x[i] + other > NARROW_LIMIT) result->overflow = 1;
#else
    add(&arc->pair_sum, (Capacity)(x[i] + other));
#endif
    add(&back->pair_sum, (Capacity)(x[i] + other));
    add(&arc->residual, (Capacity)x[i]);
    if (other != 0) add(&back->residual, (Capacity)other);
    if (!first) return;
    add(g.capacity[s] + a, (Capacity)x[i]);
    if (other != 0) add(g.capacity[t] + r, (Capacity)other);
}

// Distinct links, each by one of its arcs: cancel flow above a capacity, and saturate the cut again.
extern "C" __global__ void repair(const __grid_constant__ Shard g, int k, const int* owner, const int* place,
                                  ShardUpdate* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k) return;
    Arc* arc = g.arcs[owner[i]] + place[i];
    int v = arc->head, t = g.owner(v);
    Arc* back = g.arcs[t] + arc->reverse;
    int u = back->head, s = g.owner(u);
    bool u_in_s = g.source_side[s][u - g.first[s]], v_in_s = g.source_side[t][v - g.first[t]];
    Capacity ahead = arc->residual, behind = back->residual;
    Capacity pushed = min(ahead, (Capacity)0) - min(behind, (Capacity)0);
    if (u_in_s && !v_in_s) pushed = ahead;
    else if (v_in_s && !u_in_s) pushed = -behind;
    if (pushed == 0) return;
    arc->residual = ahead - pushed;
    back->residual = behind + pushed;
    g.add_excess<false>(u, -(Units)pushed);
    g.add_excess<false>(v, (Units)pushed);
    add(&result->gained, (v_in_s ? 0 : (Units)pushed) - (u_in_s ? 0 : (Units)pushed));
}

__device__ __forceinline__ void count_if_broken(const Shard& g, int v, ShardUpdate* result) {
    int s = g.owner(v), at = v - g.first[s];
    Units e = g.excess[s][at];
    if (e == 0 || g.role[s][at] != ORDINARY) return;
    bool in_s = g.source_side[s][at];
    if (in_s && e < 0) atomicAdd(&result->lacking, 1);
    if (!in_s && e > 0) atomicAdd(&result->holding, 1);
}
extern "C" __global__ void count_broken_ends(const __grid_constant__ Shard g, int k, const int* owner, const int* place,
                                             ShardUpdate* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k) return;
    Arc arc = g.arcs[owner[i]][place[i]];
    count_if_broken(g, arc.head, result);
    count_if_broken(g, g.arcs[g.owner(arc.head)][arc.reverse].head, result);
}

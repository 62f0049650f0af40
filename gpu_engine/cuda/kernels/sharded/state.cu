// Flow states over shards: zero flow, the saturated cut that a cold solve starts from, new capacities, and the scan behind a
// certificate. The words and invariants are those of gpu_engine/cpu/repair.py.

#include "pending.cuh"
#include "sharded/shard.cuh"

// ---- a state at zero flow -----------------------------------------------------------------------------------------------

// Residuals are the capacities. The pair sums need the reverse arcs' as well, which may be other shards': they are added
// up once, and from then on follow the changes.
extern "C" __global__ void zero_flow(const __grid_constant__ Shard g, int n_arcs, bool sum) {
    for (unsigned a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) {
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

// A link by one of its arcs: both arcs and the shards that own them.
struct Link {
    int owner, place, back_owner, back_place;
    Arc *arc, *back;
};
__device__ __forceinline__ Link link_of(const Shard& g, int owner, int place) {
    Arc* arc = g.arcs[owner] + place;
    int back_owner = g.owner(arc->head), back_place = arc->reverse;
    return {owner, place, back_owner, back_place, arc, g.arcs[back_owner] + back_place};
}
// The mark of a link is on its first arc.
__device__ __forceinline__ Capacity* mark_of(const Link& link) {
    bool first = link.owner < link.back_owner || (link.owner == link.back_owner && link.place < link.back_place);
    return first ? &link.arc->pair_sum : &link.back->pair_sum;
}

// Each edge adds x to its arc, which has a place in the shard `owner`, and to the reverse one if it goes both ways. The
// first state's update also changes the capacities. What is not `marked` is not repaired: the state is solved anew.
extern "C" __global__ void change(const __grid_constant__ Shard g, int k, const int* owner, const int* place, const Units* x,
                                  const bool* both, bool first, bool marked, ShardUpdate* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k) return;
    Link link = link_of(g, owner[i], place[i]);
    Units other = both[i] ? x[i] : 0;
#ifndef WIDE
    Units old = atomicAdd(&link.arc->pair_sum, (Capacity)(x[i] + other)) & 0x7fffffff;
    if (old + x[i] + other > NARROW_LIMIT) result->overflow = 1;
#else
    add(&link.arc->pair_sum, (Capacity)(x[i] + other));
#endif
    add(&link.back->pair_sum, (Capacity)(x[i] + other));
    add(&link.arc->residual, (Capacity)x[i]);
    if (other != 0) add(&link.back->residual, (Capacity)other);
    if (marked) set_pending(mark_of(link));
    if (!first) return;
    add(g.capacity[link.owner] + link.place, (Capacity)x[i]);
    if (other != 0) add(g.capacity[link.back_owner] + link.back_place, (Capacity)other);
}

// Cancel flow above a capacity, and saturate the cut again: once for each link.
extern "C" __global__ void repair(const __grid_constant__ Shard g, int k, const int* owner, const int* place,
                                  ShardUpdate* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k) return;
    Link link = link_of(g, owner[i], place[i]);
    if (!clear_pending(mark_of(link))) return;
    int u = link.back->head, v = link.arc->head, s = link.owner, t = link.back_owner;
    bool u_in_s = g.source_side[s][u - g.first[s]], v_in_s = g.source_side[t][v - g.first[t]];
    Capacity ahead = link.arc->residual, behind = link.back->residual;
    Capacity pushed = min(ahead, (Capacity)0) - min(behind, (Capacity)0);
    if (u_in_s && !v_in_s) pushed = ahead;
    else if (v_in_s && !u_in_s) pushed = -behind;
    if (pushed == 0) return;
    link.arc->residual = ahead - pushed;
    link.back->residual = behind + pushed;
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
    Link link = link_of(g, owner[i], place[i]);
    count_if_broken(g, link.arc->head, result);
    count_if_broken(g, link.back->head, result);
}

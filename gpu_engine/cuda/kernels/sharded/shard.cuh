// A network in shards: contiguous ranges of vertices, each with its rows on a device of its own, or beside others on one.
// sharded/drain.cu has the order of the steps, and why what they do at once does not disturb.
//
// What a kernel reads in bulk is its own shard's. What the steps of a drain change is read past L1, which is faster
// (benchmarks/NOTES.md) and needs nobody to empty it. Labels are replicated: each shard has those of all vertices, and
// whoever sets one sets it in all shards. What is written in other shards is never read back by the one who writes.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "arc.cuh"
#include "layout.cuh"

namespace cg = cooperative_groups;

__device__ __forceinline__ Units load(const Units* p) { return __ldcg(p); }

// Labels from UNSEEN on are no distances.
constexpr int UNSEEN = 0x3ffffff0;   // not reached by the last search
constexpr int CUT_OFF = UNSEEN + 1;  // reaches no target, for good
constexpr int OUTSIDE = UNSEEN + 2;  // lies outside the region

struct __align__(8) Item {  // a row, or a piece of a long one
    int vertex, begin;
};

struct Shard {  // all that a kernel gets, by value; lists of pointers have one for each shard
    Arc* arcs[MOST_SHARDS];
    Capacity* capacity[MOST_SHARDS];
    Units* excess[MOST_SHARDS];
    const signed char* role[MOST_SHARDS];
    bool* source_side[MOST_SHARDS];
    int* label[MOST_SHARDS];  // of all vertices, in each shard
    const int* row_offsets;   // of its own rows, from 0
    Item* items;
    Units* left;  // excess of an active vertex that its round has not pushed yet
    int* lowest;  // lowest label that its round has seen behind a residual arc
    Units* tally;
    int first[MOST_SHARDS + 1];  // vertex of each shard
    int own, count;

    __device__ __forceinline__ int n() const { return first[own + 1] - first[own]; }
    __device__ __forceinline__ int owner(int v) const {
        if (v >= first[own] && v < first[own + 1]) return own;
        int s = 0;
        while (v >= first[s + 1]) s++;
        return s;
    }
    __device__ __forceinline__ int label_of(int v) const { return load(label[own] + v); }
    __device__ __forceinline__ void set_label(int v, int h) const {
        for (int s = 0; s < count; s++) store(label[s] + v, h);
    }
    // Labels, roles, sides and excesses of its own vertices, which are numbered from 0.
    __device__ __forceinline__ int own_label(int v) const { return label_of(first[own] + v); }
    __device__ __forceinline__ bool is_terminal(int v) const { return role[own][v] != ORDINARY; }
    template <bool MIRROR> __device__ __forceinline__ Units excess_of(int v) const {
        Units e = load(excess[own] + v);
        return MIRROR ? -e : e;
    }
    // Of any vertex.
    template <bool MIRROR> __device__ __forceinline__ void add_excess(int v, Units amount) const {
        int s = owner(v);
        add(excess[s] + (v - first[s]), MIRROR ? -amount : amount);
    }
};
SAME_SIZE(Shard);
SAME_PLACE(Shard, arcs);
SAME_PLACE(Shard, capacity);
SAME_PLACE(Shard, excess);
SAME_PLACE(Shard, role);
SAME_PLACE(Shard, source_side);
SAME_PLACE(Shard, label);
SAME_PLACE(Shard, row_offsets);
SAME_PLACE(Shard, items);
SAME_PLACE(Shard, left);
SAME_PLACE(Shard, lowest);
SAME_PLACE(Shard, tally);
SAME_PLACE(Shard, first);
SAME_PLACE(Shard, own);
SAME_PLACE(Shard, count);

template <bool MIRROR> __device__ __forceinline__ Capacity forward(const Arc& a) {
    return MIRROR ? a.pair_sum - a.residual : a.residual;
}
template <bool MIRROR> __device__ __forceinline__ Capacity backward(const Arc& a) {
    return MIRROR ? a.residual : a.pair_sum - a.residual;
}
// Set an arc's residual, and that of its reverse, whose row may be another shard's.
__device__ __forceinline__ void set_residual(const Shard& g, int at, const Arc& arc, Capacity residual) {
    g.arcs[g.own][at].residual = residual;
    g.arcs[g.owner(arc.head)][arc.reverse].residual = arc.pair_sum - residual;
}

// ---- the tally: counters of the whole drain, then a slot for each step --------------------------------------------------

enum Counter { PUSHES, RELABELS, SCANNED };
enum Counted { ITEMS, STUCK, ARCS };
__device__ __forceinline__ Units* slot_of(const Shard& g, int slot) { return g.tally + TALLY_WIDTH * (1 + slot); }
// The slot of the next step is cleared a step ahead.
__device__ __forceinline__ void clear_next(const Shard& g, int slot) {
    if (blockIdx.x == 0 && threadIdx.x < TALLY_WIDTH) slot_of(g, (slot + 1) % TALLY_SLOTS)[threadIdx.x] = 0;
}
// Add what each thread of the warp has counted.
__device__ __forceinline__ void add_up(Units* to, Units counted) {
    auto warp = cg::tiled_partition<WARP>(cg::this_thread_block());
    Units sum = cg::reduce(warp, counted, cg::plus<Units>());
    if (warp.thread_rank() == 0 && sum != 0) add(to, sum);
}

// ---- items --------------------------------------------------------------------------------------------------------------

// List the rows of its vertices for which `wanted` holds in the slot's items.
template <class Wanted> __device__ __forceinline__ void list_rows(const Shard& g, int slot, Wanted wanted) {
    auto warp = cg::tiled_partition<WARP>(cg::this_thread_block());
    Units arcs = 0;
    for (int base = blockIdx.x * blockDim.x, n = g.n(); base < n; base += gridDim.x * blockDim.x) {
        int v = base + threadIdx.x, begin = 0, length = 0;
        if (v < n && wanted(v)) begin = g.row_offsets[v], length = g.row_offsets[v + 1] - begin;
        int pieces = (length + PIECE_OF_ROW - 1) / PIECE_OF_ROW, through = cg::inclusive_scan(warp, pieces);
        int total = warp.shfl(through, WARP - 1), at = 0;
        if (total == 0) continue;
        if (warp.thread_rank() == 0) at = (int)atomicAdd((unsigned long long*)(slot_of(g, slot) + ITEMS), total);
        at = warp.shfl(at, 0) + through - pieces;
        for (int i = 0; i < pieces; i++) g.items[at + i] = {v, begin + i * PIECE_OF_ROW};
        arcs += length;
    }
    add_up(slot_of(g, slot) + ARCS, arcs);
}

using Tile = cg::thread_block_tile<TILE_OF_ROW>;

// Tiles take turns at the slot's items: `visit(tile, vertex, begin, end, whole)`, where `whole` says that it is all the row.
template <class Visit> __device__ __forceinline__ void each_item(const Shard& g, int slot, Visit visit) {
    Tile tile = cg::tiled_partition<TILE_OF_ROW>(cg::this_thread_block());
    int n_items = (int)load(slot_of(g, slot) + ITEMS), step = gridDim.x * (blockDim.x / TILE_OF_ROW);
    for (int i = blockIdx.x * (blockDim.x / TILE_OF_ROW) + threadIdx.x / TILE_OF_ROW; i < n_items; i += step) {
        int2 listed = __ldcg((const int2*)g.items + i);
        Item item{listed.x, listed.y};
        int row = g.row_offsets[item.vertex], end = g.row_offsets[item.vertex + 1];
        visit(tile, item.vertex, item.begin, min(item.begin + PIECE_OF_ROW, end), end - row <= PIECE_OF_ROW);
    }
}

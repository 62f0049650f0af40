// The steps of a drain over shards; gpu_engine/cuda/sharded/drain.py has their order.

#include "sharded/shard.cuh"

// ---- search: exact labels, level by level, from the targets backwards ---------------------------------------------------

// Labels before a search: targets have 0. The `first` one of a drain finds out what is outside.
template <bool MIRROR> __device__ void reset(const Shard& g, int first, int slot) {
    clear_next(g, slot);
    Units arcs = 0;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        int h = !first ? g.labels()[v] : g.source_side[g.own][v] != MIRROR ? OUTSIDE : UNSEEN;
        if (first) g.left[v] = 0;
        else if (h == OUTSIDE) continue;
        if (h != OUTSIDE) {
            bool target = g.is_terminal(v) || g.excess_of<MIRROR>(v) < 0;
            h = target ? 0 : first || h < UNSEEN ? UNSEEN : CUT_OFF;
            if (h == UNSEEN) arcs += g.row_offsets[v + 1] - g.row_offsets[v];
        }
        g.set_label(g.first[g.own] + v, h);
    }
    add_up(slot_of(g, slot) + ARCS, arcs);
}

// The rows of a level; all rows if it is negative.
extern "C" __global__ void gather(const __grid_constant__ Shard g, int level, int slot) {
    clear_next(g, slot);
    list_rows(g, slot, [&](int v) { return level < 0 || g.labels()[v] == level; });
}

// Top-down: the rows of a level label what they are reached from.
template <bool MIRROR> __device__ void grow(const Shard& g, int level, int slot) {
    Units scanned = 0;
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        for (int a = begin + (int)tile.thread_rank(); a < end; a += TILE_OF_ROW, scanned++) {
            Arc arc = g.arcs[g.own][a];
            if (backward<MIRROR>(arc) > 0 && g.label[g.own][arc.head] == UNSEEN) g.set_label(arc.head, level + 1);
        }
    });
    add_up(g.tally + SCANNED, scanned);
}

// Bottom-up: unseen vertices look for an arc into the level.
template <bool MIRROR> __device__ void look(const Shard& g, int level, int slot) {
    Units scanned = 0;
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        for (int base = begin; base < end; base += TILE_OF_ROW) {
            int a = base + (int)tile.thread_rank();
            bool found = false;
            if (a < end) {
                Arc arc = g.arcs[g.own][a];
                found = forward<MIRROR>(arc) > 0 && g.label[g.own][arc.head] == level;
                scanned++;
            }
            if (!tile.any(found)) continue;
            if (tile.thread_rank() == 0) g.set_label(g.first[g.own] + v, level + 1);
            break;
        }
    });
    add_up(g.tally + SCANNED, scanned);
}

// ---- rounds -------------------------------------------------------------------------------------------------------------

// Relabel the vertices that the round before has left with excess, and list the active ones. A `fresh` list comes after a
// search, which has made the labels.
//
// A vertex that has excess left has looked at all its row, and has no admissible arc any more. It may have got excess and
// a residual arc in the same round, from a vertex one label above it, which it may have missed: then it rises no further
// than that allows.
template <bool MIRROR> __device__ void collect(const Shard& g, int fresh, int slot) {
    clear_next(g, slot);
    Units stuck = 0, relabels = 0;
    list_rows(g, slot, [&](int v) {
        Units e = g.excess_of<MIRROR>(v);
        if (e <= 0 || g.is_terminal(v)) return false;
        int h = g.labels()[v];
        if (h == OUTSIDE) return false;
        Units left = g.left[v];
        if (!fresh && h < UNSEEN && left > 0) {
            int low = g.lowest[v];
            h = min(low < UNSEEN ? low + 1 : CUT_OFF, e == left ? CUT_OFF : h + 2);
            g.set_label(g.first[g.own] + v, h);
            relabels++;
        }
        if (h >= UNSEEN) {
            g.left[v] = 0;
            stuck++;
            return false;
        }
        g.left[v] = e;
        g.lowest[v] = UNSEEN;
        return true;
    });
    add_up(slot_of(g, slot) + STUCK, stuck);
    add_up(g.tally + RELABELS, relabels);
}

// Push along admissible arcs. Labels stand still: of an arc and its reverse only one is admissible, so each residual has
// one writer.
template <bool MIRROR> __device__ void push(const Shard& g, int slot) {
    Units scanned = 0, pushes = 0, into_hot = 0;
    int hot = -1;  // a target, to which so many may push that each thread adds up its own share
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        int h = g.labels()[v], low = UNSEEN;
        Units e = g.left[v], sent = 0;
        for (int base = begin; base < end && e > 0; base += TILE_OF_ROW) {
            int a = base + (int)tile.thread_rank();
            Arc arc = NO_ARC;
            Capacity room = 0;
            int other = UNSEEN;
            if (a < end) {
                arc = g.arcs[g.own][a];
                room = forward<MIRROR>(arc);
                if (room > 0) other = g.label[g.own][arc.head];
                scanned++;
            }
            bool admissible = other == h - 1;
            Units wish = admissible ? (Units)room : 0, through = cg::inclusive_scan(tile, wish);
            Units wished = tile.shfl(through, TILE_OF_ROW - 1);
            if (wished > 0) {
                if (!whole) {  // others visit other pieces of the row
                    if (tile.thread_rank() == 0) e = (Units)atomicAdd((unsigned long long*)(g.left + v), -wished);
                    e = tile.shfl(e, 0);
                }
                Units amount = min(max(e - (through - wish), (Units)0), wish);
                if (amount > 0) {
                    set_residual(g, a, arc, MIRROR ? arc.residual + (Capacity)amount : arc.residual - (Capacity)amount);
                    pushes++;
                    if (h != 1) g.add_excess<MIRROR>(arc.head, amount);
                    else if (hot == arc.head) into_hot += amount;
                    else {
                        if (into_hot > 0) g.add_excess<MIRROR>(hot, into_hot);
                        hot = arc.head, into_hot = amount;
                    }
                    if (amount == room) other = UNSEEN;
                }
                sent += min(max(e, (Units)0), wished);
                e -= wished;
            }
            low = min(low, other);
        }
        low = cg::reduce(tile, low, cg::less<int>());
        if (tile.thread_rank() != 0) return;
        if (sent > 0) g.add_excess<MIRROR>(g.first[g.own] + v, -sent);
        if (whole) g.left[v] = max(e, (Units)0), g.lowest[v] = low;
        else if (low < UNSEEN) atomicMin(g.lowest + v, low);
    });
    auto warp = cg::tiled_partition<WARP>(cg::this_thread_block());
    int shared = cg::reduce(warp, hot, cg::greater<int>());
    bool same = warp.all(hot == shared || hot < 0);
    if (same) into_hot = cg::reduce(warp, into_hot, cg::plus<Units>());
    if (shared >= 0 && into_hot > 0 && (!same || warp.thread_rank() == 0))
        g.add_excess<MIRROR>(same ? shared : hot, into_hot);
    add_up(g.tally + SCANNED, scanned);
    add_up(g.tally + PUSHES, pushes);
}

// What the last search has not reached changes sides.
template <bool MIRROR> __device__ void move_cut_off(const Shard& g) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        int h = g.labels()[v];
        if (h == UNSEEN || h == CUT_OFF) g.source_side[g.own][v] = !MIRROR;
    }
}

#define BOTH_WAYS(name, given, passed)                                                       \
    extern "C" __global__ void name##_forward given { name<false> passed; }  \
    extern "C" __global__ void name##_mirrored given { name<true> passed; }
BOTH_WAYS(reset, (const __grid_constant__ Shard g, int first, int slot), (g, first, slot))
BOTH_WAYS(grow, (const __grid_constant__ Shard g, int level, int slot), (g, level, slot))
BOTH_WAYS(look, (const __grid_constant__ Shard g, int level, int slot), (g, level, slot))
BOTH_WAYS(collect, (const __grid_constant__ Shard g, int fresh, int slot), (g, fresh, slot))
BOTH_WAYS(push, (const __grid_constant__ Shard g, int slot), (g, slot))
BOTH_WAYS(move_cut_off, (const __grid_constant__ Shard g), (g))

// The drain of one side of a cut over shards: push-relabel in steps, all shards at once, with a meeting of all blocks of
// all devices between two steps. One kernel that stays runs on each device; every block takes the same decisions, from
// sums over all shards that the meetings bring.
//
// A global relabel is a breadth-first search from the targets: levels that are small grow by their own rows, and large
// ones are met by the rows of what is still unseen (Beamer, Asanovic and Patterson, "Direction-optimizing breadth-first
// search", SC 2012). A round is two steps. In `push` labels stand still: each active vertex pushes along admissible arcs,
// and the residual of a reverse arc and the excess of a head are written wherever they lie. In `collect` each shard
// relabels its own vertices, tells all shards, and lists what is active next (Goldberg and Tarjan, JACM 1988, section 5:
// the synchronous parallel algorithm). No step reads what another shard writes in the same step, but for labels in a
// search, where a stale one only leads to a second equal write.

#include "sharded/meeting.cuh"
#include "sharded/shard.cuh"

constexpr int LEAST_ROUNDS = 16;  // between two global relabels, unless there are more for the depth of the last one
constexpr int LOOK_BACK = 4;      // unseen vertices look for a level once this many times its arcs are more than theirs

// ---- search: exact labels, level by level, from the targets backwards ---------------------------------------------------

// Labels before a search: targets have 0. The `first` one of a drain finds out what is outside.
template <bool MIRROR> __device__ __forceinline__ void reset(const Shard& g, int first, int slot) {
    clear_next(g, slot);
    Units arcs = 0;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        int h = !first ? g.own_label(v) : g.source_side[g.own][v] != MIRROR ? OUTSIDE : UNSEEN;
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
__device__ __forceinline__ void list_level(const Shard& g, int level, int slot) {
    clear_next(g, slot);
    list_rows(g, slot, [&](int v) { return level < 0 || g.own_label(v) == level; });
}
extern "C" __global__ void gather(const __grid_constant__ Shard g, int level, int slot) { list_level(g, level, slot); }

// Top-down: the rows of a level label what they are reached from.
template <bool MIRROR> __device__ __forceinline__ void grow(const Shard& g, int level, int slot) {
    Units scanned = 0;
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        for (int a = begin + (int)tile.thread_rank(); a < end; a += TILE_OF_ROW, scanned++) {
            Arc arc = load_now(g.arcs[g.own] + a);
            if (backward<MIRROR>(arc) > 0 && g.label_of(arc.head) == UNSEEN) g.set_label(arc.head, level + 1);
        }
    });
    add_up(g.tally + SCANNED, scanned);
}

// Bottom-up: unseen vertices look for an arc into the level.
template <bool MIRROR> __device__ __forceinline__ void look(const Shard& g, int level, int slot) {
    Units scanned = 0;
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        for (int base = begin; base < end; base += TILE_OF_ROW) {
            int a = base + (int)tile.thread_rank();
            bool found = false;
            if (a < end) {
                Arc arc = load_now(g.arcs[g.own] + a);
                found = forward<MIRROR>(arc) > 0 && g.label_of(arc.head) == level;
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
template <bool MIRROR> __device__ __forceinline__ void collect(const Shard& g, int fresh, int slot) {
    clear_next(g, slot);
    Units stuck = 0, relabels = 0;
    list_rows(g, slot, [&](int v) {
        Units e = g.excess_of<MIRROR>(v);
        if (e <= 0 || g.is_terminal(v)) return false;
        int h = g.own_label(v);
        if (h == OUTSIDE) return false;
        Units left = load(g.left + v);
        if (!fresh && h < UNSEEN && left > 0) {
            int low = load(g.lowest + v);
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
template <bool MIRROR> __device__ __forceinline__ void push(const Shard& g, int slot) {
    Units scanned = 0, pushes = 0, into_hot = 0;
    int hot = -1;  // a target, to which so many may push that each thread adds up its own share
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        int h = g.own_label(v), low = UNSEEN;
        // Of the first lane, for all: other tiles take from it while lanes read it, one after the other.
        Units e = tile.shfl(load(g.left + v), 0), sent = 0;
        for (int base = begin; base < end && e > 0; base += TILE_OF_ROW) {
            int a = base + (int)tile.thread_rank();
            Arc arc = NO_ARC;
            Capacity room = 0;
            int other = UNSEEN;
            if (a < end) {
                arc = load_now(g.arcs[g.own] + a);
                room = forward<MIRROR>(arc);
                if (room > 0) other = g.label_of(arc.head);
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
template <bool MIRROR> __device__ __forceinline__ void move_cut_off(const Shard& g) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        int h = g.own_label(v);
        if (h == UNSEEN || h == CUT_OFF) g.source_side[g.own][v] = !MIRROR;
    }
}

// ---- the order of the steps -------------------------------------------------------------------------------------------

struct ShardDrain {  // the one argument of the kernel that drains the shards of a device, by value
    const Shard* own;
    Meeting* meetings[MOST_SHARDS];  // of each device
    ShardOutcome* outcome;           // of this one
    float patience;                  // rounds between two global relabels, by the depth of the last one
    int n_own, rank, devices, round_limit, pad;
};
SAME_SIZE(ShardDrain);
SAME_PLACE(ShardDrain, own);
SAME_PLACE(ShardDrain, meetings);
SAME_PLACE(ShardDrain, outcome);
SAME_PLACE(ShardDrain, n_own);
SAME_PLACE(ShardDrain, rank);
SAME_PLACE(ShardDrain, devices);
SAME_PLACE(ShardDrain, patience);
SAME_PLACE(ShardDrain, round_limit);

template <bool MIRROR> struct Drain {
    const Shard* __restrict__ own;
    int n_own;
    Meetings meetings;
    int slot = 0;      // of the step that has counted last
    Sums sums{};       // what it has counted in all shards
    Units unseen = 0;  // arcs of vertices that the search has not reached

    template <class Step> __device__ __forceinline__ void step(Step each) {
        for (int i = 0; i < n_own; i++) each(own[i]);
        meetings.meet();
    }
    template <class Step> __device__ __forceinline__ void count(Step each) {
        slot = (slot + 1) % TALLY_SLOTS;
        for (int i = 0; i < n_own; i++) each(own[i]);
        sums = meetings.meet_and_sum(own, n_own, slot);
    }

    // Exact labels; returns how many levels there are.
    __device__ __forceinline__ int search(bool first) {
        count([&](const Shard& g) { reset<MIRROR>(g, first, slot); });
        unseen = sums.arcs;
        count([&](const Shard& g) { list_level(g, 0, slot); });
        int depth = 0;
        for (; sums.items > 0 && !sums.stop; depth++) {
            if (LOOK_BACK * sums.arcs > unseen) {
                count([&](const Shard& g) { list_level(g, UNSEEN, slot); });
                step([&](const Shard& g) { look<MIRROR>(g, depth, slot); });
            } else step([&](const Shard& g) { grow<MIRROR>(g, depth, slot); });
            count([&](const Shard& g) { list_level(g, depth + 1, slot); });
            unseen -= sums.arcs;
        }
        return depth;
    }
    __device__ __forceinline__ void run(float patience, int round_limit, ShardOutcome& done) {
        while (done.rounds < round_limit) {
            int depth = search(done.searches == 0);
            if (sums.stop) break;
            done.searches++, done.levels += depth;
            count([&](const Shard& g) { collect<MIRROR>(g, true, slot); });
            if (sums.stop) break;
            if (sums.items == 0) {
                if (sums.stuck > 0)
                    for (int i = 0; i < n_own; i++) move_cut_off<MIRROR>(own[i]);
                done.ended = true;
                break;
            }
            int most = max(LEAST_ROUNDS, (int)(patience * depth));
            for (int i = 0; i < most && sums.items > 0 && !sums.stop; i++, done.rounds++) {
                step([&](const Shard& g) { push<MIRROR>(g, slot); });
                count([&](const Shard& g) { collect<MIRROR>(g, false, slot); });
            }
            if (sums.stop) break;
        }
    }
};

template <bool MIRROR> __device__ __forceinline__ void drain(const ShardDrain& a) {
    ShardOutcome done{};
    Drain<MIRROR> drain{a.own, a.n_own, Meetings(a.meetings, a.rank, a.devices)};
    drain.run(a.patience, a.round_limit, done);
    if (blockIdx.x == 0 && threadIdx.x == 0) *a.outcome = done;
}
extern "C" __global__ void __launch_bounds__(SHARD_THREADS, SHARD_BLOCKS)
    drain_forward(const __grid_constant__ ShardDrain a) {
    drain<false>(a);
}
extern "C" __global__ void __launch_bounds__(SHARD_THREADS, SHARD_BLOCKS)
    drain_mirrored(const __grid_constant__ ShardDrain a) {
    drain<true>(a);
}

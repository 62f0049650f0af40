// Drain: push the excess of a region to its sinks and deficits. One persistent cooperative kernel, no host read-back;
// synchronous push-relabel with exact labels renewed by the work they save.
//
// Definitions. The region is one side of the state's cut: T, or with MIRROR S. Arcs are bidirectional CSR. residual(a)
// + residual(reverse(a)) = pair_sum(a) never changes while the kernel runs, so a vertex's own row tells the residuals
// of both directions. An ordinary vertex with excess > 0 is active; a sink takes everything, a vertex with excess < 0
// (a deficit) takes up to its size. Vertices outside the region carry the label OUTSIDE and are never touched. With
// MIRROR the roles of a residual and its reverse are exchanged and excesses are negated: the same kernel then fills
// deficits from excesses.
//
// Labels. h(v) is a lower bound on v's distance to a sink or deficit. Invariant (validity): for every residual arc
// (u, v) of the region h(u) <= h(v) + 1. In a round every active v
//   pushes    to heads w with h(w) = h(v) - 1, in a prefix sum over its row;
//   relabels  itself to 1 + the lowest label over the arcs that stay residual, if excess is left.
// All threads of a round read the labels of its beginning: a label word holds the label before and after a change,
// tagged with the parity of the round that made it, so one barrier a round is enough. This keeps the invariant:
//   - (v, w) and (w, v) are never both pushed in a round, so the residuals of a link have one writer;
//   - v may gain the arc (v, w) while it relabels, if w pushes to it: then h(w) = h(v) + 1. So v counts every w with
//     that label and a residual arc (w, v) as if it pushed, and rises to h(v) + 2 at most: h(v) <= h(w) + 1;
//   - neighbours relabelled at the same time only go up.
// (Goldberg-Tarjan 1988, section 4; instead of the steep-arc repair of Kannappan et al., Algorithm 3.)
// The value that an excess had before an addition decides who enters a vertex into the next frontier: v itself if
// excess is left after its own pushes, else whoever raises it above zero. Each active vertex is entered exactly once.
//
// Global relabels. After as many rounds as `patience` times the depth of the last search, a backward breadth-first
// search from sinks and deficits makes the labels of all vertices up to the deepest active one exact; unreached
// vertices count as one level deeper (also a valid bound), or as cut off if the search was exhausted. What is cut off
// is labelled so for good: nothing is pushed into it any more, so it stays closed. A vertex relabelled to n waits for
// such a search instead, because a search that stops early lowers the bounds of unreached vertices. Otherwise labels
// only grow between searches, exact distances never shrink (Kannappan et al., Lemma 3.1), and a round in which nothing
// is relabelled moves every excess down a level, so the rounds are O(n^2) in number; `round_limit` bounds them all the
// same.
//
// Strides. In a deep search with a narrow frontier a block goes on for some levels with the vertices it found itself,
// without a barrier. It may then label a vertex too high, by a long way round; a thread that comes by a shorter one
// lowers the label and visits the row again. At the next barrier all labels are exact: a vertex at distance d has a
// neighbour at d - 1 in some block's hands, which visits it in the stride for that level at the latest. Only rows that
// a block has no space for (early entries) are late; the search then goes on until nothing is left to visit, by when
// all labels are exact too.
//
// Trust. A repair whose excess is near the targets, by the labels that the last drain of the region left, begins with
// rounds on these labels. Where capacities have grown since, a label may be too high, so such rounds may go round in
// circles; but a push is right whatever the labels are, and a link is never pushed both ways in one round, because each
// push goes to the next lower label. So the rounds are limited, and a search comes after them if they leave excess. In shallow networks they
// mostly leave none: then there is no search, as no vertex is to be cut off.
//
// Looking back. While the frontier of a search is a large part of the network, the vertices that have no label look along
// their own rows for one that has (`look_back`): that takes a few arcs of each, where the frontier has most of all arcs.
//
// Waves. In a deep network the rest is left to waves.cu once a search has found how deep it is: `deep`.
//
// Tiers. A step whose frontier is small runs on one cluster of blocks (a cheaper barrier); the other blocks wait at the
// grid barrier until a step outgrows it.

#include "arguments.cuh"

constexpr int STRIDES = 9;  // in a step of a deep search, an odd number
constexpr int DEEP = 16;    // a search is deep from this level on: shallow networks have wide frontiers
constexpr int MOST_PENALTY = 1 << 29;
constexpr int LEAST_ROUNDS = 16;  // between two searches
constexpr int POLL = 15;          // the host's cancel flag is read every POLL + 1 rounds

// ---- the drain ------------------------------------------------------------------------------------------------

constexpr int SORTED = 256;     // long rows that a block looks at together
constexpr int LEAST_KEPT = 16;  // entries up to which a block keeps all at the end of a step

// A block's share in a step's summary: bits 9-26 of the first word entries that blocks keep, 27-57 active vertices reached; of
// the second word 9-38 rows and 39-63 long rows in the shared lists.
struct StepSummary : Summary {
    static __device__ __forceinline__ StepSummary of(const BlockShare& share, int reached, bool stop) {
        return {1 | (Word)share.kept << 9 | (Word)reached << 27 | (Word)stop << 63,
                1 | (Word)share.rows << 9 | (Word)share.long_rows << 39};
    }
    __device__ __forceinline__ int kept() const { return field(first, 9, 18); }
    __device__ __forceinline__ int reached() const { return field(first, 27, 31); }
    __device__ __forceinline__ int rows() const { return field(second, 9, 30); }
    __device__ __forceinline__ int long_rows() const { return field(second, 39, 25); }
};

struct Shared {
    BarrierMemory barrier_memory;
    BlockQueue<MANY> searched;
    BlockQueue<SOME> active;
    Units sums[THREADS / 32];
    Entry long_rows[SORTED];
    int sorted[3];  // of these: how many are for warps, how many for the block, whose turn it is
    int found;
    int mean_row;  // the mean length of a row
    int* hubs;     // the vertices with rows of more than HUB_ROW arcs
    int hot_sink;  // the sink whose excess threads add up for themselves, or NO_VERTEX
};

struct Drain {
    Graph g;
    GridMemory* memory;
    DrainProgress* progress;
    Shared& shared;
    Searched searched;
    Active active;
    GridBarrier grid_barrier;
    int cluster_phase;  // barriers of the leading cluster so far
    ThreadGroup grid, cluster;
    bool leads;
    int small;    // frontiers up to this size go to the leading cluster
    int reached;  // active vertices that the search has labelled
    bool stop, exhausted;
    int single, penalty;  // searches to come that take one stride a step, the last such number
    bool early;           // a search met early entries: its labels are exact only when it is exhausted
    ThreadCounters counters;
    StepCounters steps;

    // End the step by a barrier; afterwards the frontier is that of the next step. `wrote` says that others must see plain
    // writes.
    template <class F>
    __device__ __forceinline__ void end_step(const ThreadGroup& threads, F& f, bool wrote, bool cancelled) {
        int keep = f.most_kept(threads, LEAST_KEPT);
        f.spill(keep, 0, THREADS);
        StepSummary own{};
        if (threadIdx.x < 32) {  // the same in each of these threads
            BlockShare share = f.block_share(keep);
            own = StepSummary::of(share, shared.found, cancelled);
            wrote = wrote || share.rows > 0 || share.long_rows > 0 || f.spare_used;
            __syncwarp();
            if (threadIdx.x == 0) {
                f.turn_over(keep);
                shared.found = 0;
            }
        }
        f.step++;
        f.strides = 0;
        StepSummary all{threads.whole ? grid_barrier.reduce(shared.barrier_memory, own, wrote)
                                      : reduce_in_cluster(shared.barrier_memory, own, wrote, cluster_phase)};
        f.spare_used = f.rows | f.long_rows;
        f.rows = all.rows(), f.long_rows = all.long_rows();
        f.total = all.kept() + f.rows + f.long_rows;
        f.gathered = !threads.whole;
        reached += all.reached();
        stop = stop || all.stop();
    }

    // Repeat `one_step(threads)`, which ends the frontier's step and returns how far it got, while `on()` holds, the
    // frontier is not empty and `advance` is below `limit`. Afterwards every thread of the grid has the same state.
    template <class F, class Step, class On>
    __device__ __forceinline__ void run(F& f, int& advance, int limit, Step one_step, On on) {
        while (f.total > 0 && advance < limit && on()) {
            if (f.total > small || f.long_rows > CLUSTER) {
                advance += one_step(grid);
                steps.grid++;
                continue;
            }
            if (!f.gathered) {
                f.hand_over(leads);
                grid_barrier.wait(shared.barrier_memory);
                f.take_over();
            }
            int* shown = memory->broadcast[grid_barrier.phase & 1];
            if (leads) {
                while (f.total > 0 && advance < limit && on() && f.total / 2 <= small && f.long_rows <= 4 * CLUSTER) {
                    advance += one_step(cluster);
                    steps.cluster++;
                }
                if (cluster.rank == 0) {
                    int own[8] = {f.step, f.total, f.rows, f.long_rows, advance, reached, stop, early};
                    for (int i = 0; i < 8; i++) store(shown + i, own[i]);
                }
            }
            grid_barrier.wait(shared.barrier_memory);
            f.step = load(shown), f.total = load(shown + 1), f.rows = load(shown + 2), f.long_rows = load(shown + 3);
            advance = load(shown + 4), reached = load(shown + 5), stop = load(shown + 6), early = load(shown + 7);
        }
    }

    template <bool MIRROR> __device__ __forceinline__ void clear_labels() {
        searched.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Vertex own = load(g.vertices + v);
            int h = label_of(own.label);
            if (h == OUTSIDE) continue;
            Units holds = own.sink() ? 0 : excess_of<MIRROR>(g, v);
            bool target = own.sink() || holds < 0;
            bool cut_off = h == CUT_OFF || (h == UNSEEN && exhausted);
            Label blank = settled(UNSEEN) | (holds > 0 ? ACTIVE : 0);
            store(&g.vertices[v].label, target ? 0 : cut_off ? settled(CUT_OFF) : blank);
            if (target) searched.append_pieces(v, own.begin, own.end(), 0);
        }
        end_step(grid, searched, true, false);
    }

    // One level of a search, or STRIDES of them; returns how many.
    template <bool MIRROR> __device__ __forceinline__ int search_step(const ThreadGroup& threads, int depth) {
        searched.clear_spare(threads);
        auto visit = [&] {
            searched.each_row(threads, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
                search_row<MIRROR>(g, near ? *at : load(at), searched, &shared.found);
            });
        };
        bool strides = single == 0 && !early && depth >= DEEP && searched.total <= KEPT_ENTRIES * threads.blocks;
        if (strides) searched.stride(STRIDES - 1, 0, THREADS, visit);
        if (searched.wide(threads) && shared.mean_row <= SHORT_ROWS)
            searched.each_row(threads, threadIdx.x, THREADS, [&](const Entry* at, bool near) {
                search_row_alone<MIRROR>(g, near ? *at : load(at), searched, &shared.found);
            });
        else visit();
        end_step(threads, searched, false, false);
        early = early || searched.long_rows > 0;
        return strides ? STRIDES : 1;
    }

    // Exact labels up to the deepest of `wanted` active vertices; returns what an unseen label means.
    template <bool MIRROR> __device__ __forceinline__ int search(int wanted, int& depth) {
        // Frontiers with more entries than this are left alone, and the others look back: with a share x of all arcs m a
        // frontier takes x m visits, while the n others, in rows of d = m / n, look at 1 / x arcs until they meet it. So
        // they pay from x = 1 / sqrt(d) on, sooner as they need no atomics; an entry has about 2 d arcs. Not in dense
        // networks: their vertices are too few to keep all threads busy.
        int wide = shared.mean_row > PIECE ? UNSEEN : max((int)(g.n * rsqrtf(BACK * max(shared.mean_row, 1))), 2 * small);
        while (true) {
            clear_labels<MIRROR>();
            depth = reached = 0;
            if (early) single = penalty = min(2 * penalty + 1, MOST_PENALTY);
            else if (single > 0) single--;
            early = false;
            while (true) {
                run(
                    searched, depth, UNSEEN, [&](const ThreadGroup& threads) { return search_step<MIRROR>(threads, depth); },
                    [&] { return !searched.overflown() && (early || (reached < wanted && searched.total <= wide)); });
                if (searched.overflown() || early || reached >= wanted || searched.total <= wide) break;
                searched.clear_spare(grid);
                look_back<MIRROR>(g, grid, shared.hubs, load(&memory->n_hubs), depth, searched, &shared.found);
                end_step(grid, searched, false, false);
                depth++;
            }
            if (!searched.overflown()) break;
            early = true, penalty = MOST_PENALTY;  // again, and no more strides
        }
        steps.levels += depth;
        exhausted = reached < wanted;
        return exhausted ? CUT_OFF : depth + 1;
    }

    // The labels changed: write them into the entries of the active vertices.
    __device__ __forceinline__ void refresh(int unseen) {
        active.each_row(grid, threadIdx.x, THREADS, [&](Entry* at, bool near) {
            int v = near ? at->vertex : load(&at->vertex), h = effective_label(label_of(load(&g.vertices[v].label)), unseen);
            if (near) at->label = h;
            else store(&at->label, h);
        });
        for (int i = grid.rank; i < active.long_rows; i += grid.size) {
            Entry* at = active.lists.long_rows(active.now()) + i;
            store(&at->label, effective_label(label_of(load(&g.vertices[load(&at->vertex)].label)), unseen));
        }
        grid_barrier.wait(shared.barrier_memory);
    }

    // The block's share of the long rows. All of the block visits a single one. Of more it looks at SORTED at a time: its
    // warps take turns at the shorter ones, then all of it visits the others. The fewer rows it has, the shorter are
    // those that it visits as a whole: its warps would wait for the one that has the longest row.
    template <bool MIRROR> __device__ __forceinline__ void round_of_long_rows(const ThreadGroup& threads, int unseen) {
        Warp warp;
        Block block{shared.sums};
        int share = (active.long_rows - threads.block + threads.blocks - 1) / threads.blocks;
        int block_row = min(BLOCK_ROW, ARCS_A_ROW * share);
        for (int first = 0; first < share; first += SORTED) {
            int whole = 1;  // rows for the whole block
            if (share > 1) {
                if (threadIdx.x < 3) shared.sorted[threadIdx.x] = 0;
                __syncthreads();
                int i = first + threadIdx.x;
                if (threadIdx.x < SORTED && i < share) {
                    Entry e = load(active.lists.long_rows(active.now()) + i * threads.blocks + threads.block);
                    bool longest = e.end - e.begin >= block_row;
                    int slot = atomicAdd(shared.sorted + longest, 1);
                    shared.long_rows[longest ? SORTED - 1 - slot : slot] = e;
                }
                __syncthreads();
                while (true) {
                    int turn = 0;
                    if (warp.rank() == 0) turn = atomicAdd(shared.sorted + 2, 1);
                    turn = warp.lanes.shfl(turn, 0);
                    if (turn >= shared.sorted[0]) break;
                    discharge<MIRROR>(g, warp, unseen, shared.long_rows[turn], active, &shared.hot_sink, &memory->dropped,
                                      counters);
                }
                whole = shared.sorted[1];
            }
            for (int turn = 0; turn < whole; turn++) {
                Entry e = share > 1 ? shared.long_rows[SORTED - 1 - turn]
                                    : load(active.lists.long_rows(active.now()) + threads.block);
                discharge<MIRROR>(g, block, unseen, e, active, &shared.hot_sink, &memory->dropped, counters);
            }
            if (share > 1) __syncthreads();
        }
    }

    template <bool MIRROR> __device__ __forceinline__ int round(const ThreadGroup& threads, int unseen) {
        active.clear_spare(threads);
        bool cancelled = threads.block == 0 && (active.step & POLL) == 0 && told(&progress->cancel);
        if (active.long_rows > 0) round_of_long_rows<MIRROR>(threads, unseen);
        if (active.wide(threads)) {
            active.each_row(threads, threadIdx.x, THREADS, [&](const Entry* at, bool near) {
                discharge_alone<MIRROR>(g, unseen, near ? *at : load(at), active, &shared.hot_sink, &memory->dropped,
                                        counters);
            });
        } else {
            Tile tile;
            active.each_row(threads, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
                discharge<MIRROR>(g, tile, unseen, near ? *at : load(at), active, &shared.hot_sink, &memory->dropped,
                                  counters);
            });
        }
        end_step(threads, active, true, cancelled);
        return 1;
    }

    // Vertices that the last search left unseen, or that were cut off before, move to the other side of the cut.
    template <bool MIRROR> __device__ __forceinline__ void move_cut_off(bool* source_side) {
        Units gained = 0;
        for (int v = grid.rank; v < g.n; v += grid.size) {
            int h = label_of(load(&g.vertices[v].label));
            if (h != CUT_OFF && h != UNSEEN) continue;
            source_side[v] = !MIRROR;
            gained -= excess_of<MIRROR>(g, v);
        }
        add_up(&progress->gained, gained);
    }

    // Leave the labels to the next drain of the region; `beyond` is that of vertices that the last search has not seen.
    __device__ __forceinline__ void keep_labels(int* labels, int beyond) {
        for (int v = grid.rank; v < g.n; v += grid.size) {
            int h = label_of(load(&g.vertices[v].label));
            if (h == OUTSIDE) continue;
            store(labels + v, h == CUT_OFF ? UNKNOWN_LABEL : effective_label(h, beyond));
        }
    }

    // The list of vertices, the active ones among them, and, if `trusts`, the labels at hand.
    template <bool MIRROR> __device__ __forceinline__ void begin(const DrainArguments& given, bool trusts) {
        bool long_rows = false;
        active.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Entry e{v, given.row_offsets[v], given.row_offsets[v + 1], 0};
            bool sink = given.role[v] != ORDINARY, outside = given.source_side[v] != MIRROR;
            Units holds = sink || outside ? 0 : excess_of<MIRROR>(g, v);
            int h = outside ? OUTSIDE : UNSEEN;
            if (trusts && !outside) {
                int kept = sink || holds < 0 ? 0 : given.labels[v];
                h = kept == UNKNOWN_LABEL ? UNSEEN : kept;
            }
            store(g.vertices + v, {settled(h), e.begin, (unsigned)(e.end - e.begin) | (unsigned)sink << 31});
            long_rows |= e.end - e.begin >= LONG_ROW && !sink && !outside;
            if (e.end - e.begin > HUB_ROW) store(shared.hubs + atomicAdd(&memory->n_hubs, 1), v);
            if (holds <= 0) continue;
            if (trusts) {
                e.label = effective_label(h, g.n);
                atomicMax(&memory->farthest, e.label);
            }
            if (e.end - e.begin < LONG_ROW) active.append(e);
            else active.append_long(e);
        }
        if (__syncthreads_or(long_rows) && threadIdx.x == 0) store(&memory->has_long_rows, 1);
        end_step(grid, active, true, false);
    }

    template <bool MIRROR> __device__ __forceinline__ void run_to_end(const DrainArguments& given) {
        begin<MIRROR>(given, given.trust > 0);
        if (active.total == 0) return;
        int farthest = load(&memory->farthest), beyond = UNKNOWN_LABEL, depth;
        bool trusts = given.trust > 0 && farthest <= given.trust, ended, cut_off, left = false;
        while (true) {
            ended = active.total == 0 || steps.rounds >= given.round_limit || stop;
            cut_off = ended && load(&memory->dropped);
            if (ended && (stop || !cut_off)) break;
            int unseen = g.n, limit = 2 * farthest + 4;
            if (!trusts) {
                unseen = search<MIRROR>(ended ? UNSEEN : active.total, depth);
                beyond = exhausted ? UNKNOWN_LABEL : unseen;
                if (ended) break;
                steps.searches++;
                publish(progress, counters, steps, grid.rank == 0);
                bool may_leave = steps.searches > (given.trust > 0) && given.deep > 0 && !load(&memory->has_long_rows);
                left = may_leave && depth >= given.deep && depth <= given.deepest;
                if (left) break;  // the labels are exact
                refresh(unseen);
                limit = max(LEAST_ROUNDS, (int)(given.patience * depth));
            }
            trusts = false;
            int done = 0;
            run(
                active, done, limit, [&](const ThreadGroup& threads) { return round<MIRROR>(threads, unseen); },
                [&] { return !stop; });
            steps.rounds += done;
        }
        keep_labels(given.labels, beyond);
        if (cut_off && !stop) move_cut_off<MIRROR>(given.source_side);
        if (grid.rank == 0) {
            progress->status = active.total == 0 && !stop ? ENDED_DRAIN : left ? LEFT_DRAIN : CANCELLED_DRAIN;
            progress->cut_off = cut_off;
        }
        publish(progress, counters, steps, grid.rank == 0);
        fill_hot_sink<MIRROR>(g, shared.hot_sink, counters);
    }

    // One search until it is exhausted: who reaches a target keeps a label, all others in the region UNKNOWN_LABEL. In a
    // solved state nobody in the region is active.
    template <bool MIRROR> __device__ __forceinline__ void search_alone(const DrainArguments& given) {
        int depth;
        begin<MIRROR>(given, false);
        search<MIRROR>(UNSEEN, depth);
        keep_labels(given.labels, UNKNOWN_LABEL);
    }
};

template <bool MIRROR, bool SEARCHES_ALONE> __device__ __forceinline__ void drain(const DrainArguments& given) {
    __shared__ Shared shared;
    for (int i = threadIdx.x; i < sizeof(Shared) / 4; i += THREADS) ((int*)&shared)[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        shared.hot_sink = NO_VERTEX;
        shared.mean_row = (given.row_offsets[given.n] + given.n - 1LL) / given.n;
        shared.hubs = given.hubs;
    }
    init_cluster_barrier(shared.barrier_memory);
    int rank = blockIdx.x * THREADS + threadIdx.x;
    GridMemory* memory = given.memory;
    Drain s{{given.n, given.vertices, given.arcs, given.excess},
            memory,
            given.progress,
            shared,
            {shared.searched, {given.search_even, given.search_odd, nullptr, nullptr, memory->search_tails, given.capacity}},
            {shared.active,
             {given.active_even, given.active_odd, given.long_even, given.long_odd, memory->active_tails, given.n}},
            {memory->barrier_words, 0},
            0,
            {rank, (int)gridDim.x * THREADS, (int)blockIdx.x, (int)gridDim.x, true},
            {rank, CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            blockIdx.x / CLUSTER == 0,
            given.small};
    if (SEARCHES_ALONE) s.search_alone<MIRROR>(given);
    else s.run_to_end<MIRROR>(given);
    leave_cluster();
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1)
    drain_forward(const __grid_constant__ DrainArguments given) {
    drain<false, false>(given);
}
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1)
    drain_mirrored(const __grid_constant__ DrainArguments given) {
    drain<true, false>(given);
}
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1)
    reach_forward(const __grid_constant__ DrainArguments given) {
    drain<false, true>(given);
}
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1)
    reach_mirrored(const __grid_constant__ DrainArguments given) {
    drain<true, true>(given);
}

// Drain: push the excess of a region to its sinks and deficits. One persistent cooperative kernel, no host
// read-back; synchronous push-relabel with exact labels renewed by the work they save.
//
// Definitions. The region is one side of the state's cut: T, or with MIRROR S. Arcs are bidirectional CSR.
// residual(a) + residual(reverse(a)) = pair_sum(a) never changes while the kernel runs, so a vertex's own row tells the
// residuals of both directions. An ordinary vertex with excess > 0 is active; a sink takes everything, a vertex with excess < 0 (a deficit) takes up to its size. Vertices outside the
// region carry the label OUTSIDE and are never touched. With MIRROR the roles of a residual and its reverse are
// exchanged and excesses are negated: the same kernel then fills deficits from excesses.
//
// Labels. h(v) is a lower bound on v's distance to a sink or deficit. Invariant (validity): for every residual arc
// (u, v) of the region h(u) <= h(v) + 1. In a round every active v
//   pushes    to heads w with h(w) = h(v) - 1, in a prefix sum over its row;
//   relabels  itself to 1 + the lowest label over the arcs that stay residual, if excess is left.
// All of a round reads the labels of its beginning: a label word holds the label before and after a change, tagged
// with the parity of the round that made it, so one barrier a round is enough. This keeps the invariant:
//   - (v, w) and (w, v) are never both pushed in a round, so the residuals of a link have one writer;
//   - v may gain the arc (v, w) while it relabels, if w pushes to it: then h(w) = h(v) + 1. So v counts every w with
//     that label and a residual arc (w, v) as if it pushed, and rises to h(v) + 2 at most: h(v) <= h(w) + 1;
//   - neighbours relabelled at the same time only go up.
// (Goldberg-Tarjan 1988, section 4; instead of the steep-arc repair of Kannappan et al., Algorithm 3.)
// Who enters the next frontier is decided by the value that the excess had before an addition: v itself if excess is
// left after its own pushes, else whoever raises it above zero. Each active vertex is entered exactly once.
//
// After as many rounds as `patience` times the depth of the last search, a backward breadth-first search from sinks
// and deficits makes the labels of all vertices up to the deepest active one exact; unreached vertices count as one
// level deeper (also a valid bound), or as cut off if the search was exhausted. What is cut off is labelled so for
// good: nothing is pushed into it any more, so it stays closed. A vertex relabelled to n waits for such a search
// instead, because a search that stops early lowers the bounds of unreached vertices. Otherwise labels only grow
// between searches, exact distances never shrink (Kannappan et al., Lemma 3.1), and a round in which nothing is
// relabelled moves every excess down a level, so the rounds are O(n^2) in number; `round_limit` bounds them all the
// same.
//
// Strides. In a deep search with a narrow frontier a block goes on for some levels with what it has found, without a
// barrier. It may then label a vertex too high, by a long way round; whoever comes by a shorter one lowers the label and
// visits the row again. At the next barrier all labels are exact: a vertex at distance d has a neighbour at d - 1 in some
// block's hands, which visits it in the stride for that level at the latest. Only rows that a block has no space for
// (early entries) are late; the search then goes on until nothing is left to visit, by when all labels are exact too.
//
// Tiers. A step whose frontier is small runs on one cluster of blocks (a cheaper barrier); the other blocks wait at
// the gate until a step outgrows it.

#include "row.cuh"

constexpr int STRIDES = 9;      // of a search's step, an odd number,
constexpr int DEEP = 16;        // from this level on: shallow networks have wide frontiers
constexpr int POLL = 15;        // the host's cancel flag is read every POLL + 1 rounds

struct Control {            // shared with the host
    int cancel;
    int status;             // 0 done, 1 cancelled, 2 round limit
    int cut_off;            // some excess could not reach any target: what it can reach moved to the other side
    int pad;
    Units gained;           // change of the flow's value by that
    Units pushes, relabels, global_relabels, arcs_scanned, rounds, levels, grid_steps, cluster_steps;
};

struct Work {               // device only, zeroed by the host
    Word gates[2];
    int search_tails[9], active_tails[9];
    int dropped;            // some excess was found to be cut off
    int mail[2][8];         // what the leading cluster tells the others
};

// ---- the solve ------------------------------------------------------------------------------------------------

constexpr int SORTED = 256;     // long rows that a block looks at together

struct Shared {
    Meeting meeting;
    Kept<MANY> searched;
    Kept<SOME> active;
    Units sums[THREADS / 32];
    Entry long_rows[SORTED];
    int sorted[3];          // of these: how many are for warps, how many for the block, whose turn it is
    int found;
    int favourite;          // a sink, or NOBODY
};

struct Solve {
    Graph g;
    Work* work; Control* control;
    Shared& shared;
    Searched searched;
    Active active;
    Gate gate;
    int meetings;           // of the leading cluster
    Team grid, cluster;
    bool leads;
    int small;              // frontiers up to this size go to the leading cluster
    int reached;            // active vertices that the search has labelled
    bool stop, exhausted;
    int calm, penalty;      // searches to come that take one stride a step, the last such number
    bool early;             // a search met early entries: its labels are exact only when it is exhausted
    Tally tally;
    Units levels, rounds, grid_steps, cluster_steps;

    template <class F>
    __device__ __forceinline__ void turn_over(const Team& team, F& frontier, bool wrote, bool cancelled) {
        Report all = frontier.turn_over(team, gate, shared.meeting, meetings, shared.found, wrote, cancelled);
        reached += all.reached();
        stop = stop || all.stop();
    }

    // Repeat `one_step(team)`, which ends by turning the frontier over and returns how far it got, while `on()` holds,
    // the frontier is not empty and `advance` is below `limit`. All of the state is the same in every thread of the
    // grid afterwards.
    template <class F, class Step, class On>
    __device__ __forceinline__ void run(F& f, int& advance, int limit, Step one_step, On on) {
        while (f.total > 0 && advance < limit && on()) {
            if (f.total > small || f.long_rows > CLUSTER) {
                advance += one_step(grid);
                grid_steps++;
                continue;
            }
            if (!f.gathered) f.gather(leads, gate, shared.meeting);
            int* mail = work->mail[gate.turn & 1];
            if (leads) {
                while (f.total > 0 && advance < limit && on() && f.total / 2 <= small && f.long_rows <= 4 * CLUSTER) {
                    advance += one_step(cluster);
                    cluster_steps++;
                }
                if (cluster.rank == 0) {
                    int told[8] = {f.step, f.total, f.rows, f.long_rows, advance, reached, stop, early};
                    for (int i = 0; i < 8; i++) store(mail + i, told[i]);
                }
            }
            gate.wait(shared.meeting);
            f.step = load(mail), f.total = load(mail + 1), f.rows = load(mail + 2), f.long_rows = load(mail + 3);
            advance = load(mail + 4), reached = load(mail + 5), stop = load(mail + 6), early = load(mail + 7);
        }
    }

    template <bool MIRROR> __device__ __forceinline__ void clear_labels() {
        searched.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Vertex own = load(g.vertices + v);
            int h = label_of(own.label);
            if (h == OUTSIDE) continue;
            Units holds = own.sink() ? 0 : held<MIRROR>(g, v);
            bool target = own.sink() || holds < 0;
            bool cut_off = h == CUT_OFF || (h == UNSEEN && exhausted);
            Label blank = settled(UNSEEN) | (holds > 0 ? ACTIVE : 0);
            store(&g.vertices[v].label, target ? 0 : cut_off ? settled(CUT_OFF) : blank);
            if (target) searched.append_pieces(v, own.begin, own.end(), 0);
        }
        turn_over(grid, searched, true, false);
    }

    // Exact labels up to the deepest of `wanted` active vertices; returns what an unseen label means.
    template <bool MIRROR> __device__ __forceinline__ int search(int wanted, int& depth) {
        clear_labels<MIRROR>();
        depth = reached = 0;
        if (early) calm = penalty = 2 * penalty + 1;
        else if (calm > 0) calm--;
        early = false;
        run(searched, depth, UNSEEN, [&](const Team& team) {
            searched.clear_spare(team);
            auto visit = [&] {
                if (searched.wide(team))
                    searched.each_row(team, threadIdx.x, THREADS, [&](const Entry* at, bool near) {
                        search_row_alone<MIRROR>(g, near ? *at : load(at), searched, &shared.found);
                    });
                else
                    searched.each_row(team, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
                        search_row<MIRROR>(g, near ? *at : load(at), searched, &shared.found);
                    });
            };
            bool far = calm == 0 && !early && depth >= DEEP && searched.rows == 0;
            if (far)
                for (int i = 0; i < STRIDES / 2; i++) searched.two_strides(visit);
            visit();
            turn_over(team, searched, false, false);
            early = early || searched.long_rows > 0;
            return far ? STRIDES : 1;
        }, [&] { return reached < wanted || early; });
        levels += depth;
        exhausted = reached < wanted;
        return exhausted ? CUT_OFF : depth + 1;
    }

    // The labels changed: write them into the entries of the active vertices.
    __device__ __forceinline__ void refresh(int unseen) {
        active.each_row(grid, threadIdx.x, THREADS, [&](Entry* at, bool near) {
            int v = near ? at->vertex : load(&at->vertex), h = meaning(label_of(load(&g.vertices[v].label)), unseen);
            if (near) at->label = h;
            else store(&at->label, h);
        });
        for (int i = grid.rank; i < active.long_rows; i += grid.size) {
            Entry* at = active.lists.long_rows(active.now()) + i;
            store(&at->label, meaning(label_of(load(&g.vertices[load(&at->vertex)].label)), unseen));
        }
        gate.wait(shared.meeting);
    }

    // The block's share of the long rows, SORTED of them at a time: its warps take turns at the shorter ones, then all
    // of it visits the others.
    template <bool MIRROR> __device__ __forceinline__ void round_of_long_rows(const Team& team, int unseen) {
        Warp warp;
        Block block{shared.sums};
        for (int first = 0; first * team.blocks + team.block < active.long_rows; first += SORTED) {
            if (threadIdx.x < 3) shared.sorted[threadIdx.x] = 0;
            __syncthreads();
            int i = (first + threadIdx.x) * team.blocks + team.block;
            if (threadIdx.x < SORTED && i < active.long_rows) {
                Entry e = load(active.lists.long_rows(active.now()) + i);
                bool longest = e.end - e.begin >= BLOCK_ROW;
                int slot = atomicAdd(shared.sorted + longest, 1);
                shared.long_rows[longest ? SORTED - 1 - slot : slot] = e;
            }
            __syncthreads();
            while (true) {
                int turn = 0;
                if (warp.rank() == 0) turn = atomicAdd(shared.sorted + 2, 1);
                turn = warp.lanes.shfl(turn, 0);
                if (turn >= shared.sorted[0]) break;
                discharge<MIRROR>(g, warp, unseen, shared.long_rows[turn], active, &shared.favourite, &work->dropped, tally);
            }
            for (int turn = 0; turn < shared.sorted[1]; turn++)
                discharge<MIRROR>(g, block, unseen, shared.long_rows[SORTED - 1 - turn], active, &shared.favourite,
                                  &work->dropped, tally);
            __syncthreads();
        }
    }

    template <bool MIRROR> __device__ __forceinline__ int round(const Team& team, int unseen) {
        active.clear_spare(team);
        bool cancelled = team.block == 0 && (active.step & POLL) == 0 && __ldcg(&control->cancel);
        if (active.long_rows > 0) round_of_long_rows<MIRROR>(team, unseen);
        if (active.wide(team)) {
            active.each_row(team, threadIdx.x, THREADS, [&](const Entry* at, bool near) {
                discharge_alone<MIRROR>(g, unseen, near ? *at : load(at), active, &shared.favourite, &work->dropped, tally);
            });
        } else {
            Tile tile;
            active.each_row(team, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
                discharge<MIRROR>(g, tile, unseen, near ? *at : load(at), active, &shared.favourite, &work->dropped, tally);
            });
        }
        turn_over(team, active, true, cancelled);
        return 1;
    }

    // Add what happened since the last report to the control block, where the host can see it.
    __device__ __forceinline__ void report(int searches) {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        Units sums[3] = {tally.pushes, tally.relabels, tally.scanned};
        Units* to[3] = {&control->pushes, &control->relabels, &control->arcs_scanned};
        for (int i = 0; i < 3; i++) {
            Units sum = cg::reduce(warp, sums[i], cg::plus<Units>());
            if (warp.thread_rank() == 0 && sum != 0) add(to[i], sum);
        }
        tally.pushes = tally.relabels = 0, tally.scanned = 0;
        if (grid.rank != 0) return;
        control->global_relabels = searches;
        control->rounds = rounds;
        control->levels = levels;
        control->grid_steps = grid_steps;
        control->cluster_steps = cluster_steps;
    }

    // What the last search left unseen, and what was cut off before, moves to the other side.
    template <bool MIRROR> __device__ __forceinline__ void move_cut_off(bool* source_side) {
        Units gained = 0;
        for (int v = grid.rank; v < g.n; v += grid.size) {
            int h = label_of(load(&g.vertices[v].label));
            if (h != CUT_OFF && h != UNSEEN) continue;
            source_side[v] = !MIRROR;
            gained -= held<MIRROR>(g, v);
        }
        gained = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), gained, cg::plus<Units>());
        if (threadIdx.x % 32 == 0 && gained != 0) add(&control->gained, gained);
    }

    template <bool MIRROR>
    __device__ __forceinline__ void drain(const int* row_offsets, const signed char* role, bool* source_side, float patience,
                                          int round_limit) {
        active.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Entry e{v, row_offsets[v], row_offsets[v + 1], 0};
            bool sink = role[v] != ORDINARY, outside = source_side[v] != MIRROR;
            store(g.vertices + v, {settled(outside ? OUTSIDE : UNSEEN), e.begin, (unsigned)(e.end - e.begin) | (unsigned)sink << 31});
            if (sink || outside || held<MIRROR>(g, v) <= 0) continue;
            if (e.end - e.begin < LONG_ROW) active.append(e);
            else active.append_long(e);
        }
        turn_over(grid, active, true, false);
        int searches = 0, depth;
        bool ended, cut_off;
        while (true) {
            ended = active.total == 0 || rounds >= round_limit || stop;
            cut_off = ended && load(&work->dropped);
            if (ended && (stop || !cut_off)) break;
            int unseen = search<MIRROR>(ended ? UNSEEN : active.total, depth);
            if (ended) break;
            searches++;
            report(searches);
            refresh(unseen);
            int done = 0;
            run(active, done, max(16, (int)(patience * depth)), [&](const Team& team) { return round<MIRROR>(team, unseen); },
                [&] { return !stop; });
            rounds += done;
        }
        if (cut_off && !stop) move_cut_off<MIRROR>(source_side);
        if (grid.rank == 0) {
            control->status = stop ? 1 : active.total > 0 ? 2 : 0;
            control->cut_off = cut_off;
        }
        report(searches);
        Units sunk = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), tally.sunk, cg::plus<Units>());
        if (threadIdx.x % 32 == 0 && sunk != 0) give<MIRROR>(g, shared.favourite, sunk);
    }
};

#define ARGUMENTS int n, const int* row_offsets, Arc* arcs, Units* excess, const signed char* role, bool* source_side,  \
    Vertex* vertices, Entry* rows_a, Entry* rows_b, Entry* active_a, Entry* active_b, Entry* long_a,  \
    Entry* long_b, Work* work, Control* control, float patience, int small, int round_limit
#define PASSED n, row_offsets, arcs, excess, role, source_side, vertices, rows_a, rows_b, active_a, active_b,     \
    long_a, long_b, work, control, patience, small, round_limit

template <bool MIRROR> __device__ __forceinline__ void solve(ARGUMENTS) {
    __shared__ Shared shared;
    for (int i = threadIdx.x; i < sizeof(Shared) / 4; i += THREADS) ((int*)&shared)[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) shared.favourite = NOBODY;
    open_mail(shared.meeting);
    int rank = blockIdx.x * THREADS + threadIdx.x;
    Solve s{{n, vertices, arcs, excess}, work, control, shared,
            {shared.searched, {rows_a, rows_b, nullptr, nullptr, work->search_tails}},
            {shared.active, {active_a, active_b, long_a, long_b, work->active_tails}},
            {work->gates, 0}, 0,
            {rank, (int)gridDim.x * THREADS, (int)blockIdx.x, (int)gridDim.x, true},
            {rank, CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            blockIdx.x / CLUSTER == 0, small};
    s.drain<MIRROR>(row_offsets, role, source_side, patience, round_limit);
#if CLUSTER > 1
    cg::this_cluster().sync();      // nor leaves while a neighbour may still read there
#endif
}

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1) drain_forward(ARGUMENTS) { solve<false>(PASSED); }
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1) drain_mirrored(ARGUMENTS) { solve<true>(PASSED); }

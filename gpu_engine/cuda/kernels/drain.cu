// Drain: push the excess of a region to its sinks and deficits. One persistent cooperative kernel, no host
// read-back; synchronous push-relabel with exact labels renewed by the work they save.
//
// Definitions. The region is one side of the state's cut: T, or with MIRROR S. Arcs are bidirectional CSR. residual(a) + residual(reverse(a)) = pair_sum(a) never changes while the
// kernel runs, so a vertex's own row tells the residuals of both directions. An ordinary vertex with excess > 0 is
// active; a sink takes everything, a vertex with excess < 0 (a deficit) takes up to its size. Vertices outside the
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
// Tiers. A step whose frontier is small runs on one cluster of blocks (a cheaper barrier); the other blocks wait at
// the gate until a step outgrows it.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "frontier.cuh"

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

struct Graph {
    int n;
    const int* row_offsets; Arc* arcs; Units* excess;
    signed char* role;      // in the region: ORDINARY, SINK or AWAY
};

template <bool MIRROR> __device__ __forceinline__ Capacity forward(const Arc& a) {
    return MIRROR ? a.pair_sum - a.residual : a.residual;
}
template <bool MIRROR> __device__ __forceinline__ Capacity backward(const Arc& a) {
    return MIRROR ? a.residual : a.pair_sum - a.residual;
}
template <bool MIRROR> __device__ __forceinline__ Units held(const Graph& g, int v) {
    Units e = __ldcg(g.excess + v);
    return MIRROR ? -e : e;
}
// Add to what v holds; returns what it held before.
template <bool MIRROR> __device__ __forceinline__ Units give(const Graph& g, int v, Units amount) {
    Units old = (Units)atomicAdd((unsigned long long*)(g.excess + v), (unsigned long long)(MIRROR ? -amount : amount));
    return MIRROR ? -old : old;
}

// ---- labels ---------------------------------------------------------------------------------------------------

// bits 32-63 the label; after a relabel: 2-31 the label before, 0-1 one more than the parity of the round. The tag of
// a change is wiped in the next round by the vertex itself, before that parity comes again. Unseen: 0-1 ACTIVE or 0.
constexpr int ACTIVE = 3;
__device__ __forceinline__ Label settled(int h) { return (Label)h << 32; }
__device__ __forceinline__ Label changed(int before, int h, int round) {
    return (Label)h << 32 | (unsigned)before << 2 | (1 + (round & 1));
}
__device__ __forceinline__ Label load(const Label* p) { return __ldcg(p); }
__device__ __forceinline__ void store(Label* p, Label x) { __stcg(p, x); }
__device__ __forceinline__ int at_begin(Label x, int round) {
    return (x & 3) == 1 + (round & 1) ? (int)(x >> 2 & 0x3fffffff) : label_of(x);
}
__device__ __forceinline__ int meaning(int label, int unseen) { return label == UNSEEN ? unseen : label; }

// ---- groups of threads that visit a row together --------------------------------------------------------------

struct Tile {               // TILE neighbouring lanes
    static constexpr int ITEMS = 1;
    cg::thread_block_tile<TILE> lanes;
    __device__ Tile() : lanes(cg::tiled_partition<TILE>(cg::this_thread_block())) {}
    __device__ int rank() const { return lanes.thread_rank(); }
    __device__ static constexpr int size() { return TILE; }
    __device__ Units scan(Units x, Units& total) const {
        Units through = cg::inclusive_scan(lanes, x);
        total = lanes.shfl(through, TILE - 1);
        return through;
    }
    __device__ int lowest(int x) const { return cg::reduce(lanes, x, cg::less<int>()); }
    __device__ Units same(Units x) const { return lanes.shfl(x, 0); }
};

struct Block {              // all threads of a block
    static constexpr int ITEMS = 4;
    Units* sums;            // shared, one for each warp
    __device__ int rank() const { return threadIdx.x; }
    __device__ static constexpr int size() { return THREADS; }
    __device__ Units scan(Units x, Units& total) const {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        Units through = cg::inclusive_scan(warp, x);
        __syncthreads();
        if (warp.thread_rank() == 31) sums[threadIdx.x / 32] = through;
        __syncthreads();
        Units before = 0;
        total = 0;
        for (int i = 0; i < THREADS / 32; i++) {
            if (i < threadIdx.x / 32) before += sums[i];
            total += sums[i];
        }
        return before + through;
    }
    __device__ int lowest(int x) const {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        int low = cg::reduce(warp, x, cg::less<int>());
        __syncthreads();
        if (warp.thread_rank() == 0) sums[threadIdx.x / 32] = low;
        __syncthreads();
        for (int i = 0; i < THREADS / 32; i++) low = min(low, (int)sums[i]);
        return low;
    }
    __device__ Units same(Units x) const {
        __syncthreads();
        if (threadIdx.x == 0) sums[0] = x;
        __syncthreads();
        x = sums[0];
        __syncthreads();
        return x;
    }
};

// ---- one row --------------------------------------------------------------------------------------------------

struct Tally { Units pushes, relabels, scanned; };

// Search: a vertex from which a labelled one is reached gets the label `level` + 1, unless it has one.
__device__ __forceinline__ void reach(const Graph& g, Label* label, int w, int level, const Frontier& frontier, int* found) {
    int begin = load_now(g.row_offsets + w), end = load_now(g.row_offsets + w + 1);
    Label old = atomicMin(label + w, settled(level + 1));
    if (label_of(old) != UNSEEN) return;
    frontier.append_pieces(w, begin, end);
    if ((old & 3) == ACTIVE) atomicAdd(found, 1);
}

template <bool MIRROR>
__device__ __forceinline__ void search_row(const Graph& g, Label* label, Entry row, int level, const Frontier& frontier,
                                           int* found) {
    int a = row.begin + threadIdx.x % TILE;
    if (row.end - row.begin <= TILE) {      // most arcs of sparse graphs lead on: straight to the atomic
        if (a >= row.end) return;
        Arc arc = load_now(g.arcs + a);
        if (backward<MIRROR>(arc) > 0) reach(g, label, arc.head, level, frontier, found);
        return;
    }
    constexpr int BATCH = 4;                // most arcs of dense ones lead to labelled vertices: look before
    for (; a < row.end; a += BATCH * TILE) {
        Arc arc[BATCH];
        Label seen[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) arc[i] = a + i * TILE < row.end ? load_now(g.arcs + a + i * TILE) : NO_ARC;
#pragma unroll
        for (int i = 0; i < BATCH; i++) seen[i] = backward<MIRROR>(arc[i]) > 0 ? load(label + arc[i].head) : 0;
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (label_of(seen[i]) == UNSEEN) reach(g, label, arc[i].head, level, frontier, found);
    }
}

// Up to ITEMS arcs of a row for each thread of a group, as a round sees them.
template <bool MIRROR, class Group> struct Slice {
    static constexpr int ITEMS = Group::ITEMS;
    int first, stride, end;
    Arc arc[ITEMS];

    __device__ __forceinline__ Slice(const Graph& g, const Group& group, int base, int end)
        : first(base + group.rank()), stride(Group::size()), end(end) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) arc[i] = at(i) < end ? load_now(g.arcs + at(i)) : NO_ARC;
    }
    __device__ __forceinline__ int at(int i) const { return first + i * stride; }
};

template <bool MIRROR>
__device__ __forceinline__ void push(const Graph& g, int a, const Arc& arc, Units amount, int label, const Frontier& frontier) {
    int w = arc.head, begin = load_now(g.row_offsets + w), end = load_now(g.row_offsets + w + 1);
    signed char role = g.role[w];
    Units old = give<MIRROR>(g, w, amount);
    Capacity moved = (Capacity)(MIRROR ? -amount : amount);
    __stcg(&g.arcs[a].residual, (Capacity)(arc.residual - moved));
    add(&g.arcs[arc.reverse].residual, moved);
    if (old > 0 || old + amount <= 0 || role != ORDINARY) return;
    if (end - begin < LONG_ROW) frontier.append({w, begin, end, label});
    else frontier.append_long({w, begin, end, label});
}

// Round: push the excess of e.vertex, relabel it if some is left. `e.label` is its label at the round's beginning.
template <bool MIRROR, class Group>
__device__ __forceinline__ void discharge(const Graph& g, const Group& group, Label* label, int unseen, Entry e,
                                          const Frontier& frontier, int* dropped, Tally& tally) {
    constexpr int ITEMS = Group::ITEMS;
    int own = e.label, lowest = UNSEEN - 1, round = frontier.step;
    if (own < 0) {          // an exhausted search did not see it
        if (group.rank() == 0) *dropped = 1;
        return;
    }
    Slice<MIRROR, Group> slice(g, group, e.begin, e.end);
    Units left = group.same(held<MIRROR>(g, e.vertex)), rest = 1;       // others may add to it meanwhile
    for (int base = e.begin; base < e.end && left > 0;) {
        int far[ITEMS];
        Units room[ITEMS], mine = 0, total;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            far[i] = slice.at(i) < e.end ? meaning(at_begin(load(label + slice.arc[i].head), round), unseen) : OUTSIDE;
            room[i] = far[i] == own - 1 ? (Units)forward<MIRROR>(slice.arc[i]) : 0;
            mine += room[i];
        }
        Units through = group.scan(mine, total), sent = min(left, total);
        Units share = max(left - (through - mine), (Units)0);
        if (group.rank() == 0 && sent > 0) rest = give<MIRROR>(g, e.vertex, -sent) - sent;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const Arc& arc = slice.arc[i];
            Units amount = min(room[i], share);
            share -= amount;
            bool gained = far[i] == own + 1 && backward<MIRROR>(arc) > 0;      // by a push to us, perhaps
            if (far[i] >= 0 && (forward<MIRROR>(arc) > amount || gained)) lowest = min(lowest, far[i]);
            if (amount <= 0) continue;
            push<MIRROR>(g, slice.at(i), arc, amount, own - 1, frontier);
            tally.pushes++;
        }
        left -= sent;
        base += ITEMS * Group::size();
        if (base < e.end && left > 0) slice = Slice<MIRROR, Group>(g, group, base, e.end);
    }
    if (left > 0) lowest = group.lowest(lowest);
    if (group.rank() != 0) return;
    tally.scanned += e.end - e.begin;
    if (left > 0) {
        e.label = min(lowest, g.n - 1) + 1;
        store(label + e.vertex, changed(own, e.label, round));
        tally.relabels++;
    } else {
        store(label + e.vertex, settled(own));
        if (rest <= 0) return;      // else something came in meanwhile
    }
    if (Group::size() == TILE) frontier.append(e);
    else frontier.append_long(e);
}

// ---- the solve ------------------------------------------------------------------------------------------------

struct Shared {
    Meeting meeting;
    Kept searched, active;
    Units sums[THREADS / 32];
    int found;
};

struct Solve {
    Graph g;
    Label* label;
    Work* work; Control* control;
    Shared& shared;
    Frontier searched, active;
    Gate gate;
    int meetings;           // of the leading cluster
    Team grid, cluster;
    bool leads;
    int small;              // frontiers up to this size go to the leading cluster
    int reached;            // active vertices that the search has labelled
    bool stop, exhausted;
    Tally tally;
    Units levels, rounds, grid_steps, cluster_steps;

    __device__ __forceinline__ void turn_over(const Team& team, Frontier& frontier, bool wrote, bool cancelled) {
        Report all = frontier.turn_over(team, gate, shared.meeting, meetings, shared.found, wrote, cancelled);
        reached += all.reached();
        stop = stop || all.stop();
    }

    // Repeat `one_step(team)`, which ends by turning the frontier over, while `on()` holds, the frontier is not empty
    // and `advance` is below `limit`. All of the state is the same in every thread of the grid afterwards.
    template <class Step, class On>
    __device__ __forceinline__ void run(Frontier& f, int& advance, int limit, Step one_step, On on) {
        while (f.total > 0 && advance < limit && on()) {
            if (f.total > small || f.long_rows > CLUSTER) {
                one_step(grid);
                advance++, grid_steps++;
                continue;
            }
            if (!f.gathered) f.gather(leads, gate, shared.meeting);
            int* mail = work->mail[gate.turn & 1];
            if (leads) {
                while (f.total > 0 && advance < limit && on() && f.total / 2 <= small && f.long_rows <= 4 * CLUSTER) {
                    one_step(cluster);
                    advance++, cluster_steps++;
                }
                if (cluster.rank == 0) {
                    int told[7] = {f.step, f.total, f.rows, f.long_rows, advance, reached, stop};
                    for (int i = 0; i < 7; i++) store(mail + i, told[i]);
                }
            }
            gate.wait(shared.meeting);
            f.step = load(mail), f.total = load(mail + 1), f.rows = load(mail + 2), f.long_rows = load(mail + 3);
            advance = load(mail + 4), reached = load(mail + 5), stop = load(mail + 6);
        }
    }

    template <bool MIRROR> __device__ __forceinline__ void clear_labels() {
        searched.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            signed char role = g.role[v];
            int h = label_of(load(label + v));
            Units holds = role == ORDINARY ? held<MIRROR>(g, v) : 0;
            bool target = role == SINK || holds < 0;
            bool cut_off = h == CUT_OFF || (h == UNSEEN && exhausted);
            Label blank = settled(UNSEEN) | (holds > 0 ? ACTIVE : 0);
            store(label + v, role == AWAY ? settled(OUTSIDE) : target ? 0 : cut_off ? settled(CUT_OFF) : blank);
            if (target) searched.append_pieces(v, g.row_offsets[v], g.row_offsets[v + 1]);
        }
        turn_over(grid, searched, true, false);
    }

    // Exact labels up to the deepest of `wanted` active vertices; returns what an unseen label means.
    template <bool MIRROR> __device__ __forceinline__ int search(int wanted, int& depth) {
        clear_labels<MIRROR>();
        depth = reached = 0;
        run(searched, depth, UNSEEN, [&](const Team& team) {
            searched.clear_spare(team);
            searched.each_row(team, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
                search_row<MIRROR>(g, label, near ? *at : load(at), depth, searched, &shared.found);
            });
            turn_over(team, searched, false, false);
        }, [&] { return reached < wanted; });
        levels += depth;
        exhausted = reached < wanted;
        return exhausted ? CUT_OFF : depth + 1;
    }

    // The labels changed: write them into the entries of the active vertices.
    __device__ __forceinline__ void refresh(int unseen) {
        active.each_row(grid, threadIdx.x, THREADS, [&](Entry* at, bool near) {
            int v = near ? at->vertex : load(&at->vertex), h = meaning(label_of(load(label + v)), unseen);
            if (near) at->label = h;
            else store(&at->label, h);
        });
        for (int i = grid.rank; i < active.long_rows; i += grid.size) {
            Entry* at = active.lists.long_rows(active.now()) + i;
            store(&at->label, meaning(label_of(load(label + load(&at->vertex))), unseen));
        }
        gate.wait(shared.meeting);
    }

    template <bool MIRROR> __device__ __forceinline__ void round(const Team& team, int unseen) {
        active.clear_spare(team);
        bool cancelled = team.block == 0 && (active.step & POLL) == 0 && __ldcg(&control->cancel);
        Block block{shared.sums};
        for (int i = team.block; i < active.long_rows; i += team.blocks) {
            Entry e = load(active.lists.long_rows(active.now()) + i);
            discharge<MIRROR>(g, block, label, unseen, e, active, &work->dropped, tally);
        }
        Tile tile;
        active.each_row(team, threadIdx.x / TILE, THREADS / TILE, [&](const Entry* at, bool near) {
            discharge<MIRROR>(g, tile, label, unseen, near ? *at : load(at), active, &work->dropped, tally);
        });
        turn_over(team, active, true, cancelled);
    }

    // What the last search left unseen, and what was cut off before, moves to the other side.
    template <bool MIRROR> __device__ __forceinline__ void move_cut_off(bool* source_side) {
        Units gained = 0;
        for (int v = grid.rank; v < g.n; v += grid.size) {
            int h = label_of(load(label + v));
            if (g.role[v] == AWAY || (h != CUT_OFF && h != UNSEEN)) continue;
            source_side[v] = !MIRROR;
            gained -= held<MIRROR>(g, v);
        }
        gained = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), gained, cg::plus<Units>());
        if (threadIdx.x % 32 == 0 && gained != 0) add(&control->gained, gained);
    }

    template <bool MIRROR>
    __device__ __forceinline__ void drain(const signed char* role, bool* source_side, float patience, int round_limit) {
        active.clear_spare(grid);
        for (int v = grid.rank; v < g.n; v += grid.size) {
            signed char part = source_side[v] != MIRROR ? AWAY : role[v] != ORDINARY ? SINK : ORDINARY;
            g.role[v] = part;
            store(label + v, settled(UNSEEN));
            if (part != ORDINARY || held<MIRROR>(g, v) <= 0) continue;
            Entry e{v, g.row_offsets[v], g.row_offsets[v + 1], 0};
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
            refresh(unseen);
            int done = 0;
            run(active, done, max(16, (int)(patience * depth)), [&](const Team& team) { round<MIRROR>(team, unseen); },
                [&] { return !stop; });
            rounds += done;
        }
        if (cut_off && !stop) move_cut_off<MIRROR>(source_side);
        if (grid.rank == 0) {
            control->status = stop ? 1 : active.total > 0 ? 2 : 0;
            control->cut_off = cut_off;
            control->global_relabels += searches;
            control->rounds += rounds;
            control->levels += levels;
            control->grid_steps += grid_steps;
            control->cluster_steps += cluster_steps;
        }
        add(&control->pushes, tally.pushes);
        add(&control->relabels, tally.relabels);
        add(&control->arcs_scanned, tally.scanned);
    }
};

#define ARGUMENTS int n, const int* row_offsets, Arc* arcs, Units* excess, const signed char* role, bool* source_side,  \
    signed char* region, Label* label, Entry* rows_a, Entry* rows_b, Entry* active_a, Entry* active_b, Entry* long_a,  \
    Entry* long_b, Work* work, Control* control, float patience, int small, int round_limit
#define PASSED n, row_offsets, arcs, excess, role, source_side, region, label, rows_a, rows_b, active_a, active_b,     \
    long_a, long_b, work, control, patience, small, round_limit

template <bool MIRROR> __device__ void solve(ARGUMENTS) {
    __shared__ Shared shared;
    for (int i = threadIdx.x; i < sizeof(Shared) / 4; i += THREADS) ((int*)&shared)[i] = 0;
    __syncthreads();
    open_mail(shared.meeting);
    int rank = blockIdx.x * THREADS + threadIdx.x;
    Solve s{{n, row_offsets, arcs, excess, region}, label, work, control, shared,
            {shared.searched, {rows_a, rows_b, nullptr, nullptr, work->search_tails}},
            {shared.active, {active_a, active_b, long_a, long_b, work->active_tails}},
            {work->gates, 0}, 0,
            {rank, (int)gridDim.x * THREADS, (int)blockIdx.x, (int)gridDim.x, true},
            {rank, CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            blockIdx.x / CLUSTER == 0, small};
    s.drain<MIRROR>(role, source_side, patience, round_limit);
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

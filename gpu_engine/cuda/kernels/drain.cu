// Drain: push the excess of a region to its sinks and deficits. One persistent cooperative kernel, no host
// read-back; synchronous push-relabel with exact labels renewed by the work they save.
//
// Definitions. Arcs are bidirectional CSR. residual(a) + residual(reverse(a)) = pair_sum(a) never changes while the
// kernel runs, so a vertex's own row tells the residuals of both directions. An ordinary vertex with excess > 0 is
// active; a sink takes everything, a vertex with excess < 0 (a deficit) takes up to its size. Vertices outside the
// region carry the label OUTSIDE and are never touched. With MIRROR the roles of a residual and its reverse are
// exchanged and excesses are negated: the same kernel then fills deficits from excesses.
//
// Labels. h(v) is a lower bound on v's distance to a sink or deficit. Invariant (validity): for every residual arc
// (u, v) of the region h(u) <= h(v) + 1. A round has two phases with a barrier between them:
//   push     every active v sends to heads w with h(w) = h(v) - 1, in a prefix sum over its row, and notes the lowest
//            label over the arcs that stay residual. Labels are fixed, so (v, w) and (w, v) are never both pushed:
//            the residuals of a link have one writer. A push adds only the arc (w, v), and h(w) < h(v).
//   relabel  v with excess left has no admissible arc; it takes h(v) = 1 + lowest. Arcs that v gained in the push
//            phase lead to vertices u that pushed to v, h(u) = h(v) + 1; v's stamp tells that there are any.
//            Neighbours relabelled at the same time only went up, so h(v) <= h(w) + 1 holds for final labels too.
// (Goldberg-Tarjan 1988, section 4; the barrier replaces the steep-arc repair of Kannappan et al., Algorithm 3.)
//
// After as many rounds as `patience` times the depth of the last search, a backward breadth-first search from sinks
// and deficits makes the labels of all vertices up to the deepest active one exact; unreached vertices count as one
// level deeper (also a valid bound), or as cut off if the search was exhausted. What is cut off gets the label n + 1
// for good: nothing is pushed into it any more, so it stays closed. A vertex relabelled to n waits for such a search
// instead, because a search that stops early lowers the bounds of unreached vertices. Otherwise labels only grow between searches,
// exact distances never shrink (Kannappan et al., Lemma 3.1), and a round in which nothing is relabelled moves every
// excess down a level, so the rounds are O(n^2) in number; `round_limit` bounds them all the same.
//
// Latency is what a round costs: a chain of dependent L2 accesses of about 0.3 us each, and a barrier. So a frontier
// entry carries the row and label of its vertex, an arc is one 16-byte record, everything that can be loaded side by
// side is, and an update that nobody waits for is a reduction without a return value.
//
// Tiers. A step whose frontier is small runs on one cluster of blocks (a cheaper barrier); the other blocks wait at
// the grid barrier until a step outgrows it.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "arc.cuh"

namespace cg = cooperative_groups;

#ifndef TILE
#define TILE 8
#endif
#ifndef CLUSTER
#define CLUSTER 8       // 1 before compute capability 9.0: the leading team is then a single block
#endif
#ifndef THREADS
#define THREADS 512
#endif

constexpr int UNSEEN = 0x7fffffff;
constexpr int OUTSIDE = -2;
constexpr int NONE = -1;
constexpr int LONG_ROW = 128;   // rows from this length on are visited by a whole block
constexpr int PIECE = 128;      // longest stretch of a row that one tile visits in a search

struct __align__(16) Entry { int vertex, begin, end, label; };      // label: later the lowest label beyond the vertex

struct Control {            // shared with the host
    int cancel;
    int status;             // 0 done, 1 cancelled, 2 round limit
    int cut_off;            // some excess cannot reach any target: labels > n mark the region's closed set
    int pad;
    Units pushes, relabels, global_relabels, arcs_scanned, rounds, levels, grid_steps, cluster_steps;
};

struct Work {               // device only, zeroed by the host; what rotates does so by step
    int count[3];           // lengths of the frontiers
    int long_count[3];      // lengths of the frontiers of long rows
    int reached[3];         // active vertices that a search step has labelled
    int stop[3];            // the host wants the kernel to end
    int dropped;            // some excess was found to be cut off
    int mail[6];            // what the leading cluster tells the others
};

struct Graph {
    int n;
    const int* row_offsets; Arc* arcs; Units* excess; const signed char* role;
};

__device__ __forceinline__ Entry load(const Entry* p) {
    int4 x = __ldcg((const int4*)p);
    return {x.x, x.y, x.z, x.w};
}
__device__ __forceinline__ void store(Entry* p, Entry e) { __stcg((int4*)p, make_int4(e.vertex, e.begin, e.end, e.label)); }

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

// ---- teams and groups -----------------------------------------------------------------------------------------

struct Team {               // threads that work in step: the leading cluster or the whole grid
    int rank, size, block, blocks;
    bool whole;
};

__device__ __forceinline__ void wait(const Team& team) {
    if (team.whole) cg::this_grid().sync();
#if CLUSTER > 1
    else cg::this_cluster().sync();
#else
    else __syncthreads();
#endif
}

struct Tile {               // TILE neighbouring lanes
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

// Room for `pieces` consecutive entries; one atomic for the lanes that come together.
__device__ __forceinline__ int reserve(int* tail, int pieces) {
    cg::coalesced_group lanes = cg::coalesced_threads();
    int before = cg::exclusive_scan(lanes, pieces), base = 0;
    if (lanes.thread_rank() == lanes.size() - 1) base = atomicAdd(tail, before + pieces);
    return lanes.shfl(base, lanes.size() - 1) + before;
}
__device__ __forceinline__ int reserve_one(int* tail) {
    cg::coalesced_group lanes = cg::coalesced_threads();
    int base = 0;
    if (lanes.thread_rank() == 0) base = atomicAdd(tail, lanes.size());
    return lanes.shfl(base, 0) + lanes.thread_rank();
}

// ---- global relabel -------------------------------------------------------------------------------------------

__device__ __forceinline__ void append_pieces(Entry* queue, int* tail, int v, int begin, int end) {
    if (end - begin <= PIECE) {
        if (end > begin) store(queue + reserve_one(tail), {v, begin, end, 0});
        return;
    }
    int pieces = (end - begin + PIECE - 1) / PIECE;
    int slot = atomicAdd(tail, pieces);
    for (int i = 0; i < pieces; i++)
        store(queue + slot + i, {v, begin + i * PIECE, min(begin + (i + 1) * PIECE, end), 0});
}

template <bool MIRROR>
__device__ void clear_labels(const Graph& g, const Team& team, bool exhausted, int* label, Entry* queue, int* tail) {
    for (int v = team.rank; v < g.n; v += team.size) {
        signed char role = g.role[v];
        int h = load(label + v);
        bool target = role == SINK || (role == ORDINARY && held<MIRROR>(g, v) < 0);
        bool cut_off = h == g.n + 1 || (h == UNSEEN && exhausted);
        store(label + v, role == AWAY ? OUTSIDE : target ? 0 : cut_off ? g.n + 1 : UNSEEN);
        if (target) append_pieces(queue, tail, v, g.row_offsets[v], g.row_offsets[v + 1]);
    }
}

template <bool MIRROR>
__device__ void search_level(const Graph& g, const Team& team, int* label, const Entry* frontier, int count, Entry* next,
                             int* tail, int level, int* reached) {
    int lane = threadIdx.x % TILE;
    for (int i = team.rank / TILE; i < count; i += team.size / TILE) {
        Entry row = load(frontier + i);
        for (int a = row.begin + lane; a < row.end; a += TILE) {
            Arc arc = load(g.arcs + a);
            if (backward<MIRROR>(arc) <= 0) continue;
            int w = arc.head;
            int begin = __ldg(g.row_offsets + w), end = __ldg(g.row_offsets + w + 1);
            Units holds = held<MIRROR>(g, w);
            if (atomicCAS(label + w, UNSEEN, level + 1) != UNSEEN) continue;
            append_pieces(next, tail, w, begin, end);
            if (holds > 0) atomicAdd(reached, 1);
        }
    }
}

// ---- rounds ---------------------------------------------------------------------------------------------------

__device__ __forceinline__ int meaning(int label, int unseen) { return label == UNSEEN ? unseen : label; }

struct Frontier {           // active vertices, those with long rows apart
    Entry* rows; Entry* long_rows;
    int* tail; int* long_tail;
    __device__ __forceinline__ void append(Entry e) const {
        if (e.end - e.begin < LONG_ROW) store(rows + reserve_one(tail), e);
        else store(long_rows + reserve_one(long_tail), e);
    }
};

struct Tally { Units pushes, relabels, scanned; };

// Stamps: 2 * step of a vertex in the frontier of this step, + 1 once something has been pushed to it in this step.

// Push phase of one vertex. Leaves in the entry the lowest label beyond the arcs that stay residual, or NONE if all
// of the excess could go.
template <bool MIRROR, class Group>
__device__ void push_row(const Graph& g, const Group& group, const int* label, int unseen, Entry* at, int* stamp, int step, const Frontier& next, Tally& tally) {
    Entry e = load(at);
    int own = e.label, lowest = UNSEEN - 1;
    Units left = group.same(held<MIRROR>(g, e.vertex)), given = 0;     // others may add to it meanwhile
    for (int base = e.begin; base < e.end && left > 0; base += Group::size()) {
        int a = base + group.rank();
        Arc arc{0, 0, 0, 0};
        int far = OUTSIDE;
        if (a < e.end) {
            arc = load(g.arcs + a);
            if (forward<MIRROR>(arc) > 0) far = meaning(load(label + arc.head), unseen);
        }
        Units room = far == own - 1 ? (Units)forward<MIRROR>(arc) : 0, total;
        Units through = group.scan(room, total);
        Units amount = min(room, max(left - (through - room), (Units)0));
        if (far != OUTSIDE && forward<MIRROR>(arc) > amount) lowest = min(lowest, far);
        if (amount > 0) {
            int w = arc.head;
            int begin = __ldg(g.row_offsets + w), end = __ldg(g.row_offsets + w + 1), seen = load(stamp + w);
            signed char role = g.role[w];
            Units old = give<MIRROR>(g, w, amount);
            Capacity moved = (Capacity)(MIRROR ? -amount : amount);
            __stcg(&g.arcs[a].residual, (Capacity)(arc.residual - moved));
            add(&g.arcs[arc.reverse].residual, moved);
            if (seen >> 1 == step) {
                store(stamp + w, 2 * step + 1);
            } else if (old <= 0 && old + amount > 0 && role == ORDINARY) {
                store(stamp + w, 2 * (step + 1));
                next.append({w, begin, end, own - 1});
            }
            tally.pushes++;
        }
        Units sent = min(left, total);
        left -= sent;
        given += sent;
    }
    if (left > 0) lowest = group.lowest(lowest);
    if (group.rank() == 0) {
        if (given > 0) give<MIRROR>(g, e.vertex, -given);
        store(&at->label, left > 0 ? lowest : NONE);
        store(&at->begin, own);
        tally.scanned += e.end - e.begin;
    }
}

// Relabel phase of one vertex, one thread. The entry holds {vertex, own label, end, lowest label or NONE}.
template <bool MIRROR>
__device__ __forceinline__ void relabel_vertex(const Graph& g, int* label, const Entry* at, int* stamp,
                                               int step, int* dropped, const Frontier& next, Tally& tally) {
    Entry e = load(at);
    int own = e.begin, h = own, lowest = e.label, begin = __ldg(g.row_offsets + e.vertex);
    int seen = load(stamp + e.vertex);
    if (held<MIRROR>(g, e.vertex) <= 0) return;
    if (own > g.n) {            // an exhausted search did not see it
        *dropped = 1;
        return;
    }
    if (lowest != NONE) {
        h = min(seen & 1 ? min(lowest, own + 1) : lowest, g.n - 1) + 1;
        store(label + e.vertex, h);
        tally.relabels++;
    }
    store(stamp + e.vertex, 2 * (step + 1));
    next.append({e.vertex, begin, e.end, h});
}

// ---- the solve ------------------------------------------------------------------------------------------------

struct Solve {
    Graph g;
    int* label; int* stamp;
    Entry* rows[2]; Entry* active[2]; Entry* long_active[2];
    Work* work; Control* control;
    Team grid, cluster;
    Block block;
    bool leads;
    int small;              // frontiers up to this size go to the leading cluster
    int step, reached;
    bool stop, exhausted;
    Tally tally;
    Units levels, rounds, grid_steps, cluster_steps;

    __device__ Frontier next() {
        int turn = (step + 1) % 3, side = (step + 1) & 1;
        return {active[side], long_active[side], work->count + turn, work->long_count + turn};
    }
    __device__ void clear_spare(const Team& team) {
        if (team.rank != 0) return;
        int turn = (step + 2) % 3;
        store(work->count + turn, 0), store(work->long_count + turn, 0);
        store(work->reached + turn, 0), store(work->stop + turn, 0);
    }
    // After the barrier that ends a step: what the step found. Nobody writes there until two steps later.
    __device__ void turn_over(int& count, int& long_count) {
        int turn = (step + 1) % 3;
        count = load(work->count + turn);
        long_count = load(work->long_count + turn);
        reached += load(work->reached + turn);
        stop = stop || load(work->stop + turn);
        step++;
    }

    // Repeat `one_step(team, count, long_count)`, which ends with a barrier, while `on()` holds, the frontier is not
    // empty and `advance` is below `limit`. All of the state is the same in every thread of the grid afterwards.
    template <class Step, class On>
    __device__ void run(int& count, int& long_count, int& advance, int limit, Step one_step, On on) {
        while (count + long_count > 0 && advance < limit && on()) {
            if (count > small || long_count > CLUSTER) {
                one_step(grid, count, long_count);
                turn_over(count, long_count);
                advance++, grid_steps++;
                continue;
            }
            if (leads) {
                while (count + long_count > 0 && advance < limit && on() && count / 2 <= small && long_count <= 4 * CLUSTER) {
                    one_step(cluster, count, long_count);
                    turn_over(count, long_count);
                    advance++, cluster_steps++;
                }
                if (cluster.rank == 0) {
                    int mail[6] = {step, advance, count, long_count, reached, stop};
                    for (int i = 0; i < 6; i++) store(work->mail + i, mail[i]);
                }
            }
            wait(grid);
            step = load(work->mail + 0), advance = load(work->mail + 1), count = load(work->mail + 2);
            long_count = load(work->mail + 3), reached = load(work->mail + 4), stop = load(work->mail + 5);
            wait(grid);     // the mail is read before it is written again
        }
    }

    // Exact labels up to the deepest of `wanted` active vertices; returns what an unseen label means.
    template <bool MIRROR> __device__ int search(int wanted, int& depth) {
        int count, none;
        clear_spare(grid);
        clear_labels<MIRROR>(g, grid, exhausted, label, rows[(step + 1) & 1], work->count + (step + 1) % 3);
        wait(grid);
        turn_over(count, none);
        depth = reached = 0;
        run(count, none, depth, UNSEEN, [&](const Team& team, int frontier, int) {
            clear_spare(team);
            search_level<MIRROR>(g, team, label, rows[step & 1], frontier, rows[(step + 1) & 1],
                                 work->count + (step + 1) % 3, depth, work->reached + (step + 1) % 3);
            wait(team);
        }, [&] { return reached < wanted; });
        levels += depth;
        exhausted = reached < wanted;
        return exhausted ? g.n + 1 : depth + 1;
    }

    // The labels changed: write them into the entries, drop who is cut off for good.
    __device__ void refresh(int count, int long_count, int unseen) {
        for (int i = grid.rank; i < count + long_count; i += grid.size) {
            Entry* at = i < count ? active[step & 1] + i : long_active[step & 1] + (i - count);
            int v = load(&at->vertex);
            store(&at->label, meaning(load(label + v), unseen));
            store(stamp + v, 2 * step);
        }
        wait(grid);
    }

    template <bool MIRROR> __device__ void round(const Team& team, int count, int long_count, int unseen) {
        clear_spare(team);
        if (team.rank == 0 && __ldcg(&control->cancel)) store(work->stop + (step + 1) % 3, 1);
        Entry* rows = active[step & 1];
        Entry* long_rows = long_active[step & 1];
        Frontier out = next();
        for (int i = team.block; i < long_count; i += team.blocks)
            push_row<MIRROR>(g, block, label, unseen, long_rows + i, stamp, step, out, tally);
        Tile tile;
        for (int i = team.rank / TILE; i < count; i += team.size / TILE)
            push_row<MIRROR>(g, tile, label, unseen, rows + i, stamp, step, out, tally);
        wait(team);
        for (int i = team.rank; i < count; i += team.size)
            relabel_vertex<MIRROR>(g, label, rows + i, stamp, step, &work->dropped, out, tally);
        for (int i = team.rank; i < long_count; i += team.size)
            relabel_vertex<MIRROR>(g, label, long_rows + i, stamp, step, &work->dropped, out, tally);
        wait(team);
    }

    template <bool MIRROR> __device__ void drain(float patience, int round_limit) {
        clear_spare(grid);
        Frontier first = next();
        for (int v = grid.rank; v < g.n; v += grid.size) {
            bool active = g.role[v] == ORDINARY && held<MIRROR>(g, v) > 0;
            store(stamp + v, active ? 2 * (step + 1) : 0);
            store(label + v, UNSEEN);
            if (active) first.append({v, g.row_offsets[v], g.row_offsets[v + 1], 0});
        }
        wait(grid);
        int count, long_count, searches = 0, depth;
        turn_over(count, long_count);
        while (count + long_count > 0 && rounds < round_limit && !stop) {
            int parity = step & 1;
            int unseen = search<MIRROR>(count + long_count, depth);
            searches++;
            if ((step & 1) != parity) {     // keep the active list in the buffer that the rotation expects
                Entry* swap = active[0];
                active[0] = active[1], active[1] = swap;
                swap = long_active[0];
                long_active[0] = long_active[1], long_active[1] = swap;
            }
            refresh(count, long_count, unseen);
            int done = 0;
            run(count, long_count, done, max(16, (int)(patience * depth)),
                [&](const Team& team, int rows, int long_rows) { round<MIRROR>(team, rows, long_rows, unseen); },
                [&] { return !stop; });
            rounds += done;
        }
        bool cut_off = load(&work->dropped);
        if (cut_off && !stop) search<MIRROR>(UNSEEN, depth);    // what stays unseen is cut off
        if (grid.rank == 0) {
            control->status = stop ? 1 : count + long_count > 0 ? 2 : 0;
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

#define ARGUMENTS int n, const int* row_offsets, Arc* arcs, Units* excess, const signed char* role, int* label,       \
    int* stamp, Entry* rows_a, Entry* rows_b, Entry* active_a, Entry* active_b, Entry* long_a,            \
    Entry* long_b, Work* work, Control* control, float patience, int small, int round_limit
#define PASSED n, row_offsets, arcs, excess, role, label, stamp, rows_a, rows_b, active_a, active_b, long_a,     \
    long_b, work, control, patience, small, round_limit

template <bool MIRROR> __device__ void solve(ARGUMENTS) {
    __shared__ Units sums[THREADS / 32];
    cg::grid_group grid = cg::this_grid();
    Solve s{{n, row_offsets, arcs, excess, role},
            label, stamp, {rows_a, rows_b}, {active_a, active_b}, {long_a, long_b}, work, control,
            {(int)grid.thread_rank(), (int)grid.size(), (int)blockIdx.x, (int)gridDim.x, true},
            {(int)(blockIdx.x * THREADS + threadIdx.x), CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            {sums}, blockIdx.x / CLUSTER == 0, small};
    s.drain<MIRROR>(patience, round_limit);
}

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS) drain_forward(ARGUMENTS) { solve<false>(PASSED); }
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS) drain_mirrored(ARGUMENTS) { solve<true>(PASSED); }

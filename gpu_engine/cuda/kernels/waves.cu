// Waves: what drain.cu does for T, where the global relabels run beside the rounds and never stop. A deep network takes
// hundreds of levels for each search, and in drain.cu nothing is pushed meanwhile; here half of each block searches while
// the other half discharges. Eight threads visit a row, however long it is.
//
// (The concurrent global relabels of Anderson and Setubal, "A parallel implementation of the push-relabel algorithm for
// the maximum flow problem", J. Parallel and Distributed Computing 29, 1995, in synchronous steps. Vertex, arc, excess,
// push and relabel are those of drain.cu.)
//
// Steps. In a step the search goes on by WAVE_STRIDES levels, each block with what it finds itself, and every active vertex
// is discharged once. One barrier ends both. The searches, one after the other, are the waves 1, 2, ... The last wave that
// has reached a vertex, and at which level, is its `mark`. A wave ends when all active vertices are reached, or when
// nothing is left to visit: whoever that wave has not reached is cut off then, for good.
//
// Bounds. A vertex has a lower bound on its distance to a sink or deficit, from its own label, its mark, and how far the
// wave in flight has come, whose next level is `low`:
//   seen by the wave   max(label, level of the mark);
//   not yet            max(label, level of the mark, `low`, the last levels of the waves since then).
// Bounds are valid (b(u) <= b(v) + 1 for every residual arc (u, v)) and only grow. A push goes from u to v if
// b(u) = b(v) + 1, a relabel gives 1 + the lowest bound over the residual arcs, both by the bounds of the step's beginning.
// A label word tells them apart as in drain.cu. A mark does not: who is reached in this very step is `fresh`, of which
// only max(label, low) is known, so nobody pushes to it.
// The search reads residuals while they change. A push from u to v opens the arc (v, u). If the wave has visited u
// already, or does so in this step, and has not reached v, it would miss v. So whoever the wave has seen, or may visit in
// this step (its bound is below `passing`), pushes only to vertices that the wave has seen before.
//
// Late rows. A block that has no space for what it finds in a stride shares it, and it is visited in a later step, when
// the wave is further. `low` is then the level that the rows furthest behind assign; what lies beyond counts as fresh.
// If the strides of a step find more rows than the shared lists hold, the wave ends with that step, whose beginning `low`
// then still tells, and those after it have steps of one level.

#include "arguments.cuh"

constexpr int WAVE_STRIDES = 3, LAST_WAVE_STRIDES = 9;  // levels in a step, odd numbers
constexpr int LEAST_KEPT = 8;
constexpr int HALF = THREADS / 2;
constexpr int LEVELS = 1 << LEVEL_BITS;
constexpr int MOST_WAVES = 255;  // in one launch
constexpr int POLL = 15;         // the host's cancel flag is read every POLL + 1 steps

// ---- the barrier ----------------------------------------------------------------------------------------------

// What the blocks found in a step, in two words that are added up. Each has the arrivals, so that both are complete
// when one load has seen all of them in both. At most 255 blocks.
struct WaveSummary {
    Word found;    // bits 0-7 arrivals, 8-21 rows to search that blocks keep, 22-35 active ones, 36-43 blocks that have
                   // active vertices which the wave has not seen, 63 stop (at most one block says so)
    Word spilled;  // bits 0-7 arrivals, 8-15 blocks with late rows, 16-40 rows to search in the lists, 41-63 active ones
    __device__ __forceinline__ bool complete(int blocks) const {
        return (int)(found & 255) >= blocks && (int)(spilled & 255) >= blocks;
    }
    __device__ __forceinline__ int kept_to_search() const { return found >> 8 & 0x3fff; }
    __device__ __forceinline__ int kept_active() const { return found >> 22 & 0x3fff; }
    __device__ __forceinline__ bool waiting() const { return found >> 36 & 255; }
    __device__ __forceinline__ bool stop() const { return found >> 63; }
    __device__ __forceinline__ bool late() const { return spilled >> 8 & 255; }
    __device__ __forceinline__ int to_search() const { return spilled >> 16 & 0x1ffffff; }
    __device__ __forceinline__ int active() const { return spilled >> 41; }
};
constexpr WaveSummary ARRIVED = {1, 1};

struct WaveMemory {  // device only, zeroed by the host
    WaveSummary barrier_words[2];
    int search_tails[9], active_tails[9];
    int n_targets;
    int dropped;                // some excess was found to be cut off
    int broadcast[2][16];       // the leading cluster's state, for the other blocks
    int after[MOST_WAVES + 1];  // as in `WaveShared`
};
static_assert(sizeof(WaveMemory) <= WAVE_MEMORY_BYTES, "the host gives waves too little memory");

struct WaveArguments {
    DrainArguments drain;
    int *marks, *targets;  // space for n each
};
SAME_SIZE(WaveArguments);
SAME_PLACE(WaveArguments, drain);
SAME_PLACE(WaveArguments, marks);
SAME_PLACE(WaveArguments, targets);

struct WaveShared {
    BarrierMemoryOf<WaveSummary> barrier_memory;
    WaveSummary before[2];  // the words of the grid barrier, as the last barrier of each left them
    BlockQueue<MANY> searched;
    BlockQueue<SOME> active;
    int after[MOST_WAVES + 1];  // the highest of the last levels of the waves after this one
    int waiting;                // the block has active vertices that the wave has not seen
    int hot_sink;
};

// How many entries a block keeps at the end of a step with so many. About the mean: what blocks find is uneven (a search's
// front stays with the few blocks that have it), and all wait for the one that has most.
__device__ __forceinline__ int most_kept(const ThreadGroup& threads, int total) {
    return threads.whole ? min(KEPT_ENTRIES, max(LEAST_KEPT, total / threads.blocks)) : KEPT_ENTRIES;
}

// What a block does not keep of a frontier goes to the shared lists, by `count` threads from `first` on.
template <int CAPACITY>
__device__ __forceinline__ void spill(const Frontier<CAPACITY>& f, int keep, int first, int count) {
    BlockQueue<CAPACITY>& queue = f.queue;
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + (first > 0)), "r"(count) : "memory");
    int spilled = min(queue.count[f.now() ^ 1], CAPACITY) - keep;
    if (spilled <= 0) return;
    if (threadIdx.x == first) queue.base = atomicAdd(f.lists.tails + (f.step + 1) % 3, spilled);
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + (first > 0)), "r"(count) : "memory");
    for (int i = threadIdx.x - first; i < spilled; i += count) f.share(queue.base + i, queue.rows[f.now() ^ 1][keep + i]);
}

struct BlockShare {
    int kept, rows;
    bool late;
};

// The block's share of a frontier in the next step. By one thread, once all of the block is through with `spill`.
template <int CAPACITY> __device__ __forceinline__ BlockShare share_of(const Frontier<CAPACITY>& f, int keep) {
    BlockQueue<CAPACITY>& queue = f.queue;
    int next = queue.count[f.now() ^ 1];
    BlockShare own{min(next, keep), queue.pieces + max(next - keep, 0), queue.long_rows > 0};
    queue.count[f.now()] = queue.pieces = queue.long_rows = 0;
    queue.count[f.now() ^ 1] = own.kept;
    return own;
}

// ---- the waves ------------------------------------------------------------------------------------------------

enum Meeting { SEEN, FRESH, UNMET, CUT };
struct Bound {
    int label;
    Meeting meeting;
};

struct Waves {
    Graph g;
    int* marks;
    int* targets;
    WaveMemory* memory;
    DrainProgress* progress;
    WaveShared& shared;
    Searched searched;
    Active active;
    ThreadGroup grid, cluster;
    bool leads;
    int small;  // frontiers up to this size, both together, go to the leading cluster
    int phase, cluster_phase;
    int wave, low, passing;
    int front;     // the next level of the rows that are furthest
    int cut_wave;  // the last wave that was exhausted: whom it has not reached is cut off
    bool seeding;  // the next step begins a wave
    bool late;     // the wave has met late rows
    bool single;   // no more strides: they found more than the lists hold
    bool waiting, stop;
    bool finishing;  // nothing is active, and the last wave goes on until it is exhausted
    ThreadCounters counters;
    int steps, cluster_steps, levels;

    __device__ __forceinline__ int mark_now(int v) const {
        int x;
        asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(x) : "l"(marks + v));
        return x;
    }
    __device__ __forceinline__ int mark_of(int level) const { return (MOST_WAVES - wave) << LEVEL_BITS | level; }

    __device__ __forceinline__ Bound bound(int label, int mark) const {
        int met = MOST_WAVES - (mark >> LEVEL_BITS), level = mark & (LEVELS - 1);
        if (met == wave) return level < low ? Bound{max(label, level), SEEN} : Bound{max(label, low), FRESH};
        if (met < cut_wave) return {CUT_OFF, CUT};
        return {max(max(label, level), max(shared.after[met], low)), UNMET};
    }

    // ---- search

    __device__ __forceinline__ void reach(int w, const Vertex& there, int level) const {
        int mark = mark_of(level + 1);
        if (atomicMin(marks + w, mark) <= mark) return;
        prefetch(g.arcs + there.begin, there.length());
        searched.append_pieces(w, there.begin, there.end(), level + 1);
    }
    __device__ __forceinline__ void search_row_in_wave(Entry row) const {
        for (int a = row.begin + threadIdx.x % TILE; a < row.end; a += TILE) {
            Arc arc = load_now(g.arcs + a);
            if (backward<false>(arc) > 0) reach(arc.head, load_now(g.vertices + arc.head), row.label);
        }
    }
    __device__ __forceinline__ void seed(const ThreadGroup& threads) const {
        int n_targets = load(&memory->n_targets);
        for (int i = threads.block * HALF + threadIdx.x; i < n_targets; i += threads.blocks * HALF) {
            int v = load(targets + i);
            Vertex own = load(g.vertices + v);
            if (!own.sink() && excess_of<false>(g, v) >= 0) continue;  // a deficit that is filled
            store(marks + v, mark_of(0));
            searched.append_pieces(v, own.begin, own.end(), 0);
        }
    }
    // The first half of the block goes on with the search by so many levels, or begins a wave.
    __device__ __forceinline__ void search_step(const ThreadGroup& threads, int strides) {
        auto visit = [&] {
            searched.each_row(threads, threadIdx.x / TILE, HALF / TILE,
                              [&](const Entry* at, bool near) { search_row_in_wave(near ? *at : load(at)); });
        };
        if (seeding) seed(threads);
        else {
            searched.striding = true;
            for (int i = 1; i < strides; i++) {
                visit();
                asm volatile("barrier.sync 1, %0;" ::"n"(HALF) : "memory");
                if (threadIdx.x == 0) searched.queue.count[searched.kept_now()] = 0;
                searched.strides++;
                asm volatile("barrier.sync 1, %0;" ::"n"(HALF) : "memory");
            }
            searched.striding = false;
            visit();
        }
        spill(searched, most_kept(threads, searched.total), 0, HALF);
    }

    // ---- rounds

    // `label` is that of the head.
    __device__ __forceinline__ void push_in_wave(int a, const Arc& arc, const Vertex& there, Units amount, int label) {
        Capacity moved = (Capacity)amount;
        __stcg(&g.arcs[a].residual, (Capacity)(arc.residual - moved));
        add(&g.arcs[arc.reverse].residual, moved);
        counters.pushes++;
        int* hot_sink = &shared.hot_sink;
        if (there.sink() && (*hot_sink == arc.head || atomicCAS(hot_sink, NO_VERTEX, arc.head) == NO_VERTEX)) {
            counters.into_hot_sink += amount;
            return;
        }
        Units old = add_excess<false>(g, arc.head, amount);
        if (old > 0 || old + amount <= 0 || there.sink()) return;
        active.append({arc.head, there.begin, there.end(), label});
    }

    // Push the excess of e.vertex, relabel it if some is left. `e.label` is its own label.
    __device__ __forceinline__ void discharge_in_wave(const Tile& tile, Entry e) {
        int lowest = UNSEEN - 1, round = active.step;
        Slice<Tile> slice(g, tile, e.begin, e.end);
        int mark = tile.lanes.shfl(mark_now(e.vertex), 0);  // the search may change it: one lane reads for all
        Units left = tile.broadcast(excess_of<false>(g, e.vertex)), rest = 1;  // others may add to it meanwhile
        Bound own = bound(e.label, mark);
        if (own.meeting == CUT) {
            if (tile.rank() == 0) memory->dropped = 1;
            return;
        }
        if (own.meeting != SEEN && tile.rank() == 0) shared.waiting = 1;
        if (mark >> LEVEL_BITS == MOST_WAVES) {  // no wave has come yet
            if (tile.rank() == 0) active.append(e);
            return;
        }
        bool only_to_seen = own.meeting != UNMET || own.label < passing;
        for (int base = e.begin; base < e.end && left > 0;) {
            const Arc arc = slice.arc[0];
            bool given = slice.at(0) < e.end;
            Vertex there = given ? load_now(g.vertices + arc.head) : Vertex{settled(OUTSIDE), 0, 0};
            int far_mark = given ? mark_now(arc.head) : 0;
            int label = label_at_begin(there.label, round);
            Bound far{OUTSIDE, CUT};
            if (label != OUTSIDE) far = there.sink() ? Bound{0, SEEN} : bound(label, far_mark);
            bool open = far.meeting == SEEN || (far.meeting == UNMET && !only_to_seen);
            Units pushable = open && far.label == own.label - 1 ? (Units)forward<false>(arc) : 0, total;
            Units through = tile.scan(pushable, total), sent = min(left, total);
            if (tile.rank() == 0 && sent > 0) rest = add_excess<false>(g, e.vertex, -sent) - sent;
            Units amount = min(pushable, max(left - (through - pushable), (Units)0));
            bool gained = backward<false>(arc) > 0 && (far.label > own.label || far.meeting == FRESH);  // perhaps
            if (far.label >= 0 && (forward<false>(arc) > amount || gained)) lowest = min(lowest, far.label);
            if (amount > 0) push_in_wave(slice.at(0), arc, there, amount, label);
            left -= sent;
            base += Tile::size();
            if (base < e.end && left > 0) slice = Slice<Tile>(g, tile, base, e.end);
        }
        if (left > 0) lowest = tile.reduce_min(lowest);
        if (tile.rank() != 0) return;
        counters.scanned += e.end - e.begin;
        int raised = min(lowest, g.n - 1) + 1;
        if (left > 0 && raised > own.label) {
            store(&g.vertices[e.vertex].label, changed(e.label, raised, round));
            e.label = raised;
            counters.relabels++;
        } else {
            store(&g.vertices[e.vertex].label, settled(e.label));
            if (left <= 0 && rest <= 0) return;
        }
        active.append(e);
    }
    // The second half of the block discharges its share of the active vertices.
    __device__ __forceinline__ void round(const ThreadGroup& threads) {
        Tile tile;
        active.each_row(threads, (threadIdx.x - HALF) / TILE, HALF / TILE,
                        [&](const Entry* at, bool near) { discharge_in_wave(tile, near ? *at : load(at)); });
        spill(active, most_kept(threads, active.total), HALF, HALF);
    }

    // ---- steps

    // The barrier of all blocks. `own` counts in thread 0; the sum is in the barrier's memory.
    __device__ __forceinline__ void reduce(WaveSummary own) {
        if (threadIdx.x == 0) {
            WaveSummary *at = memory->barrier_words + (phase & 1), before = shared.before[phase & 1], seen, all;
            fence();
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(&at->found), "l"(own.found) : "memory");
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(&at->spilled), "l"(own.spilled) : "memory");
            do {
                asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                             : "=l"(seen.found), "=l"(seen.spilled)
                             : "l"(at)
                             : "memory");
                all = {seen.found - before.found, seen.spilled - before.spilled};
            } while (!all.complete(gridDim.x));
            shared.before[phase & 1] = seen;
            shared.barrier_memory.sum = all;
        }
        __syncthreads();
        phase++;
    }
    // End the step; `cancelled` counts in thread 0.
    __device__ __forceinline__ void end_step(const ThreadGroup& threads, bool cancelled) {
        __syncthreads();
        int kept_searched = most_kept(threads, searched.total);
        int kept_active = most_kept(threads, active.total);
        WaveSummary own = ARRIVED;
        if (threadIdx.x == 0) {
            BlockShare s = share_of(searched, kept_searched), a = share_of(active, kept_active);
            own.found |= (Word)s.kept << 8 | (Word)a.kept << 22 | (Word)shared.waiting << 36 | (Word)cancelled << 63;
            own.spilled |= (Word)s.late << 8 | (Word)s.rows << 16 | (Word)a.rows << 41;
            shared.waiting = 0;
        }
        searched.step++, active.step++;
        searched.strides = 0;
        if (threads.whole) reduce(own);
        else {
            if (threadIdx.x < 32) {
                own.found = __shfl_sync(~0u, own.found, 0), own.spilled = __shfl_sync(~0u, own.spilled, 0);
            }
            WaveSummary sum = reduce_in_cluster(shared.barrier_memory, own, true, cluster_phase);
            if (threadIdx.x == 0) shared.barrier_memory.sum = sum;
            __syncthreads();
        }
        WaveSummary all = shared.barrier_memory.sum;
        __syncthreads();
        searched.rows = all.to_search(), searched.long_rows = all.late(), active.rows = all.active();
        searched.total = all.kept_to_search() + searched.rows;
        active.total = all.kept_active() + active.rows;
        waiting = all.waiting();
        stop = stop || all.stop();
    }

    __device__ __forceinline__ void forget_frontier() {
        if (threadIdx.x == 0) searched.queue.count[searched.now()] = 0;
        searched.rows = searched.long_rows = searched.total = 0;
        __syncthreads();
    }

    __device__ __forceinline__ void step(const ThreadGroup& threads) {
        if (threads.rank == 0)  // nobody reads these lengths in this step, or adds to them
            for (int i = 0; i < 9; i += 3) {
                store(searched.lists.tails + i + (searched.step + 2) % 3, 0);
                store(active.lists.tails + i + (active.step + 2) % 3, 0);
            }
        bool wide = searched.total > KEPT_ENTRIES * threads.blocks;
        int strides = late || wide || single ? 1 : finishing ? LAST_WAVE_STRIDES : WAVE_STRIDES;
        if (seeding) {
            wave++;
            low = front = passing = 0, late = false;
        } else passing = front + strides - 1;
        if (threadIdx.x < HALF) search_step(threads, strides);
        else round(threads);
        end_step(threads, threadIdx.x == 0 && threads.block == 0 && (steps & POLL) == 0 && __ldcg(&progress->cancel));
        steps++;
        bool overflown = searched.overflown(), exhausted = searched.total == 0;
        if (overflown) single = true;  // the wave ends; `low` is still that of the step's beginning
        else if (seeding) {
            low = front = 1;
            seeding = false;
        } else {
            front += strides;
            late = late || searched.long_rows > 0;
            low += late ? 1 : strides;
        }
        if (!overflown && !exhausted && (waiting || finishing)) return;
        levels += front;
        seeding = true;
        if (exhausted) cut_wave = wave;
        else {
            for (int w = threadIdx.x; w < wave; w += THREADS) {
                shared.after[w] = max(shared.after[w], low);
                if (threads.block == 0) store(memory->after + w, shared.after[w]);
            }
            forget_frontier();
        }
        publish();
    }

    // The entries that the other blocks keep go to the shared list, so that the leading cluster can go on alone.
    template <int CAPACITY> __device__ __forceinline__ void hand_over(const Frontier<CAPACITY>& f) {
        BlockQueue<CAPACITY>& queue = f.queue;
        int mine = f.here();
        if (leads || mine == 0) return;
        if (threadIdx.x == 0) queue.base = f.rows + atomicAdd(f.lists.tails + 6 + f.step % 3, mine);
        __syncthreads();
        for (int i = threadIdx.x; i < mine; i += THREADS)
            store(f.lists.rows(f.now()) + queue.base + i, queue.rows[f.now()][i]);
        __syncthreads();
        if (threadIdx.x == 0) queue.count[f.now()] = 0;
    }

    __device__ __forceinline__ bool goes_on(int step_limit) const {
        return active.total > 0 && !stop && steps < step_limit &&
               !(seeding && wave == MOST_WAVES - 2);  // the others are for `finishing`
    }

    // Steps until nothing is active, by all blocks or by the leading cluster. Afterwards all blocks know the same.
    __device__ __forceinline__ void run(int step_limit) {
        while (goes_on(step_limit)) {
            if (searched.total + active.total > small) {
                step(grid);
                continue;
            }
            hand_over(searched);
            hand_over(active);
            __syncthreads();
            reduce(ARRIVED);
            searched.rows += load(searched.lists.tails + 6 + searched.step % 3);
            active.rows += load(active.lists.tails + 6 + active.step % 3);
            int* shown = memory->broadcast[phase & 1];
            int* known[] = {&searched.step, &searched.total, &searched.rows, &searched.long_rows,
                            &active.step,   &active.total,   &active.rows,   &wave,
                            &low,           &front,          &cut_wave,      &steps,
                            &levels};
            constexpr int KNOWN = sizeof(known) / sizeof(*known);
            static_assert(KNOWN + 1 <= 16, "the broadcast has too little space");
            if (leads) {
                do {
                    step(cluster);
                    cluster_steps++;
                } while (goes_on(step_limit) && searched.total + active.total <= 2 * small);
                if (cluster.rank == 0) {
#pragma unroll
                    for (int i = 0; i < KNOWN; i++) store(shown + i, *known[i]);
                    store(shown + KNOWN, late | seeding << 1 | waiting << 2 | stop << 3 | single << 4);
                }
            }
            __syncthreads();
            reduce(ARRIVED);
#pragma unroll
            for (int i = 0; i < KNOWN; i++) *known[i] = load(shown + i);
            int flags = load(shown + KNOWN);
            late = flags & 1, seeding = flags >> 1 & 1, waiting = flags >> 2 & 1, stop = flags >> 3 & 1,
            single = flags >> 4 & 1;
            for (int w = threadIdx.x; w <= MOST_WAVES; w += THREADS) shared.after[w] = load(memory->after + w);
            __syncthreads();
        }
    }

    // Add the counters since the last call to the progress record, where the host can see them.
    __device__ __forceinline__ void publish() {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        Units sums[3] = {counters.pushes, counters.relabels, counters.scanned};
        Units* to[3] = {&progress->pushes, &progress->relabels, &progress->arcs_scanned};
        for (int i = 0; i < 3; i++) {
            Units sum = cg::reduce(warp, sums[i], cg::plus<Units>());
            if (warp.thread_rank() == 0 && sum != 0) add(to[i], sum);
        }
        counters.pushes = counters.relabels = 0, counters.scanned = 0;
        if (grid.rank != 0) return;
        progress->global_relabels = wave;
        progress->rounds = steps;
        progress->levels = levels;
        progress->grid_steps = steps - cluster_steps;
        progress->cluster_steps = cluster_steps;
    }

    // The list of vertices, the active ones and the targets among them; no wave has reached anybody.
    __device__ __forceinline__ void begin(const DrainArguments& given) {
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Entry e{v, given.row_offsets[v], given.row_offsets[v + 1], 0};
            bool sink = given.role[v] != ORDINARY, outside = given.source_side[v];
            Units holds = sink || outside ? 0 : excess_of<false>(g, v);
            store(g.vertices + v,
                  {settled(outside ? OUTSIDE : 0), e.begin, (unsigned)(e.end - e.begin) | (unsigned)sink << 31});
            store(marks + v, outside ? 0 : MOST_WAVES << LEVEL_BITS);
            if (!outside && (sink || holds < 0)) store(targets + atomicAdd(&memory->n_targets, 1), v);
            if (holds > 0) active.append(e);
        }
        __syncthreads();
        spill(active, most_kept(grid, active.total), 0, THREADS);
        end_step(grid, false);
        seeding = true;
    }

    // Leave the bounds as labels to the next drain, and move what is cut off to the other side if `moves`.
    __device__ __forceinline__ void end(int* labels, bool* source_side, bool moves) {
        Units gained = 0;
        for (int v = grid.rank; v < g.n; v += grid.size) {
            Vertex own = load(g.vertices + v);
            int label = label_of(own.label);
            if (label == OUTSIDE) continue;
            Bound at = own.sink() ? Bound{0, SEEN} : bound(label, load(marks + v));
            store(labels + v, at.meeting == CUT ? UNKNOWN_LABEL : at.label);
            if (!moves || at.meeting != CUT) continue;
            source_side[v] = true;
            gained -= excess_of<false>(g, v);
        }
        gained = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), gained, cg::plus<Units>());
        if (threadIdx.x % 32 == 0 && gained != 0) add(&progress->gained, gained);
    }

    __device__ __forceinline__ void run_to_end(const DrainArguments& given) {
        begin(given);
        run(given.round_limit);
        bool ended = active.total == 0 && !stop, cut_off = ended && load(&memory->dropped);
        if (cut_off) {  // one more wave, to the end, finds who is
            if (!seeding) forget_frontier();
            seeding = finishing = true;
            do step(grid);
            while (!seeding || cut_wave != wave);
        }
        end(given.labels, given.source_side, cut_off);
        if (grid.rank == 0) {
            progress->status = stop ? CANCELLED_DRAIN : ended ? ENDED_DRAIN : ROUNDS_SPENT;
            progress->cut_off = cut_off;
        }
        publish();
        Units into_hot_sink =
            cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), counters.into_hot_sink, cg::plus<Units>());
        if (threadIdx.x % 32 == 0 && into_hot_sink != 0) add_excess<false>(g, shared.hot_sink, into_hot_sink);
    }
};

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1) waves(const __grid_constant__ WaveArguments waves) {
    const DrainArguments& given = waves.drain;
    __shared__ WaveShared shared;
    for (int i = threadIdx.x; i < sizeof(WaveShared) / 4; i += THREADS) ((int*)&shared)[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) shared.hot_sink = NO_VERTEX;
    init_cluster_barrier(shared.barrier_memory);
    int rank = blockIdx.x * THREADS + threadIdx.x;
    WaveMemory* memory = (WaveMemory*)given.memory;
    Waves s{{given.n, given.vertices, given.arcs, given.excess},
            waves.marks,
            waves.targets,
            memory,
            given.progress,
            shared,
            {shared.searched, {given.search_even, given.search_odd, nullptr, nullptr, memory->search_tails, given.capacity}},
            {shared.active, {given.active_even, given.active_odd, nullptr, nullptr, memory->active_tails, given.n}},
            {rank, (int)gridDim.x * THREADS, (int)blockIdx.x, (int)gridDim.x, true},
            {rank, CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            blockIdx.x / CLUSTER == 0,
            given.small};
    s.run_to_end(given);
#if CLUSTER > 1
    cg::this_cluster().sync();  // no block leaves while a neighbour may still read its shared memory
#endif
}

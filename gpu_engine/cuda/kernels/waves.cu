// Waves: what drain.cu does, for deep networks: push the excess of T to its sinks and deficits. The global relabels run
// beside the rounds and never stop. A deep network takes hundreds of levels for each search, and in drain.cu nothing is
// pushed meanwhile; here half of each block searches while the other half discharges.
//
// (The concurrent global relabels of Anderson and Setubal, "A parallel implementation of the push-relabel algorithm for
// the maximum flow problem", J. Parallel and Distributed Computing 29, 1995, in synchronous steps. Vertex, arc, excess,
// push and relabel are those of drain.cu.)
//
// Steps. In a step the search goes on by some levels, each block with what it finds itself, and every active vertex
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
//
// The first wave is the search with which the drain before has ended: its labels are the first bounds, and whom it has not
// reached is cut off.

#include "arguments.cuh"

constexpr int LEAST_KEPT = 8;  // entries up to which a block keeps all at the end of a step
constexpr int HALF = THREADS / 2;
constexpr int LEVELS = 1 << LEVEL_BITS;
constexpr int MOST_WAVES = 255;  // in one launch
constexpr int POLL = 15;         // the host's cancel flag is read every POLL + 1 steps

// A block's share in a step's summary: bits 9-23 of the first word are rows to search that blocks keep, 24-38 active ones,
// 39-47 blocks that have active vertices which the wave has not seen, 48-56 blocks with late rows; of the second word
// 9-39 rows to search in the lists, 40-63 active ones.
struct WaveSummary : Summary {
    static __device__ __forceinline__ WaveSummary of(const BlockShare& searched, const BlockShare& active, bool waiting,
                                                     bool stop) {
        return {1 | (Word)searched.kept << 9 | (Word)active.kept << 24 | (Word)waiting << 39 |
                    (Word)(searched.long_rows > 0) << 48 | (Word)stop << 63,
                1 | (Word)searched.rows << 9 | (Word)active.rows << 40};
    }
    __device__ __forceinline__ int kept_to_search() const { return field(first, 9, 15); }
    __device__ __forceinline__ int kept_active() const { return field(first, 24, 15); }
    __device__ __forceinline__ bool waiting() const { return field(first, 39, 9); }
    __device__ __forceinline__ bool late() const { return field(first, 48, 9); }
    __device__ __forceinline__ int to_search() const { return field(second, 9, 31); }
    __device__ __forceinline__ int active() const { return field(second, 40, 24); }
};

struct WaveMemory {  // device only, zeroed by the host
    Summary barrier_words[2];
    int search_tails[6], active_tails[6];
    int n_targets;
    int dropped;                // some excess was found to be cut off
    int broadcast[2][16];       // the leading cluster's state, for the other blocks
    int after[MOST_WAVES + 1];  // as in `WaveShared`
};
static_assert(sizeof(WaveMemory) <= WAVE_MEMORY_BYTES, "the host gives waves too little memory");

struct WaveShared {
    BarrierMemory barrier_memory;
    BlockQueue<MANY> searched;
    BlockQueue<SOME> active;
    int after[MOST_WAVES + 1];  // the highest of the last levels of the waves after this one
    int waiting;                // the block has active vertices that the wave has not seen
    int hot_sink;
};

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
    GridBarrier grid_barrier;
    int cluster_phase;  // barriers of the leading cluster so far
    int wave, low, passing;
    int front;     // the next level of the rows that are furthest
    int cut_wave;  // the last wave that was exhausted: whom it has not reached is cut off
    bool seeding;  // the next step begins a wave
    bool late;     // the wave has met late rows
    bool single;   // no more strides: they found more than the lists hold
    bool waiting, stop;
    bool finishing;  // nothing is active, and the last wave goes on until it is exhausted
    ThreadCounters counters;
    StepCounters steps;

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
            searched.stride(strides - 1, 0, HALF, visit);
            visit();
        }
        searched.spill(searched.most_kept(threads, LEAST_KEPT), 0, HALF);
    }

    // ---- rounds

    // Thousands may push to one sink in a step, and nobody needs its excess before the end.
    __device__ __forceinline__ void fill(int sink, Units amount) {
        int* hot_sink = &shared.hot_sink;
        if (*hot_sink == sink || atomicCAS(hot_sink, NO_VERTEX, sink) == NO_VERTEX) counters.into_hot_sink += amount;
        else add_excess<false>(g, sink, amount);
    }

    // What a vertex knows of the head of one of its arcs, whether it may push to it, and whether the arc is open after it
    // has pushed so much, or may be: the head may be pushing to it.
    __device__ __forceinline__ Bound bound_of(Label label, bool sink, int mark, int round) const {
        int h = label_at_begin(label, round);
        return h == OUTSIDE ? Bound{OUTSIDE, CUT} : sink ? Bound{0, SEEN} : bound(h, mark);
    }
    __device__ __forceinline__ bool is_open(Bound far, bool only_to_seen) const {
        return far.meeting == SEEN || (far.meeting == UNMET && !only_to_seen);
    }
    __device__ __forceinline__ bool stays_open(const Arc& arc, Bound far, int own, Units amount) const {
        bool gained = backward<false>(arc) > 0 && (far.label > own || far.meeting == FRESH);
        return far.label >= 0 && (forward<false>(arc) > amount || gained);
    }

    // A vertex has pushed what it could: `left` remains, of what it had, and `rest` with what has come in meanwhile.
    __device__ __forceinline__ void finish(Entry e, int own, int lowest, Units left, Units rest) {
        counters.scanned += e.end - e.begin;
        int raised = min(lowest, g.n - 1) + 1;
        if (left > 0 && raised > own) {
            store(&g.vertices[e.vertex].label, changed(e.label, raised, active.step));
            e.label = raised;
            counters.relabels++;
        } else {
            store(&g.vertices[e.vertex].label, settled(e.label));
            if (left <= 0 && rest <= 0) return;
        }
        active.append(e);
    }

    // Push the excess of e.vertex, relabel it if some is left. `e.label` is its own label.
    template <class Group> __device__ __forceinline__ void discharge_in_wave(const Group& group, Entry e) {
        constexpr int ITEMS = Group::ITEMS;
        int lowest = UNSEEN - 1, round = active.step;
        Slice<Group> slice(g, group, e.begin, e.end);
        int mark = group.lanes.shfl(mark_now(e.vertex), 0);  // the search may change it: one lane reads for all
        Units left = group.broadcast(excess_of<false>(g, e.vertex)), rest = 1;  // others may add to it meanwhile
        Bound own = bound(e.label, mark);
        if (own.meeting == CUT) {
            if (group.rank() == 0) memory->dropped = 1;
            return;
        }
        if (own.meeting != SEEN && group.rank() == 0) shared.waiting = 1;
        bool only_to_seen = own.meeting != UNMET || own.label < passing;
        for (int base = e.begin; base < e.end && left > 0;) {
            Vertex there[ITEMS];
            int far_mark[ITEMS];
            Bound far[ITEMS];
            Units pushable[ITEMS], mine = 0, total;
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                bool given = slice.at(i) < e.end;
                there[i] = given ? load_now(g.vertices + slice.arc[i].head) : Vertex{settled(OUTSIDE), 0, 0};
                far_mark[i] = given ? mark_now(slice.arc[i].head) : 0;
            }
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                far[i] = bound_of(there[i].label, there[i].sink(), far_mark[i], round);
                pushable[i] =
                    is_open(far[i], only_to_seen) && far[i].label == own.label - 1 ? (Units)forward<false>(slice.arc[i]) : 0;
                mine += pushable[i];
            }
            Units through = group.scan(mine, total), sent = min(left, total);
            Units share = max(left - (through - mine), (Units)0);
            if (group.rank() == 0 && sent > 0) rest = add_excess<false>(g, e.vertex, -sent) - sent;
            Units amount[ITEMS], old[ITEMS];
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                const Arc& arc = slice.arc[i];
                amount[i] = min(pushable[i], share);
                share -= amount[i];
                if (stays_open(arc, far[i], own.label, amount[i])) lowest = min(lowest, far[i].label);
                if (amount[i] <= 0) continue;
                __stcg(&g.arcs[slice.at(i)].residual, (Capacity)(arc.residual - (Capacity)amount[i]));
                add(&g.arcs[arc.reverse].residual, (Capacity)amount[i]);
                counters.pushes++;
                if (there[i].sink()) fill(arc.head, amount[i]);
            }
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                old[i] = amount[i] > 0 && !there[i].sink() ? add_excess<false>(g, slice.arc[i].head, amount[i]) : 1;
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                if (old[i] <= 0 && old[i] + amount[i] > 0)
                    active.append(
                        {slice.arc[i].head, there[i].begin, there[i].end(), label_at_begin(there[i].label, round)});
            left -= sent;
            base += ITEMS * Group::size();
            if (base < e.end && left > 0) slice = Slice<Group>(g, group, base, e.end);
        }
        if (left > 0) lowest = group.reduce_min(lowest);
        if (group.rank() == 0) finish(e, own.label, lowest, left, rest);
    }

    // The second half of the block discharges its share of the active vertices. The more rows it has, the fewer lanes visit
    // one, and all start at once.
    __device__ __forceinline__ void round(const ThreadGroup& threads) {
        int rows = threads.whole ? active.total / threads.blocks : 0;
        if (rows >= HALF / 2) round_by<Lanes<1, 4>>(threads);
        else if (rows >= HALF / 8) round_by<Lanes<4, 2>>(threads);
        else round_by<Tile>(threads);
        active.spill(active.most_kept(threads, LEAST_KEPT), HALF, HALF);
    }
    template <class Group> __device__ __forceinline__ void round_by(const ThreadGroup& threads) {
        Group group;
        active.each_row(threads, (threadIdx.x - HALF) / Group::size(), HALF / Group::size(),
                        [&](const Entry* at, bool near) { discharge_in_wave(group, near ? *at : load(at)); });
    }

    // ---- steps

    // End the step by a barrier, once both halves of the block are through.
    __device__ __forceinline__ void end_step(const ThreadGroup& threads, bool cancelled) {
        __syncthreads();
        int kept_searched = searched.most_kept(threads, LEAST_KEPT), kept_active = active.most_kept(threads, LEAST_KEPT);
        WaveSummary own{};
        if (threadIdx.x < 32) {  // the same in each of these threads
            own = WaveSummary::of(searched.block_share(kept_searched), active.block_share(kept_active), shared.waiting,
                                  cancelled);
            __syncwarp();
            if (threadIdx.x == 0) {
                searched.turn_over(kept_searched);
                active.turn_over(kept_active);
                shared.waiting = 0;
            }
        }
        searched.step++, active.step++;
        searched.strides = 0;
        WaveSummary all{threads.whole ? grid_barrier.reduce(shared.barrier_memory, own, true)
                                      : reduce_in_cluster(shared.barrier_memory, own, true, cluster_phase)};
        searched.rows = all.to_search(), searched.long_rows = all.late(), active.rows = all.active();
        searched.total = all.kept_to_search() + searched.rows;
        active.total = all.kept_active() + active.rows;
        waiting = all.waiting();
        stop = stop || all.stop();
    }

    __device__ __forceinline__ void forget_frontier() {
        if (threadIdx.x == 0) searched.queue.count[searched.now()] = 0;
        if (grid.rank == 0) store(searched.lists.tails + searched.step % 3, 0);
        searched.rows = searched.long_rows = searched.total = 0;
        __syncthreads();
    }

    // Levels that the search goes through in a step, an odd number: as long as the round takes beside it.
    __device__ __forceinline__ int strides_of(const ThreadGroup& threads) const {
        if (late || single || searched.total > KEPT_ENTRIES * threads.blocks) return 1;
        return finishing ? 9 : active.total > HALF / 4 * threads.blocks ? 5 : 3;
    }

    __device__ __forceinline__ void step(const ThreadGroup& threads) {
        searched.clear_spare(threads);
        active.clear_spare(threads);
        int strides = strides_of(threads);
        if (seeding) {
            wave++, steps.searches++;
            low = front = passing = 0, late = false;
        } else passing = front + strides - 1;
        if (threadIdx.x < HALF) search_step(threads, strides);
        else round(threads);
        end_step(threads, threads.block == 0 && (steps.rounds & POLL) == 0 && told(&progress->cancel));
        steps.rounds++, (threads.whole ? steps.grid : steps.cluster)++;
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
        steps.levels += front;
        seeding = true;
        if (exhausted) cut_wave = wave;
        else {
            for (int w = threadIdx.x; w < wave; w += THREADS) {
                shared.after[w] = max(shared.after[w], low);
                if (threads.block == 0) store(memory->after + w, shared.after[w]);
            }
            forget_frontier();
        }
        publish(progress, counters, steps, grid.rank == 0);
    }

    __device__ __forceinline__ bool goes_on(int step_limit) const {
        return active.total > 0 && !stop && steps.rounds < step_limit &&
               !(seeding && wave == MOST_WAVES - 2);  // the others are for `finishing`
    }

    // Steps until nothing is active, by all blocks or by the leading cluster. Afterwards all blocks know the same.
    __device__ __forceinline__ void run(int step_limit) {
        while (goes_on(step_limit)) {
            if (searched.total + active.total > small) {
                step(grid);
                continue;
            }
            searched.hand_over(leads);
            active.hand_over(leads);
            grid_barrier.wait(shared.barrier_memory);
            searched.take_over();
            active.take_over();
            int* shown = memory->broadcast[grid_barrier.phase & 1];
            int* known[] = {&searched.step, &searched.total, &searched.rows, &searched.long_rows,
                            &active.step,   &active.total,   &active.rows,   &wave,
                            &low,           &front,          &cut_wave,      &steps.rounds};
            constexpr int KNOWN = sizeof(known) / sizeof(*known);
            static_assert(KNOWN + 1 <= 16, "the broadcast has too little space");
            if (leads) {
                do {
                    step(cluster);
                } while (goes_on(step_limit) && searched.total + active.total <= 2 * small);
                if (cluster.rank == 0) {
#pragma unroll
                    for (int i = 0; i < KNOWN; i++) store(shown + i, *known[i]);
                    store(shown + KNOWN, late | seeding << 1 | waiting << 2 | stop << 3 | single << 4);
                }
            }
            grid_barrier.wait(shared.barrier_memory);
#pragma unroll
            for (int i = 0; i < KNOWN; i++) *known[i] = load(shown + i);
            int flags = load(shown + KNOWN);
            late = flags & 1, seeding = flags >> 1 & 1, waiting = flags >> 2 & 1, stop = flags >> 3 & 1,
            single = flags >> 4 & 1;
            for (int w = threadIdx.x; w <= MOST_WAVES; w += THREADS) shared.after[w] = load(memory->after + w);
            __syncthreads();
        }
    }

    // The list of vertices, the active ones and the targets among them, and the bounds that the drain before has left.
    __device__ __forceinline__ void begin(const DrainArguments& given) {
        wave = cut_wave = 1;
        for (int v = grid.rank; v < g.n; v += grid.size) {
            bool sink = given.role[v] != ORDINARY, outside = given.source_side[v];
            Units holds = sink || outside ? 0 : excess_of<false>(g, v);
            bool target = !outside && (sink || holds < 0);
            int h = outside ? OUTSIDE : target ? 0 : given.labels[v];
            Entry e{v, given.row_offsets[v], given.row_offsets[v + 1], max(h, 0)};
            store(g.vertices + v,
                  {settled(outside ? h : e.label), e.begin, (unsigned)(e.end - e.begin) | (unsigned)sink << 31});
            store(marks + v, h == UNKNOWN_LABEL ? MOST_WAVES << LEVEL_BITS : mark_of(0));
            if (target) store(targets + atomicAdd(&memory->n_targets, 1), v);
            if (holds > 0) active.append(e);
        }
        active.spill(active.most_kept(grid, LEAST_KEPT), 0, THREADS);
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
        add_up(&progress->gained, gained);
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
            progress->status = stop ? CANCELLED_DRAIN : ended ? ENDED_DRAIN : LEFT_DRAIN;
            progress->cut_off = cut_off;
        }
        publish(progress, counters, steps, grid.rank == 0);
        fill_hot_sink<false>(g, shared.hot_sink, counters);
    }
};

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1) waves(const __grid_constant__ DrainArguments given) {
    __shared__ WaveShared shared;
    for (int i = threadIdx.x; i < sizeof(WaveShared) / 4; i += THREADS) ((int*)&shared)[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) shared.hot_sink = NO_VERTEX;
    init_cluster_barrier(shared.barrier_memory);
    int rank = blockIdx.x * THREADS + threadIdx.x;
    WaveMemory* memory = (WaveMemory*)given.memory;
    Waves s{{given.n, given.vertices, given.arcs, given.excess},
            given.marks,
            given.targets,
            memory,
            given.progress,
            shared,
            {shared.searched, {given.search_even, given.search_odd, nullptr, nullptr, memory->search_tails, given.capacity}},
            {shared.active, {given.active_even, given.active_odd, nullptr, nullptr, memory->active_tails, given.n}},
            {rank, (int)gridDim.x * THREADS, (int)blockIdx.x, (int)gridDim.x, true},
            {rank, CLUSTER * THREADS, (int)blockIdx.x, CLUSTER, false},
            blockIdx.x / CLUSTER == 0,
            given.small,
            {memory->barrier_words, 0}};
    s.searched.spare_used = s.active.spare_used = true;  // their lengths are always cleared
    s.run_to_end(given);
    leave_cluster();
}

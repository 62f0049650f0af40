// The frontier: the vertices that a step visits. A block queues those it finds in shared memory. At the step's end it keeps
// KEPT_ENTRIES of them, as many as its tiles visit at once, for itself: they need no trip to L2. The rest goes to lists
// that all blocks share evenly, in one piece for each block: thousands of atomics on one counter took longer than the
// step itself.
//
// A step may have several strides, between which a block goes on with its own queue and shares nothing. Entries that the
// queue has no space for are shared at once, as `early` entries: they are known to be behind at the next step.
#pragma once

#include "arc.cuh"
#include "barriers.cuh"

constexpr int TILE = 8;  // lanes that visit a row together
constexpr int KEPT_ENTRIES = THREADS / TILE;
constexpr int WIDE_STEP = 128;         // rows a block; in steps with more each thread visits a row alone
constexpr int SHORT_ROW = 8;           // arcs that such a thread has in flight at once
constexpr int SHORT_ROWS = 16;         // mean length of rows up to which single threads visit rows in wide searches
constexpr float BACK = 12;             // a search looks back from frontiers of more entries than n / sqrt(BACK * mean row)
constexpr int ROWS_ALONE = 32;         // arcs that a thread looks at alone then
constexpr int MANY = 768, SOME = 512;  // entries a block has space for, in searches and in rounds
constexpr int BLOCK_ROW = 2048;        // a round visits rows from this length on by a block; from LONG_ROW on by a warp
constexpr int ARCS_A_ROW = 192;        // a block visits any row in the time in which a warp visits so many arcs
constexpr int PIECE = 128;             // longest stretch of a row that one tile visits in a search

struct __align__(16) Entry { int vertex, begin, end, label; };

__device__ __forceinline__ Entry load(const Entry* p) {
    int4 x = __ldcg((const int4*)p);
    return {x.x, x.y, x.z, x.w};
}
__device__ __forceinline__ void store(Entry* p, Entry e) { __stcg((int4*)p, make_int4(e.vertex, e.begin, e.end, e.label)); }

__device__ __forceinline__ int reserve_one(int* tail) {
    cg::coalesced_group lanes = cg::coalesced_threads();
    int base = 0;
    if (lanes.thread_rank() == 0) base = atomicAdd(tail, lanes.size());
    return lanes.shfl(base, 0) + lanes.thread_rank();
}

template <int CAPACITY> struct BlockQueue {  // shared by a block
    Entry rows[2][CAPACITY];
    int count[2];           // of this step and of the next; exceeds CAPACITY by what went to the shared list
    int pieces, long_rows;  // went to the shared lists directly, in this step
    int base;               // where the block's rows begin there
};

struct Lists {  // shared by all blocks, device memory; lengths rotate by step
    Entry *even, *odd, *long_even, *long_odd;
    int* tails;  // [0..2] of rows, [3..5] of long rows, [6..8] rows added by `gather`; zero at first
    __device__ __forceinline__ Entry* rows(int parity) const { return parity ? odd : even; }
    __device__ __forceinline__ Entry* long_rows(int parity) const { return parity ? long_odd : long_even; }
};

template <int CAPACITY> struct Frontier {
    BlockQueue<CAPACITY>& queue;
    Lists lists;
    int step;                    // parity picks the buffers
    int total, rows, long_rows;  // of this step: all, and the lengths of the shared lists
    bool gathered;               // only the leading cluster keeps entries
    bool spare_used;             // the lists of the step before had entries
    int strides;                 // within the step so far
    bool striding;               // this stride is not the last one of its step

    __device__ __forceinline__ int now() const { return step & 1; }
    __device__ __forceinline__ int kept_now() const { return (step + strides) & 1; }
    __device__ __forceinline__ int here() const { return min(queue.count[kept_now()], CAPACITY); }

    __device__ __forceinline__ void append(Entry e) const {  // to the next stride or step
        int slot = atomicAdd(queue.count + (kept_now() ^ 1), 1);
        if (slot < CAPACITY) {
            queue.rows[kept_now() ^ 1][slot] = e;
            return;
        }
        store(lists.rows(now() ^ 1) + reserve_one(lists.tails + (step + 1) % 3), e);
        if (!striding) return;
        atomicAdd(&queue.pieces, 1);
        reserve_one(lists.tails + 3 + (step + 1) % 3);
        atomicAdd(&queue.long_rows, 1);
    }
    __device__ __forceinline__ void append_long(Entry e) const {
        store(lists.long_rows(now() ^ 1) + reserve_one(lists.tails + 3 + (step + 1) % 3), e);
        atomicAdd(&queue.long_rows, 1);
    }
    // A row in pieces of at most PIECE arcs.
    __device__ __forceinline__ void append_pieces(int v, int begin, int end, int label) const {
        if (end - begin <= PIECE) {
            if (end > begin) append({v, begin, end, label});
            return;
        }
        if (striding) {
            for (int at = begin; at < end; at += PIECE) append({v, at, min(at + PIECE, end), label});
            return;
        }
        int pieces = (end - begin + PIECE - 1) / PIECE;
        int slot = atomicAdd(lists.tails + (step + 1) % 3, pieces);
        for (int i = 0; i < pieces; i++)
            store(lists.rows(now() ^ 1) + slot + i, {v, begin + i * PIECE, min(begin + (i + 1) * PIECE, end), label});
        atomicAdd(&queue.pieces, pieces);
    }

    // Two strides of a step, both before its last, so that the parity of what is kept stays that of the step.
    // `visit` may append early entries: those that the queue had no space for. They are in the shared lists now, one
    // or more strides behind, and count as long rows.
    template <class Visit>
    __device__ __forceinline__ void two_strides(Visit visit) {
        striding = true;
        for (int i = 0; i < 2; i++) {
            visit();
            __syncthreads();
            if (threadIdx.x == 0) queue.count[kept_now()] = 0;
            strides++;
            __syncthreads();
        }
        striding = false;
    }

    // A step with few rows is a chain of latencies, which eight lanes a row make shortest. In a step with many rows it
    // counts how many are in flight.
    __device__ __forceinline__ bool wide(const ThreadGroup& threads) const {
        return threads.whole && total > WIDE_STEP * threads.blocks;
    }

    // Visit this block's rows, those it keeps and its share of the list, by `stride` groups; this one is the `rank`-th.
    template <class Visit>
    __device__ __forceinline__ void each_row(const ThreadGroup& threads, int rank, int stride, Visit visit) const {
        int mine = here();
        for (int i = rank;; i += stride) {
            Entry* at = &queue.rows[kept_now()][i];
            if (i >= mine) {
                int far = (i - mine) * threads.blocks + threads.block;
                if (far >= rows) break;
                at = lists.rows(now()) + far;
            }
            visit(at, i < mine);
        }
    }

    // The lengths that the step after next will use: nobody reads or adds to them in this step.
    __device__ __forceinline__ void clear_spare(const ThreadGroup& threads) const {
        if (threads.rank != 0 || !spare_used) return;
        for (int i = 0; i < 9; i += 3) store(lists.tails + i + (step + 2) % 3, 0);
    }

    // End the step by a barrier; afterwards the frontier is that of the next step. `found` is the block's own count of
    // active vertices reached, in shared memory; `wrote` says that others must see plain writes. Returns the reduction
    // of all blocks' summaries.
    __device__ __forceinline__ StepSummary end_step(const ThreadGroup& threads, GridBarrier& grid_barrier,
                                                    BarrierMemory& barrier_memory, int& cluster_phase, int& found,
                                                    bool wrote, bool stop) {
        __syncthreads();
        int next = queue.count[now() ^ 1], spilled = max(min(next, CAPACITY) - KEPT_ENTRIES, 0);
        if (spilled > 0) {
            if (threadIdx.x == 0) queue.base = atomicAdd(lists.tails + (step + 1) % 3, spilled);
            __syncthreads();
            Entry* to = lists.rows(now() ^ 1) + queue.base;
            for (int i = threadIdx.x; i < spilled; i += THREADS) store(to + i, queue.rows[now() ^ 1][KEPT_ENTRIES + i]);
            __syncthreads();
        }
        StepSummary own{0, 0};
        if (threadIdx.x < 32) {  // the same in each of these threads
            int surplus = max(next - KEPT_ENTRIES, 0);
            own = StepSummary::of(queue.pieces + surplus, queue.long_rows, next - surplus, found, stop);
            wrote = wrote || own.has_spilled() || spare_used;
            __syncwarp();
            if (threadIdx.x == 0) {
                queue.count[now()] = queue.pieces = queue.long_rows = found = 0;
                if (spilled > 0) queue.count[now() ^ 1] = KEPT_ENTRIES;
            }
        }
        step++;
        strides = 0;
        StepSummary all = threads.whole ? grid_barrier.reduce(barrier_memory, own, wrote, lists.tails + step % 3)
                                        : reduce_in_cluster(barrier_memory, own, wrote, cluster_phase);
        spare_used = rows | long_rows;
        rows = all.rows(), long_rows = all.long_rows();
        total = all.kept() + rows + long_rows;
        gathered = !threads.whole;
        return all;
    }

    // Move the entries that the other blocks keep into the shared list, so that the leading cluster can go on alone. They
    // have a tail of their own: a block still behind in `end_step` would read the tail of the rows too high.
    __device__ __forceinline__ void gather(bool leads, GridBarrier& grid_barrier, BarrierMemory& barrier_memory) {
        int mine = here();
        if (!leads && mine > 0) {
            if (threadIdx.x == 0) queue.base = rows + atomicAdd(lists.tails + 6 + step % 3, mine);
            __syncthreads();
            for (int i = threadIdx.x; i < mine; i += THREADS)
                store(lists.rows(now()) + queue.base + i, queue.rows[now()][i]);
            __syncthreads();
            if (threadIdx.x == 0) queue.count[now()] = 0;
        }
        grid_barrier.wait(barrier_memory);
        rows += load(lists.tails + 6 + step % 3);
        gathered = true;
    }
};

// The frontier: the vertices that a step visits. A block queues those it finds in shared memory. At the step's end it keeps
// some of them for itself: they need no trip to L2. The rest goes to lists that all blocks share evenly, in one piece for
// each block: thousands of atomics on one counter took longer than the step itself. A block keeps about the mean, as what
// blocks find is uneven (a search's front stays with the few that have it), and all wait for the one that has most.
//
// A step may have several strides, between which a block goes on with its own queue and shares nothing. Entries that the
// queue has no space for are shared at once, as `early` entries: they are known to be behind at the next step.
#pragma once

#include "arc.cuh"
#include "barriers.cuh"

constexpr int TILE = 8;                       // lanes that visit a row together
constexpr int KEPT_ENTRIES = THREADS / TILE;  // most entries that a block keeps: its tiles visit them at once
constexpr int WIDE_STEP = 128;                // rows a block; in steps with more each thread visits a row alone
constexpr int SHORT_ROW = 8;                  // arcs that such a thread has in flight at once
constexpr int SHORT_ROWS = 16;                // mean length of rows up to which single threads visit rows in wide searches
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

struct BlockShare {             // of the next step's frontier
    int kept, rows, long_rows;  // by the block itself, and in the lists
};

// All threads of the block, or of one half of it; the halves have barriers of their own.
__device__ __forceinline__ void synchronise(int first, int count) {
    if (count == THREADS) __syncthreads();
    else asm volatile("bar.sync %0, %1;" ::"r"(1 + (first > 0)), "r"(count) : "memory");
}

struct Lists {  // shared by all blocks, device memory; lengths rotate by step
    Entry *even, *odd, *long_even, *long_odd;
    int* tails;    // [0..2] of rows, [3..5] of long rows; zero at first
    int capacity;  // of even and odd; what comes beyond is counted and lost
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

    __device__ __forceinline__ void share(int slot, Entry e) const {
        if (slot < lists.capacity) store(lists.rows(now() ^ 1) + slot, e);
    }
    // Some rows of this step were lost. It takes strides: in a step of one level each row is appended once at most, and
    // for so many there is space; in one of several levels a vertex may be labelled, and its row appended, for each.
    __device__ __forceinline__ bool overflown() const { return rows > lists.capacity; }
    __device__ __forceinline__ void append(Entry e) const {  // to the next stride or step
        int slot = atomicAdd(queue.count + (kept_now() ^ 1), 1);
        if (slot < CAPACITY) {
            queue.rows[kept_now() ^ 1][slot] = e;
            return;
        }
        share(reserve_one(lists.tails + (step + 1) % 3), e);
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
        for (int i = 0; i < pieces; i++) share(slot + i, {v, begin + i * PIECE, min(begin + (i + 1) * PIECE, end), label});
        atomicAdd(&queue.pieces, pieces);
    }

    // The strides of a step but its last, by `count` threads from `first` on: an even number of them, so that the parity of
    // what is kept stays that of the step. `visit` may append early entries: those that the queue had no space for. They
    // are in the shared lists now, one or more strides behind, and count as long rows.
    template <class Visit> __device__ __forceinline__ void stride(int times, int first, int count, Visit visit) {
        striding = true;
        for (int i = 0; i < times; i++) {
            visit();
            synchronise(first, count);
            if (threadIdx.x == first) queue.count[kept_now()] = 0;
            strides++;
            synchronise(first, count);
        }
        striding = false;
    }

    // A step with few rows is a chain of latencies, which eight lanes a row make shortest. In a step with many rows it
    // counts how many are in flight.
    __device__ __forceinline__ bool wide(const ThreadGroup& threads) const {
        return threads.whole && total > WIDE_STEP * threads.blocks;
    }

    // Visit this block's rows, those it keeps and, in the first stride of a step, its share of the list, by `stride`
    // groups; this one is the `rank`-th.
    template <class Visit>
    __device__ __forceinline__ void each_row(const ThreadGroup& threads, int rank, int stride, Visit visit) const {
        int mine = here();
        for (int i = rank;; i += stride) {
            Entry* at = &queue.rows[kept_now()][i];
            if (i >= mine) {
                int far = (i - mine) * threads.blocks + threads.block;
                if (strides > 0 || far >= rows) break;
                at = lists.rows(now()) + far;
            }
            visit(at, i < mine);
        }
    }

    // The lengths that the step after next will use: nobody reads or adds to them in this step.
    __device__ __forceinline__ void clear_spare(const ThreadGroup& threads) const {
        if (threads.rank != 0 || !spare_used) return;
        for (int i = 0; i < 6; i += 3) store(lists.tails + i + (step + 2) % 3, 0);
    }

    // The end of a step, in which `least` is the number of entries up to which a block keeps all. First what the block
    // does not keep goes to the lists, by `count` threads from `first` on, which are the only ones that append. Then, when
    // the whole block is through with that, what the others must know; last, by one thread, what the next step begins with.
    __device__ __forceinline__ int most_kept(const ThreadGroup& threads, int least) const {
        return threads.whole ? min(KEPT_ENTRIES, max(least, total / threads.blocks)) : KEPT_ENTRIES;
    }
    __device__ __forceinline__ void spill(int keep, int first, int count) const {
        synchronise(first, count);
        int spilled = min(queue.count[now() ^ 1], CAPACITY) - keep;
        if (spilled <= 0) return;
        if (threadIdx.x == first) queue.base = atomicAdd(lists.tails + (step + 1) % 3, spilled);
        synchronise(first, count);
        for (int i = threadIdx.x - first; i < spilled; i += count) share(queue.base + i, queue.rows[now() ^ 1][keep + i]);
        synchronise(first, count);
    }
    __device__ __forceinline__ BlockShare block_share(int keep) const {
        int next = queue.count[now() ^ 1];
        return {min(next, keep), queue.pieces + max(next - keep, 0), queue.long_rows};
    }
    __device__ __forceinline__ void turn_over(int keep) const {
        queue.count[now()] = queue.pieces = queue.long_rows = 0;
        queue.count[now() ^ 1] = min(queue.count[now() ^ 1], keep);
    }

    // Move the entries that the other blocks keep into the shared list, so that the leading cluster can go on alone from
    // the next barrier of the grid on, when all have called `take_over`.
    __device__ __forceinline__ void hand_over(bool leads) const {
        int mine = here();
        if (leads || mine == 0) return;
        if (threadIdx.x == 0) queue.base = atomicAdd(lists.tails + step % 3, mine);
        __syncthreads();
        for (int i = threadIdx.x; i < mine; i += THREADS) store(lists.rows(now()) + queue.base + i, queue.rows[now()][i]);
        __syncthreads();
        if (threadIdx.x == 0) queue.count[now()] = 0;
    }
    __device__ __forceinline__ void take_over() {
        rows = load(lists.tails + step % 3);
        gathered = true;
    }
};

// The vertices that a step visits. A block gathers those it finds in shared memory. At the step's end it keeps ROOM of
// them, what its tiles visit at once, for itself: they need no trip to L2. The rest goes to lists that all blocks share
// evenly, in one piece for each block: thousands of atomics on one counter took longer than the step itself.
//
// A step may have several strides, between which a block goes on with what it has and tells the others nothing. What it
// finds no space for is shared at once, as an `early` entry: one that is known to be behind at the next step.
#pragma once

#include "arc.cuh"
#include "team.cuh"

constexpr int TILE = 8;         // lanes that visit a row together
constexpr int ROOM = THREADS / TILE;
constexpr int WIDE_STEP = 128;  // rows a block; in steps with more each thread visits a row alone
constexpr int SHORT_ROW = 8;    // arcs that such a thread has in flight at once
constexpr int MANY = 768, SOME = 512;      // entries a block has space for, in searches and in rounds
constexpr int LONG_ROW = 128;   // a round visits rows from this length on by a warp,
constexpr int BLOCK_ROW = 2048; // and from this one on by a whole block
constexpr int PIECE = 128;      // longest stretch of a row that one tile visits in a search

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

template <int CAPACITY> struct Kept {   // shared by a block
    Entry rows[2][CAPACITY];
    int count[2];           // of this step and of the next; exceeds CAPACITY by what went to the shared list
    int pieces, long_rows;  // went to the shared lists directly, in this step
    int base;               // where the block's rows begin there
};

struct Lists {              // shared by all blocks, device memory; lengths rotate by step
    Entry *even, *odd, *long_even, *long_odd;
    int* tails;             // [0..2] of rows, [3..5] of long rows, [6..8] rows added by `gather`; zero at first
    __device__ __forceinline__ Entry* rows(int parity) const { return parity ? odd : even; }
    __device__ __forceinline__ Entry* long_rows(int parity) const { return parity ? long_odd : long_even; }
};

template <int CAPACITY> struct Frontier {
    Kept<CAPACITY>& kept_here;
    Lists lists;
    int step;               // parity picks the buffers
    int total, rows, long_rows;     // of this step: all, and the lengths of the shared lists
    bool gathered;          // only the leading cluster keeps entries
    bool spare_used;        // the lists of the step before had entries
    int strides;            // within the step so far
    bool striding;          // this stride is not the last one of its step

    __device__ __forceinline__ int now() const { return step & 1; }
    __device__ __forceinline__ int kept_now() const { return (step + strides) & 1; }
    __device__ __forceinline__ int here() const { return min(kept_here.count[kept_now()], CAPACITY); }

    __device__ __forceinline__ void append(Entry e) const {     // to the next stride or step
        int slot = atomicAdd(kept_here.count + (kept_now() ^ 1), 1);
        if (slot < CAPACITY) {
            kept_here.rows[kept_now() ^ 1][slot] = e;
            return;
        }
        store(lists.rows(now() ^ 1) + reserve_one(lists.tails + (step + 1) % 3), e);
        if (!striding) return;
        atomicAdd(&kept_here.pieces, 1);
        reserve_one(lists.tails + 3 + (step + 1) % 3);
        atomicAdd(&kept_here.long_rows, 1);
    }
    __device__ __forceinline__ void append_long(Entry e) const {
        store(lists.long_rows(now() ^ 1) + reserve_one(lists.tails + 3 + (step + 1) % 3), e);
        atomicAdd(&kept_here.long_rows, 1);
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
        atomicAdd(&kept_here.pieces, pieces);
    }

    // Two strides of a step, both before its last, so that the parity of what is kept stays that of the step.
    // `visit` may append early entries: those that found no room and are in the shared lists now, one or more
    // strides behind. They count as long rows.
    template <class Visit>
    __device__ __forceinline__ void two_strides(Visit visit) {
        striding = true;
        for (int i = 0; i < 2; i++) {
            visit();
            __syncthreads();
            if (threadIdx.x == 0) kept_here.count[kept_now()] = 0;
            strides++;
            __syncthreads();
        }
        striding = false;
    }

    // Steps with few rows are a chain of latencies, which eight lanes a row make shortest; with many rows it counts how
    // many are in flight.
    __device__ __forceinline__ bool wide(const Team& team) const { return total > WIDE_STEP * team.blocks; }

    // Visit this block's rows, those it keeps and its share of the list, by `stride` groups; this one is the `rank`-th.
    template <class Visit>
    __device__ __forceinline__ void each_row(const Team& team, int rank, int stride, Visit visit) const {
        int mine = here();
        for (int i = rank;; i += stride) {
            Entry* at = &kept_here.rows[kept_now()][i];
            if (i >= mine) {
                int far = (i - mine) * team.blocks + team.block;
                if (far >= rows) break;
                at = lists.rows(now()) + far;
            }
            visit(at, i < mine);
        }
    }

    // The lengths that the step after next will use: nobody reads or adds to them in this step.
    __device__ __forceinline__ void clear_spare(const Team& team) const {
        if (team.rank != 0 || !spare_used) return;
        for (int i = 0; i < 9; i += 3) store(lists.tails + i + (step + 2) % 3, 0);
    }

    // The barrier that ends a step; afterwards the frontier is that of the next. `found` is the block's own count of
    // active vertices reached, shared; `wrote` says that others must see plain writes. Returns the sum of the reports.
    __device__ __forceinline__ Report turn_over(const Team& team, Gate& gate, Meeting& meeting, int& meetings, int& found,
                                                bool wrote, bool stop) {
        __syncthreads();
        int next = kept_here.count[now() ^ 1], spilled = max(min(next, CAPACITY) - ROOM, 0);
        if (spilled > 0) {
            if (threadIdx.x == 0) kept_here.base = atomicAdd(lists.tails + (step + 1) % 3, spilled);
            __syncthreads();
            Entry* to = lists.rows(now() ^ 1) + kept_here.base;
            for (int i = threadIdx.x; i < spilled; i += THREADS) store(to + i, kept_here.rows[now() ^ 1][ROOM + i]);
            __syncthreads();
        }
        Report own{0, 0};
        if (threadIdx.x < 32) {     // the same in each of these threads
            int excess = max(next - ROOM, 0);
            own = Report::of(kept_here.pieces + excess, kept_here.long_rows, next - excess, found, stop);
            wrote = wrote || own.has_spilled() || spare_used;
            __syncwarp();
            if (threadIdx.x == 0) {
                kept_here.count[now()] = kept_here.pieces = kept_here.long_rows = found = 0;
                if (spilled > 0) kept_here.count[now() ^ 1] = ROOM;
            }
        }
        step++;
        strides = 0;
        Report all = team.whole ? gate.pass(meeting, own, wrote, lists.tails + step % 3)
                                : meet_in_cluster(meeting, own, wrote, meetings);
        spare_used = rows | long_rows;
        rows = all.rows(), long_rows = all.long_rows();
        total = all.kept() + rows + long_rows;
        gathered = !team.whole;
        return all;
    }

    // Move what the other blocks keep into the shared list, so that the leading cluster can go on alone. Not through
    // the tail of the rows: a block still behind in `turn_over` would read it too high.
    __device__ __forceinline__ void gather(bool leads, Gate& gate, Meeting& meeting) {
        int mine = here();
        if (!leads && mine > 0) {
            if (threadIdx.x == 0) kept_here.base = rows + atomicAdd(lists.tails + 6 + step % 3, mine);
            __syncthreads();
            for (int i = threadIdx.x; i < mine; i += THREADS) store(lists.rows(now()) + kept_here.base + i, kept_here.rows[now()][i]);
            __syncthreads();
            if (threadIdx.x == 0) kept_here.count[now()] = 0;
        }
        gate.wait(meeting);
        rows += load(lists.tails + 6 + step % 3);
        gathered = true;
    }
};

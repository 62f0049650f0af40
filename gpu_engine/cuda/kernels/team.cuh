// Threads that work in step, and the barriers at which their blocks tell each other what the step found.
//
// A step of a solve is a chain of dependent L2 accesses of 0.15 to 0.35 us each and a barrier; most steps have little
// else to do, so every access taken out of the chain shows. What the blocks must know of each other after a step (how
// much work there is for the next, and where) therefore rides on the barrier itself: in the word that counts the
// arrivals at the grid's gate, through distributed shared memory in the leading cluster. And a barrier orders memory
// only if the step wrote something but by atomics whose results it waited for.
//
// All that blocks share and change is read past L1 (ld.cg) or by atomics. So after a barrier nothing stale can be
// read: loads are issued in program order, and the compiler moves none across the volatile instructions here.
#pragma once

#include <cooperative_groups.h>

#ifndef CLUSTER
#define CLUSTER 8       // 1 before compute capability 9.0: the leading team is then a single block
#endif
#ifndef THREADS
#define THREADS 512
#endif

namespace cg = cooperative_groups;
typedef unsigned long long Word;

// What a block reports; the sum over the blocks has the same fields. At most 511 blocks.
struct Report {
    Word found;         // bits 0-8 arrivals, 9-17 blocks that added to the shared lists, 18-35 entries kept by the
                        // blocks themselves, 36-62 active vertices reached, 63 stop (at most one block says so)
    Word spilled;       // bits 0-31 rows and 32-63 long rows added to the shared lists; not summed at the gate
    static __device__ __forceinline__ Report of(int rows, int long_rows, int kept, int reached, bool stop) {
        bool spilled = rows | long_rows;
        return {1 | (Word)spilled << 9 | (Word)kept << 18 | (Word)reached << 36 | (Word)stop << 63,
                (Word)long_rows << 32 | (unsigned)rows};
    }
    __device__ __forceinline__ int arrivals() const { return found & 511; }
    __device__ __forceinline__ bool has_spilled() const { return found >> 9 & 511; }
    __device__ __forceinline__ int kept() const { return found >> 18 & 0x3ffff; }
    __device__ __forceinline__ int reached() const { return found >> 36 & 0x7ffffff; }
    __device__ __forceinline__ bool stop() const { return found >> 63; }
    __device__ __forceinline__ int rows() const { return (int)spilled; }
    __device__ __forceinline__ int long_rows() const { return (int)(spilled >> 32); }
};

struct Team {               // the leading cluster or the whole grid
    int rank, size, block, blocks;
    bool whole;
};

struct Meeting {            // shared by a block
    Report told;
    Report mail[2][CLUSTER];    // what the blocks of the cluster say; by parity of the meeting
    Word bell[2];               // mbarriers: all mail of the meeting is in
};

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// The barrier of all blocks. Two words in turn, zero at first; they only ever grow, so that nobody has to clear them,
// and what a meeting added is told by the difference. A word is not added to again before all have seen it.
struct Gate {
    Word* words;
    int turn;
    Word before[2];

    // The threads of the block have met already; the arguments count in thread 0 only. `tails` point to the lengths
    // of the shared lists, of rows and (3 further) of long rows.
    __device__ __forceinline__ Report pass(Meeting& meeting, Report own, bool wrote, const int* tails) {
        if (threadIdx.x == 0) {
            Word* word = words + (turn & 1);
            if (wrote) fence();
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(own.found) : "memory");
            Report all{0, 0};
            Word start = turn & 1 ? before[1] : before[0], seen;
            do {
                asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
                all.found = seen - start;
            } while (all.arrivals() < (int)gridDim.x);
            if (turn & 1) before[1] = seen;
            else before[0] = seen;
            if (tails != nullptr && all.has_spilled())
                all.spilled = (Word)(unsigned)__ldcg(tails + 3) << 32 | (unsigned)__ldcg(tails);
            meeting.told = all;
        }
        __syncthreads();
        turn++;
        return meeting.told;
    }
    __device__ __forceinline__ void wait(Meeting& meeting) {
        __syncthreads();
        pass(meeting, Report::of(0, 0, 0, 0, false), true, nullptr);
    }
};

// The barrier of the leading cluster: every block posts its report to every other, and each waits until its own mail
// is in. Two bells in turn: no block can be two meetings ahead of another. `own` counts in the first warp only.
#if CLUSTER > 1
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void open_mail(Meeting& meeting) {
    if (threadIdx.x < 2) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(meeting.bell + threadIdx.x)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cg::this_cluster().sync();
}

__device__ __forceinline__ Report meet_in_cluster(Meeting& meeting, Report own, bool wrote, int& meetings) {
    int parity = meetings & 1, phase = meetings >> 1 & 1;
    unsigned bell = shared_address(meeting.bell + parity);
    if (threadIdx.x < 32) {
        if (wrote) fence();
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bell), "r"((int)(CLUSTER * sizeof(Report)))
                         : "memory");
        if (threadIdx.x < CLUSTER) {
            unsigned slot = shared_address(&meeting.mail[parity][cg::this_cluster().block_rank()]), far_slot, far_bell;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_slot) : "r"(slot), "r"(threadIdx.x));
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_bell) : "r"(bell), "r"(threadIdx.x));
            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(far_slot),
                         "l"(own.found), "l"(own.spilled), "r"(far_bell)
                         : "memory");
        }
    }
    int rung = 0;
    while (!rung)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(rung) : "r"(bell), "r"(phase) : "memory");
    meetings++;
    Report sum{0, 0};
    for (int i = 0; i < CLUSTER; i++) {
        sum.found += meeting.mail[parity][i].found;
        sum.spilled += meeting.mail[parity][i].spilled;
    }
    return sum;
}
#else
__device__ __forceinline__ void open_mail(Meeting&) { __syncthreads(); }

__device__ __forceinline__ Report meet_in_cluster(Meeting& meeting, Report own, bool, int&) {
    if (threadIdx.x == 0) meeting.told = own;
    __syncthreads();
    return meeting.told;
}
#endif

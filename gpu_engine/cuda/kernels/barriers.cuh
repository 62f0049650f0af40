// Threads that work in step, and the barriers at which their blocks sum up what the step found.
//
// A step of a solve is a chain of dependent L2 accesses of 0.15 to 0.35 us each and a barrier; most steps have little
// else to do, so every access taken out of the chain shows. What the blocks must know of each other after a step (how
// much work there is for the next, and where) therefore rides on the barrier itself: in the word that counts the
// arrivals at the grid barrier, and in the mailboxes of the leading cluster, which lie in distributed shared memory. A
// barrier orders memory only if the step wrote something by other means than atomics whose results it waited for.
//
// All that blocks share and change is read past L1 (ld.cg) or by atomics. So after a barrier nothing stale can be
// read: loads are issued in program order, and the compiler moves none across the volatile instructions here.
#pragma once

#include <cooperative_groups.h>

namespace cg = cooperative_groups;
typedef unsigned long long Word;

// A block's share in a step's summary; the reduction over the blocks has the same fields. At most 511 blocks.
struct StepSummary {
    Word found;    // bits 0-8 arrivals, 9-17 blocks that added to the shared lists, 18-35 entries kept by the
                   // blocks themselves, 36-62 active vertices reached, 63 stop (at most one block says so)
    Word spilled;  // bits 0-31 rows and 32-63 long rows added to the shared lists; not summed by the grid barrier
    static __device__ __forceinline__ StepSummary of(int rows, int long_rows, int kept, int reached, bool stop) {
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

struct ThreadGroup {  // the leading cluster or the whole grid
    int rank, size, block, blocks;
    bool whole;
};

struct BarrierMemory {                // shared by a block
    StepSummary sum;                  // the reduction, for all threads
    StepSummary mailbox[2][CLUSTER];  // the shares of the cluster's blocks, by parity of the barrier
    Word mbarrier[2];                 // complete when all shares are in the mailbox
};

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// The barrier of all blocks, with a reduction. Two words serve in turn, zero at first. They only ever grow, so that nobody
// has to clear them, and the difference is what one barrier added. A word is not added to again before all have seen it.
struct GridBarrier {
    Word* words;
    int phase;
    Word before[2];

    // The threads of the block are synchronised before; the arguments count in thread 0 only. `tails` point to the
    // lengths of the shared lists, of rows and (3 further) of long rows.
    __device__ __forceinline__ StepSummary reduce(BarrierMemory& barrier_memory, StepSummary own, bool wrote,
                                                  const int* tails) {
        if (threadIdx.x == 0) {
            Word* word = words + (phase & 1);
            if (wrote) fence();
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(own.found) : "memory");
            StepSummary all{0, 0};
            Word start = phase & 1 ? before[1] : before[0], seen;
            do {
                asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
                all.found = seen - start;
            } while (all.arrivals() < (int)gridDim.x);
            if (phase & 1) before[1] = seen;
            else before[0] = seen;
            if (tails != nullptr && all.has_spilled())
                all.spilled = (Word)(unsigned)__ldcg(tails + 3) << 32 | (unsigned)__ldcg(tails);
            barrier_memory.sum = all;
        }
        __syncthreads();
        phase++;
        return barrier_memory.sum;
    }
    __device__ __forceinline__ void wait(BarrierMemory& barrier_memory) {
        __syncthreads();
        reduce(barrier_memory, StepSummary::of(0, 0, 0, 0, false), true, nullptr);
    }
};

// The barrier of the leading cluster, with a reduction: every block puts its share into the mailbox of every other, and
// each waits until its own mailbox is full. Two mailboxes serve in turn: no block can be two barriers ahead of another.
// `own` counts in the first warp only.
#if CLUSTER > 1
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void init_cluster_barrier(BarrierMemory& barrier_memory) {
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier_memory.mbarrier + threadIdx.x)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cg::this_cluster().sync();
}

__device__ __forceinline__ StepSummary reduce_in_cluster(BarrierMemory& barrier_memory, StepSummary own, bool wrote,
                                                         int& cluster_phase) {
    int parity = cluster_phase & 1, phase = cluster_phase >> 1 & 1;
    unsigned mbarrier = shared_address(barrier_memory.mbarrier + parity);
    if (threadIdx.x < 32) {
        if (wrote) fence();
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(mbarrier),
                         "r"((int)(CLUSTER * sizeof(StepSummary)))
                         : "memory");
        if (threadIdx.x < CLUSTER) {
            unsigned slot = shared_address(&barrier_memory.mailbox[parity][cg::this_cluster().block_rank()]), far_slot,
                     far_mbarrier;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_slot) : "r"(slot), "r"(threadIdx.x));
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_mbarrier) : "r"(mbarrier), "r"(threadIdx.x));
            asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(far_slot),
                "l"(own.found), "l"(own.spilled), "r"(far_mbarrier)
                : "memory");
        }
    }
    int complete = 0;
    while (!complete)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
            : "=r"(complete)
            : "r"(mbarrier), "r"(phase)
            : "memory");
    cluster_phase++;
    StepSummary sum{0, 0};
    for (int i = 0; i < CLUSTER; i++) {
        sum.found += barrier_memory.mailbox[parity][i].found;
        sum.spilled += barrier_memory.mailbox[parity][i].spilled;
    }
    return sum;
}
#else
__device__ __forceinline__ void init_cluster_barrier(BarrierMemory&) { __syncthreads(); }

__device__ __forceinline__ StepSummary reduce_in_cluster(BarrierMemory& barrier_memory, StepSummary own, bool, int&) {
    if (threadIdx.x == 0) barrier_memory.sum = own;
    __syncthreads();
    return barrier_memory.sum;
}
#endif

// Threads that work in step, and the barriers at which their blocks sum up what the step found.
//
// A step of a solve is a chain of dependent L2 accesses of 0.15 to 0.35 us each and a barrier; most steps have little
// else to do, so every access taken out of the chain shows. What the blocks must know of each other after a step (how
// much work there is for the next, and where) therefore rides on the barrier itself: in the words that count the
// arrivals at the grid barrier, and in the mailboxes of the leading cluster, which lie in distributed shared memory. A
// barrier orders memory only if the step wrote something by other means than atomics whose results it waited for.
//
// All that blocks share and change is read past L1 (ld.cg) or by atomics. So after a barrier nothing stale can be
// read: loads are issued in program order, and the compiler moves none across the volatile instructions here.
#pragma once

#include <cooperative_groups.h>

namespace cg = cooperative_groups;
typedef unsigned long long Word;

// What a block has found in a step, in fields of two words that are added up over the blocks. Both words have the arrivals,
// so that both are complete once one load has seen all of them in both. At most 511 blocks.
struct __align__(16) Summary {
    Word first, second;  // bits 0-8 arrivals, 63 of `first` stop (at most one block says so)
    __device__ __forceinline__ bool complete(int blocks) const {
        return field(first, 0, 9) >= blocks && field(second, 0, 9) >= blocks;
    }
    __device__ __forceinline__ bool stop() const { return first >> 63; }
    static __device__ __forceinline__ int field(Word word, int at, int bits) { return word >> at & (((Word)1 << bits) - 1); }
};
constexpr Summary ARRIVED = {1, 1};

struct ThreadGroup {  // the leading cluster or the whole grid
    int rank, size, block, blocks;
    bool whole;
};

struct BarrierMemory {            // shared by a block, zero at first
    Summary sum;                  // the reduction, for all threads
    Summary before[2];            // the words of the grid barrier, as the last barrier of each left them
    Summary mailbox[2][CLUSTER];  // the shares of the cluster's blocks, by parity of the barrier
    Word mbarrier[2];             // complete when all shares are in the mailbox
};

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// The barrier of all blocks, with a reduction. Two summaries serve in turn, zero at first. They only ever grow, so that
// nobody has to clear them, and the difference is what one barrier added. None is added to again before all have seen it.
struct GridBarrier {
    Summary* words;
    int phase;

    // The threads of the block are synchronised before; `own` counts in thread 0 only.
    __device__ __forceinline__ Summary reduce(BarrierMemory& memory, Summary own, bool wrote) {
        if (threadIdx.x == 0) {
            Summary *at = words + (phase & 1), before = memory.before[phase & 1], seen, all;
            if (wrote) fence();
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(&at->first), "l"(own.first) : "memory");
            asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(&at->second), "l"(own.second) : "memory");
            do {
                asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                             : "=l"(seen.first), "=l"(seen.second)
                             : "l"(at)
                             : "memory");
                all = {seen.first - before.first, seen.second - before.second};
            } while (!all.complete(gridDim.x));
            memory.before[phase & 1] = seen;
            memory.sum = all;
        }
        __syncthreads();
        phase++;
        return memory.sum;
    }
    __device__ __forceinline__ void wait(BarrierMemory& memory) {
        __syncthreads();
        reduce(memory, ARRIVED, true);
    }
};

// The barrier of the leading cluster, with a reduction: every block puts its share into the mailbox of every other, and
// each waits until its own mailbox is full. Two mailboxes serve in turn: no block can be two barriers ahead of another.
// `own` counts in the first warp only.
#if CLUSTER > 1
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)

__device__ __forceinline__ void init_cluster_barrier(BarrierMemory& memory) {
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(memory.mbarrier + threadIdx.x)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cg::this_cluster().sync();
}

__device__ __forceinline__ Summary reduce_in_cluster(BarrierMemory& memory, Summary own, bool wrote, int& cluster_phase) {
    int parity = cluster_phase & 1, phase = cluster_phase >> 1 & 1;
    unsigned mbarrier = shared_address(memory.mbarrier + parity);
    if (threadIdx.x < 32) {
        if (wrote) fence();
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(mbarrier),
                         "r"((int)(CLUSTER * sizeof(Summary)))
                         : "memory");
        if (threadIdx.x < CLUSTER) {
            unsigned slot = shared_address(&memory.mailbox[parity][cg::this_cluster().block_rank()]), far_slot, far_mbarrier;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_slot) : "r"(slot), "r"(threadIdx.x));
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_mbarrier) : "r"(mbarrier), "r"(threadIdx.x));
            asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(far_slot),
                "l"(own.first), "l"(own.second), "r"(far_mbarrier)
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
    Summary sum{0, 0};
    for (int i = 0; i < CLUSTER; i++) {
        sum.first += memory.mailbox[parity][i].first;
        sum.second += memory.mailbox[parity][i].second;
    }
    return sum;
}

// No block leaves while a neighbour may still read its shared memory.
__device__ __forceinline__ void leave_cluster() { cg::this_cluster().sync(); }
#else
#define IN_CLUSTERS

__device__ __forceinline__ void init_cluster_barrier(BarrierMemory&) { __syncthreads(); }

__device__ __forceinline__ Summary reduce_in_cluster(BarrierMemory& memory, Summary own, bool, int&) {
    if (threadIdx.x == 0) memory.sum = own;
    __syncthreads();
    return memory.sum;
}

__device__ __forceinline__ void leave_cluster() {}
#endif

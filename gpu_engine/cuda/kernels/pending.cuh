// A mark on links that have changed and are still to be repaired.
#pragma once

#include "arc.cuh"

// Several edges may share a link, which must be repaired once, after all of them have changed. The top bit of its first
// arc's pair sum, which no sum reaches, says that the repair is pending.
__device__ __forceinline__ bool clear_pending(Capacity* pair_sum) {
#ifndef WIDE
    return atomicAnd((unsigned*)pair_sum, 0x7fffffffu) >> 31;
#else
    return atomicAnd((unsigned long long*)pair_sum, 0x7fffffffffffffffULL) >> 63;
#endif
}
__device__ __forceinline__ void set_pending(Capacity* pair_sum) {
#ifndef WIDE
    atomicOr((unsigned*)pair_sum, 0x80000000u);
#else
    atomicOr((unsigned long long*)pair_sum, 0x8000000000000000ULL);
#endif
}

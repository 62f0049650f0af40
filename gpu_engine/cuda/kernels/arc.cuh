// Every kernel includes this file: widths, roles, the arc record and loads that bypass the incoherent L1 cache.
#pragma once

#ifndef WIDE
typedef int Capacity;  // every pair sum fits
#else
typedef long long Capacity;
#endif
typedef long long Units;

// Vertices as gpu_engine/networks/free.py has them.
enum Role : signed char { ORDINARY = ORDINARY_VERTEX, SINK = SINK_VERTEX, SOURCE = SOURCE_VERTEX };

struct __align__(sizeof(Capacity) == 4 ? 16 : 8) Arc {
    int head, reverse;
    Capacity residual, pair_sum;
};

// Loops over all arcs count without a sign: there may be 2^31 - 2, and the step beyond the last one is no int any more.
__device__ constexpr Arc NO_ARC = {0, 0, 0, 0};

__device__ __forceinline__ int load(const int* p) { return __ldcg(p); }
// What the host tells a kernel that is running. All lanes of a warp must ask, and are told the same, so that none goes
// another way than its neighbours when the host writes between their loads.
__device__ __forceinline__ int told(const int* word) { return __shfl_sync(0xffffffffu, __ldcg(word), 0); }
__device__ __forceinline__ void store(int* p, int x) { __stcg(p, x); }
__device__ __forceinline__ void add(int* p, int x) { atomicAdd(p, x); }
__device__ __forceinline__ void add(Units* p, Units x) { atomicAdd((unsigned long long*)p, (unsigned long long)x); }
// Volatile: a load is issued where it is written, not where its value is first needed.
__device__ __forceinline__ int load_now(const int* p) {
    int x;
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}
__device__ __forceinline__ Units load_now(const Units* p) {
    Units x;
    asm volatile("ld.global.cg.b64 %0, [%1];" : "=l"(x) : "l"(p));
    return x;
}
__device__ __forceinline__ Arc load_now(const Arc* p) {
    Arc x;
#ifndef WIDE
    asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.head), "=r"(x.reverse), "=r"(x.residual), "=r"(x.pair_sum)
                 : "l"(p));
#else
    asm volatile("ld.global.cg.v2.b32 {%0, %1}, [%2];" : "=r"(x.head), "=r"(x.reverse) : "l"(p));
    asm volatile("ld.global.cg.b64 %0, [%1];" : "=l"(x.residual) : "l"(&p->residual));
    asm volatile("ld.global.cg.b64 %0, [%1];" : "=l"(x.pair_sum) : "l"(&p->pair_sum));
#endif
    return x;
}

// What every kernel shares: widths, roles, the arc record and loads that bypass the incoherent L1 cache.
#pragma once

#ifndef WIDE
typedef int Capacity;           // every pair sum fits
#else
typedef long long Capacity;
#endif
typedef long long Units;

enum Role : signed char { ORDINARY = 0, SINK = 1, AWAY = 2 };

struct __align__(sizeof(Capacity) == 4 ? 16 : 8) Arc { int head, reverse; Capacity residual, pair_sum; };

__device__ __forceinline__ int load(const int* p) { return __ldcg(p); }
__device__ __forceinline__ void store(int* p, int x) { __stcg(p, x); }
__device__ __forceinline__ void add(int* p, int x) { atomicAdd(p, x); }
__device__ __forceinline__ void add(Units* p, Units x) { atomicAdd((unsigned long long*)p, (unsigned long long)x); }
__device__ __forceinline__ Arc load(const Arc* p) {
#ifndef WIDE
    int4 x = __ldcg((const int4*)p);
    return {x.x, x.y, x.z, x.w};
#else
    int2 x = __ldcg((const int2*)p);
    return {x.x, x.y, __ldcg(&p->residual), __ldcg(&p->pair_sum)};
#endif
}

// Random weights of vertices and links, for sums that take the place of comparisons one by one: see certify.cu.
#pragma once

#include "edges.cuh"

struct Seeds { unsigned long long vertex, link; };

__device__ __forceinline__ unsigned long long weight(unsigned place, unsigned long long seed) {
    unsigned long long x = (place + seed) * 0x9E3779B97F4A7C15ull;
    return ((x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ull) | 1;
}

// The weight of an edge's capacity: of its arc `a`, the reverse of which is `r`, and, if it is undirected, of that too.
__device__ __forceinline__ unsigned long long weight_of_edge(int a, int r, int tail, int head, bool both, Seeds seeds) {
    unsigned long long link = weight(min(a, r), seeds.link), w = weight(tail, seeds.vertex) + link;
    return both ? w + weight(head, seeds.vertex) + link : w;
}

__device__ __forceinline__ Units sum_of_warp(Units x) {
    for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}

// All threads of a warp call it; `sum` lies in device or in shared memory.
__device__ __forceinline__ void add_to(unsigned long long* sum, unsigned long long share) {
    share = sum_of_warp((Units)share);
    if (threadIdx.x % 32 == 0 && share != 0) atomicAdd(sum, share);
}

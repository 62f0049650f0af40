// Groups of threads that visit a row together.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "frontier.cuh"

template <int SIZE, int EACH> struct Lanes {  // neighbouring lanes
    static constexpr int ITEMS = EACH;
    cg::thread_block_tile<SIZE> lanes;
    __device__ Lanes() : lanes(cg::tiled_partition<SIZE>(cg::this_thread_block())) {}
    __device__ int rank() const { return lanes.thread_rank(); }
    __device__ static constexpr int size() { return SIZE; }
    __device__ Units scan(Units x, Units& total) const {
        Units through = cg::inclusive_scan(lanes, x);
        total = lanes.shfl(through, SIZE - 1);
        return through;
    }
    __device__ int reduce_min(int x) const { return cg::reduce(lanes, x, cg::less<int>()); }
    __device__ Units broadcast(Units x) const { return lanes.shfl(x, 0); }
};
using Tile = Lanes<TILE, 1>;
using Warp = Lanes<32, 4>;

struct Block {  // all threads of a block
    static constexpr int ITEMS = 4;
    Units* sums;  // shared, one for each warp
    __device__ int rank() const { return threadIdx.x; }
    __device__ static constexpr int size() { return THREADS; }
    __device__ Units scan(Units x, Units& total) const {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        Units through = cg::inclusive_scan(warp, x);
        __syncthreads();
        if (warp.thread_rank() == 31) sums[threadIdx.x / 32] = through;
        __syncthreads();
        Units before = 0;
        total = 0;
        for (int i = 0; i < THREADS / 32; i++) {
            if (i < threadIdx.x / 32) before += sums[i];
            total += sums[i];
        }
        return before + through;
    }
    __device__ int reduce_min(int x) const {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        int low = cg::reduce(warp, x, cg::less<int>());
        __syncthreads();
        if (warp.thread_rank() == 0) sums[threadIdx.x / 32] = low;
        __syncthreads();
        for (int i = 0; i < THREADS / 32; i++) low = min(low, (int)sums[i]);
        return low;
    }
    __device__ Units broadcast(Units x) const {
        __syncthreads();
        if (threadIdx.x == 0) sums[0] = x;
        __syncthreads();
        x = sums[0];
        __syncthreads();
        return x;
    }
};

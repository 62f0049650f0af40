// Groups of threads that visit a row together.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "frontier.cuh"

struct Tile {               // TILE neighbouring lanes
    static constexpr int ITEMS = 1;
    cg::thread_block_tile<TILE> lanes;
    __device__ Tile() : lanes(cg::tiled_partition<TILE>(cg::this_thread_block())) {}
    __device__ int rank() const { return lanes.thread_rank(); }
    __device__ static constexpr int size() { return TILE; }
    __device__ Units scan(Units x, Units& total) const {
        Units through = cg::inclusive_scan(lanes, x);
        total = lanes.shfl(through, TILE - 1);
        return through;
    }
    __device__ int lowest(int x) const { return cg::reduce(lanes, x, cg::less<int>()); }
    __device__ Units same(Units x) const { return lanes.shfl(x, 0); }
};

struct Block {              // all threads of a block
    static constexpr int ITEMS = 4;
    Units* sums;            // shared, one for each warp
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
    __device__ int lowest(int x) const {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        int low = cg::reduce(warp, x, cg::less<int>());
        __syncthreads();
        if (warp.thread_rank() == 0) sums[threadIdx.x / 32] = low;
        __syncthreads();
        for (int i = 0; i < THREADS / 32; i++) low = min(low, (int)sums[i]);
        return low;
    }
    __device__ Units same(Units x) const {
        __syncthreads();
        if (threadIdx.x == 0) sums[0] = x;
        __syncthreads();
        x = sums[0];
        __syncthreads();
        return x;
    }
};

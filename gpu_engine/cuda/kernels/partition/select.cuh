// Who may go: for each part the longest sequence of choices, the strongest first, that keeps its limit (Lee et al.,
// iG-kway, Algorithm 4), or the shortest that brings it within its limit. No sort: the last key of each sequence is found
// by its digits, from sums of weights in 256 bins a part.
#pragma once

#include "partition/graph.cuh"

constexpr int DIGIT = 8, BINS = 1 << DIGIT;
constexpr Word EVERY = ~0ULL;

// Rises from the strongest choice to the weakest; no two vertices have the same. Strengths that differ by less than a
// single-precision number tells may be taken as equal.
__device__ __forceinline__ Word key_of(const PartitionArguments& of, int v) {
    unsigned bits = __float_as_uint((float)of.gain[v]);
    unsigned rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (Word)~rising << 32 | rank_of(v);
}

// INTO: sequences into parts with the room they have. OUT OF: sequences out of parts that are too heavy.
template <bool INTO> __device__ __forceinline__ int group_of(const PartitionArguments& of, int v) {
    return INTO ? of.target[v] : of.part[v];
}
template <bool INTO> __device__ __forceinline__ bool may_go(const PartitionArguments& of, int v) {
    Word last = of.threshold[group_of<INTO>(of, v)], key = key_of(of, v);
    return key < last || last == EVERY || (!INTO && key == last);
}

// One digit more of the last key of a sequence: the bin in which the sum of weights is reached.
template <bool INTO> __device__ void narrow(const PartitionArguments& of, const Tile& tile, int p) {
    Units* bins = of.bins + (Units)p * BINS;
    constexpr int EACH = BINS / LANES;
    int lane = tile.thread_rank();
    Units own = 0;
    for (int i = 0; i < EACH; i++) own += bins[lane * EACH + i];
    Units through = own;
    for (int step = 1; step < LANES; step *= 2) {
        Units other = tile.shfl_up(through, step);
        if (lane >= step) through += other;
    }
    Units left = of.left[p], before = through - own;
    auto reached = [&](Units sum) { return INTO ? sum > left : sum >= left; };
    Word prefix = of.threshold[p];
    tile.sync();
    if (reached(through) && !(lane > 0 && reached(before))) {
        int digit = lane * EACH;
        while (!reached(before + bins[digit])) before += bins[digit++];
        of.threshold[p] = prefix << DIGIT | (Word)digit;
        of.left[p] = left - before;
    }
    tile.sync();
    for (int i = 0; i < EACH; i++) bins[lane * EACH + i] = 0;
}

// All threads of the grid; those who would go are the vertices of a list with a target, `total` is what they weigh by
// group and is 0 afterwards. Then `may_go` tells. Ends with a barrier.
template <bool INTO>
__device__ void select(const PartitionArguments& of, const Crew& crew, const Tile& tile, const int* list, int count,
                       Tally* tally) {
    cg::grid_group grid = cg::this_grid();
    for (int p = crew.thread; p < of.k; p += crew.threads) {
        Units room = of.limit - of.part_weight[p], left = INTO ? room : -room;
        bool open = INTO ? of.total[p] > left : left > 0 && of.total[p] > left;
        of.left[p] = left;
        of.open[p] = open;
        of.threshold[p] = open ? 0 : EVERY;
        of.total[p] = 0;
        if (open) atomicAdd(&tally->open, 1);
    }
    grid.sync();
    bool any = *(volatile int*)&tally->open > 0;
    for (int shift = 64 - DIGIT; any && shift >= 0; shift -= DIGIT) {
        for (int i = crew.thread; i < count; i += crew.threads) {
            int v = list[i];
            if (of.target[v] < 0) continue;
            int p = group_of<INTO>(of, v);
            Word key = key_of(of, v);
            if (of.open[p] && (shift == 64 - DIGIT || key >> (shift + DIGIT) == of.threshold[p]))
                add(of.bins + (Units)p * BINS + (key >> shift & (BINS - 1)), of.vertex_weight[v]);
        }
        grid.sync();
        for (int p = crew.tile; p < of.k; p += crew.tiles)
            if (of.open[p]) narrow<INTO>(of, tile, p);
        grid.sync();
    }
    if (crew.thread == 0) tally->open = 0;
    grid.sync();
}

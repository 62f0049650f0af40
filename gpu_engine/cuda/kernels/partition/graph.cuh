// The graph that is partitioned, in bucket lists as gpu_engine/partition/buckets.py has them, and the books of its
// partition. All arrays stay on the device; a change of k links touches k rows.
//
// A part is a number below k; k itself is the pseudo-partition, in which vertices wait for a part; a vertex that is not
// there is nowhere, -1, and has no links. Nothing here depends on the order of a row or on who comes first: sums are of
// integers, and every choice has a rule for equals. So a graph with its partition has one outcome.
#pragma once

#include <cooperative_groups.h>

#include "layout.cuh"

namespace cg = cooperative_groups;
typedef long long Units;
typedef unsigned long long Word;

constexpr int LANES = PARTITION_LANES;  // neighbouring threads that visit a row together
typedef cg::thread_block_tile<LANES> Tile;

struct PartitionArguments {
    Units* start;  // where the row of each vertex begins
    int *used, *room, *head;
    Units* weight;  // of each slot, positive where used
    int* part;
    Units *vertex_weight, *part_weight;  // of each part, and of the pseudo-partition
    // Of each vertex, while it is listed: where it would go and what that gains, whether it goes, the last turn in which
    // it moved, and its part in the best partition so far. `target` is -1, `going` and `listed` are 0 at rest.
    int* target;
    Units* gain;
    int *going, *listed, *stamp, *best;
    int *list, *pseudo;  // vertices that are looked at; those that are or were in the pseudo-partition
    const int* touched;
    Units *total, *left;  // of each part, while choices are made: see select.cuh. `total` and `bins` are 0 at rest
    Word* threshold;
    int* open;
    Units* bins;
    struct PartitionSums* sums;
    Units limit;                                 // what a part may weigh
    int n, k, n_touched, turns, patience, from;  // see refine.cu
    int daring, pad;                             // quarters of its own links that a vertex may lose for a move
};
SAME_SIZE(PartitionArguments);
SAME_PLACE(PartitionArguments, start);
SAME_PLACE(PartitionArguments, used);
SAME_PLACE(PartitionArguments, room);
SAME_PLACE(PartitionArguments, head);
SAME_PLACE(PartitionArguments, weight);
SAME_PLACE(PartitionArguments, part);
SAME_PLACE(PartitionArguments, vertex_weight);
SAME_PLACE(PartitionArguments, part_weight);
SAME_PLACE(PartitionArguments, target);
SAME_PLACE(PartitionArguments, gain);
SAME_PLACE(PartitionArguments, going);
SAME_PLACE(PartitionArguments, listed);
SAME_PLACE(PartitionArguments, stamp);
SAME_PLACE(PartitionArguments, best);
SAME_PLACE(PartitionArguments, list);
SAME_PLACE(PartitionArguments, pseudo);
SAME_PLACE(PartitionArguments, touched);
SAME_PLACE(PartitionArguments, total);
SAME_PLACE(PartitionArguments, left);
SAME_PLACE(PartitionArguments, threshold);
SAME_PLACE(PartitionArguments, open);
SAME_PLACE(PartitionArguments, bins);
SAME_PLACE(PartitionArguments, sums);
SAME_PLACE(PartitionArguments, limit);
SAME_PLACE(PartitionArguments, n);
SAME_PLACE(PartitionArguments, k);
SAME_PLACE(PartitionArguments, n_touched);
SAME_PLACE(PartitionArguments, turns);
SAME_PLACE(PartitionArguments, patience);
SAME_PLACE(PartitionArguments, from);
SAME_PLACE(PartitionArguments, daring);

struct Tally {   // of one turn; three serve in rotation
    Word first;  // the least key among those who would go, inverted
    int gone, left, open, pad;
};

struct PartitionSums {  // zero when a refinement starts, but for `twice_cut` where it is given
    Units twice_cut;
    int listed, waiting;  // lengths of the two lists
    int rounds, turns;    // how many there were
    int stuck, pad;       // 1: a part is too heavy, and nobody could leave it
    Tally tally[3];
};
SAME_SIZE(PartitionSums);
SAME_PLACE(PartitionSums, twice_cut);
SAME_PLACE(PartitionSums, listed);
SAME_PLACE(PartitionSums, waiting);
SAME_PLACE(PartitionSums, rounds);
SAME_PLACE(PartitionSums, turns);
SAME_PLACE(PartitionSums, stuck);
SAME_PLACE(PartitionSums, tally);

__device__ __forceinline__ void add(Units* sum, Units x) { atomicAdd((Word*)sum, (Word)x); }

// A number that no other vertex has, mixed so that neighbours are in no order.
__device__ __forceinline__ unsigned rank_of(int v) {
    unsigned x = (unsigned)v;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 16;
}

__device__ __forceinline__ Units sum_up(const Tile& tile, Units x) {
    for (int step = LANES / 2; step > 0; step /= 2) x += tile.shfl_xor(x, step);
    return x;
}

// The threads of the grid, one by one and in tiles.
struct Crew {
    int thread, threads, tile, tiles;
    __device__ Crew()
        : thread(blockIdx.x * blockDim.x + threadIdx.x),
          threads(gridDim.x * blockDim.x),
          tile(thread / LANES),
          tiles(threads / LANES) {}
};

struct Choice {
    int part;  // -1: none
    Units links, weighs;
    __device__ __forceinline__ bool beats(const Choice& other) const {
        if (part < 0 || other.part < 0) return part >= 0;
        if (links != other.links) return links > other.links;
        return weighs != other.weighs ? weighs < other.weighs : part < other.part;
    }
};

// What links a vertex to each part, summed by a tile in shared memory of k + 1 words, all zero between two looks.
struct Look {
    const PartitionArguments& of;
    Tile tile;
    Units* to;

    __device__ void sum(int v) const {
        Units begin = of.start[v];
        for (int i = tile.thread_rank(); i < of.used[v]; i += LANES)
            add(to + of.part[of.head[begin + i]], of.weight[begin + i]);
        tile.sync();
    }
    __device__ void clear(int v) const {
        tile.sync();
        Units begin = of.start[v];
        for (int i = tile.thread_rank(); i < of.used[v]; i += LANES) to[of.part[of.head[begin + i]]] = 0;
        tile.sync();
    }
    __device__ bool takes(int p, Units weight) const { return of.part_weight[p] + weight <= of.limit; }
    // The part other than `own` that most links v to it; of equal ones the lightest, then the first. Among those with
    // room if `fits`, and then `light` counts as well.
    __device__ Choice best(int v, int own, bool fits, int light) const {
        Units begin = of.start[v], mine = of.vertex_weight[v];
        Choice found{-1, 0, 0};
        if (fits && light != own && takes(light, mine)) found = {light, to[light], of.part_weight[light]};
        for (int i = tile.thread_rank(); i < of.used[v]; i += LANES) {
            int p = of.part[of.head[begin + i]];
            if (p == own || p == of.k || (fits ? !takes(p, mine) : mine > of.limit)) continue;
            Choice other{p, to[p], of.part_weight[p]};
            if (other.beats(found)) found = other;
        }
        for (int step = LANES / 2; step > 0; step /= 2) {
            Choice other{tile.shfl_xor(found.part, step), tile.shfl_xor(found.links, step),
                         tile.shfl_xor(found.weighs, step)};
            if (other.beats(found)) found = other;
        }
        return found;
    }
};

// What links v to other parts (x), and to its own (y); for all lanes.
struct Pull { Units outward, inward; };
__device__ __forceinline__ Pull pull(const PartitionArguments& of, const Tile& tile, int v) {
    Units begin = of.start[v], outward = 0, inward = 0;
    for (int i = tile.thread_rank(); i < of.used[v]; i += LANES)
        (of.part[of.head[begin + i]] == of.part[v] ? inward : outward) += of.weight[begin + i];
    return {sum_up(tile, outward), sum_up(tile, inward)};
}

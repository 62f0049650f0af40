// What all threads of a refinement have at hand: who they are, what they look with, and how a vertex is listed or moves.
#pragma once

#include "partition/select.cuh"

constexpr int TALLIES = 3;
constexpr int NEVER = -2, WAITED = -3;  // stamps of those who have not moved in a turn

struct Worker {
    const PartitionArguments& of;
    Crew crew;
    Tile tile;
    Look look;
    cg::grid_group grid;
    Tally* tally;
    int light;   // the lightest part
    bool heavy;  // a part is too heavy

    __device__ Worker(const PartitionArguments& given, Units* table)
        : of(given),
          tile(cg::tiled_partition<LANES>(cg::this_thread_block())),
          look{given, tile, table + threadIdx.x / LANES * (given.k + 1)},
          grid(cg::this_grid()),
          tally(nullptr),
          light(0),
          heavy(false) {}

    __device__ int listed() const { return *(volatile int*)&of.sums->listed; }
    __device__ int waiting() const { return *(volatile int*)&of.sums->waiting; }

    // Between two barriers at which nothing changes what parts weigh.
    __device__ void weigh() {
        Choice found{-1, 0, 0};
        int too_heavy = 0;
        for (int p = tile.thread_rank(); p < of.k; p += LANES) {
            Units weighs = of.part_weight[p];
            too_heavy |= weighs > of.limit;
            Choice other{p, 0, weighs};
            if (other.beats(found)) found = other;
        }
        for (int step = LANES / 2; step > 0; step /= 2) {
            Choice other{tile.shfl_xor(found.part, step), 0, tile.shfl_xor(found.weighs, step)};
            too_heavy |= tile.shfl_xor(too_heavy, step);
            if (other.beats(found)) found = other;
        }
        light = found.part;
        heavy = too_heavy != 0;
    }
    // Three tallies in rotation: the next one is cleared while nobody looks at it.
    __device__ void begin_turn(int turn) {
        tally = of.sums->tally + turn % TALLIES;
        if (crew.thread == 0) of.sums->tally[(turn + 1) % TALLIES] = Tally{0, 0, 0, 0, 0};
    }
    __device__ void list(int v) const {
        if (atomicExch(of.listed + v, 1)) return;
        of.stamp[v] = NEVER;
        of.list[atomicAdd(&of.sums->listed, 1)] = v;
    }
    __device__ void shift(int v, int to) const {
        Units weight = of.vertex_weight[v];
        add(of.part_weight + of.part[v], -weight);
        add(of.part_weight + to, weight);
        of.part[v] = to;
    }
    // A vertex that is listed is to be in the pseudo-partition; `best` keeps where it was until `settle` is done.
    __device__ void wait_for_part(int v) const {
        of.stamp[v] = WAITED;
        of.best[v] = of.part[v];
        of.pseudo[atomicAdd(&of.sums->waiting, 1)] = v;
    }
};

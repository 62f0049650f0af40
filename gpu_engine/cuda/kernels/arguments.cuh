// What the host gives a drain, and the record of its work that it reads back.
#pragma once

#include "layout.cuh"
#include "row.cuh"

struct DrainProgress {  // shared with the host
    int cancel;
    int status;   // ENDED_DRAIN, CANCELLED_DRAIN, or LEFT_DRAIN: some excess is left to waves
    int cut_off;  // some excess could not reach any target: the vertices it can reach moved to the other side
    int pad;
    Units gained;  // change of the flow's value by that move
    Units pushes, relabels, global_relabels, arcs_scanned, rounds, levels, grid_steps, cluster_steps;
};
SAME_SIZE(DrainProgress);
SAME_PLACE(DrainProgress, cancel);
SAME_PLACE(DrainProgress, status);
SAME_PLACE(DrainProgress, cut_off);
SAME_PLACE(DrainProgress, gained);
SAME_PLACE(DrainProgress, pushes);
SAME_PLACE(DrainProgress, relabels);
SAME_PLACE(DrainProgress, global_relabels);
SAME_PLACE(DrainProgress, arcs_scanned);
SAME_PLACE(DrainProgress, rounds);
SAME_PLACE(DrainProgress, levels);
SAME_PLACE(DrainProgress, grid_steps);
SAME_PLACE(DrainProgress, cluster_steps);

struct GridMemory {  // of a drain that is no wave: device only, zeroed by the host
    Summary barrier_words[2];
    int search_tails[6], active_tails[6];
    int n_hubs;
    int dropped;          // some excess was found to be cut off
    int has_long_rows;    // of vertices that may become active
    int farthest;         // the highest label of a vertex that is active at first
    int broadcast[2][8];  // the leading cluster's state, for the other blocks
};
static_assert(sizeof(GridMemory) <= GRID_MEMORY_BYTES, "the host gives a drain too little memory");

struct DrainArguments {
    const int* row_offsets;
    Arc* arcs;
    Units* excess;
    const signed char* role;
    bool* source_side;
    int* labels;  // of each vertex, as the last drain of its side left it, or UNKNOWN_LABEL
    Vertex* vertices;
    Entry *search_even, *search_odd, *active_even, *active_odd, *long_even, *long_odd;  // lists of frontiers
    int* hubs;             // space for the vertices with rows of more than HUB_ROW arcs
    int *marks, *targets;  // of waves: n each
    GridMemory* memory;
    DrainProgress* progress;
    int n;
    float patience;  // rounds between two global relabels, by the depth of the last one
    int trust;       // the drain begins with `labels` if no active vertex has a higher one; 0: never
    int small;       // frontiers up to this size go to the leading cluster
    int round_limit;
    int deep, deepest;  // a search of so many levels leaves the rest to waves, in a repair the second one; 0: none does
    int capacity;       // of search_even and search_odd: one for each vertex and more
};
SAME_SIZE(DrainArguments);
SAME_PLACE(DrainArguments, row_offsets);
SAME_PLACE(DrainArguments, arcs);
SAME_PLACE(DrainArguments, excess);
SAME_PLACE(DrainArguments, role);
SAME_PLACE(DrainArguments, source_side);
SAME_PLACE(DrainArguments, labels);
SAME_PLACE(DrainArguments, vertices);
SAME_PLACE(DrainArguments, search_even);
SAME_PLACE(DrainArguments, search_odd);
SAME_PLACE(DrainArguments, active_even);
SAME_PLACE(DrainArguments, active_odd);
SAME_PLACE(DrainArguments, long_even);
SAME_PLACE(DrainArguments, long_odd);
SAME_PLACE(DrainArguments, hubs);
SAME_PLACE(DrainArguments, marks);
SAME_PLACE(DrainArguments, targets);
SAME_PLACE(DrainArguments, memory);
SAME_PLACE(DrainArguments, progress);
SAME_PLACE(DrainArguments, n);
SAME_PLACE(DrainArguments, patience);
SAME_PLACE(DrainArguments, trust);
SAME_PLACE(DrainArguments, small);
SAME_PLACE(DrainArguments, round_limit);
SAME_PLACE(DrainArguments, deep);
SAME_PLACE(DrainArguments, deepest);
SAME_PLACE(DrainArguments, capacity);

// ---- the record of the work -----------------------------------------------------------------------------------

struct StepCounters { int searches, rounds, levels, grid, cluster; };  // right in the leading cluster

// Add what all threads have to `*to`.
__device__ __forceinline__ void add_up(Units* to, Units mine) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    Units sum = cg::reduce(warp, mine, cg::plus<Units>());
    if (warp.thread_rank() == 0 && sum != 0) add(to, sum);
}

// Add what the threads have counted since the last call to the record, where the host can see it. `first`: this thread is
// the first of all.
__device__ __forceinline__ void publish(DrainProgress* progress, ThreadCounters& counters, const StepCounters& steps,
                                        bool first) {
    add_up(&progress->pushes, counters.pushes);
    add_up(&progress->relabels, counters.relabels);
    add_up(&progress->arcs_scanned, counters.scanned);
    counters.pushes = counters.relabels = 0, counters.scanned = 0;
    if (!first) return;
    progress->global_relabels = steps.searches;
    progress->rounds = steps.rounds;
    progress->levels = steps.levels;
    progress->grid_steps = steps.grid;
    progress->cluster_steps = steps.cluster;
}

// Give the block's hot sink what its threads have pushed into it.
template <bool MIRROR>
__device__ __forceinline__ void fill_hot_sink(const Graph& g, int hot_sink, const ThreadCounters& counters) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    Units sum = cg::reduce(warp, counters.into_hot_sink, cg::plus<Units>());
    if (warp.thread_rank() == 0 && sum != 0) add_excess<MIRROR>(g, hot_sink, sum);
}

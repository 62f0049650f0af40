// The memory that the host gives a drain, and the record that it reads back.
#pragma once

#include "layout.cuh"
#include "row.cuh"

struct DrainProgress {  // shared with the host
    int cancel;
    int status;   // 0 done, 1 cancelled, 2 round limit
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

struct GridMemory {  // device only, zeroed by the host
    Word barrier_words[2];
    int search_tails[9], active_tails[9];
    int n_hubs;
    int dropped;          // some excess was found to be cut off
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
    int* hubs;  // space for the vertices with rows of more than HUB_ROW arcs
    GridMemory* memory;
    DrainProgress* progress;
    int n;
    float patience;  // rounds between two global relabels, by the depth of the last one
    int trust;       // the drain begins with `labels` if no active vertex has a higher one; 0: never
    int small;       // frontiers up to this size go to the leading cluster
    int round_limit;
    int pad;
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
SAME_PLACE(DrainArguments, memory);
SAME_PLACE(DrainArguments, progress);
SAME_PLACE(DrainArguments, n);
SAME_PLACE(DrainArguments, patience);
SAME_PLACE(DrainArguments, trust);
SAME_PLACE(DrainArguments, small);
SAME_PLACE(DrainArguments, round_limit);

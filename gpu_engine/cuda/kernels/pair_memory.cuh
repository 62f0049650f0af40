// The network in which pairs are solved, and what a warp has to itself while it solves one.
#pragma once

#include "arc.cuh"
#include "layout.cuh"

__device__ constexpr unsigned ALL_LANES = 0xffffffffu;
__device__ constexpr Units OPEN = OPEN_PAIR, UNLIMITED = UNLIMITED_PAIR;
__device__ constexpr Units MORE = (1LL << 60) + 1;     // more than any finite cut
__device__ constexpr Units WITHOUT_LIMIT = 1LL << 61;  // INFINITE_RESIDUAL of gpu_engine/types.py

struct PairArc {
    int head, reverse;
    Units capacity, backward;  // of the arc and of its reverse
};
SAME_SIZE(PairArc);
SAME_PLACE(PairArc, head);
SAME_PLACE(PairArc, reverse);
SAME_PLACE(PairArc, capacity);
SAME_PLACE(PairArc, backward);

struct PairNetwork {
    const int* row_offsets;
    const PairArc* arcs;
};

struct __align__(16) Node {
    int mark;   // of the search that has found it
    int arc;    // by which it was found: towards the sink, whichever side has found it
    int from;   // the vertex that has found it
    int depth;  // vertices before it
};

struct PairArguments {
    const int* row_offsets;
    const PairArc* arcs;
    const int *sources, *sinks;
    Units* values;  // out: proven, or OPEN, or UNLIMITED
    int* next;      // the next pair that a warp takes
    const int* cancel;
    Units* memory;  // of all warps, `memory_words` for each; zero before and after but for the nodes
    long long memory_words;
    int* epochs;  // the last mark of each warp
    int n_pairs, n, n_arcs, log_size;
    int most_visits;  // vertices that a search may visit before it is given up
    int pad;
};
SAME_SIZE(PairArguments);
SAME_PLACE(PairArguments, row_offsets);
SAME_PLACE(PairArguments, arcs);
SAME_PLACE(PairArguments, sources);
SAME_PLACE(PairArguments, sinks);
SAME_PLACE(PairArguments, values);
SAME_PLACE(PairArguments, next);
SAME_PLACE(PairArguments, cancel);
SAME_PLACE(PairArguments, memory);
SAME_PLACE(PairArguments, memory_words);
SAME_PLACE(PairArguments, epochs);
SAME_PLACE(PairArguments, n_pairs);
SAME_PLACE(PairArguments, n);
SAME_PLACE(PairArguments, n_arcs);
SAME_PLACE(PairArguments, log_size);
SAME_PLACE(PairArguments, most_visits);

// What one warp has, in the order of `warp_words` in gpu_engine/cuda/launch/pairs.py.
struct PairMemory {
    Node* nodes;     // n
    Units* pushed;   // n_arcs: what flows on an arc, less than 0 where it flows on the reverse; 0 between two pairs
    Units* net;      // n: of the proof; 0 between two pairs
    Units* units;    // log_size: of the proof, beside the arcs of the log
    int* queues[2];  // n each: vertices found from the source, and from the sink
    int* log;        // log_size: arcs on which flow was pushed, some of them several times

    __device__ PairMemory(const PairArguments& given, int warp) {
        Units* at = given.memory + warp * given.memory_words;
        nodes = (Node*)at, at += 2LL * given.n;
        pushed = at, at += given.n_arcs;
        net = at, at += given.n;
        units = at, at += given.log_size;
        queues[0] = (int*)at, queues[1] = queues[0] + given.n, log = queues[1] + given.n;
    }
};

// `ecl`: VanAusdal, Burtscher, ECL-MaxFlow, Algorithms 4-7, phase 1: a warp for each vertex of a worklist, in rounds and
// in the search; timestamps keep a vertex from being listed twice. warps.cuh describes the race and its repair.
// Residuals are read from the engine's records, not derived from flows and capacities as in the paper.

#include "presets/warps.cuh"

struct Worklist {  // the next one
    int* vertices;
    int* length;
    int* stamp;
    int round;
    __device__ void operator()(int v) const {
        if (atomicMax(stamp + v, round) != round) vertices[atomicAdd(length, 1)] = v;
    }
};

#define WORKLIST int* list, int length, int* vertices, int* next_length, int* stamp, int round
#define NEXT Worklist{vertices, next_length, stamp, round}

extern "C" __global__ void push(REGION, RECORDS, WORKLIST) { push_listed(THE_REGION, THE_RECORDS, list, length, NEXT); }
extern "C" __global__ void relabel(REGION, RECORDS, WORKLIST) {
    relabel_listed(THE_REGION, THE_RECORDS, list, length, NEXT);
}

// Heights before a search, and its first worklist. `id` is negative and falls from search to search, while rounds are
// positive and rise: one array of timestamps serves both and is never reset.
extern "C" __global__ void start_search(REGION, int* vertices, int* next_length, int* stamp, int id) {
    Region region = THE_REGION;
    for (int v = thread(); v < n; v += threads()) {
        bool target = role[v] == TARGET || (role[v] == INSIDE && region.excess_of(v) < 0);
        store(height + v, target ? 0 : n);
        if (!target) continue;
        stamp[v] = id;
        vertices[atomicAdd(next_length, 1)] = v;
    }
}

extern "C" __global__ void search(REGION, RECORDS, const int* list, int length, int* vertices, int* next_length, int* stamp,
                                  int id, int level) {
    Records layout = THE_RECORDS;
    ThreadCounters counters;
    for (int i = warp(); i < length; i += warps()) {
        int v = list[i], degree = layout.degree(v);
        if (lane() == 0) counters.scanned += degree;
        for (int k = lane(); k < degree; k += 32) {
            Neighbour w = layout.at(v, k);
            if (w.reverse_residual <= 0 || role[w.vertex] != INSIDE || atomicMin(stamp + w.vertex, id) == id) continue;
            store(height + w.vertex, level);
            vertices[atomicAdd(next_length, 1)] = w.vertex;
        }
    }
    counters.add_to(totals);
}

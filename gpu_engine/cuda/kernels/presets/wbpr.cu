// `wbpr-{tc,vc}-{rcsr,bcsr}`: Hsieh, Lin, Kuo, Algorithms 1 (thread-centric) and 2 (vertex-centric) on their two
// layouts. lockfree.cuh and warps.cuh describe the races and their repairs: cancelled violations in the first case,
// separate launches in the second.

#include "presets/lockfree.cuh"
#include "presets/warps.cuh"

// Bidirectional CSR (section 3.2): the engine's rows, which are sorted, without use of their reverse index.
struct Bcsr : Records {
    __device__ void move(int u, Neighbour to, Units amount) const {
        int low = row_offsets[to.vertex], high = row_offsets[to.vertex + 1];
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (arcs[middle].head < u) low = middle + 1;
            else high = middle;
        }
        shift(to.slot, low, amount);
    }
};

// Reversed CSR (section 3.2), a copy: one forward entry a link, with the residuals of both directions, and for each
// vertex the entries that lead to it. A slot is the entry, or its complement when it is used backwards.
struct Rcsr {
    const int* row_offsets;
    const int* head;
    Capacity* with;
    Capacity* against;
    const int* back_offsets;
    const int* back_head;
    const int* entry;

    __device__ int degree(int u) const {
        return row_offsets[u + 1] - row_offsets[u] + back_offsets[u + 1] - back_offsets[u];
    }
    __device__ Neighbour at(int u, int i) const {
        int j = row_offsets[u] + i, end = row_offsets[u + 1];
        if (j < end) return {head[j], j, __ldcg(with + j), __ldcg(against + j)};
        int k = back_offsets[u] + j - end;
        j = entry[k];
        return {back_head[k], ~j, __ldcg(against + j), __ldcg(with + j)};
    }
    __device__ void move(int, Neighbour to, Units amount) const {
        bool backwards = to.slot < 0;
        int j = backwards ? ~to.slot : to.slot;
        add(backwards ? against + j : with + j, (Capacity)-amount);
        add(backwards ? with + j : against + j, (Capacity)amount);
    }
};

struct NoWorklist {
    __device__ void operator()(int) const {}
};  // the list is collected anew each round

#define BCSR RECORDS
#define THE_BCSR Bcsr{{row_offsets, arcs, sign}}
#define RCSR const int* row_offsets, const int* head, Capacity* with, Capacity* against, const int* back_offsets, \
    const int* back_head, const int* entry
#define THE_RCSR Rcsr{row_offsets, head, with, against, back_offsets, back_head, entry}

#define FOR_LAYOUT(suffix, LAYOUT, THE_LAYOUT)                                                                       \
    extern "C" __global__ void search_##suffix(REGION, LAYOUT, int level, int unseen, int* deepest) {                \
        search_level(THE_REGION, THE_LAYOUT, level, unseen, deepest);                                                \
    }                                                                                                                \
    extern "C" __global__ void push_relabel_##suffix(REGION, LAYOUT, int cycles, int* busy) {                        \
        local_operations<false>(THE_REGION, THE_LAYOUT, nullptr, n, cycles, busy);                                   \
    }                                                                                                                \
    extern "C" __global__ void cancel_##suffix(REGION, LAYOUT) {                                                     \
        cancel_all_violations<false>(THE_REGION, THE_LAYOUT, nullptr, n);                                            \
    }                                                                                                                \
    extern "C" __global__ void push_##suffix(REGION, LAYOUT, int* list, int length) {                                \
        push_listed(THE_REGION, THE_LAYOUT, list, length, NoWorklist{});                                                 \
    }                                                                                                                \
    extern "C" __global__ void relabel_##suffix(REGION, LAYOUT, const int* list, int length) {                       \
        relabel_listed(THE_REGION, THE_LAYOUT, list, length, NoWorklist{});                                              \
    }

FOR_LAYOUT(bcsr, BCSR, THE_BCSR)
FOR_LAYOUT(rcsr, RCSR, THE_RCSR)

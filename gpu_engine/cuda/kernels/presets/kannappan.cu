// `dyn-topo`, `dyn-data`, `dyn-push-pull` and `alt-pp`: Kannappan, Kumar, Nasre, Algorithms 1-6 and section 5.2; see
// lockfree.cuh for the rule and its repair (their Algorithm 3).

#include "presets/lockfree.cuh"

extern "C" __global__ void search(REGION, RECORDS, int level, int unseen, int* deepest) {
    search_level(THE_REGION, THE_RECORDS, level, unseen, deepest);
}
extern "C" __global__ void push_relabel(REGION, RECORDS, int cycles, int* busy) {
    local_operations<false>(THE_REGION, THE_RECORDS, nullptr, n, cycles, busy);
}
extern "C" __global__ void remove_invalid(REGION, RECORDS) {
    cancel_all_violations<false>(THE_REGION, THE_RECORDS, nullptr, n);
}
extern "C" __global__ void push_relabel_listed(REGION, RECORDS, int cycles, int* busy, const int* list, int length) {
    local_operations<true>(THE_REGION, THE_RECORDS, list, length, cycles, busy);
}
// Only who was active can have risen: the list holds all tails of steep arcs.
extern "C" __global__ void remove_invalid_listed(REGION, RECORDS, const int* list, int length) {
    cancel_all_violations<true>(THE_REGION, THE_RECORDS, list, length);
}

// Fill every arc from an ordinary vertex to a sink (section 5.2.2). Deficits remain at the tails and are the targets
// from now on. The one kernel that sends more than there is: it is what the paper's static push-pull starts with.
extern "C" __global__ void saturate_sinks(REGION, RECORDS) {
    Region region = THE_REGION;
    Records layout = THE_RECORDS;
    ThreadCounters counters;
    for (int u = thread(); u < n; u += threads()) {
        if (role[u] != INSIDE) continue;
        int degree = layout.degree(u);
        for (int i = 0; i < degree; i++) {
            Neighbour v = layout.at(u, i);
            if (v.residual <= 0 || role[v.vertex] != TARGET) continue;
            layout.move(u, v, v.residual);
            region.add_excess(v.vertex, v.residual);
            region.add_excess(u, -v.residual);
            counters.pushes++;
        }
        counters.scanned += degree;
    }
    counters.add_to(totals);
}

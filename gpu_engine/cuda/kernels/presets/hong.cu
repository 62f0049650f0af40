// `hong-lockfree`: Gutierrez Mota 2012, chapter 4, after Hong 2008: see lockfree.cuh for the rule and its repair.

#include "presets/lockfree.cuh"

extern "C" __global__ void search(REGION, RECORDS, int level, int unseen, int* deepest) {
    search_level(THE_REGION, THE_RECORDS, level, unseen, deepest);
}
extern "C" __global__ void push_relabel(REGION, RECORDS, int cycles, int* busy) {
    local_operations<false>(THE_REGION, THE_RECORDS, nullptr, n, cycles, busy);
}
extern "C" __global__ void cancel(REGION, RECORDS) { cancel_all_violations<false>(THE_REGION, THE_RECORDS, nullptr, n); }

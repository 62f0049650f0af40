// Rows of a flow state with new arcs at their ends. The k new arcs are sorted by tail; `ends[j]` is where the row of the
// tail of new arc j ended before, so these rise too, and new arc j goes to ends[j] + j.

#include "arc.cuh"
#include "layout.cuh"

constexpr int NO_EDGE_ARC = -1;

// How many of the rising numbers are at most x.
__device__ __forceinline__ int count_up_to(int k, const int* rising, int x) {
    int low = 0, high = k;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (__ldg(rising + middle) <= x) low = middle + 1;
        else high = middle;
    }
    return low;
}
// Where an arc of before is now: behind all new ones of rows that ended before it.
__device__ __forceinline__ int moved(int k, const int* ends, int arc) { return arc + count_up_to(k, ends, arc); }

extern "C" __global__ void move_rows(int n, int n_before, const int* offsets_before, int k, const int* new_tail,
                                     int* offsets) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v <= n; v += gridDim.x * blockDim.x)
        offsets[v] = offsets_before[min(v, n_before)] + count_up_to(k, new_tail, v - 1);
}

extern "C" __global__ void move_arcs(int n_arcs, const Arc* before, int k, const int* ends, Arc* arcs) {
    for (unsigned a = blockIdx.x * blockDim.x + threadIdx.x; a < n_arcs; a += gridDim.x * blockDim.x) {
        Arc x = before[a];
        x.reverse = moved(k, ends, x.reverse);
        arcs[moved(k, ends, a)] = x;
    }
}

extern "C" __global__ void move_edges(int m, const int* before, int k, const int* ends, int* edge_arc) {
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < m; row += gridDim.x * blockDim.x)
        edge_arc[row] = before[row] < 0 ? before[row] : moved(k, ends, before[row]);
}

// New arcs have no capacity yet. `reverse` is the place of each one's reverse among them.
extern "C" __global__ void place_arcs(int k, const int* ends, const int* head, const int* reverse, Arc* arcs) {
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < k; j += gridDim.x * blockDim.x) {
        int r = reverse[j];
        arcs[ends[j] + j] = {head[j], ends[r] + r, 0, 0};
    }
}

// The arcs of new edges. `new_arc` is the number of a new arc, or OLD_LINK: then a warp looks for the link in the shorter
// one of the two rows; all else are self-loops. `missed` counts links that were not found.
extern "C" __global__ void place_edges(int count, const int* tail, const int* head, const int* new_arc, const int* ends,
                                       const int* offsets, const Arc* arcs, int* edge_arc, int* missed) {
    int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += warps) {
        int j = new_arc[i], found = NO_EDGE_ARC;
        if (j >= 0) found = ends[j] + j;
        if (j == OLD_LINK) {
            int u = tail[i], v = head[i];
            bool turned = offsets[u + 1] - offsets[u] > offsets[v + 1] - offsets[v];
            int row = turned ? v : u, other = turned ? u : v;
            for (int base = offsets[row]; base < offsets[row + 1] && found < 0; base += 32) {
                int a = base + lane;
                unsigned here = __ballot_sync(0xffffffffu, a < offsets[row + 1] && arcs[a].head == other);
                if (here != 0) found = base + __ffs(here) - 1;
            }
            if (found >= 0 && turned) found = arcs[found].reverse;
            if (found < 0 && lane == 0) atomicAdd(missed, 1);
        }
        if (lane == 0) edge_arc[i] = found;
    }
}

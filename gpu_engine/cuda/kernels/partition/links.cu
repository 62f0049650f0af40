// Bucket lists on the device: made from compressed rows, packed anew, and changed by batches (Lee et al., iG-kway,
// Algorithms 1 and 2). A batch comes by rows: all changes of a vertex's links together, in any order, since no link
// weighs less than nothing on the way: what is taken away was there before.

#include "partition/graph.cuh"

// The weights of all edges of each link, on both of its arcs. `weight` is int64 or, of edges that weigh 1, int8.
template <typename Given>
__device__ void sum_links(int m, const int* edge_arc, const int* reverse_arc, const Given* weight, Units* total) {
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < m; e += gridDim.x * blockDim.x) {
        int a = edge_arc[e];
        if (a < 0 || weight[e] == 0) continue;
        add(total + a, weight[e]);
        add(total + reverse_arc[a], weight[e]);
    }
}
extern "C" __global__ void link_weights(int m, const int* edge_arc, const int* reverse_arc, const Units* weight,
                                        Units* total) {
    sum_links(m, edge_arc, reverse_arc, weight, total);
}
extern "C" __global__ void link_weights_of_ones(int m, const int* edge_arc, const int* reverse_arc,
                                                const signed char* weight, Units* total) {
    sum_links(m, edge_arc, reverse_arc, weight, total);
}

// How many slots of each row have a weight.
extern "C" __global__ void count_links(int n, const Units* begin, const int* count, const Units* weight, int* used) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        int found = 0;
        for (int i = 0; i < count[v]; i++) found += weight[begin[v] + i] > 0;
        used[v] = found;
    }
}
// Those that have one, to where the rows are now.
extern "C" __global__ void fill_rows(int n, const Units* begin, const int* count, const int* head_before,
                                     const Units* weight_before, const Units* start, int* head, Units* weight) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        Units at = start[v];
        for (int i = 0; i < count[v]; i++) {
            Units a = begin[v] + i;
            if (weight_before[a] <= 0) continue;
            head[at] = head_before[a];
            weight[at++] = weight_before[a];
        }
    }
}

// Slots that the rows of a batch need, each as if none of its links were there yet. `first` int[rows + 1]: where the
// changes of each row begin. `needed` is their sum.
__device__ __forceinline__ int wanted(int used, int room, int more) {
    if (used + more <= room) return 0;
    int twice = 2 * room, whole = (used + more + BUCKET_SLOTS - 1) / BUCKET_SLOTS * BUCKET_SLOTS;
    return twice > whole ? twice : whole;
}
extern "C" __global__ void reserve(int rows, const int* vertex, const int* first, const int* used, const int* room,
                                   Units* needed) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) {
        int v = vertex[i], more = wanted(used[v], room[v], first[i + 1] - first[i]);
        if (more) add(needed, more);
    }
}
// A tile for each row. The list has room for what `reserve` has counted. `missed` counts links that would weigh less than
// nothing. `ends` has where the next row goes that has to move, and the room of the widest row. Each link comes twice,
// so `twice_cut` stays right.
extern "C" __global__ void change_links(int rows, const int* vertex, const int* first, const int* neighbour,
                                        const Units* change, Units* start, int* used, int* room, int* head, Units* weight,
                                        Units* ends, const int* part, Units* twice_cut, Units* missed) {
    Tile tile = cg::tiled_partition<LANES>(cg::this_thread_block());
    int lane = tile.thread_rank(), tiles = gridDim.x * blockDim.x / LANES;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / LANES; i < rows; i += tiles) {
        int v = vertex[i], count = used[v], more = wanted(count, room[v], first[i + 1] - first[i]);
        Units begin = start[v], cut = 0;
        if (more) {
            Units place = 0;
            if (lane == 0) {
                place = (Units)atomicAdd((Word*)ends, (Word)more);
                atomicMax((Word*)ends + 1, (Word)more);
            }
            place = tile.shfl(place, 0);
            for (int a = lane; a < count; a += LANES)
                head[place + a] = head[begin + a], weight[place + a] = weight[begin + a];
            begin = place;
            tile.sync();
            if (lane == 0) start[v] = place, room[v] = more;
        }
        for (int j = first[i]; j < first[i + 1]; j++) {
            int u = neighbour[j], found = -1;
            for (int base = 0; base < count && found < 0; base += LANES) {
                unsigned here = tile.ballot(base + lane < count && head[begin + base + lane] == u);
                if (here) found = base + __ffs(here) - 1;
            }
            tile.sync();
            if (lane == 0) {
                int at = found < 0 ? count : found;
                Units now = (found < 0 ? 0 : weight[begin + at]) + change[j];
                if (now < 0) add(missed, 1);
                if (part[u] != part[v]) cut += change[j];
                if (now > 0) head[begin + at] = u, weight[begin + at] = now;
                else if (found >= 0)
                    head[begin + at] = head[begin + count - 1], weight[begin + at] = weight[begin + count - 1];
                count += now > 0 ? found < 0 : -(found >= 0);
            }
            count = tile.shfl(count, 0);
            tile.sync();
        }
        if (lane == 0) used[v] = count;
        if (lane == 0 && cut) add(twice_cut, cut);
    }
}

// Vertices that have come, gone, or weigh something else: who comes is in the pseudo-partition, who is gone nowhere.
// `weight` is -1 for those that are gone.
extern "C" __global__ void enter_vertices(int count, const Units* vertex, const Units* weight, int k, int* part,
                                          Units* vertex_weight, Units* part_weight) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        int v = (int)vertex[i], p = part[v];
        if (p >= 0) add(part_weight + p, -vertex_weight[v]);
        p = weight[i] < 0 ? -1 : p < 0 ? k : p;
        if (p >= 0) add(part_weight + p, weight[i]);
        part[v] = p;
        vertex_weight[v] = max(weight[i], (Units)0);
    }
}

// What each part weighs.
extern "C" __global__ void weigh_parts(int n, const int* part, const Units* vertex_weight, int k, Units* part_weight) {
    extern __shared__ Units table[];
    for (int p = threadIdx.x; p <= k; p += blockDim.x) table[p] = 0;
    __syncthreads();
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
        if (part[v] >= 0) add(table + part[v], vertex_weight[v]);
    __syncthreads();
    for (int p = threadIdx.x; p <= k; p += blockDim.x)
        if (table[p]) add(part_weight + p, table[p]);
}

// How many vertices had a part before and have another one now; those that were deleted have none.
extern "C" __global__ void count_moved(int n, const int* before, const int* part, Units* moved) {
    int found = 0;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
        found += before[v] >= 0 && part[v] >= 0 && before[v] != part[v];
    if (found) add(moved, found);
}

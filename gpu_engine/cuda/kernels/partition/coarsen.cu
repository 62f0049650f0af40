// Vertices drawn together in groups of two or three, as the constrained coarsening of iG-kway bounds them (Lee et al.,
// section IV): in each round a vertex without a group points at the neighbour without one that most links it, and two
// that point at each other are a group. What is left over after some rounds pairs off with another one of the same
// strongest neighbour, as leaves of a star do.

#include "partition/graph.cuh"

// Equal links are in an order that both of their ends see, so that many point at each other.
__device__ __forceinline__ unsigned order_of(int u, int v) {
    return rank_of((int)(rank_of(min(u, v)) ^ __brev(rank_of(max(u, v)))));
}

// `points` int[n]: -1 where nobody can be pointed at. With `any` also at vertices that have a group, whatever they weigh.
extern "C" __global__ void point(int n, const Units* start, const int* used, const int* head, const Units* weight,
                                 const Units* vertex_weight, const int* there, Units heaviest, int any, const int* leader,
                                 int* points) {
    Tile tile = cg::tiled_partition<LANES>(cg::this_thread_block());
    int tiles = gridDim.x * blockDim.x / LANES;
    for (int v = (blockIdx.x * blockDim.x + threadIdx.x) / LANES; v < n; v += tiles) {
        if (there[v] < 0 || leader[v] >= 0) continue;
        Units mine = vertex_weight[v], links = 0;
        unsigned order = 0;
        int found = -1;
        for (int i = tile.thread_rank(); i < used[v]; i += LANES) {
            int u = head[start[v] + i];
            if (!any && (leader[u] >= 0 || mine + vertex_weight[u] > heaviest)) continue;
            Units w = weight[start[v] + i];
            unsigned at = order_of(u, v);
            if (found < 0 || w > links || (w == links && (at > order || (at == order && u < found))))
                found = u, links = w, order = at;
        }
        for (int step = LANES / 2; step > 0; step /= 2) {
            int u = tile.shfl_xor(found, step);
            Units w = tile.shfl_xor(links, step);
            unsigned at = tile.shfl_xor(order, step);
            if (u >= 0 && (found < 0 || w > links || (w == links && (at > order || (at == order && u < found)))))
                found = u, links = w, order = at;
        }
        if (tile.thread_rank() == 0) points[v] = found;
    }
}
// `leader` int[n]: the least vertex of each one's group, -1 as long as there is none.
extern "C" __global__ void pair_up(int n, const int* points, int* leader) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        int u = points[v];
        if (leader[v] < 0 && u >= 0 && points[u] == v) leader[v] = min(u, v);
    }
}
// Those left over, sorted by what they point at: `same` int[count], neighbours in this order pair off by their places
// among those of equal aims.
extern "C" __global__ void pair_off(int count, const int* vertex, const int* points, const int* place,
                                    const Units* vertex_weight, Units heaviest, int* leader) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 1 < count; i += gridDim.x * blockDim.x) {
        int v = vertex[i], u = vertex[i + 1];
        if (place[i] % 2 != 0 || points[v] < 0 || points[u] != points[v]) continue;
        if (vertex_weight[v] + vertex_weight[u] <= heaviest) leader[v] = leader[u] = min(u, v);
    }
}
// Who is in no group is one.
extern "C" __global__ void stay_alone(int n, const int* there, int* leader) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
        if (there[v] >= 0 && leader[v] < 0) leader[v] = v;
}
// `number` int[n]: how many leaders there are up to each vertex. `group` becomes the number of each one's group from 0.
extern "C" __global__ void number_groups(int n, const int* leader, const int* number, const Units* vertex_weight, int* group,
                                         Units* group_weight) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        int g = leader[v] < 0 ? -1 : number[leader[v]] - 1;
        group[v] = g;
        if (g >= 0) add(group_weight + g, vertex_weight[v]);
    }
}
// The links of groups: `first` int64[n]: where those of each vertex go; a link within a group has the last key of all.
extern "C" __global__ void list_links(int n, const Units* start, const int* used, const int* head, const Units* weight,
                                      const int* group, const Units* first, Word* key, Units* own) {
    Tile tile = cg::tiled_partition<LANES>(cg::this_thread_block());
    int tiles = gridDim.x * blockDim.x / LANES;
    for (int v = (blockIdx.x * blockDim.x + threadIdx.x) / LANES; v < n; v += tiles)
        for (int i = tile.thread_rank(); i < used[v]; i += LANES) {
            int g = group[v], h = group[head[start[v] + i]];
            key[first[v] + i] = g == h ? ~0ULL >> 1 : (Word)g << 32 | (unsigned)h;
            own[first[v] + i] = weight[start[v] + i];
        }
}
// The part of each one's group. Who has no group or is nowhere stays where it is.
extern "C" __global__ void parts_of_groups(int n, const int* group, const int* part_of_group, int* part) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x)
        if (group[v] >= 0 && part[v] >= 0) part[v] = part_of_group[group[v]];
}

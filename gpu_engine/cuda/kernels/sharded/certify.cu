// The certificate of gpu_engine/checks/certificate.py over shards: conditions 1-5 from capacities, residuals and excesses
// alone. The scan knows nothing of how the answer was made.

#include "sharded/shard.cuh"

struct ShardFindings {  // an offending arc or vertex for each condition, -1 if there is none
    int residual, balance, terminal, crossing, side;
    int pad;
    Units across, cut_capacity;
};
SAME_SIZE(ShardFindings);
SAME_PLACE(ShardFindings, residual);
SAME_PLACE(ShardFindings, balance);
SAME_PLACE(ShardFindings, terminal);
SAME_PLACE(ShardFindings, crossing);
SAME_PLACE(ShardFindings, side);
SAME_PLACE(ShardFindings, across);
SAME_PLACE(ShardFindings, cut_capacity);

// All rows are the slot's items. The flow out of each vertex is added up in `outflow`. An offending arc is told by its
// place in the shard.
extern "C" __global__ void certify_rows(const __grid_constant__ Shard g, int slot, Units* outflow, ShardFindings* found) {
    Units across = 0, cut_capacity = 0;
    each_item(g, slot, [&](const Tile& tile, int v, int begin, int end, bool whole) {
        bool in_s = g.source_side[g.own][v];
        Units out = 0;
        for (int a = begin + (int)tile.thread_rank(); a < end; a += TILE_OF_ROW) {
            Arc arc = g.arcs[g.own][a];
            int t = g.owner(arc.head);
            Arc back = g.arcs[t][arc.reverse];
            Units capacity = g.capacity[g.own][a], flow = capacity - (Units)arc.residual;
            out += flow;
            bool pairs = back.head == g.first[g.own] + v && back.reverse == a;
            if (!pairs || arc.residual < 0 ||
                (Units)arc.residual + back.residual != capacity + (Units)g.capacity[t][arc.reverse])
                found->residual = a;
            if (!in_s || g.source_side[t][arc.head - g.first[t]]) continue;
            across += flow, cut_capacity += capacity;
            if (arc.residual != 0) found->crossing = a;
        }
        out = cg::reduce(tile, out, cg::plus<Units>());
        if (tile.thread_rank() == 0 && out != 0) add(outflow + v, out);
    });
    add_up(&found->across, across);
    add_up(&found->cut_capacity, cut_capacity);
}

extern "C" __global__ void certify_vertices(const __grid_constant__ Shard g, const Units* own, const Units* outflow,
                                            ShardFindings* found) {
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < g.n(); v += gridDim.x * blockDim.x) {
        int at = g.first[g.own] + v;
        Units e = g.excess[g.own][v];
        bool in_s = g.source_side[g.own][v];
        Role role = (Role)g.role[g.own][v];
        if (own[v] - outflow[v] != e) found->balance = at;
        if ((role == SINK && in_s) || (role == SOURCE && !in_s)) found->terminal = at;
        if (role == ORDINARY && (in_s ? e < 0 : e > 0)) found->side = at;
    }
}

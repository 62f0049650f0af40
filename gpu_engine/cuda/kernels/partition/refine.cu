// A partition refined in one persistent cooperative kernel, from the vertices that a change has touched or from all
// borders. No host read-back; what one thread decides from counters all threads decide alike.
//
// First iG-kway (Lee et al., Algorithms 3 and 4): touched vertices that lean to other parts leave for the
// pseudo-partition, as do their neighbours then, and come back in rounds. In each, those without a neighbour of a lower
// rank there choose the part with room that most links them to it, and for each part the longest sequence of choices
// that keeps the limit is applied.
//
// Then turns as in Jet (Gilbert, Madduri, Boman and Rajamanickam, "Jet: Multilevel Graph Partitioning on Graphics
// Processing Units", section 4). Every listed vertex that did not move in the turn before says where it would go, also at
// a loss that is small beside its links; then it reckons again as if those who gain more had gone, and goes if it loses
// nothing. Limits may break, and the next turns move the cheapest vertices out of parts that are too heavy. The best
// partition of all turns stays. Neighbours of vertices that move are listed as well.

#include "partition/pseudo.cuh"

struct Turns : Pseudo {
    using Pseudo::Pseudo;

    // What is cut, twice; all vertices.
    __device__ void count_cut() const {
        Units twice = 0;
        for (int v = crew.tile; v < of.n; v += crew.tiles) {
            int p = of.part[v];
            if (p < 0) continue;
            Units begin = of.start[v];
            for (int i = tile.thread_rank(); i < of.used[v]; i += LANES)
                if (of.part[of.head[begin + i]] != p) twice += of.weight[begin + i];
        }
        twice = sum_up(tile, twice);
        if (tile.thread_rank() == 0 && twice) add(&of.sums->twice_cut, twice);
    }
    // List the border of parts that are too heavy, or all they have; or all borders.
    __device__ void widen(bool every_part, bool inside) const {
        for (int v = crew.tile; v < of.n; v += crew.tiles) {
            int p = of.part[v];
            if (p < 0 || of.listed[v] || !(every_part || of.part_weight[p] > of.limit)) continue;
            Units begin = of.start[v];
            int outside = inside || of.used[v] == 0;
            for (int i = tile.thread_rank(); i < of.used[v] && !outside; i += LANES)
                outside |= of.part[of.head[begin + i]] != p;
            if (tile.any(outside) && tile.thread_rank() == 0) {
                list(v);
                of.best[v] = p;
            }
        }
    }
    // Where v would go, and what that gains.
    __device__ void propose(int v, int turn) const {
        int own = of.part[v];
        if (of.stamp[v] == turn - 1) return;
        look.sum(v);
        Choice best = look.best(v, own, false, light);
        Units inward = look.to[own];
        look.clear(v);
        Units gain = best.links - inward;
        bool dares = gain >= 0 || -4 * gain < of.daring * inward;
        if (best.part < 0 || !dares || tile.thread_rank() != 0) return;
        of.gain[v] = gain;
        of.target[v] = best.part;
    }
    // Reckoned again, as if those who gain more had gone.
    __device__ void reckon(int v) const {
        int own = of.part[v], to = of.target[v];
        Units begin = of.start[v], mine = of.gain[v], gain = 0;
        unsigned rank = rank_of(v);
        for (int i = tile.thread_rank(); i < of.used[v]; i += LANES) {
            int u = of.head[begin + i];
            int p = of.part[u], far = of.target[u];
            if (far >= 0 && (of.gain[u] != mine ? of.gain[u] > mine : rank_of(u) < rank)) p = far;
            Units w = of.weight[begin + i];
            gain += p == to ? w : p == own ? -w : 0;
        }
        gain = sum_up(tile, gain);
        if (gain >= 0 && tile.thread_rank() == 0) of.going[v] = 1;
    }
    __device__ void propose_leaving(int v) const {
        int own = of.part[v];
        if (of.part_weight[own] <= of.limit || of.vertex_weight[v] == 0) return;
        look.sum(v);
        Choice best = look.best(v, own, true, light);
        Units inward = look.to[own];
        look.clear(v);
        if (best.part < 0 || tile.thread_rank() != 0) return;
        of.gain[v] = best.links - inward;
        of.target[v] = best.part;
        add(of.total + own, of.vertex_weight[v]);
    }
    // The cheapest vertices out of parts that are too heavy, as far as others have room.
    __device__ void unload(int count) {
        for (int i = crew.tile; i < count; i += crew.tiles) propose_leaving(of.list[i]);
        grid.sync();
        select<false>(of, crew, tile, of.list, count, tally);
        for (int i = crew.thread; i < count; i += crew.threads) {
            int v = of.list[i];
            if (of.target[v] < 0) continue;
            if (may_go<false>(of, v)) add(of.total + of.target[v], of.vertex_weight[v]);
            else of.target[v] = -1;
        }
        grid.sync();
        select<true>(of, crew, tile, of.list, count, tally);
        for (int i = crew.thread; i < count; i += crew.threads) {
            int v = of.list[i];
            if (of.target[v] >= 0 && may_go<true>(of, v)) of.going[v] = 1;
        }
        grid.sync();
    }
    // What the cut becomes, twice, by all who go at once.
    __device__ void count_change(int count) const {
        for (int i = crew.tile; i < count; i += crew.tiles) {
            int v = of.list[i];
            if (!of.going[v]) continue;
            int own = of.part[v], to = of.target[v];
            Units begin = of.start[v], change = 0;
            for (int j = tile.thread_rank(); j < of.used[v]; j += LANES) {
                int u = of.head[begin + j];
                int p = of.part[u], far = of.going[u] ? of.target[u] : p;
                change += ((far != to) - (p != own)) * of.weight[begin + j] * (of.going[u] ? 1 : 2);
            }
            change = sum_up(tile, change);
            if (change && tile.thread_rank() == 0) add(&of.sums->twice_cut, change);
        }
    }
    __device__ void go(int count, int turn) const {
        for (int i = crew.tile; i < count; i += crew.tiles) {
            int v = of.list[i];
            bool goes = of.going[v];
            tile.sync();
            if (tile.thread_rank() == 0) {
                if (goes) {
                    shift(v, of.target[v]);
                    of.stamp[v] = turn;
                    of.going[v] = 0;
                    atomicAdd(&tally->gone, 1);
                }
                of.target[v] = -1;
            }
            if (!goes) continue;
            for (int j = tile.thread_rank(); j < of.used[v]; j += LANES) {
                int u = of.head[of.start[v] + j];
                if (!of.listed[u]) {
                    of.best[u] = of.part[u];  // it has never moved
                    list(u);
                }
            }
        }
    }
    __device__ void improve(int rounds) {
        weigh();
        Units least = 0;
        bool found = !heavy;
        if (found) least = *(volatile Units*)&of.sums->twice_cut;
        for (int i = crew.thread, count = listed(); i < count; i += crew.threads) of.best[of.list[i]] = of.part[of.list[i]];
        grid.sync();
        int turn = 0, since = 0, idle = 0, inside = NEVER, most = of.turns + 64 + 4 * of.k;
        bool borders = of.from != 0;
        for (; (heavy && !found) || (since < of.patience && turn < of.turns && idle < 2); turn++) {
            if (turn == most) break;
            begin_turn(rounds + turn);
            if (heavy && !borders) {
                widen(false, false);
                borders = true;
                grid.sync();
            }
            int count = listed();
            bool unloads = heavy;
            if (unloads) unload(count);
            else {
                for (int i = crew.tile; i < count; i += crew.tiles) propose(of.list[i], turn);
                grid.sync();
                for (int i = crew.tile; i < count; i += crew.tiles)
                    if (of.target[of.list[i]] >= 0) reckon(of.list[i]);
                grid.sync();
            }
            count_change(count);
            grid.sync();
            go(count, turn);
            grid.sync();
            int gone = *(volatile int*)&tally->gone;
            Units cut = *(volatile Units*)&of.sums->twice_cut;
            weigh();
            if (unloads && gone == 0) {
                if (inside == turn - 1) break;
                widen(false, true);
                inside = turn;
                grid.sync();
            }
            idle = gone == 0 ? idle + 1 : 0;
            since = !heavy && (!found || cut < least - least / 1024) ? 0 : since + 1;
            if (!heavy && (!found || cut < least)) {
                found = true;
                least = cut;
                count = listed();
                for (int i = crew.thread; i < count; i += crew.threads) of.best[of.list[i]] = of.part[of.list[i]];
            }
            grid.sync();
        }
        int count = listed();
        for (int i = crew.thread; i < count; i += crew.threads) {
            int v = of.list[i];
            if (found && of.best[v] != of.part[v]) shift(v, of.best[v]);
            of.listed[v] = 0;
        }
        if (crew.thread != 0) return;
        of.sums->turns = turn;
        of.sums->stuck = heavy && !found;
        if (found) of.sums->twice_cut = least;
    }
};

// `from`: 1 begins with all borders, and counts the cut; else that of before, twice, is given.
extern "C" __global__ void refine(PartitionArguments of) {
    extern __shared__ Units table[];
    for (int i = threadIdx.x; i < blockDim.x / LANES * (of.k + 1); i += blockDim.x) table[i] = 0;
    __syncthreads();
    Turns worker(of, table);
    if (of.n_touched) worker.gather();
    int rounds = worker.settle();
    if (of.from) worker.widen(true, false), worker.count_cut();
    else worker.count_settled();
    worker.grid.sync();
    worker.improve(rounds);
    if (worker.crew.thread == 0) of.sums->rounds = rounds;
}

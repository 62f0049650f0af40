// The pseudo-partition of iG-kway (Lee et al., Algorithms 3 and 4): who leans to other parts leaves for it, and comes back
// in rounds.
#pragma once

#include "partition/worker.cuh"

struct Pseudo : Worker {
    using Worker::Worker;

    // Those of a list that lean to other parts are to leave. With `touched` they are listed if they have any links there.
    __device__ void lean(const int* vertices, int begin, int end, bool touched) const {
        for (int i = begin + crew.tile; i < end; i += crew.tiles) {
            int v = vertices[i];
            int p = of.part[v];
            bool first = tile.thread_rank() == 0;
            if (p < 0 || (p == of.k && !touched)) continue;
            if (p == of.k) {
                if (first) list(v), wait_for_part(v);
                continue;
            }
            Pull now = pull(of, tile, v);
            if (!first || now.outward == 0) continue;
            if (touched) list(v);
            if (now.outward > now.inward) of.target[v] = of.k, wait_for_part(v);
        }
    }
    __device__ void leave(int begin, int end) const {
        for (int i = begin + crew.thread; i < end; i += crew.threads) {
            int v = of.pseudo[i];
            if (of.target[v] < 0) continue;
            of.target[v] = -1;
            shift(v, of.k);
        }
    }
    __device__ void gather() const {
        lean(of.touched, 0, of.n_touched, true);
        grid.sync();
        int first = waiting();
        leave(0, first);
        grid.sync();
        for (int i = crew.tile; i < first; i += crew.tiles) {
            int v = of.pseudo[i];
            for (int j = tile.thread_rank(); j < of.used[v]; j += LANES) list(of.head[of.start[v] + j]);
        }
        grid.sync();
        lean(of.list, 0, listed(), false);
        grid.sync();
        leave(first, waiting());
        grid.sync();
    }
    __device__ void choose(int v) const {
        Units begin = of.start[v];
        unsigned mine = rank_of(v);
        int behind = 0;
        for (int i = tile.thread_rank(); i < of.used[v]; i += LANES) {
            int u = of.head[begin + i];
            behind |= of.part[u] == of.k && rank_of(u) < mine;
        }
        if (tile.any(behind)) return;
        look.sum(v);
        Choice best = look.best(v, of.k, true, light);
        int to = best.part < 0 ? light : best.part;
        Units links = look.to[to];
        look.clear(v);
        if (tile.thread_rank() != 0) return;
        of.gain[v] = links;
        of.target[v] = to;
        add(of.total + to, of.vertex_weight[v]);
        atomicMax(&tally->first, ~key_of(of, v));
    }
    // Rounds until nobody is in the pseudo-partition any more; each places at least one vertex. Returns how many.
    __device__ int settle() {
        int count = waiting(), left = count, round = 0;
        for (; left > 0; round++) {
            begin_turn(round);
            weigh();
            for (int i = crew.tile; i < count; i += crew.tiles)
                if (of.part[of.pseudo[i]] == of.k) choose(of.pseudo[i]);
            grid.sync();
            select<true>(of, crew, tile, of.pseudo, count, tally);
            Word first = *(volatile Word*)&tally->first;
            for (int i = crew.thread; i < count; i += crew.threads) {
                int v = of.pseudo[i];
                if (of.target[v] < 0 || !may_go<true>(of, v)) continue;
                of.going[v] = 1;
                atomicAdd(&tally->gone, 1);
            }
            grid.sync();
            int gone = *(volatile int*)&tally->gone;
            for (int i = crew.thread; i < count; i += crew.threads) {
                int v = of.pseudo[i], to = of.target[v];
                if (to < 0) continue;
                if (of.going[v] || (gone == 0 && ~key_of(of, v) == first)) shift(v, to);
                of.target[v] = -1;
                of.going[v] = 0;
            }
            left -= gone > 0 ? gone : 1;
            grid.sync();
        }
        return round;
    }

    // What the cut becomes, twice, by all who waited, wherever they are now.
    __device__ void count_settled() const {
        for (int i = crew.tile, count = waiting(); i < count; i += crew.tiles) {
            int v = of.pseudo[i];
            int was = of.best[v], now = of.part[v];
            Units begin = of.start[v], change = 0;
            for (int j = tile.thread_rank(); j < of.used[v]; j += LANES) {
                int u = of.head[begin + j];
                bool waited = of.listed[u] && of.stamp[u] == WAITED;
                int far = of.part[u];
                change += ((far != now) - ((waited ? of.best[u] : far) != was)) * of.weight[begin + j] * (waited ? 1 : 2);
            }
            change = sum_up(tile, change);
            if (change && tile.thread_rank() == 0) add(&of.sums->twice_cut, change);
        }
    }
};

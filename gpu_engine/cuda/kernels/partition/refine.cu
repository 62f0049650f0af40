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

#include "partition/select.cuh"

constexpr int TALLIES = 3;
constexpr int NEVER = -2, WAITED = -3;  // stamps of those who have not moved in a turn

struct Worker {
    const PartitionArguments& of;
    Crew crew;
    Tile tile;
    Look look;
    cg::grid_group grid;
    Tally* tally;
    int light;   // the lightest part
    bool heavy;  // a part is too heavy

    __device__ Worker(const PartitionArguments& given, Units* table)
        : of(given),
          tile(cg::tiled_partition<LANES>(cg::this_thread_block())),
          look{given, tile, table + threadIdx.x / LANES * (given.k + 1)},
          grid(cg::this_grid()),
          tally(nullptr),
          light(0),
          heavy(false) {}

    __device__ int listed() const { return *(volatile int*)&of.sums->listed; }
    __device__ int waiting() const { return *(volatile int*)&of.sums->waiting; }

    // Between two barriers at which nothing changes what parts weigh.
    __device__ void weigh() {
        Choice found{-1, 0, 0};
        int too_heavy = 0;
        for (int p = tile.thread_rank(); p < of.k; p += LANES) {
            Units weighs = of.part_weight[p];
            too_heavy |= weighs > of.limit;
            Choice other{p, 0, weighs};
            if (other.beats(found)) found = other;
        }
        for (int step = LANES / 2; step > 0; step /= 2) {
            Choice other{tile.shfl_xor(found.part, step), 0, tile.shfl_xor(found.weighs, step)};
            too_heavy |= tile.shfl_xor(too_heavy, step);
            if (other.beats(found)) found = other;
        }
        light = found.part;
        heavy = too_heavy != 0;
    }
    // Three tallies in rotation: the next one is cleared while nobody looks at it.
    __device__ void begin_turn(int turn) {
        tally = of.sums->tally + turn % TALLIES;
        if (crew.thread == 0) of.sums->tally[(turn + 1) % TALLIES] = Tally{0, 0, 0, 0, 0};
    }
    __device__ void list(int v) const {
        if (atomicExch(of.listed + v, 1)) return;
        of.stamp[v] = NEVER;
        of.list[atomicAdd(&of.sums->listed, 1)] = v;
    }
    __device__ void shift(int v, int to) const {
        Units weight = of.vertex_weight[v];
        add(of.part_weight + of.part[v], -weight);
        add(of.part_weight + to, weight);
        of.part[v] = to;
    }
    // A vertex that is listed is to be in the pseudo-partition; `best` keeps where it was until `settle` is done.
    __device__ void wait_for_part(int v) const {
        of.stamp[v] = WAITED;
        of.best[v] = of.part[v];
        of.pseudo[atomicAdd(&of.sums->waiting, 1)] = v;
    }

    // ---- the pseudo-partition ----

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

    // ---- turns ----

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
    Worker worker(of, table);
    if (of.n_touched) worker.gather();
    int rounds = worker.settle();
    if (of.from) worker.widen(true, false), worker.count_cut();
    else worker.count_settled();
    worker.grid.sync();
    worker.improve(rounds);
    if (worker.crew.thread == 0) of.sums->rounds = rounds;
}

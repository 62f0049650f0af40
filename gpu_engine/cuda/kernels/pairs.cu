// Maximum flows of many terminal pairs of one network, a warp for each.
//
// Searches from both ends, layer by layer, until they meet or one of them is exhausted, as in gpu_engine/cpu/pair_search.py.
// Where they have met, flow is pushed along the paths over the arcs on which they met. An exhausted side is a minimum cut.
// A pair costs what it looks at: marks carry the number of their search and are never cleared, and arcs that were pushed
// on are noted, so that the flow can be taken back. Flow and cut are then proven (pair_proof.cuh).

#include "pair_proof.cuh"

__device__ constexpr int MOST_BRIDGES = 32;     // paths tried between two searches
__device__ constexpr int LONG_PAIR_ROW = 24;    // longer rows are read by the whole warp
__device__ constexpr int AT_ONCE = 4;           // arcs of a row whose memory accesses are on their way together
__device__ constexpr int LAST_EPOCH = 1 << 30;  // marks are cleared when their numbers come to this
__device__ constexpr int POLL_LAYERS = 16;      // layers between two looks for a cancel

struct Meeting {  // shared by a warp
    int ends[2];  // of the queues
    int count;    // bridges
    int bridges[MOST_BRIDGES];
};

enum Ending { MET, SOURCE_CUT, SINK_CUT, GAVE_UP };

struct PairSearch {
    const PairArguments& given;
    PairNetwork g;
    PairMemory own;
    Meeting& meeting;
    int lane;
    int epoch;
    long long visits;

    // What more can flow on an arc that was read, in the direction in which the search has come to it backward or forward.
    __device__ static Units rest(const PairArc& arc, Units pushed, bool backward) {
        return backward ? arc.backward + pushed : arc.capacity - pushed;
    }

    // Look along arcs a, a + stride, ... of the row of v, at most AT_ONCE of them below `end`.
    __device__ void look(int v, int depth, int a, int stride, int end, int side, int mark, int other) {
        PairArc arcs[AT_ONCE];
        Units pushed[AT_ONCE];
        int marks[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (a + i * stride >= end) continue;
            arcs[i] = g.arcs[a + i * stride];
            pushed[i] = load_now(own.pushed + a + i * stride);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (a + i * stride < end) marks[i] = __ldcg(&own.nodes[arcs[i].head].mark);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (a + i * stride >= end || marks[i] == mark || rest(arcs[i], pushed[i], side) <= 0) continue;
            int towards_sink = side ? arcs[i].reverse : a + i * stride, w = arcs[i].head;
            if (marks[i] == other) {
                int k = atomicAdd(&meeting.count, 1);
                if (k < MOST_BRIDGES) meeting.bridges[k] = towards_sink;
                continue;
            }
            if (atomicCAS(&own.nodes[w].mark, marks[i], mark) != marks[i]) continue;  // another lane has found it
            __stcg((int4*)&own.nodes[w], make_int4(mark, towards_sink, v, depth + 1));
            own.queues[side][atomicAdd(&meeting.ends[side], 1)] = w;
        }
    }

    __device__ void grow(int side, int first, int end) {
        int mark = epoch + side, other = epoch + 1 - side;
        for (int base = first; base < end; base += 32) {
            int i = base + lane, v = -1, begin = 0, finish = 0, depth = 0;
            if (i < end) {
                v = own.queues[side][i];
                begin = g.row_offsets[v], finish = g.row_offsets[v + 1];
                depth = __ldcg(&own.nodes[v].depth);
            }
            unsigned rows = __ballot_sync(ALL_LANES, finish - begin > LONG_PAIR_ROW);
            if (finish - begin <= LONG_PAIR_ROW)
                for (int a = begin; a < finish; a += AT_ONCE) look(v, depth, a, 1, finish, side, mark, other);
            for (; rows != 0; rows &= rows - 1) {
                int from = __ffs(rows) - 1, u = __shfl_sync(ALL_LANES, v, from);
                int last = __shfl_sync(ALL_LANES, finish, from), hops = __shfl_sync(ALL_LANES, depth, from);
                for (int a = __shfl_sync(ALL_LANES, begin, from); a < last; a += 32 * AT_ONCE)
                    if (a + lane < last) look(u, hops, a + lane, 32, last, side, mark, other);
            }
        }
        __syncwarp();
    }

    // Search until both sides meet or one is exhausted.
    __device__ Ending search(int source, int sink) {
        epoch += 2;
        if (lane < 2) {
            int v = lane == 0 ? source : sink;
            __stcg((int4*)&own.nodes[v], make_int4(epoch + lane, -1, -1, 0));
            own.queues[lane][0] = v;
            meeting.ends[lane] = 1;
            meeting.count = 0;
        }
        __syncwarp();
        int first[2] = {0, 0};
        for (int layer = 1; meeting.count == 0; layer++) {
            int ends[2] = {meeting.ends[0], meeting.ends[1]};
            if (first[0] == ends[0]) return SOURCE_CUT;
            if (first[1] == ends[1]) return SINK_CUT;
            if (visits + ends[0] + ends[1] > given.most_visits) return GAVE_UP;
            if (layer % POLL_LAYERS == 0 && told(given.cancel) != 0) return GAVE_UP;
            int side = ends[1] < ends[0];  // the one that has seen less
            __syncwarp();
            grow(side, first[side], ends[side]);
            first[side] = ends[side];
        }
        visits += meeting.ends[0] + meeting.ends[1];
        return MET;
    }

    // Push along the path over a bridge as much as fits, at most `most`, and note its arcs from `noted` on. Returns what
    // was pushed, or -1 if the log is too short.
    __device__ Units push(int bridge, int noted, Units most, int& length) {
        int x = g.arcs[g.arcs[bridge].reverse].head, y = g.arcs[bridge].head;
        int before = __ldcg(&own.nodes[x].depth), behind = __ldcg(&own.nodes[y].depth);
        length = before + behind + 1;
        if (noted + length > given.log_size) return -1;
        if (lane < 2) {
            int* to = own.log + noted + lane * before;
            for (int v = lane == 0 ? x : y, left = lane == 0 ? before : behind; left > 0; left--) {
                int4 node = __ldcg((const int4*)&own.nodes[v]);
                *to++ = node.y;
                v = node.z;
            }
            if (lane == 0) own.log[noted + length - 1] = bridge;
        }
        __syncwarp();
        Units amount = most;
        for (int i = noted + lane; i < noted + length; i += 32) {
            int a = own.log[i];
            amount = min(amount, g.arcs[a].capacity - load_now(own.pushed + a));
        }
        for (int lanes = 16; lanes > 0; lanes /= 2) amount = min(amount, __shfl_xor_sync(ALL_LANES, amount, lanes));
        if (amount > 0)
            for (int i = noted + lane; i < noted + length; i += 32) {
                int a = own.log[i], r = g.arcs[a].reverse;
                __stcg(own.pushed + a, load_now(own.pushed + a) + amount);
                __stcg(own.pushed + r, load_now(own.pushed + r) - amount);
            }
        __syncwarp();
        return amount;
    }

    // List the arcs that carry flow with their units, in the log itself, and take the flow back. Returns how many.
    __device__ int write_out(int noted) {
        int count = 0;
        for (int base = 0; base < noted; base += 32) {
            int a = -1;
            Units flows = 0;
            if (base + lane < noted) {
                a = own.log[base + lane];
                int r = g.arcs[a].reverse;
                if (a > r) a = r;
                flows = (Units)atomicExch((unsigned long long*)own.pushed + a, 0ULL);
                if (flows != 0) __stcg(own.pushed + g.arcs[a].reverse, 0LL);
                if (flows < 0) a = g.arcs[a].reverse, flows = -flows;
            }
            unsigned some = __ballot_sync(ALL_LANES, flows != 0);
            int at = count + __popc(some & ((1u << lane) - 1));
            if (flows != 0) own.log[at] = a, own.units[at] = flows;
            count += __popc(some);
            __syncwarp();
        }
        return count;
    }

    __device__ Units solve(int source, int sink) {
        Units value = 0;
        int noted = 0;
        visits = 0;
        Ending ending;
        while ((ending = search(source, sink)) == MET) {
            int bridges = min(meeting.count, MOST_BRIDGES), length;
            for (int i = 0; i < bridges && ending == MET; i++) {
                Units amount = push(meeting.bridges[i], noted, MORE - value, length);
                if (amount < 0) ending = GAVE_UP;
                if (amount > 0) value += amount, noted += length;
                if (value == MORE) break;
            }
            if (ending != MET || value == MORE) break;
            __syncwarp();
        }
        __syncwarp();
        int count = write_out(noted);
        if (ending == GAVE_UP) return OPEN;
        if (value == MORE) return UNLIMITED;
        bool holds_sink = ending == SINK_CUT;
        epoch += 2;
        Units proven = prove_pair(g, source, sink, own.log, own.units, count, own.queues[holds_sink],
                                  meeting.ends[holds_sink], holds_sink, own.net, own.pushed, own.nodes, epoch);
        __syncwarp();
        return proven == value ? value : OPEN;
    }
};

extern "C" __global__ void __launch_bounds__(PAIR_THREADS) solve_pairs(const __grid_constant__ PairArguments given) {
    __shared__ Meeting meetings[PAIR_THREADS / 32];
    int lane = threadIdx.x % 32, warp = (blockIdx.x * PAIR_THREADS + threadIdx.x) / 32;
    PairSearch search{given,
                      {given.row_offsets, given.arcs},
                      PairMemory(given, warp),
                      meetings[threadIdx.x / 32],
                      lane,
                      given.epochs[warp],
                      0};
    while (true) {
        int i = lane == 0 ? atomicAdd(given.next, 1) : 0;
        i = __shfl_sync(ALL_LANES, i, 0);
        if (i >= given.n_pairs || told(given.cancel) != 0) break;
        if (search.epoch > LAST_EPOCH) {
            for (int v = lane; v < given.n; v += 32) search.own.nodes[v].mark = 0;
            search.epoch = 0;
            __syncwarp();
        }
        Units value = search.solve(given.sources[i], given.sinks[i]);
        if (lane == 0) given.values[i] = value;
        __syncwarp();
    }
    if (lane == 0) given.epochs[warp] = search.epoch;
}

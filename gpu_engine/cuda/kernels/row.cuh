// The visit of one row: a search labels the vertices from which it is reached, a round discharges its vertex: it pushes
// the excess and relabels the vertex. drain.cu has the rules and why they hold.
#pragma once

#include "groups.cuh"

// The label of a vertex during a drain is the high half of a word.
typedef long long Label;
constexpr int UNSEEN = 0x3fffffff;  // not reached by the last search
constexpr int OUTSIDE = -2;         // the vertex lies outside the region
constexpr int CUT_OFF = -3;         // the vertex reaches no target, for good
__device__ __forceinline__ int label_of(Label x) { return (int)(x >> 32); }

// A vertex's label and its row are read together, so they lie together.
struct __align__(16) Vertex {
    Label label;
    int begin;
    unsigned size;  // of the row; the top bit says that it is a sink
    __device__ __forceinline__ int length() const { return size & 0x7fffffff; }
    __device__ __forceinline__ int end() const { return begin + length(); }
    __device__ __forceinline__ bool sink() const { return size >> 31; }
};

struct Graph {
    int n;
    Vertex* vertices;
    Arc* arcs;
    Units* excess;
};

template <bool MIRROR> __device__ __forceinline__ Capacity forward(const Arc& a) {
    return MIRROR ? a.pair_sum - a.residual : a.residual;
}
template <bool MIRROR> __device__ __forceinline__ Capacity backward(const Arc& a) {
    return MIRROR ? a.residual : a.pair_sum - a.residual;
}
template <bool MIRROR> __device__ __forceinline__ Units excess_of(const Graph& g, int v) {
    Units e = load_now(g.excess + v);
    return MIRROR ? -e : e;
}
// Add to the excess of v; returns its excess before.
template <bool MIRROR> __device__ __forceinline__ Units add_excess(const Graph& g, int v, Units amount) {
    Units old = (Units)atomicAdd((unsigned long long*)(g.excess + v), (unsigned long long)(MIRROR ? -amount : amount));
    return MIRROR ? -old : old;
}

// ---- labels ---------------------------------------------------------------------------------------------------

// bits 32-63 the label; after a relabel: 2-31 the label before, 0-1 one more than the parity of the round. The tag of
// a change is wiped in the next round by the vertex itself, before that parity comes again. Unseen: 0-1 ACTIVE or 0.
constexpr int ACTIVE = 3;
__device__ __forceinline__ Label settled(int h) { return (Label)h << 32; }
__device__ __forceinline__ Label changed(int before, int h, int round) {
    return (Label)h << 32 | (unsigned)before << 2 | (1 + (round & 1));
}
__device__ __forceinline__ Label load(const Label* p) { return __ldcg(p); }
__device__ __forceinline__ Vertex load(const Vertex* p) {
    longlong2 x = __ldcg((const longlong2*)p);
    return {x.x, (int)x.y, (unsigned)(x.y >> 32)};
}
__device__ __forceinline__ Vertex load_now(const Vertex* p) {
    Label label;
    int begin;
    unsigned size;
    asm volatile("{ .reg .b64 r; ld.global.cg.v2.b64 {%0, r}, [%3]; mov.b64 {%1, %2}, r; }"
                 : "=l"(label), "=r"(begin), "=r"(size)
                 : "l"(p));
    return {label, begin, size};
}
__device__ __forceinline__ void store(Vertex* p, const Vertex& x) {
    __stcg((longlong2*)p, make_longlong2(x.label, (Label)x.size << 32 | (unsigned)x.begin));
}
// Start to bring a row that the next step reads to L2.
__device__ __forceinline__ void prefetch(const Arc* row, int length) {
#if __CUDA_ARCH__ >= 900
    if (length <= 0 || length > PIECE) return;
    if (sizeof(Arc) == 16)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(row), "r"(length * (int)sizeof(Arc)));
    else asm volatile("prefetch.global.L2 [%0];" ::"l"(row));
#endif
}
__device__ __forceinline__ void store(Label* p, Label x) { __stcg(p, x); }
__device__ __forceinline__ int label_at_begin(Label x, int round) {
    return (x & 3) == 1 + (round & 1) ? (int)(x >> 2 & 0x3fffffff) : label_of(x);
}
__device__ __forceinline__ int effective_label(int label, int unseen) { return label == UNSEEN ? unseen : label; }

// ---- visits ---------------------------------------------------------------------------------------------------

using Searched = Frontier<MANY>;
using Active = Frontier<SOME>;
constexpr int NO_VERTEX = -1;

struct ThreadCounters {  // since they were last published
    unsigned pushes, relabels;
    Units scanned;
    Units into_hot_sink;  // pushed to the block's hot sink, whose excess is only raised at the end
};

// Search: a vertex from which a labelled one is reached gets the label `level` + 1, unless it has one as low.
__device__ __forceinline__ void reach(const Graph& g, int w, Vertex there, int level, const Searched& frontier, int* found) {
    Label old = atomicMin(&g.vertices[w].label, settled(level + 1));
    if (label_of(old) <= level + 1) return;
    prefetch(g.arcs + there.begin, there.length());
    frontier.append_pieces(w, there.begin, there.end(), level + 1);
    if ((old & 3) == ACTIVE) atomicAdd(found, 1);
}

// The search of a row by one thread: up to SHORT_ROW arcs are in flight, then the labels at their heads, then the marks.
template <bool MIRROR>
__device__ __forceinline__ void search_row_alone(const Graph& g, Entry row, const Searched& frontier, int* found) {
    int level = row.label;
    for (int a = row.begin; a < row.end; a += SHORT_ROW) {
        int head[SHORT_ROW];
        Label label[SHORT_ROW];
        {
            Arc arc[SHORT_ROW];
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++) arc[i] = a + i < row.end ? load_now(g.arcs + a + i) : NO_ARC;
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++) {
                head[i] = arc[i].head;
                label[i] = backward<MIRROR>(arc[i]) > 0 ? load_now(&g.vertices[arc[i].head].label) : 0;
            }
        }
#pragma unroll
        for (int i = 0; i < SHORT_ROW; i++)
            if (label_of(label[i]) > level + 1) label[i] = atomicMin(&g.vertices[head[i]].label, settled(level + 1));
            else label[i] = 0;
#pragma unroll
        for (int i = 0; i < SHORT_ROW; i++) {
            if (label_of(label[i]) <= level + 1) continue;
            Vertex there = load_now(g.vertices + head[i]);
            frontier.append_pieces(head[i], there.begin, there.end(), level + 1);
            if ((label[i] & 3) == ACTIVE) atomicAdd(found, 1);
        }
    }
}

template <bool MIRROR>
__device__ __forceinline__ void search_row(const Graph& g, Entry row, const Searched& frontier, int* found) {
    int a = row.begin + threadIdx.x % TILE, level = row.label;
    constexpr int FEW = Tile::ITEMS;
    if (row.end - row.begin <= FEW * TILE) {  // most arcs of sparse graphs lead on: straight to the atomic
        Arc arc[FEW];
#pragma unroll
        for (int i = 0; i < FEW; i++) arc[i] = a + i * TILE < row.end ? load_now(g.arcs + a + i * TILE) : NO_ARC;
#pragma unroll
        for (int i = 0; i < FEW; i++)
            if (backward<MIRROR>(arc[i]) > 0)
                reach(g, arc[i].head, load_now(g.vertices + arc[i].head), level, frontier, found);
        return;
    }
    constexpr int BATCH = 4;  // most arcs of dense ones lead to labelled vertices: look before
    for (; a < row.end; a += BATCH * TILE) {
        Arc arc[BATCH];
        Vertex there[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) arc[i] = a + i * TILE < row.end ? load_now(g.arcs + a + i * TILE) : NO_ARC;
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            there[i] = backward<MIRROR>(arc[i]) > 0 ? load_now(g.vertices + arc[i].head) : Vertex{0, 0, 0};
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (label_of(there[i].label) > level + 1) reach(g, arc[i].head, there[i], level, frontier, found);
    }
}

// Whether one of COUNT arcs, `stride` apart from `a` on, leads from its tail to a vertex labelled `level` at most.
template <bool MIRROR, int COUNT>
__device__ __forceinline__ bool leads_on(const Graph& g, int a, int stride, int end, int level) {
    Arc arc[COUNT];
    bool found = false;
#pragma unroll
    for (int i = 0; i < COUNT; i++) arc[i] = a + i * stride < end ? load_now(g.arcs + a + i * stride) : NO_ARC;
    Label label[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        label[i] = forward<MIRROR>(arc[i]) > 0 ? load_now(&g.vertices[arc[i].head].label) : settled(OUTSIDE);
#pragma unroll
    for (int i = 0; i < COUNT; i++) found |= (unsigned)label_of(label[i]) <= (unsigned)level;
    return found;
}

// What a vertex does that found the search along its own row. Nobody else writes its label.
template <bool MIRROR>
__device__ __forceinline__ void follow(const Graph& g, int v, const Vertex& own, int level, const Searched& frontier,
                                       int* found) {
    store(&g.vertices[v].label, settled(level + 1));
    frontier.append_pieces(v, own.begin, own.end(), level + 1);
    if ((own.label & 3) == ACTIVE) atomicAdd(found, 1);
}

// A step of a wide search the other way round (Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search",
// SC 2012): each vertex without a label looks along its own row for one that the search has reached, and stops there.
// Few are left in such a step, and most find one among their first arcs.
//
// Each thread looks at the first arcs of its own vertex, then its warp at what is left of longer rows; blocks look along
// the rows of hubs. Not inlined, so that the other steps keep their registers.
template <bool MIRROR>
__device__ __noinline__ void look_back(Graph g, ThreadGroup threads, const int* hubs, int n_hubs, int level,
                                       Searched frontier, int* found) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int lane = warp.thread_rank();
    for (int base = threads.rank - lane; base < g.n; base += threads.size) {
        int v = base + lane;
        Vertex own = v < g.n ? load_now(g.vertices + v) : Vertex{0, 0, 0};
        bool open = label_of(own.label) == UNSEEN && own.length() <= HUB_ROW, seen = false;
        int at = own.begin, end = open ? own.end() : at;
        for (int i = 0; i < ROWS_ALONE && at < end && !seen; i += SHORT_ROW, at += SHORT_ROW)
            seen = leads_on<MIRROR, SHORT_ROW>(g, at, 1, end, level);
        for (unsigned others = warp.ballot(!seen && at < end); others != 0; others &= others - 1) {
            int whose = __ffs(others) - 1, from = warp.shfl(at, whose), to = warp.shfl(end, whose);
            bool any = false;
            for (; from < to && !any; from += 32 * 4) any = warp.any(leads_on<MIRROR, 4>(g, from + lane, 32, to, level));
            if (lane == whose) seen = any;
        }
        if (seen) follow<MIRROR>(g, v, own, level, frontier, found);
    }
    for (int i = threads.block; i < n_hubs; i += threads.blocks) {
        int v = load(hubs + i);
        Vertex own = load_now(g.vertices + v);
        bool any = false, open = label_of(own.label) == UNSEEN;
        for (int at = own.begin; open && at < own.end() && !any; at += THREADS * 4)
            any = __syncthreads_or(leads_on<MIRROR, 4>(g, at + threadIdx.x, THREADS, own.end(), level));
        if (any && threadIdx.x == 0) follow<MIRROR>(g, v, own, level, frontier, found);
    }
    __threadfence();  // the labels were written plainly
}

// Up to ITEMS arcs of a row for each thread of a group, as a round sees them. Neighbours in the row stay neighbours: the
// order in which a row's arcs are filled matters (interleaved, acyclic dense networks take eight times the rounds).
template <class Group> struct Slice {
    static constexpr int ITEMS = Group::ITEMS;
    int first;
    Arc arc[ITEMS];

    __device__ __forceinline__ Slice(const Graph& g, const Group& group, int base, int end)
        : first(base + group.rank() * ITEMS) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) arc[i] = at(i) < end ? load_now(g.arcs + at(i)) : NO_ARC;
    }
    __device__ __forceinline__ int at(int i) const { return first + i; }
};

template <bool MIRROR>
__device__ __forceinline__ void push(const Graph& g, int a, const Arc& arc, const Vertex& there, Units amount, int label,
                                     const Active& frontier, int* hot_sink, ThreadCounters& counters) {
    Capacity moved = (Capacity)(MIRROR ? -amount : amount);
    __stcg(&g.arcs[a].residual, (Capacity)(arc.residual - moved));
    add(&g.arcs[arc.reverse].residual, moved);
    counters.pushes++;
    // Thousands may push to one sink in a round, and nobody needs its excess before the drain is over.
    if (there.sink() && (*hot_sink == arc.head || atomicCAS(hot_sink, NO_VERTEX, arc.head) == NO_VERTEX)) {
        counters.into_hot_sink += amount;
        return;
    }
    Units old = add_excess<MIRROR>(g, arc.head, amount);
    if (old > 0 || old + amount <= 0 || there.sink()) return;
    Entry e{arc.head, there.begin, there.end(), label};
    if (there.length() < LONG_ROW) frontier.append(e);
    else frontier.append_long(e);
}

// Round: push the excess of e.vertex, relabel it if some is left. `e.label` is its label at the round's beginning.
template <bool MIRROR, class Group>
__device__ __forceinline__ void discharge(const Graph& g, const Group& group, int unseen, Entry e, const Active& frontier,
                                          int* hot_sink, int* dropped, ThreadCounters& counters) {
    constexpr int ITEMS = Group::ITEMS;
    int own = e.label, lowest_label = UNSEEN - 1, round = frontier.step;
    if (own < 0) {  // an exhausted search did not see it
        if (group.rank() == 0) *dropped = 1;
        return;
    }
    Slice<Group> slice(g, group, e.begin, e.end);
    Units left = group.broadcast(excess_of<MIRROR>(g, e.vertex)), rest = 1;  // others may add to it meanwhile
    for (int base = e.begin; base < e.end && left > 0;) {
        Vertex there[ITEMS];
        int far[ITEMS];
        Units pushable[ITEMS], mine = 0, total;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            there[i] = slice.at(i) < e.end ? load_now(g.vertices + slice.arc[i].head) : Vertex{settled(OUTSIDE), 0, 0};
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            far[i] = effective_label(label_at_begin(there[i].label, round), unseen);
            pushable[i] = far[i] == own - 1 ? (Units)forward<MIRROR>(slice.arc[i]) : 0;
            mine += pushable[i];
        }
        Units through = group.scan(mine, total), sent = min(left, total);
        Units share = max(left - (through - mine), (Units)0);
        if (group.rank() == 0 && sent > 0) rest = add_excess<MIRROR>(g, e.vertex, -sent) - sent;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const Arc& arc = slice.arc[i];
            Units amount = min(pushable[i], share);
            share -= amount;
            bool gained = far[i] == own + 1 && backward<MIRROR>(arc) > 0;  // by a push to us, perhaps
            if (far[i] >= 0 && (forward<MIRROR>(arc) > amount || gained)) lowest_label = min(lowest_label, far[i]);
            if (amount <= 0) continue;
            push<MIRROR>(g, slice.at(i), arc, there[i], amount, own - 1, frontier, hot_sink, counters);
        }
        left -= sent;
        base += ITEMS * Group::size();
        if (base < e.end && left > 0) slice = Slice<Group>(g, group, base, e.end);
    }
    if (left > 0) lowest_label = group.reduce_min(lowest_label);
    if (group.rank() != 0) return;
    counters.scanned += e.end - e.begin;
    if (left > 0) {
        e.label = min(lowest_label, g.n - 1) + 1;
        store(&g.vertices[e.vertex].label, changed(own, e.label, round));
        counters.relabels++;
    } else {
        store(&g.vertices[e.vertex].label, settled(own));
        if (rest <= 0) return;  // else something came in meanwhile
    }
    if (Group::size() == TILE) frontier.append(e);
    else frontier.append_long(e);
}

// A round's visit by one thread: up to SHORT_ROW arcs are in flight, then the labels at their heads, then the pushes. The
// rules are those of `discharge`.
template <bool MIRROR>
__device__ __forceinline__ void discharge_alone(const Graph& g, int unseen, Entry e, const Active& frontier, int* hot_sink,
                                                int* dropped, ThreadCounters& counters) {
    int own = e.label, lowest_label = UNSEEN - 1, round = frontier.step;
    if (own < 0) {
        *dropped = 1;
        return;
    }
    Units had = excess_of<MIRROR>(g, e.vertex), left = had;
    counters.scanned += e.end - e.begin;
    for (int base = e.begin; base < e.end && left > 0; base += SHORT_ROW) {
        int head[SHORT_ROW];
        Capacity amount[SHORT_ROW];
        {
            Arc arc[SHORT_ROW];
            Label label[SHORT_ROW];
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++) arc[i] = base + i < e.end ? load_now(g.arcs + base + i) : NO_ARC;
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++)
                label[i] = base + i < e.end ? load_now(&g.vertices[arc[i].head].label) : settled(OUTSIDE);
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++) {
                int far = effective_label(label_at_begin(label[i], round), unseen);
                Capacity pushable = far == own - 1 ? forward<MIRROR>(arc[i]) : 0;
                head[i] = arc[i].head;
                amount[i] = (Capacity)min((Units)pushable, left);
                bool gained = far == own + 1 && backward<MIRROR>(arc[i]) > 0;
                if (far >= 0 && (forward<MIRROR>(arc[i]) > amount[i] || gained)) lowest_label = min(lowest_label, far);
                if (amount[i] <= 0) continue;
                left -= amount[i];
                Capacity moved = MIRROR ? -amount[i] : amount[i];
                __stcg(&g.arcs[base + i].residual, (Capacity)(arc[i].residual - moved));
                add(&g.arcs[arc[i].reverse].residual, moved);
                counters.pushes++;
            }
        }
        if (own == 1) {
#pragma unroll
            for (int i = 0; i < SHORT_ROW; i++) {
                if (amount[i] <= 0 || !load_now(g.vertices + head[i]).sink()) continue;
                if (*hot_sink == head[i] || atomicCAS(hot_sink, NO_VERTEX, head[i]) == NO_VERTEX)
                    counters.into_hot_sink += amount[i];
                else add_excess<MIRROR>(g, head[i], amount[i]);
                amount[i] = 0;
            }
        }
        Units old[SHORT_ROW];
#pragma unroll
        for (int i = 0; i < SHORT_ROW; i++) old[i] = amount[i] > 0 ? add_excess<MIRROR>(g, head[i], amount[i]) : 1;
#pragma unroll
        for (int i = 0; i < SHORT_ROW; i++) {
            if (old[i] > 0 || old[i] + amount[i] <= 0) continue;
            Vertex there = load_now(g.vertices + head[i]);
            Entry next{head[i], there.begin, there.end(), own - 1};
            if (there.length() < LONG_ROW) frontier.append(next);
            else frontier.append_long(next);
        }
    }
    Units rest = 1;
    if (left < had) rest = add_excess<MIRROR>(g, e.vertex, left - had) - (had - left);
    if (left > 0) {
        e.label = min(lowest_label, g.n - 1) + 1;
        store(&g.vertices[e.vertex].label, changed(own, e.label, round));
        counters.relabels++;
    } else {
        store(&g.vertices[e.vertex].label, settled(own));
        if (rest <= 0) return;
    }
    frontier.append(e);
}

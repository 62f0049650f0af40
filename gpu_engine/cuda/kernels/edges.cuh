// Where the arcs of edges are, and the widths of residuals.
#pragma once

#include "arc.cuh"

constexpr Units INFINITE = 0x7fffffffffffffffLL;  // a capacity without limit
#ifndef WIDE
constexpr Capacity INFINITE_RESIDUAL = NARROW_LIMIT - 1;  // of an infinite edge: more than the state's whole flow
#else
constexpr Capacity INFINITE_RESIDUAL = 1LL << 61;
#endif

// An edge's arc, and whether it is undirected; `n_undirected` is 1 if all edges agree.
struct Edges {
    const int* edge_arc;
    const bool* undirected;
    int n_undirected;
    __device__ bool both(int row) const { return undirected[n_undirected > 1 ? row : 0]; }
};

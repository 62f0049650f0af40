// Distances from a set of vertices along links, for the order of rows (gpu_engine/cuda/arrange.py).

// The neighbours of level `current` that have none yet, `far`, are in the next; `reached` becomes the last level that
// has a vertex. A warp looks at 32 vertices and visits their rows together. All who write one word write the same.
extern "C" __global__ void next_level(int n, const int* row_offsets, const int* head, int* level, int far, int current,
                                      int* reached) {
    int lane = threadIdx.x % 32, stride = gridDim.x * blockDim.x;
    for (int base = blockIdx.x * blockDim.x + threadIdx.x - lane; base < n; base += stride) {
        int v = base + lane;
        unsigned left = __ballot_sync(0xffffffffu, v < n && level[v] == current);
        for (; left != 0; left &= left - 1) {
            int u = base + __ffs(left) - 1;
            for (int a = row_offsets[u] + lane; a < row_offsets[u + 1]; a += 32) {
                int w = head[a];
                if (level[w] != far) continue;
                level[w] = current + 1;
                *reached = current + 1;
            }
        }
    }
}

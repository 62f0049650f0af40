// Where the blocks of all devices meet between two steps of a drain over shards.
//
// The last block of a device to arrive writes to every device, itself included, what the step has counted, and then the
// number of the step. A block goes on when it has read those of all devices, from the memory of its own. Messages have two
// places in turn: a device writes one for step k + 2 only after all have come to k + 1, and so have read that of k.
//
// All blocks of a device must run at once, and the kernels of all devices too. Where one could not be started, or its
// device has failed, the host says so to those that wait (GIVEN_UP).
#pragma once

#include "sharded/shard.cuh"

enum Stop { GO_ON, STOP = STOP_MEETING, GIVEN_UP = GIVE_UP_MEETING };

struct Sums {  // over the shards of a device, or of all
    Units items, stuck, arcs;
    int stop;
};

struct Message {
    Units items, stuck, arcs;
    int stop, step;
};

struct Meeting {                   // in the memory of a device, zero at first
    int stop;                      // the host's word
    int arrived;                   // blocks that have come to the step
    Message from[2][MOST_SHARDS];  // by parity of the step and by device
};
SAME_SIZE(Meeting);
SAME_PLACE(Meeting, stop);
SAME_PLACE(Meeting, arrived);
SAME_PLACE(Meeting, from);

struct ShardOutcome {  // read by the host
    int ended;         // 1: nothing is left to do; else the drain was stopped, or has made too many rounds
    int searches, rounds, levels;
};
SAME_SIZE(ShardOutcome);
SAME_PLACE(ShardOutcome, ended);
SAME_PLACE(ShardOutcome, searches);
SAME_PLACE(ShardOutcome, rounds);
SAME_PLACE(ShardOutcome, levels);

__device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ int load_system(const int* p) {
    int x;
    asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
__device__ __forceinline__ void store_system(int* p, int x) {
    asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

struct Meetings {
    Meeting* const* all;  // of each device
    int rank, devices, step = 0;

    __device__ Meetings(Meeting* const* all, int rank, int devices) : all(all), rank(rank), devices(devices) {}

    // Meet, and sum up what the shards of all devices have counted in a slot.
    __device__ __forceinline__ Sums meet_and_sum(const Shard* own, int n_own, int slot) {
        return meet([&](Sums& counted) {
            for (int i = 0; i < n_own; i++) {
                const Units* of = slot_of(own[i], slot);
                counted.items += load(of + ITEMS), counted.stuck += load(of + STUCK), counted.arcs += load(of + ARCS);
            }
        });
    }
    __device__ __forceinline__ Sums meet() {
        return meet([](Sums&) {});
    }

private:
    template <class Count> __device__ __forceinline__ Sums meet(Count count) {
        __shared__ Sums sums;
        auto warp = cg::tiled_partition<WARP>(cg::this_thread_block());
        int rank_of_thread = (int)threadIdx.x, parity = ++step & 1;
        __syncthreads();
        if (threadIdx.x < WARP) {
            Meeting& here = *all[rank];
            bool last = false;
            if (rank_of_thread == 0) {
                fence_system();
                last = atomicAdd(&here.arrived, 1) == (int)gridDim.x - 1;
            }
            if (warp.shfl(last, 0)) send(here, parity, count);
            Sums found{};
            if (rank_of_thread < devices) found = receive(here, here.from[parity] + rank_of_thread);
            found.items = cg::reduce(warp, found.items, cg::plus<Units>());
            found.stuck = cg::reduce(warp, found.stuck, cg::plus<Units>());
            found.arcs = cg::reduce(warp, found.arcs, cg::plus<Units>());
            found.stop = cg::reduce(warp, found.stop, cg::plus<int>());
            if (rank_of_thread == 0) sums = found;
        }
        __syncthreads();
        return sums;
    }
    // By the first warp of the last block; each lane writes to one device.
    template <class Count> __device__ __forceinline__ void send(Meeting& here, int parity, Count count) const {
        fence_system();
        Sums counted{};
        counted.stop = __shfl_sync(0xffffffffu, load_system(&here.stop), 0);  // all devices are told the same
        count(counted);
        if ((int)threadIdx.x == 0) here.arrived = 0;
        __syncwarp();
        if ((int)threadIdx.x >= devices) return;
        Message& message = all[threadIdx.x]->from[parity][rank];
        message.items = counted.items, message.stuck = counted.stuck, message.arcs = counted.arcs;
        message.stop = counted.stop;
        fence_system();
        store_system(&message.step, step);
    }
    __device__ __forceinline__ Sums receive(Meeting& here, const Message* message) const {
        while (load_system(&message->step) != step)
            if (load_system(&here.stop) == GIVEN_UP) return {0, 0, 0, GIVEN_UP};
        fence_system();
        return {load(&message->items), load(&message->stuck), load(&message->arcs), load(&message->stop)};
    }
};

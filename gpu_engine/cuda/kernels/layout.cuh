// Records that Python reads or writes too. These macros hold a record to its counterpart in gpu_engine/cuda/layout.py,
// which passes the sizes and places.
#pragma once

#define SAME_SIZE(Record) static_assert(sizeof(Record) == SIZE_OF_##Record, #Record " has another size in layout.py")
#if defined(__CUDACC_RTC__) && 100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__ < 1305  // has no offsetof
#define SAME_PLACE(Record, field) static_assert(PLACE_OF_##Record##_##field >= 0, "never fails")
#else
#define SAME_PLACE(Record, field)                                                   \
    static_assert(__builtin_offsetof(Record, field) == PLACE_OF_##Record##_##field, \
                  #Record "." #field " lies elsewhere in layout.py")
#endif

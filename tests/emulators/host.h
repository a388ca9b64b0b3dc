/* Runs a text of `Program.cuda` on the host: the threads of a block one after the other, between barriers. */
/* The functions of C alone: those that libstdc++ adds to them take half of the time of a compilation. */
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct Dim3 { unsigned int x; };
static thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct alignas(8) uint2 { unsigned int x, y; };

#define OX_THREADS for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
#define OX_BARRIER
#define OX_STATE(type, name, count) type name[256][count]
#define OX_OWN(name) name[threadIdx.x]
#define OX_GLOBAL(pointer)

template <typename To, typename From> static inline To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
static inline float __uint_as_float(unsigned int bits) { return same_bits<float>(bits); }
static inline unsigned int __float_as_uint(float value) { return same_bits<unsigned int>(value); }
static inline double __longlong_as_double(long long bits) { return same_bits<double>(bits); }
static inline long long __double_as_longlong(double value) { return same_bits<long long>(value); }

/* Calls an entry for each block of a grid; the size of its argument. */
#define OX_RUN(entry) \
    extern "C" const unsigned int size_##entry = sizeof(OxLaunch); \
    extern "C" void run_##entry(unsigned int grid, unsigned int block, const void *bytes) \
    { \
        OxLaunch launch; \
        memcpy(&launch, bytes, sizeof(launch)); \
        gridDim.x = grid; \
        blockDim.x = block; \
        for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) entry(launch); \
    }

#ifndef OX_THREADS
#define OX_THREADS
#define OX_BARRIER __syncthreads();
#define OX_STATE(type, name, count) type name[count]
#define OX_OWN(name) name
#define OX_GLOBAL(pointer) __builtin_assume(__isGlobal(pointer));
#endif

typedef unsigned char ox_u8;
typedef unsigned short ox_u16;
typedef unsigned int ox_u32;
typedef unsigned long long ox_u64;

struct OxLeaf {
    ox_u64 length;
    ox_u64 position;
    ox_u32 set;
    ox_u32 row;
    ox_u32 first_chunk;
    ox_u32 term;
    OX_LEAF_FIELDS
};

struct OxTask {
    ox_u32 leaf;
    ox_u32 chunk;
};

struct OxControl {
    ox_u64 step;
    ox_u32 stopped;
    ox_u32 skipped;
};

struct OxLaunch {
    const OxLeaf *leaves;
    const OxTask *tasks;
    const double *scalars;
    double *values;
    double *partials;
    double *terms;
    double *totals;
    OxControl *control;
    const ox_u32 *batches;
    ox_u64 batch_count;
    ox_u64 seed;
    ox_u64 step;
    double given[256];
};

static __device__ __forceinline__ float ox_f32(ox_u32 bits) { return __uint_as_float(bits); }
static __device__ __forceinline__ double ox_f64(ox_u64 bits) { return __longlong_as_double((long long)bits); }
static __device__ __forceinline__ ox_u32 ox_bits(float value) { return __float_as_uint(value); }
static __device__ __forceinline__ ox_u64 ox_bits(double value) { return (ox_u64)__double_as_longlong(value); }

/* The number of the step. */
static __device__ __forceinline__ ox_u64 ox_step(const OxLaunch &launch)
{
    return launch.control ? launch.control->step + 1 : launch.step;
}

/* A value of the scalar program. */
static __device__ __forceinline__ double ox_value(const OxLaunch &launch, ox_u32 row, ox_u32 number)
{
    const ox_u64 at = (ox_u64)row * OX_KEPT + number;
    if (launch.values) return launch.values[at];
    return launch.scalars ? launch.scalars[at] : launch.given[at];
}

/* Elements in memory: one bit pattern of each, converted to the type of the computation. */

struct OxF32 {
    typedef ox_u32 Bits;
    static __device__ __forceinline__ void read(Bits bits, float &to) { to = ox_f32(bits); }
    static __device__ __forceinline__ void read(Bits bits, double &to) { to = (double)ox_f32(bits); }
    static __device__ __forceinline__ Bits write(float value) { return ox_bits(value); }
    static __device__ __forceinline__ Bits write(double value) { return ox_bits((float)value); }
};

struct OxF64 {
    typedef ox_u64 Bits;
    static __device__ __forceinline__ void read(Bits bits, float &to) { to = (float)ox_f64(bits); }
    static __device__ __forceinline__ void read(Bits bits, double &to) { to = ox_f64(bits); }
    static __device__ __forceinline__ Bits write(float value) { return ox_bits((double)value); }
    static __device__ __forceinline__ Bits write(double value) { return ox_bits(value); }
};

/* The bits of element `k` of some words of 32 bits. */
template <typename Bits> static __device__ __forceinline__ Bits ox_unpack(const ox_u32 *words, int k)
{
    if (sizeof(Bits) == 8) return (Bits)((ox_u64)words[2 * k + 1] << 32 | words[2 * k]);
    const int each = 4 / (sizeof(Bits) < 4 ? sizeof(Bits) : 4);
    return (Bits)(words[k / each] >> 32 / each * (k % each));
}

/* Adds the bits of element `k` to words that are zero. */
template <typename Bits> static __device__ __forceinline__ void ox_pack(ox_u32 *words, int k, Bits bits)
{
    if (sizeof(Bits) == 8) {
        words[2 * k] = (ox_u32)bits;
        words[2 * k + 1] = (ox_u32)((ox_u64)bits >> 32);
    } else {
        const int each = 4 / (sizeof(Bits) < 4 ? sizeof(Bits) : 4);
        words[k / each] |= (ox_u32)bits << 32 / each * (k % each);
    }
}

/* Reads the bits of `N` elements, 16 bytes at a time; or of `count` of them, one at a time, where memory is not `wide`
   enough for that. Bits that are not read are zero. Words are unpacked after the branch: within it, a thread would wait for
   the memory of one array before it asks for that of the next. */
template <int N, typename Bits>
static __device__ __forceinline__ void ox_read(Bits (&to)[N], const void *from, ox_u32 count, bool wide)
{
    ox_u32 words[N * sizeof(Bits) / 4] = {};
    if (wide) {
#pragma unroll
        for (int k = 0; k < (int)(N * sizeof(Bits) / 16); ++k) {
            const uint4 word = ((const uint4 *)from)[k];
            words[4 * k] = word.x;
            words[4 * k + 1] = word.y;
            words[4 * k + 2] = word.z;
            words[4 * k + 3] = word.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; ++k) if ((ox_u32)k < count) ox_pack<Bits>(words, k, ((const Bits *)from)[k]);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = ox_unpack<Bits>(words, k);
}

/* Writes bits of elements as `ox_read` reads them. */
template <int N, typename Bits>
static __device__ __forceinline__ void ox_write(const Bits (&from)[N], void *to, ox_u32 count, bool wide)
{
    if (wide) {
        ox_u32 words[N * sizeof(Bits) / 4] = {};
#pragma unroll
        for (int k = 0; k < N; ++k) ox_pack<Bits>(words, k, from[k]);
#pragma unroll
        for (int k = 0; k < (int)(N * sizeof(Bits) / 16); ++k) {
            uint4 word;
            word.x = words[4 * k];
            word.y = words[4 * k + 1];
            word.z = words[4 * k + 2];
            word.w = words[4 * k + 3];
            ((uint4 *)to)[k] = word;
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; ++k) if ((ox_u32)k < count) ((Bits *)to)[k] = from[k];
    }
}

/* Numbers of `N` elements of an array. */
template <typename Type, int N, typename C>
static __device__ __forceinline__ void ox_load(C (&to)[N], const void *from, ox_u32 count, bool wide)
{
    typename Type::Bits bits[N];
    ox_read<N>(bits, from, count, wide);
#pragma unroll
    for (int k = 0; k < N; ++k) Type::read(bits[k], to[k]);
}

/* Writes numbers to `N` elements of an array. */
template <typename Type, int N, typename C>
static __device__ __forceinline__ void ox_store(const C (&from)[N], void *to, ox_u32 count, bool wide)
{
    typename Type::Bits bits[N];
#pragma unroll
    for (int k = 0; k < N; ++k) bits[k] = Type::write(from[k]);
    ox_write<N>(bits, to, count, wide);
}

/* Random numbers: see noise.rs. */

struct OxStream {
    ox_u32 low, high;
};

static __device__ __forceinline__ ox_u64 ox_mix(ox_u64 value)
{
    ox_u64 z = value + 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static __device__ __forceinline__ ox_u64 ox_key(const OxLaunch &launch, const OxLeaf &leaf)
{
    return ox_mix(ox_mix(ox_mix(launch.seed) ^ ox_step(launch)) ^ leaf.position);
}

/* The stream of a draw, for the elements whose index has the upper half of `index`. */
static __device__ __forceinline__ OxStream ox_stream(ox_u64 key, ox_u32 draw, ox_u64 index)
{
    const ox_u64 word = ox_mix(ox_mix(key ^ draw) ^ index >> 32);
    OxStream stream;
    stream.low = (ox_u32)word;
    stream.high = (ox_u32)(word >> 32);
    return stream;
}

static __device__ __forceinline__ ox_u32 ox_hash(ox_u32 value, ox_u32 key)
{
    ox_u32 x = (value ^ value >> 16) * 0x7feb352du;
    x = (x ^ x >> 15 ^ key) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* A uniform number of [0, 1). */
static __device__ __forceinline__ float ox_uniform(OxStream stream, ox_u32 index)
{
    const ox_u32 bits = ox_hash(ox_hash(index ^ stream.low, 0) + stream.high, 0);
    return (float)(bits >> 8) * 5.9604644775390625e-8f;
}

/* Writes numbers as halves, rounded stochastically; `index` is the lower half of that of the first element. */
template <typename Type, int N, typename C>
static __device__ __forceinline__ void
ox_store_random(const C (&from)[N], void *to, ox_u32 count, bool wide, OxStream stream, ox_u32 shift, ox_u32 index)
{
    typename Type::Bits bits[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 random = ox_hash((index + k) ^ stream.low, stream.high) >> shift & 0xffff;
        bits[k] = Type::stochastic(ox_narrowed(from[k]), random);
    }
    ox_write<N>(bits, to, count, wide);
}

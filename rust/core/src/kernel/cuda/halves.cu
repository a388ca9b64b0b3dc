/* float16 and bfloat16: see array/half.rs. */

/* The number of float from which rounding to a half gives the same as rounding `value`. */
static __device__ __forceinline__ float ox_narrowed(float value) { return value; }
static __device__ __forceinline__ float ox_narrowed(double value)
{
    const float near = (float)value;
    const double size = fabs((double)near), exact = fabs(value);
    if (size > exact) return ox_f32((ox_bits(near) - 1) | 1);
    return size < exact ? ox_f32(ox_bits(near) | 1) : near;
}

struct OxBF16 {
    typedef ox_u16 Bits;
    static __device__ __forceinline__ float widened(Bits bits) { return ox_f32((ox_u32)bits << 16); }
    static __device__ __forceinline__ Bits rounded(float value, ox_u32 up)
    {
        const ox_u32 bits = ox_bits(value);
        const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        return (Bits)((nan ? bits | 0x00400000u : bits + up) >> 16);
    }
    static __device__ __forceinline__ Bits nearest(float value)
    {
        return rounded(value, 0x7fffu + (ox_bits(value) >> 16 & 1));
    }
    static __device__ __forceinline__ Bits stochastic(float value, ox_u32 random) { return rounded(value, random); }
    template <typename C> static __device__ __forceinline__ void read(Bits bits, C &to) { to = (C)widened(bits); }
    template <typename C> static __device__ __forceinline__ Bits write(C value) { return nearest(ox_narrowed(value)); }
};

struct OxF16 {
    typedef ox_u16 Bits;
    static __device__ __forceinline__ float widened(Bits bits)
    {
        const ox_u32 magnitude = (ox_u32)(bits & 0x7fff) << 13;
        const ox_u32 number = ox_bits(ox_f32(magnitude) * ox_f32(239u << 23));
        return ox_f32((ox_u32)(bits >> 15) << 31 | (magnitude >= 0x7c00u << 13 ? magnitude | 0x7f800000u : number));
    }
    static __device__ __forceinline__ Bits joined(float value, ox_u32 magnitude)
    {
        const ox_u32 bits = ox_bits(value);
        magnitude = magnitude > 0x7c00u ? 0x7c00u : magnitude;
        magnitude = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7e00u : magnitude;
        return (Bits)((bits >> 16 & 0x8000u) | magnitude);
    }
    static __device__ __forceinline__ Bits nearest(float value)
    {
        const ox_u32 bits = ox_bits(value) & 0x7fffffffu;
        const ox_u32 normal = (bits - (112u << 23) + 0xfffu + (bits >> 13 & 1)) >> 13;
        const ox_u32 subnormal = ox_bits(ox_f32(bits) + 0.5f) - 0x3f000000u;
        return joined(value, bits < 113u << 23 ? subnormal : normal);
    }
    static __device__ __forceinline__ Bits stochastic(float value, ox_u32 random)
    {
        const ox_u32 bits = ox_bits(value) & 0x7fffffffu;
        const ox_u32 normal = (bits - (112u << 23) + (random >> 3)) >> 13;
        const ox_u32 significand = (bits & 0x007fffffu) | 0x00800000u, down = 112u - (bits >> 23);
        const ox_u32 subnormal = ((significand << 2 >> (down > 31 ? 31 : down)) + random) >> 16;
        return joined(value, bits < 113u << 23 ? subnormal : normal);
    }
    template <typename C> static __device__ __forceinline__ void read(Bits bits, C &to) { to = (C)widened(bits); }
    template <typename C> static __device__ __forceinline__ Bits write(C value) { return nearest(ox_narrowed(value)); }
};

template <typename C> static __device__ __forceinline__ C ox_round_to_bfloat16(C value)
{
    return (C)OxBF16::widened(OxBF16::nearest(ox_narrowed(value)));
}

template <typename C> static __device__ __forceinline__ C ox_round_to_float16(C value)
{
    return (C)OxF16::widened(OxF16::nearest(ox_narrowed(value)));
}

/* Codes of four bits, two a byte, with a scale for each 128: see array/quantized/four.rs. */

/* The share of a scale that a code has in a block of positive numbers, or of others. */
static __device__ __forceinline__ float ox_share(ox_u32 code, bool is_unsigned)
{
    const ox_u32 size = code > 7 ? code - 7 : 7 - code;
    const float small = size < 2 ? (size ? 0.0055f : 0.0f) : size < 3 ? 0.032500003f : 0.0775f;
    const float large = size < 6 ? (size < 5 ? 0.21249999f : 0.4375f) : size < 7 ? 0.6625f : size < 8 ? 0.8875f : 1.0f;
    const float share = size < 4 ? small : large;
    return is_unsigned ? (float)(code + 1) * 0.0625f : code < 7 ? -share : share;
}

/* The code of a share of a scale. */
static __device__ __forceinline__ ox_u32 ox_nearest(float share, bool is_unsigned)
{
    if (is_unsigned) {
        const ox_u32 above = (ox_u32)(share * 16.0f + 0.5f);
        return above ? above - 1 : 0;
    }
    ox_u32 code = 0;
    code += share >= -0.774999976f;
    code += share >= -0.550000012f;
    code += share >= -0.324999988f;
    code += share >= -0.144999996f;
    code += share >= -0.0549999997f;
    code += share >= -0.0190000013f;
    code += share >= -0.00274999999f;
    code += share >= 0.00274999999f;
    code += share >= 0.0190000013f;
    code += share >= 0.0550000034f;
    code += share >= 0.144999996f;
    code += share >= 0.325000018f;
    code += share >= 0.550000012f;
    code += share >= 0.775000036f;
    code += share >= 0.943750024f;
    return code;
}

/* Numbers of `N` codes of one scale. */
template <int N, typename C>
static __device__ __forceinline__ void
ox_decode_pairs(C (&to)[N], const void *from, float scale, ox_u32 count, bool wide)
{
    const bool is_unsigned = ox_bits(scale) >> 31;
    const float size = is_unsigned ? -scale : scale;
    ox_u32 words[N / 8] = {};
    if (wide) {
#pragma unroll
        for (int k = 0; k < N / 16; ++k) {
            const uint2 word = ((const uint2 *)from)[k];
            words[2 * k] = word.x;
            words[2 * k + 1] = word.y;
        }
    } else {
#pragma unroll
        for (int k = 0; k < N / 2; ++k)
            if ((ox_u32)(2 * k) < count) words[k / 4] |= (ox_u32)((const ox_u8 *)from)[k] << 8 * (k % 4);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 code = words[k / 8] >> (8 * (k % 8 / 2) + (k % 2 ? 0 : 4)) & 15;
        to[k] = (C)(ox_share(code, is_unsigned) * size);
    }
}

/* The largest magnitude of `count` numbers, as bits; and 1 if one is zero, plus 2 if one is negative. */
template <int N> static __device__ __forceinline__ uint2 ox_largest_pairs(const float (&from)[N], ox_u32 count)
{
    uint2 found = {0, 0};
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 bits = ox_bits(from[k]), size = bits & 0x7fffffffu;
        found.x = found.x > size ? found.x : size;
        found.y |= (ox_u32)k < count && !size ? 1 : bits > 0x80000000u ? 2 : 0;
    }
    return found;
}

/* Writes `N` numbers as codes; returns the scale. `each` are those of `ox_largest_pairs` of the threads that share it. */
template <int N>
static __device__ __forceinline__ float
ox_encode_pairs(const float (&from)[N], void *to, const uint2 *each, ox_u32 count, bool wide)
{
    ox_u32 largest = 0, kinds = 0;
#pragma unroll
    for (int k = 0; k < 128 / N; ++k) {
        largest = largest > each[k].x ? largest : each[k].x;
        kinds |= each[k].y;
    }
    const float scale = ox_f32(largest > 11u << 23 ? largest : 11u << 23);
    const bool is_unsigned = kinds == 0, is_finite = largest < 0x7f800000u;
    ox_u32 words[N / 8] = {};
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 nearest = ox_nearest(is_finite ? from[k] / scale : 0.0f, is_unsigned);
        const ox_u32 least = kinds == 1 && from[k] > 0.0f ? 8 : 0;
        const ox_u32 code = !is_finite ? 15 : nearest > least ? nearest : least;
        if ((ox_u32)k < count) words[k / 8] |= code << (8 * (k % 8 / 2) + (k % 2 ? 0 : 4));
    }
    if (wide) {
#pragma unroll
        for (int k = 0; k < N / 16; ++k) {
            uint2 word;
            word.x = words[2 * k];
            word.y = words[2 * k + 1];
            ((uint2 *)to)[k] = word;
        }
    } else {
#pragma unroll
        for (int k = 0; k < N / 2; ++k)
            if ((ox_u32)(2 * k) < count) ((ox_u8 *)to)[k] = (ox_u8)(words[k / 4] >> 8 * (k % 4));
    }
    return !is_finite ? ox_f32(0x7fc00000u) : is_unsigned ? -scale : scale;
}

/* Codes of eight bits, with a scale for each 256: see array/quantized.rs. */

/* Numbers of `N` codes of one scale. */
template <int N, typename C>
static __device__ __forceinline__ void ox_decode(C (&to)[N], const void *from, float scale, ox_u32 count, bool wide)
{
    ox_u8 codes[N];
    ox_read<N>(codes, from, count, wide);
    const bool is_unsigned = ox_bits(scale) >> 31;
    const float size = is_unsigned ? -scale : scale, level = is_unsigned ? 1.0f / 255.0f : 1.0f / 127.0f;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 code = codes[k];
        const bool minus = !is_unsigned && code & 0x80;
        const float root = (float)(minus ? 256 - code : code) * level;
        const ox_u32 bits = ox_bits(root), least = 0x2fa00000u;
        const float value = ox_f32(((bits > least ? bits : least) - least) << 2) * size;
        to[k] = (C)ox_f32(ox_bits(value) | (minus ? 0x80000000u : 0));
    }
}

/* Keeps `count` of `N` numbers, and zeros. */
template <int N, typename C>
static __device__ __forceinline__ void ox_keep(float (&to)[N], const C (&from)[N], ox_u32 count)
{
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = (ox_u32)k < count ? (float)from[k] : 0.0f;
}

/* The largest magnitude of some numbers, as bits, and the largest of their bits. */
template <int N> static __device__ __forceinline__ uint2 ox_largest(const float (&from)[N], ox_u32)
{
    uint2 found = {0, 0};
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 bits = ox_bits(from[k]), size = bits & 0x7fffffffu;
        found.x = found.x > size ? found.x : size;
        found.y = found.y > bits ? found.y : bits;
    }
    return found;
}

/* Writes `N` numbers as codes; returns the scale. `each` are those of `ox_largest` of the threads that share it. */
template <int N>
static __device__ __forceinline__ float
ox_encode(const float (&from)[N], void *to, const uint2 *each, ox_u32 count, bool wide)
{
    ox_u32 largest = 0, any = 0;
#pragma unroll
    for (int k = 0; k < 256 / N; ++k) {
        largest = largest > each[k].x ? largest : each[k].x;
        any = any > each[k].y ? any : each[k].y;
    }
    const float scale = ox_f32(largest > 11u << 23 ? largest : 11u << 23), up = 1.0f / scale;
    const bool is_signed = any > 0x80000000u;
    const float levels = is_signed ? 127.0f : 255.0f;
    ox_u8 codes[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const ox_u32 bits = ox_bits(from[k]);
        const float root = ox_f32((ox_bits(fabsf(from[k]) * up) >> 2) + 0x2fa00000u) * levels;
        const ox_u32 magnitude = ox_bits((root < levels ? root : levels) + 8388608.0f) & 0xff;
        const ox_u32 minus = 0u - (bits >> 31), least = bits << 1 ? 1 : 0;
        const ox_u32 code = is_signed ? (magnitude ^ minus) - minus : magnitude > least ? magnitude : least;
        codes[k] = (ox_u8)(largest >= 0x7f800000u ? 0xff : code);
    }
    ox_write<N>(codes, to, count, wide);
    return largest >= 0x7f800000u ? ox_f32(0x7fc00000u) : is_signed ? scale : -scale;
}

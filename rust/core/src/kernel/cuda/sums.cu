/* The sums of a chunk: of element i, in the order of i, to the total i % 16; then of the totals, as a balanced tree. */

/* Adds `count` numbers of a tile to the sixteen totals. */
template <typename C>
static __device__ __forceinline__ void ox_accumulate(const C *tile, ox_u32 count, double *totals, ox_u32 lane)
{
    double sum = totals[lane];
    for (ox_u32 k = lane; k < count; k += 16) sum += (double)tile[k];
    totals[lane] = sum;
}

static __device__ __forceinline__ double ox_balanced(const double *totals)
{
    double sums[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] = totals[k] + totals[k + 8];
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += sums[k + 4];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

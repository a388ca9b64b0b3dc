/* The remainder of the quotient that is rounded towards zero. Each difference is exact, since the number that is subtracted is
   more than half of the other one. */
static __device__ __forceinline__ double ox_rem(double a, double b)
{
    const ox_u64 sign = 1ull << 63, infinity = 0x7ffull << 52;
    double rest = ox_f64(ox_bits(a) & ~sign);
    const double divisor = ox_f64(ox_bits(b) & ~sign);
    if (!(ox_bits(rest) < infinity && ox_bits(divisor) <= infinity && ox_bits(divisor) > 0)) return (a * b) / (a * b);
    while (rest >= divisor) {
        const ox_u64 above = ox_bits(rest) >> 52, below = ox_bits(divisor) >> 52;
        double part = divisor;
        if (below > 0 && above > below) part = ox_f64(ox_bits(divisor) + ((above - below - 1) << 52));
        while (part + part <= rest) part += part;
        rest -= part;
    }
    return ox_f64(ox_bits(rest) | (ox_bits(a) & sign));
}

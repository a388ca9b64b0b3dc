/* A scalar of a set; the first is the number of the step. */
static __device__ __forceinline__ double ox_scalar(const OxLaunch &launch, ox_u32 set, ox_u32 each, ox_u32 number)
{
    if (number == 0 && launch.control) return (double)ox_step(launch);
    const ox_u64 at = (ox_u64)set * each + number;
    return launch.scalars ? launch.scalars[at] : launch.given[at];
}

/* Adds up numbers that are `stride` apart, in order, in `to`, which is shared by the block. */
template <int THREADS, int TILE>
static __device__ __forceinline__ void ox_add(const double *from, ox_u64 count, ox_u32 stride, double *to)
{
    __shared__ double tile[TILE];
    for (ox_u64 first = 0; first < count; first += TILE) {
        const ox_u32 length = count - first < TILE ? (ox_u32)(count - first) : TILE;
        OX_THREADS {
            for (ox_u32 k = threadIdx.x; k < length; k += THREADS) tile[k] = from[(first + k) * stride];
        }
        OX_BARRIER
        OX_THREADS {
            if (threadIdx.x == 0) {
                double sum = *to;
                for (ox_u32 k = 0; k < length; ++k) sum += tile[k];
                *to = sum;
            }
        }
        OX_BARRIER
    }
}

/* The sum of a leaf: those of its chunks, in order. */
template <int THREADS, int TILE>
static __device__ __forceinline__ void
ox_fold(const OxLaunch &launch, const OxLeaf &leaf, ox_u32 sums, ox_u32 number, double *to)
{
    OX_THREADS {
        if (threadIdx.x == 0) *to = 0.0;
    }
    const ox_u64 chunks = (leaf.length + 4095) / 4096;
    ox_add<THREADS, TILE>(launch.partials + (ox_u64)leaf.first_chunk * sums + number, chunks, sums, to);
    OX_BARRIER
}

/* A total: the sum of the batches, each the sum of its terms. */
template <int THREADS> static __device__ __forceinline__ void ox_total(const OxLaunch &launch, ox_u32 number)
{
    __shared__ double part;
    ox_u64 start = 0;
    for (ox_u64 batch = 0; batch < launch.batch_count; ++batch) {
        const ox_u64 end = launch.batches[batch];
        OX_THREADS {
            if (threadIdx.x == 0) part = 0.0;
        }
        ox_add<THREADS, 512>(launch.terms + start, end - start, 1, &part);
        OX_THREADS {
            if (threadIdx.x == 0) launch.totals[number] = batch == 0 ? part : launch.totals[number] + part;
        }
        start = end;
    }
}

/* Counts the step, unless a guard stopped it. */
static __device__ __forceinline__ void ox_advance(OxControl &control)
{
    if (control.stopped) control.skipped += 1;
    else control.step += 1;
    control.stopped = 0;
}

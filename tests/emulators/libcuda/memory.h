/* Memory of the devices and page-locked memory: mappings of the host between guard pages, whose addresses are never used twice.
 *
 * Memory that is not allocated yet in the order of its stream, or freed, cannot be accessed: a kernel that does so, or that leaves its
 * array by a page, is stopped. Bytes around an array that the page has left are checked when it is freed.
 */
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

constexpr size_t PAGE = 4096, ALIGNMENT = 256;
constexpr int NEW = 0xA5, AROUND = 0xC3;

enum class Kind { device, page_locked };

struct Range {
    Kind kind;
    int device;
    size_t size, data;  // as asked for, and rounded to the alignment
    char *mapping;      // with a guard page on each side
    size_t mapped;
    bool is_open = false, is_freed = false, is_pooled = false;
};

static std::recursive_mutex lock;
static std::vector<std::string> faults;
static std::map<uintptr_t, Range> ranges;  // by address, the freed ones too
static size_t in_use[2];                   // bytes on each device

template <typename... Args> static void fault(const char *format, Args... args)
{
    char text[512];
    snprintf(text, sizeof(text), format, args...);
    faults.push_back(text);
}

static size_t rounded(size_t size, size_t to) { return (size + to - 1) / to * to; }

static void open_range(Range &range)
{
    mprotect(range.mapping + PAGE, range.mapped - 2 * PAGE, PROT_READ | PROT_WRITE);
    memset(range.mapping + PAGE, AROUND, range.mapped - 2 * PAGE);
    memset(range.mapping + range.mapped - PAGE - range.data, NEW, range.size);
    range.is_open = true;
}

/* The address of new memory, which is open unless that comes later in the order of a stream; 0 where there is none. */
static uintptr_t make_range(Kind kind, int device, size_t size, bool open)
{
    Range range{kind, device, size, rounded(size, ALIGNMENT), nullptr, 0};
    range.mapped = rounded(range.data, PAGE) + 2 * PAGE;
    void *mapping = mmap(nullptr, range.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return 0;
    range.mapping = static_cast<char *>(mapping);
    if (open) open_range(range);
    const uintptr_t address = reinterpret_cast<uintptr_t>(range.mapping) + range.mapped - PAGE - range.data;
    if (kind == Kind::device) in_use[device] += size;
    ranges[address] = range;
    return address;
}

/* The range that an address lies in or just behind, where it is not far off. */
static std::pair<const uintptr_t, Range> *range_of(uintptr_t address)
{
    auto found = ranges.upper_bound(address);
    if (found == ranges.begin()) return nullptr;
    --found;
    const uintptr_t end = reinterpret_cast<uintptr_t>(found->second.mapping) + found->second.mapped;
    return address < end ? &*found : nullptr;
}

static void close_range(uintptr_t address, Range &range)
{
    if (range.is_open) {
        const char *begin = range.mapping + PAGE, *end = range.mapping + range.mapped - PAGE;
        const char *data = reinterpret_cast<const char *>(address);
        for (const char *at = begin; at < end; ++at)
            if ((at < data || at >= data + range.size) && *at != static_cast<char>(AROUND)) {
                fault("a byte was written %ld bytes after the begin of an array of %zu bytes", long(at - data), range.size);
                break;
            }
    }
    mprotect(range.mapping, range.mapped, PROT_NONE);
    madvise(range.mapping, range.mapped, MADV_DONTNEED);
    range.is_open = false;
    range.is_freed = true;
    if (range.kind == Kind::device) in_use[range.device] -= range.size;
}

static const char *state_of(const Range &range)
{
    return range.is_freed ? "freed" : range.is_open ? "allocated" : "not yet allocated in the order of its stream";
}

/* Whether all these bytes may be accessed now; states it as a fault otherwise. */
static bool is_accessible(const char *what, uintptr_t address, size_t size, Kind kind)
{
    auto *found = range_of(address);
    const char *name = kind == Kind::device ? "device" : "page-locked";
    if (!found || found->second.kind != kind)
        fault("%s: the address %#zx is not in %s memory", what, size_t(address), name);
    else if (!found->second.is_open)
        fault("%s: %s memory that is %s", what, name, state_of(found->second));
    else if (address + size > found->first + found->second.size)
        fault("%s: %zu bytes from %zu on, of %zu", what, size, size_t(address - found->first), found->second.size);
    else
        return true;
    return false;
}

static bool is_page_locked(uintptr_t address)
{
    auto *found = range_of(address);
    return found && found->second.kind == Kind::page_locked;
}

/* --- running code that may access what it must not --- */

static thread_local sigjmp_buf stopped;
static thread_local uintptr_t stopped_at;

static void stop(int, siginfo_t *info, void *)
{
    stopped_at = reinterpret_cast<uintptr_t>(info->si_addr);
    siglongjmp(stopped, 1);
}

/* Runs a function; false, and a fault, where it accesses memory that it must not. */
static bool run_guarded(const char *name, const std::function<void()> &function)
{
    struct sigaction own {}, segv, bus;
    own.sa_sigaction = stop;
    own.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &own, &segv);
    sigaction(SIGBUS, &own, &bus);
    const bool is_done = sigsetjmp(stopped, 1) == 0;
    if (is_done) function();
    sigaction(SIGSEGV, &segv, nullptr);
    sigaction(SIGBUS, &bus, nullptr);
    if (is_done) return true;
    auto *found = range_of(stopped_at);
    if (!found)
        fault("%s accesses the address %#zx, where no array is or was", name, size_t(stopped_at));
    else
        fault("%s accesses memory that is %s, %ld bytes after the begin of an array of %zu bytes", name, state_of(found->second),
              long(stopped_at - found->first), found->second.size);
    return false;
}

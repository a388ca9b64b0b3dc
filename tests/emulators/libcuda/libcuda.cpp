/* A CUDA driver in host memory: two devices, with the functions of the driver that steps and tests of them call.
 *
 * cuda-bindings loads it in place of libcuda.so.1, and finds its functions by cuGetProcAddress. Kernels are those of a library that g++
 * has compiled from their text (see executor.py); the "cubin" names its file, then each entry and its symbol, a line each. What the real driver
 * leaves undefined (memory that is freed too early, streams that do not wait for each other) is done in an order that shows it:
 * see streams.h and memory.h. `fake_faults` gives what was found.
 */
#include <dlfcn.h>

#include <sstream>

#include "streams.h"

#define API extern "C" __attribute__((visibility("default"))) int
#define LOCKED std::lock_guard<std::recursive_mutex> guard(lock)
#define CHECKED(...) \
    do { \
        if (const int status_ = (__VA_ARGS__)) return status_; \
    } while (0)

using Address = unsigned long long;

struct Context {
    int device;
    Stream *legacy;
};
struct Library {
    void *handle;
    std::map<std::string, std::string> symbols;
};
struct Kernel {
    std::string name;
    void (*run)(unsigned, unsigned, const void *);
    unsigned size;  // of its argument
    bool is_loaded = false;
};
struct Executable {
    std::vector<Work> nodes;
};

static constexpr int DEVICES = 2;
static size_t total_memory = size_t(4) << 30;
static int has_pools = 1, driver_version = 13020;
static bool is_initialized = false;
static Context contexts[DEVICES] = {{0, nullptr}, {1, nullptr}};
static thread_local std::vector<Context *> current;
static std::set<void *> events, kernels, libraries, graphs, executables;

static Stream *make_stream(int device, bool blocking, bool legacy)
{
    streams.push_back(std::make_unique<Stream>());
    Stream &made = *streams.back();
    made.device = device;
    made.is_blocking = blocking;
    made.is_legacy = legacy;
    return &made;
}

static int find_context(Context *&found)
{
    if (!is_initialized) return NOT_INITIALIZED;
    if (current.empty() || !current.back()) return INVALID_CONTEXT;
    found = current.back();
    if (!found->legacy) found->legacy = make_stream(found->device, false, true);
    return lost[found->device];
}

static int find_stream(void *handle, Stream *&found)
{
    Context *context;
    CHECKED(find_context(context));
    const auto number = reinterpret_cast<uintptr_t>(handle);
    if (number <= 1) return found = context->legacy, SUCCESS;
    for (auto &each : streams)
        if (each.get() == handle && !each->is_destroyed && !each->is_legacy) {
            found = each.get();
            return found->device == context->device ? SUCCESS : INVALID_HANDLE;
        }
    return INVALID_HANDLE;
}

static int find_event(void *handle, Event *&found)
{
    if (!events.count(handle)) return INVALID_HANDLE;
    found = static_cast<Event *>(handle);
    return SUCCESS;
}

/* --- devices and contexts --- */

API cuInit(unsigned flags) { return is_initialized = true, flags ? INVALID_VALUE : SUCCESS; }
API cuDriverGetVersion(int *version) { return *version = driver_version, SUCCESS; }
API cuDeviceGetCount(int *count) { return *count = DEVICES, SUCCESS; }

static int check_device(int device)
{
    return !is_initialized ? NOT_INITIALIZED : device >= 0 && device < DEVICES ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGet(int *device, int ordinal) { return *device = ordinal, check_device(ordinal); }

API cuDeviceGetName(char *name, int size, int device)
{
    CHECKED(check_device(device));
    snprintf(name, size_t(size), "Fake device %d", device);
    return SUCCESS;
}

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
    CHECKED(check_device(device));
    static const std::map<int, int> known = {{75, 9}, {76, 0}, {41, 1}, {91, 1}, {16, 132}, {1, 1024}};
    if (attribute == 115) return *value = has_pools, SUCCESS;
    auto found = known.find(attribute);
    return *value = found == known.end() ? 0 : found->second, SUCCESS;
}

API cuDeviceTotalMem(size_t *size, int device) { return *size = total_memory, check_device(device); }

API cuDevicePrimaryCtxRetain(Context **context, int device)
{
    CHECKED(check_device(device));
    return *context = &contexts[device], SUCCESS;
}

API cuDevicePrimaryCtxRelease(int device) { return check_device(device); }

API cuCtxPushCurrent(Context *context)
{
    if (!is_initialized) return NOT_INITIALIZED;
    if (context < contexts || context >= contexts + DEVICES) return INVALID_CONTEXT;
    current.push_back(context);
    return SUCCESS;
}

API cuCtxPopCurrent(Context **context)
{
    if (current.empty()) return INVALID_CONTEXT;
    *context = current.back();
    current.pop_back();
    return SUCCESS;
}

API cuCtxSetCurrent(Context *context)
{
    if (!current.empty()) current.pop_back();
    return context ? cuCtxPushCurrent(context) : int(SUCCESS);
}

API cuCtxGetCurrent(Context **context) { return *context = current.empty() ? nullptr : current.back(), SUCCESS; }

API cuCtxGetDevice(int *device)
{
    Context *context;
    CHECKED(find_context(context));
    return *device = context->device, SUCCESS;
}

API cuCtxSynchronize()
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    advance_device(context->device);
    return lost[context->device];
}

API cuGetErrorString(int, const char **text) { return *text = "of the fake driver", SUCCESS; }
API cuGetErrorName(int, const char **text) { return *text = "CUDA_ERROR", SUCCESS; }

/* --- kernels --- */

API cuLibraryLoadData(Library **library, const void *code, void *, void *, unsigned, void *, void *, unsigned)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    std::istringstream lines(static_cast<const char *>(code));
    std::string magic, path, entry, symbol;
    if (!std::getline(lines, magic) || magic != "kernels of the host" || !std::getline(lines, path)) return INVALID_IMAGE;
    auto made = std::make_unique<Library>();
    made->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!made->handle) return INVALID_IMAGE;
    while (lines >> entry >> symbol) made->symbols[entry] = symbol;
    *library = made.release();
    libraries.insert(*library);
    return SUCCESS;
}

API cuLibraryUnload(Library *library) {
    LOCKED;
    return libraries.erase(library) ? SUCCESS : INVALID_HANDLE;
}

API cuLibraryGetKernel(Kernel **kernel, Library *library, const char *name)
{
    LOCKED;
    if (!libraries.count(library)) return INVALID_HANDLE;
    auto found = library->symbols.find(name);
    if (found == library->symbols.end()) return NOT_FOUND;
    const auto run = dlsym(library->handle, ("run_" + found->second).c_str());
    const auto size = static_cast<const unsigned *>(dlsym(library->handle, ("size_" + found->second).c_str()));
    if (!run || !size) return NOT_FOUND;
    *kernel = new Kernel{name, reinterpret_cast<void (*)(unsigned, unsigned, const void *)>(run), *size};
    kernels.insert(*kernel);
    return SUCCESS;
}

static int load_kernel(Kernel *kernel)
{
    LOCKED;
    if (!kernels.count(kernel)) return INVALID_HANDLE;
    if (!kernel->is_loaded) CHECKED(refuse_in_capture());
    return kernel->is_loaded = true, SUCCESS;
}

API cuKernelGetFunction(Kernel **function, Kernel *kernel) { return *function = kernel, load_kernel(kernel); }
API cuFuncLoad(Kernel *function) { return load_kernel(function); }

API cuLaunchKernel(
    Kernel *kernel, unsigned x, unsigned y, unsigned z, unsigned block, unsigned block_y, unsigned block_z, unsigned shared, void *handle,
    void **arguments, void **extra)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (!kernels.count(kernel)) return INVALID_HANDLE;
    const bool is_flat = y == 1 && z == 1 && block_y == 1 && block_z == 1 && !shared && !extra;
    if (!is_flat || x == 0 || x > 0x7fffffff || block == 0 || block > 1024 || !arguments || !arguments[0]) return INVALID_VALUE;
    // Kernels are loaded lazily, at their first launch, which may have to wait for the device.
    if (!kernel->is_loaded) CHECKED(refuse_in_capture());
    kernel->is_loaded = true;
    const char *bytes = static_cast<const char *>(arguments[0]);
    std::vector<char> packed(bytes, bytes + kernel->size);
    return enqueue(*stream, [kernel, x, block, packed] {
        const bool is_done = run_guarded(kernel->name.c_str(), [&] { kernel->run(x, block, packed.data()); });
        return int(is_done ? SUCCESS : ILLEGAL_ADDRESS);
    });
}

/* --- memory --- */

static int allocate(Address *address, size_t size, bool open, Context *context)
{
    if (!size) return INVALID_VALUE;
    if (in_use[context->device] + size > total_memory) return OUT_OF_MEMORY;
    *address = make_range(Kind::device, context->device, size, open);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}

API cuMemAlloc(Address *address, size_t size)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    return allocate(address, size, true, context);
}

static int find_allocated(Address address, Kind kind, bool pooled)
{
    auto found = ranges.find(address);
    if (found == ranges.end() || found->second.kind != kind || found->second.is_pooled != pooled) return INVALID_VALUE;
    if (!found->second.is_freed) return SUCCESS;
    fault("memory of %zu bytes is freed twice", found->second.size);
    return INVALID_VALUE;
}

API cuMemFree(Address address)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    CHECKED(find_allocated(address, Kind::device, false));
    advance_device(ranges[address].device);  // it waits
    close_range(address, ranges[address]);
    return SUCCESS;
}

API cuMemAllocAsync(Address *address, size_t size, void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (!has_pools || stream->capture) return NOT_SUPPORTED;  // or a node of the graph, which nothing here needs
    CHECKED(allocate(address, size, false, current.back()));
    Range &range = ranges[*address];
    range.is_pooled = true;
    return enqueue(*stream, [&range] { return open_range(range), int(SUCCESS); });
}

API cuMemFreeAsync(Address address, void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (stream->capture) return INVALID_VALUE;  // only memory that the graph has allocated
    CHECKED(find_allocated(address, Kind::device, true));
    ranges[address].is_freed = true;  // for the host
    CHECKED(enqueue(*stream, [address] {
        if (!ranges[address].is_open) fault("memory is freed on a stream before it is allocated on another one");
        return close_range(address, ranges[address]), int(SUCCESS);
    }));
    advance(*stream);  // at once: streams that should have been waited for come later
    return lost[stream->device];
}

API cuMemHostAlloc(Address *address, size_t size, unsigned)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    if (!size) return INVALID_VALUE;
    *address = make_range(Kind::page_locked, context->device, size, true);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}

API cuMemFreeHost(Address address)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    CHECKED(refuse_in_capture());
    CHECKED(find_allocated(address, Kind::page_locked, false));
    close_range(address, ranges[address]);
    return SUCCESS;
}

API cuMemGetInfo(size_t *available, size_t *total)
{
    Context *context;
    CHECKED(find_context(context));
    return *total = total_memory, *available = total_memory - in_use[context->device], SUCCESS;
}

static Work copying(Address to, Kind to_kind, Address from, Kind from_kind, size_t size)
{
    return [=] {
        if (!is_accessible("a copy writes", to, size, to_kind) || !is_accessible("a copy reads", from, size, from_kind))
            return int(ILLEGAL_ADDRESS);
        memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), size);
        return int(SUCCESS);
    };
}

API cuMemcpyHtoDAsync(Address to, const void *from, size_t size, void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    const auto address = reinterpret_cast<uintptr_t>(from);
    if (is_page_locked(address)) return enqueue(*stream, copying(to, Kind::device, address, Kind::page_locked, size));
    if (stream->capture) return refuse_in_capture(), CAPTURE_UNSUPPORTED;
    std::vector<char> content(static_cast<const char *>(from), static_cast<const char *>(from) + size);  // as the driver stages it
    return enqueue(*stream, [to, content] {
        if (!is_accessible("a copy writes", to, content.size(), Kind::device)) return int(ILLEGAL_ADDRESS);
        memcpy(reinterpret_cast<void *>(to), content.data(), content.size());
        return int(SUCCESS);
    });
}

API cuMemcpyDtoHAsync(void *to, Address from, size_t size, void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    const auto address = reinterpret_cast<uintptr_t>(to);
    if (is_page_locked(address)) return enqueue(*stream, copying(address, Kind::page_locked, from, Kind::device, size));
    if (stream->capture) return refuse_in_capture(), CAPTURE_UNSUPPORTED;
    CHECKED(enqueue(*stream, [=] {
        if (!is_accessible("a copy reads", from, size, Kind::device)) return int(ILLEGAL_ADDRESS);
        memcpy(to, reinterpret_cast<const void *>(from), size);
        return int(SUCCESS);
    }));
    advance(*stream);  // the host waits for memory that is not page-locked
    return lost[stream->device];
}

API cuMemcpyHtoD(Address to, const void *from, size_t size)
{
    LOCKED;
    CHECKED(refuse_in_capture());
    CHECKED(cuMemcpyHtoDAsync(to, from, size, nullptr));
    advance(*current.back()->legacy);
    return lost[current.back()->device];
}

API cuMemcpyDtoH(void *to, Address from, size_t size)
{
    LOCKED;
    CHECKED(refuse_in_capture());
    CHECKED(cuMemcpyDtoHAsync(to, from, size, nullptr));
    advance(*current.back()->legacy);
    return lost[current.back()->device];
}

#include "order.h"

/* --- what tests set and read --- */

/* Sets an option by name: "eager", "pools", "version", "megabytes" of a device. */
API fake_set(const char *name, int value)
{
    LOCKED;
    const std::string option = name;
    if (option == "eager") is_eager = value != 0;
    else if (option == "pools") has_pools = value;
    else if (option == "version") driver_version = value;
    else if (option == "megabytes") total_memory = size_t(value) << 20;
    else return INVALID_VALUE;
    return SUCCESS;
}

/* Writes the faults so far, a line each, and forgets them. All work is done first; captures end, and devices that were lost can be used again. */
API fake_faults(char *text, size_t size)
{
    LOCKED;
    for (Capture *capture : captures)
        for (Stream *each : capture->members) each->capture = nullptr;
    captures.clear();
    for (int device = 0; device < DEVICES; ++device) advance_device(device);
    std::string all;
    for (auto &each : faults) all += each + "\n";
    snprintf(text, size, "%s", all.c_str());
    faults.clear();
    lost[0] = lost[1] = 0;
    return SUCCESS;
}

/* The number of things that were made and not destroyed: "events", "page-locked", "device" (arrays), "pending" (work). */
API fake_count(const char *name)
{
    LOCKED;
    const std::string what = name;
    if (what == "events") return int(events.size());
    int count = 0;
    if (what == "pending")
        for (auto &each : streams) count += int(each->enqueued - each->done);
    else
        for (auto &[address, range] : ranges)
            count += !range.is_freed && (range.kind == Kind::device) == (what == "device");
    return count;
}

/* --- finding functions --- */

/* As the driver does, by the name without the suffix of its version. */
API cuGetProcAddress_v2(const char *name, void **function, int, unsigned long long, int *found)
{
    static void *self = [] {
        Dl_info info;
        return dladdr(reinterpret_cast<void *>(&fake_set), &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    }();
    *function = dlsym(self, name);
    if (found) *found = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}

extern "C" __attribute__((visibility("default"))) int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

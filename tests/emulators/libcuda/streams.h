/* Streams, events and captures. Work is queued, and done only where the host or a stream waits for it, or memory is freed. */
#pragma once
#include <time.h>

#include <deque>
#include <memory>
#include <set>

#include "memory.h"

enum Status {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
};
enum Mode { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

using Work = std::function<int()>;

struct Graph {
    std::vector<Work> nodes;
};
struct Stream;
static thread_local char this_thread;
struct Capture {
    Capture(int mode, Stream *origin) : mode(mode), thread(&this_thread), origin(origin) {}
    int mode;
    const void *thread;
    Stream *origin;
    bool is_invalid = false;
    std::unique_ptr<Graph> graph = std::make_unique<Graph>();
    std::set<Stream *> members, unjoined;  // and those with work that the origin does not wait for yet
};
struct Stream {
    int device;
    bool is_blocking;  // it waits for the legacy stream, which waits for it
    bool is_legacy = false, is_destroyed = false;
    std::deque<Work> queue;
    uint64_t enqueued = 0, done = 0;
    Capture *capture = nullptr;
};
struct Event {
    Stream *stream = nullptr;  // of the last record, which is at a place in its queue
    uint64_t place = 0;
    Capture *captured = nullptr;
    bool is_captured = false, is_destroyed = false;
    double time = 0;
};

static std::vector<std::unique_ptr<Stream>> streams;  // all, the destroyed ones too
static std::set<Capture *> captures;
static int lost[2];             // the status of each device, once a kernel has failed
static bool is_eager = false;   // work is done as soon as it is queued
static thread_local int thread_mode = GLOBAL;

static void advance(Stream &stream, uint64_t to)
{
    while (stream.done < to) {
        const Work work = std::move(stream.queue.front());
        stream.queue.pop_front();
        if (!lost[stream.device])
            if (const int status = work()) lost[stream.device] = status;
        ++stream.done;
    }
}

static void advance(Stream &stream) { advance(stream, stream.enqueued); }

/* Does all work of a device, an item of each stream in turn, from the newest stream on. */
static void advance_device(int device)
{
    for (bool is_left = true; is_left;) {
        is_left = false;
        for (size_t at = streams.size(); at-- > 0;)
            if (Stream &each = *streams[at]; each.device == device && each.done < each.enqueued) {
                advance(each, each.done + 1);
                is_left = true;
            }
    }
}

static void push(Stream &stream, Work work)
{
    stream.queue.push_back(std::move(work));
    ++stream.enqueued;
}

static void wait_for(Stream &stream, Stream &other)
{
    if (const uint64_t place = other.enqueued; other.done < place)
        push(stream, [&other, place] { return advance(other, place), SUCCESS; });
}

/* Queues work on a stream, or adds it to the graph that the stream is captured into. */
static int enqueue(Stream &stream, Work work)
{
    if (lost[stream.device]) return lost[stream.device];
    if (stream.capture) {
        if (stream.capture->is_invalid) return CAPTURE_INVALIDATED;
        stream.capture->graph->nodes.push_back(std::move(work));
        if (&stream != stream.capture->origin) stream.capture->unjoined.insert(&stream);
        return SUCCESS;
    }
    for (auto &each : streams) {
        if (each.get() == &stream || each->device != stream.device) continue;
        if (stream.is_legacy && each->is_blocking && each->capture) {
            each->capture->is_invalid = true;
            return CAPTURE_IMPLICIT;
        }
        if ((stream.is_legacy && each->is_blocking) || (each->is_legacy && stream.is_blocking)) wait_for(stream, *each);
    }
    push(stream, std::move(work));
    if (is_eager) advance(stream);
    return lost[stream.device];
}

/* The status of a call that a capture in progress does not allow: see cuThreadExchangeStreamCaptureMode. */
static int refuse_in_capture()
{
    int status = SUCCESS;
    for (Capture *each : captures) {
        const bool is_own = each->thread == &this_thread && each->mode != RELAXED;
        if (thread_mode != RELAXED && (is_own || (thread_mode == GLOBAL && each->mode == GLOBAL))) {
            each->is_invalid = true;
            status = CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

static int record(Event &event, Stream &stream)
{
    if (stream.capture) {
        if (stream.capture->is_invalid) return CAPTURE_INVALIDATED;
        event.captured = stream.capture;
        event.is_captured = true;
        event.stream = &stream;
        return SUCCESS;
    }
    const int status = enqueue(stream, [&event] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        event.time = 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
        return int(SUCCESS);
    });
    event.is_captured = false;
    event.captured = nullptr;
    event.stream = &stream;
    event.place = stream.enqueued;
    return status;
}

/* Lets the work of a stream from now on wait for an event; that of a captured event joins its capture. */
static int wait_for(Stream &stream, Event &event)
{
    if (event.is_captured) {
        if (!captures.count(event.captured)) return INVALID_VALUE;
        if (&stream == event.captured->origin) {
            event.captured->unjoined.erase(event.stream);
        } else if (!stream.capture) {
            stream.capture = event.captured;
            event.captured->members.insert(&stream);
            event.captured->unjoined.insert(&stream);
        } else {
            event.captured->unjoined.erase(event.stream);
        }
        return SUCCESS;
    }
    if (stream.capture) {
        stream.capture->is_invalid = true;
        return 905;  // an event of outside, whose work the graph would not repeat
    }
    if (event.stream && event.stream->done < event.place) {
        Stream &other = *event.stream;
        const uint64_t place = event.place;
        push(stream, [&other, place] { return advance(other, place), int(SUCCESS); });
    }
    return SUCCESS;
}

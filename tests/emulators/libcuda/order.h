/* The functions of streams, events, captures and graphs. */
#pragma once

API cuStreamCreate(Stream **stream, unsigned flags)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    return *stream = make_stream(context->device, !(flags & 1), false), SUCCESS;
}

API cuStreamDestroy(void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    return stream->is_legacy ? INVALID_HANDLE : (stream->is_destroyed = true, SUCCESS);  // its work is still done
}

API cuStreamSynchronize(void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (stream->capture) return stream->capture->is_invalid = true, CAPTURE_UNSUPPORTED;
    CHECKED(refuse_in_capture());
    advance(*stream);
    return lost[stream->device];
}

/* A query lets one item of work be done. */
static int query(Stream &stream, uint64_t place)
{
    CHECKED(refuse_in_capture());
    if (stream.done >= place) return lost[stream.device];
    advance(stream, stream.done + 1);
    return NOT_READY;
}

API cuStreamQuery(void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (stream->capture) return stream->capture->is_invalid = true, CAPTURE_UNSUPPORTED;
    return query(*stream, stream->enqueued);
}

API cuStreamWaitEvent(void *handle, void *event, unsigned)
{
    LOCKED;
    Stream *stream;
    Event *found;
    CHECKED(find_stream(handle, stream));
    CHECKED(find_event(event, found));
    return wait_for(*stream, *found);
}

API cuEventCreate(Event **event, unsigned)
{
    LOCKED;
    Context *context;
    CHECKED(find_context(context));
    events.insert(*event = new Event);
    return SUCCESS;
}

API cuEventDestroy(void *event) {
    LOCKED;
    return events.erase(event) ? SUCCESS : INVALID_HANDLE;
}

API cuEventRecord(void *event, void *handle)
{
    LOCKED;
    Stream *stream;
    Event *found;
    CHECKED(find_stream(handle, stream));
    CHECKED(find_event(event, found));
    return record(*found, *stream);
}

API cuEventQuery(void *event)
{
    LOCKED;
    Event *found;
    CHECKED(find_event(event, found));
    if (found->is_captured) return CAPTURED_EVENT;
    return found->stream ? query(*found->stream, found->place) : refuse_in_capture();
}

API cuEventSynchronize(void *event)
{
    LOCKED;
    Event *found;
    CHECKED(find_event(event, found));
    if (found->is_captured) return CAPTURED_EVENT;
    CHECKED(refuse_in_capture());
    if (!found->stream) return SUCCESS;
    advance(*found->stream, found->place);
    return lost[found->stream->device];
}

API cuEventElapsedTime(float *milliseconds, void *start, void *end)
{
    LOCKED;
    Event *first, *last;
    CHECKED(find_event(start, first));
    CHECKED(find_event(end, last));
    for (Event *each : {first, last})
        if (!each->stream || each->stream->done < each->place) return NOT_READY;
    return *milliseconds = float(last->time - first->time), SUCCESS;
}

/* --- captures --- */

API cuThreadExchangeStreamCaptureMode(int *mode)
{
    std::swap(*mode, thread_mode);
    return SUCCESS;
}

API cuStreamBeginCapture(void *handle, int mode)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (stream->is_legacy || stream->capture) return CAPTURE_UNSUPPORTED;
    stream->capture = new Capture(mode, stream);
    stream->capture->members.insert(stream);
    captures.insert(stream->capture);
    return SUCCESS;
}

API cuStreamEndCapture(void *handle, Graph **graph)
{
    LOCKED;
    Stream *stream;
    *graph = nullptr;
    CHECKED(find_stream(handle, stream));
    Capture *capture = stream->capture;
    if (!capture || capture->origin != stream) return CAPTURE_UNMATCHED;
    if (capture->mode != RELAXED && capture->thread != &this_thread) return CAPTURE_WRONG_THREAD;
    for (Stream *each : capture->members) each->capture = nullptr;
    captures.erase(capture);  // its address is kept, which captured events refer to
    if (capture->is_invalid) return CAPTURE_INVALIDATED;
    if (!capture->unjoined.empty()) return CAPTURE_UNJOINED;
    graphs.insert(*graph = capture->graph.release());
    return SUCCESS;
}

API cuStreamIsCapturing(void *handle, int *status)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (stream->is_legacy)
        for (Capture *each : captures)
            for (Stream *member : each->members)
                if (member->is_blocking && member->device == stream->device) return CAPTURE_IMPLICIT;
    *status = !stream->capture ? 0 : stream->capture->is_invalid ? 2 : 1;
    return SUCCESS;
}

API cuGraphGetNodes(Graph *graph, void **nodes, size_t *count)
{
    LOCKED;
    if (!graphs.count(graph)) return INVALID_HANDLE;
    if (nodes) return NOT_SUPPORTED;
    return *count = graph->nodes.size(), SUCCESS;
}

API cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long)
{
    LOCKED;
    if (!graphs.count(graph)) return INVALID_HANDLE;
    executables.insert(*executable = new Executable{graph->nodes});
    return SUCCESS;
}

API cuGraphLaunch(Executable *executable, void *handle)
{
    LOCKED;
    Stream *stream;
    CHECKED(find_stream(handle, stream));
    if (!executables.count(executable)) return INVALID_HANDLE;
    return enqueue(*stream, [nodes = executable->nodes] {
        for (const Work &each : nodes) CHECKED(each());
        return int(SUCCESS);
    });
}

API cuGraphDestroy(Graph *graph) {
    LOCKED;
    return graphs.erase(graph) ? SUCCESS : INVALID_HANDLE;
}
API cuGraphExecDestroy(Executable *graph) {
    LOCKED;
    return executables.erase(graph) ? SUCCESS : INVALID_HANDLE;
}

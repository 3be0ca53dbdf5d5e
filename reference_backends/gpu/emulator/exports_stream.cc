// SPDX-License-Identifier: Apache-2.0
// Implements streams, captures and events.
#include <algorithm>

#include "reference_backends/gpu/emulator/entry.h"

namespace collet::gpu {

using emulator::Capture;
using emulator::Entry;
using emulator::in_context;

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int) {
  return in_context([&](Entry& e) -> CUresult {
    if (!stream || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<CUstream_st>();
    made->state = e.scheduler().create_stream(e.index, false, flags == CU_STREAM_DEFAULT);
    e.state->streams.insert(made.get());
    *stream = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->streams.erase(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->state->capture) {
      stream->state->capture->is_valid = false;
      stream->state->capture = nullptr;
    }
    e.scheduler().remove_stream(stream->state);
    delete stream;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
      stream->capture->is_valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    e.scheduler().wait_for(e.lock, stream);
    return e.device->failure;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
      stream->capture->is_valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return e.scheduler().is_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream || !e.state->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (e.scheduler().wait_event(stream, event->state)) return CUDA_SUCCESS;
    if (stream->capture) stream->capture->is_valid = false;
    return event->state->capture ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return in_context([&](Entry& e) -> CUresult {
    if (!handle) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const auto stream = e.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->streams = {stream};
    stream->tail.clear();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    // Every captured node must precede the end of the stream on which the capture began.
    std::vector<bool> joined(capture->nodes.size(), false);
    for (const size_t n : stream->tail) joined[n] = true;
    for (size_t n = capture->nodes.size(); n-- > 0;) {
      if (!joined[n]) continue;
      for (const size_t before : capture->nodes[n].after) joined[before] = true;
    }
    const bool complete = std::all_of(joined.begin(), joined.end(), [](bool j) { return j; });
    for (const auto& s : capture->streams) {
      s->capture = nullptr;
      s->tail.clear();
    }
    capture->streams.clear();
    capture->origin = nullptr;
    if (!capture->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!complete) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto made = std::make_unique<CUgraph_st>();
    made->nodes = std::move(capture->nodes);
    made->device = e.index;
    e.state->graphs.insert(made.get());
    *graph = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return in_context([&](Entry& e) -> CUresult {
    if (!event || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<CUevent_st>();
    made->has_time = !(flags & CU_EVENT_DISABLE_TIMING);
    made->device = e.index;
    e.state->events.insert(made.get());
    *event = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return emulator::destroy(&emulator::State::events, event);
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream || !e.state->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
    e.scheduler().record(stream, event->state);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent event) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->state->capture) return CUDA_ERROR_CAPTURED_EVENT;
    return event->state->completed >= event->state->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->state->capture) return CUDA_ERROR_CAPTURED_EVENT;
    const std::shared_ptr<emulator::EventState> state = event->state;
    e.scheduler().wait_for(e.lock, state);
    return e.device->failure;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return in_context([&](Entry& e) -> CUresult {
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->events.count(start) || !e.state->events.count(end)) return CUDA_ERROR_INVALID_HANDLE;
    if (!start->has_time || !end->has_time || !start->state->recorded || !end->state->recorded)
      return CUDA_ERROR_INVALID_HANDLE;
    for (const CUevent event : {start, end}) {
      if (event->state->completed < event->state->recorded) return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->state->time - start->state->time).count();
    return CUDA_SUCCESS;
  });
}

}  // namespace collet::gpu

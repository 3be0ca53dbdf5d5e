// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/buffer.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/runtime/backend/caught.h"
#include "sdk/runtime/memory/convert.h"
#include "sdk/runtime/memory/copy.h"
#include "sdk/runtime/memory/memory_pool.h"

namespace collet::runtime {
namespace {

// Larger copies are done by a worker thread, if asynchronous copies are allowed.
constexpr uint64_t kInlineCopy = uint64_t{1} << 18;

// Gathers a strided array into dense row-major bytes.
void gather(const collet_host_array& array, size_t element_bytes, const char* from, uint32_t dim, char*& out) {
  if (dim == array.rank) {
    std::memcpy(out, from, element_bytes);
    out += element_bytes;
    return;
  }
  for (int64_t i = 0; i < array.dims[dim]; ++i)
    gather(array, element_bytes, from + i * array.byte_strides[dim], dim + 1, out);
}

bool is_dense(const collet_host_array& array, size_t element_bytes) {
  if (!array.byte_strides) return true;
  int64_t expected = static_cast<int64_t>(element_bytes);
  for (uint32_t d = array.rank; d-- > 0;) {
    if (array.dims[d] != 1 && array.byte_strides[d] != expected) return false;
    expected *= array.dims[d];
  }
  return true;
}

// True for elements narrower than a byte. Users may keep such an element in the low bits of a byte and leave anything
// in the other bits.
bool is_narrow(uint32_t element) {
  return hlo::type_info(static_cast<hlo::Type>(element)).bits < 8;
}

void fill_high_bits(uint32_t element, char* data, uint64_t count) {
  const auto type = static_cast<hlo::Type>(element);
  const int spare = 8 - hlo::type_info(type).bits;
  for (uint64_t i = 0; i < count; ++i) {
    const auto high = static_cast<uint8_t>(static_cast<uint8_t>(data[i]) << spare);
    data[i] = hlo::is_signed(type) && hlo::is_integer(type) ? static_cast<char>(static_cast<int8_t>(high) >> spare)
                                                            : static_cast<char>(high >> spare);
  }
}

void call_done(const collet_host_array& array) {
  if (array.done) array.done(array.user);
}

/// The caller's array of a buffer that is a view of it.
struct HostView {
  ~HostView() {
    if (is_made && done) done(user);
  }
  void* user;
  void (*done)(void*);
  bool is_made = false;
};

// Returns memory that is the caller's array, without a copy; an empty reference if the device cannot have that.
Expected<MemoryRef> view_of(Pool& pool, const collet_host_array& array, uint64_t bytes) {
  if (array.semantics < COLLET_HOST_ZERO_COPY || !pool.backend().has_host_buffers()) return MemoryRef();
  const auto view = std::make_shared<HostView>(array.user, array.done);
  auto memory = pool.wrap(array.data, bytes, view);
  if (!memory.ok() && memory.status().code() == Code::Unimplemented) return MemoryRef();
  view->is_made = memory.ok();
  return memory;
}

Status wait_for(Event* event) {
  if (!event) return ok_status();
  Status outcome = event->wait();
  event->release();
  return outcome;
}

}  // namespace

namespace {

// Stores the value of a scalar that the host knows, so that launches may pass it by value.
void note_value(Memory* memory, const ArrayType& type, const void* data) {
  if (!type.dims.empty() || type.bytes == 0 || type.bytes > sizeof memory->value) return;
  std::memcpy(memory->value, data, type.bytes);
  memory->is_known = true;
}

// Returns a copy of a complete array that has elements.
QueuedCopy whole_copy(MemoryRef from, MemoryRef to, uint64_t bytes) {
  QueuedCopy copy;
  copy.region.from.buffer = from->handle;
  copy.region.to.buffer = to->handle;
  copy.region.bytes = bytes;
  copy.from = std::move(from);
  copy.to = std::move(to);
  return copy;
}

}  // namespace

Buffer* Buffer::make(Client& client, uint32_t device, uint32_t space, const ArrayType* type, MemoryRef memory,
                     Event* ready) {
  auto* buffer = new (allocate_pooled(sizeof(Buffer))) Buffer;
  client.retain();
  buffer->client_ = &client;
  buffer->device_ = device;
  buffer->space_ = space;
  buffer->type_ = type;
  buffer->memory_ = std::move(memory);
  buffer->ready_ = ready;
  return buffer;
}

void Buffer::release() {
  uint64_t refs = refs_.load(std::memory_order_relaxed);
  while (true) {
    const uint64_t left = refs - 1;
    // The work, which still has the buffer, gives back the reference to the client.
    const bool is_for_work = left != 0 && only_for_work(left);
    if (is_for_work) client_->make_for_work();
    if (refs_.compare_exchange_weak(refs, left, std::memory_order_acq_rel)) break;
    if (is_for_work) client_->make_for_caller();
  }
  if (refs != 1) return;
  Client* client = client_;
  destroy();
  client->release();
}

void Buffer::release_after_work() {
  if (refs_.fetch_sub(kWorkReference, std::memory_order_acq_rel) != kWorkReference) return;
  Client* client = client_;
  destroy();
  client->release_after_work();
}

void Buffer::destroy() {
  if (promise_) (void)fail(Status(Code::Cancelled, "the buffer was released before its data came"));
  if (ready_) ready_->release();
  this->~Buffer();
  free_pooled(this, sizeof(Buffer));
}

Expected<Buffer*> Buffer::from_host(Client& client, uint32_t device, uint32_t space, const collet_host_array& array) {
  if (array.rank && !array.dims)
    return invalid_argument("an array of rank " + std::to_string(array.rank) + " without dimensions");
  if (array.semantics > COLLET_HOST_MUTABLE_ZERO_COPY) return invalid_argument("unknown host semantics");
  COLLET_ASSIGN(const ArrayType* type, array_type(array.element, {array.dims, array.rank}));
  COLLET_ASSIGN(const uint32_t s, client.check_space(device, space));
  if (!array.data && type->bytes) return invalid_argument("no data");
  Device& d = client.device(device);
  if (type->bytes == 0) {
    call_done(array);
    return make(client, device, s, type, {}, nullptr);
  }
  const size_t element_bytes = collet_type_bytes(array.element);
  const bool dense = is_dense(array, element_bytes), narrow = is_narrow(array.element);
  const bool small = type->bytes < kInlineCopy;
  if (dense && !narrow && !small) {
    COLLET_ASSIGN(MemoryRef view, view_of(d.pool(s), array, type->bytes));
    if (view) return make(client, device, s, type, std::move(view), nullptr);
  }
  Queue* queue = nullptr;
  if (!d.is_host_visible(s)) {
    COLLET_ASSIGN(queue, d.queue(COLLET_QUEUE_UPLOAD));
  }
  COLLET_ASSIGN(MemoryRef memory, d.pool(s).take(type->bytes, queue));
  std::shared_ptr<char[]> staged;
  if (!dense || narrow || (queue && small)) {
    auto* out = static_cast<char*>(memory->host);
    if (!out) {
      staged.reset(new (std::nothrow) char[type->bytes]);
      if (!staged) return resource_exhausted("no host memory for " + std::to_string(type->bytes) + " bytes");
      out = staged.get();
    }
    char* at = out;
    if (dense)
      std::memcpy(out, array.data, type->bytes);
    else
      gather(array, element_bytes, static_cast<const char*>(array.data), 0, at);
    if (narrow) fill_high_bits(array.element, out, type->bytes);
    if (!staged) {
      call_done(array);
      return make(client, device, s, type, std::move(memory), nullptr);
    }
  }
  const void* data = staged ? staged.get() : array.data;
  note_value(memory.get(), *type, data);
  const bool must_wait = array.semantics == COLLET_HOST_COPIED && !staged;
  if (queue) {
    QueuedCopy copy;
    copy.region.from.host = const_cast<void*>(data);
    copy.region.to.buffer = memory->handle;
    copy.region.bytes = type->bytes;
    copy.to = memory;
    copy.host = staged;
    if (!staged && !must_wait) copy.done = [array] { call_done(array); };
    COLLET_ASSIGN(Event * ready, start_copy(client, d.upload(), *queue, std::move(copy), nullptr));
    if (must_wait) {
      if (Status status = ready->wait(); !status.ok()) {
        ready->release();
        return status;
      }
    }
    if (staged || must_wait) call_done(array);
    return make(client, device, s, type, std::move(memory), ready);
  }
  if (staged || must_wait || small) {
    COLLET_TRY(upload(d.backend(), memory.get(), data, type->bytes));
    call_done(array);
    return make(client, device, s, type, std::move(memory), nullptr);
  }
  auto* ready = new Event;
  ready->retain();
  Buffer* buffer = make(client, device, s, type, memory, ready);
  client.add_after(d.upload(), {}, [&d, memory = std::move(memory), array, bytes = type->bytes, ready]() mutable {
    Status outcome = caught([&] { return upload(d.backend(), memory.get(), array.data, bytes); });
    memory = {};
    call_done(array);
    ready->set(std::move(outcome));
    ready->release();
  });
  return buffer;
}

Expected<Buffer*> Buffer::promise(Client& client, uint32_t device, uint32_t space, const ArrayType* type) {
  COLLET_ASSIGN(const uint32_t s, client.check_space(device, space));
  COLLET_ASSIGN(MemoryRef memory, client.device(device).pool(s).take(type->bytes));
  auto* ready = new Event(true);
  ready->retain();
  Buffer* buffer = make(client, device, s, type, memory, ready);
  buffer->promised_ = std::move(memory);
  buffer->promise_ = ready;
  return buffer;
}

Status Buffer::write(uint64_t offset, uint64_t bytes, const void* data) {
  if (offset > type_->bytes || bytes > type_->bytes - offset)
    return Status(Code::OutOfRange, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                                        " of an array of " + std::to_string(type_->bytes));
  if (!data && bytes) return invalid_argument("no data");
  MemoryRef memory;
  {
    const std::lock_guard lock(mutex_);
    if (!promise_) return failed_precondition("the buffer waits for no data");
    memory = promised_;
    ++writers_;
  }
  struct Writer {
    std::atomic<uint32_t>& count;
    ~Writer() {
      if (--count == 0) count.notify_all();
    }
  };
  const Writer writer{writers_};
  if (bytes == 0) return ok_status();
  if (is_narrow(type_->element)) {
    std::vector<char> copy(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    fill_high_bits(type_->element, copy.data(), bytes);
    return upload(client_->device(device_).backend(), memory.get(), copy.data(), bytes, offset);
  }
  return upload(client_->device(device_).backend(), memory.get(), data, bytes, offset);
}

Status Buffer::settle(MemoryRef& memory, Event*& event) {
  {
    const std::lock_guard lock(mutex_);
    if (!promise_) return failed_precondition("the buffer waits for no data");
    memory = std::move(promised_);
    event = std::exchange(promise_, nullptr);
  }
  // Other threads may still write their parts.
  while (const uint32_t writers = writers_) writers_.wait(writers);
  return ok_status();
}

Status Buffer::fulfil(Buffer* source) {
  Use use;
  if (source) {
    if (source == this || source->client_ != client_ || source->type_ != type_)
      return invalid_argument("a buffer of " + type_->to_string() + " is fulfilled by another one of the same client " +
                              "and type, not by " + source->type_->to_string());
    COLLET_TRY(source->use(use));
    if (Status status = source->make_dense(use); !status.ok()) {
      if (use.ready) use.ready->release();
      return status;
    }
  }
  Queue* queue = nullptr;
  if (source && type_->bytes) {
    auto made = client_->device(device_).queue(COLLET_QUEUE_UPLOAD);
    if (!made.ok()) {
      if (use.ready) use.ready->release();
      return made.status();
    }
    queue = *made;
  }
  MemoryRef memory;
  Event* event = nullptr;
  if (Status status = settle(memory, event); !status.ok()) {
    if (use.ready) use.ready->release();
    return status;
  }
  if (!source) {
    event->set(ok_status());
    event->release();
    return ok_status();
  }
  Device& from = client_->device(source->device_);
  Device& to = client_->device(device_);
  Event* const before[] = {use.ready};
  if (queue) {
    QueuedCopy copy = whole_copy(use.memory, memory, type_->bytes);
    client_->add_after(to.upload(), before,
                       [this_client = client_, queue, copy = std::move(copy), ready = use.ready, event]() mutable {
                         start_copy_for(*this_client, *queue, std::move(copy), ready, event);
                       });
    return ok_status();
  }
  client_->add_after(
      to.upload(), before,
      [&from, &to, memory = std::move(memory), data = std::move(use.memory), ready = use.ready, bytes = type_->bytes,
       event]() mutable {
        Status outcome = wait_for(ready);
        if (outcome.ok())
          outcome = caught([&] { return copy_memory(from.backend(), data.get(), to.backend(), memory.get(), bytes); });
        memory = {};
        data = {};
        event->set(std::move(outcome));
        event->release();
      });
  return ok_status();
}

Status Buffer::fail(Status outcome) {
  if (outcome.ok()) return invalid_argument("a failure needs a code");
  MemoryRef memory;
  Event* event = nullptr;
  COLLET_TRY(settle(memory, event));
  event->set(std::move(outcome));
  event->release();
  return ok_status();
}

Status Buffer::use(Use& out) {
  const std::lock_guard lock(mutex_);
  if (deleted_.load(std::memory_order_relaxed))
    return failed_precondition("the buffer (" + type_->to_string() + ") was deleted or donated");
  if (ready_ && ready_->is_ready()) {
    if (!ready_->outcome().ok()) return ready_->outcome();
    ready_->release();
    ready_ = nullptr;
  }
  out.memory = memory_;
  out.ready = ready_;
  if (ready_) ready_->retain();
  return ok_status();
}

bool Buffer::give(MemoryRef& memory) {
  const std::lock_guard lock(mutex_);
  if (deleted_.load(std::memory_order_relaxed)) return false;
  deleted_.store(true, std::memory_order_release);
  memory = std::move(memory_);
  return true;
}

void Buffer::give_back(MemoryRef memory) {
  const std::lock_guard lock(mutex_);
  memory_ = std::move(memory);
  deleted_.store(false, std::memory_order_release);
}

void Buffer::erase() {
  MemoryRef memory;  // released after the lock
  const std::lock_guard lock(mutex_);
  deleted_.store(true, std::memory_order_release);
  std::swap(memory, memory_);
}

Event* Buffer::ready_event() {
  const std::lock_guard lock(mutex_);
  Event* event = ready_ ? ready_ : Event::already();
  event->retain();
  return event;
}

Status Buffer::make_dense(Use& use) {
  Device& d = client_->device(device_);
  if (!use.memory || !d.backend().has_layouts()) return ok_status();
  if (use.ready) COLLET_TRY(use.ready->wait_placed());
  if (!use.memory->layout) return ok_status();
  COLLET_TRY(wait_for(std::exchange(use.ready, nullptr)));
  COLLET_ASSIGN(Queue * queue, d.queue(COLLET_QUEUE_COMPUTE));
  Point end;
  COLLET_ASSIGN(use.memory, convert(d, use.memory, nullptr, queue, {}, end));
  return collet::runtime::wait_for({&end, 1});
}

Expected<const void*> Buffer::host_data(Use& use, std::unique_ptr<char[]>& copy) {
  if (Status status = make_dense(use); !status.ok()) {
    if (use.ready) use.ready->release();
    use.ready = nullptr;
    return status;
  }
  COLLET_TRY(wait_for(std::exchange(use.ready, nullptr)));
  if (!use.memory || type_->bytes == 0) return nullptr;
  if (use.memory->host) return use.memory->host;
  copy.reset(new char[type_->bytes]);
  COLLET_TRY(download(client_->device(device_).backend(), use.memory.get(), 0, copy.get(), type_->bytes));
  return copy.get();
}

void* Buffer::promised_place() {
  const std::lock_guard lock(mutex_);
  return promised_ && !is_narrow(type_->element) ? promised_->host : nullptr;
}

Status Buffer::to_host(uint64_t offset, uint64_t bytes, void* out, Event** out_event) {
  if (offset > type_->bytes || bytes > type_->bytes - offset)
    return Status(Code::OutOfRange, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                                        " of an array of " + std::to_string(type_->bytes));
  if (!out && bytes) return invalid_argument("nowhere to copy to");
  Use use;
  COLLET_TRY(this->use(use));
  Device& d = client_->device(device_);
  if (out_event && use.memory && use.ready && !use.ready->is_placed() && d.backend().has_layouts()) {
    // The layout is known when the run has begun, which may wait for the caller: it may call a function that needs a lock of his.
    auto* done = new Event(use.ready->is_late());
    done->retain();
    *out_event = done;
    Event* const before[] = {use.ready};
    retain();
    client_->add_after(d.download(), before, [this, use = std::move(use), offset, bytes, out, done]() mutable {
      done->set(caught([&] { return copy_to_host(std::move(use), offset, bytes, out, nullptr); }));
      done->release();
      release();
    });
    return ok_status();
  }
  return copy_to_host(std::move(use), offset, bytes, out, out_event);
}

Status Buffer::copy_to_host(Use use, uint64_t offset, uint64_t bytes, void* out, Event** out_event) {
  Device& d = client_->device(device_);
  if (Status status = make_dense(use); !status.ok()) {
    if (use.ready) use.ready->release();
    return status;
  }
  Queue* queue = nullptr;
  if (bytes && !d.is_host_visible(space_)) {
    auto made = d.queue(COLLET_QUEUE_DOWNLOAD);
    if (!made.ok()) {
      if (use.ready) use.ready->release();
      return made.status();
    }
    queue = *made;
  }
  if (queue) {
    QueuedCopy copy;
    copy.region.from.buffer = use.memory->handle;
    copy.region.from.offset = offset;
    copy.region.to.host = out;
    copy.region.bytes = bytes;
    copy.from = std::move(use.memory);
    if (!out_event && use.ready) (void)use.ready->wait_placed();
    COLLET_ASSIGN(Event * done, start_copy(*client_, d.download(), *queue, std::move(copy), use.ready));
    if (out_event) {
      *out_event = done;
      return ok_status();
    }
    return wait_for(done);
  }
  if (!out_event || (!use.ready && bytes < kInlineCopy)) {
    COLLET_TRY(wait_for(use.ready));
    if (bytes) COLLET_TRY(download(d.backend(), use.memory.get(), offset, out, bytes));
    if (!out_event) return ok_status();
    *out_event = Event::already();
    (*out_event)->retain();
    return ok_status();
  }
  auto* done = new Event(use.ready && use.ready->is_late());
  done->retain();
  *out_event = done;
  Event* const before[] = {use.ready};
  client_->add_after(d.download(), before,
                     [&d, memory = std::move(use.memory), ready = use.ready, offset, bytes, out, done]() mutable {
                       Status outcome = wait_for(ready);
                       if (outcome.ok())
                         outcome = caught([&] { return download(d.backend(), memory.get(), offset, out, bytes); });
                       memory = {};
                       done->set(std::move(outcome));
                       done->release();
                     });
  return ok_status();
}

Expected<Buffer*> Buffer::copy_to(uint32_t device, uint32_t space) {
  COLLET_ASSIGN(const uint32_t s, client_->check_space(device, space));
  Device& from = client_->device(device_);
  Device& to = client_->device(device);
  Use use;
  COLLET_TRY(this->use(use));
  if (Status status = make_dense(use); !status.ok()) {
    if (use.ready) use.ready->release();
    return status;
  }
  const uint64_t bytes = type_->bytes;
  Queue* queue = nullptr;
  auto taken = [&]() -> Expected<MemoryRef> {
    if (bytes) {
      COLLET_ASSIGN(queue, to.queue(COLLET_QUEUE_UPLOAD));
    }
    return to.pool(s).take(bytes, queue);
  }();
  if (!taken.ok()) {
    if (use.ready) use.ready->release();
    return taken.status();
  }
  MemoryRef memory = *std::move(taken);
  if (queue) {
    QueuedCopy copy = whole_copy(std::move(use.memory), memory, bytes);
    COLLET_ASSIGN(Event * ready, start_copy(*client_, to.upload(), *queue, std::move(copy), use.ready));
    return make(*client_, device, s, type_, std::move(memory), ready);
  }
  if (!use.ready && bytes < kInlineCopy) {
    if (bytes) COLLET_TRY(copy_memory(from.backend(), use.memory.get(), to.backend(), memory.get(), bytes));
    return make(*client_, device, s, type_, std::move(memory), nullptr);
  }
  auto* ready = new Event(use.ready && use.ready->is_late());
  ready->retain();
  Buffer* buffer = make(*client_, device, s, type_, memory, ready);
  Event* const after[] = {use.ready};
  client_->add_after(to.upload(), after,
                     [&from, &to, memory = std::move(memory), source = std::move(use.memory), before = use.ready, bytes,
                      ready]() mutable {
                       Status outcome = wait_for(before);
                       if (outcome.ok())
                         outcome = caught([&] {
                           return copy_memory(from.backend(), source.get(), to.backend(), memory.get(), bytes);
                         });
                       memory = {};
                       source = {};
                       ready->set(std::move(outcome));
                       ready->release();
                     });
  return buffer;
}

const void* Buffer::host_pointer() {
  MemoryRef memory;
  {
    const std::lock_guard lock(mutex_);
    const bool failed = ready_ && ready_->is_ready() && !ready_->outcome().ok();
    if (!failed) memory = memory_;
  }
  const Device& device = client_->device(device_);
  if (!memory || !device.is_host_visible(space_) || device.backend().has_layouts()) return nullptr;
  const Status allocated = caught([&] { return memory->pool->allocate(*memory.get()); });
  return allocated.ok() ? memory->host : nullptr;
}

}  // namespace collet::runtime

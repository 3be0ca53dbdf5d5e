// SPDX-License-Identifier: Apache-2.0
#include <collet/program.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sdk/runtime/testing/remote_protocol.h"

/// \file
/// The process that owns the remote backend's memory and runs its two kernels, at once or on queues.

namespace collet::remote {
namespace {

template <typename T>
void add(const void* a, const void* b, void* out, uint64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (uint64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = x[i] + y[i];
}
// Wraps around.
void add_s32(const void* a, const void* b, void* out, uint64_t n) {
  add<uint32_t>(a, b, out, n);
}

struct Loop {
  int64_t extent, lhs_stride, rhs_stride;
};

int64_t stride_of(const collet_program* p, const collet_type* t, uint32_t dim) {
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < t->dims.count; ++d) stride *= collet_integers(p, t->dims)[d];
  return stride;
}

double contract(const std::vector<Loop>& loops, size_t at, const float* a, const float* b) {
  if (at == loops.size()) return static_cast<double>(*a) * static_cast<double>(*b);
  double sum = 0;
  for (int64_t i = 0; i < loops[at].extent; ++i)
    sum += contract(loops, at + 1, a + i * loops[at].lhs_stride, b + i * loops[at].rhs_stride);
  return sum;
}

void spread(const std::vector<Loop>& outer, size_t at, const std::vector<Loop>& inner, const float* a, const float* b,
            float*& out) {
  if (at == outer.size()) {
    *out++ = static_cast<float>(contract(inner, 0, a, b));
    return;
  }
  for (int64_t i = 0; i < outer[at].extent; ++i)
    spread(outer, at + 1, inner, a + i * outer[at].lhs_stride, b + i * outer[at].rhs_stride, out);
}

void dot(const collet_program* p, const collet_op* op, const float* a, const float* b, float* out) {
  collet_dot_attrs attrs;
  collet_read_attributes(p, op, &attrs, sizeof attrs);
  const collet_type* lhs = collet_value_type(p, collet_operand(p, op, 0));
  const collet_type* rhs = collet_value_type(p, collet_operand(p, op, 1));
  std::vector<bool> lhs_used(lhs->dims.count), rhs_used(rhs->dims.count);
  const auto pairs = [&](collet_range l, collet_range r) {
    std::vector<Loop> loops;
    for (uint32_t i = 0; i < l.count; ++i) {
      const auto x = static_cast<uint32_t>(collet_integers(p, l)[i]),
                 y = static_cast<uint32_t>(collet_integers(p, r)[i]);
      lhs_used[x] = rhs_used[y] = true;
      loops.push_back({collet_integers(p, lhs->dims)[x], stride_of(p, lhs, x), stride_of(p, rhs, y)});
    }
    return loops;
  };
  std::vector<Loop> outer = pairs(attrs.lhs_batch, attrs.rhs_batch);
  const std::vector<Loop> inner = pairs(attrs.lhs_contracting, attrs.rhs_contracting);
  for (uint32_t d = 0; d < lhs->dims.count; ++d)
    if (!lhs_used[d]) outer.push_back({collet_integers(p, lhs->dims)[d], stride_of(p, lhs, d), 0});
  for (uint32_t d = 0; d < rhs->dims.count; ++d)
    if (!rhs_used[d]) outer.push_back({collet_integers(p, rhs->dims)[d], 0, stride_of(p, rhs, d)});
  spread(outer, 0, inner, a, b, out);
}

// Walks the program: three nested loops, as program.h says.
void run(const collet_program* p, const std::vector<char*>& arguments, const std::vector<char*>& results) {
  const collet_region* entry = collet_region_at(p, 0);
  std::vector<char*> values(p->values.count);
  std::vector<std::vector<char>> made;
  for (uint32_t i = 0; i < entry->arguments.count; ++i) values[entry->arguments.first + i] = arguments[i];
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    const collet_op* op = collet_op_at(p, entry->ops.first + i);
    const collet_type* type = collet_value_type(p, op->results.first);
    made.emplace_back(type->bytes);
    char* out = values[op->results.first] = made.back().data();
    const char *a = values[collet_operand(p, op, 0)], *b = values[collet_operand(p, op, 1)];
    if (op->opcode == COLLET_OP_DOT)
      dot(p, op, reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), reinterpret_cast<float*>(out));
    else
      (type->element == COLLET_TYPE_F32 ? add<float> : add_s32)(a, b, out, type->elements);
  }
  // A result that is an argument must not be overwritten by another result that takes over the argument's memory.
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    const uint32_t v = collet_ref_at(p, entry->results.first + i);
    if (v - entry->arguments.first >= entry->arguments.count) continue;
    made.emplace_back(values[v], values[v] + collet_value_type(p, v)->bytes);
    values[v] = made.back().data();
  }
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    const uint32_t v = collet_ref_at(p, entry->results.first + i);
    if (const uint64_t bytes = collet_value_type(p, v)->bytes) std::memcpy(results[i], values[v], bytes);
  }
}

using Program = std::vector<uint64_t>;  // a block, 8-byte aligned

// A request with what followed it.
struct Work {
  Request request;
  std::vector<Wait> waits;
  std::vector<char> payload;
};

// A queue: a thread that does its work in order.
struct Queue {
  uint64_t number;
  uint64_t counter = 0;
  int32_t status = COLLET_OK;
  std::string message;
  bool running = false, told = false, stop = false;
  std::deque<Work> work;
  std::thread thread;
};

// What the process owns. The reader's thread and those of queues share it.
class Device {
 public:
  explicit Device(int socket) : socket_(socket) {}
  ~Device() {
    std::vector<std::shared_ptr<Queue>> all;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [number, queue] : queues_) {
        queue->stop = true;
        all.push_back(queue);
      }
    }
    changed_.notify_all();
    for (const auto& queue : all) queue->thread.join();
  }

  bool serve_one() {
    Work w;
    if (!receive_all(socket_, &w.request, sizeof w.request)) return false;
    const Request& r = w.request;
    w.waits.resize(r.waits);
    w.payload.resize(r.verb == Verb::Run ? r.count * sizeof(Slot)
                     : r.verb == Verb::Write || r.verb == Verb::Compile || r.verb == Verb::Abort ? r.bytes
                                                                                                 : 0);
    if (!receive_all(socket_, w.waits.data(), w.waits.size() * sizeof(Wait)) ||
        !receive_all(socket_, w.payload.data(), w.payload.size()))
      return false;
    if (r.queue != 0 && is_work(r.verb)) return put(std::move(w));
    Answer answer;
    answer.id = r.id;
    std::string data;
    answer.status = do_now(w, answer, data);
    return r.id == 0 || tell(answer, data);
  }

 private:
  static bool is_work(Verb verb) {
    return verb == Verb::Write || verb == Verb::Read || verb == Verb::Copy || verb == Verb::Run;
  }

  bool tell(Answer answer, std::string_view data) {
    answer.bytes = data.size();
    const std::lock_guard lock(sending_);
    return send_all(socket_, &answer, sizeof answer) && send_all(socket_, data.data(), data.size());
  }

  char* memory(uint64_t buffer, uint64_t offset) {
    const std::lock_guard lock(mutex_);
    return buffers_.at(buffer).data() + offset;  // stays where it is while the buffer lives
  }

  int32_t do_now(const Work& w, Answer& answer, std::string& data) {
    const Request& r = w.request;
    switch (r.verb) {
      case Verb::Alloc: {
        std::vector<char> made;
        try {
          made.resize(r.bytes);
        } catch (const std::exception&) {  // more than there is, or than a vector counts
          return COLLET_RESOURCE_EXHAUSTED;
        }
        const std::lock_guard lock(mutex_);
        answer.number = next_++;
        buffers_[answer.number] = std::move(made);
        return COLLET_OK;
      }
      case Verb::Free: {
        const std::lock_guard lock(mutex_);
        buffers_.erase(r.buffer);
        return COLLET_OK;
      }
      case Verb::Compile: {
        auto block = std::make_shared<Program>(r.bytes / 8 + 1);
        std::memcpy(block->data(), w.payload.data(), r.bytes);
        const std::lock_guard lock(mutex_);
        answer.number = next_++;
        programs_[answer.number] = std::move(block);
        return COLLET_OK;
      }
      case Verb::Release: {
        const std::lock_guard lock(mutex_);
        programs_.erase(r.buffer);
        return COLLET_OK;
      }
      case Verb::MakeQueue:
        return make_queue(answer);
      case Verb::EndQueue:
        return end_queue(r.queue);
      case Verb::Abort: {
        const std::shared_ptr<Queue> queue = find(r.queue);
        if (queue) fail(*queue, static_cast<int32_t>(r.other), std::string(w.payload.begin(), w.payload.end()));
        return COLLET_OK;
      }
      default:
        return do_work(w, data);
    }
  }

  int32_t do_work(const Work& w, std::string& data) {
    const Request& r = w.request;
    if (r.verb == Verb::Write) {
      std::memcpy(memory(r.buffer, r.offset), w.payload.data(), r.bytes);
    } else if (r.verb == Verb::Read) {
      data.assign(memory(r.buffer, r.offset), r.bytes);
    } else if (r.verb == Verb::Copy) {
      std::memcpy(memory(r.other, r.other_offset), memory(r.buffer, r.offset), r.bytes);
    } else {
      std::shared_ptr<Program> block;
      {
        const std::lock_guard lock(mutex_);
        block = programs_.at(r.buffer);
      }
      std::vector<Slot> slots(r.count);
      std::memcpy(slots.data(), w.payload.data(), w.payload.size());
      const auto* p = reinterpret_cast<const collet_program*>(block->data());
      const uint32_t n = collet_region_at(p, 0)->arguments.count;
      std::vector<char*> places;
      for (const Slot& s : slots) places.push_back(s.buffer ? memory(s.buffer, s.offset) : nullptr);
      run(p, {places.begin(), places.begin() + n}, {places.begin() + n, places.end()});
    }
    return COLLET_OK;
  }

  std::shared_ptr<Queue> find(uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto it = queues_.find(number);
    return it == queues_.end() ? nullptr : it->second;
  }

  int32_t make_queue(Answer& answer) {
    auto queue = std::make_shared<Queue>();
    const std::lock_guard lock(mutex_);
    answer.number = queue->number = next_++;
    queues_[queue->number] = queue;
    queue->thread = std::thread([this, queue] { loop(*queue); });
    return COLLET_OK;
  }

  int32_t end_queue(uint64_t number) {
    const std::shared_ptr<Queue> queue = find(number);
    if (!queue) return COLLET_NOT_FOUND;
    {
      const std::lock_guard lock(mutex_);
      queue->stop = true;
    }
    changed_.notify_all();
    queue->thread.join();
    const std::lock_guard lock(mutex_);
    queues_.erase(number);
    return COLLET_OK;
  }

  bool put(Work w) {
    const std::shared_ptr<Queue> queue = find(w.request.queue);
    if (!queue) return true;
    {
      const std::lock_guard lock(mutex_);
      if (queue->status == COLLET_OK) queue->work.push_back(std::move(w));  // else it fails with the queue
    }
    changed_.notify_all();
    return true;
  }

  // Under no lock. The news goes out when nothing of the queue runs any more.
  void fail(Queue& queue, int32_t status, std::string message) {
    {
      const std::lock_guard lock(mutex_);
      if (queue.status != COLLET_OK) return;
      queue.status = status;
      queue.message = std::move(message);
      queue.work.clear();
      if (queue.running || queue.told) return;
      queue.told = true;
    }
    tell_failure(queue);
  }

  void tell_failure(const Queue& queue) {
    Answer news;
    news.queue = queue.number;
    news.status = queue.status;
    (void)tell(news, queue.message);
    changed_.notify_all();
  }

  // 0: the points are reached; else the failed queue that one of them is of.
  bool is_ready(const Work& w, std::shared_ptr<Queue>& broken) {
    for (const Wait& wait : w.waits) {
      const auto it = queues_.find(wait.queue);
      if (it == queues_.end() || it->second->counter >= wait.value) continue;
      if (it->second->status == COLLET_OK || it->second->running) return false;
      broken = it->second;
      return true;
    }
    return true;
  }

  void loop(Queue& queue) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return queue.stop || !queue.work.empty(); });
      if (queue.stop) return;
      std::shared_ptr<Queue> broken;
      changed_.wait(lock, [&] { return queue.stop || queue.work.empty() || is_ready(queue.work.front(), broken); });
      if (queue.stop) return;
      if (queue.work.empty()) continue;  // the queue was aborted
      if (broken) {
        const int32_t status = broken->status;
        const std::string message = broken->message;
        lock.unlock();
        fail(queue, status, message);
        lock.lock();
        continue;
      }
      const Work w = std::move(queue.work.front());
      queue.work.pop_front();
      queue.running = true;
      lock.unlock();
      Answer news;
      std::string data;
      const int32_t status = do_work(w, data);
      lock.lock();
      queue.running = false;
      const bool failed = queue.status != COLLET_OK || status != COLLET_OK;
      if (!failed && w.request.signal) queue.counter = w.request.signal;
      news.id = w.request.id;
      news.queue = w.request.signal ? queue.number : 0;
      news.value = queue.counter;
      lock.unlock();
      if (failed) {
        tell_failure(queue);
      } else if (news.id || news.queue) {
        (void)tell(news, data);
      }
      changed_.notify_all();
      lock.lock();
    }
  }

  const int socket_;
  std::mutex sending_;
  std::mutex mutex_;  // of what follows, and of queues
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<char>> buffers_;
  std::map<uint64_t, std::shared_ptr<Program>> programs_;
  std::map<uint64_t, std::shared_ptr<Queue>> queues_;
  uint64_t next_ = 1;
};

}  // namespace

bool send_all(int socket, const void* data, uint64_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(socket, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* data, uint64_t bytes) {
  char* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = read(socket, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

void serve(int socket) {
  Device device(socket);
  while (device.serve_one()) {
  }
}

}  // namespace collet::remote

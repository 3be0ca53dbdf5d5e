// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_rows.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "sdk/include/tests/kernel_fixture.h"

namespace collet::kernel {
namespace {

using Floats = std::vector<float>;

/// A device that runs kernels and ordered copies from the host later, on a thread, in order; each takes a millisecond.
class LateDevice final : public Device {
 public:
  LateDevice(int64_t fail_at, bool is_lost) : fail_at_(fail_at), is_lost_(is_lost), thread_([this] { work(); }) {}
  ~LateDevice() override {
    submit(nullptr);
    thread_.join();
  }
  Memory allocate(uint64_t bytes, uint64_t) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++alive;
    pieces_[++last_].assign(bytes, '\xee');
    return last_;
  }
  Memory allocate_in(uint32_t, uint64_t bytes, uint64_t alignment) override { return allocate(bytes, alignment); }
  void* host_pointer(Memory memory) override { return find(memory, 0); }
  Memory wrap(const void* host, uint64_t) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    wrapped_[++last_] = static_cast<char*>(const_cast<void*>(host));
    return last_;
  }
  void end_wrap(Memory memory) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    wrapped_.erase(memory);
  }
  void free(Memory memory) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    alive -= static_cast<int>(pieces_.erase(memory));
  }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    const char* const data = static_cast<const char*>(from);
    submit([this, to, offset, kept = std::vector<char>(data, data + bytes)] {
      std::memcpy(find(to, offset), kept.data(), kept.size());
    });
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    finish();
    download(from, offset, to, bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    submit([this, to, to_offset, from, from_offset, bytes] {
      std::memcpy(find(to, to_offset), find(from, from_offset), bytes);
    });
  }
  void finish() override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= submitted_; });
  }
  uint64_t mark() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return submitted_ + 1;
  }
  void wait(uint64_t mark) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ + 1 >= mark; });
    if (failed_at_ == 0 || failed_at_ >= mark) return;
    failed_at_ = 0;
    throw Error(is_lost_ ? COLLET_UNAVAILABLE : COLLET_INTERNAL, "a command failed");
  }
  void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(find(to, offset), from, bytes);
  }
  void download(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, find(from, offset), bytes);
  }
  uint64_t start_download(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    submit([this, from, offset, to, bytes] { download(from, offset, to, bytes); });
    return mark();
  }
  bool copy_to(Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
               uint64_t bytes) override {
    finish();
    ++linked;
    other.upload(to, to_offset, find(from, from_offset), bytes);
    return true;
  }
  void submit(std::function<void()> command) {
    const std::lock_guard<std::mutex> lock(mutex_);
    commands_.push_back(std::move(command));
    ++submitted_;
    changed_.notify_all();
  }
  char* find(Memory memory, uint64_t offset) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto wrapped = wrapped_.find(memory);
    return (wrapped == wrapped_.end() ? pieces_.at(memory).data() : wrapped->second) + offset;
  }
  float* floats(const Array& array) {
    return array.bytes ? reinterpret_cast<float*>(find(array.memory, array.offset)) : nullptr;
  }
  static inline std::atomic<int> linked{0}, most_ahead{0};

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return !commands_.empty(); });
      most_ahead = std::max<int>(most_ahead, static_cast<int>(commands_.size()));
      const std::function<void()> command = std::move(commands_.front());
      commands_.pop_front();
      if (!command) return;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      command();
      lock.lock();
      ++done_;
      if (static_cast<int64_t>(done_) == fail_at_) failed_at_ = done_;
      changed_.notify_all();
    }
  }

  const int64_t fail_at_;
  const bool is_lost_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Memory, std::vector<char>> pieces_;
  std::map<Memory, char*> wrapped_;
  Memory last_ = 0;
  std::deque<std::function<void()>> commands_;
  uint64_t submitted_ = 0, done_ = 0, failed_at_ = 0;
  std::thread thread_;
};

LateDevice& late(Device& device) {
  return static_cast<LateDevice&>(device);
}

int prepared = 0;
std::atomic<int> known_scalars{0};

// Gathers of two members; those in another process have twice the numbers of member 0.
class LateExchanger : public Exchanger {
 public:
  bool takes(const collet_exchange& exchange) override {
    if (exchange.element == COLLET_TYPE_F64) throw Error(COLLET_INTERNAL, "no answer");
    return exchange.kind == COLLET_EXCHANGE_ALL_GATHER;
  }
  void run(const collet_exchange& exchange, const std::vector<ExchangeMember>& members) override {
    if (exchange.timeout_ms == 1) throw Error(COLLET_DEADLINE_EXCEEDED, "process 1 does not answer");
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[1].device, nullptr);
    EXPECT_EQ(members[1].to.memory, no_memory);
    LateDevice& here = late(*members[0].device);
    std::vector<float> x(2 * exchange.count);
    here.read(members[0].from.memory, members[0].from.offset, x.data(), exchange.count * 4);
    for (uint64_t i = 0; i < exchange.count; ++i) x[exchange.count + i] = 2 * x[i];
    here.write(members[0].to.memory, members[0].to.offset, x.data(), x.size() * 4);
  }
};

Backend describe_late() {
  Backend backend;
  backend.name = "late";
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_COMPUTE}, {COLLET_TYPE_S32, COLLET_MAY_MOVE}};
  backend.queues = true;
  backend.profile = true;
  backend.host_memory = true;
  backend.host_buffers = true;
  backend.more_spaces = {{"pinned_host", 0, 64, COLLET_SPACE_HOST_VISIBLE}};
  backend.options = {"fail_at", "lost"};
  backend.configure = [](const Options& options, Backend* mine) {
    mine->device_count = options.device_count ? options.device_count : 2;
    const int64_t fail_at = options.values.count("fail_at") ? std::stoll(options.values.at("fail_at")) : -1;
    const bool is_lost = options.values.count("lost") != 0;
    mine->open_device = [=](uint32_t) { return std::make_unique<LateDevice>(fail_at, is_lost); };
  };
  backend.exchanger = std::make_shared<LateExchanger>();
  backend.link = [](uint32_t, uint32_t, collet_link* link) {
    link->hops = 1;
    link->bytes_per_ns = 4;
  };
  Kernel add{COLLET_OP_ADD, f32, f32, [](Device& device, const Op& op) {
               EXPECT_EQ(op.state<uint64_t>(), op.result().elements);
               LateDevice& d = late(device);
               loop_binary(op.result().elements, d.floats(op.operand(0)), d.floats(op.operand(1)),
                           d.floats(op.result()), [](float a, float b) { return a + b; });
             }};
  add.prepare = [](Device&, const Op& op) -> std::any {
    ++prepared;
    return op.result().elements;
  };
  // x - y. The packed form of y is negated. The layout is dense, or has the elements of x reversed.
  Kernel subtract{COLLET_OP_SUBTRACT, f32, f32, [](Device& device, const Op& op) {
                    const Array &x = op.operand(0), &y = op.operand(1), &out = op.result();
                    LateDevice& d = late(device);
                    for (uint64_t i = 0; i < out.elements; ++i) {
                      const float from = d.floats(x)[x.layout ? 2 * i : i];
                      d.floats(out)[i] = y.packed ? from + d.floats(y)[i] : from - d.floats(y)[i];
                    }
                  }};
  subtract.packing.operand = 1;
  subtract.packing.bytes = [](const Op& op) { return op.operand(1).bytes; };
  subtract.packing.make = [](Device& device, const Op& op, const Array& packed) {
    const Array& from = op.operand(1);
    LateDevice& d = late(device);
    for (uint64_t i = 0; i < from.elements; ++i) d.floats(packed)[i] = -d.floats(from)[i];
  };
  subtract.layout = [](const Op& op, uint32_t index, collet_layout* layout) {
    if (index != 0 || op.operand(0).rank != 1) return;
    layout->rank = 1;  // tiles of two, of which every second element is padding
    layout->bytes = 2 * op.operand(0).bytes;
    layout->tile_rank[0] = 1;
  };
  // -x. The layout of the result is dense, or has a gap behind each element.
  Kernel negate{COLLET_OP_NEGATE, f32, f32, [](Device& device, const Op& op) {
                  LateDevice& d = late(device);
                  for (uint64_t i = 0; i < op.result().elements; ++i)
                    d.floats(op.result())[op.result().layout ? 2 * i : i] = -d.floats(op.operand(0))[i];
                }};
  negate.layout = [](const Op& op, uint32_t index, collet_layout* layout) {
    if (index != 1) return;
    layout->rank = 1;
    layout->bytes = 2 * op.result().bytes;
    layout->tile_rank[0] = 1;
  };
  Kernel gelu{COLLET_OP_CALL, f32, f32, [](Device&, const Op&) {}};
  gelu.pattern = "gelu";
  gelu.features = COLLET_FEATURE_CHANNELS;
  gelu.takes = [](const Op& op) -> Verdict {
    if (op.pattern_attribute("form") != "tanh") return "only the form of tanh";
    return op.pattern_number("scale", 1) == 0.5;
  };
  Kernel scale{COLLET_OP_CUSTOM_CALL, f32, f32, [](Device&, const Op&) {}};
  scale.target = "acme_scale";
  scale.takes = [](const Op& op) -> Verdict {
    const std::vector<DictionaryEntry> attributes = op.dictionary();
    if (attributes.size() != 2) return "two attributes";
    return op.target() == "acme_scale" && attributes[0].name == "axes" && attributes[0].integer(1) == 3 &&
           op.pattern_number("factor", 0) == 0.5;
  };
  // x * y, where y is a scalar that the host may know. It uses scratch memory.
  Kernel multiply{COLLET_OP_MULTIPLY, f32, f32, [](Device& device, const Op& op) {
                    LateDevice& d = late(device);
                    known_scalars += op.operand(1).host != nullptr;
                    const float y =
                        op.operand(1).host ? *static_cast<const float*>(op.operand(1).host) : *d.floats(op.operand(1));
                    *d.floats(op.scratch()) = *d.floats(op.operand(0)) * y;
                    *d.floats(op.result()) = *d.floats(op.scratch());
                  }};
  multiply.scratch = [](const Op&) { return uint64_t{4}; };
  Rows rows([](Device& device, const Array& array) -> void* { return late(device).floats(array); });
  backend.kernels = rows.add(add).add(subtract).add(negate).add(gelu).add(scale).add(multiply).moves(f32).take();
  for (Kernel& row : backend.kernels) {
    row = later(std::move(row), [](Device& device, const Op& op, std::function<void()> work) {
      EXPECT_NE(op.arrays(), nullptr);
      late(device).submit(std::move(work));
    });
  }
  return backend;
}

class KernelTables : public ::testing::Test, public Opened {
 protected:
  void open(const char* fail_at = nullptr, const char* lost = nullptr) {
    collet_open_options options{};
    const char* const keys[] = {"fail_at", "lost"};
    const char* const values[] = {fail_at, lost};
    options.keys = keys, options.values = values;
    options.pairs = (fail_at ? 1 : 0) + (lost ? 1 : 0);
    ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_late>, options));
    EXPECT_EQ(about.device_count, 2u);
    queues = static_cast<const collet_queue_table*>(table->query(instance, "queue", 1));
    ASSERT_NE(queues, nullptr);
  }
  void TearDown() override {
    table->close(instance);
    EXPECT_EQ(alive, 0);
  }
  collet_backend_queue* queue(uint32_t kind, uint32_t device = 0) {
    collet_backend_queue* out = nullptr;
    EXPECT_EQ(queues->create(instance, device, kind, &out, &error), COLLET_OK) << error.message;
    return out;
  }
  collet_backend_buffer* buffer(uint64_t bytes, uint32_t device = 0, uint32_t space = 0) {
    collet_backend_buffer* out = nullptr;
    EXPECT_EQ(table->alloc(instance, device, space, bytes, 64, &out, &pointer, &error), COLLET_OK) << error.message;
    return out;
  }
  collet_status copy(collet_place from, collet_place to, uint64_t bytes, const collet_sync* sync = nullptr) {
    const collet_copy_region region{from, to, bytes};
    return table->copy(instance, &region, 1, sync, &error);
  }
  collet_backend_executable* compile(const std::vector<uint64_t>& block) {
    const collet_compile_options options = one_participant();
    facts = {};
    facts.struct_size = sizeof facts;
    collet_rejection rejection{};
    collet_backend_executable* out = nullptr;
    EXPECT_EQ(table->compile(instance, program_of(block), &options, &out, &facts, &rejection, &error), COLLET_OK)
        << error.message;
    return out;
  }

  const collet_queue_table* queues = nullptr;
  collet_executable_info facts{};
  void* pointer = nullptr;
  testing::ProgramWriter w;
};

collet_place at(collet_backend_buffer* buffer) {
  return {buffer, nullptr, 0};
}
collet_place at(void* host) {
  return {nullptr, host, 0};
}

TEST_F(KernelTables, ProgramsRunAheadOfTheHost) {
  open();
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  prepared = 0;
  collet_backend_executable* executable = compile(w.finish(2, {w.op(COLLET_OP_ADD, t, {x, y})}));
  EXPECT_EQ(prepared, 1);
  collet_backend_queue *up = queue(COLLET_QUEUE_UPLOAD), *compute = queue(COLLET_QUEUE_COMPUTE),
                       *down = queue(COLLET_QUEUE_DOWNLOAD);
  collet_backend_buffer *a = buffer(8), *b = buffer(8);
  float data[2] = {1, 2}, zeros[2] = {0, 0}, out[2] = {};
  collet_point uploaded{up, 2};
  const collet_point first{up, 1};
  collet_sync sync{up, nullptr, &first, 0, 1};
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_OK);
  sync.signals = &uploaded;
  EXPECT_EQ(copy(at(zeros), at(b), 8, &sync), COLLET_OK);
  LateDevice::most_ahead = 0;
  constexpr uint64_t kRuns = 50;
  for (uint64_t i = 1; i <= kRuns; ++i) {  // b = b + a, in place
    collet_argument arguments[2] = {}, result{};
    arguments[0].buffer = b, arguments[1].buffer = a, result.buffer = b;
    arguments[0].bytes = arguments[1].bytes = result.bytes = 8;
    collet_point done{compute, i};
    collet_sync go{compute, &uploaded, &done, i == 1 ? 1u : 0u, 1};
    collet_launch launch{};
    launch.arguments = arguments, launch.argument_count = 2;
    launch.results = &result, launch.result_count = 1;
    launch.sync = &go;
    ASSERT_EQ(table->execute(executable, &launch, 1, i, &error), COLLET_OK) << error.message;
    std::memset(static_cast<void*>(arguments), 0xff, sizeof arguments);  // the caller may overwrite them now
  }
  const collet_point computed{compute, kRuns}, loaded{down, 1};
  sync = {down, &computed, &loaded, 1, 1};
  EXPECT_EQ(copy(at(b), at(out), 8, &sync), COLLET_OK);
  EXPECT_EQ(queues->wait(down, 1, 0, &error), COLLET_DEADLINE_EXCEEDED);
  EXPECT_EQ(queues->wait(down, 1, UINT64_MAX, &error), COLLET_OK) << error.message;
  EXPECT_EQ(out[0], 50);
  EXPECT_EQ(out[1], 100);
  EXPECT_GT(LateDevice::most_ahead, 1) << "the device always had the next program";
  EXPECT_EQ(prepared, 1);
  for (collet_backend_queue* one : {up, compute, down}) queues->destroy(one);
  table->free(instance, a);
  table->free(instance, b);
  table->release(executable);
}

TEST_F(KernelTables, KernelsThatRunLaterKeepWhatTheyNeed) {
  open();
  const uint32_t t = w.type(COLLET_TYPE_F32, {}), row = w.type(COLLET_TYPE_F32, {4}), s = w.type(COLLET_TYPE_S32, {});
  const uint32_t x = w.argument(t), y = w.argument(t, COLLET_VALUE_SCALAR), z = w.argument(row),
                 at_index = w.argument(s);
  const uint32_t product = w.op(COLLET_OP_MULTIPLY, t, {x, y});
  const uint32_t slice = w.op(COLLET_OP_DYNAMIC_SLICE, w.type(COLLET_TYPE_F32, {2}), {z, at_index},
                              collet_dynamic_slice_attrs{w.list({2})});
  collet_backend_executable* executable = compile(w.finish(4, {product, slice}));
  ASSERT_NE(executable, nullptr);
  collet_backend_queue* compute = queue(COLLET_QUEUE_COMPUTE);
  float three = 3, numbers[4] = {10, 20, 30, 40}, scalar = 0, two[2] = {};
  int32_t start = 1;
  collet_backend_buffer *bx = buffer(4), *bz = buffer(16), *bi = buffer(4), *workspace = buffer(facts.workspace_bytes);
  EXPECT_EQ(copy(at(&three), at(bx), 4), COLLET_OK);
  EXPECT_EQ(copy(at(numbers), at(bz), 16), COLLET_OK);
  EXPECT_EQ(copy(at(&start), at(bi), 4), COLLET_OK);
  known_scalars = 0;
  constexpr uint64_t kRuns = 20;
  std::vector<collet_backend_buffer*> products, slices;
  for (uint64_t i = 0; i < kRuns; ++i) {  // each with another scalar; all are started before the first has ended
    collet_argument arguments[4] = {}, results[2] = {};
    products.push_back(buffer(4)), slices.push_back(buffer(8));
    arguments[0].buffer = bx, arguments[2].buffer = bz, arguments[3].buffer = bi;
    arguments[0].bytes = arguments[1].bytes = arguments[3].bytes = 4, arguments[2].bytes = 16;
    arguments[1].flags = COLLET_ARG_IMMEDIATE;
    const auto value = static_cast<float>(i);
    std::memcpy(arguments[1].immediate, &value, sizeof value);
    results[0].buffer = products.back(), results[1].buffer = slices.back();
    results[0].bytes = 4, results[1].bytes = 8;
    const collet_point done{compute, i + 1};
    collet_sync go{compute, nullptr, &done, 0, 1};
    collet_launch launch{};
    launch.arguments = arguments, launch.argument_count = 4;
    launch.results = results, launch.result_count = 2;
    launch.workspace.buffer = workspace, launch.workspace.bytes = facts.workspace_bytes;
    launch.sync = &go;
    ASSERT_EQ(table->execute(executable, &launch, 1, i, &error), COLLET_OK) << error.message;
    std::memset(static_cast<void*>(arguments), 0xff, sizeof arguments);
  }
  EXPECT_EQ(queues->wait(compute, kRuns, UINT64_MAX, &error), COLLET_OK) << error.message;
  EXPECT_EQ(known_scalars, static_cast<int>(kRuns));
  for (uint64_t i = 0; i < kRuns; ++i) {
    EXPECT_EQ(copy(at(products[i]), at(&scalar), 4), COLLET_OK);
    EXPECT_EQ(scalar, 3 * static_cast<float>(i));
    EXPECT_EQ(copy(at(slices[i]), at(two), 8), COLLET_OK);
    EXPECT_EQ(two[0], 20);
    EXPECT_EQ(two[1], 30);
    table->free(instance, products[i]);
    table->free(instance, slices[i]);
  }
  queues->destroy(compute);
  for (collet_backend_buffer* one : {bx, bz, bi, workspace}) table->free(instance, one);
  table->release(executable);
}

// Copies on a compute queue run asynchronously, too: its point is reached when they have ended.
TEST_F(KernelTables, ComputeQueuesWaitForTheirCopies) {
  open();
  collet_backend_queue *compute = queue(COLLET_QUEUE_COMPUTE), *down = queue(COLLET_QUEUE_DOWNLOAD);
  collet_backend_buffer* a = buffer(8);
  float data[2] = {1, 2}, out[2] = {};
  const collet_point written{compute, 1}, loaded{down, 1};
  const collet_sync sync{compute, nullptr, &written, 0, 1}, load{down, &written, &loaded, 1, 1};
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_OK);
  EXPECT_EQ(copy(at(a), at(out), 8, &load), COLLET_OK);
  EXPECT_EQ(queues->wait(down, 1, UINT64_MAX, &error), COLLET_OK) << error.message;
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 2);
  queues->destroy(compute);
  queues->destroy(down);
  table->free(instance, a);
}

TEST_F(KernelTables, FailureReachesWhatWaits) {
  open("3");
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  collet_backend_executable* executable = compile(w.finish(1, {w.op(COLLET_OP_ADD, t, {x, x})}));
  collet_backend_queue *compute = queue(COLLET_QUEUE_COMPUTE), *down = queue(COLLET_QUEUE_DOWNLOAD);
  collet_backend_buffer *a = buffer(8), *b = buffer(8);
  float data[2] = {1, 2}, out[2] = {7, 7};
  EXPECT_EQ(copy(at(data), at(a), 8), COLLET_OK);
  for (uint64_t i = 1; i <= 5; ++i) {
    collet_argument argument{}, result{};
    argument.buffer = a, result.buffer = b;
    argument.bytes = result.bytes = 8;
    const collet_point done{compute, i};
    const collet_sync go{compute, nullptr, &done, 0, 1};
    collet_launch launch{};
    launch.arguments = &argument, launch.argument_count = 1;
    launch.results = &result, launch.result_count = 1;
    launch.sync = &go;
    ASSERT_EQ(table->execute(executable, &launch, 1, i, &error), COLLET_OK) << error.message;
  }
  const collet_point computed{compute, 5}, loaded{down, 1};
  const collet_sync sync{down, &computed, &loaded, 1, 1};
  EXPECT_EQ(copy(at(b), at(out), 8, &sync), COLLET_OK);
  EXPECT_EQ(queues->wait(down, 1, UINT64_MAX, &error), COLLET_INTERNAL);
  EXPECT_STREQ(error.message, "a command failed");
  EXPECT_EQ(queues->wait(compute, 1, UINT64_MAX, &error), COLLET_OK) << "reached before the failure";
  EXPECT_EQ(queues->wait(compute, 2, UINT64_MAX, &error), COLLET_INTERNAL);
  EXPECT_EQ(out[0], 7) << "a copy that never began";
  queues->destroy(compute);
  queues->destroy(down);
  table->free(instance, a);
  table->free(instance, b);
  table->release(executable);
}

TEST_F(KernelTables, ALostDeviceFailsAllItsQueues) {
  open("1", "lost");
  collet_backend_queue *compute = queue(COLLET_QUEUE_COMPUTE), *up = queue(COLLET_QUEUE_UPLOAD),
                       *other = queue(COLLET_QUEUE_UPLOAD, 1);
  collet_backend_buffer *a = buffer(8), *b = buffer(8);
  const collet_point done{compute, 1};
  const collet_sync sync{compute, nullptr, &done, 0, 1};
  EXPECT_EQ(copy(at(a), at(b), 8, &sync), COLLET_OK);
  EXPECT_EQ(queues->wait(compute, 1, UINT64_MAX, &error), COLLET_UNAVAILABLE);
  EXPECT_EQ(queues->wait(up, 1, 0, &error), COLLET_UNAVAILABLE);
  EXPECT_EQ(queues->wait(other, 1, 0, &error), COLLET_DEADLINE_EXCEEDED) << "another device";
  for (collet_backend_queue* one : {compute, up, other}) queues->destroy(one);
  table->free(instance, a);
  table->free(instance, b);
}

TEST_F(KernelTables, WrongSyncsAreRefused) {
  open();
  collet_backend_queue *one = queue(COLLET_QUEUE_UPLOAD), *other = queue(COLLET_QUEUE_UPLOAD);
  collet_backend_buffer* a = buffer(8);
  float data[2] = {};
  collet_point point{other, 1};
  collet_sync sync{one, nullptr, &point, 0, 1};
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_INVALID_ARGUMENT) << "another queue's point";
  point = {one, 0};
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_INVALID_ARGUMENT) << "reached from the start";
  point.value = 1;
  EXPECT_EQ(copy(at(data), at(a), 9, &sync), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_OK) << "none of the above was queued";
  EXPECT_EQ(copy(at(data), at(a), 8, &sync), COLLET_INVALID_ARGUMENT) << "the same point twice";
  EXPECT_EQ(queues->wait(one, 1, UINT64_MAX, &error), COLLET_OK);
  collet_backend_queue* none = nullptr;
  EXPECT_EQ(queues->create(instance, 2, 0, &none, &error), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(queues->create(instance, 0, 3, &none, &error), COLLET_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  queues->destroy(one);
  queues->destroy(other);
  table->free(instance, a);
}

TEST_F(KernelTables, AbortEndsWhatWaits) {
  open();
  collet_backend_queue *up = queue(COLLET_QUEUE_UPLOAD), *down = queue(COLLET_QUEUE_DOWNLOAD);
  collet_backend_buffer* a = buffer(8);
  float data[2] = {};
  const collet_point far{up, 7}, loaded{down, 1};
  const collet_sync sync{down, &far, &loaded, 1, 1};
  EXPECT_EQ(copy(at(a), at(data), 8, &sync), COLLET_OK);
  queues->abort(up, COLLET_CANCELLED, "no more");
  EXPECT_EQ(queues->wait(down, 1, UINT64_MAX, &error), COLLET_CANCELLED);
  EXPECT_STREQ(error.message, "no more");
  queues->destroy(up);
  queues->destroy(down);
  table->free(instance, a);
}

TEST_F(KernelTables, PreparedArgumentsAndLayouts) {
  open();
  const auto* residency = static_cast<const collet_residency_table*>(table->query(instance, "residency", 1));
  const auto* layouts = static_cast<const collet_layout_table*>(table->query(instance, "layout", 1));
  ASSERT_NE(residency, nullptr);
  ASSERT_NE(layouts, nullptr);
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  const uint32_t c = w.constant<float>(t, {100, 200});
  const uint32_t d = w.op(COLLET_OP_SUBTRACT, t, {x, y});
  const uint32_t e = w.op(COLLET_OP_SUBTRACT, t, {d, c});  // a constant is packed during compile
  collet_backend_executable* executable = compile(w.finish(2, {e}));
  EXPECT_EQ(residency->wants(executable, 0), 0u);
  EXPECT_EQ(residency->wants(executable, 1), 1u);
  EXPECT_EQ(residency->wants(executable, 9), 0u);
  collet_layout layout{};
  ASSERT_EQ(layouts->of(executable, 0, 0, &layout, &error), COLLET_OK);
  EXPECT_EQ(layout.bytes, 16u);
  collet_layout other{};
  ASSERT_EQ(layouts->of(executable, 0, 1, &other, &error), COLLET_OK);
  EXPECT_EQ(other.bytes, 0u);
  float xs[4] = {1, 0, 2, 0}, dense[2] = {1, 2}, ys[2] = {10, 20}, out[2] = {};
  collet_backend_buffer *bx = buffer(16), *by = buffer(8), *br = buffer(8), *bw = buffer(facts.workspace_bytes);
  EXPECT_EQ(copy(at(ys), at(by), 8), COLLET_OK);
  collet_argument arguments[2] = {}, result{};
  arguments[0].buffer = bx, arguments[1].buffer = by, result.buffer = br;
  arguments[0].bytes = arguments[1].bytes = result.bytes = 8;
  collet_backend_buffer* packed = nullptr;
  const auto* profile = static_cast<const collet_profile_table*>(table->query(instance, "profile", 1));
  ASSERT_NE(profile, nullptr);
  ASSERT_EQ(profile->enable(instance, 0, 1, &error), COLLET_OK);
  ASSERT_EQ(residency->prepare(executable, 0, 1, &arguments[1], &packed, &error), COLLET_OK) << error.message;
  ASSERT_EQ(profile->enable(instance, 0, 0, &error), COLLET_OK);
  collet_profile_record records[4] = {};
  uint32_t count = 0;
  ASSERT_EQ(profile->read(instance, 0, records, 4, &count, &error), COLLET_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_STREQ(records[0].name, "pack subtract ");
  EXPECT_EQ(residency->prepare(executable, 0, 0, &arguments[0], &packed, &error), COLLET_INVALID_ARGUMENT);
  collet_launch launch{};
  launch.arguments = arguments, launch.argument_count = 2;
  launch.results = &result, launch.result_count = 1;
  launch.workspace.buffer = bw, launch.workspace.bytes = facts.workspace_bytes;
  for (const bool prepared_too : {false, true}) {
    for (const bool placed : {false, true}) {
      EXPECT_EQ(copy(placed ? at(xs) : at(dense), at(bx), placed ? 16 : 8), COLLET_OK);
      arguments[0].layout = placed;
      arguments[0].bytes = placed ? 16 : 8;
      arguments[1].flags = prepared_too ? COLLET_ARG_PREPARED : 0;
      arguments[1].buffer = prepared_too ? packed : by;
      ASSERT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_OK) << error.message;
      EXPECT_EQ(copy(at(br), at(out), 8), COLLET_OK);
      EXPECT_EQ(out[0], -109);
      EXPECT_EQ(out[1], -218);
    }
  }
  result.layout = 1;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT) << "nobody asked for that";
  for (collet_backend_buffer* one : {bx, by, br, bw, packed}) table->free(instance, one);
  table->release(executable);
}

TEST_F(KernelTables, CustomCallsByTargetWithAttributes) {
  open();
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const auto call = [&](const std::string& target, const std::string& config) {
    collet_custom_call_attrs attrs{};
    attrs.target = w.text(target);
    attrs.config = w.text(config);
    w.op(COLLET_OP_CUSTOM_CALL, t, {x}, attrs);
  };
  call("acme_scale", "{axes = array<i64: 1, 3>, factor = 5.0e-01 : f32}");
  call("acme_scale", "{axes = array<i64: 1, 2>, factor = 5.0e-01 : f32}");
  call("acme_scale", "no dictionary");
  call("other_scale", "{axes = array<i64: 1, 3>, factor = 5.0e-01 : f32}");
  call("acme_twice", "{axes = array<i64: 1, 3>, factor = 5.0e-01 : f32}");  // as long as acme_scale
  const std::vector<uint64_t> block = w.finish(1, {});
  const uint32_t ids[] = {0, 1, 2, 3, 4};
  collet_verdict verdicts[5] = {};
  ASSERT_EQ(table->supports(instance, 0, program_of(block), ids, 5, verdicts, &error), COLLET_OK) << error.message;
  EXPECT_EQ(verdicts[0].answer, COLLET_ACCEPT) << verdicts[0].reason;
  EXPECT_EQ(verdicts[1].answer, COLLET_DECLINE);
  EXPECT_STREQ(verdicts[2].reason, "two attributes");
  EXPECT_STREQ(verdicts[3].reason, "no kernel");
  EXPECT_STREQ(verdicts[4].reason, "no kernel");
}

TEST_F(KernelTables, ArgumentsThatSeveralKernelsReadAreNeitherPackedNorPlaced) {
  open();
  const auto* layouts = static_cast<const collet_layout_table*>(table->query(instance, "layout", 1));
  const auto* residency = static_cast<const collet_residency_table*>(table->query(instance, "residency", 1));
  ASSERT_TRUE(layouts && residency);
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  const uint32_t difference = w.op(COLLET_OP_SUBTRACT, t, {x, y}), sum = w.op(COLLET_OP_ADD, t, {x, y});
  collet_backend_executable* executable = compile(w.finish(2, {difference, sum}));
  ASSERT_NE(executable, nullptr) << error.message;
  EXPECT_EQ(residency->wants(executable, 1), 0u);
  collet_layout layout{};
  ASSERT_EQ(layouts->of(executable, 0, 0, &layout, &error), COLLET_OK);
  EXPECT_EQ(layout.bytes, 0u);
  table->release(executable);
}

TEST_F(KernelTables, AKernelWritesItsResultInItsLayout) {
  open();
  const auto* layouts = static_cast<const collet_layout_table*>(table->query(instance, "layout", 1));
  ASSERT_NE(layouts, nullptr);
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  collet_backend_executable* executable = compile(w.finish(1, {w.op(COLLET_OP_NEGATE, t, {w.argument(t)})}));
  ASSERT_NE(executable, nullptr) << error.message;
  collet_layout layout{};
  ASSERT_EQ(layouts->of(executable, 1, 0, &layout, &error), COLLET_OK);
  EXPECT_EQ(layout.bytes, 16u);
  collet_backend_buffer *from = buffer(8), *to = buffer(16);
  float in[2] = {1, 2}, out[4] = {};
  EXPECT_EQ(copy(at(in), at(from), 8), COLLET_OK);
  collet_argument argument{}, result{};
  argument.buffer = from, argument.bytes = 8;
  result.buffer = to;
  collet_launch launch{};
  launch.arguments = &argument, launch.argument_count = 1;
  launch.results = &result, launch.result_count = 1;
  for (const bool placed : {false, true}) {
    result.layout = placed;
    result.bytes = placed ? 16 : 8;
    ASSERT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_OK) << error.message;
    EXPECT_EQ(copy(at(to), at(out), 16), COLLET_OK);
    EXPECT_EQ(out[0], -1);
    EXPECT_EQ(out[placed ? 2 : 1], -2);
  }
  result.bytes = 8;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT) << "too short for the layout";
  for (collet_backend_buffer* one : {from, to}) table->free(instance, one);
  table->release(executable);
}

TEST_F(KernelTables, PatternsByNameWithReasons) {
  open();
  const auto* patterns = static_cast<const collet_patterns_table*>(table->query(instance, "patterns", 1));
  ASSERT_NE(patterns, nullptr);
  EXPECT_STREQ(patterns->name(instance, 0, 0), "gelu");
  EXPECT_EQ(patterns->name(instance, 0, 1), nullptr);
  EXPECT_EQ(patterns->features(instance, 0, 0), uint32_t{COLLET_FEATURE_CHANNELS});
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const auto call = [&](const std::string& name, const std::string& attributes) {
    collet_call_attrs attrs{};
    attrs.name = w.text(name);
    attrs.attributes = w.text(attributes);
    w.op(COLLET_OP_CALL, t, {x}, attrs);
    w.region(0);
  };
  call("gelu", "{form = \"tanh\", scale = 5.0e-01 : f64}");
  call("gelu", "{form = \"tanh\", scale = 5.0e-01 : f64, features = 1 : i64}");
  call("gelu", "{form = \"tanh\", scale = 5.0e-01 : f64, features = 3 : i64}");
  call("gelu", "{form = \"erf\"}");
  call("gelu", "{other_scale = 0.5 : f64, form = \"tanh\"}");
  call("softmax", "{}");
  call("", "");
  const std::vector<uint64_t> block = w.finish(1, {});
  const uint32_t ids[] = {0, 3, 4, 5, 6, 1, 2};
  collet_verdict verdicts[7] = {};
  ASSERT_EQ(table->supports(instance, 0, program_of(block), ids, 7, verdicts, &error), COLLET_OK) << error.message;
  EXPECT_EQ(verdicts[0].answer, COLLET_ACCEPT);
  EXPECT_STREQ(verdicts[1].reason, "only the form of tanh");
  EXPECT_EQ(verdicts[5].answer, COLLET_ACCEPT);
  EXPECT_EQ(verdicts[6].answer, COLLET_DECLINE);
  EXPECT_STREQ(verdicts[6].reason, "a group with attributes that Kernel::features does not state");
  EXPECT_STREQ(verdicts[2].reason, "no kernel for these attributes or shapes");
  EXPECT_STREQ(verdicts[3].reason, "no kernel");
  EXPECT_STREQ(verdicts[4].reason, "no kernel");
}

// The time for records is that of sorting them once.
TEST(KernelRecords, ManyAreReadInTheirOrderAndInTime) {
  constexpr uint64_t kCount = 200000;
  kernel::detail::Records records;
  Record one;
  one.name = "work";
  for (uint64_t i = 0; i < kCount; ++i) {
    one.start_ns = (i ^ 1) / 4;  // out of order, and equal ones
    one.bytes = i;
    records.add(one);
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<collet_profile_record> some(256);
  uint64_t count = 0, last = 0;
  while (const uint32_t now = records.read(some.data(), 256)) {
    for (uint32_t i = 0; i < now; ++i) {
      EXPECT_LE(last, some[i].start_ns);
      last = some[i].start_ns;
    }
    count += now;
  }
  EXPECT_EQ(count, kCount);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

TEST_F(KernelTables, DevicesSpacesAndRecords) {
  open();
  const auto* links = static_cast<const collet_links_table*>(table->query(instance, "links", 1));
  const auto* profile = static_cast<const collet_profile_table*>(table->query(instance, "profile", 1));
  const auto* host_memory = static_cast<const collet_host_memory_table*>(table->query(instance, "host_memory", 1));
  ASSERT_TRUE(links && profile && host_memory);
  collet_link link{};
  link.struct_size = sizeof link;
  ASSERT_EQ(links->between(instance, 0, 1, &link, &error), COLLET_OK);
  EXPECT_EQ(link.hops, 1u);
  EXPECT_EQ(links->between(instance, 0, 2, &link, &error), COLLET_OUT_OF_RANGE);
  ASSERT_EQ(profile->enable(instance, 0, 1, &error), COLLET_OK);
  collet_backend_buffer *here = buffer(8), *there = buffer(8, 1), *pinned = buffer(8, 0, 1);
  ASSERT_NE(pointer, nullptr);
  float data[2] = {3, 4}, out[2] = {};
  std::memcpy(pointer, data, 8);
  const int before = LateDevice::linked;
  EXPECT_EQ(copy(at(pinned), at(here), 8), COLLET_OK);
  EXPECT_EQ(copy(at(here), at(there), 8), COLLET_OK);
  EXPECT_EQ(copy(at(there), at(out), 8), COLLET_OK);
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(LateDevice::linked, before + 1);
  collet_profile_record records[4];
  uint32_t count = 0;
  ASSERT_EQ(profile->read(instance, 0, records, 1, &count, &error), COLLET_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(records[0].name, "copy within device");
  ASSERT_EQ(profile->read(instance, 0, records, 4, &count, &error), COLLET_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_STREQ(records[0].name, "copy to another device");
  EXPECT_EQ(records[0].bytes, 8u);
  EXPECT_EQ(host_memory->add(instance, data, 8, &error), COLLET_OK);
  EXPECT_EQ(host_memory->add(instance, data + 1, 4, &error), COLLET_ALREADY_EXISTS);
  EXPECT_EQ(host_memory->remove(instance, data + 1, &error), COLLET_NOT_FOUND);
  EXPECT_EQ(host_memory->remove(instance, data, &error), COLLET_OK);
  const auto* host_buffers = static_cast<const collet_host_buffers_table*>(table->query(instance, "host_buffers", 1));
  ASSERT_TRUE(host_buffers);
  alignas(64) float kept[16] = {7, 8};
  collet_backend_buffer* wrapped = nullptr;
  EXPECT_EQ(host_buffers->wrap(instance, 0, 1, kept, sizeof kept, &wrapped, &error), COLLET_UNIMPLEMENTED);
  EXPECT_EQ(host_buffers->wrap(instance, 9, 0, kept, sizeof kept, &wrapped, &error), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(host_buffers->wrap(instance, 0, 0, reinterpret_cast<char*>(kept) + 1, 8, &wrapped, &error),
            COLLET_INVALID_ARGUMENT);
  ASSERT_EQ(host_buffers->wrap(instance, 0, 0, kept, sizeof kept, &wrapped, &error), COLLET_OK);
  EXPECT_EQ(copy(at(wrapped), at(out), 8), COLLET_OK);
  EXPECT_EQ(out[1], 8);
  table->free(instance, wrapped);
  EXPECT_EQ(kept[0], 7);
  for (collet_backend_buffer* one : {here, there, pinned}) table->free(instance, one);
}

TEST_F(KernelTables, ExchangesGetTheMemoryOfTheirMembers) {
  open();
  const auto* exchanges = static_cast<const collet_exchange_table*>(table->query(instance, "exchange", 1));
  ASSERT_TRUE(exchanges);
  collet_backend_buffer *from = buffer(16), *to = buffer(24, 0);
  const float data[4] = {0, 0, 3, 4};
  ASSERT_EQ(copy(at(const_cast<float*>(data)), at(from), 16), COLLET_OK);
  collet_exchange_member members[2] = {{0, 0, at(from), at(to)}, {1, 0, {}, {}}};
  members[0].from.offset = members[0].to.offset = 8;
  const collet_group group = {sizeof(collet_group), 0, 2, 0, nullptr, nullptr};
  collet_exchange exchange{};
  exchange.struct_size = sizeof exchange;
  exchange.kind = COLLET_EXCHANGE_ALL_GATHER;
  exchange.element = COLLET_TYPE_F32;
  exchange.count = 2;
  exchange.members = members;
  exchange.member_count = 2;
  EXPECT_EQ(exchanges->takes(instance, &exchange), 1u);
  const uint32_t processes[] = {0, 1};
  exchange.group = &group;
  exchange.processes = processes;
  ASSERT_EQ(exchanges->run(instance, &exchange, &error), COLLET_OK) << error.message;
  float out[4] = {};
  members[0].to.offset = 0;
  ASSERT_EQ(copy({to, nullptr, 8}, at(out), 16), COLLET_OK);
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{3, 4, 6, 8}));
  exchange.timeout_ms = 1;
  EXPECT_EQ(exchanges->run(instance, &exchange, &error), COLLET_DEADLINE_EXCEEDED);
  EXPECT_STREQ(error.message, "process 1 does not answer");
  members[0].device = 7;
  EXPECT_EQ(exchanges->run(instance, &exchange, &error), COLLET_OUT_OF_RANGE);
  exchange.kind = COLLET_EXCHANGE_COPIES;
  EXPECT_EQ(exchanges->takes(instance, &exchange), 0u);
  exchange.element = COLLET_TYPE_F64;
  EXPECT_EQ(exchanges->takes(instance, &exchange), 0u);
  for (collet_backend_buffer* one : {from, to}) table->free(instance, one);
}

}  // namespace
}  // namespace collet::kernel

// SPDX-License-Identifier: Apache-2.0
// Tests the device's copies, marks and errors on the driver emulator, whose streams run in random order.
#include "reference_backends/gpu/device.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "reference_backends/gpu/graph.h"

namespace collet::gpu {
namespace {

using ::testing::HasSubstr;

/// A kernel of 32 threads that computes p[i] += 1, a kernel that takes long, and one that makes so many turns as its argument
/// says.
constexpr char kIncrement[] = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 to) {
	.reg .b32 v, t;
	.reg .b64 p, o;
	ld.param.u64 p, [to];
	mov.u32 t, %tid.x;
	mul.wide.u32 o, t, 4;
	add.u64 p, p, o;
	ld.global.u32 v, [p];
	add.u32 v, v, 1;
	st.global.u32 [p], v;
	ret;
}
.visible .entry slow(.param .u64 to) {
	.reg .pred more;
	.reg .b32 n;
	mov.u32 n, 30000000;
again:
	sub.u32 n, n, 1;
	setp.ne.u32 more, n, 0;
	@more bra again;
	ret;
}
.visible .entry pause(.param .u64 turns) {
	.reg .pred more;
	.reg .b64 n;
	ld.param.u64 n, [turns];
again:
	sub.u64 n, n, 1;
	setp.ne.u64 more, n, 0;
	@more bra again;
	ret;
}
)";

std::shared_ptr<const Driver> emulator() {
  static const std::shared_ptr<const Driver> driver = [] {
    setenv("COLLET_CUDA_EMULATOR", "quiet=1,memory=512,threads=2,devices=2", 1);
    auto made = std::make_shared<Driver>();
    const codegen::Status status = open_driver(COLLET_CUDA_EMULATOR_PATH, *made);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      std::abort();
    }
    return made;
  }();
  return driver;
}

std::vector<char> random_bytes(size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<char> out(count);
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

class List final : public kernel::Recorder {
 public:
  bool is_on() const override { return true; }
  void add(const kernel::Record& record) override { records.push_back(record); }
  std::vector<kernel::Record> records;
};

void launch_on(Device& device, codegen::GridDevice::Handle kernel, kernel::Memory at) {
  const uint64_t argument = at;
  const std::string name = "increment";
  codegen::GridDevice::Launch what;
  what.kernel = kernel;
  what.block_threads = 32;
  what.arguments = &argument;
  what.argument_count = 1;
  what.name = &name;
  device.launch(what);
}

class DeviceTest : public ::testing::Test {
 protected:
  void launch(codegen::GridDevice::Handle kernel, kernel::Memory at) { launch_on(device, kernel, at); }

  Device device{emulator(), 0};
};

TEST_F(DeviceTest, CopiesOfAllSizesArrive) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, (size_t{1} << 20) + 3, size_t{40} << 20}) {
    const std::vector<char> in = random_bytes(bytes);
    const kernel::Memory at = device.allocate(bytes, 256);
    std::vector<char> out(bytes);
    device.write(at, 0, in.data(), bytes);
    device.read(at, 0, out.data(), bytes);
    EXPECT_EQ(in, out) << "write and read of " << bytes;
    std::vector<char> turned(in.rbegin(), in.rend());
    device.upload(at, 0, turned.data(), bytes);
    device.download(at, 0, out.data(), bytes);
    EXPECT_EQ(turned, out) << "upload and download of " << bytes;
    std::fill(out.begin(), out.end(), 0);
    const uint64_t sent = device.start_upload(at, 0, in.data(), bytes);
    if (sent != 0) device.wait(sent);
    const uint64_t mark = device.start_download(at, 0, out.data(), bytes);
    if (mark != 0) device.wait(mark);
    EXPECT_EQ(in, out) << "the same with marks, " << bytes;
    device.free(at);
  }
}

// The copies run later, when the host's variable has another value. There are more copies than pieces of pinned memory.
TEST_F(DeviceTest, AWriteNeedsTheHostsDataNoMore) {
  constexpr uint32_t kCount = 1000;
  const kernel::Memory at = device.allocate(kCount * 4, 256);
  uint32_t value = 0;
  for (value = 0; value < kCount; ++value) device.write(at, value * 4, &value, 4);
  std::vector<uint32_t> out(kCount), want(kCount);
  std::iota(want.begin(), want.end(), 0u);
  device.read(at, 0, out.data(), kCount * 4);
  EXPECT_EQ(out, want);
  device.free(at);
}

TEST_F(DeviceTest, ManyDownloadsAreUnderWayAtOnce) {
  constexpr uint32_t kCount = 600;
  std::vector<uint32_t> in(kCount), out(kCount);
  std::iota(in.begin(), in.end(), 7u);
  const kernel::Memory at = device.allocate(kCount * 4, 256);
  device.upload(at, 0, in.data(), kCount * 4);
  std::vector<uint64_t> marks;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (const uint64_t mark = device.start_download(at, i * 4, &out[i], 4)) marks.push_back(mark);
  }
  EXPECT_GT(marks.size(), 100u);
  for (const uint64_t mark : marks) device.wait(mark);
  EXPECT_EQ(in, out);
  device.free(at);
}

// The events that an upload and a download wait for do not depend on the 300 kernels: both copies end long before the
// last kernel begins.
TEST_F(DeviceTest, CopiesOverlapKernels) {
  List list;
  device.set_recorder(&list);
  const auto module = device.load_module(kIncrement, "test");
  const auto increment = device.find_kernel(module, "increment");
  const kernel::Memory numbers = device.allocate(128, 256), first = device.allocate(1 << 20, 256);
  const kernel::Memory second = device.allocate(1 << 20, 256);
  const std::vector<uint32_t> zeros(32);
  const std::vector<char> in = random_bytes(1 << 20);
  std::vector<char> out(in.size());
  device.write(numbers, 0, zeros.data(), 128);
  device.write(first, 0, in.data(), in.size());
  device.finish();
  launch(device.find_kernel(module, "slow"), numbers);
  for (int i = 0; i < 300; ++i) launch(increment, numbers);
  const uint64_t up = device.start_upload(second, 0, in.data(), in.size());
  const uint64_t down = device.start_download(first, 0, out.data(), out.size());
  device.wait(up);
  device.wait(down);
  device.finish();
  std::vector<uint32_t> counts(32);
  device.read(numbers, 0, counts.data(), 128);
  EXPECT_EQ(counts, std::vector<uint32_t>(32, 300));
  EXPECT_EQ(in, out);
  uint64_t last_kernel = 0, copies = 0, copied = 0;
  for (const kernel::Record& one : list.records) {
    if (one.name == "increment") last_kernel = std::max(last_kernel, one.start_ns);
    if (one.engine == "compute") continue;
    ++copies;
    copied = std::max(copied, one.start_ns + one.duration_ns);
  }
  EXPECT_EQ(copies, 2u);
  EXPECT_LT(copied, last_kernel);
  device.unload_module(module);
  for (const kernel::Memory memory : {numbers, first, second}) device.free(memory);
  device.set_recorder(nullptr);
}

TEST_F(DeviceTest, DevicesCopyToEachOther) {
  Device second(emulator(), 1);
  const std::vector<char> in = random_bytes(100000);
  std::vector<char> out(in.size());
  const kernel::Memory from = device.allocate(in.size(), 256), to = second.allocate(in.size(), 256);
  device.write(from, 0, in.data(), in.size());
  second.write(to, 0, out.data(), out.size());
  second.finish();
  ASSERT_TRUE(device.copy_to(second, to, 0, from, 0, in.size()));
  second.read(to, 0, out.data(), out.size());
  EXPECT_EQ(in, out);
  device.free(from);
  second.free(to);
}

TEST_F(DeviceTest, PinnedMemoryIsCopiedDirectly) {
  Device second(emulator(), 1);
  std::vector<char> memory = random_bytes(8192);
  const std::vector<char> in = memory;
  for (Device* one : {&device, &second}) one->add_host_memory(memory.data(), memory.size());
  for (Device* one : {&device, &second}) {
    const kernel::Memory at = one->allocate(8192, 256);
    memory = in;
    one->wait(one->start_upload(at, 0, memory.data(), 8192));
    std::fill(memory.begin(), memory.end(), 0);
    one->wait(one->start_download(at, 0, memory.data(), 8192));
    EXPECT_EQ(memory, in);
    one->read(at, 0, memory.data(), 100);
    EXPECT_EQ(memory, in);
    one->free(at);
  }
  for (Device* one : {&device, &second}) one->remove_host_memory(memory.data());
}

// The sequence increments twice and copies the sum. It is started again with other arguments before earlier starts have
// run.
TEST_F(DeviceTest, SequencesRunWithTheArgumentsOfTheirStart) {
  const auto module = device.load_module(kIncrement, "test");
  const auto increment = device.find_kernel(module, "increment");
  constexpr uint32_t kRuns = 20;
  std::vector<uint32_t> in(32 * kRuns), out(32 * kRuns);
  std::iota(in.begin(), in.end(), 0u);
  const kernel::Memory from = device.allocate(in.size() * 4, 256), to = device.allocate(in.size() * 4, 256);
  device.write(from, 0, in.data(), in.size() * 4);
  codegen::GridDevice::Sequence sequence;
  sequence.items = {{increment, 1, 32, 0, 1}, {increment, 1, 32, 1, 1}, {0, 1, 1, 2, 3}};
  const auto arguments = [&](uint32_t run) {
    return std::vector<uint64_t>{from + 128 * run, from + 128 * run, to + 128 * run, from + 128 * run, 128};
  };
  sequence.arguments = arguments(0);
  const auto handle = device.keep_sequence(sequence);
  ASSERT_NE(handle, 0u);
  launch(device.find_kernel(module, "slow"), from);
  for (uint32_t run = 0; run < kRuns; ++run) device.start_sequence(handle, arguments(run));
  device.start_sequence(handle, arguments(kRuns - 1));
  device.read(to, 0, out.data(), out.size() * 4);
  for (uint32_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i + (i < 32 * (kRuns - 1) ? 2 : 4)) << i;
  EXPECT_EQ(Device(emulator(), 1, {false}).keep_sequence(sequence), 0u) << "switched off";
  device.drop_sequence(handle);
  device.unload_module(module);
  device.free(from);
  device.free(to);
}

/// Returns the emulator as a driver of which `change` has changed some functions.
std::shared_ptr<const Driver> changed_emulator(const std::function<void(Driver&)>& change) {
  auto made = std::make_shared<Driver>(*emulator());
  change(*made);
  return made;
}

// A download fails because there is no event to wait for it. When the call returns, the copy has ended, so the host may
// use its memory, and the device its pinned memory, again.
TEST(FailedDownload, HasEnded) {
  static bool fails = false;
  Device device(changed_emulator([](Driver& driver) {
                  driver.cuEventCreate = [](CUevent* event, unsigned flags) {
                    return fails ? CUDA_ERROR_OUT_OF_MEMORY : emulator()->cuEventCreate(event, flags);
                  };
                }),
                0);
  constexpr size_t kBytes = 100;
  const auto module = device.load_module(kIncrement, "test");
  const auto pause = device.find_kernel(module, "pause");
  const kernel::Memory from = device.allocate(kBytes, 256), other = device.allocate(kBytes, 256);
  const std::vector<char> ones(kBytes, 1), twos(kBytes, 2);
  std::vector<char> out(kBytes), pinned(kBytes);
  device.add_host_memory(pinned.data(), kBytes);
  device.write(from, 0, ones.data(), kBytes);
  device.finish();
  for (std::vector<char>* to : {&out, &pinned}) {
    launch_on(device, pause, 1'000'000);  // no copy runs meanwhile
    fails = true;
    EXPECT_THROW(device.start_download(from, 0, to->data(), kBytes), kernel::Error);
    fails = false;
    *to = twos;
    device.write(other, 0, twos.data(), kBytes);
    device.finish();
    EXPECT_EQ(*to, twos);
    device.read(other, 0, out.data(), kBytes);
    EXPECT_EQ(out, twos);
  }
  device.remove_host_memory(pinned.data());
  device.unload_module(module);
  for (const kernel::Memory memory : {from, other}) device.free(memory);
}

// The driver's clock goes on by 10 us with each event, and by an hour behind the first one. A float has a precision of
// 0.25 ms then.
TEST(Records, ArePreciseFarFromTheFirst) {
  static std::map<CUevent, double> times;  // in ms
  static double now;
  times.clear();
  now = 0;
  Device device(changed_emulator([](Driver& driver) {
                  driver.cuEventRecord = [](CUevent event, CUstream stream) {
                    times[event] = now;
                    now += now == 0 ? 3.6e6 : 0.01;
                    return emulator()->cuEventRecord(event, stream);
                  };
                  driver.cuEventElapsedTime = [](float* ms, CUevent start, CUevent end) {
                    *ms = static_cast<float>(times[end] - times[start]);
                    return CUDA_SUCCESS;
                  };
                }),
                0);
  List list;
  device.set_recorder(&list);
  const auto module = device.load_module(kIncrement, "test");
  const auto increment = device.find_kernel(module, "increment");
  const kernel::Memory numbers = device.allocate(128, 256);
  const std::vector<uint32_t> zeros(32);
  device.write(numbers, 0, zeros.data(), 128);
  device.finish();
  list.records.clear();
  for (int i = 0; i < 20; ++i) launch_on(device, increment, numbers);
  device.finish();
  ASSERT_EQ(list.records.size(), 20u);
  for (size_t i = 1; i < list.records.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(list.records[i].start_ns - list.records[i - 1].start_ns), 2e4, 10) << i;
    EXPECT_NEAR(static_cast<double>(list.records[i].duration_ns), 1e4, 10);
  }
  device.set_recorder(nullptr);
  device.unload_module(module);
  device.free(numbers);
}

TEST_F(DeviceTest, ALostDeviceStaysLost) {
  const auto module = device.load_module(kIncrement, "test");
  launch(device.find_kernel(module, "increment"), 4096);  // an invalid address
  const auto refused = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const kernel::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
      return error.code() == COLLET_UNAVAILABLE;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { device.finish(); }));
  char byte = 0;
  EXPECT_TRUE(refused([&] { device.allocate(16, 256); }));
  EXPECT_TRUE(refused([&] { device.write(256, 0, &byte, 1); }));
  EXPECT_TRUE(refused([&] { device.read(256, 0, &byte, 1); }));
  EXPECT_TRUE(refused([&] { device.start_upload(256, 0, &byte, 1); }));
  EXPECT_TRUE(refused([&] { device.load_module(kIncrement, "test"); }));
  EXPECT_TRUE(refused([&] { device.mark(); }));
  EXPECT_TRUE(refused([&] { device.finish(); }));
}

/// A fixture with a device that uses the emulator's cuBLASLt and cuFFT.
class LibraryTest : public ::testing::Test {
 protected:
  static Device::Options options() {
    Device::Options out;
    out.libraries = std::make_shared<Libraries>(open_libraries(COLLET_CUDA_EMULATOR_PATH));
    return out;
  }
  template <class T>
  kernel::Memory upload(const std::vector<T>& data) {
    const kernel::Memory at = device.allocate(data.size() * sizeof(T), 256);
    device.write(at, 0, data.data(), data.size() * sizeof(T));
    return at;
  }
  template <class T>
  std::vector<T> download(kernel::Memory at, size_t count) {
    std::vector<T> out(count);
    device.read(at, 0, out.data(), count * sizeof(T));
    return out;
  }
  void launch(codegen::GridDevice::Handle way, std::vector<uint64_t> addresses) {
    const std::string name = "library";
    codegen::GridDevice::LibraryLaunch what;
    what.way = way;
    what.addresses = addresses.data();
    what.name = &name;
    device.launch_library(what);
  }

  Device device{emulator(), 0, options()};
};

/// Returns the distances in a batch of row-major or column-major matrices.
codegen::LibraryMatrix matrix(int64_t rows, int64_t columns, bool by_columns) {
  return {COLLET_TYPE_F32, 0, rows * columns, by_columns ? 1 : columns, by_columns ? rows : 1};
}

TEST_F(LibraryTest, ProductsOfAllLayouts) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kColumns = 7;
  constexpr int64_t kDepth = 3;
  constexpr int64_t kBatches = 2;
  std::vector<float> a(kBatches * kRows * kDepth), b(kBatches * kDepth * kColumns);
  std::iota(a.begin(), a.end(), 1.0F);
  std::iota(b.begin(), b.end(), -20.0F);
  for (const int layout : {0, 1, 2, 3}) {
    codegen::LibraryProduct p;
    p.a = matrix(kRows, kDepth, (layout & 1) != 0);
    p.b = matrix(kDepth, kColumns, (layout & 2) != 0);
    p.c = matrix(kRows, kColumns, false);
    p.batches = kBatches;
    p.rows = kRows;
    p.columns = kColumns;
    p.depth = kDepth;
    p.sum_type = COLLET_TYPE_F32;
    const kernel::Memory at_a = upload(a), at_b = upload(b),
                         at_c = upload(std::vector<float>(kBatches * kRows * kColumns));
    const auto ways = device.prepare(p);
    ASSERT_FALSE(ways.empty());
    for (const auto way : ways) {
      launch(way, {at_a, at_b, at_c});
      const std::vector<float> c = download<float>(at_c, kBatches * kRows * kColumns);
      for (int64_t n = 0; n < kBatches; ++n) {
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t j = 0; j < kColumns; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < kDepth; ++k)
              sum += a[static_cast<size_t>(n * p.a.batch + i * p.a.row + k * p.a.column)] *
                     b[static_cast<size_t>(n * p.b.batch + k * p.b.row + j * p.b.column)];
            EXPECT_EQ(c[static_cast<size_t>((n * kRows + i) * kColumns + j)], sum) << layout << " " << i << " " << j;
          }
        }
      }
      device.drop_prepared(way);
    }
    for (const kernel::Memory at : {at_a, at_b, at_c}) device.free(at);
  }
}

TEST_F(LibraryTest, ProductsThatItDoesNotHave) {
  codegen::LibraryProduct p;
  p.a = p.b = p.c = matrix(4, 4, false);
  p.rows = p.columns = p.depth = 4;
  p.sum_type = COLLET_TYPE_F32;
  const auto usual = device.prepare(p);
  EXPECT_FALSE(usual.empty());
  for (const auto way : usual) device.drop_prepared(way);
  codegen::LibraryProduct strided = p;
  strided.a.column = 2;
  strided.a.row = 8;
  EXPECT_TRUE(device.prepare(strided).empty()) << "neither rows nor columns lie side by side";
  codegen::LibraryProduct rounded = p;
  rounded.a.type = rounded.b.type = COLLET_TYPE_F64;
  EXPECT_TRUE(device.prepare(rounded).empty()) << "f64 factors, summed as f32";
  codegen::LibraryProduct unsigned_bytes = p;
  unsigned_bytes.a.type = unsigned_bytes.b.type = COLLET_TYPE_U8;
  unsigned_bytes.c.type = unsigned_bytes.sum_type = COLLET_TYPE_S32;
  EXPECT_TRUE(device.prepare(unsigned_bytes).empty());
  Device without{emulator(), 1};
  EXPECT_TRUE(without.prepare(p).empty()) << "no library was opened";
}

TEST_F(LibraryTest, RealTransformAndBack) {
  constexpr size_t kLength = 6;
  const std::vector<float> x{1, -2, 3, 0.5F, 7, -1};
  codegen::LibraryFft forward;
  forward.operand_type = COLLET_TYPE_F32;
  forward.result_type = COLLET_TYPE_C64;
  forward.lengths = {kLength};
  codegen::LibraryFft back = forward;
  std::swap(back.operand_type, back.result_type);
  back.inverse = true;
  const kernel::Memory at_x = upload(x), at_y = upload(std::vector<float>(2 * (kLength / 2 + 1)));
  const auto there = device.prepare(forward), again = device.prepare(back);
  ASSERT_EQ(there.size(), 1U);
  ASSERT_EQ(again.size(), 1U);
  launch(there[0], {at_x, at_y});
  const std::vector<float> y = download<float>(at_y, 2);
  EXPECT_NEAR(y[0], 8.5, 1e-5) << "the sum";
  launch(again[0], {at_y, at_x});
  const std::vector<float> z = download<float>(at_x, kLength);
  for (size_t i = 0; i < kLength; ++i) EXPECT_NEAR(z[i], kLength * x[i], 1e-4) << "inverse transforms are not scaled";
  for (const auto way : {there[0], again[0]}) device.drop_prepared(way);
  device.free(at_x);
  device.free(at_y);
}

TEST_F(LibraryTest, WorkMemoryHasAtMostTwiceTheLargestSize) {
  const auto bytes_free = [] {
    size_t free = 0, total = 0;
    EXPECT_EQ(emulator()->cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return free;
  };
  const size_t before = bytes_free();
  constexpr size_t kLargest = 8 << 20;
  for (size_t bytes = kLargest / 2; bytes <= kLargest; bytes += kLargest / 8) {
    codegen::LibraryFft fft;
    fft.operand_type = fft.result_type = COLLET_TYPE_C64;
    fft.lengths = {static_cast<int64_t>(bytes / 16)};  // the emulator asks for 16 bytes for each
    const auto ways = device.prepare(fft);
    ASSERT_EQ(ways.size(), 1U);
    device.drop_prepared(ways[0]);
  }
  EXPECT_LE(before - bytes_free(), 2 * kLargest);
}

// A product between two copies, started with more sets of addresses than captured graphs are kept for, and with each set
// again.
TEST_F(LibraryTest, CallsArePartOfSequences) {
  constexpr int64_t kSize = 3;
  constexpr uint64_t kBytes = 256;  // of each matrix, with what follows it
  constexpr uint64_t kRuns = 7;
  codegen::LibraryProduct p;
  p.a = p.b = p.c = matrix(kSize, kSize, false);
  p.rows = p.columns = p.depth = kSize;
  p.sum_type = COLLET_TYPE_F32;
  const auto ways = device.prepare(p);
  ASSERT_FALSE(ways.empty());
  ASSERT_TRUE(device.may_be_in_sequence(ways[0]));
  std::vector<float> in(kRuns * kBytes / sizeof(float));
  std::iota(in.begin(), in.end(), 1.0F);
  const kernel::Memory from = upload(in), copied = device.allocate(kRuns * kBytes, 256),
                       squared = device.allocate(kRuns * kBytes, 256), to = device.allocate(kRuns * kBytes, 256);
  const auto arguments = [&](uint64_t run) {
    const uint64_t at = run * kBytes;
    return std::vector<uint64_t>{copied + at,  from + at, kBytes,       copied + at, copied + at,
                                 squared + at, to + at,   squared + at, 36};
  };
  codegen::GridDevice::Sequence sequence;
  sequence.items = {{0, 1, 1, 0, 3}, {0, 1, 1, 3, 3, 0, ways[0]}, {0, 1, 1, 6, 3}};
  sequence.arguments = arguments(0);
  launch(ways[0], {from, from, squared});
  const auto handle = device.keep_sequence(sequence);
  ASSERT_NE(handle, 0U);
  for (uint64_t run = 0; run < 2 * kRuns; ++run) device.start_sequence(handle, arguments(run % kRuns));
  launch(ways[0], {from, from, squared});  // the library's stream is the device's again
  const std::vector<float> out = download<float>(to, in.size());
  for (uint64_t run = 0; run < kRuns; ++run) {
    const size_t first = run * kBytes / sizeof(float);
    for (size_t i = 0; i < 9; ++i) {
      float sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += in[first + i / 3 * 3 + k] * in[first + k * 3 + i % 3];
      ASSERT_EQ(out[first + i], sum) << run << " " << i;
    }
  }
  device.drop_sequence(handle);
  for (const auto way : ways) device.drop_prepared(way);
  for (const kernel::Memory at : {from, copied, squared, to}) device.free(at);
}

// A library that starts one copy or two, depending on the address: child graphs that cannot take each other's place. More
// sets of addresses than graphs are kept for, and each of them again.
TEST(Graph, CallsOfDifferentStructureHaveGraphsOfTheirOwn) {
  constexpr uint64_t kBytes = 256, kRuns = 6;
  Device device(emulator(), 0);
  const Driver& driver = *emulator();
  const kernel::Memory from = device.allocate(kRuns * kBytes, 256), between = device.allocate(kRuns * kBytes, 256),
                       to = device.allocate(kRuns * kBytes, 256);
  std::vector<char> in(kRuns * kBytes);
  std::iota(in.begin(), in.end(), 1);
  device.write(from, 0, in.data(), in.size());
  CUcontext context = nullptr;
  ASSERT_EQ(driver.cuCtxGetCurrent(&context), CUDA_SUCCESS);
  const auto check = [](CUresult result, const char* function) { ASSERT_EQ(result, CUDA_SUCCESS) << function; };
  int captures = 0;
  const auto capture = [&](codegen::GridDevice::Handle, const uint64_t* addresses) {
    ++captures;
    const bool in_two = (addresses[0] - from) / kBytes % 2 != 0;
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUgraphNode before = nullptr;
    for (const uint64_t half : {0, 1}) {
      if (half != 0 && !in_two) break;
      CUDA_MEMCPY3D_v2 what;
      what.srcMemoryType = what.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      what.srcDevice = addresses[0] + half * kBytes / 2;
      what.dstDevice = addresses[1] + half * kBytes / 2;
      what.WidthInBytes = what.srcPitch = what.dstPitch = in_two ? kBytes / 2 : kBytes;
      what.Height = what.Depth = 1;
      CUgraphNode node = nullptr;
      EXPECT_EQ(driver.cuGraphAddMemcpyNode(&node, graph, &before, before ? 1 : 0, &what, context), CUDA_SUCCESS);
      before = node;
    }
    return graph;
  };
  const auto arguments = [&](uint64_t run) {
    const uint64_t at = run % kRuns * kBytes;
    return std::vector<uint64_t>{from + at, between + at, to + at, between + at, kBytes};
  };
  codegen::GridDevice::Sequence sequence;
  sequence.items = {{0, 1, 1, 0, 2, 0, 1}, {0, 1, 1, 2, 3}};
  sequence.arguments = arguments(0);
  CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  {
    Graph graph(driver, check, capture, context, sequence);
    for (uint64_t run = 0; run < 2 * kRuns; ++run) graph.launch(arguments(run), stream);
    const int before = captures;
    for (int i = 0; i < 4; ++i) graph.launch(arguments(kRuns - 1 - i % 2), stream);
    EXPECT_EQ(captures, before) << "graphs of the latest addresses are kept";
    ASSERT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
  std::vector<char> out(in.size());
  device.read(to, 0, out.data(), out.size());
  EXPECT_EQ(out, in);
  EXPECT_EQ(driver.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  for (const kernel::Memory at : {from, between, to}) device.free(at);
}

TEST(Libraries, ThoseThatAreNotThereAreNotUsed) {
  const Libraries none = open_libraries("/nowhere/libnone.so");
  EXPECT_FALSE(none.has_products());
  EXPECT_FALSE(none.has_fft());
  EXPECT_EQ(none.versions(), "");
  EXPECT_FALSE(open_libraries("libm.so.6").has_products()) << "a library without the functions";
}

/// Two devices that exchange arrays of 256 bytes, by peer copies or by the emulator's NCCL.
class DevicePair : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      options.libraries = std::make_shared<Libraries>(open_libraries(COLLET_CUDA_EMULATOR_PATH));
      ASSERT_TRUE(options.libraries->has_collectives());
      options.communicators = std::make_shared<Communicators>(options.libraries);
    }
    for (int i = 0; i < 2; ++i) {
      devices[i] = std::make_unique<Device>(emulator(), i, options);
      addresses[i][0] = devices[i]->allocate(kBytes, 256);
      addresses[i][1] = devices[i]->allocate(2 * kBytes, 256);
      const std::vector<char> data(kBytes, static_cast<char>(i + 1));
      devices[i]->write(addresses[i][0], 0, data.data(), kBytes);
    }
    call.kind = codegen::CollectiveCall::Kind::kAllGather;
    call.groups = {{0, 1}};
    call.group_of = {0, 0};
    call.listed = {1, 1};
    call.parts = {{COLLET_TYPE_U8, kBytes, kBytes, 2 * kBytes, 0}};
  }
  void gather() {
    codegen::GridDevice::CollectiveLaunch what;
    what.call = &call;
    what.group = call.groups.data();
    for (int i = 0; i < 2; ++i) what.members.push_back({devices[i].get(), addresses[i]});
    devices[0]->launch_collective(what);
  }

  static constexpr int64_t kBytes = 256;
  Device::Options options;
  std::unique_ptr<Device> devices[2];
  uint64_t addresses[2][2] = {};
  codegen::CollectiveCall call;
};

TEST_P(DevicePair, CollectivesRunInOrderAndBlockNobody) {
  for (int turn = 0; turn < 10; ++turn) {
    for (int i = 0; i < 2; ++i) {
      const std::vector<char> data(kBytes, static_cast<char>(10 * turn + i));
      devices[i]->write(addresses[i][0], 0, data.data(), kBytes);
    }
    gather();
    // What comes after the collective on a device must not change what the other one receives.
    for (int i = 0; i < 2; ++i) {
      const std::vector<char> other(kBytes, 99);
      devices[i]->write(addresses[i][0], 0, other.data(), kBytes);
    }
    for (int i = 0; i < 2; ++i) {
      std::vector<char> out(2 * kBytes);
      devices[i]->read(addresses[i][1], 0, out.data(), out.size());
      EXPECT_EQ(out.front(), 10 * turn);
      EXPECT_EQ(out.back(), 10 * turn + 1);
    }
  }
}

TEST_P(DevicePair, DeviceThatIsLost_FailsTheOthersAndBlocksNone) {
  const auto module = devices[1]->load_module(kIncrement, "test");
  launch_on(*devices[1], devices[1]->find_kernel(module, "slow"), addresses[1][0]);
  launch_on(*devices[1], devices[1]->find_kernel(module, "increment"), 4096);  // an invalid address
  gather();
  const uint64_t marks[2] = {devices[0]->mark(), devices[1]->mark()};
  std::thread own([&] {
    try {
      devices[1]->wait(marks[1]);
      ADD_FAILURE() << "the device is lost";
    } catch (const kernel::Error& error) {
      EXPECT_EQ(error.code(), COLLET_UNAVAILABLE) << error.what();
    }
  });
  try {
    devices[0]->wait(marks[0]);
    ADD_FAILURE() << "the other device is lost";
  } catch (const kernel::Error& error) {
    EXPECT_EQ(error.code(), COLLET_INTERNAL) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("another device of a collective"));
  }
  own.join();
}

// A thread that has nothing to do with the collective puts a mark on the device before the one that waits for it.
TEST_P(DevicePair, LostDevice_IsReportedToTheThreadThatWaits) {
  const auto module = devices[1]->load_module(kIncrement, "test");
  launch_on(*devices[1], devices[1]->find_kernel(module, "pause"), 5'000'000);
  launch_on(*devices[1], devices[1]->find_kernel(module, "increment"), 4096);  // an invalid address
  gather();
  std::thread([&] { devices[0]->mark(); }).join();
  const uint64_t marks[2] = {devices[0]->mark(), devices[1]->mark()};
  std::thread own([&] { EXPECT_THROW(devices[1]->wait(marks[1]), kernel::Error); });
  try {
    devices[0]->wait(marks[0]);
    ADD_FAILURE() << "the other device is lost";
  } catch (const kernel::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another device of a collective"));
  }
  own.join();
  EXPECT_NO_THROW(devices[0]->wait(devices[0]->mark())) << "what began later does not fail";
}

INSTANTIATE_TEST_SUITE_P(Ways, DevicePair, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "nccl" : "peer_copies"; });

}  // namespace
}  // namespace collet::gpu

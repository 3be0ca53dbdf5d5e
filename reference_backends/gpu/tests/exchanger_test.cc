// SPDX-License-Identifier: Apache-2.0
// Tests exchanges between devices of several processes, on the emulator's NCCL.
#include "reference_backends/gpu/library/exchanger.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include "reference_backends/gpu/device.h"
#include "reference_backends/gpu/emulator/tests/processes.h"

namespace collet::gpu {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing_only::Meeting;
using testing_only::ProcessesTest;
using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

template <class T>
void append(Bytes& out, T value) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

/// Appends a small integer as an element of a type.
void append(Bytes& out, uint32_t type, int value) {
  const auto as_float = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &as_float, sizeof bits);
  switch (type) {
    case COLLET_TYPE_S16:
      return append(out, static_cast<int16_t>(value));
    case COLLET_TYPE_S32:
    case COLLET_TYPE_U32:
      return append(out, static_cast<int32_t>(value));
    case COLLET_TYPE_S64:
    case COLLET_TYPE_U64:
      return append(out, static_cast<int64_t>(value));
    case COLLET_TYPE_F16:  // of normal numbers: another bias, and fewer bits
      return append(
          out, static_cast<uint16_t>(value == 0 ? 0 : ((bits >> 13 & 0x3ffff) - (112U << 10)) | (bits >> 16 & 0x8000)));
    case COLLET_TYPE_BF16:
      return append(out, static_cast<uint16_t>(bits >> 16));
    case COLLET_TYPE_F32:
      return append(out, as_float);
    case COLLET_TYPE_F64:
      return append(out, static_cast<double>(value));
    case COLLET_TYPE_C64:
      append(out, as_float);
      return append(out, 2 * as_float);
    case COLLET_TYPE_C128:
      append(out, static_cast<double>(value));
      return append(out, 2.0 * value);
    default:
      return append(out, static_cast<uint8_t>(value));
  }
}

int combine_two(uint32_t combine, int a, int b) {
  switch (combine) {
    case COLLET_COMBINE_ADD:
      return a + b;
    case COLLET_COMBINE_MULTIPLY:
      return a * b;
    case COLLET_COMBINE_MINIMUM:
    case COLLET_COMBINE_AND:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

struct Outcome {
  collet_status code = COLLET_OK;
  std::string message;
};

/// The processes of an exchange, as one of them sees them.
struct Group {
  Group(Meeting& where, std::vector<uint32_t> ranks, uint32_t process) : meeting(where), numbers(ranks) {
    self.struct_size = sizeof self;
    self.size = static_cast<uint32_t>(ranks.size());
    self.rank = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), process) - ranks.begin());
    self.user = this;
    self.exchange = [](void* user, const void* mine, uint64_t bytes, void* out, collet_error* error) -> collet_status {
      auto& group = *static_cast<Group*>(user);
      if (!group.meeting.exchange(group.self.rank, group.self.size, mine, bytes, out)) {
        error->code = group.meeting.someone_is_lost ? COLLET_UNAVAILABLE : COLLET_DEADLINE_EXCEEDED;
        std::strcpy(error->message, "a process does not come");
        return error->code;
      }
      if (group.after_exchange) group.after_exchange(++group.exchanges);
      return COLLET_OK;
    };
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Waits for the other processes, as the runtime does before each exchange.
  collet_status agree(collet_error* error) {
    char mine = 0;
    std::vector<char> all(self.size);
    return self.exchange(self.user, &mine, 1, all.data(), error);
  }

  Meeting& meeting;
  const std::vector<uint32_t> numbers;
  collet_group self{};
  int exchanges = 0;
  std::function<void(int)> after_exchange;  ///< called with the number of the exchange
};

/// What is exchanged.
struct What {
  uint32_t kind = COLLET_EXCHANGE_ALL_REDUCE, element = COLLET_TYPE_S32, combine = COLLET_COMBINE_ADD;
  uint64_t count = 0;
  std::vector<std::pair<uint32_t, uint32_t>> members{};  ///< process, by rank in the group, and device
  std::vector<collet_exchange_copy> copies{};
  uint32_t timeout_ms = 20000;
  bool hears_of_losses = true;

  collet_exchange exchange(const collet_group* group, std::vector<collet_exchange_member>* storage) const {
    storage->clear();
    for (const auto& [process, device] : members) storage->push_back({process, device, {}, {}});
    collet_exchange out{};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.element = element;
    out.combine = combine;
    out.count = count;
    out.members = storage->data();
    out.member_count = static_cast<uint32_t>(storage->size());
    out.copies = copies.data();
    out.copy_count = static_cast<uint32_t>(copies.size());
    out.timeout_ms = timeout_ms;
    out.group = group;
    return out;
  }
};

/// A process with devices and an exchanger.
class Process {
 public:
  Process(uint32_t number, int device_count) : rank(number) {
    setenv("COLLET_CUDA_EMULATOR", "quiet=1,memory=64,threads=1,devices=2", 1);
    const codegen::Status status = open_driver(COLLET_CUDA_EMULATOR_PATH, *driver);
    EXPECT_TRUE(status.ok()) << status.message();
    options.libraries = std::make_shared<Libraries>(open_libraries(COLLET_CUDA_EMULATOR_PATH));
    EXPECT_TRUE(options.libraries->has_processes());
    options.exchanger = std::make_shared<Exchanger>(driver, options.libraries, &Device::place_of);
    for (int i = 0; i < device_count; ++i) devices.push_back(std::make_unique<Device>(driver, i, options));
  }

  /// Runs an exchange. `operands` and `results` are those of all members; the results of the members in this process are set,
  /// and must have their size.
  Outcome run(Group& group, const What& what, const std::vector<Bytes>& operands, std::vector<Bytes>* results) {
    std::vector<collet_exchange_member> storage;
    collet_exchange exchange = what.exchange(&group.self, &storage);
    exchange.processes = group.numbers.data();
    collet_error lost{};
    if (group.agree(&lost) != COLLET_OK) return {lost.code, lost.message};
    if (what.hears_of_losses) {
      exchange.user = &group.meeting;
      exchange.is_over = [](void* user) -> uint32_t { return static_cast<Meeting*>(user)->someone_is_lost.load(); };
    }
    std::vector<kernel::ExchangeMember> members;
    for (size_t i = 0; i < what.members.size(); ++i) {
      const auto& [process, number] = what.members[i];
      kernel::ExchangeMember member{process, number, nullptr, {}, {}};
      if (process == group.self.rank) {
        Device& device = *devices[number];
        member.device = &device;
        member.from = place(device, operands[i]);
        member.to = place(device, Bytes((*results)[i].size(), 0xee));
        device.finish();
      }
      members.push_back(member);
    }
    Outcome out;
    try {
      options.exchanger->run(exchange, members);
    } catch (const kernel::Error& error) {
      out = {error.code(), error.what()};
    }
    for (size_t i = 0; i < members.size(); ++i) {
      if (!members[i].device) continue;
      if (out.code == COLLET_OK && !(*results)[i].empty())
        members[i].device->read(members[i].to.memory, members[i].to.offset, (*results)[i].data(), (*results)[i].size());
      members[i].device->free(members[i].from.memory);
      members[i].device->free(members[i].to.memory);
    }
    return out;
  }

  const uint32_t rank;
  std::shared_ptr<Driver> driver = std::make_shared<Driver>();
  Device::Options options;
  std::vector<std::unique_ptr<Device>> devices;

 private:
  /// Puts data at some place in new memory.
  static kernel::Piece place(Device& device, const Bytes& data) {
    kernel::Piece out;
    if (data.empty()) return out;
    out.offset = 64;
    out.memory = device.allocate(data.size() + out.offset, 256);
    device.write(out.memory, out.offset, data.data(), data.size());
    return out;
  }
};

/// Returns the ranks 0 to size - 1.
std::vector<uint32_t> all_ranks(uint32_t size) {
  std::vector<uint32_t> out(size);
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

/// Runs what combines or gathers arrays of small integers, and checks the results.
void expect_collective(Process& p, Group& group, const What& what) {
  const size_t members = what.members.size();
  const bool scatters = what.kind == COLLET_EXCHANGE_REDUCE_SCATTER, gathers = what.kind == COLLET_EXCHANGE_ALL_GATHER;
  const size_t elements = what.count * (scatters ? members : 1);
  const bool is_pred = what.element == COLLET_TYPE_PRED;
  const auto value = [&](size_t member, size_t k) {
    const auto some = static_cast<int>((3 * member + k + 1) % 4);
    return is_pred ? some % 2 : some;
  };
  std::vector<Bytes> operands(members), results(members);
  for (size_t m = 0; m < members; ++m)
    for (size_t k = 0; k < elements; ++k) append(operands[m], what.element, value(m, k));
  const size_t bytes = what.count * collet_type_bytes(what.element);
  for (Bytes& one : results) one.resize(gathers ? members * bytes : bytes);
  const Outcome outcome = p.run(group, what, operands, &results);
  ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
  for (size_t m = 0; m < members; ++m) {
    if (what.members[m].first != group.self.rank) continue;
    Bytes want;
    if (gathers) {
      for (const Bytes& one : operands) want.insert(want.end(), one.begin(), one.end());
    } else {
      for (size_t k = 0; k < what.count; ++k) {
        const size_t at = scatters ? m * what.count + k : k;
        int sum = value(0, at);
        for (size_t i = 1; i < members; ++i) sum = combine_two(what.combine, sum, value(i, at));
        append(want, what.element, sum);
      }
    }
    EXPECT_EQ(results[m], want) << "kind " << what.kind << " of " << collet_type_name(what.element) << ", combination "
                                << what.combine << ", member " << m;
  }
}

/// What NCCL combines.
std::vector<std::pair<uint32_t, std::vector<uint32_t>>> combinations() {
  constexpr uint32_t kAdd = COLLET_COMBINE_ADD, kMultiply = COLLET_COMBINE_MULTIPLY, kMinimum = COLLET_COMBINE_MINIMUM,
                     kMaximum = COLLET_COMBINE_MAXIMUM;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> out;
  for (const uint32_t type :
       {COLLET_TYPE_S8, COLLET_TYPE_U8, COLLET_TYPE_S32, COLLET_TYPE_U32, COLLET_TYPE_S64, COLLET_TYPE_U64})
    out.push_back({type, {kAdd, kMultiply, kMinimum, kMaximum}});
  for (const uint32_t type : {COLLET_TYPE_F16, COLLET_TYPE_BF16, COLLET_TYPE_F32, COLLET_TYPE_F64})
    out.push_back({type, {kAdd, kMultiply}});
  for (const uint32_t type : {COLLET_TYPE_C64, COLLET_TYPE_C128}) out.push_back({type, {kAdd}});
  out.push_back({COLLET_TYPE_PRED, {COLLET_COMBINE_AND, COLLET_COMBINE_OR, kMinimum, kMaximum}});
  return out;
}

class ExchangerTest : public ProcessesTest {
 protected:
  /// Runs `body` in processes with devices each.
  void run_processes(uint32_t size, int devices, const std::function<void(Process&, Group&)>& body) {
    run_in(size, [&](uint32_t rank) {
      Process process(rank, devices);
      Group group(meetings[0], all_ranks(size), rank);
      body(process, group);
    });
  }

  void expect_all_kinds(uint32_t size, int devices, const std::vector<std::pair<uint32_t, uint32_t>>& members) {
    run_processes(size, devices, [&](Process& p, Group& group) {
      What what;
      what.members = members;
      for (const auto& [type, combines] : combinations()) {
        what.element = type;
        for (const uint32_t combine : combines) {
          what.combine = combine;
          what.kind = COLLET_EXCHANGE_ALL_REDUCE;
          what.count = 37;
          expect_collective(p, group, what);
          what.kind = COLLET_EXCHANGE_REDUCE_SCATTER;
          what.count = 5;
          expect_collective(p, group, what);
        }
      }
      what.kind = COLLET_EXCHANGE_ALL_GATHER;
      what.count = 3;
      for (const uint32_t type : {COLLET_TYPE_PRED, COLLET_TYPE_S4, COLLET_TYPE_S16, COLLET_TYPE_F8E5M2,
                                  COLLET_TYPE_BF16, COLLET_TYPE_F32, COLLET_TYPE_C128}) {
        what.element = type;
        expect_collective(p, group, what);
      }
    });
  }
};

TEST_F(ExchangerTest, AllKindsAndTypes_TwoProcesses) {
  expect_all_kinds(2, 1, {{0, 0}, {1, 0}});
}

TEST_F(ExchangerTest, AllKindsAndTypes_TwoProcessesOfTwoDevices) {
  expect_all_kinds(2, 2, {{0, 0}, {0, 1}, {1, 0}, {1, 1}});
}

TEST_F(ExchangerTest, AllKindsAndTypes_ThreeProcessesInAnotherOrder) {
  expect_all_kinds(3, 2, {{2, 1}, {0, 0}, {2, 0}, {1, 1}});
}

TEST_F(ExchangerTest, AllKindsAndTypes_OneProcess) {
  expect_all_kinds(1, 2, {{0, 1}, {0, 0}});
}

TEST_F(ExchangerTest, LargeArrays) {
  run_processes(2, 1, [](Process& p, Group& group) {
    What what;
    what.members = {{0, 0}, {1, 0}};
    what.element = COLLET_TYPE_F32;
    for (const uint64_t count : {uint64_t{1}, uint64_t{100003}, uint64_t{600000}}) {
      what.count = count;
      expect_collective(p, group, what);
    }
  });
}

TEST_F(ExchangerTest, Copies) {
  run_processes(3, 2, [](Process& p, Group& group) {
    What what;
    what.kind = COLLET_EXCHANGE_COPIES;
    what.members = {{0, 1}, {1, 0}, {2, 0}, {1, 1}};
    const auto count = static_cast<uint32_t>(what.members.size());
    constexpr uint64_t kBlock = 100;
    const auto byte = [](uint32_t from, uint32_t to, uint64_t k) {
      return static_cast<uint8_t>(50 * from + 10 * to + k % 7);
    };
    std::vector<Bytes> operands(count), results(count, Bytes(count * kBlock));
    for (uint32_t m = 0; m < count; ++m)
      for (uint32_t t = 0; t < count; ++t)
        for (uint64_t k = 0; k < kBlock; ++k) operands[m].push_back(byte(m, t, k));
    // Block t of each goes to member t.
    for (uint32_t f = 0; f < count; ++f)
      for (uint32_t t = 0; t < count; ++t) what.copies.push_back({f, t, t * kBlock, f * kBlock, kBlock});
    Outcome outcome = p.run(group, what, operands, &results);
    ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
    for (uint32_t t = 0; t < count; ++t) {
      if (what.members[t].first != group.self.rank) continue;
      for (uint32_t f = 0; f < count; ++f)
        for (uint64_t k = 0; k < kBlock; ++k)
          ASSERT_EQ(results[t][f * kBlock + k], byte(f, t, k)) << "from " << f << " to " << t;
    }
    // Two copies between the same members, one to itself, and members without operand or result.
    what.copies = {{0, 2, 7, 20, 3}, {0, 2, 50, 0, 20}, {3, 3, 1, 2, 33}};
    for (const uint32_t m : {1U, 2U}) operands[m].clear();
    for (const uint32_t m : {0U, 1U}) results[m].clear();
    outcome = p.run(group, what, operands, &results);
    ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
    if (group.self.rank == 2) {
      EXPECT_TRUE(std::equal(&operands[0][7], &operands[0][10], &results[2][20]));
      EXPECT_TRUE(std::equal(&operands[0][50], &operands[0][70], &results[2][0]));
      EXPECT_EQ(results[2][23], 0xee) << "nothing else is written";
    }
    if (group.self.rank == 1) {
      EXPECT_TRUE(std::equal(&operands[3][1], &operands[3][34], &results[3][2]));
      EXPECT_EQ(results[3][35], 0xee);
    }
    // Nothing between members.
    what.copies = {{3, 3, 0, 0, 10}};
    operands[0].clear();
    results[2].clear();
    outcome = p.run(group, what, operands, &results);
    ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
    if (group.self.rank == 1) {
      EXPECT_TRUE(std::equal(&operands[3][0], &operands[3][10], results[3].data()));
    }
  });
}

TEST_F(ExchangerTest, Takes_WhatNcclHas) {
  run_processes(1, 1, [](Process& p, Group&) {
    const auto takes = [&](What what) {
      if (what.members.empty()) what.members = {{0, 0}, {1, 0}};
      std::vector<collet_exchange_member> storage;
      const collet_exchange exchange = what.exchange(nullptr, &storage);
      return p.options.exchanger->takes(exchange);
    };
    for (const uint32_t kind : {COLLET_EXCHANGE_ALL_REDUCE, COLLET_EXCHANGE_REDUCE_SCATTER}) {
      for (uint32_t type = 0; type < COLLET_TYPE_LIMIT; ++type) {
        for (uint32_t combine = COLLET_COMBINE_OTHER; combine <= COLLET_COMBINE_SECOND; ++combine) {
          bool want = false;
          for (const auto& [has, combines] : combinations())
            want |= has == type && std::find(combines.begin(), combines.end(), combine) != combines.end();
          EXPECT_EQ(takes({kind, type, combine, 8}), want) << kind << " " << collet_type_name(type) << " " << combine;
        }
      }
    }
    EXPECT_TRUE(takes({COLLET_EXCHANGE_ALL_GATHER, COLLET_TYPE_U16, 0, 8}));
    EXPECT_FALSE(takes({COLLET_EXCHANGE_ALL_GATHER, COLLET_TYPE_TOKEN, 0, 8}));
    EXPECT_TRUE(takes({COLLET_EXCHANGE_COPIES, 0, 0, 0, {}, {{0, 1, 0, 0, 8}}}));
    EXPECT_FALSE(takes({COLLET_EXCHANGE_COPIES, 0, 0, 0, {}, {{0, 2, 0, 0, 8}}})) << "no such member";
    EXPECT_FALSE(takes({99, COLLET_TYPE_F32, COLLET_COMBINE_ADD, 8})) << "no such kind";
    EXPECT_FALSE(takes({COLLET_EXCHANGE_ALL_REDUCE, COLLET_TYPE_F32, COLLET_COMBINE_ADD, 8, {{0, 0}, {0, 0}}}))
        << "a device that is two members";
  });
}

TEST_F(ExchangerTest, ExchangesThatAreNotTaken_AreRefused) {
  run_processes(1, 1, [](Process& p, Group& group) {
    What what;
    what.members = {{0, 0}};
    what.count = 1;
    what.combine = COLLET_COMBINE_XOR;
    std::vector<Bytes> results(1, Bytes(4));
    EXPECT_EQ(p.run(group, what, {Bytes(4)}, &results).code, COLLET_INVALID_ARGUMENT);
    what.combine = COLLET_COMBINE_ADD;
    what.members = {{0, 0}, {1, 0}};
    results.emplace_back(4);
    EXPECT_EQ(p.run(group, what, {Bytes(4), Bytes(4)}, &results).code, COLLET_INVALID_ARGUMENT) << "no such process";
    what.members = {{0, 0}};
    results.pop_back();
    const Outcome outcome = p.run(group, what, {Bytes()}, &results);
    EXPECT_EQ(outcome.code, COLLET_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.message, HasSubstr("member 0 of the exchange has no memory"));
  });
}

// Two lists of members on the same devices, in both processes at the same time and in another order.
TEST_F(ExchangerTest, TwoCommunicatorsAtOnce) {
  run_in(2, [&](uint32_t rank) {
    Process p(rank, 1);
    const auto work = [&](size_t which) {
      Group group(meetings[which], all_ranks(2), rank);
      What what;
      what.members = {{0, 0}, {1, 0}};
      if (which == 1) std::swap(what.members[0], what.members[1]);
      for (uint64_t turn = 1; turn <= 25; ++turn) {
        if (which == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        what.count = 100 * turn + which;
        expect_collective(p, group, what);
      }
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
  });
}

// The ranks in the groups and the devices are the same for each pair of processes.
TEST_F(ExchangerTest, GroupsOfOtherProcesses_HaveOtherCommunicators) {
  run_in(3, [&](uint32_t rank) {
    Process p(rank, 1);
    const std::vector<std::vector<uint32_t>> groups = {{0, 1}, {0, 2}, {1, 2}};
    for (int turn = 0; turn < 2; ++turn) {
      for (size_t g = 0; g < groups.size(); ++g) {
        if (std::find(groups[g].begin(), groups[g].end(), rank) == groups[g].end()) continue;
        Group group(meetings[g], groups[g], rank);
        What what;
        what.members = {{0, 0}, {1, 0}};
        what.count = 10 + g;
        expect_collective(p, group, what);
      }
    }
  });
}

/// An exchange of two processes that is expected to fail.
Outcome run_reduce(Process& p, Group& group, const What& what) {
  std::vector<Bytes> results(what.members.size(), Bytes(4 * what.count));
  return p.run(group, what, results, &results);
}

What reduce_over(uint32_t processes) {
  What what;
  for (uint32_t r = 0; r < processes; ++r) what.members.emplace_back(r, 0);
  what.count = 1000;
  return what;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One process is killed at the beginning of the first run, before it joins the communicator, at the beginning of a later run, and
// while the others already wait. They hear of it by is_over or, where it has joined, from NCCL alone.
TEST_F(ExchangerTest, ProcessThatIsKilled_FailsTheOthersInTime) {
  uint32_t first = 0;
  for (const int at : {1, 2, 3, 5}) {  // the number of the exchange of the group; two belong to the first run
    for (const uint32_t victim : {0U, 2U}) {
      for (const bool hears : {false, true}) {
        if (!hears && at <= 2) continue;
        SCOPED_TRACE(::testing::Message() << "at " << at << ", victim " << victim << ", hears of it: " << hears);
        new (meetings) Meeting;
        start(3, [&](uint32_t rank) {
          Process p(rank, 1);
          Group group(meetings[0], all_ranks(3), rank);
          if (rank == victim) {
            group.after_exchange = [&](int count) {
              if (count != at) return;
              if (at == 5) std::this_thread::sleep_for(std::chrono::milliseconds(200));
              raise(SIGKILL);
            };
          }
          What what = reduce_over(3);
          what.hears_of_losses = hears;
          Outcome outcome;
          auto begin = Clock::now();
          for (int run = 0; outcome.code == COLLET_OK && run < 10; ++run) {
            begin = Clock::now();
            outcome = run_reduce(p, group, what);
          }
          EXPECT_EQ(outcome.code, COLLET_UNAVAILABLE) << outcome.message;
          EXPECT_LT(seconds_since(begin), 10);
          p.devices.clear();
          EXPECT_LT(seconds_since(begin), 15) << "closing";
        });
        expect_killed(first + victim);
        if (hears) meetings[0].someone_is_lost = true;
        for (uint32_t rank = 0; rank < 3; ++rank)
          if (rank != victim) expect_good(first + rank);
        first += 3;
        if (HasFailure()) return;
      }
    }
  }
}

// Process 1 is late: in the first run, when the others join the communicator, or in the second one.
TEST_F(ExchangerTest, ProcessThatIsLate_EndsTheWaitAfterTheLimit) {
  for (const int at : {2, 3}) {
    SCOPED_TRACE(at);
    new (meetings) Meeting;
    run_processes(2, 1, [&](Process& p, Group& group) {
      if (p.rank == 1) {
        group.after_exchange = [&](int count) {
          if (count == at) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        };
      }
      What what = reduce_over(2);
      if (p.rank == 0) what.timeout_ms = 400;
      if (at == 3) {
        const Outcome outcome = run_reduce(p, group, what);
        ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
      }
      const auto begin = Clock::now();
      const Outcome outcome = run_reduce(p, group, what);
      if (p.rank == 0) {
        EXPECT_EQ(outcome.code, COLLET_DEADLINE_EXCEEDED) << outcome.message;
        EXPECT_THAT(outcome.message, HasSubstr("within 400 ms"));
        EXPECT_GT(seconds_since(begin), 0.39);
        EXPECT_LT(seconds_since(begin), 1.4);
      } else {
        EXPECT_EQ(outcome.code, COLLET_UNAVAILABLE) << outcome.message;
      }
      EXPECT_EQ(run_reduce(p, group, what).code, outcome.code) << "the failure stays";
    });
  }
}

TEST_F(ExchangerTest, DeviceThatIsLost_FailsTheOthersAtOnce) {
  run_processes(2, 1, [&](Process& p, Group& group) {
    const What what = reduce_over(2);
    Outcome outcome = run_reduce(p, group, what);
    ASSERT_EQ(outcome.code, COLLET_OK) << outcome.message;
    std::vector<Bytes> results(2, Bytes(4 * what.count));
    std::vector<collet_exchange_member> storage;
    collet_exchange exchange = what.exchange(&group.self, &storage);
    exchange.processes = group.numbers.data();
    exchange.user = &group.meeting;
    exchange.is_over = [](void* user) -> uint32_t { return static_cast<Meeting*>(user)->someone_is_lost.load(); };
    Device& device = *p.devices[0];
    const kernel::Memory memory = device.allocate(4 * what.count, 256);
    device.write(memory, 0, results[0].data(), results[0].size());
    device.finish();
    if (p.rank == 1) {
      EXPECT_THROW(
          {
            device.copy(memory, 0, memory, uint64_t{1} << 20, 4);  // outside of the memory
            device.finish();
          },
          kernel::Error);
    }
    std::vector<kernel::ExchangeMember> members;
    for (uint32_t r = 0; r < 2; ++r) {
      members.push_back({r, 0, nullptr, {}, {}});
      if (r == p.rank) members.back() = {r, 0, &device, {memory}, {memory}};
    }
    const auto begin = Clock::now();
    try {
      p.options.exchanger->run(exchange, members);
      ADD_FAILURE() << "a device is lost";
    } catch (const kernel::Error& error) {
      EXPECT_EQ(error.code(), COLLET_UNAVAILABLE) << error.what();
      // Process 0 hears of it from the runtime, or from NCCL if process 1 has closed its devices by then.
      const std::string expected = p.rank == 1 ? "the device is lost" : "another process of the exchange is lost";
      EXPECT_THAT(error.what(), AnyOf(HasSubstr(expected), HasSubstr("member 1 ")));
    }
    group.meeting.someone_is_lost = true;  // the runtime leaves the group
    EXPECT_LT(seconds_since(begin), 10);
  });
}

// A member's memory is not there: its device fails while the exchange runs. The other process waits until it hears of that.
TEST_F(ExchangerTest, DeviceThatIsLostMeanwhile_FailsTheOthers) {
  run_processes(2, 1, [&](Process& p, Group& group) {
    const What what = reduce_over(2);
    std::vector<collet_exchange_member> storage;
    collet_exchange exchange = what.exchange(&group.self, &storage);
    exchange.processes = group.numbers.data();
    Device& device = *p.devices[0];
    const kernel::Memory memory = device.allocate(4 * what.count, 256);
    const Bytes zeros(4 * what.count);
    device.write(memory, 0, zeros.data(), zeros.size());
    device.finish();
    std::vector<kernel::ExchangeMember> members;
    for (uint32_t r = 0; r < 2; ++r) {
      members.push_back({r, 0, nullptr, {}, {}});
      if (r == p.rank)
        members.back() = {r, 0, &device, {memory}, {p.rank == 1 ? memory + (uint64_t{1} << 40) : memory}};
    }
    try {
      p.options.exchanger->run(exchange, members);
      ADD_FAILURE() << "a device is lost";
    } catch (const kernel::Error& error) {
      EXPECT_EQ(error.code(), COLLET_UNAVAILABLE) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(p.rank == 0 ? "member 1 is gone" : "ncclAllReduce writes"));
    }
  });
}

// Each process closes its devices when it has its results, without waiting for the other one.
TEST_F(ExchangerTest, DevicesAreClosedAfterAnExchange) {
  for (int turn = 0; turn < 4; ++turn) {
    new (meetings) Meeting;
    run_processes(2, 2, [&](Process& p, Group& group) {
      What what;
      what.members = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
      what.count = 100000;
      expect_collective(p, group, what);
      if (static_cast<int>(p.rank) == turn % 2) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const auto begin = Clock::now();
      p.devices.clear();
      EXPECT_LT(seconds_since(begin), 5);
    });
  }
}

// An exchange waits for nothing that runs on its devices before.
TEST_F(ExchangerTest, ExchangesDoNotWaitForLaunches) {
  run_processes(2, 1, [&](Process& p, Group& group) {
    // A stream that waits until the end of the test.
    std::promise<void> ended;
    const CUhostFn wait = [](void* promise) { static_cast<std::promise<void>*>(promise)->get_future().wait(); };
    const What what = reduce_over(2);
    std::vector<Bytes> results(2, Bytes(4 * what.count));
    std::vector<collet_exchange_member> storage;
    collet_exchange exchange = what.exchange(&group.self, &storage);
    exchange.processes = group.numbers.data();
    Device& device = *p.devices[0];
    const kernel::Memory from = device.allocate(4 * what.count, 256), to = device.allocate(4 * what.count, 256);
    device.write(from, 0, results[0].data(), results[0].size());
    device.finish();
    std::vector<kernel::ExchangeMember> members;
    for (uint32_t r = 0; r < 2; ++r) {
      members.push_back({r, 0, nullptr, {}, {}});
      if (r == p.rank) members.back() = {r, 0, &device, {from}, {to}};
    }
    CUstream stream = nullptr;
    ASSERT_EQ(p.driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(p.driver->cuLaunchHostFunc(stream, wait, &ended), CUDA_SUCCESS);
    EXPECT_NO_THROW(p.options.exchanger->run(exchange, members));
    EXPECT_EQ(p.driver->cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    ended.set_value();
    device.free(from);
    device.free(to);
    ASSERT_EQ(p.driver->cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(p.driver->cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  });
}

/// Opens the plugin on the emulator, as the runtime does.
class Plugin {
 public:
  explicit Plugin(const char* libraries) {
    void* const library = dlopen(COLLET_GPU_PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    const auto entry = reinterpret_cast<collet_backend_entry_fn>(dlsym(library, "collet_backend_entry"));
    collet_host host{};
    host.struct_size = sizeof host;
    host.abi_major = COLLET_ABI_MAJOR;
    host.abi_minor = COLLET_ABI_MINOR;
    host.opset = COLLET_OPSET;
    EXPECT_EQ(entry(&host, &backend, &error), COLLET_OK) << error.message;
    const char* const keys[] = {"driver", "emulator", "libraries"};
    const char* const values[] = {"emulator", "quiet=1,memory=64,threads=1", libraries};
    collet_open_options options{};
    options.struct_size = sizeof options;
    options.keys = keys;
    options.values = values;
    options.pairs = 3;
    collet_instance_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(backend->open(&options, &instance, &info, &error), COLLET_OK) << error.message;
    exchange = static_cast<const collet_exchange_table*>(backend->query(instance, "exchange", 1));
  }
  ~Plugin() { backend->close(instance); }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const collet_backend* backend = nullptr;
  collet_backend_instance* instance = nullptr;
  const collet_exchange_table* exchange = nullptr;
  collet_error error{};
};

TEST_F(ExchangerTest, PluginOffersTheTable_WhereItUsesNccl) {
  run_in(1, [](uint32_t) { EXPECT_EQ(Plugin("0").exchange, nullptr); });
  run_in(2, [&](uint32_t rank) {
    Plugin p("1");
    ASSERT_NE(p.exchange, nullptr);
    Group group(meetings[0], all_ranks(2), rank);
    const What what = reduce_over(2);
    std::vector<collet_exchange_member> members;
    collet_exchange exchange = what.exchange(nullptr, &members);
    EXPECT_EQ(p.exchange->takes(p.instance, &exchange), 1U);
    exchange.combine = COLLET_COMBINE_XOR;
    EXPECT_EQ(p.exchange->takes(p.instance, &exchange), 0U);
    exchange.combine = COLLET_COMBINE_ADD;
    std::vector<int32_t> numbers(what.count, static_cast<int32_t>(rank + 1));
    collet_backend_buffer* buffers[2] = {};
    for (collet_backend_buffer*& one : buffers)
      ASSERT_EQ(p.backend->alloc(p.instance, 0, 0, 4 * what.count, 256, &one, nullptr, &p.error), COLLET_OK);
    const collet_copy_region in = {{nullptr, numbers.data(), 0}, {buffers[0], nullptr, 0}, 4 * what.count};
    const collet_copy_region out = {{buffers[1], nullptr, 0}, {nullptr, numbers.data(), 0}, 4 * what.count};
    ASSERT_EQ(p.backend->copy(p.instance, &in, 1, nullptr, &p.error), COLLET_OK) << p.error.message;
    members[rank].from.buffer = buffers[0];
    members[rank].to.buffer = buffers[1];
    exchange.group = &group.self;
    exchange.processes = group.numbers.data();
    exchange.user = &group.meeting;
    exchange.is_over = [](void*) -> uint32_t { return 0; };
    ASSERT_EQ(p.exchange->run(p.instance, &exchange, &p.error), COLLET_OK) << p.error.message;
    ASSERT_EQ(p.backend->copy(p.instance, &out, 1, nullptr, &p.error), COLLET_OK) << p.error.message;
    EXPECT_EQ(numbers, std::vector<int32_t>(what.count, 3));
    for (collet_backend_buffer* one : buffers) p.backend->free(p.instance, one);
  });
}

// NCCL before 2.14 has functions that wait alone.
TEST_F(ExchangerTest, LibraryWithoutFunctionsThatDoNotWait) {
  run_in(2, [&](uint32_t rank) {
    Process p(rank, 2);
    p.devices.clear();
    auto older = *p.options.libraries;
    older.ncclCommInitRankConfig = nullptr;
    older.ncclCommFinalize = nullptr;
    older.ncclGetLastError = nullptr;
    p.options.libraries = std::make_shared<Libraries>(older);
    p.options.exchanger = std::make_shared<Exchanger>(p.driver, p.options.libraries, &Device::place_of);
    for (int i = 0; i < 2; ++i) p.devices.push_back(std::make_unique<Device>(p.driver, i, p.options));
    Group group(meetings[0], all_ranks(2), rank);
    What what;
    what.members = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    what.count = 1000;
    for (int turn = 0; turn < 3; ++turn) expect_collective(p, group, what);
  });
}

}  // namespace
}  // namespace collet::gpu

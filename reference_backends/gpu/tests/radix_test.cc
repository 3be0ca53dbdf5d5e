// SPDX-License-Identifier: Apache-2.0
// Compares radix sorts that run on the driver emulator with a stable sort by the same keys.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/tests/generated_kernels.h"
#include "sdk/codegen/routines/sort_keys.h"
#include "sdk/codegen/schedule/grid_radix.h"

namespace collet::gpu {
namespace {

using codegen::GridRadix;
using codegen::KeyRule;
using Bytes = std::vector<uint8_t>;

/// A sort of rows.
struct SortCase {
  KeyRule key;
  int64_t rows = 1;
  int64_t length = 1;
  std::vector<uint32_t> others = {};  ///< types of the arrays that move along
  bool keeps_numbers = false;
  int64_t processors = 1;
  int64_t different = 0;  ///< number of different keys; 0: any bits
  bool is_wide = false;   ///< whether tiles publish 64 bits
  uint64_t mask = 0;      ///< if not 0: the bits of the keys that may be set
};

std::string text_of(const SortCase& c) {
  std::string out = std::string(collet_type_name(c.key.type)) + (c.key.descending ? " descending" : "") +
                    (c.key.equal_zeros ? " equal zeros" : "") + (c.key.equal_nans ? " equal NaNs" : "") + ", " +
                    std::to_string(c.rows) + " x " + std::to_string(c.length) + ", " + std::to_string(c.different) +
                    " keys, with";
  for (const uint32_t type : c.others) out += " " + std::string(collet_type_name(type));
  return out + (c.keeps_numbers ? " numbers" : "");
}

/// Compiles kernels of a sort, and starts them on the emulator.
class RadixRunner {
 public:
  explicit RadixRunner(const std::vector<GridRadix>& kernels) {
    const codegen::Target machine = target();
    std::unique_ptr<codegen::ObjectCompiler> compiler;
    EXPECT_TRUE(codegen::ObjectCompiler::create(machine, compiler).ok());
    std::string ptx;
    const auto fill = [&](llvm::Module& module) {
      for (size_t i = 0; i < kernels.size(); ++i)
        emit_function({"radix" + std::to_string(i), kernels[i], false}, module, machine);
    };
    const codegen::Status compiled = compiler->compile("radix", fill, nullptr, ptx);
    EXPECT_TRUE(compiled.ok()) << compiled.message();
    EXPECT_TRUE(device().check(device().driver().cuModuleLoadDataEx(&module_, ptx.c_str(), 0, nullptr, nullptr)));
    for (size_t i = 0; i < kernels.size(); ++i) {
      CUfunction function = nullptr;
      EXPECT_TRUE(device().check(
          device().driver().cuModuleGetFunction(&function, module_, ("radix" + std::to_string(i)).c_str())));
      functions_.push_back(function);
    }
  }
  RadixRunner(const RadixRunner&) = delete;
  RadixRunner& operator=(const RadixRunner&) = delete;
  ~RadixRunner() {
    for (const CUdeviceptr p : memory_) device().check(device().driver().cuMemFree_v2(p));
    device().check(device().driver().cuModuleUnload(module_));
  }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr p = 0;
    device().check(device().driver().cuMemAlloc_v2(&p, std::max<size_t>(bytes, 1)));
    memory_.push_back(p);
    return p;
  }
  CUdeviceptr upload(const Bytes& bytes) {
    const CUdeviceptr p = allocate(bytes.size());
    device().check(device().driver().cuMemcpyHtoD_v2(p, bytes.data(), bytes.size()));
    return p;
  }
  Bytes download(CUdeviceptr p, size_t bytes) {
    Bytes out(bytes);
    device().check(device().driver().cuMemcpyDtoH_v2(out.data(), p, bytes));
    return out;
  }
  bool start(size_t kernel, const GridRadix& radix, std::vector<CUdeviceptr> addresses, int64_t pass = -1) {
    std::vector<void*> parameters;
    for (CUdeviceptr& p : addresses) parameters.push_back(&p);
    if (pass >= 0) parameters.push_back(&pass);
    const Driver& driver = device().driver();
    return device().check(driver.cuLaunchKernel(functions_[kernel], radix.blocks(), 1, 1, radix.block_threads, 1, 1, 0,
                                                nullptr, parameters.data(), nullptr)) &&
           device().check(driver.cuCtxSynchronize());
  }

 private:
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
  std::vector<CUdeviceptr> memory_;
};

Bytes random_bytes(size_t n, uint64_t& state) {
  Bytes out(n);
  for (uint8_t& b : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<uint8_t>(state >> 56);
  }
  return out;
}

/// Returns keys of which few are equal, or of which only `c.different` differ. Floats have zeros, infinities and NaNs of
/// both signs among them.
Bytes random_keys(const SortCase& c, uint64_t& state) {
  const size_t bytes = collet_type_bytes(c.key.type);
  const auto n = static_cast<size_t>(c.rows * c.length);
  Bytes out = random_bytes(n * bytes, state);
  if (c.different > 0) {
    const Bytes some = random_bytes(static_cast<size_t>(c.different) * bytes, state);
    for (size_t i = 0; i < n; ++i) {
      const size_t pick = (out[i * bytes] * 131u + i * i) % static_cast<size_t>(c.different);
      std::memcpy(&out[i * bytes], &some[pick * bytes], bytes);
    }
  }
  for (size_t i = 0; i < n && c.mask != 0; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &out[i * bytes], bytes);
    bits &= c.mask;
    std::memcpy(&out[i * bytes], &bits, bytes);
  }
  if (c.key.type == COLLET_TYPE_PRED) {
    for (uint8_t& b : out) b &= 1;
  }
  const codegen::KeyConstants constants = codegen::key_constants(c.key);
  if (!constants.is_float) return out;
  for (size_t i = 0; i < n; i += 7) {
    const uint64_t sign = (i / 7) % 2 ? constants.sign : 0;
    const uint64_t magnitudes[] = {0, codegen::key_constants({c.key.type, false, false, true}).infinity,
                                   constants.sign - 1, constants.sign - 3};
    const uint64_t bits = sign | magnitudes[(i / 14) % 4];
    std::memcpy(&out[i * bytes], &bits, bytes);
  }
  return out;
}

uint64_t key_of(const KeyRule& rule, const uint8_t* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, collet_type_bytes(rule.type));
  switch (collet_type_bytes(rule.type)) {
    case 1:
      return codegen::Keys<uint8_t>(rule).key(static_cast<uint8_t>(bits));
    case 2:
      return codegen::Keys<uint16_t>(rule).key(static_cast<uint16_t>(bits));
    case 4:
      return codegen::Keys<uint32_t>(rule).key(static_cast<uint32_t>(bits));
    default:
      return codegen::Keys<uint64_t>(rule).key(bits);
  }
}

/// Returns the elements of `from` in the order `order`, which has numbers in the whole array.
Bytes in_order(const Bytes& from, const std::vector<size_t>& order, size_t bytes) {
  Bytes out(from.size());
  for (size_t i = 0; i < order.size(); ++i) std::memcpy(&out[i * bytes], &from[order[i] * bytes], bytes);
  return out;
}

void check(const SortCase& c) {
  SCOPED_TRACE(text_of(c));
  codegen::GridLimits limits = target().grid;
  limits.processors = static_cast<int>(c.processors);
  auto scheduled = schedule_radix(c.key, c.rows, c.length, c.others, c.keeps_numbers, limits);
  ASSERT_TRUE(scheduled);
  scheduled->is_wide = scheduled->is_wide || c.is_wide;
  const GridRadix sort = *scheduled;
  uint64_t seed = static_cast<uint64_t>(c.length) * 31 + c.key.type;
  const Bytes keys = random_keys(c, seed);
  const auto n = static_cast<size_t>(c.rows * c.length);
  std::vector<Bytes> others;
  for (const uint32_t type : c.others) others.push_back(random_bytes(n * collet_type_bytes(type), seed));
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t key_bytes = collet_type_bytes(c.key.type);
  for (int64_t r = 0; r < c.rows; ++r) {
    std::stable_sort(order.begin() + r * c.length, order.begin() + (r + 1) * c.length, [&](size_t x, size_t y) {
      return key_of(c.key, &keys[x * key_bytes]) < key_of(c.key, &keys[y * key_bytes]);
    });
  }

  // The kernels, in the order of their launches: the same that Compiler::radix_on_grid has.
  std::vector<GridRadix> kernels;
  if (sort.part == GridRadix::Part::kRows) {
    kernels.push_back(sort);
  } else {
    GridRadix counts = sort;
    counts.part = GridRadix::Part::kCounts;
    counts.payload = GridRadix::Payload::kNothing;
    counts.gathered.clear();
    kernels.push_back(counts);
    for (int64_t p = 0; p < sort.passes; ++p) {
      kernels.push_back(sort);
      kernels.back().is_first = p == 0;
      kernels.back().is_last = p + 1 == sort.passes;
    }
  }
  RadixRunner runner(kernels);
  const CUdeviceptr keys_in = runner.upload(keys);
  CUdeviceptr sorted_keys = runner.allocate(keys.size());
  std::vector<CUdeviceptr> sources;
  std::vector<CUdeviceptr> results;
  for (const Bytes& other : others) {
    sources.push_back(runner.upload(other));
    results.push_back(runner.allocate(other.size()));
  }
  const auto add_gathered = [&](const GridRadix& radix, std::vector<CUdeviceptr>& addresses) {
    if (!radix.gathers()) return;
    addresses.insert(addresses.end(), sources.begin(), sources.end());
    addresses.insert(addresses.end(), results.begin(), results.end());
  };
  CUdeviceptr numbers = 0;
  if (sort.part == GridRadix::Part::kRows) {
    std::vector<CUdeviceptr> addresses{keys_in, sorted_keys};
    if (sort.writes_values()) addresses.push_back(numbers = runner.allocate(n * 4));
    add_gathered(sort, addresses);
    ASSERT_TRUE(runner.start(0, sort, addresses));
  } else {
    const CUdeviceptr state = runner.allocate(static_cast<size_t>(sort.state_words()) * 4);
    device().check(device().driver().cuMemsetD8Async(state, 0, static_cast<size_t>(sort.cleared_words()) * 4, nullptr));
    ASSERT_TRUE(runner.start(0, kernels[0], {keys_in, state}));
    const bool carries = sort.payload == GridRadix::Payload::kValues;
    const size_t value_bytes = n * static_cast<size_t>(sort.value_bytes);
    const CUdeviceptr key_arrays[] = {sorted_keys, runner.allocate(keys.size())};
    const CUdeviceptr value_arrays[] = {runner.allocate(value_bytes), runner.allocate(value_bytes)};
    CUdeviceptr key_source = keys_in;
    CUdeviceptr value_source = carries ? sources[0] : 0;
    for (int64_t p = 0; p < sort.passes; ++p) {
      const GridRadix& radix = kernels[static_cast<size_t>(p) + 1];
      std::vector<CUdeviceptr> addresses{key_source, key_arrays[p % 2]};
      if (radix.reads_values()) addresses.push_back(value_source);
      if (radix.writes_values()) addresses.push_back(value_arrays[p % 2]);
      add_gathered(radix, addresses);
      addresses.push_back(state);
      ASSERT_TRUE(runner.start(static_cast<size_t>(p) + 1, radix, addresses, p)) << "pass " << p;
      key_source = key_arrays[p % 2];
      value_source = value_arrays[p % 2];
    }
    sorted_keys = key_source;
    if (carries) results[0] = value_source;
    numbers = value_source;
  }
  EXPECT_EQ(runner.download(sorted_keys, keys.size()), in_order(keys, order, key_bytes));
  for (size_t k = 0; k < others.size(); ++k) {
    EXPECT_EQ(runner.download(results[k], others[k].size()), in_order(others[k], order, collet_type_bytes(c.others[k])))
        << "array " << k;
  }
  if (!c.keeps_numbers) return;
  const Bytes found = runner.download(numbers, n * 4);
  for (size_t i = 0; i < n; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, &found[i * 4], 4);
    ASSERT_EQ(number, order[i] % static_cast<size_t>(c.length)) << i;
  }
}

/// Returns the orders that comparators define for a type.
std::vector<KeyRule> rules_of(uint32_t type) {
  if (collet_type_kind(type) != COLLET_KIND_FLOAT) return {{type, false, false, false}, {type, true, false, false}};
  return {{type, false, false, false},
          {type, true, false, false},
          {type, false, true, false},
          {type, false, true, true},
          {type, true, true, true}};
}

constexpr uint32_t kTypes[] = {COLLET_TYPE_PRED, COLLET_TYPE_S8,   COLLET_TYPE_U8,  COLLET_TYPE_S16, COLLET_TYPE_U16,
                               COLLET_TYPE_F16,  COLLET_TYPE_BF16, COLLET_TYPE_S32, COLLET_TYPE_U32, COLLET_TYPE_F32,
                               COLLET_TYPE_S64,  COLLET_TYPE_U64,  COLLET_TYPE_F64};

TEST(GpuRadix, RowsOfOneBlock_AllTypesAndOrders) {
  for (const uint32_t type : kTypes) {
    for (const KeyRule& rule : rules_of(type)) check({rule, 2, 1025});
  }
}

TEST(GpuRadix, RowsOfOneBlock_AllLengths) {
  const KeyRule rule{COLLET_TYPE_F32, false, true, true};
  for (const int64_t length : {2, 31, 256, 257, 2048, 2049, 4095, 7167, 7168, 8192}) check({rule, 1, length});
  check({{COLLET_TYPE_S64, true, false, false}, 1, 3456, {COLLET_TYPE_F32}});
}

TEST(GpuRadix, RowsOfOneBlock_KeepEqualKeysInOrder) {
  for (const int64_t different : {1, 2, 50}) {
    check({{COLLET_TYPE_S32, false, false, false}, 3, 1500, {COLLET_TYPE_S8, COLLET_TYPE_C128}, false, 1, different});
    check({{COLLET_TYPE_BF16, true, true, true}, 3, 2500, {}, true, 1, different});
  }
}

TEST(GpuRadix, Tiles_AllTypesAndOrders) {
  for (const uint32_t type : kTypes) {
    const std::vector<KeyRule> rules = rules_of(type);
    for (const KeyRule& rule : {rules.front(), rules.back()}) check({rule, 1, 9001, {}, false, 3});
  }
}

TEST(GpuRadix, Tiles_AroundTheirEnds) {
  const KeyRule rule{COLLET_TYPE_U32, false, false, false};
  for (const int64_t length : {8193, 10239, 10240, 10241, 24576, 24577}) check({rule, 2, length, {}, false, 10});
}

TEST(GpuRadix, Tiles_KeepEqualKeysInOrder) {
  const KeyRule words{COLLET_TYPE_F32, false, true, true};
  const KeyRule bytes{COLLET_TYPE_U8, true, false, false};
  for (const int64_t different : {1, 300}) {
    check({words, 2, 20001, {COLLET_TYPE_S32}, false, 8, different});
    check({words, 1, 20001, {COLLET_TYPE_F64}, false, 8, different});
    check({words, 1, 20001, {COLLET_TYPE_PRED, COLLET_TYPE_C64, COLLET_TYPE_C128}, false, 8, different});
    check({words, 1, 20001, {}, true, 8, different});
    check({bytes, 1, 40001, {COLLET_TYPE_C128}, false, 8, different});
    check({bytes, 2, 20001, {COLLET_TYPE_S16}, false, 8, different});
  }
}

TEST(GpuRadix, Tiles_WithPassesThatMoveNothing) {
  const KeyRule rule{COLLET_TYPE_S32, false, false, false};
  for (const uint64_t mask : {uint64_t{0xff00}, uint64_t{0xff0000ff}}) {
    check({rule, 2, 9001, {}, false, 8, 0, false, mask});
    check({rule, 2, 9001, {COLLET_TYPE_F32}, false, 8, 0, false, mask});
    check({rule, 1, 9001, {}, true, 8, 0, false, mask});
    check({rule, 1, 9001, {COLLET_TYPE_PRED, COLLET_TYPE_C128}, false, 8, 0, false, mask});
  }
  check({{COLLET_TYPE_S64, true, false, false}, 1, 9001, {COLLET_TYPE_S32}, false, 8, 0, false, 0xf00});
  check({rule, 1, 9001, {COLLET_TYPE_F32}, false, 8, 1});
}

TEST(GpuRadix, Tiles_OfManyRows) {
  check({{COLLET_TYPE_S16, false, false, false}, 9, 18001, {}, false, 4});
}

TEST(GpuRadix, Tiles_ThatPublishWideCounts) {
  check({{COLLET_TYPE_S16, false, false, false}, 2, 30001, {COLLET_TYPE_S32}, false, 4, 0, true});
}

/// Checks that a kernel selects the first `kept` elements of each tile in the order of keys, and leaves them in the order
/// that they had.
void check_selection(const SortCase& c, int64_t kept) {
  SCOPED_TRACE(text_of(c) + ", first " + std::to_string(kept));
  codegen::GridLimits limits = target().grid;
  limits.processors = static_cast<int>(c.processors);
  const auto scheduled = schedule_selection(c.key, c.rows, c.length, kept, c.others, limits);
  ASSERT_TRUE(scheduled);
  const GridRadix radix = *scheduled;
  uint64_t seed = static_cast<uint64_t>(c.length) * 37 + c.key.type;
  const Bytes keys = random_keys(c, seed);
  const size_t key_bytes = collet_type_bytes(c.key.type);
  const auto n = static_cast<size_t>(c.rows * c.length);
  std::vector<Bytes> others;
  for (const uint32_t type : c.others) others.push_back(random_bytes(n * collet_type_bytes(type), seed));
  std::vector<size_t> selected;
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t first = 0; first < c.length; first += radix.tile()) {
      std::vector<size_t> tile(static_cast<size_t>(std::min(radix.tile(), c.length - first)));
      std::iota(tile.begin(), tile.end(), static_cast<size_t>(r * c.length + first));
      std::stable_sort(tile.begin(), tile.end(), [&](size_t x, size_t y) {
        return key_of(c.key, &keys[x * key_bytes]) < key_of(c.key, &keys[y * key_bytes]);
      });
      tile.resize(std::min(tile.size(), static_cast<size_t>(kept)));
      std::sort(tile.begin(), tile.end());
      selected.insert(selected.end(), tile.begin(), tile.end());
    }
  }
  ASSERT_EQ(selected.size(), static_cast<size_t>(c.rows * radix.pitch));
  RadixRunner runner({radix});
  std::vector<CUdeviceptr> addresses{runner.upload(keys)};
  for (const Bytes& other : others) addresses.push_back(runner.upload(other));
  addresses.push_back(runner.allocate(selected.size() * key_bytes));
  for (const uint32_t type : c.others) addresses.push_back(runner.allocate(selected.size() * collet_type_bytes(type)));
  ASSERT_TRUE(runner.start(0, radix, addresses));
  const auto picked = [&](const Bytes& from, size_t bytes) {
    Bytes out(selected.size() * bytes);
    for (size_t i = 0; i < selected.size(); ++i) std::memcpy(&out[i * bytes], &from[selected[i] * bytes], bytes);
    return out;
  };
  EXPECT_EQ(runner.download(addresses[1 + others.size()], selected.size() * key_bytes), picked(keys, key_bytes));
  for (size_t k = 0; k < others.size(); ++k) {
    const size_t bytes = collet_type_bytes(c.others[k]);
    EXPECT_EQ(runner.download(addresses[2 + others.size() + k], selected.size() * bytes), picked(others[k], bytes));
  }
}

TEST(GpuRadix, Selections_AllTypesAndOrders) {
  for (const uint32_t type : kTypes) {
    for (const KeyRule& rule : rules_of(type)) check_selection({rule, 1, 4000, {}, false, 3}, 40);
  }
}

TEST(GpuRadix, Selections_AmongEqualKeys) {
  const KeyRule rule{COLLET_TYPE_F32, true, true, true};
  for (const int64_t different : {1, 2, 50}) {
    check_selection({rule, 2, 5000, {COLLET_TYPE_S32, COLLET_TYPE_C128}, false, 2, different}, 100);
    check_selection({{COLLET_TYPE_S64, false, false, false}, 2, 3073, {COLLET_TYPE_PRED}, false, 2, different}, 7);
  }
  check_selection({rule, 3, 6145, {COLLET_TYPE_S32}, false, 1}, 1);
  check_selection({rule, 1, 6144, {}, false, 1}, 768);
}

TEST(GpuRadix, Schedule_GivesFewElementsToAllProcessors) {
  codegen::GridLimits limits = target().grid;
  limits.processors = 132;
  const KeyRule rule{COLLET_TYPE_F32, false, true, true};
  const auto million = schedule_radix(rule, 1, 1 << 20, {}, false, limits);
  ASSERT_TRUE(million);
  EXPECT_EQ(million->items, 11);
  EXPECT_EQ(million->tiles, 249);
  const auto few = schedule_radix(rule, 1, 20000, {}, false, limits);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->items, 4);
  limits.declared_bytes = 8 << 10;
  EXPECT_FALSE(schedule_radix(rule, 1, 1 << 20, {}, false, limits));
}

}  // namespace
}  // namespace collet::gpu

// SPDX-License-Identifier: Apache-2.0
#include "units.h"

#include <cmath>
#include <collet/command_rows.hpp>
#include <mutex>

#include "device.h"

namespace acme {

namespace commands = collet::commands;
namespace kernel = collet::kernel;
using kernel::Op;

namespace {

// The engines of a list, which run side by side, and the scratchpad that they share.
enum Engine : uint32_t { kLoad, kStore, kMatrix, kAlu };
constexpr uint64_t kScratchpadBytes = UINT64_C(1) << 20;
constexpr int64_t kTile = 16;        // rows and columns of a tile of the matrix engine
constexpr uint64_t kLanes = 16;      // elements that the ALU computes in a cycle
constexpr uint64_t kDmaBytes = 32;   // bytes that a DMA engine copies in a cycle
constexpr uint64_t kDmaCycles = 20;  // before the first byte of a copy

// Quantized groups that are one command, or a product and one command for all that follows it.
const std::vector<std::string> kLayers = {"integer_dot", "integer_add", "quantize", "requantize"};

// What the units compute, by functions that stand for the device's instructions.
std::shared_ptr<const std::vector<kernel::Kernel>> instructions() {
  constexpr kernel::TypeSet all{COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_S8, COLLET_TYPE_PRED};
  kernel::Rows rows(commands::address_of);
  rows.product<int8_t, int32_t, int32_t>();
  rows.arithmetic<float>().arithmetic<int32_t>().compare<float>().compare<int32_t>().select(all).moves(all);
  rows.convert<float, int32_t, int8_t, bool>().iota<float>().iota<int32_t>();
  rows.reduce<float>().reduce<int32_t>().choose<float, int32_t>();
  rows.unary<float>(COLLET_OP_EXPONENTIAL, [](float x) { return std::exp(x); });
  rows.unary<float>(COLLET_OP_ROUND_NEAREST_EVEN, [](float x) { return std::nearbyint(x); });
  return std::make_shared<const std::vector<kernel::Kernel>>(rows.take());
}

uint64_t tiles(int64_t extent) {
  return static_cast<uint64_t>((extent + kTile - 1) / kTile);
}

class Units final : public commands::RowUnits {
 public:
  explicit Units(std::shared_ptr<const std::vector<kernel::Kernel>> rows) : RowUnits(std::move(rows), kLayers) {}

  std::string refusal_of_layer(const Op& op) const override {
    const uint32_t to = op.result().type;
    if (to != COLLET_TYPE_S8 && to != COLLET_TYPE_S32 && to != COLLET_TYPE_F32)
      return "only results of s8, s32 and f32";
    const bool two = op.pattern() == "integer_dot" || op.pattern() == "integer_add";
    const bool stored = op.operand(0).type == COLLET_TYPE_S8 && (!two || op.operand(1).type == COLLET_TYPE_S8);
    return two && !stored ? "only layers of s8 by s8" : "";
  }

  commands::Cost cost(const commands::PieceOp& what) const override {
    const Op op = what.op.op();
    kernel::MatrixProduct p;
    if (!what.ends_layer && op.opcode() == COLLET_OP_DOT && kernel::matrix_product_of(op, &p)) {
      return {kMatrix, static_cast<uint64_t>(p.batch * p.k) * tiles(p.m) * tiles(p.n)};
    }
    uint64_t most = op.result().elements;
    for (const uint32_t i : what.reads) most = std::max(most, op.operand(i).elements);
    return {what.has_sums ? kMatrix : kAlu, 1 + most / kLanes};
  }
};

class Machine final : public commands::RowMachine {
 public:
  using RowMachine::RowMachine;
  uint64_t copy_cycles(const commands::Command& command) const override {
    const commands::Operand& from = command.reads[0];
    return kDmaCycles + from.rows + from.rows * from.bytes / kDmaBytes;
  }
};

// A list on the device. The stand-in simulates it; a driver would translate its commands, and start them here.
class Loaded final : public commands::LoadedList {
 public:
  Loaded(Device& device, commands::List list, const Units& units, std::vector<uint64_t> array_bytes)
      : device_(device), list_(std::move(list)), machine_(units, &device), array_bytes_(std::move(array_bytes)) {}

  void start(const std::vector<kernel::Piece>& pieces, uint64_t) override {
    std::vector<char*> arrays;
    for (size_t i = 0; i < pieces.size(); ++i) {
      kernel::Array array;
      array.memory = pieces[i].memory;
      array.offset = pieces[i].offset;
      array.bytes = array_bytes_[i];
      arrays.push_back(static_cast<char*>(device_.at(array)));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    scratchpad_.resize(kScratchpadBytes);
    const commands::Simulated done = commands::simulate(machine_, list_, scratchpad_, arrays, array_bytes_);
    if (!done.complaint.empty()) throw kernel::Error(COLLET_INTERNAL, done.complaint);
  }

 private:
  Device& device_;
  commands::List list_;
  Machine machine_;
  std::vector<uint64_t> array_bytes_;
  std::mutex mutex_;
  std::vector<char> scratchpad_;
};

class Compiler final : public commands::ListCompiler {
 public:
  Compiler() : ListCompiler(options(), kLayers, kernel::QuantizedGroup::kFeatures), rows_(instructions()) {}

  std::unique_ptr<commands::Units> make_units() const override { return std::make_unique<Units>(rows_); }
  std::unique_ptr<commands::LoadedList> load(kernel::Device& device, const commands::List& list,
                                             const commands::Units& units,
                                             const std::vector<uint64_t>& array_bytes) const override {
    return std::make_unique<Loaded>(static_cast<Device&>(device), list, static_cast<const Units&>(units), array_bytes);
  }
  commands::Simulated timing(const commands::List& list, const commands::Units& units) const override {
    return commands::timing_of(Machine(static_cast<const Units&>(units), nullptr), list);
  }

 private:
  static commands::ListOptions options() {
    commands::ListOptions out;
    out.engines = {"dma in", "dma out", "matrix", "alu"};
    out.load = kLoad;
    out.store = kStore;
    out.limits.scratchpad_bytes = kScratchpadBytes;
    out.limits.alignment = 16;
    out.limits.rows = out.limits.columns = out.limits.depth = kTile;
    out.limits.operand_copies = out.limits.result_copies = 2;  // loads and stores beside the work
    return out;
  }

  std::shared_ptr<const std::vector<kernel::Kernel>> rows_;
};

}  // namespace

std::shared_ptr<const kernel::ProgramCompiler> compiler() {
  return std::make_shared<Compiler>();
}

}  // namespace acme

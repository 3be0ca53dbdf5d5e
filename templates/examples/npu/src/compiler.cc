// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

namespace npu {

using kernel::Error;
using kernel::Op;

namespace {

// The layers and residual sums of quantized models that the matrix engine does with their ends.
const std::vector<std::string> kPatterns = {"integer_dot", "integer_convolution", "integer_add"};

// Chooses the unit for each op.
class Units final : public commands::RowUnits {
 public:
  explicit Units(Fault fault) : RowUnits(all_rows(), kPatterns), fault_(fault) {}

  std::string refusal(const Op& op) const override {
    for (uint32_t i = 0; i < op.operand_count() + op.result_count(); ++i) {
      const uint32_t type = op.arrays()[i].type;
      if (!kTypes.has(type)) return std::string("no unit has ") + collet_type_name(type);
    }
    return RowUnits::refusal(op);
  }

  std::string refusal_of_layer(const Op& op) const override {
    const uint32_t left = op.operand(0).type, right = op.operand(1).type, to = op.result().type;
    if (left != right || (left != COLLET_TYPE_S8 && left != COLLET_TYPE_U8))
      return "only layers of s8 by s8, or u8 by u8";
    const bool stored = to == COLLET_TYPE_S8 || to == COLLET_TYPE_U8 || to == COLLET_TYPE_F32;
    return stored ? "" : "only layers with results of s8, u8 and f32";
  }

  commands::Cost cost(const commands::PieceOp& what) const override {
    const Op op = what.op.op();
    if (what.ends_layer) return {kMatrix, 4 + op.result().elements / kTile};
    commands::Cost out;
    out.engine = engine_of(op, &out.cycles);
    return out;
  }

  kernel::QuantizedGroup layer_of(const Op& op) const override {
    kernel::QuantizedGroup layer(op);
    if (fault_ == Fault::kRounding) layer.rounds_away = !layer.rounds_away;
    if (fault_ == Fault::kZeroPoint) layer.zero_point += 1;
    if (fault_ == Fault::kSaturation) layer.low = -1e9, layer.high = 1e9;
    return layer;
  }

 private:
  Fault fault_;
};

// A list on a device. The simulator runs what the machine's sequencer makes of the loops.
class Loaded final : public commands::LoadedList {
 public:
  Loaded(Device& device, commands::List list, const Units& units, std::vector<uint64_t> array_bytes)
      : device_(device), list_(std::move(list)), machine_(units, &device), array_bytes_(std::move(array_bytes)) {}

  void start(const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    std::vector<char*> arrays;
    for (const kernel::Piece& piece : pieces) arrays.push_back(Device::at(piece.memory) + piece.offset);
    const std::lock_guard<std::mutex> lock(device_.mutex);
    const uint64_t start = now_ns();
    const commands::Simulated done = commands::simulate(machine_, list_, device_.scratchpad, arrays, array_bytes_);
    if (!done.complaint.empty()) throw Error(COLLET_INTERNAL, done.complaint);
    if (!device_.wants_records()) return;
    for (const auto& one : commands::records_of(list_, done, start, kCyclesPerNs, run_id)) device_.record(one);
  }

 private:
  static uint64_t now_ns() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

  Device& device_;
  commands::List list_;
  Machine machine_;
  std::vector<uint64_t> array_bytes_;
};

// Returns the list with a fault: loads that overlap the one before them get no halo; stores come one row early.
commands::List with_fault(const commands::List& list, Fault fault) {
  commands::List out(list.engines());
  std::map<uint32_t, commands::Operand> before;
  for (commands::Command command : list.commands()) {
    if (command.engine == kLoad) {
      commands::Operand& from = command.reads[0];
      const commands::Operand last = before[from.base];
      before[from.base] = from;
      const uint64_t end = last.offset + last.bytes;
      const bool overlaps = last.bytes != 0 && last.offset < from.offset && from.offset < end;
      if (fault == Fault::kHalo && overlaps) from.offset -= std::min(from.offset, end - from.offset);
    }
    if (fault == Fault::kAddress && command.engine == kStore) {
      commands::Operand& to = command.writes[0];
      if (to.offset != 0) to.offset -= std::min(to.offset, to.rows == 1 ? to.bytes : to.pitch);
    }
    out.add(std::move(command));
  }
  return out;
}

commands::ListOptions options_of(uint64_t scratchpad_bytes) {
  commands::ListOptions out;
  out.engines = kEngines;
  out.load = kLoad;
  out.store = kStore;
  out.alignment = kAlignment;
  out.limits.scratchpad_bytes = scratchpad_bytes;
  out.limits.alignment = 16;
  out.limits.rows = out.limits.columns = out.limits.depth = out.limits.lanes = kTile;
  out.limits.operand_copies = out.limits.result_copies = 2;
  return out;
}

}  // namespace

Compiler::Compiler(uint64_t scratchpad_bytes, Fault fault)
    : ListCompiler(options_of(scratchpad_bytes), kPatterns, kernel::QuantizedGroup::kFeatures | COLLET_FEATURE_PADDING),
      fault_(fault) {}

std::unique_ptr<commands::Units> Compiler::make_units() const {
  return std::make_unique<Units>(fault_);
}

std::unique_ptr<commands::LoadedList> Compiler::load(kernel::Device& device, const commands::List& list,
                                                     const commands::Units& units,
                                                     const std::vector<uint64_t>& array_bytes) const {
  const commands::List unrolled = commands::LoopedList(list).unrolled();
  return std::make_unique<Loaded>(static_cast<Device&>(device),
                                  fault_ == Fault::kNone ? unrolled : with_fault(unrolled, fault_),
                                  static_cast<const Units&>(units), array_bytes);
}

commands::Simulated Compiler::timing(const commands::List& list, const commands::Units& units) const {
  return commands::timing_of(Machine(static_cast<const Units&>(units), nullptr), list);
}

}  // namespace npu

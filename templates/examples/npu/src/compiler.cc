// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <cstring>

namespace npu {

using kernel::Error;
using kernel::Op;

namespace {

// The layers and residual sums of quantized models that the matrix engine does with their ends.
const char* const kPatterns[] = {"integer_dot", "integer_convolution", "integer_add"};

bool is_layer(const std::string& pattern) {
  return std::find(std::begin(kPatterns), std::end(kPatterns), pattern) != std::end(kPatterns);
}

// Chooses the unit for each op, and keeps what the commands compute.
class Units final : public commands::Units {
 public:
  std::string refusal(const Op& op) const override {
    for (uint32_t i = 0; i < op.operand_count() + op.result_count(); ++i) {
      const uint32_t type = op.arrays()[i].type;
      if (!kTypes.has(type)) return std::string("no unit has ") + collet_type_name(type);
    }
    switch (op.opcode()) {
      case COLLET_OP_CONSTANT:
      case COLLET_OP_RESHAPE:
      case COLLET_OP_COPY:
        return {};
      case COLLET_OP_FUSION:
        return "the compiler forms groups of its own";
      case COLLET_OP_CALL:
        return refusal_of_call(op);
      default: {
        std::string reason;
        find_row(op, &reason);
        return reason;
      }
    }
  }

  commands::Command command(const commands::PieceOp& what) override {
    const Op op = what.op.op();
    Work work{what, nullptr, nullptr, nullptr, {}, 1};
    Engine engine = kAlu;
    std::string reason;
    if (what.ends_layer) {
      work.layer = std::make_shared<const kernel::QuantizedGroup>(op);
      work.cycles = 4 + op.result().elements / kTile;
      engine = kMatrix;
    } else {
      engine = engine_of(op, &work.cycles);
      if (op.opcode() != COLLET_OP_RESHAPE && op.opcode() != COLLET_OP_COPY) work.row = find_row(op, &reason);
      if (what.combine != COLLET_COMBINE_OTHER) work.combine = row_of_combine(what.combine, op.result().type);
    }
    works.push_back(std::move(work));
    const std::string name = what.ends_layer ? "end " + op.name() : collet_op_name(op.opcode()) + (" " + op.name());
    return {name, engine, {}, {}, {static_cast<int64_t>(works.size()) - 1}};
  }

  bool ends(const std::string& pattern) const override { return is_layer(pattern); }

  std::vector<Work> works;

 private:
  static std::string refusal_of_call(const Op& op) {
    if (!is_layer(op.pattern())) return "only calls of integer_dot, integer_convolution and integer_add";
    const uint32_t left = op.operand(0).type, right = op.operand(1).type, to = op.result().type;
    if (left != right || (left != COLLET_TYPE_S8 && left != COLLET_TYPE_U8))
      return "only layers of s8 by s8, or u8 by u8";
    const bool stored = to == COLLET_TYPE_S8 || to == COLLET_TYPE_U8 || to == COLLET_TYPE_F32;
    return stored ? "" : "only layers with results of s8, u8 and f32";
  }
};

class Program final : public kernel::WholeProgram {
 public:
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override;

  std::vector<uint64_t> block;  // a copy of the program, to which the works point
  Units units;
  commands::LoopedList list{commands::List(kEngines)};
  std::string resident;
  std::vector<uint64_t> array_bytes;
  Fault fault = Fault::kNone;
};

// A program on a device: constants in its memory, and the state of its works.
class Loaded final : public kernel::DeviceProgram {
 public:
  Loaded(Device& device, const Program& program)
      : program_(program), device_(device), sequence_(program.list.unrolled()), works_(program.units.works) {
    for (Work& work : works_) {
      if (work.row && work.row->prepare) work.state = work.row->prepare(device, work.what.op.op());
    }
    if (program.resident.empty()) return;
    resident_ = device.allocate(program.resident.size(), kAlignment);
    device.write(resident_, 0, program.resident.data(), program.resident.size());
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() override { device_.free(resident_); }

  void launch(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    std::vector<char*> arrays;
    for (const kernel::Piece& piece : pieces) arrays.push_back(Device::at(piece.memory) + piece.offset);
    arrays.push_back(Device::at(resident_));
    const std::lock_guard<std::mutex> lock(device_.mutex);
    const uint64_t start = now_ns();
    Machine machine(works_, &device_, program_.fault);
    const commands::Simulated done =
        commands::simulate(machine, sequence_, device_.scratchpad, arrays, program_.array_bytes);
    if (!done.complaint.empty()) throw Error(COLLET_INTERNAL, done.complaint);
    if (!device_.wants_records()) return;
    for (const auto& one : commands::records_of(sequence_, done, start, kCyclesPerNs, run_id)) device_.record(one);
  }

 private:
  static uint64_t now_ns() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

  const Program& program_;
  Device& device_;
  commands::List sequence_;  // what the machine's sequencer makes of the loops
  std::vector<Work> works_;
  kernel::Memory resident_ = kernel::no_memory;
};

std::unique_ptr<kernel::DeviceProgram> Program::load(kernel::Device& device) {
  return std::make_unique<Loaded>(static_cast<Device&>(device), *this);
}

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

}  // namespace

Compiler::Compiler(uint64_t scratchpad_bytes, Fault fault) : fault_(fault) {
  options_.engines = kEngines;
  options_.load = kLoad;
  options_.store = kStore;
  options_.alignment = kAlignment;
  options_.limits.scratchpad_bytes = scratchpad_bytes;
  options_.limits.alignment = 16;
  options_.limits.rows = options_.limits.columns = options_.limits.depth = options_.limits.lanes = kTile;
  options_.limits.operand_copies = options_.limits.result_copies = 2;
}

const char* Compiler::pattern(uint32_t index) const {
  return index < std::size(kPatterns) ? kPatterns[index] : nullptr;
}

uint32_t Compiler::pattern_features(uint32_t) const {
  return kernel::QuantizedGroup::kFeatures | COLLET_FEATURE_PADDING;
}

void Compiler::answer(const collet_program* program, const uint32_t* ops, uint32_t count,
                      collet_verdict* verdicts) const {
  for (uint32_t i = 0; i < count; ++i) {
    const std::string reason = commands::ProgramList::refusal(program, ops[i], options_, Units());
    verdicts[i].answer = reason.empty() ? COLLET_ACCEPT : COLLET_DECLINE;
    collet_copy_text(verdicts[i].reason, sizeof verdicts[i].reason, reason.c_str());
  }
}

std::unique_ptr<kernel::WholeProgram> Compiler::compile(const collet_program* program, bool keep_artifacts,
                                                        std::vector<uint32_t>* rejected) const {
  auto out = std::make_unique<Program>();
  out->block.resize((program->total_bytes + 7) / 8);
  std::memcpy(out->block.data(), program, program->total_bytes);
  const auto* kept = reinterpret_cast<const collet_program*>(out->block.data());
  const commands::ProgramList made(kept, options_, out->units);
  *rejected = made.rejected();
  if (!rejected->empty()) return nullptr;
  const commands::List list = fault_ == Fault::kNone ? made.list() : with_fault(made.list(), fault_);
  out->list = commands::LoopedList(list);
  out->resident = made.resident();
  out->array_bytes = made.array_bytes();
  out->fault = fault_;
  out->workspace_bytes = made.workspace_bytes();
  out->resident_bytes = made.resident().size();
  out->traffic_bytes = made.traffic_bytes();
  out->kernels = 1;
  const commands::Simulated timing = commands::timing_of(Machine(out->units.works, nullptr, fault_), list);
  out->cycles = timing.cycles;
  out->estimated_ns = static_cast<double>(timing.cycles) / kCyclesPerNs;
  if (!keep_artifacts) return out;
  std::string text = out->list.text() + std::to_string(list.commands().size()) + " commands, " +
                     std::to_string(out->list.commands().size()) + " of them in the list, of " +
                     std::to_string(made.group_count()) + " groups, " + std::to_string(timing.cycles) +
                     " cycles; busy:";
  for (size_t e = 0; e < kEngines.size(); ++e) text += " " + kEngines[e] + " " + std::to_string(timing.busy[e]);
  out->artifacts.emplace_back("commands.txt", text + "\n");
  out->artifacts.emplace_back("commands.json", out->list.json());
  return out;
}

}  // namespace npu

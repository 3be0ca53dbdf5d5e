/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COMMAND_ROWS_HPP
#define COLLET_COMMAND_ROWS_HPP

/** \file
 * Units and a machine for command lists that compute with rows of a kernel table, those of kernel_rows.hpp most often: a simulated
 * device, to begin with before the device is there. The vendor says which engine computes an op, and how long that takes:
 *
 *     collet::kernel::Rows rows(collet::commands::address_of);
 *     rows.product<int8_t, int32_t, int32_t>().arithmetic<float>();
 *     const auto shared = std::make_shared<const std::vector<collet::kernel::Kernel>>(rows.take());
 *
 * A class derived from RowUnits gets these rows, and has `cost` and `refusal_of_layer`; one derived from RowMachine has
 * `copy_cycles`. Header only.
 */

#include <any>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel_quantized.hpp"
#include "kernel_rows.hpp"
#include "list_program.hpp"

namespace collet {
namespace commands {

/** Returns the address of an array whose memory is an address of the host, for kernel::Rows. */
inline void* address_of(kernel::Device&, const kernel::Array& array) {
  return array.bytes == 0 ? nullptr : reinterpret_cast<char*>(array.memory) + array.offset;
}

/** The engine that computes an op, and the cycles that it takes there. */
struct Cost {
  uint32_t engine = 0;
  uint64_t cycles = 1;
};

/** What a command computes. Command::values has its number. */
struct RowWork {
  PieceOp what;
  const kernel::Kernel* row = nullptr;     /**< null: a copy of bytes, or the end of a layer */
  const kernel::Kernel* combine = nullptr; /**< how the result is combined with the accumulator; null: it is not */
  std::shared_ptr<const kernel::QuantizedGroup> layer; /**< of the end of a layer */
  uint64_t cycles = 1;
};

/** Units whose commands are rows. Constants, reshape and copy need none, and neither do the ends of quantized layers. */
class RowUnits : public Units {
 public:
  /** The types of the operands that the ends of layers read: scales, biases, zero points, and what a group without a product is
   * computed of. */
  static constexpr kernel::TypeSet kEndOperands{COLLET_TYPE_S8,  COLLET_TYPE_U8,  COLLET_TYPE_S32,
                                                COLLET_TYPE_F16, COLLET_TYPE_F32, COLLET_TYPE_BF16};
  /** `rows` find their arrays by address_of. `layers` are the patterns that PieceOp::ends_layer does: by a row with that `pattern`, or
   * else as the end of a quantized layer. */
  RowUnits(std::shared_ptr<const std::vector<kernel::Kernel>> rows, std::vector<std::string> layers)
      : rows_(std::move(rows)), layers_(std::move(layers)) {}

  /** Returns the engine and the cycles of an op. Asked when the command is made. */
  virtual Cost cost(const PieceOp& what) const = 0;
  /** Returns why the units do not take this call of one of their patterns; empty if they do. Not asked about operands of
   * other types than kEndOperands behind the product's, which are refused. */
  virtual std::string refusal_of_layer(const kernel::Op& op) const = 0;
  /** Returns what the end of a layer is. A test may change it, to see that the fault is found. */
  virtual kernel::QuantizedGroup layer_of(const kernel::Op& op) const { return kernel::QuantizedGroup(op); }

  std::string refusal(const kernel::Op& op) const override {
    if (copies(op)) return {};
    if (op.opcode() == COLLET_OP_FUSION) return "groups are formed by the compiler";
    if (op.opcode() == COLLET_OP_CALL) {
      if (!ends(op.pattern())) return "no unit computes this call as one";
      if (!has_row(op.pattern())) {
        const std::string reason = refusal_of_end(op);
        return reason.empty() ? refusal_of_layer(op) : reason;
      }
    }
    std::string reason;
    row_of(op, &reason);
    return reason;
  }

  Command command(const PieceOp& what) override {
    const kernel::Op op = what.op.op();
    const Cost cost = this->cost(what);
    RowWork work{what, nullptr, nullptr, nullptr, cost.cycles};
    std::string reason;
    if (what.ends_layer && has_row(op.pattern())) {
      if (what.has_sums)
        throw kernel::Error(COLLET_UNIMPLEMENTED, "a row for a pattern with a product: " + op.pattern());
      work.row = row_of(op, &reason);
    } else if (what.ends_layer) {
      work.layer = std::make_shared<const kernel::QuantizedGroup>(layer_of(op));
    } else {
      if (!copies(op)) work.row = row_of(op, &reason);
      if (what.combine != COLLET_COMBINE_OTHER) work.combine = row_of_combine(what.combine, op.result().type);
    }
    works_.push_back(std::move(work));
    const std::string name = (what.ends_layer ? "end " : collet_op_name(op.opcode()) + std::string(" ")) + op.name();
    return {name, cost.engine, {}, {}, {static_cast<int64_t>(works_.size()) - 1}};
  }

  bool ends(const std::string& pattern) const override {
    return std::find(layers_.begin(), layers_.end(), pattern) != layers_.end();
  }
  /** Returns what the commands compute, by Command::values[0]. */
  const std::vector<RowWork>& works() const { return works_; }

 private:
  static bool copies(const kernel::Op& op) {
    return op.opcode() == COLLET_OP_CONSTANT || op.opcode() == COLLET_OP_RESHAPE || op.opcode() == COLLET_OP_COPY;
  }

  /** Returns why the end of a layer cannot read its operands. Those of a product, the first two, are read by its row. */
  static std::string refusal_of_end(const kernel::Op& op) {
    const kernel::RegionGraph graph(op.program(), op.raw().regions.first);
    bool has_product = false;
    for (uint32_t i = 0; i < graph.op_count(); ++i) {
      const uint32_t opcode = graph.op(i)->opcode;
      has_product |= opcode == COLLET_OP_DOT || opcode == COLLET_OP_CONVOLUTION;
    }
    for (uint32_t i = has_product ? 2 : 0; i < op.operand_count(); ++i) {
      const uint32_t type = op.operand(i).type;
      if (!kEndOperands.has(type)) return std::string("no end of a layer reads ") + collet_type_name(type);
    }
    return {};
  }

  /** True if there is a row for the calls of a pattern. */
  bool has_row(const std::string& pattern) const {
    return std::any_of(rows_->begin(), rows_->end(), [&](const kernel::Kernel& row) {
      return row.opcode == COLLET_OP_CALL && row.pattern == pattern;
    });
  }

  const kernel::Kernel* row_of(const kernel::Op& op, std::string* reason) const {
    const auto all_in = [&](kernel::TypeSet set, uint32_t first, uint32_t count) {
      return std::all_of(op.arrays() + first, op.arrays() + first + count,
                         [&](const kernel::Array& a) { return set.has(a.type); });
    };
    bool known = false;
    for (const kernel::Kernel& row : *rows_) {
      if (row.opcode != op.opcode()) continue;
      if (row.opcode == COLLET_OP_CALL && row.pattern != op.pattern()) continue;
      known = true;
      if (!all_in(row.operands, 0, op.operand_count()) || !all_in(row.results, op.operand_count(), op.result_count())) {
        continue;
      }
      const bool plain = op.region_count() == 0 || row.opcode == COLLET_OP_CALL;
      const kernel::Verdict verdict = row.takes ? row.takes(op) : kernel::Verdict(plain);
      if (verdict) {
        reason->clear();
        return &row;
      }
      *reason = verdict.reason();
    }
    if (!known) *reason = std::string("no unit computes ") + collet_op_name(op.opcode());
    if (reason->empty()) *reason = std::string("no unit computes ") + collet_op_name(op.opcode()) + types_of(op);
    return nullptr;
  }

  /** Returns the types of an op, for messages: " of f32, to s32". */
  static std::string types_of(const kernel::Op& op) {
    std::string out;
    for (uint32_t i = 0; i < op.operand_count(); ++i) {
      out += (i == 0 ? " of " : ", ") + std::string(collet_type_name(op.operand(i).type));
    }
    return op.result_count() == 0 ? out : out + " to " + collet_type_name(op.result().type);
  }

  const kernel::Kernel* row_of_combine(uint32_t combine, uint32_t type) const {
    const std::pair<uint32_t, uint32_t> opcodes[] = {
        {COLLET_COMBINE_ADD, COLLET_OP_ADD},         {COLLET_COMBINE_MULTIPLY, COLLET_OP_MULTIPLY},
        {COLLET_COMBINE_MINIMUM, COLLET_OP_MINIMUM}, {COLLET_COMBINE_MAXIMUM, COLLET_OP_MAXIMUM},
        {COLLET_COMBINE_AND, COLLET_OP_AND},         {COLLET_COMBINE_OR, COLLET_OP_OR},
        {COLLET_COMBINE_XOR, COLLET_OP_XOR}};
    for (const auto& one : opcodes) {
      for (const kernel::Kernel& row : *rows_) {
        if (one.first == combine && row.opcode == one.second && row.operands.has(type)) return &row;
      }
    }
    throw kernel::Error(COLLET_INTERNAL, std::string("no row combines accumulators of ") + collet_type_name(type));
  }

  std::shared_ptr<const std::vector<kernel::Kernel>> rows_;
  std::vector<std::string> layers_;
  std::vector<RowWork> works_;
};

/** A machine that runs the commands of RowUnits. Commands without values are copies by DMA. */
class RowMachine : public Machine {
 public:
  /** `device` is passed to the rows; null for a machine that only says how long commands take. The units outlive it. */
  RowMachine(const RowUnits& units, kernel::Device* device) : works_(units.works()), device_(device) {
    for (const RowWork& work : works_) {
      const bool prepares = device && work.row && work.row->prepare;
      states_.push_back(prepares ? work.row->prepare(*device, work.what.op.op()) : std::any());
    }
  }

  /** Returns the cycles of a copy by DMA. */
  virtual uint64_t copy_cycles(const Command& command) const = 0;

  uint64_t cycles(const Command& command) const override {
    return command.values.empty() ? copy_cycles(command) : works_[static_cast<size_t>(command.values[0])].cycles;
  }

  void run(const Command& command, const std::function<char*(const Operand&)>& at) override {
    using kernel::Array;
    using kernel::Memory;
    using kernel::Op;
    const Operand& to = command.writes[0];
    if (command.values.empty()) {
      const Operand& from = command.reads[0];
      for (uint64_t row = 0; row < from.rows; ++row) {
        std::memcpy(at(to) + row * to.pitch, at(from) + row * from.pitch, static_cast<size_t>(from.bytes));
      }
      return;
    }
    const RowWork& work = works_[static_cast<size_t>(command.values[0])];
    const Op shaped = work.what.op.op();
    std::vector<Array> arrays(shaped.arrays(), shaped.arrays() + shaped.operand_count() + shaped.result_count());
    const auto address = [&](const Operand& operand) { return reinterpret_cast<Memory>(at(operand)); };
    for (size_t i = 0; i < work.what.reads.size(); ++i) arrays[work.what.reads[i]].memory = address(command.reads[i]);
    for (size_t i = 0; i < command.writes.size(); ++i) {
      arrays[shaped.operand_count() + i].memory = address(command.writes[i]);
    }
    kernel::OpContext context;
    context.state = &states_[static_cast<size_t>(command.values[0])];
    const Op op(shaped.program(), &shaped.raw(), arrays.data(), context);
    if (work.layer) {
      const bool has_sums = work.what.has_sums;
      end_layer(*work.layer, op, has_sums ? reinterpret_cast<const int32_t*>(at(command.reads.back())) : nullptr);
    } else if (!work.row) {
      std::memcpy(at(to), at(command.reads[0]), static_cast<size_t>(to.bytes));
    } else if (!work.combine) {
      work.row->run(*device_, op);
    } else {
      std::vector<char> part(static_cast<size_t>(to.bytes));
      const Array sum = arrays.back();
      arrays.back().memory = reinterpret_cast<Memory>(part.data());
      work.row->run(*device_, op);
      const Array combined[] = {sum, arrays.back(), sum};
      collet_op both{};
      both.operands.count = 2;
      work.combine->run(*device_, Op(shaped.program(), &both, combined));
    }
  }

 private:
  static double element(const kernel::Array& array, uint64_t i) {
    const char* const data = reinterpret_cast<const char*>(array.memory) + array.offset;
    switch (array.type) {
      case COLLET_TYPE_S8:
        return reinterpret_cast<const int8_t*>(data)[i];
      case COLLET_TYPE_U8:
        return reinterpret_cast<const uint8_t*>(data)[i];
      case COLLET_TYPE_S32:
        return reinterpret_cast<const int32_t*>(data)[i];
      case COLLET_TYPE_F16:
        return static_cast<double>(reinterpret_cast<const kernel::half*>(data)[i]);
      case COLLET_TYPE_BF16:
        return static_cast<double>(reinterpret_cast<const kernel::bfloat16*>(data)[i]);
      case COLLET_TYPE_F32:
        return static_cast<double>(reinterpret_cast<const float*>(data)[i]);
      default:
        throw kernel::Error(COLLET_INTERNAL, std::string("an operand of a layer of ") + collet_type_name(array.type));
    }
  }

  /** Does the end of a quantized layer: bias, scale, activation, zero point, rounding, saturation. Without sums all of integer_add,
   * quantize or requantize. */
  static void end_layer(const kernel::QuantizedGroup& layer, const kernel::Op& op, const int32_t* sums) {
    char* const to = reinterpret_cast<char*>(op.result().memory);
    constexpr kernel::TypeSet kFloats{COLLET_TYPE_F16, COLLET_TYPE_BF16, COLLET_TYPE_F32};
    const bool adds = op.pattern() == "integer_add", floats = kFloats.has(op.operand(0).type);
    for (uint64_t i = 0; i < op.result().elements; ++i) {
      const auto stored = [&](uint32_t operand) { return static_cast<int32_t>(element(op.operand(operand), i)); };
      float value = 0;
      if (sums) {
        value = layer.result(op, sums[i], i, element);
      } else if (adds) {
        value = layer.result(op, layer.added(op, stored(0), stored(1), i, element), i, element);
      } else if (floats) {
        value = layer.result(op, static_cast<float>(element(op.operand(0), i)), i, element);
      } else {
        value = layer.result(op, stored(0), i, element);
      }
      switch (op.result().type) {
        case COLLET_TYPE_F32:
          reinterpret_cast<float*>(to)[i] = value;
          break;
        case COLLET_TYPE_S32:
          reinterpret_cast<int32_t*>(to)[i] = static_cast<int32_t>(value);
          break;
        default:
          to[i] = static_cast<char>(static_cast<int32_t>(value));
      }
    }
  }

  const std::vector<RowWork>& works_;
  std::vector<std::any> states_;
  kernel::Device* device_;
};

}  // namespace commands
}  // namespace collet

#endif
